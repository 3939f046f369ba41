use super::*;

const LAW: Cap = Cap::LAW;

fn doubtful(doubt: Doubt) -> ListingTrust {
    ListingTrust::Doubtful(doubt)
}

#[test]
fn a_listing_of_the_wrong_project_shows_itself() {
    let all_ready = || (0..20).map(ready).collect::<Vec<_>>();
    let none_ready = || (0..20).map(node).collect::<Vec<_>>();
    let lacks = |lacking, allowed| doubtful(Doubt::LacksReady { lacking, allowed });
    let foreign =
        || vec![NodeFacts { tie: Tie::Foreign, ..node(1) }, NodeFacts { tie: Tie::NoId, ..ready(2) }];
    let deleting = || vec![NodeFacts { deleting: true, ..ready(1) }];
    let wide = Cap { share: Share::Percent(50), ..LAW };
    let none = Cap { share: Share::Count(0), ..LAW };
    let table = [
        ("everything is there", instances(0..20), all_ready(), LAW, ListingTrust::Believed),
        ("L1-108 nothing at all", instances([]), none_ready(), LAW, doubtful(Doubt::ShowsNone { nodes: 20 })),
        (
            "L1-109 nothing, one node",
            instances([]),
            vec![node(1)],
            LAW,
            doubtful(Doubt::ShowsNone { nodes: 1 }),
        ),
        ("nothing, and no node is ours", instances([]), foreign(), LAW, ListingTrust::Believed),
        ("nothing, and our nodes go anyway", instances([]), deleting(), LAW, ListingTrust::Believed),
        ("L1-110 three Ready nodes of twenty lack", instances(3..20), all_ready(), LAW, lacks(3, 2)),
        ("two Ready nodes of twenty lack", instances(2..20), all_ready(), LAW, ListingTrust::Believed),
        ("many lack that are not Ready", instances(19..20), none_ready(), LAW, ListingTrust::Believed),
        (
            "L1-120 another project's instances",
            instances(100..120),
            all_ready(),
            LAW,
            doubtful(Doubt::ShowsNone { nodes: 20 }),
        ),
        ("L1-111 a wider cap believes no more", instances(3..20), all_ready(), wide, lacks(3, 2)),
        ("a narrower cap believes less", instances(1..20), all_ready(), none, lacks(1, 0)),
    ];
    for (case, listing, nodes, cap, want) in table {
        assert_eq!(trust(&listing, &nodes, cap, false), want, "{case}");
        assert_eq!(
            trust(&listing, &nodes, cap, true),
            ListingTrust::Believed,
            "L1-112 {case}, our things are visible"
        );
    }
}

#[test]
fn nodes_that_are_expected_to_be_gone_raise_no_doubt() {
    let scaled_down = |number| NodeFacts { autoscaler_removes: true, ..ready(number) };
    let declared = |number| NodeFacts { declared_gone: true, ..ready(number) };
    assert_eq!(
        trust(&instances([]), &[scaled_down(1), declared(2)], LAW, false),
        ListingTrust::Believed,
        "L1-113"
    );
    let five: Vec<_> = (0..5).map(scaled_down).chain((5..10).map(ready)).collect();
    assert_eq!(trust(&instances(5..10), &five, LAW, false), ListingTrust::Believed, "L1-114");
    let one_more = [scaled_down(1), node(2)];
    assert_eq!(trust(&instances([]), &one_more, LAW, false), doubtful(Doubt::ShowsNone { nodes: 2 }));
}

#[test]
fn a_doubtful_listing_denies_only_what_is_expected() {
    let doubt = doubtful(Doubt::ShowsNone { nodes: 3 });
    let why = "the cloud lists none of the instances whose ids 3 nodes carry";
    let unknown = |text: &str| Lookup::Unknown(Error::temporary(text));
    let listing = || instances([1]);
    let short = || {
        InstanceListing::from(Listing::short(vec![instance(1, InstanceState::Stopped)], "page 2 is missing"))
    };
    let incomplete = || unknown("the listing is incomplete: page 2 is missing");
    let removed = || NodeFacts { autoscaler_removes: true, ..node(2) };
    let declared = || NodeFacts { declared_gone: true, ..node(2) };
    let running = || Lookup::Present(InstanceState::Running);
    let table = [
        ("believed, and there", ListingTrust::Believed, listing(), node(1), running()),
        ("believed, and not there", ListingTrust::Believed, listing(), node(2), Lookup::Absent),
        ("in doubt, and there", doubt, listing(), node(1), running()),
        ("L1-115 in doubt, and not there", doubt, listing(), node(2), unknown(why)),
        ("L1-116 the autoscaler removes it", doubt, listing(), removed(), Lookup::Absent),
        ("L1-117 a person says so", doubt, listing(), declared(), Lookup::Absent),
        ("L1-118 short", ListingTrust::Believed, short(), node(2), incomplete()),
        ("L1-119 short, and a person says so", doubt, short(), declared(), incomplete()),
        ("short, and there", doubt, short(), node(1), Lookup::Present(InstanceState::Stopped)),
        (
            "by name where there is no id",
            ListingTrust::Believed,
            listing(),
            NodeFacts { tie: Tie::NoId, ..node(1) },
            running(),
        ),
        (
            "by a name that two instances have",
            ListingTrust::Believed,
            Listing::complete(vec![instance(1, InstanceState::Running), instance(1, InstanceState::Stopped)])
                .into(),
            NodeFacts { tie: Tie::NoId, ..node(1) },
            Lookup::Unknown(Error::new(Category::Conflict, "2 instances are called \"node1\"")),
        ),
        (
            "by a name that nobody has",
            ListingTrust::Believed,
            listing(),
            NodeFacts { tie: Tie::NoId, ..node(2) },
            Lookup::Absent,
        ),
        (
            "the name does not matter where there is an id",
            ListingTrust::Believed,
            listing(),
            NodeFacts { name: "node1".to_owned(), ..node(2) },
            Lookup::Absent,
        ),
    ];
    for (case, trust, listing, facts, want) in table {
        assert_eq!(trust.ask(&listing, &facts), want, "{case}");
    }
}

#[test]
fn the_doubt_is_told_once_with_the_way_out() {
    let doubt = doubtful(Doubt::LacksReady { lacking: 3, allowed: 2 });
    let listing = instances([1]);
    let mut memory = NodeHistory::default();
    let event = doubt.warn(&listing, &node(2), &mut memory).unwrap();
    assert_eq!((event.warning, event.reason.name()), (true, "MachineListingDoubtful"));
    assert_eq!(
        event.message,
        "Node node2 is kept although its instance is not listed, because the listing is in doubt: the cloud's listing \
         lacks the instances of 3 Ready nodes, and not more than 2 may go at once. Check that the token is of the right \
         project. If the instance is really gone, set the annotation cloudberth.dev/machine-is-gone: \"true\" on the node"
    );
    assert_eq!(doubt.warn(&listing, &node(2), &mut memory), None, "L4-101 once");
    judge(&node(2), &mut memory, &round(Evidence::Unclear, 1_000));
    assert_eq!(doubt.warn(&listing, &node(2), &mut memory), None, "L4-101 once, as long as nothing changes");
    judge(&node(2), &mut memory, &round(Evidence::Seen(InstanceState::Running), 1_100));
    assert!(doubt.warn(&listing, &node(2), &mut memory).is_some(), "again after it was seen");

    let silent = [
        ("a believed listing", ListingTrust::Believed, node(2)),
        ("it is listed", doubt, node(1)),
        ("Ready", doubt, ready(2)),
        ("on its way out", doubt, NodeFacts { deleting: true, ..node(2) }),
        ("expected", doubt, NodeFacts { declared_gone: true, ..node(2) }),
        ("not ours", doubt, NodeFacts { tie: Tie::Foreign, ..node(2) }),
        ("no id", doubt, NodeFacts { tie: Tie::NoId, ..node(2) }),
    ];
    for (case, trust, facts) in silent {
        assert_eq!(trust.warn(&listing, &facts, &mut NodeHistory::default()), None, "{case}");
    }
    let short = InstanceListing::from(Listing::short(vec![], "x"));
    assert_eq!(
        doubt.warn(&short, &node(2), &mut NodeHistory::default()),
        None,
        "a short listing says nothing"
    );
}
