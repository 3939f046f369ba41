//! One run of a schedule, and what came of it.

use std::time::Duration;

use tokio::{runtime, time};

use crate::{
    laws,
    program::Broken,
    schedule::{Schedule, TURMOIL},
    world::World,
};

/// How long the world may take to come to rest once everything goes well: a pending intent, a few back-offs, one
/// drift pass.
const PATIENCE: Duration = Duration::from_secs(1_200);
/// How long the world is watched at rest: long enough for drift passes.
const REST: Duration = Duration::from_secs(900);

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Account {
    /// Broken laws, in words; empty for a good run.
    pub wrong: Vec<String>,
    /// How often somebody came to lead.
    pub terms: usize,
    /// How long it took to come to rest after the last fault.
    pub rested_after: Duration,
    /// Everything that was asked of the Kubernetes API and of the cloud.
    pub log: String,
}

/// Runs a schedule from beginning to end in virtual time.
pub fn run(schedule: &Schedule, broken: Option<Broken>) -> Account {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    #[cfg(tokio_unstable)]
    builder.rng_seed(runtime::RngSeed::from_bytes(&schedule.seed.to_le_bytes()));
    match builder.build() {
        Ok(runtime) => runtime.block_on(live(schedule, broken)),
        Err(error) => Account {
            wrong: vec![format!("no runtime: {error}")],
            terms: 0,
            rested_after: Duration::ZERO,
            log: String::new(),
        },
    }
}

async fn live(schedule: &Schedule, broken: Option<Broken>) -> Account {
    let mut world = World::new(schedule.seed, broken);
    world.restart_program().await;
    let start = time::Instant::now();
    for (at, deed) in &schedule.deeds {
        time::sleep_until(start + *at).await;
        world.perform(deed).await;
    }
    time::sleep_until(start + TURMOIL).await;
    world.end_faults().await;
    let (mut wrong, rested_after) = come_to_rest(&world).await;
    if wrong.is_empty() {
        wrong.extend(stay_at_rest(&mut world).await);
    }
    wrong.extend(laws::deletions(&world));
    wrong.extend(laws::leadership(&world));
    if !world.program_lives() {
        wrong.push("a replica died".to_owned());
    }
    Account { wrong, terms: world.witness.terms(), rested_after, log: laws::log(&world) }
}

async fn come_to_rest(world: &World) -> (Vec<String>, Duration) {
    let start = time::Instant::now();
    loop {
        let left = match laws::unfinished(world).await {
            Ok(left) => left,
            Err(error) => vec![error],
        };
        if left.is_empty() || start.elapsed() > PATIENCE {
            return (left, start.elapsed());
        }
        time::sleep(Duration::from_secs(5)).await;
    }
}

/// Law 4: at rest nothing is written, not even by a program that starts anew and sees everything for the first time.
async fn stay_at_rest(world: &mut World) -> Vec<String> {
    // What is under way when the world comes to rest may still be answered.
    time::sleep(Duration::from_secs(60)).await;
    let before = laws::writes(world);
    world.restart_program().await;
    time::sleep(REST).await;
    let after = laws::writes(world);
    let (kube, cloud) = (after.0 - before.0, after.1 - before.1);
    let mut wrong = Vec::new();
    if (kube, cloud) != (0, 0) {
        wrong.push(format!("law 4: {kube} writes to Kubernetes and {cloud} to the cloud, at rest"));
    }
    match laws::unfinished(world).await {
        Ok(left) => wrong.extend(left),
        Err(error) => wrong.push(error),
    }
    wrong
}
