//! A cloud that was away and is back: everything that waited for it is done at once, and while it was away one asked for
//! all.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::time::Duration;

use cloudberth_controllers::{
    controller_set::{ControllerSet, ControllerSettings},
    lifecycle::LifecycleSettings,
    node::NodeSettings,
    routes::RouteSettings,
    service::ServiceSettings,
};
use cloudberth_core::{Category, Tick, decide::node::taints::UNINITIALISED};
use cloudberth_fake::{Fault, Request};
use serde_json::json;
use testing_kit::ClusterFixture;

/// Everything on. Nobody looks for hand edits: what is noticed was waited for.
fn everybody() -> ControllerSettings {
    ControllerSettings {
        node: Some(NodeSettings::default()),
        lifecycle: Some(LifecycleSettings::default()),
        service: Some(ServiceSettings { drift: None, ..ServiceSettings::default() }),
        routes: Some(RouteSettings {
            configure_cloud_routes: true,
            cluster_cidr: "10.244.0.0/16".into(),
            period: Duration::from_secs(10),
        }),
    }
}

fn start(clouds: &[&str]) -> ClusterFixture {
    let mut stage = ClusterFixture::with(clouds, |_| {});
    stage.run_watches();
    let controllers = ControllerSet::new(&stage.ctx, &everybody()).unwrap();
    stage.run(async move { controllers.run().await });
    stage
}

async fn node(stage: &ClusterFixture, name: &str, cidr: &str) {
    let id = stage.clouds[0].add_instance(name, "north-1").id;
    let spec = json!({"providerID": format!("alpha://{id}"), "podCIDRs": [cidr], "podCIDR": cidr});
    stage.create(&stage.nodes(), "Node", name, json!({"spec": spec})).await;
    stage.set_ready(name, true).await;
}

async fn service(stage: &ClusterFixture, name: &str) {
    let body = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}});
    stage.create(&stage.services(), "Service", name, body).await;
}

async fn is_addressed(stage: &ClusterFixture, name: &str) -> bool {
    !stage.service(name).await.unwrap().ingress.is_empty()
}

/// The most calls in any minute since `from`.
fn busiest_minute(stage: &ClusterFixture, from: Tick) -> usize {
    let minute = |sent: Tick| sent.since(from).as_secs() / 60;
    let calls: Vec<_> = stage.clouds[0].calls().into_iter().filter(|call| call.sent >= from).collect();
    let busy = |wanted: u64| calls.iter().filter(|call| minute(call.sent) == wanted).count();
    (0..=minute(stage.clock.now())).map(busy).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn everything_that_waits_for_a_cloud_is_woken_when_it_answers_again() {
    for more in [0, 13, 101, 250] {
        let stage = start(&["alpha"]);
        node(&stage, "n1", "10.244.1.0/24").await;
        service(&stage, "gone").await;
        stage.pass(20).await;
        stage.clouds[0].plan_faults(|_| Some(Fault::Refuse(Category::Temporary)));
        stage.pass(1).await;
        for number in 1..=20 {
            service(&stage, &format!("web-{number}")).await;
        }
        stage.delete(&stage.services(), "gone").await;
        stage.join("fresh").await;
        node(&stage, "n2", "10.244.2.0/24").await;
        stage.pass(300).await;
        let from = stage.clock.now();
        stage.pass(3_300 + more).await;
        let busiest = busiest_minute(&stage, from);
        assert!(busiest <= 8, "L12-844 {more}: one asks for all, {busiest} calls in a minute");
        assert!(!stage.events("web-7").is_empty(), "people are told what is waited for");
        stage.clouds[0].stop_faults();
        stage.pass(30).await;
        assert!(!stage.node("fresh").await.unwrap().has_taint(UNINITIALISED), "L12-845 {more}");
        for number in 1..=20 {
            assert!(is_addressed(&stage, &format!("web-{number}")).await, "L12-846 {more}: {number}");
        }
        assert!(stage.service("gone").await.is_none(), "L12-847 {more}");
        assert_eq!(stage.clouds[0].balancers().len(), 20, "L6-830 {more}");
        assert_eq!(stage.clouds[0].routes().len(), 2, "L12-848 {more}");
    }
}

#[tokio::test(start_paused = true)]
async fn they_are_not_all_woken_in_the_same_moment() {
    let stage = start(&["alpha"]);
    node(&stage, "n1", "10.244.1.0/24").await;
    stage.pass(20).await;
    stage.clouds[0].plan_faults(|_| Some(Fault::Refuse(Category::Temporary)));
    for number in 1..=10 {
        service(&stage, &format!("web-{number}")).await;
    }
    stage.pass(600).await;
    stage.clouds[0].stop_faults();
    let from = stage.clock.now();
    stage.pass(30).await;
    let made = |call: &cloudberth_fake::CallRecord| call.operation == "create balancer" && call.sent >= from;
    let times: Vec<_> = stage.clouds[0].calls().into_iter().filter(made).map(|call| call.sent).collect();
    assert_eq!(times.len(), 10);
    let spread = times[9].since(times[0]);
    assert!(spread >= Duration::from_millis(500), "L12-849 {spread:?}");
    assert!(spread <= Duration::from_secs(3), "L12-850 {spread:?}");
}

#[tokio::test(start_paused = true)]
async fn one_cloud_that_is_away_holds_up_nobody_at_another() {
    let stage = start(&["alpha", "beta"]);
    node(&stage, "n1", "10.244.1.0/24").await;
    stage.member(1, "b1").await;
    stage.pass(20).await;
    stage.clouds[0].plan_faults(|_| Some(Fault::Refuse(Category::Temporary)));
    service(&stage, "here").await;
    stage.pass(600).await;
    let class = json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": "beta.example/lb", "ports": [{"port": 80}]}});
    stage.create(&stage.services(), "Service", "there", class).await;
    stage.pass(3).await;
    assert!(is_addressed(&stage, "there").await, "L11-820");
    assert!(!is_addressed(&stage, "here").await);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_cloud_that_is_away_holds_up_only_what_needs_it() {
    // Instances cannot be listed, load balancers can.
    let instances = |request: &Request| {
        let hit = request.operation.contains("instance");
        hit.then_some(Fault::Refuse(Category::Temporary))
    };
    let stage = start(&["alpha"]);
    node(&stage, "n1", "10.244.1.0/24").await;
    stage.pass(20).await;
    stage.clouds[0].plan_faults(instances);
    stage.join("fresh").await;
    stage.pass(600).await;
    service(&stage, "web").await;
    stage.pass(3).await;
    assert!(is_addressed(&stage, "web").await, "L11-821");
    stage.delete(&stage.services(), "web").await;
    stage.pass(90).await;
    assert_eq!(stage.clouds[0].balancers(), [], "L11-822");

    // Load balancers cannot, instances can: they wait as long as they always did, and nobody else does.
    stage.clouds[0].plan_faults(|request| {
        let hit = request.operation.contains("balancer");
        hit.then_some(Fault::Refuse(Category::Temporary))
    });
    service(&stage, "late").await;
    stage.pass(30).await;
    let from = stage.clock.now();
    stage.join("fresh-2").await;
    stage.pass(5).await;
    assert!(!stage.node("fresh-2").await.unwrap().has_taint(UNINITIALISED), "L11-823");
    stage.pass(600).await;
    let busiest = busiest_minute(&stage, from);
    assert!(busiest <= 12, "L12-851 {busiest} calls in a minute");
}
