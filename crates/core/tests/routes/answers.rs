//! What failed and missing answers mean.

use std::time::Duration;

use cloudberth_core::{
    Category, Error, Result,
    decide::routes::{Network, Outcome, Pass, RouteNotice, conclude, plan},
    error::Retry,
    lb::Notice,
    lookup::Listing,
    net::IpFamily,
    reason,
};

use super::{BOTH, changes, cluster, node, plan_for, route};

const STALE: &str = "10.120.9.0/24";

/// One deletion, then a creation for each of two nodes, in one round.
fn pass(answers: Vec<Result<Vec<Notice>>>) -> Pass {
    let nodes = [node("a", &["10.120.0.0/24"], &[]), node("b", &["10.120.1.0/24"], &[])];
    let plan = plan_for(&[route("x", STALE)], &nodes);
    assert_eq!(plan.rounds.iter().map(Vec::len).collect::<Vec<_>>(), [3]);
    conclude(&plan, &[answers], Duration::from_millis(1_500))
}

fn refused() -> Error {
    Error::permanent("no room")
}

#[test]
fn a_failed_creation_is_told_on_its_node_and_fails_nothing_else() {
    let pass = pass(vec![Ok(Vec::new()), Err(refused()), Ok(Vec::new())]);
    let message = "Could not create route uid-a 10.120.0.0/24 for node a after 1.5s: no room";
    let event = RouteNotice {
        node: "a".into(),
        uid: "uid-a".into(),
        notice: Notice::warning(reason::FAILED_TO_CREATE_ROUTE, message),
    };
    assert_eq!(pass.notices, [event], "FW-289");
    let told: Vec<_> = pass.networks.iter().map(|(n, w)| (n.as_str(), *w)).collect();
    assert_eq!(told, [("a", Network::NotCreated), ("b", Network::Created)], "FW-289");
    assert_eq!((pass.outcome, pass.leftovers.len()), (Outcome::Changed, 0), "FW-289 not an error");
}

#[test]
fn a_network_that_cannot_be_routed_is_told_and_does_not_hold_the_node_back() {
    let dual = node("a", &["10.120.0.0/24", "a00:100::/100"], &[]);
    let six = node("b", &["a00:101::/100"], &[]);
    let listed = || Ok(Listing::complete(vec![route("a", "a00:100::/100")]));
    let nodes = [dual, six];
    let plan_of = |families: &[IpFamily]| plan(listed(), &nodes, |_| false, &cluster(), families).unwrap();
    let plan = plan_of(&[IpFamily::V4]);
    let created = (vec![], vec![("a".to_owned(), "10.120.0.0/24".to_owned())]);
    assert_eq!(changes(&plan), created, "a route that is there all the same does its work");
    let told: Vec<_> = plan.unroutable.iter().map(|one| (&*one.node, &*one.uid, &*one.network)).collect();
    assert_eq!(told, [("b", "uid-b", "a00:101::/100")], "BL-148");
    let notice = plan.unroutable.first().unwrap().notice();
    assert_eq!(notice.reason, reason::UNROUTABLE_NETWORK);
    assert!(notice.message.contains("a00:101::/100"), "BL-148 {}", notice.message);
    let pass = conclude(&plan, &[vec![Ok(Vec::new())]], Duration::ZERO);
    let told: Vec<_> = pass.networks.iter().map(|(n, w)| (n.as_str(), *w)).collect();
    assert_eq!(told, [("a", Network::Created)], "the condition of the other stays as it is");
    assert!(plan_of(&BOTH).unroutable.is_empty());
}

#[test]
fn what_the_cloud_says_about_a_new_route_is_told_on_its_node() {
    let says = |text: &str| vec![Notice::warning(reason::FAILED_TO_CREATE_ROUTE, text)];
    let pass = pass(vec![Ok(says("about a deletion")), Ok(Vec::new()), Ok(says("check is on"))]);
    let notice = Notice::warning(reason::FAILED_TO_CREATE_ROUTE, "check is on");
    let told = RouteNotice { node: "b".into(), uid: "uid-b".into(), notice };
    assert_eq!(pass.notices, [told], "BL-149");
    assert_eq!(pass.networks["b"], Network::Created, "BL-149");
}

#[test]
fn the_same_network_twice_is_refused_once() {
    let plan = plan_for(&[], &[node("a", &["10.120.0.0/24", "10.120.0.0/24"], &[])]);
    let pass = conclude(&plan, &[vec![Err(refused())]], Duration::ZERO);
    assert_eq!((pass.notices.len(), pass.networks["a"]), (1, Network::NotCreated), "FW-285");
    assert_eq!(pass.outcome, Outcome::Noop, "FW-285 the pass completes");
}

#[test]
fn one_missing_route_of_several_makes_the_node_unreachable() {
    let plan = plan_for(&[], &[node("a", &["10.120.0.0/24", "a00:100::/100"], &[])]);
    for answers in [vec![Err(refused()), Ok(Vec::new())], vec![Ok(Vec::new()), Err(refused())]] {
        let pass = conclude(&plan, &[answers], Duration::ZERO);
        assert_eq!((pass.networks["a"], pass.outcome), (Network::NotCreated, Outcome::Changed), "FW-289");
    }
}

#[test]
fn the_outcome_counts_what_succeeded() {
    let table = [
        (
            "FW-291 only a deletion succeeded",
            vec![Ok(Vec::new()), Err(refused()), Err(refused())],
            Outcome::Changed,
        ),
        ("only a creation", vec![Err(refused()), Ok(Vec::new()), Err(refused())], Outcome::Changed),
        ("FW-289 nothing", vec![Err(refused()), Err(refused()), Err(refused())], Outcome::Noop),
    ];
    for (case, answers, want) in table {
        let pass = Ok(pass(answers));
        assert_eq!(Outcome::of(pass.as_ref()), want, "{case}");
    }
    assert_eq!(
        [Outcome::Changed, Outcome::Noop, Outcome::Error].map(Outcome::label),
        ["changed", "noop", "error"],
        "FW-290 FW-291 FW-292"
    );
}

#[test]
fn a_failed_deletion_is_for_the_log() {
    let pass = pass(vec![Err(refused()), Ok(Vec::new()), Ok(Vec::new())]);
    assert_eq!(pass.leftovers, ["could not delete route x-10.120.9.0/24 to 10.120.9.0/24: no room"]);
    assert_eq!((pass.notices.len(), pass.networks.len(), pass.retry), (0, 2, Some(Retry::Slowly)));
}

#[test]
fn what_we_broke_off_says_nothing_about_a_node() {
    let cancelled = || Error::cancelled("the leader's claim is about to end");
    let table = [
        ("L1-21 broken off", vec![Ok(Vec::new()), Err(cancelled()), Ok(Vec::new())]),
        ("L1-22 no answer", vec![Ok(Vec::new())]),
        ("L1-23 no answer at all", vec![]),
    ];
    for (case, answers) in table {
        let pass = pass(answers);
        assert!(!pass.networks.contains_key("a"), "{case}: {pass:?}");
        assert_eq!((pass.notices.len(), pass.retry), (0, Some(Retry::Backoff)), "{case}");
    }
    assert_eq!(pass(vec![Ok(Vec::new()), Err(cancelled()), Ok(Vec::new())]).networks["b"], Network::Created);
    let plan = plan_for(&[], &[node("a", &["10.120.0.0/24", "a00:100::/100"], &[])]);
    let one_of_each = conclude(&plan, &[vec![Err(refused()), Err(cancelled())]], Duration::ZERO);
    assert_eq!(
        one_of_each.networks["a"],
        Network::NotCreated,
        "a refusal is certain whatever else was broken off"
    );
}

#[test]
fn the_pass_comes_back_when_coming_back_can_help() {
    let after = |s| Some(Retry::After(Duration::from_secs(s)));
    let throttled = |s| Error::new(Category::Throttled { retry_after: Some(Duration::from_secs(s)) }, "429");
    let table = [
        ("nothing failed", vec![Ok(Vec::new()), Ok(Vec::new()), Ok(Vec::new())], None),
        (
            "only a person can help",
            vec![Ok(Vec::new()), Err(Error::user_input("IPv6")), Ok(Vec::new())],
            None,
        ),
        (
            "it may work next time",
            vec![Ok(Vec::new()), Err(Error::temporary("503")), Err(refused())],
            Some(Retry::Backoff),
        ),
        (
            "a deletion too",
            vec![Err(Error::temporary("503")), Ok(Vec::new()), Ok(Vec::new())],
            Some(Retry::Backoff),
        ),
        (
            "somebody has to mend something",
            vec![Ok(Vec::new()), Err(refused()), Ok(Vec::new())],
            Some(Retry::Slowly),
        ),
        (
            "L12-21 the longest wait",
            vec![Err(throttled(90)), Err(throttled(300)), Err(throttled(5))],
            after(300),
        ),
        (
            "L12-22 asked to stay away",
            vec![Ok(Vec::new()), Err(Error::temporary("503")), Err(throttled(5))],
            after(5),
        ),
    ];
    for (case, answers, want) in table {
        assert_eq!(pass(answers).retry, want, "{case}");
    }
}
