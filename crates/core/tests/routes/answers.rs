//! What failed and missing answers mean.

use std::time::Duration;

use cloudberth_core::{
    Category, Error, Result,
    decide::routes::{Failure, Network, Outcome, Pass, conclude},
    error::Retry,
    reason,
};

use super::{node, plan_for, route};

const STALE: &str = "10.120.9.0/24";

/// One deletion, then a creation for each of two nodes, in one round.
fn pass(answers: Vec<Result<()>>) -> Pass {
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
    let pass = pass(vec![Ok(()), Err(refused()), Ok(())]);
    let event = Failure {
        node: "a".into(),
        uid: "uid-a".into(),
        reason: reason::FAILED_TO_CREATE_ROUTE,
        message: "Could not create route uid-a 10.120.0.0/24 for node a after 1.5s: no room".into(),
    };
    assert_eq!(pass.failures, [event], "FW-289");
    let told: Vec<_> = pass.networks.iter().map(|(n, w)| (n.as_str(), *w)).collect();
    assert_eq!(told, [("a", Network::NotCreated), ("b", Network::Created)], "FW-289");
    assert_eq!((pass.outcome, pass.leftovers.len()), (Outcome::Changed, 0), "FW-289 not an error");
}

#[test]
fn the_same_network_twice_is_refused_once() {
    let plan = plan_for(&[], &[node("a", &["10.120.0.0/24", "10.120.0.0/24"], &[])]);
    let pass = conclude(&plan, &[vec![Err(refused())]], Duration::ZERO);
    assert_eq!((pass.failures.len(), pass.networks["a"]), (1, Network::NotCreated), "FW-285");
    assert_eq!(pass.outcome, Outcome::Noop, "FW-285 the pass completes");
}

#[test]
fn one_missing_route_of_several_makes_the_node_unreachable() {
    let plan = plan_for(&[], &[node("a", &["10.120.0.0/24", "a00:100::/100"], &[])]);
    for answers in [vec![Err(refused()), Ok(())], vec![Ok(()), Err(refused())]] {
        let pass = conclude(&plan, &[answers], Duration::ZERO);
        assert_eq!((pass.networks["a"], pass.outcome), (Network::NotCreated, Outcome::Changed), "FW-289");
    }
}

#[test]
fn the_outcome_counts_what_succeeded() {
    let table = [
        ("FW-291 only a deletion succeeded", vec![Ok(()), Err(refused()), Err(refused())], Outcome::Changed),
        ("only a creation", vec![Err(refused()), Ok(()), Err(refused())], Outcome::Changed),
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
    let pass = pass(vec![Err(refused()), Ok(()), Ok(())]);
    assert_eq!(pass.leftovers, ["could not delete route x-10.120.9.0/24 to 10.120.9.0/24: no room"]);
    assert_eq!((pass.failures.len(), pass.networks.len(), pass.retry), (0, 2, Some(Retry::Slowly)));
}

#[test]
fn what_we_broke_off_says_nothing_about_a_node() {
    let cancelled = || Error::cancelled("the leader's claim is about to end");
    let table = [
        ("L1-21 broken off", vec![Ok(()), Err(cancelled()), Ok(())]),
        ("L1-22 no answer", vec![Ok(())]),
        ("L1-23 no answer at all", vec![]),
    ];
    for (case, answers) in table {
        let pass = pass(answers);
        assert!(!pass.networks.contains_key("a"), "{case}: {pass:?}");
        assert_eq!((pass.failures.len(), pass.retry), (0, Some(Retry::Backoff)), "{case}");
    }
    assert_eq!(pass(vec![Ok(()), Err(cancelled()), Ok(())]).networks["b"], Network::Created);
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
        ("nothing failed", vec![Ok(()), Ok(()), Ok(())], None),
        ("only a person can help", vec![Ok(()), Err(Error::user_input("IPv6")), Ok(())], None),
        (
            "it may work next time",
            vec![Ok(()), Err(Error::temporary("503")), Err(refused())],
            Some(Retry::Backoff),
        ),
        ("a deletion too", vec![Err(Error::temporary("503")), Ok(()), Ok(())], Some(Retry::Backoff)),
        ("somebody has to mend something", vec![Ok(()), Err(refused()), Ok(())], Some(Retry::Slowly)),
        (
            "L12-21 the longest wait",
            vec![Err(throttled(90)), Err(throttled(300)), Err(throttled(5))],
            after(300),
        ),
        (
            "L12-22 asked to stay away",
            vec![Ok(()), Err(Error::temporary("503")), Err(throttled(5))],
            after(5),
        ),
    ];
    for (case, answers, want) in table {
        assert_eq!(pass(answers).retry, want, "{case}");
    }
}
