//! The story in virtual time on the simulated clouds, and what is said when something goes wrong.

use std::future::{pending, ready};

use cloudberth_core::Random;

use super::*;
use crate::demo::story::{Act, Step};

struct Played {
    ending: Ending,
    out: String,
}

/// Plays `story` after `before`.
async fn played(
    provider: &str,
    story: &[Step],
    patience: Duration,
    before: impl FnOnce(&World, &mut Scene),
    interrupted: impl Future<Output = ()>,
) -> Played {
    let settings = WorldSettings { random: Arc::new(Random::seeded(7)), ..settings(provider) };
    let world = World::start(settings).await.unwrap();
    let mut scene = Scene::new(&world);
    before(&world, &mut scene);
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, world.clock(), Style::Plain);
    let ending = play(&world, scene, story, patience, &mut printer, interrupted).await.unwrap();
    if ending == Ending::Happy {
        summary::print(&world, &mut printer).unwrap();
    }
    world.close().await;
    Played { ending, out: String::from_utf8(out).unwrap() }
}

#[tokio::test(start_paused = true)]
async fn all_of_it_happens_on_every_simulated_cloud() {
    for provider in &PROVIDERS[1..] {
        let Played { ending, out } = played(provider, STORY, PATIENCE, |_, _| {}, pending()).await;
        assert_eq!(ending, Ending::Happy, "{provider}\n{out}");
        let sights = STORY.iter().flat_map(|step| step.sees).filter(|sight| !sight.needs_traffic()).count();
        assert_eq!(out.matches("  saw  ").count(), sights, "each once: {out}");
        assert!(out.is_ascii() && out.lines().all(|line| line == line.trim_end()), "{out}");
        let last = out.lines().find(|line| line.contains("has no holder")).unwrap();
        let seconds: f64 = last.split_whitespace().next().unwrap().parse().unwrap();
        assert!(
            seconds < 45.0,
            "the story is short, although these clouds are slower than Cloudlycke: {out}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_manager_it_says_what_did_not_happen() {
    let Played { ending, out } = played("cloudscale", &STORY[1..], PATIENCE, |_, _| {}, pending()).await;
    assert_eq!(ending, Ending::Missed, "{out}");
    assert!(out.contains("NOT SEEN  node/node-1 initialised"), "{out}");
    assert!(out.contains("did not come to its end in time: Three instances boot."), "{out}");
    assert!(out.contains("  node/node-3: Ready True, no provider id, taint node.cloudprovider"), "{out}");
    assert!(!out.contains("NOT SEEN  node/node-1 with the taint"), "what was seen is not missed: {out}");
}

#[tokio::test(start_paused = true)]
async fn it_can_be_interrupted() {
    let Played { ending, out } = played("cloudscale", STORY, PATIENCE, |_, _| {}, ready(())).await;
    assert_eq!(ending, Ending::Interrupted, "{out}");
    assert!(out.contains("\nInterrupted."), "{out}");
}

/// The story up to the requests, in real time: sockets know no other.
fn with_requests() -> &'static [Step] {
    let requests = STORY.iter().position(|step| step.sees.iter().any(|sight| sight.needs_traffic()));
    &STORY[..=requests.unwrap()]
}

#[tokio::test]
async fn dead_backends_are_told_as_failed_requests() {
    let story = with_requests();
    let patience = Duration::from_secs(20);
    let Played { ending, out } =
        played("cloudlycke", story, patience, |world, _| world.kill_node_ports(), pending()).await;
    assert_eq!(ending, Ending::Missed, "{out}");
    assert!(out.contains("NOT SEEN  24 requests in a row, answered by node-1, node-2, node-3"), "{out}");
    assert!(out.contains("instead   of ") && out.contains("answered: none"), "{out}");
    assert!(out.contains("did not come to its end in time: Requests go through it"), "{out}");
}

#[tokio::test]
async fn a_taken_address_is_told_with_the_event_about_it() {
    let story = with_requests();
    let mut taken = None;
    let take = |_: &World, scene: &mut Scene| {
        // The story has looked for a free port; now somebody else is quicker. A port of its own: another story may be
        // told beside this one.
        let listener = std::net::TcpListener::bind(("0.0.0.0", 0)).unwrap();
        scene.ports[0] = listener.local_addr().unwrap().port();
        taken = Some(listener);
    };
    let Played { ending, out } = played("cloudlycke", story, Duration::from_secs(20), take, pending()).await;
    assert_eq!(ending, Ending::Missed, "{out}");
    let why = out.lines().find(|line| line.contains("  instead   ")).unwrap_or_else(|| panic!("{out}"));
    assert!(why.contains("PortNotServed of service/web") && why.contains("AddressInUse"), "{out}");
    drop(taken);
}

#[test]
fn the_last_step_leaves_nothing_behind() {
    assert!(matches!(STORY.last().unwrap().act, Act::StopManager));
}
