//! One run of a schedule, and what came of it.

use std::{cell::RefCell, sync::Once, time::Duration};

use tokio::{runtime, sync::mpsc, time};

use crate::{
    broken::Broken,
    laws, planned, rest,
    schedule::{Schedule, TURMOIL},
    touchy::ON_PURPOSE,
    world::{Alarm, World},
};

/// How long the world may take to come to rest once everything goes well: a pending intent, a few back-offs, one
/// drift pass.
const PATIENCE: Duration = Duration::from_secs(1_200);
/// How much longer for each node whose instance is gone: the cap lets one go in ten minutes, and the next listing may be
/// five minutes off.
const CAP: Duration = Duration::from_secs(960);
/// How long the world is watched at end: an hour for one seed in four, so that most of the time goes into the turmoil.
fn quiet(seed: u64) -> Duration {
    Duration::from_secs(if seed.is_multiple_of(4) { 3_600 } else { 900 })
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Account {
    /// Broken laws, in words; empty for a good run. Of a program that is broken on purpose, only the law that it breaks.
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
    note_panics();
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
    PANICS.with_borrow_mut(Vec::clear);
    let (alarm, mut alarms) = mpsc::unbounded_channel();
    let mut world = World::new(schedule.seed, broken, alarm);
    world.furnish(schedule.deeds.iter().map(|(_, deed)| deed));
    world.restart_program().await;
    let start = time::Instant::now();
    for (at, deed) in &schedule.deeds {
        pass_time(&mut world, &mut alarms, start + *at).await;
        world.perform(deed).await;
    }
    pass_time(&mut world, &mut alarms, start + TURMOIL).await;
    // Whatever still waits for the world to act is let go.
    drop(alarms);
    world.end_faults().await;
    let (mut wrong, rested_after) = come_to_rest(&world).await;
    if wrong.is_empty() {
        wrong.extend(stay_at_rest(&mut world, quiet(schedule.seed)).await);
    }
    if wrong.is_empty() && broken.is_none_or(|broken| broken == Broken::OtherPlan) {
        wrong.extend(planned::broken(&mut world, schedule.seed).await);
    }
    wrong.extend(laws::broken(&world));
    if !world.program_lives() {
        wrong.push("a replica died".to_owned());
    }
    wrong.extend(PANICS.take().into_iter().map(|what| format!("law 11: {what}")));
    wrong.retain(|what| broken.is_none_or(|broken| broken.explains(what)));
    Account { wrong, terms: world.witness.terms(), rested_after, log: laws::log(&world) }
}

/// Lets time pass. Meanwhile somebody may walk into one of the traps that were set.
async fn pass_time(world: &mut World, alarms: &mut mpsc::UnboundedReceiver<Alarm>, until: time::Instant) {
    loop {
        tokio::select! {
            biased;
            Some(alarm) = alarms.recv() => world.heed(alarm).await,
            () = time::sleep_until(until) => return,
        }
    }
}

/// Waits until everything is as it should be. Each node whose instance is gone may have to wait for the cap.
pub(crate) async fn come_to_rest(world: &World) -> (Vec<String>, Duration) {
    let patience = PATIENCE + CAP * rest::dead(world).await;
    let start = time::Instant::now();
    loop {
        let left = match rest::unfinished(world).await {
            Ok(left) => left,
            Err(error) => vec![error],
        };
        if left.is_empty() || start.elapsed() > patience {
            return (left, start.elapsed());
        }
        time::sleep(Duration::from_secs(5)).await;
    }
}

/// Laws 4 and 7: at rest nothing is written, not even by a program that starts anew and sees everything for the first
/// time, and little is asked.
async fn stay_at_rest(world: &mut World, quiet: Duration) -> Vec<String> {
    // What is under way when the world comes to rest may still be answered.
    time::sleep(Duration::from_secs(60)).await;
    let before = laws::writes(world);
    world.restart_calmly().await;
    // Until one of them leads and has seen everything once.
    time::sleep(Duration::from_secs(60)).await;
    let quiet_since = world.clock.now();
    time::sleep(quiet).await;
    let mut wrong = laws::restless(&before, &laws::writes(world));
    wrong.extend(laws::questions(world, quiet_since, quiet));
    match rest::unfinished(world).await {
        Ok(left) => wrong.extend(left),
        Err(error) => wrong.push(error),
    }
    wrong
}

thread_local! {
    /// What panicked in the run of this thread. Workers catch panics, so that nobody else would know.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |what| {
            if what.to_string().contains(ON_PURPOSE) {
                return;
            }
            // A thread that is ending has nobody left to tell.
            let _ = PANICS.try_with(|all| all.borrow_mut().push(what.to_string()));
            usual(what);
        }));
    });
}
