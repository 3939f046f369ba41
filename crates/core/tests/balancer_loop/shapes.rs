//! What must hold for every shape of load balancer.

use cloudberth_core::lb::{Desired, Permit, TurnEnd};
use proptest::prelude::*;

use crate::{
    around::Around,
    document::Documents,
    fixture::{Fault, ServiceLog, Toy, annotated, call, converge, dry_run, gone, no_fleet, now, turn, want},
    six::Six,
};

/// A change of mind, twice, and a removal.
fn story() -> Vec<Desired> {
    vec![
        want(&[80], &["a", "b"]),
        want(&[80, 443], &["a", "b", "c"]),
        want(&[443], &["c"]),
        gone(want(&[443], &["c"])),
    ]
}

fn build<T: Toy>(want: &Desired) -> Vec<String> {
    let toy = T::empty();
    assert_eq!(converge(&toy, want, &ServiceLog::default()), TurnEnd::Converged);
    toy.describe()
}

fn mutations<T: Toy>(toy: &T) -> usize {
    toy.wire().lock().unwrap().mutations
}

/// Whatever was there before, the end is the same as if it had been built from nothing; at rest nothing is sent.
fn follows_the_story<T: Toy>() {
    let toy = T::empty();
    let log = ServiceLog::default();
    for want in story() {
        assert_eq!(converge(&toy, &want, &log), TurnEnd::Converged);
        assert_eq!(toy.describe(), build::<T>(&want), "the way to {want:?} does not show");
        let before = mutations(&toy);
        let again = turn(&toy, &want, &log, Permit::NoCreate);
        assert_eq!(
            (again.end, again.done),
            (TurnEnd::Converged, vec![]),
            "L4-1 a second pass decides nothing"
        );
        assert_eq!(mutations(&toy), before, "L4-2 a second pass sends nothing");
    }
    assert_eq!(toy.describe(), Vec::<String>::new(), "nothing is left behind");
}

/// Each mutation in turn meets each fault; the end is the same, nothing is leaked and nothing built twice.
fn survives_each_fault<T: Toy>() {
    let clean = T::empty();
    for want in story() {
        converge(&clean, &want, &ServiceLog::default());
    }
    for number in 0..mutations(&clean) {
        for fault in [Fault::Refused, Fault::AnswerLost, Fault::RequestLost, Fault::Crash] {
            let toy = T::empty();
            let log = ServiceLog::default();
            toy.wire().lock().unwrap().faults.insert(number, fault);
            for want in story() {
                assert_eq!(converge(&toy, &want, &log), TurnEnd::Converged, "L6-9 {fault:?} at {number}");
                assert_eq!(toy.describe(), build::<T>(&want), "L6-10 {fault:?} at {number}");
            }
        }
    }
}

/// A dry run names exactly the steps that a real run then takes, and sends nothing.
fn does_what_its_dry_run_says<T: Toy>() {
    let toy = T::empty();
    let log = ServiceLog::default();
    for want in story() {
        let (call, fleet, survey) = (call(), no_fleet(), T::Survey::default());
        let seen = now(toy.observe(&call, &*fleet, &survey, &want)).known().unwrap();
        let before = mutations(&toy);
        let (plan, _) = dry_run(&toy, &want, seen);
        assert_eq!(mutations(&toy), before, "a dry run sends nothing");
        assert_eq!(plan.end, TurnEnd::Converged);
        log.steps.lock().unwrap().clear();
        converge(&toy, &want, &log);
        let done: Vec<_> = log.steps.lock().unwrap().iter().map(|step| step.label.clone()).collect();
        let sorted = |mut labels: Vec<String>| {
            labels.sort();
            labels
        };
        assert_eq!(sorted(plan.done), sorted(done), "the plan is what is done");
    }
}

/// Any wish after any other, with any two faults on the way, comes to the end that the wish describes.
fn converges_from_anywhere<T: Toy>(wishes: &[(Vec<i64>, Vec<String>, bool)], faults: &[(usize, Fault)]) {
    let toy = T::empty();
    let log = ServiceLog::default();
    toy.wire().lock().unwrap().faults.extend(faults.iter().copied());
    for (ports, nodes, present) in wishes {
        let nodes: Vec<_> = nodes.iter().map(String::as_str).collect();
        let wish = if *present { want(ports, &nodes) } else { gone(want(ports, &nodes)) };
        assert_eq!(converge(&toy, &wish, &log), TurnEnd::Converged);
        assert_eq!(toy.describe(), build::<T>(&wish));
    }
}

macro_rules! for_every_shape {
    ($($name:ident => $check:ident),*) => {$(
        #[test]
        fn $name() {
            $check::<Documents>();
            $check::<Six>();
            $check::<Around>();
        }
    )*};
}

for_every_shape! {
    every_shape_follows_changes_and_rests => follows_the_story,
    every_shape_survives_every_fault_at_every_mutation => survives_each_fault,
    every_shape_does_what_its_dry_run_says => does_what_its_dry_run_says
}

fn wish() -> impl Strategy<Value = (Vec<i64>, Vec<String>, bool)> {
    let ports = proptest::sample::subsequence(vec![53, 80, 443, 8080], 1..=4);
    let nodes = proptest::sample::subsequence(vec!["a", "b", "c", "d"], 0..=4);
    (ports, nodes, proptest::bool::weighted(0.8))
        .prop_map(|(p, n, present)| (p, n.into_iter().map(str::to_owned).collect(), present))
}

fn fault() -> impl Strategy<Value = (usize, Fault)> {
    let kind = prop_oneof![
        Just(Fault::Refused),
        Just(Fault::AnswerLost),
        Just(Fault::RequestLost),
        Just(Fault::Crash)
    ];
    (0_usize..40, kind)
}

proptest! {
    #[test]
    fn any_story_converges(wishes in prop::collection::vec(wish(), 1..5), faults in prop::collection::vec(fault(), 0..3)) {
        converges_from_anywhere::<Documents>(&wishes, &faults);
        converges_from_anywhere::<Six>(&wishes, &faults);
        converges_from_anywhere::<Around>(&wishes, &faults);
    }
}

#[test]
fn a_lookup_beside_the_cloud_belongs_to_the_observation() {
    let toy = Around::default();
    let log = ServiceLog::default();
    let wish = annotated(want(&[443], &["a"]), "toy/domain", "web.example");
    converge(&toy, &wish, &log);
    let account = turn(&toy, &wish, &log, Permit::NoCreate);
    assert_eq!(account.refused[0].to_string(), "toy/domain: web.example does not resolve to 198.51.100.7");
    toy.dns.lock().unwrap().insert("web.example".into(), "198.51.100.7".into());
    let account = turn(&toy, &wish, &log, Permit::NoCreate);
    assert_eq!((account.end, account.refused), (TurnEnd::Converged, vec![]));
}
