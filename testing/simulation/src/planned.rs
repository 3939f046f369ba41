//! The plan is what is done next: the steps that a dry run prints for Services are those that the program then takes.
//!
//! It is checked from rest. While no replica runs, people change a few things; a plan is made; then the program is
//! started and comes to rest again. For each Service the steps that it sent to a cloud are those of the plan, no more and
//! no fewer, and it wrote to the Service only if the plan says that it would. One pass may not be enough, because a cloud
//! takes its time to build; the order of steps that do not depend on each other is not compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fastrand::Rng;
use tokio::time;

use crate::{
    draw, laws,
    run::come_to_rest,
    world::{Steps, World},
};

/// After so long everything that a cloud was asked for shows in its listings.
const SETTLED: Duration = Duration::from_secs(120);

/// By then a call that was under way has been answered.
const UNDER_WAY: Duration = Duration::from_secs(60);

/// How the beginnings of steps read that are writes to a Service.
const WRITES: [&str; 6] = [
    "add the finalizer",
    "remove the finalizer",
    "set the annotation",
    "remove the annotation",
    "publish ",
    "withdraw the published",
];

/// What is done otherwise than it was planned.
pub(crate) async fn broken(world: &mut World, seed: u64) -> Vec<String> {
    world.stop_program().await;
    let mut rng = Rng::with_seed(seed);
    for _ in 0..rng.u8(1..=4) {
        world.perform(&draw::change(&mut rng)).await;
    }
    time::sleep(SETTLED).await;
    let plan = match world.dry_run().await {
        Ok(plan) => plan,
        Err(why) => return vec![format!("plan: {why}")],
    };
    let unknown = plan.unknown.iter().filter(|unknown| unknown.what.starts_with("Service "));
    let mut wrong: Vec<_> =
        unknown.map(|unknown| format!("plan: {} is not known: {}", unknown.what, unknown.why)).collect();
    let mut planned = Steps::new();
    let mut writes = BTreeSet::new();
    for entry in plan.services {
        for step in entry.steps {
            if WRITES.iter().any(|start| step.label.starts_with(start)) {
                writes.insert(entry.name.clone());
            } else {
                planned.entry(entry.name.clone()).or_default().push(step.label);
            }
        }
    }
    let before = laws::service_writes(world).len();
    world.steps().clear();
    world.restart_program().await;
    // Until one of them leads and has had a pass: what is refused looks like rest from the start.
    time::sleep(SETTLED).await;
    wrong.extend(come_to_rest(world).await.0);
    // The last steps show in the cloud before they are answered.
    time::sleep(UNDER_WAY).await;
    let written: BTreeSet<_> = laws::service_writes(world).into_iter().skip(before).collect();
    let done = sorted(std::mem::take(&mut *world.steps()));
    let planned = sorted(planned);
    let names: BTreeSet<_> = planned.keys().chain(done.keys()).chain(&writes).chain(&written).collect();
    for name in names {
        let (planned, done) = (planned.get(name), done.get(name));
        if planned != done {
            wrong.push(format!("plan: for {name} it said {planned:?}, and what was done is {done:?}"));
        }
        let (said, did) = (writes.contains(name), written.contains(name));
        if said != did {
            wrong.push(format!("plan: it said that {name} is written to: {said}, and it was: {did}"));
        }
    }
    wrong
}

fn sorted(mut steps: Steps) -> BTreeMap<String, Vec<String>> {
    for labels in steps.values_mut() {
        labels.sort();
    }
    steps
}
