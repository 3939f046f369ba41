//! The node controller on the embedded API: what it writes, when it waits, and what it leaves alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{sync::Arc, time::Duration};

use cloudberth_controllers::{
    clouds::Clouds,
    node::{NodeController, NodeSettings},
};
use cloudberth_core::{
    Category, Instances, NodeView, Provider, Result, decide::node::taints::UNINITIALISED,
    provider_id::Reading,
};
use cloudberth_fake::{FakeProvider, Fault};
use embedded_kube::{Fault as ApiFault, Harm};
use serde_json::{Value, json};
use testing_kit::{ClusterFixture, PROGRAM};

const SYNCED: &str = "Normal Synced: Node synced successfully";

fn build(stage: &ClusterFixture) -> Result<Arc<NodeController>> {
    NodeController::new(stage.ctx.clone(), NodeSettings::default())
}

/// A stage with a controller at work.
async fn open(stage: &mut ClusterFixture) -> Arc<NodeController> {
    stage.run_watches();
    let controller = build(stage).unwrap();
    stage.run(Arc::clone(&controller).run());
    stage.pass(1).await;
    controller
}

/// A kubelet registers a node that waits for its cloud; `body` is what else it says.
async fn register(stage: &ClusterFixture, name: &str, mut body: Value) {
    body["spec"]["taints"] = json!([{"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"}]);
    stage.create(&stage.nodes(), "Node", name, body).await;
}

async fn waits(stage: &ClusterFixture, name: &str) -> bool {
    stage.node(name).await.unwrap().has_taint(UNINITIALISED)
}

fn asked(stage: &ClusterFixture, operation: &str) -> usize {
    stage
        .clouds
        .iter()
        .flat_map(cloudberth_fake::Cloud::calls)
        .filter(|call| call.operation == operation)
        .count()
}

fn patches(stage: &ClusterFixture, name: &str) -> usize {
    stage.writes(0).iter().filter(|call| call.verb == "patch" && call.name == name).count()
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_all_it_needs() {
    let mut stage = ClusterFixture::new();
    let metrics = stage.ctx.metrics.node.clone();
    open(&mut stage).await;
    stage.join("web-1").await;
    stage.pass(3).await;
    let node = stage.node("web-1").await.unwrap();
    let taints: Vec<_> = node.taints.iter().map(|taint| taint.key.as_str()).collect();
    assert_eq!(taints, ["node.kubernetes.io/not-ready"], "FW-39");
    assert_eq!(node.addresses.len(), 2, "FW-39");
    assert_eq!(node.provider_id.as_deref(), Some("alpha://m-0001"));
    assert_eq!(&node.labels["topology.kubernetes.io/zone"], "north-1");
    assert_eq!(stage.events("web-1"), [SYNCED]);
    assert_eq!(patches(&stage, "web-1"), 2);
    assert_eq!((metrics.initial_sync_delay.count(), metrics.taint_removal_delay.count()), (1, 1), "FW-37");
    assert!(metrics.taint_removal_delay.sum() <= 3.0, "FW-37");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_instance_says_so_once_and_is_found_later() {
    let mut stage = ClusterFixture::new();
    stage.clouds[0].add_instance("web-01", "north-1");
    open(&mut stage).await;
    register(&stage, "web-1", json!({})).await;
    stage.pass(1_200).await;
    let told = "Warning CloudResourceNotFound: no instance is called \"web-1\" among the 1 of alpha; the nearest \
                names are \"web-01\"; give the instance the node's name, or start the node's kubelet with --provider-id";
    assert_eq!(stage.events("web-1"), [told], "L4-405 once, not at each try");
    assert_eq!(patches(&stage, "web-1"), 0, "L1-401");
    let created = stage.node("web-1").await.unwrap().created.unwrap().as_second();
    let waiting = stage.ctx.metrics.node.waiting.clone();
    assert_eq!((waiting.count.get(), waiting.since.get()), (1, created), "it waits, and since when is known");
    let listings = asked(&stage, "list instances");
    assert!(listings <= 18, "L12-401 {listings} listings in 20 minutes");
    stage.clouds[0].add_instance("web-1", "north-1");
    stage.pass(360).await;
    assert!(!waits(&stage, "web-1").await);
    assert_eq!((waiting.count.get(), waiting.since.get()), (0, 0), "nobody waits any more");
    assert_eq!(stage.events("web-1"), [told, SYNCED]);
}

#[tokio::test(start_paused = true)]
async fn an_absence_is_taken_up_with_the_source_before_anything_is_made_of_it() {
    let mut stage = ClusterFixture::with(&["alpha"], |settings| settings.lag = Duration::from_secs(100));
    open(&mut stage).await;
    let instance = stage.clouds[0].add_instance("web-1", "north-1");
    register(&stage, "web-1", json!({"spec": {"providerID": format!("alpha://{}", instance.id)}})).await;
    register(&stage, "gone", json!({"spec": {"providerID": "alpha://m-9999"}})).await;
    stage.pass(20).await;
    assert!(!waits(&stage, "web-1").await, "L1-402 the listing lags, the source does not");
    assert_eq!(stage.events("web-1"), [SYNCED]);
    assert!(waits(&stage, "gone").await);
    let told = "Warning CloudResourceNotFound: alpha has no instance with the provider id alpha://m-9999 of node \"gone\"";
    assert_eq!(stage.events("gone"), [told]);
    stage.pass(3_600).await;
    assert_eq!(asked(&stage, "get instance"), 2, "L7-405 each is asked about once");
    assert_eq!(stage.events("gone"), [told], "L4-406");
}

#[tokio::test(start_paused = true)]
async fn a_name_in_a_listing_older_than_the_node_proves_nothing() {
    let mut stage = ClusterFixture::new();
    let before = stage.clouds[0].add_instance("web-1", "north-1");
    stage.join("other").await;
    open(&mut stage).await;
    stage.pass(10).await;
    stage.clouds[0].delete_instance(&before.id);
    let after = stage.clouds[0].add_instance("web-1", "north-2");
    register(&stage, "web-1", json!({})).await;
    stage.pass(5).await;
    let node = stage.node("web-1").await.unwrap();
    assert_eq!(node.provider_id, Some(format!("alpha://{}", after.id)), "L1-403 not the instance before it");
}

#[tokio::test(start_paused = true)]
async fn a_node_made_anew_while_a_patch_is_on_its_way_gets_nothing_of_the_old_instance() {
    let ips = |node: &NodeView| node.addresses.iter().map(|a| a.address().to_owned()).collect::<Vec<_>>();
    // Which of the two writes is slow.
    for subresource in ["status", "-"] {
        let mut stage = ClusterFixture::new();
        open(&mut stage).await;
        stage.join("other").await;
        stage.pass(5).await;
        let slow = ApiFault::new(Harm::Latency { millis: 5_000 }).on("patch", "nodes").times(1);
        stage.api.add_fault(ApiFault { subresource: subresource.to_owned(), ..slow });
        let before = stage.clouds[0].add_instance("web-1", "north-1");
        register(&stage, "web-1", json!({})).await;
        stage.pass(3).await;
        stage.clouds[0].delete_instance(&before.id);
        stage.delete(&stage.nodes(), "web-1").await;
        register(&stage, "web-1", json!({})).await;
        stage.pass(4).await;
        let node = stage.node("web-1").await.unwrap();
        assert_eq!(
            (ips(&node), node.provider_id),
            (vec![], None),
            "L2-600 {subresource}: nothing was for this node"
        );
        let after = stage.clouds[0].add_instance("web-1", "north-2");
        stage.pass(60).await;
        let node = stage.node("web-1").await.unwrap();
        assert_eq!(node.provider_id, Some(format!("alpha://{}", after.id)), "L2-600 {subresource}");
        assert!(!node.has_taint(UNINITIALISED), "L2-600 {subresource}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_foreign_is_not_even_looked_at() {
    let mut stage = ClusterFixture::with(&["alpha", "beta"], |_| {});
    open(&mut stage).await;
    stage.pass(10).await;
    let before = stage.api.calls(0).len();
    let listings = asked(&stage, "list instances");
    stage.clouds[0].add_instance("aws", "north-1");
    stage.clouds[0].add_instance("gamma", "north-1");
    let aws = json!({"spec": {"providerID": "aws:///z/i-1"}});
    stage.create(&stage.nodes(), "Node", "aws-in-service", aws.clone()).await;
    register(&stage, "aws", aws).await;
    register(&stage, "gamma", json!({"metadata": {"labels": {"cloudberth.dev/provider": "gamma"}}})).await;
    stage.pass(120).await;
    let ours = |name: &str| stage.writes(0).iter().any(|call| call.verb != "create" && call.name == name);
    for name in ["aws", "aws-in-service", "gamma"] {
        assert!(!ours(name), "L3-401 {name} is written to");
        assert_eq!(stage.events(name), [""; 0], "L3-402 {name}");
    }
    assert_eq!(asked(&stage, "list instances"), listings, "L3-403");
    assert_eq!(stage.writes(before as u64).len(), 3, "the test's own");
}

#[tokio::test(start_paused = true)]
async fn a_name_needs_an_answer_from_every_cloud() {
    let mut stage = ClusterFixture::with(&["alpha", "beta"], |_| {});
    stage.clouds[1].plan_faults(|_| Some(Fault::Refuse(Category::Temporary)));
    open(&mut stage).await;
    stage.join("web-1").await;
    stage.clouds[0].add_instance("labelled", "north-1");
    register(&stage, "labelled", json!({"metadata": {"labels": {"cloudberth.dev/provider": "alpha"}}})).await;
    stage.pass(60).await;
    assert!(waits(&stage, "web-1").await, "L1-404 beta may have one too");
    assert_eq!(stage.events("web-1"), [""; 0], "nobody who looks at this node can help");
    assert!(!waits(&stage, "labelled").await, "its label says it all");
    stage.clouds[1].stop_faults();
    stage.pass(120).await;
    assert_eq!(stage.node("web-1").await.unwrap().provider_id.as_deref(), Some("alpha://m-0001"));
    stage.clouds[0].add_instance("twin", "north-1");
    stage.clouds[1].add_instance("twin", "north-1");
    register(&stage, "twin", json!({})).await;
    stage.pass(60).await;
    let events = stage.events("twin");
    assert_eq!(events.len(), 1);
    assert!(
        events[0].starts_with("Warning CloudConflict: several instances are called \"twin\""),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_does_not_answer_holds_up_only_its_own_nodes() {
    let mut stage = ClusterFixture::with(&["alpha", "beta"], |_| {});
    open(&mut stage).await;
    stage.join("a").await;
    let beta = stage.clouds[1].add_instance("b", "north-1");
    register(&stage, "b", json!({"spec": {"providerID": format!("beta://{}", beta.id)}})).await;
    stage.pass(60).await;
    assert!(!waits(&stage, "a").await && !waits(&stage, "b").await);
    stage.clouds[0].plan_faults(|_| Some(Fault::Refuse(Category::Unauthorised)));
    let alpha = stage.clouds[0].instances()[0].id.clone();
    stage.clouds[0].resize(&alpha, "large");
    stage.clouds[1].resize(&beta.id, "large");
    stage.pass(360).await;
    let size = async |name: &str| {
        stage.node(name).await.unwrap().labels["node.kubernetes.io/instance-type"].to_owned()
    };
    assert_eq!((size("a").await.as_str(), size("b").await.as_str()), ("small", "large"), "FW-68");
    stage.clouds[0].stop_faults();
    stage.pass(360).await;
    assert_eq!(size("a").await, "large", "FW-68");
}

/// Only writes of a node itself go wrong.
fn on_node_patches(harm: Harm, times: u64) -> ApiFault {
    ApiFault { subresource: "-".into(), ..ApiFault::new(harm).on("patch", "nodes").times(times) }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_tried_again_as_its_failure_deserves() {
    let error = |code| Harm::Status { code, retry_after: None };
    let table = [
        ("FW-28 nineteen conflicts", Harm::Conflict, 19, 4, 21),
        ("FW-29 twenty conflicts: later", Harm::Conflict, 20, 8, 22),
        ("FW-30 another failure: later", error(500), 1, 8, 3),
        ("a lost answer: the next write meets a conflict, and a read shows why", Harm::LostAnswer, 1, 8, 3),
        ("a lost call", Harm::LostCall, 1, 8, 3),
    ];
    for (case, harm, times, within, writes) in table {
        let mut stage = ClusterFixture::new();
        open(&mut stage).await;
        stage.api.add_fault(on_node_patches(harm.clone(), times));
        stage.join("web-1").await;
        stage.pass(within).await;
        assert!(!waits(&stage, "web-1").await, "{case}");
        assert_eq!(patches(&stage, "web-1"), writes, "{case}");
        let synced = usize::from(harm != Harm::LostAnswer);
        assert_eq!(stage.events("web-1").len(), synced, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_writes_fail_backs_off() {
    let mut stage = ClusterFixture::new();
    open(&mut stage).await;
    stage.api.add_fault(on_node_patches(Harm::Status { code: 503, retry_after: None }, 4));
    stage.join("web-1").await;
    let mut seen = Vec::new();
    for _ in 0..40 {
        stage.pass(1).await;
        seen.push(patches(&stage, "web-1"));
    }
    // The first write of the node itself is tried again at once because its addresses have just changed.
    let at = |second: usize| seen[second - 1];
    assert_eq!((at(1), at(2), at(6), at(14), at(40)), (3, 4, 5, 6, 6), "L12-402 FW-29 FW-30 {seen:?}");
    assert!(!waits(&stage, "web-1").await);
    assert_eq!(stage.events("web-1"), [SYNCED]);
}

#[tokio::test(start_paused = true)]
async fn who_writes_meanwhile_loses_nothing() {
    let mut stage = ClusterFixture::new();
    open(&mut stage).await;
    stage.api.add_fault(on_node_patches(Harm::Latency { millis: 500 }, 1));
    stage.join("web-1").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let edit = json!({"metadata": {"labels": {"team": "blue"}}, "spec": {"taints": [
        {"key": UNINITIALISED, "effect": "NoSchedule"}, {"key": "mine", "effect": "NoExecute"},
    ]}});
    stage.merge(&stage.nodes(), "web-1", edit).await;
    stage.pass(3).await;
    let node = stage.node("web-1").await.unwrap();
    assert!(!node.has_taint(UNINITIALISED) && node.has_taint("mine"), "{node:?}");
    assert_eq!(&node.labels["team"], "blue");
    let conflicts =
        stage.writes(0).iter().filter(|call| format!("{:?}", call.outcome).contains("409")).count();
    assert_eq!(conflicts, 1, "there was a conflict");
    assert_eq!(stage.events("web-1"), [SYNCED]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_vanishes_is_let_go() {
    let mut stage = ClusterFixture::new();
    open(&mut stage).await;
    stage.api.add_fault(ApiFault::new(Harm::Latency { millis: 500 }).on("patch", "nodes").times(1));
    stage.join("web-1").await;
    register(&stage, "nobody", json!({})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.delete(&stage.nodes(), "web-1").await;
    stage.delete(&stage.nodes(), "nobody").await;
    stage.pass(5).await;
    assert_eq!(patches(&stage, "web-1"), 1, "FW-31 the write met nothing");
    let (calls, listings) = (stage.api.calls(0).len(), asked(&stage, "list instances"));
    stage.pass(200).await;
    assert_eq!(stage.writes(calls as u64), [], "FW-27 FW-56 what is gone is not written to");
    assert_eq!(asked(&stage, "list instances"), listings, "FW-27 nor looked for");
    assert_eq!(stage.events("web-1"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn labels_that_could_not_be_written_are_written_later() {
    let mut stage = ClusterFixture::new();
    open(&mut stage).await;
    stage.join("web-1").await;
    stage.pass(5).await;
    stage.api.add_fault(on_node_patches(Harm::Status { code: 500, retry_after: None }, 1));
    let instance = stage.clouds[0].instances()[0].id.clone();
    stage.clouds[0].resize(&instance, "large");
    stage.pass(340).await;
    assert_eq!(patches(&stage, "web-1"), 4, "FW-57 two at first, one that failed, one that did not");
    assert_eq!(
        &stage.node("web-1").await.unwrap().labels["node.kubernetes.io/instance-type"],
        "large",
        "FW-57"
    );
}

#[tokio::test(start_paused = true)]
async fn what_only_a_person_can_mend_is_told_once_and_waits_for_the_person() {
    let mut stage = ClusterFixture::new();
    open(&mut stage).await;
    stage.clouds[0].add_instance("web-1", "north-1");
    let annotated =
        |ip: &str| json!({"metadata": {"annotations": {"alpha.kubernetes.io/provided-node-ip": ip}}});
    register(&stage, "web-1", annotated("garbage")).await;
    stage.pass(1_000).await;
    let events = stage.events("web-1");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].starts_with("Warning InvalidConfiguration: provided node ip for node \"web-1\""),
        "{events:?}"
    );
    stage.merge(&stage.nodes(), "web-1", annotated("10.0.0.1")).await;
    stage.pass(5).await;
    assert!(!waits(&stage, "web-1").await);

    let past_its_cloud = stage.clouds[0].add_instance("unbound", "north-1").name;
    stage.create(&stage.nodes(), "Node", &past_its_cloud, json!({})).await;
    stage.pass(1_000).await;
    let events = stage.events("unbound");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("Warning NoProviderID: "), "{events:?}");
}

/// A provider with a bug that one id brings to light.
struct Unlucky(FakeProvider);

impl Provider for Unlucky {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn scheme(&self) -> &str {
        self.0.scheme()
    }

    fn read_id(&self, text: &str) -> Reading {
        assert_ne!(text, "alpha://unlucky", "a bug");
        self.0.read_id(text)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.0.instances()
    }
}

/// A provider of nothing.
struct Empty;

impl Provider for Empty {
    fn name(&self) -> &'static str {
        "empty"
    }

    fn scheme(&self) -> &'static str {
        "empty"
    }
}

fn served_by(stage: &mut ClusterFixture, provider: impl Provider + 'static) {
    let provider: Arc<dyn Provider> = Arc::new(provider);
    stage.ctx.clouds = Clouds::new(vec![(provider, [].into())], None, &stage.clock).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_bug_that_one_node_meets_stays_with_it() {
    let mut stage = ClusterFixture::new();
    let fake = FakeProvider::new("alpha", &stage.clouds[0], PROGRAM, Arc::clone(&stage.clock));
    served_by(&mut stage, Unlucky(fake));
    let controller = open(&mut stage).await;
    register(&stage, "a-unlucky", json!({"spec": {"providerID": "alpha://unlucky"}})).await;
    stage.join("b").await;
    stage.join("c").await;
    stage.pass(10).await;
    assert!(!waits(&stage, "b").await && !waits(&stage, "c").await, "L11-401");
    assert!(waits(&stage, "a-unlucky").await);
    assert!((3..=5).contains(&controller.panics()), "L11-402 it backs off: {}", controller.panics());
    let events = stage.events("a-unlucky");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("Warning InternalError: internal error: "), "L11-403 {events:?}");
    let node: NodeView = stage.node("a-unlucky").await.unwrap();
    assert!(node.addresses.is_empty() && node.labels.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_instances_there_is_no_controller() {
    let mut stage = ClusterFixture::new();
    served_by(&mut stage, Empty);
    let why = build(&stage).unwrap_err();
    assert!(why.message().contains("no cloud at work has instances"), "{why}");
}
