//! The harness itself: it repeats, it notices, and it makes small.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use simulation::{Broken, Schedule, run, shrink};

#[test]
fn a_seed_gives_the_same_log_to_the_byte() {
    let (first, again) = (run(&Schedule::draw(17), None), run(&Schedule::draw(17), None));
    assert!(first.log.lines().count() > 50, "something happens: {}", first.log);
    assert_eq!(first.log, again.log);
    assert_ne!(first.log, run(&Schedule::draw(18), None).log);
}

#[test]
fn a_program_that_keeps_the_laws_passes() {
    let mut terms = 0;
    // The suite runs many more, in a program that was built for it.
    for seed in 0..4 {
        let account = run(&Schedule::draw(seed), None);
        assert_eq!(account.wrong, Vec::<String>::new(), "seed {seed}");
        terms += account.terms;
    }
    assert!(terms > 8, "the leader changes: {terms}");
}

#[test]
fn a_program_that_writes_on_after_its_time_is_caught_and_the_schedule_made_small() {
    let broken = Some(Broken::SlowClock);
    let seed =
        (0..200).find(|seed| !run(&Schedule::draw(*seed), broken).wrong.is_empty()).expect("L9-300 caught");
    let small = shrink(&Schedule::draw(seed), broken);
    assert!(small.size() < Schedule::draw(seed).size());
    assert!(run(&small, broken).wrong.join(" ").contains("law 9"), "the small one fails in the same way");
}
