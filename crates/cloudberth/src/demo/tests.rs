//! The story in virtual time, and what is said when it goes wrong.

use futures_util::future::{join, pending, ready};
use jiff::Timestamp;

use super::story::Step;
use super::*;

/// Plays `story` and returns its ending and what was printed.
async fn played(
    story: &[Step],
    with_manager: bool,
    interrupted: impl Future<Output = ()>,
) -> (Ending, String) {
    let world = World::new(Surroundings::new(7, || Timestamp::UNIX_EPOCH));
    let manager = world.manager().unwrap();
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, world.clock(), false);
    let tale = async {
        let ending = play(&world, story, &mut printer, interrupted).await.unwrap();
        world.stop_manager();
        ending
    };
    let run = async {
        if with_manager {
            manager.run(world.manager_is_stopped()).await;
        } else {
            world.manager_is_stopped().await;
        }
    };
    let (ending, ()) = join(tale, run).await;
    summary::print(&world, &mut printer).unwrap();
    (ending, String::from_utf8(out).unwrap())
}

#[tokio::test(start_paused = true)]
async fn all_of_it_happens() {
    let (ending, out) = played(STORY, true, pending()).await;
    assert_eq!(ending, Ending::Happy, "{out}");
    let sights = STORY.iter().flat_map(|step| step.sees.iter().chain(step.later)).count();
    assert_eq!(out.matches("  saw  ").count(), sights, "each once: {out}");
    assert!(out.contains("  ...  still waiting for event DeletingNode of node/worker-3"), "{out}");
    assert!(out.is_ascii() && out.lines().all(|line| line == line.trim_end()), "{out}");
}

#[tokio::test(start_paused = true)]
async fn without_a_manager_it_says_what_did_not_happen() {
    let (ending, out) = played(&STORY[1..], false, pending()).await;
    assert_eq!(ending, Ending::Missed, "{out}");
    assert!(out.contains("NOT SEEN  node/worker-1 initialised"), "{out}");
    assert!(out.contains("did not come to its end in time: Three instances boot."), "{out}");
    assert!(out.contains("  node/worker-3: Ready True, no provider id, taint node.cloudprovider"), "{out}");
    assert!(!out.contains("NOT SEEN  node/worker-1 with the taint"), "what was seen is not missed: {out}");
}

#[tokio::test(start_paused = true)]
async fn it_can_be_interrupted() {
    let (ending, out) = played(STORY, true, ready(())).await;
    assert_eq!(ending, Ending::Interrupted, "{out}");
    assert!(out.contains("\nInterrupted."), "{out}");
}
