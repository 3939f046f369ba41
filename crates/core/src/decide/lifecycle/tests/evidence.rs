use super::{
    Evidence::{Missing, Seen, Unclear},
    InstanceState::{Other, Pending, Running, Stopped},
    Verdict::{AddShutdownTaint, AskAgain, Delete, Keep, RemoveShutdownTaint, ReportNotFound},
    *,
};
use crate::{
    provider_id::Reading,
    view::{NodeView, Ready},
};

/// A node that was missed by the round that ended at 1001.
fn missed(facts: &NodeFacts) -> NodeHistory {
    let mut memory = NodeHistory::default();
    assert_eq!(
        judge(facts, &mut memory, &round(Missing, 1_000)),
        AskAgain(at(1_011)),
        "L2-101 not on one round"
    );
    memory
}

#[test]
fn a_demo_may_be_quicker_than_the_law() {
    let quick = Timing { start_up_grace: Duration::from_secs(3), confirm_after: Duration::from_secs(1) };
    let (new, mut memory) = (NodeFacts { first_seen: at(1_000), ..node(1) }, NodeHistory::default());
    let absent = Lookup::Absent;
    assert_eq!(quick.lookup_due(&new, &memory, &absent), Some(at(1_003)));
    assert_eq!(quick.judge(&new, &mut memory, &round(Missing, 1_002)), AskAgain(at(1_003)));
    assert_eq!(quick.judge(&new, &mut memory, &round(Missing, 1_003)), AskAgain(at(1_005)));
    assert_eq!(quick.lookup_due(&new, &memory, &absent), Some(at(1_005)));
    assert_eq!(quick.judge(&new, &mut memory, &round(Missing, 1_005)), Delete);
}

#[test]
fn a_node_goes_only_on_repeated_positive_evidence() {
    let tainted = || NodeFacts { marked_shut_down: true, ..node(1) };
    let table = [
        ("FW-105 missing twice", node(1), Missing, Delete),
        ("FW-106 the cloud does not answer", node(1), Unclear, Verdict::Unclear),
        ("FW-107 the instance runs", node(1), Seen(Running), Keep),
        ("the instance is there after all", node(1), Seen(Pending), Keep),
        ("FW-112 the instance is stopped", node(1), Seen(Stopped), AddShutdownTaint),
        ("stopped, and marked already", tainted(), Seen(Stopped), Keep),
        ("FW-117 FW-118 FW-120 missing, whatever its state was", tainted(), Missing, Delete),
        ("FW-121 FW-122 it is there, in a state that we cannot read", node(1), Seen(Other), Keep),
        ("FW-125 runs again, not Ready yet: the mark stays", tainted(), Seen(Running), Keep),
    ];
    for (case, facts, newest, want) in table {
        let mut memory = missed(&facts);
        assert_eq!(judge(&facts, &mut memory, &round(newest, 1_011)), want, "{case}");
    }
}

#[test]
fn some_nodes_are_judged_without_the_cloud() {
    let shut_down = || NodeFacts { marked_shut_down: true, ..ready(1) };
    let foreign = || NodeFacts { tie: Tie::Foreign, ..node(1) };
    let table = [
        ("FW-110 FW-119 FW-124 Ready, nothing to take off", ready(1), Some(Keep)),
        ("FW-123 Ready again", shut_down(), Some(RemoveShutdownTaint)),
        ("L3-103 another cloud's node", foreign(), Some(Keep)),
        (
            "L3-104 another cloud's node, Ready and marked",
            NodeFacts { tie: Tie::Foreign, ..shut_down() },
            Some(Keep),
        ),
        ("on its way out", NodeFacts { deleting: true, ..node(1) }, Some(Keep)),
        ("on its way out, Ready and marked", NodeFacts { deleting: true, ..shut_down() }, Some(Keep)),
        ("not Ready", node(1), None),
        ("no id", NodeFacts { tie: Tie::NoId, ..node(1) }, None),
        ("uninitialised", NodeFacts { uninitialised: true, ..node(1) }, None),
    ];
    for (case, facts, want) in table {
        assert_eq!(at_once(&facts), want, "{case}");
        let Some(want) = want else { continue };
        for evidence in [Missing, Seen(Stopped), Unclear] {
            let mut memory = missed(&node(1));
            assert_eq!(judge(&facts, &mut memory, &round(evidence, 1_011)), want, "{case} {evidence:?}");
        }
    }
}

#[test]
fn an_uninitialised_node_is_never_deleted() {
    let facts = NodeFacts { uninitialised: true, ..node(1) };
    let mut memory = missed(&node(1));
    for begun in [1_011, 1_100, 9_000] {
        assert_eq!(judge(&facts, &mut memory, &round(Missing, begun)), Keep, "L2-102");
    }
    assert_eq!(judge(&facts, &mut memory, &round(Seen(Stopped), 9_100)), AddShutdownTaint);
    assert_eq!(
        judge(&node(1), &mut memory, &round(Missing, 9_200)),
        AskAgain(at(9_211)),
        "from the beginning"
    );
}

#[test]
fn the_second_confirmation_is_a_new_one() {
    let table = [
        ("L2-103 the same listing again", 1_000, AskAgain(at(1_011))),
        ("L2-104 begun before the first had ended for ten seconds", 1_010, AskAgain(at(1_011))),
        ("L2-105 begun just then", 1_011, Delete),
        ("long after", 5_000, Delete),
    ];
    for (case, begun, want) in table {
        let mut memory = missed(&node(1));
        assert_eq!(judge(&node(1), &mut memory, &round(Missing, begun)), want, "{case}");
    }
}

#[test]
fn an_outage_neither_deletes_nor_starts_over() {
    let mut memory = missed(&node(1));
    for begun in 1_002..1_200 {
        assert_eq!(judge(&node(1), &mut memory, &round(Unclear, begun)), Verdict::Unclear, "L1-106");
    }
    assert_eq!(judge(&node(1), &mut memory, &round(Missing, 1_200)), Delete);
    assert_eq!(judge(&node(1), &mut memory, &round(Missing, 1_300)), Delete, "until it is carried out");
}

#[test]
fn whoever_was_seen_or_became_ready_starts_over() {
    let all_facts =
        [(node(1), Seen(Running)), (ready(1), Unclear), (NodeFacts { deleting: true, ..node(1) }, Missing)];
    for (facts, evidence) in all_facts {
        let mut memory = missed(&node(1));
        judge(&facts, &mut memory, &round(evidence, 1_011));
        let next = judge(&node(1), &mut memory, &round(Missing, 1_020));
        assert_eq!(next, AskAgain(at(1_031)), "L2-106 {facts:?}");
    }
}

#[test]
fn a_new_node_of_the_same_name_starts_over() {
    let mut memory = missed(&node(1));
    let reborn = NodeFacts { uid: "another".to_owned(), ..node(1) };
    assert_eq!(judge(&reborn, &mut memory, &round(Missing, 1_011)), AskAgain(at(1_022)), "L2-107");
    assert_eq!(judge(&reborn, &mut memory, &round(Missing, 1_022)), Delete);
}

#[test]
fn a_new_node_is_safe_for_a_while() {
    let young = NodeFacts { first_seen: at(950), ..node(1) };
    let mut memory = NodeHistory::default();
    for begun in [960, 1_000, 1_009] {
        assert_eq!(judge(&young, &mut memory, &round(Missing, begun)), AskAgain(at(1_010)), "L2-108 {begun}");
    }
    assert_eq!(judge(&young, &mut memory, &round(Missing, 1_010)), AskAgain(at(1_021)), "only now it counts");
    assert_eq!(judge(&young, &mut memory, &round(Missing, 1_021)), Delete);
    assert_eq!(judge(&young, &mut NodeHistory::default(), &round(Seen(Stopped), 960)), AddShutdownTaint);
}

#[test]
fn a_node_without_an_id_is_reported_once_and_never_deleted() {
    let no_id = NodeFacts { tie: Tie::NoId, ..node(1) };
    let mut memory = missed(&no_id);
    assert_eq!(judge(&no_id, &mut memory, &round(Missing, 1_011)), ReportNotFound, "FW-114 FW-116 law 2");
    for begun in 1_012..1_100 {
        assert_eq!(judge(&no_id, &mut memory, &round(Missing, begun)), Keep, "said once");
    }
    assert_eq!(judge(&no_id, &mut memory, &round(Unclear, 1_100)), Verdict::Unclear, "FW-115");
    assert_eq!(judge(&no_id, &mut memory, &round(Seen(Stopped), 1_101)), AddShutdownTaint, "FW-113");
    judge(&no_id, &mut memory, &round(Missing, 1_200));
    assert_eq!(judge(&no_id, &mut memory, &round(Missing, 1_300)), ReportNotFound, "it came and went");
    let text = instance_not_found(&no_id);
    assert_eq!((text.warning, text.reason.name()), (true, "MachineNotFound"));
    assert_eq!(
        text.message,
        "Node node1 has no provider id, and the cloud lists no instance of that name. Such a node is never deleted \
         automatically: if it is a left-over, delete it"
    );
}

#[test]
fn both_sources_must_deny_and_either_can_show() {
    let present = Lookup::Present;
    let unknown = || Lookup::Unknown(error());
    let unasked =
        || Lookup::Unknown(Error::temporary("a listing lacks the instance; the source was not asked"));
    let no_id = NodeFacts { tie: Tie::NoId, ..node(1) };
    let table = [
        ("both deny", node(1), Lookup::Absent, Some(Lookup::Absent), Lookup::Absent),
        ("L2-109 only the listing was asked", node(1), Lookup::Absent, None, unasked()),
        ("L2-110 the source does not answer", node(1), Lookup::Absent, Some(unknown()), unknown()),
        ("L1-107 the listing is unclear", node(1), unknown(), Some(Lookup::Absent), unknown()),
        ("the listing is unclear, nobody else asked", node(1), unknown(), None, unknown()),
        ("the listing lags behind", node(1), Lookup::Absent, Some(present(Stopped)), present(Stopped)),
        ("the listing shows it", node(1), present(Running), None, present(Running)),
        (
            "the listing shows what the source denies",
            node(1),
            present(Running),
            Some(Lookup::Absent),
            present(Running),
        ),
        (
            "the source shows what the listing could not",
            node(1),
            unknown(),
            Some(present(Running)),
            present(Running),
        ),
        ("no id: the listing alone", no_id.clone(), Lookup::Absent, None, Lookup::Absent),
        ("no id, but a search by name failed", no_id, Lookup::Absent, Some(unknown()), unknown()),
    ];
    for (case, facts, listed, by_id, want) in table {
        assert_eq!(gather(&facts, listed, by_id), want, "{case}");
    }
    assert_eq!(Evidence::from(&present(Stopped)), Seen(Stopped));
    assert_eq!(Evidence::from(&Lookup::Absent), Missing);
    assert_eq!(Evidence::from(&unknown()), Unclear);
}

#[test]
fn the_source_is_asked_only_where_a_deletion_could_follow() {
    let young = NodeFacts { first_seen: at(950), ..node(1) };
    let (fresh, missed) = (NodeHistory::default(), missed(&node(1)));
    let reborn = NodeFacts { uid: "another".to_owned(), ..node(1) };
    let table = [
        ("not listed", node(1), &fresh, Lookup::Absent, Some(60)),
        ("L7-103 listed", node(1), &fresh, Lookup::Present(Running), None),
        ("the listing is no good", node(1), &fresh, Lookup::Unknown(error()), None),
        ("Ready", ready(1), &fresh, Lookup::Absent, None),
        ("another cloud's", NodeFacts { tie: Tie::Foreign, ..node(1) }, &fresh, Lookup::Absent, None),
        ("no id to ask by", NodeFacts { tie: Tie::NoId, ..node(1) }, &fresh, Lookup::Absent, None),
        ("uninitialised", NodeFacts { uninitialised: true, ..node(1) }, &fresh, Lookup::Absent, None),
        ("on its way out", NodeFacts { deleting: true, ..node(1) }, &fresh, Lookup::Absent, None),
        ("L7-104 new: not yet", young, &fresh, Lookup::Absent, Some(1_010)),
        ("L7-105 missed: not before it confirms", node(1), &missed, Lookup::Absent, Some(1_011)),
        ("missed, and seen again", node(1), &missed, Lookup::Present(Running), None),
        ("another node of that name was missed", reborn, &missed, Lookup::Absent, Some(60)),
    ];
    for (case, facts, memory, listed, want) in table {
        assert_eq!(lookup_due(&facts, memory, &listed), want.map(at), "{case}");
    }
}

#[test]
fn the_source_is_not_asked_about_a_node_that_the_cap_holds() {
    let (mut deletions, mut memory) = (Deletions::default(), missed(&node(1)));
    deletions.note(at(1_005), Cap::LAW);
    deletions.decision(&node(1), &mut memory, Cap::LAW, 9, at(1_020));
    let due = |facts: &NodeFacts, memory: &NodeHistory| lookup_due(facts, memory, &Lookup::Absent);
    assert_eq!(due(&node(1), &memory), Some(at(1_605)), "L7-106");
    let removed = NodeFacts { autoscaler_removes: true, ..node(1) };
    assert_eq!(due(&removed, &memory), Some(at(1_011)), "the cap is not for what the autoscaler removes");
    let never = Cap { share: Share::Count(0), ..Cap::LAW };
    Deletions::default().decision(&node(1), &mut memory, never, 9, at(1_020));
    assert_eq!(due(&node(1), &memory), Some(Tick(Duration::MAX)), "L7-106 never");
    judge(&node(1), &mut memory, &round(Seen(Running), 1_030));
    assert_eq!(due(&node(1), &memory), Some(at(60)), "seen, and all is forgotten");
}

#[test]
fn questions_are_counted_under_the_labels_that_dashboards_know() {
    let labels = |facts: &NodeFacts, answer: &Lookup<InstanceState>| {
        let asked = questions(facts, answer);
        asked.iter().map(|(what, came)| format!("{what}/{came}")).collect::<Vec<_>>()
    };
    let of = |category| Lookup::Unknown(Error::new(category, "x"));
    let there = Lookup::Present(Running);
    let three: Vec<_> = [ready(1), ready(2), node(3)].iter().flat_map(|node| labels(node, &there)).collect();
    assert_eq!(three, ["instance_exists/success", "instance_shutdown/success"], "FW-136");
    let table = [
        ("FW-137", Lookup::Absent, "instance_exists/instance_not_found"),
        ("an error that says so", of(Category::NotFound), "instance_exists/instance_not_found"),
        ("we stopped", of(Category::Cancelled), "instance_exists/canceled"),
        ("anything else", of(Category::Temporary), "instance_exists/error"),
        ("no right to ask", of(Category::Unauthorised), "instance_exists/error"),
    ];
    for (case, answer, want) in table {
        assert_eq!(labels(&node(1), &answer), [want], "{case}");
    }
}

#[test]
fn only_ready_itself_protects_a_node() {
    let judged = |ready, newest| {
        let provider_id = Some("fake://1".to_owned());
        let view = NodeView { ready, provider_id, uid: "u1".to_owned(), ..NodeView::default() };
        let facts = NodeFacts::of(&view, |text| Reading::plain(text, |_| true), at(0));
        let mut memory = NodeHistory::default();
        judge(&facts, &mut memory, &round(newest, 1_000));
        judge(&facts, &mut memory, &round(newest, 1_011))
    };
    let table = [
        ("FW-105", Ready::False, Missing, Delete),
        ("FW-107", Ready::False, Seen(Running), Keep),
        ("FW-108 FW-111", Ready::Unknown, Missing, Delete),
        ("FW-109", Ready::Unknown, Seen(Running), Keep),
        ("FW-110", Ready::True, Missing, Keep),
        ("FW-119", Ready::True, Seen(Stopped), Keep),
    ];
    for (case, ready, newest, want) in table {
        assert_eq!(judged(ready, newest), want, "{case}");
    }
}

#[test]
fn it_is_asked_whether_an_instance_runs_if_that_could_mark_its_node() {
    let every = Duration::from_secs(300);
    let running = Lookup::Present(Running);
    let due = |facts: &NodeFacts, memory: &NodeHistory, listed: &Lookup<InstanceState>| {
        Timing::LAW.power_check_due(facts, memory, listed, every)
    };
    let mut memory = NodeHistory::default();
    assert_eq!(due(&node(1), &memory, &running), None, "no round yet");
    judge(&node(1), &mut memory, &round(Seen(Running), 1_000));
    judge(&node(1), &mut memory, &round(Seen(Running), 1_030));
    assert_eq!(due(&node(1), &memory, &running), Some(at(1_060)), "BL-49 a minute after it turned NotReady");
    let marked = NodeFacts { marked_shut_down: true, ..node(1) };
    let new = NodeFacts { uninitialised: true, ..node(1) };
    let other = NodeFacts { uid: "another".to_owned(), ..node(1) };
    let table = [
        ("marked already", marked, running.clone()),
        ("Ready", ready(1), running.clone()),
        ("waits for its cloud", new, running.clone()),
        ("another node of that name", other, running.clone()),
        ("listed as stopped", node(1), Lookup::Present(Stopped)),
        ("not listed", node(1), Lookup::Absent),
        ("not known", node(1), Lookup::Unknown(error())),
    ];
    for (case, facts, listed) in table {
        assert_eq!(due(&facts, &memory, &listed), None, "{case}");
    }
    memory.asks_whether_it_runs(&node(1), at(1_060));
    judge(&node(1), &mut memory, &round(Seen(Running), 1_060));
    assert_eq!(due(&node(1), &memory, &running), Some(at(1_360)), "BL-49 once in five minutes");
    judge(&ready(1), &mut memory, &round(Unclear, 1_400));
    assert_eq!(due(&node(1), &memory, &running), None, "Ready again");
    judge(&node(1), &mut memory, &round(Unclear, 1_500));
    assert_eq!(due(&node(1), &memory, &running), Some(at(1_560)), "a new minute");
}
