//! Killed at any call and started again: the same end, nothing leaked, nothing doubled, nothing lost (law 6).

use std::time::Duration;

use cloudscale_sim::Target;
use embedded_kube::{Fault as ApiFault, Harm};
use serde_json::json;

use crate::fixture::{FINALIZER, Fixture, INTENT, PREFIX, annotated, merge};

const FLOATING: &str = "192.0.2.7";

/// What becomes of the call at which the program dies.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It was sent and is carried out; nobody hears the answer.
    CarriedOut,
    /// It was not sent any more.
    NeverSent,
}

/// Lets the program die at its call number `boundary`, counted over its whole life.
fn die_at(fixture: &Fixture, boundary: u64, fate: Fate) {
    let killer = fixture.killer();
    fixture.cloud.plan_faults(move |request| {
        if request.number != boundary {
            return None;
        }
        killer.abort();
        matches!(fate, Fate::NeverSent).then_some(Harm::LostCall)
    });
}

/// Lets things happen, and whoever died come back.
async fn go_on(fixture: &mut Fixture) {
    fixture.pass(20).await;
    if fixture.killer().is_finished() {
        fixture.cloud.stop_faults();
        fixture.restart();
    }
    fixture.pass(120).await;
}

async fn assert_served(fixture: &Fixture, case: &str, port: u16, members: usize) -> String {
    let balancer = fixture.balancer("web").await;
    let shape = fixture.shape("web").await;
    let ports: Vec<_> = shape.iter().map(|(port, members)| (*port, members.len())).collect();
    assert_eq!(ports, [(port, members), (9000, members)], "{case}");
    assert_eq!(fixture.cloud.balancers().len(), 1, "CS-155 {case}: nothing doubled, nothing leaked");
    let counts = fixture.parts().map(|kind| kind.len());
    assert_eq!(counts, [2, 2, 2, 2 * members], "CS-155 {case}: no part doubled");
    let to = fixture.cloud.target_of(FLOATING.parse().unwrap());
    assert_eq!(to, Some(Target::Balancer(balancer.uuid.clone())), "CS-155 {case}: the address is not lost");
    let service = fixture.get("web").await;
    assert!(service.finalizers.contains(&FINALIZER.to_owned()), "{case}");
    assert_eq!(service.annotations.get(INTENT), None, "{case}");
    assert_eq!(service.ingress.len(), 2, "{case}");
    assert_eq!(fixture.cloud.emptied_pools(), [], "{case}: a pool with healthy members is never emptied");
    balancer.uuid
}

/// A whole life. Returns how many calls it took.
async fn live(boundary: u64, fate: Fate, kube_latency: u64) -> u64 {
    let case = format!("at call {boundary}, {fate:?}");
    let mut fixture = Fixture::with(|settings| settings.build = Duration::from_millis(300));
    let slow = ApiFault::new(Harm::Latency { millis: kube_latency }).on("patch", "services");
    fixture.cluster.api.add_fault(slow);
    fixture.cloud.add_floating_ip(format!("{FLOATING}/32").parse().unwrap(), Some("rma"));
    fixture.nodes(3).await;
    die_at(&fixture, boundary, fate);
    let port = |number: u16| {
        let web =
            json!({"name": "web", "port": number, "protocol": "TCP", "nodePort": 30000 + number % 1000});
        json!({"spec": {"ports": [web, {"name": "admin", "port": 9000, "protocol": "TCP", "nodePort": 31900}]}})
    };
    let mut body = port(80);
    merge(&mut body, annotated(&[("floating-ips", json!(format!("[\"{FLOATING}/32\"]")))]));
    fixture.create("web", body).await;
    go_on(&mut fixture).await;
    let first = assert_served(&fixture, &case, 80, 3).await;

    fixture.edit("web", port(443)).await;
    fixture.cluster.delete(&fixture.cluster.nodes(), "node-02").await;
    fixture.node("node-09").await;
    fixture.node("node-10").await;
    go_on(&mut fixture).await;
    assert_eq!(assert_served(&fixture, &case, 443, 4).await, first, "{case}: it is still the same");
    let policy = json!({"spec": {"externalTrafficPolicy": "Local"}});
    fixture.edit("web", policy).await;
    fixture.annotate("web", &[("pool-algorithm", json!("least_connections"))]).await;
    go_on(&mut fixture).await;
    assert_served(&fixture, &case, 443, 4).await;

    fixture.delete("web").await;
    go_on(&mut fixture).await;
    assert!(fixture.cluster.service("web").await.is_none(), "{case}");
    assert_eq!(fixture.cloud.balancers().len(), 0, "CS-155 {case}: nothing leaked");
    assert_eq!(fixture.cloud.floating_ips().len(), 1, "{case}");
    let created = |entry: &&cloudscale_sim::Entry| {
        entry.operation == "load-balancers.create" && entry.outcome.succeeded()
    };
    let journal = fixture.cloud.journal();
    assert_eq!(
        journal.iter().filter(created).count(),
        1,
        "CS-155 {case}: a lost answer is found, not repeated"
    );
    u64::try_from(journal.len()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_call_it_reaches_the_same_end() {
    let calls = live(u64::MAX, Fate::CarriedOut, 0).await;
    let mut lives = 0;
    for boundary in 0..calls {
        for fate in [Fate::CarriedOut, Fate::NeverSent] {
            live(boundary, fate, 0).await;
            lives += 1;
        }
    }
    println!("{calls} calls, {lives} programs were killed");
    assert!(calls > 60, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn what_arrives_after_its_sender_died_is_not_left_over() {
    for operation in [
        "load-balancers.create",
        "pools.create",
        "members.create",
        "listeners.create",
        "health-monitors.create",
    ] {
        let mut fixture = Fixture::looking_again(Some(Duration::from_secs(120)), |_| {});
        fixture.nodes(2).await;
        let (killer, mut died) = (fixture.killer(), false);
        fixture.cloud.plan_faults(move |request| {
            let now = !died && request.operation == operation;
            died |= now;
            now.then(|| {
                killer.abort();
                Harm::Latency { millis: 4_000 }
            })
        });
        fixture.create("web", json!({})).await;
        fixture.pass(3).await;
        assert!(fixture.killer().is_finished(), "{operation}");
        fixture.restart();
        fixture.pass(900).await;
        assert_eq!(fixture.cloud.balancers().len(), 1, "L6-810 {operation}");
        assert_eq!(fixture.parts().map(|kind| kind.len()), [1, 1, 1, 2], "L6-811 {operation}");
        assert_eq!(fixture.shape("web").await[0].1.len(), 2, "{operation}");
        fixture.assert_quiet(600, operation).await;
    }
}

#[tokio::test(start_paused = true)]
async fn killed_between_its_writes_to_kubernetes_it_reaches_the_same_end() {
    // Slow writes of Kubernetes let the program die while they are under way.
    let mut lives = 0;
    for life in (0..700).step_by(12) {
        let mut fixture = Fixture::with(|settings| settings.build = Duration::from_millis(100));
        fixture.cluster.api.add_fault(ApiFault::new(Harm::Latency { millis: 40 }).on("patch", "services"));
        fixture.nodes(2).await;
        fixture.pass(1).await;
        fixture.create("web", json!({})).await;
        for step in ["create", "delete"] {
            tokio::time::sleep(Duration::from_millis(life)).await;
            fixture.killer().abort();
            fixture.pass(1).await;
            fixture.restart();
            fixture.pass(120).await;
            lives += 1;
            if step == "create" {
                assert_eq!(fixture.cloud.balancers().len(), 1, "CS-155 after {life} ms");
                assert_eq!(fixture.shape("web").await[0].1.len(), 2, "CS-155 after {life} ms");
                assert!(fixture.get("web").await.annotations.contains_key(&format!("{PREFIX}uuid")));
                fixture.delete("web").await;
            }
        }
        assert_eq!(fixture.cloud.balancers().len(), 0, "CS-155 after {life} ms");
        assert!(fixture.cluster.service("web").await.is_none(), "CS-155 after {life} ms");
    }
    println!("{lives} programs were killed");
}
