//! Killed at any call and started again: the same end, nothing leaked, nothing doubled, nothing lost (law 6).

use std::time::Duration;

use embedded_kube::Fault as KubeFault;
use serde_json::json;
use sim_kit::Harm;

use crate::{
    checks::CloudFixture,
    seeded::{SeededCloud, Wishes},
};

/// What becomes of the call at which the program dies.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It was sent and is carried out; nobody hears the answer.
    CarriedOut,
    /// It was not sent any more.
    NeverSent,
}

/// How much was tried.
#[derive(Clone, Copy, Debug)]
pub struct Killed {
    /// The calls of a life in which nobody dies.
    pub calls: u64,
    /// The programs that were killed.
    pub programs: usize,
}

/// Lets the program die at the cloud's call number `boundary`.
fn die_at<C: SeededCloud>(fixture: &CloudFixture<C>, boundary: u64, fate: Fate) {
    let killer = fixture.killer();
    fixture.cloud.plan_faults(Box::new(move |request| {
        if request.number != boundary {
            return None;
        }
        killer.abort();
        matches!(fate, Fate::NeverSent).then_some(Harm::LostCall)
    }));
}

/// Lets things happen, and whoever died come back.
async fn go_on<C: SeededCloud>(fixture: &mut CloudFixture<C>) {
    fixture.pass(20).await;
    if fixture.killer().is_finished() {
        fixture.cloud.stop_faults();
        fixture.restart();
    }
    fixture.pass(fixture.cloud.patience()).await;
}

/// A whole life of a Service. Returns how many calls it took.
async fn live<C: SeededCloud>(case: &str, boundary: u64, fate: Fate) -> u64 {
    let case = format!("{case} at call {boundary}, {fate:?}");
    let mut fixture: CloudFixture<C> = CloudFixture::looking_again(None);
    fixture.cloud.set_build_time(Duration::from_millis(300));
    fixture.cloud.prepare();
    let mut wishes = Wishes::default();
    for name in ["node-1", "node-2", "node-3"] {
        wishes.join(&fixture, name).await;
    }
    die_at(&fixture, boundary, fate);
    let mut bodies = fixture.cloud.life().into_iter();
    wishes.create(&fixture, "web", bodies.next().unwrap()).await;
    go_on(&mut fixture).await;
    wishes.assert_fulfilled(&fixture, &case).await;
    let first = fixture.recorded("web").await;

    for (number, body) in bodies.enumerate() {
        wishes.edit(&fixture, "web", body).await;
        if number == 0 {
            wishes.drain(&fixture, "node-2").await;
            wishes.join(&fixture, "node-8").await;
            wishes.join(&fixture, "node-9").await;
        }
        go_on(&mut fixture).await;
        wishes.assert_fulfilled(&fixture, &format!("{case}, edit {number}")).await;
        assert_eq!(fixture.recorded("web").await, first, "{case}, edit {number}: it is still the same");
    }

    wishes.delete(&fixture, "web").await;
    go_on(&mut fixture).await;
    assert!(fixture.service("web").await.is_none(), "{case}: the Service is let go");
    wishes.assert_fulfilled(&fixture, &case).await;
    assert_eq!(fixture.created(), 1, "{case}: a lost answer is found, not repeated");
    u64::try_from(fixture.cloud.reached().len()).unwrap()
}

/// Creation, changes and deletion, with a program that is killed at every call to the cloud in turn: once when it was
/// sent, once before.
pub async fn killed_at_every_call<C: SeededCloud>(case: &str) -> Killed {
    let calls = live::<C>(case, u64::MAX, Fate::CarriedOut).await;
    let mut programs = 0;
    for boundary in 0..calls {
        for fate in [Fate::CarriedOut, Fate::NeverSent] {
            live::<C>(case, boundary, fate).await;
            programs += 1;
        }
    }
    Killed { calls, programs }
}

/// A request that makes something arrives only when its sender is dead and the next program has begun: it is found, and
/// nothing is left over.
pub async fn what_arrives_late_is_not_left_over<C: SeededCloud>() {
    let probe: CloudFixture<C> = CloudFixture::new();
    for operation in probe.cloud.creations() {
        let mut fixture: CloudFixture<C> = CloudFixture::new();
        fixture.cloud.prepare();
        let mut wishes = Wishes::default();
        for name in ["node-1", "node-2"] {
            wishes.join(&fixture, name).await;
        }
        let (killer, mut died) = (fixture.killer(), false);
        fixture.cloud.plan_faults(Box::new(move |request| {
            let now = !died && request.operation == *operation;
            died |= now;
            now.then(|| {
                killer.abort();
                Harm::Latency { millis: 4_000 }
            })
        }));
        let body = fixture.cloud.life().swap_remove(0);
        wishes.create(&fixture, "web", body).await;
        for _ in 0..300 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if fixture.killer().is_finished() {
                break;
            }
        }
        assert!(fixture.killer().is_finished(), "{operation}: the program never got there");
        fixture.restart();
        fixture.pass(900).await;
        wishes.assert_fulfilled(&fixture, &format!("L6-810 L6-811 {operation}")).await;
        fixture.assert_rest(600, operation).await;
    }
}

/// Writes to Kubernetes are slow, and the program is killed while they are under way: in creation and in deletion, every
/// few milliseconds in turn. Returns how many programs were killed.
pub async fn killed_between_writes<C: SeededCloud>(case: &str) -> usize {
    let mut programs = 0;
    // What is written before, while and after a load balancer is built is all in here.
    for life in (0..700).step_by(12) {
        let case = format!("{case} after {life} ms");
        let mut fixture: CloudFixture<C> = CloudFixture::looking_again(None);
        fixture.cloud.set_build_time(Duration::from_millis(100));
        let slow = KubeFault::new(Harm::Latency { millis: 40 }).on("patch", "services");
        fixture.cluster.api.add_fault(slow);
        let mut wishes = Wishes::default();
        for name in ["node-1", "node-2"] {
            wishes.join(&fixture, name).await;
        }
        fixture.pass(1).await;
        wishes.create(&fixture, "web", json!({})).await;
        for deleted in [false, true] {
            if deleted {
                wishes.delete(&fixture, "web").await;
            }
            tokio::time::sleep(Duration::from_millis(life)).await;
            fixture.killer().abort();
            fixture.pass(1).await;
            fixture.restart();
            fixture.pass(fixture.cloud.patience()).await;
            programs += 1;
            wishes.assert_fulfilled(&fixture, &case).await;
        }
        assert!(fixture.service("web").await.is_none(), "{case}");
    }
    programs
}
