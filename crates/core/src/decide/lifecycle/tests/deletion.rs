use super::*;
use crate::reason;

const WINDOW: Duration = Duration::from_secs(600);

fn delete(number: usize) -> DeletionDecision {
    DeletionDecision::Delete(deleting_node(&node(number)))
}

fn until(decision: &DeletionDecision) -> Option<Tick> {
    match decision {
        DeletionDecision::Wait { until, .. } => *until,
        DeletionDecision::Delete(_) => panic!("it goes"),
    }
}

#[test]
fn a_share_never_says_none_but_a_count_can() {
    let table = [
        (Share::Percent(10), 0, 1),
        (Share::Percent(10), 1, 1),
        (Share::Percent(10), 19, 1),
        (Share::Percent(10), 20, 2),
        (Share::Percent(10), 1_005, 100),
        (Share::Percent(100), 7, 7),
        (Share::Percent(10), usize::MAX, usize::MAX / 100),
        (Share::Count(0), 1_000, 0),
        (Share::Count(3), 1, 3),
    ];
    for (share, nodes, want) in table {
        assert_eq!(Cap { share, window: WINDOW }.allowed(nodes), want, "L2-111 {share} of {nodes}");
    }
    assert_eq!(Cap::LAW, Cap { share: Share::Percent(10), window: WINDOW });
}

#[test]
fn the_flag_is_a_number_or_a_share() {
    let table = [
        ("10%", Some(Share::Percent(10))),
        ("1%", Some(Share::Percent(1))),
        ("100%", Some(Share::Percent(100))),
        ("0", Some(Share::Count(0))),
        ("3", Some(Share::Count(3))),
        ("0%", None),
        ("101%", None),
        ("-1", None),
        ("1.5", None),
        ("%", None),
        ("", None),
        ("ten", None),
    ];
    for (text, want) in table {
        let got = text.parse::<Share>();
        assert_eq!(got.as_ref().ok(), want.as_ref(), "{text}");
        match got {
            Ok(share) => assert_eq!(share.to_string(), text),
            Err(why) => {
                assert!(why.message().starts_with(&format!("--max-node-deletions is {text:?}; ")), "{why}");
            }
        }
    }
}

#[test]
fn nodes_go_one_after_another_and_not_faster() {
    let mut deletions = Deletions::default();
    let mut go =
        |number, now| deletions.decision(&node(number), &mut NodeHistory::default(), Cap::LAW, 20, at(now));
    assert_eq!(go(1, 1_000), delete(1));
    assert_eq!(go(2, 1_100), delete(2));
    assert_eq!(until(&go(3, 1_200)), Some(at(1_600)), "L2-112 two of twenty within ten minutes");
    assert_eq!(until(&go(3, 1_599)), Some(at(1_600)), "L2-112");
    assert_eq!(go(3, 1_600), delete(3), "the window slides");
    assert_eq!(until(&go(4, 1_600)), Some(at(1_700)));
    assert_eq!(go(4, 1_700), delete(4));
    assert_eq!(deletions.counted(Cap::LAW, at(1_700)), 2);
    assert_eq!(deletions.counted(Cap::LAW, at(2_199)), 2);
    assert_eq!(deletions.counted(Cap::LAW, at(2_200)), 1);
}

#[test]
fn a_cluster_that_shrank_waits_for_more_to_leave_the_window() {
    let mut deletions = Deletions::default();
    for second in [1_300, 1_100, 1_200] {
        deletions.note(at(second), Cap::LAW);
    }
    let mut wait =
        |nodes| until(&deletions.decision(&node(9), &mut NodeHistory::default(), Cap::LAW, nodes, at(1_400)));
    assert_eq!(wait(30), Some(at(1_700)), "the oldest");
    assert_eq!(wait(20), Some(at(1_800)), "the two oldest");
    assert_eq!(wait(5), Some(at(1_900)), "all three");
}

#[test]
fn what_the_autoscaler_removes_neither_waits_nor_counts() {
    let removed = |number| NodeFacts { autoscaler_removes: true, ..node(number) };
    let mut deletions = Deletions::default();
    for number in 0..9 {
        let got = deletions.decision(&removed(number), &mut NodeHistory::default(), Cap::LAW, 9, at(1_000));
        assert_eq!(got, DeletionDecision::Delete(deleting_node(&node(number))), "L2-113");
    }
    assert_eq!(deletions, Deletions::default(), "L2-113");
    assert_eq!(deletions.decision(&node(9), &mut NodeHistory::default(), Cap::LAW, 9, at(1_000)), delete(9));
    let declared = NodeFacts { declared_gone: true, ..node(10) };
    let got = deletions.decision(&declared, &mut NodeHistory::default(), Cap::LAW, 9, at(1_000));
    assert_eq!(until(&got), Some(at(1_600)), "L2-114 a person's word is no way past the cap");
    assert!(deletions.send(&removed(1), Cap::LAW, at(1_000)), "L2-113");
    let failed = deletions.answered(&removed(1), Err(&Error::permanent("403")), at(1_000));
    assert!(matches!(failed, Answer::Failed(Some(_))));
    assert_eq!(deletions.counted(Cap::LAW, at(1_000)), 1, "what was not counted is not taken back");
}

#[test]
fn a_replica_that_does_not_know_the_past_begins_with_one() {
    let mut deletions = Deletions::since(at(1_000));
    let mut go =
        |number, now| deletions.decision(&node(number), &mut NodeHistory::default(), Cap::LAW, 30, at(now));
    assert_eq!(go(1, 1_100), delete(1), "L2-116");
    assert_eq!(
        until(&go(2, 1_110)),
        Some(at(1_600)),
        "L2-117 the first window is over before the one leaves"
    );
    assert_eq!(go(2, 1_600), delete(2), "three of thirty from now on");
    assert_eq!(go(3, 1_600), delete(3));
    assert_eq!(until(&go(4, 1_600)), Some(at(1_700)));

    let mut small = Deletions::since(at(1_000));
    let mut go =
        |number, now| small.decision(&node(number), &mut NodeHistory::default(), Cap::LAW, 9, at(now));
    assert_eq!(go(1, 1_100), delete(1));
    assert_eq!(until(&go(2, 1_110)), Some(at(1_700)), "one of nine, in the beginning and later");
    let none = Cap { share: Share::Count(0), window: WINDOW };
    let never =
        Deletions::since(at(1_000)).decision(&node(1), &mut NodeHistory::default(), none, 9, at(1_100));
    assert_eq!(until(&never), None, "none is none");
}

#[test]
fn with_none_allowed_nothing_ever_goes() {
    let none = Cap { share: Share::Count(0), window: WINDOW };
    let got = Deletions::default().decision(&node(1), &mut NodeHistory::default(), none, 50, at(1_000));
    assert_eq!(until(&got), None);
}

#[test]
fn being_held_is_said_once() {
    let (mut deletions, mut memory) = (Deletions::default(), NodeHistory::default());
    deletions.note(at(1_000), Cap::LAW);
    let DeletionDecision::Wait { event: Some(event), .. } =
        deletions.decision(&node(2), &mut memory, Cap::LAW, 19, at(1_001))
    else {
        panic!("said the first time")
    };
    assert_eq!((event.warning, event.reason.name()), (true, "NodeDeletionHeld"));
    assert_eq!(
        event.message,
        "The instance of node node2 is gone, but the node stays for now: the limit of 1 within 10 minutes \
         (--max-node-deletions=10%) is reached. If it is right that so many instances are gone, wait, or delete the node \
         yourself"
    );
    for second in 1_002..1_010 {
        let again = deletions.decision(&node(2), &mut memory, Cap::LAW, 19, at(second));
        assert_eq!(again, DeletionDecision::Wait { until: Some(at(1_600)), event: None }, "L4-102");
    }
    let reborn = NodeFacts { uid: "another".to_owned(), ..node(2) };
    let again = deletions.decision(&reborn, &mut memory, Cap::LAW, 19, at(1_010));
    assert!(matches!(again, DeletionDecision::Wait { event: Some(_), .. }), "another node, another event");
}

#[test]
fn a_node_that_leaves_before_its_deletion_is_sent_takes_no_place() {
    let (mut deletions, mut memory) = (Deletions::default(), NodeHistory::default());
    assert_eq!(deletions.decision(&node(1), &mut memory, Cap::LAW, 9, at(1_000)), delete(1));
    deletions.gone(&node(1).uid);
    assert_eq!(deletions.counted(Cap::LAW, at(1_001)), 0, "L2-1011");
    assert!(!deletions.send(&node(1), Cap::LAW, at(1_001)), "L2-1011 it is not sent any more");
}

#[test]
fn what_was_decided_in_another_term_and_not_sent_takes_no_place() {
    let (mut deletions, mut memory) = (Deletions::default(), NodeHistory::default());
    assert_eq!(deletions.decision(&node(1), &mut memory, Cap::LAW, 9, at(1_000)), delete(1));
    deletions.resume(at(1_010));
    assert_eq!(deletions.counted(Cap::LAW, at(1_010)), 0, "L2-1012");
    assert!(!deletions.send(&node(1), Cap::LAW, at(1_011)), "L2-1012 its worker may still be there");
    assert_eq!(deletions.decision(&node(2), &mut memory, Cap::LAW, 9, at(1_012)), delete(2), "L2-1012");
    assert!(deletions.send(&node(2), Cap::LAW, at(1_013)));
    assert_eq!(deletions.answered(&node(2), Ok(()), at(1_014)), Answer::Gone);
    deletions.resume(at(1_020));
    assert_eq!(deletions.counted(Cap::LAW, at(1_020)), 1, "L2-1012 what is done counts");
}

/// The node is seen to leave, before or after its deletion is given up on, and a backup brings it back.
#[test]
fn a_node_that_a_backup_brings_back_is_another_deletion() {
    let lost = Error::temporary("time-out");
    for seen_first in [true, false] {
        let (mut deletions, mut memory) = (Deletions::default(), NodeHistory::default());
        assert_eq!(deletions.decision(&node(1), &mut memory, Cap::LAW, 9, at(1_000)), delete(1));
        assert!(deletions.send(&node(1), Cap::LAW, at(1_000)));
        if seen_first {
            deletions.gone(&node(1).uid);
        }
        assert!(matches!(deletions.answered(&node(1), Err(&lost), at(1_010)), Answer::Failed(_)));
        if !seen_first {
            let again = deletions.decision(&node(1), &mut memory, Cap::LAW, 9, at(1_011));
            assert_eq!(again, delete(1), "while nobody knows, it is one deletion");
            deletions.gone(&node(1).uid);
        }
        assert_eq!(deletions.counted(Cap::LAW, at(1_012)), 1, "L2-1010 {seen_first}");
        let back = deletions.decision(&node(1), &mut memory, Cap::LAW, 9, at(1_100));
        assert!(until(&back) > Some(at(1_600)), "L2-1010 {seen_first}: {back:?}");
        deletions.gone("another");
        assert_eq!(deletions.counted(Cap::LAW, at(1_100)), 1, "it was not one of ours");
    }
}

#[test]
fn the_answer_to_a_deletion_says_what_comes_next() {
    let failed =
        |category, text: &str| Answer::Failed(deleting_node_failed(&node(1), &Error::new(category, text)));
    let table = [
        ("gone", None, Answer::Gone, 1),
        ("404: somebody was faster", Some(Category::NotFound), Answer::Gone, 0),
        ("L2-115 it is not the node that was read", Some(Category::Conflict), Answer::Changed, 0),
        ("FW-126 refused", Some(Category::Unauthorised), failed(Category::Unauthorised, "no"), 0),
        ("FW-126 it may have worked", Some(Category::Temporary), failed(Category::Temporary, "no"), 1),
        ("we stopped ourselves", Some(Category::Cancelled), Answer::Failed(None), 1),
    ];
    for (case, category, want, counted) in table {
        let mut deletions = Deletions::default();
        let go = deletions.decision(&node(1), &mut NodeHistory::default(), Cap::LAW, 9, at(1_000));
        assert_eq!(go, delete(1));
        let why = category.map(|category| Error::new(category, "no"));
        let answer = why.as_ref().map_or(Ok(()), Err);
        assert!(deletions.send(&node(1), Cap::LAW, at(1_000)));
        assert_eq!(deletions.answered(&node(1), answer, at(1_000)), want, "{case}");
        assert_eq!(deletions.counted(Cap::LAW, at(1_000)), counted, "{case}");
    }
}

#[test]
fn a_deletion_that_is_tried_again_counts_once() {
    let mut deletions = Deletions::default();
    let go = |deletions: &mut Deletions, number, now| {
        deletions.decision(&node(number), &mut NodeHistory::default(), Cap::LAW, 9, at(now))
    };
    assert_eq!(go(&mut deletions, 1, 1_000), delete(1));
    let refused = Error::new(Category::Throttled { retry_after: None }, "429");
    deletions.answered(&node(1), Err(&refused), at(1_000));
    assert_eq!(go(&mut deletions, 2, 1_000), delete(2), "what surely did nothing does not count");
    deletions.called_off(&node(2));
    assert_eq!(go(&mut deletions, 1, 1_000), delete(1), "what was not sent does not count");
    assert!(deletions.send(&node(1), Cap::LAW, at(1_000)));
    deletions.answered(&node(1), Err(&error()), at(1_001));
    assert_eq!(go(&mut deletions, 1, 1_010), delete(1), "FW-126 again, although the cap is reached");
    assert_eq!(until(&go(&mut deletions, 2, 1_010)), Some(at(1_661)), "L2-118 another node waits");
    deletions.called_off(&node(1));
    assert_eq!(
        until(&go(&mut deletions, 2, 1_010)),
        Some(at(1_661)),
        "L2-1000 the first try may have worked"
    );
}

/// The cap holds for the times at which the API server deletes the nodes, not for those at which we decide it.
#[test]
fn a_place_is_kept_until_the_deletion_has_surely_happened() {
    type Deed = fn(&mut Deletions);
    fn lost(deletions: &mut Deletions, now: u64) {
        assert!(deletions.send(&node(1), Cap::LAW, at(now)));
        deletions.answered(&node(1), Err(&error()), at(now + 10));
    }
    fn told(deletions: &mut Deletions, now: u64, why: Category) {
        assert!(deletions.send(&node(1), Cap::LAW, at(now)));
        deletions.answered(&node(1), Err(&Error::new(why, "no")), at(now));
    }
    let table: [(&str, Deed, Option<u64>); 11] = [
        ("decided, and still waiting", |_| (), Some(1_600)),
        ("under way", |all| assert!(all.send(&node(1), Cap::LAW, at(1_100))), Some(1_760)),
        (
            "answered late",
            |all| {
                assert!(all.send(&node(1), Cap::LAW, at(1_100)));
                all.answered(&node(1), Ok(()), at(1_125));
            },
            Some(1_725),
        ),
        ("nobody knows, and it may still happen", |all| lost(all, 1_100), Some(1_770)),
        (
            "lost, and then gone at the second try",
            |all| {
                lost(all, 1_100);
                told(all, 1_115, Category::NotFound);
            },
            Some(1_775),
        ),
        (
            "lost, and then replaced",
            |all| {
                lost(all, 1_100);
                told(all, 1_115, Category::Conflict);
            },
            Some(1_775),
        ),
        (
            "lost, and then refused",
            |all| {
                lost(all, 1_100);
                told(all, 1_115, Category::Unauthorised);
            },
            Some(1_775),
        ),
        (
            "sent by a team that was dropped, and then called off",
            |all| {
                assert!(all.send(&node(1), Cap::LAW, at(1_100)));
                all.resume(at(1_110));
                all.called_off(&node(1));
            },
            Some(1_760),
        ),
        (
            "sent by a team that was dropped, and then replaced",
            |all| {
                assert!(all.send(&node(1), Cap::LAW, at(1_100)));
                all.resume(at(1_110));
                told(all, 1_115, Category::Conflict);
            },
            Some(1_775),
        ),
        (
            "changed in between, and then called off",
            |all| {
                assert!(all.send(&node(1), Cap::LAW, at(1_100)));
                all.again(&node(1));
                all.called_off(&node(1));
            },
            None,
        ),
        ("refused at the first try", |all| told(all, 1_100, Category::Unauthorised), None),
    ];
    for (case, deed, want) in table {
        let mut deletions = Deletions::default();
        let go = |deletions: &mut Deletions, number, now| {
            deletions.decision(&node(number), &mut NodeHistory::default(), Cap::LAW, 9, at(now))
        };
        assert_eq!(go(&mut deletions, 1, 1_000), delete(1));
        deed(&mut deletions);
        let other = go(&mut deletions, 2, 1_130);
        match want {
            Some(want) => assert_eq!(until(&other), Some(at(want)), "L2-1001 {case}"),
            None => assert_eq!(other, delete(2), "L2-1001 {case}"),
        }
    }
}

#[test]
fn a_node_that_a_backup_brought_back_is_another_deletion() {
    let mut deletions = Deletions::default();
    let go = |deletions: &mut Deletions, now| {
        deletions.decision(&node(1), &mut NodeHistory::default(), Cap::LAW, 9, at(now))
    };
    assert_eq!(go(&mut deletions, 1_000), delete(1));
    assert!(deletions.send(&node(1), Cap::LAW, at(1_000)));
    deletions.answered(&node(1), Ok(()), at(1_001));
    assert_eq!(until(&go(&mut deletions, 1_300)), Some(at(1_601)), "L2-1003");
}

#[test]
fn what_waited_longer_than_the_window_has_lost_its_place() {
    let mut deletions = Deletions::default();
    let go = |deletions: &mut Deletions, number, now| {
        deletions.decision(&node(number), &mut NodeHistory::default(), Cap::LAW, 9, at(now))
    };
    assert_eq!(go(&mut deletions, 1, 1_000), delete(1));
    assert_eq!(go(&mut deletions, 2, 1_600), delete(2));
    assert!(!deletions.send(&node(1), Cap::LAW, at(1_600)), "L2-1002 another has its place");
    assert!(deletions.send(&node(2), Cap::LAW, at(1_601)), "L2-1002");
}

#[test]
fn events_are_worded_and_addressed_as_they_are_known() {
    let (name, uid) = ("node1".to_owned(), "u1".to_owned());
    let deleting = NodeEvent {
        node: name.clone(),
        uid: uid.clone(),
        warning: false,
        reason: reason::DELETING_NODE,
        message: "Deleting node node1 because it does not exist in the cloud provider".to_owned(),
    };
    assert_eq!(deleting_node(&node(1)), deleting, "FW-105 FW-127");
    let failed = NodeEvent {
        node: name,
        uid,
        warning: true,
        reason: reason::DELETING_NODE_FAILED,
        message: "Failed deleting node node1: 503".to_owned(),
    };
    assert_eq!(deleting_node_failed(&node(1), &error()), Some(failed), "FW-126 FW-127");
    let long = Error::temporary("x".repeat(5_000));
    assert_eq!(deleting_node_failed(&node(1), &long).unwrap().message.len(), 1_024);
}

#[test]
fn only_the_window_is_remembered() {
    let mut deletions = Deletions::default();
    for second in 0..10_000 {
        deletions.note(at(second), Cap::LAW);
    }
    assert_eq!(deletions.counted(Cap::LAW, at(0)), 600, "L12-105");
}
