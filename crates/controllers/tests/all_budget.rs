//! What all controllers cost together, in a cluster of a thousand nodes and a hundred Services.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, reason = "what was counted is to be read")]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cloudberth_controllers::{
    controller_set::{ControllerSet, ControllerSettings},
    lifecycle::LifecycleSettings,
    node::NodeSettings,
    routes::RouteSettings,
    service::ServiceSettings,
};
use cloudberth_core::{
    decide::node::taints::{SHUTDOWN, UNINITIALISED},
    lb::Desired,
};
use cloudberth_fake::{CallRecord, PowerState};
use cloudberth_runtime::metrics::queue::PoolLabels;
use embedded_kube::Call;
use serde_json::{Value, json};
use testing_kit::{ClusterFixture, Hooks};
use tokio::task::AbortHandle;

const NODES: usize = 1_000;
const SERVICES: usize = 100;

fn name(number: usize) -> String {
    format!("node-{number:04}")
}

/// Everything on, as the flags' defaults have it.
fn everybody() -> ControllerSettings {
    let period = Duration::from_secs(5);
    ControllerSettings {
        node: Some(NodeSettings::default()),
        lifecycle: Some(LifecycleSettings { period, ..LifecycleSettings::default() }),
        service: Some(ServiceSettings::default()),
        routes: Some(RouteSettings {
            configure_cloud_routes: true,
            cluster_cidr: "10.0.0.0/8".into(),
            period: Duration::from_secs(10),
        }),
    }
}

fn start(stage: &mut ClusterFixture) -> AbortHandle {
    let controllers = ControllerSet::new(&stage.ctx, &everybody()).unwrap();
    assert_eq!(
        controllers.names().collect::<Vec<_>>(),
        ["cloud-node", "cloud-node-lifecycle", "service", "route"]
    );
    stage.run(async move { controllers.run().await })
}

/// What was asked of Kubernetes and of the cloud from some moment on.
struct Bill {
    kube: u64,
    cloud: usize,
}

impl Bill {
    fn open(stage: &ClusterFixture) -> Self {
        let kube = stage.api.calls(0).last().map_or(0, |call| call.number + 1);
        Self { kube, cloud: stage.clouds[0].calls().len() }
    }

    /// The writes of the controllers to Kubernetes, as `patch nodes/status` and so on.
    fn writes(&self, stage: &ClusterFixture) -> BTreeMap<String, usize> {
        let kind = |call: Call| match call.subresource.as_str() {
            "" => format!("{} {}", call.verb, call.resource),
            part => format!("{} {}/{part}", call.verb, call.resource),
        };
        tally(stage.writes(self.kube).into_iter().map(kind))
    }

    fn calls(&self, stage: &ClusterFixture, write: bool) -> Vec<CallRecord> {
        stage.clouds[0].calls().into_iter().skip(self.cloud).filter(|call| call.write == write).collect()
    }

    /// What was read from the cloud, and how often.
    fn reads(&self, stage: &ClusterFixture) -> BTreeMap<&'static str, usize> {
        tally(self.calls(stage, false).into_iter().map(|call| call.operation))
    }

    /// What was changed in the cloud, and how often.
    fn mutations(&self, stage: &ClusterFixture) -> BTreeMap<&'static str, usize> {
        tally(self.calls(stage, true).into_iter().map(|call| call.operation))
    }

    fn listings(&self, stage: &ClusterFixture) -> usize {
        self.reads(stage).get("list instances").copied().unwrap_or(0)
    }

    fn assert_nothing_was_changed(&self, stage: &ClusterFixture, case: &str) {
        assert_eq!(self.writes(stage), BTreeMap::new(), "{case}");
        assert_eq!(self.mutations(stage), BTreeMap::new(), "{case}");
    }
}

fn tally<T: Ord>(items: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    items.for_each(|item| *counts.entry(item).or_default() += 1);
    counts
}

/// The instance of a node.
fn instance(stage: &ClusterFixture, node: &str) -> String {
    stage.clouds[0].instances().into_iter().find(|instance| instance.name == node).unwrap().id
}

/// Nodes that are Ready and wait for their cloud, and Services that wait for their load balancers.
async fn populate(stage: &ClusterFixture, nodes: usize, services: usize) {
    for number in 0..nodes {
        stage.join(&name(number)).await;
        stage.set_ready(&name(number), true).await;
    }
    for number in 0..services {
        serve(stage, &format!("s{number:03}")).await;
    }
}

async fn serve(stage: &ClusterFixture, name: &str) {
    let body = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}});
    stage.create(&stage.services(), "Service", name, body).await;
}

fn assert_members(stage: &ClusterFixture, members: usize) {
    let sizes = stage.clouds[0].balancers().iter().map(|balancer| balancer.members.len()).collect::<Vec<_>>();
    assert_eq!(sizes, vec![members; SERVICES], "the instances behind each load balancer");
}

async fn initialisation(stage: &mut ClusterFixture) -> AbortHandle {
    populate(stage, NODES, SERVICES).await;
    let bill = Bill::open(stage);
    let controllers = start(stage);
    // A hundred thousand members are added one by one.
    stage.pass(180).await;
    let writes = bill.writes(stage);
    println!("initialisation: {writes:?}; cloud: {:?}, {:?}", bill.reads(stage), bill.mutations(stage));
    assert_eq!(writes["patch nodes/status"], NODES, "L4-601 addresses");
    assert_eq!(writes["patch nodes"], NODES, "L4-601 id, labels and the taint");
    let each = tally(stage.writes(bill.kube).into_iter().filter(|c| c.resource == "nodes").map(|c| c.name));
    assert!(each.values().all(|count| *count == 2), "L4-601 two writes for each node");
    let told = stage.api.objects("events");
    let about_nodes: Vec<&Value> =
        told.iter().map(AsRef::as_ref).filter(|event| event["involvedObject"]["kind"] == "Node").collect();
    assert!(about_nodes.iter().all(|event| event["reason"] == "Synced"), "L4-602");
    let names: BTreeSet<_> =
        about_nodes.iter().map(|event| event["involvedObject"]["name"].as_str()).collect();
    assert_eq!((about_nodes.len(), names.len()), (NODES, NODES), "L4-602 one event for each");
    assert_eq!(bill.listings(stage), 1, "L7-601 one listing for all controllers");
    assert_eq!(bill.reads(stage).get("get instance"), None, "L7-601");
    assert_members(stage, NODES);
    for number in 0..NODES {
        assert!(!stage.node(&name(number)).await.unwrap().has_taint(UNINITIALISED));
    }
    controllers
}

async fn quiet_hour(stage: &ClusterFixture) {
    let bill = Bill::open(stage);
    stage.pass(3_600).await;
    let listings = bill.listings(stage);
    println!("a quiet hour: {listings} listings; all reads of the cloud: {:?}", bill.reads(stage));
    bill.assert_nothing_was_changed(stage, "L4-603 a second pass");
    assert!((11..=12).contains(&listings), "L7-602 {listings} listings in an hour");
    assert_eq!(bill.reads(stage).get("get instance"), None, "L7-602 nobody is asked about alone");
}

async fn new_terms(stage: &mut ClusterFixture, controllers: &AbortHandle) {
    controllers.abort();
    stage.pass(5).await;
    let bill = Bill::open(stage);
    let controllers = start(stage);
    stage.pass(60).await;
    println!("a new term: {:?} changed, {:?} read", bill.mutations(stage), bill.reads(stage));
    bill.assert_nothing_was_changed(stage, "L4-604 a new term");
    assert_eq!(bill.listings(stage), 1, "L7-603 L4-612 what the term before had listed does not count");
    controllers.abort();

    stage.reboot();
    stage.run_watches();
    let bill = Bill::open(stage);
    start(stage);
    stage.pass(60).await;
    println!("a new process: {:?} changed, {:?} read", bill.mutations(stage), bill.reads(stage));
    bill.assert_nothing_was_changed(stage, "L4-605 a new process");
    assert!(bill.listings(stage) <= 1, "L7-603");
}

async fn an_hour_with_200_that_are_not_ready(stage: &ClusterFixture) {
    let quiet = 12;
    for number in 0..200 {
        stage.set_ready(&name(number), false).await;
    }
    let bill = Bill::open(stage);
    stage.pass(3_600).await;
    let listings = bill.listings(stage);
    println!("an hour with 200 nodes that are not Ready: {listings} listings; all: {:?}", bill.reads(stage));
    assert!(listings <= quiet + 10, "L7-604 {listings} listings");
    assert_eq!(bill.reads(stage).get("get instance"), None, "L7-604");
    bill.assert_nothing_was_changed(stage, "L4-606 their instances run");
    for number in 0..200 {
        stage.set_ready(&name(number), true).await;
    }
    stage.pass(400).await;
}

/// Passes time until something holds; how long that took. Within `most` seconds, or never.
async fn seconds_until(
    stage: &ClusterFixture,
    most: u64,
    mut holds: impl AsyncFnMut() -> bool,
) -> Option<u64> {
    for second in 0..=most {
        if holds().await {
            return Some(second);
        }
        stage.pass(1).await;
    }
    None
}

async fn trouble_with_instances(stage: &ClusterFixture) {
    let (stopped, dead) = (name(300), name(301));
    stage.clouds[0].set_state(&instance(stage, &stopped), PowerState::Stopped);
    let bill = Bill::open(stage);
    stage.set_ready(&stopped, false).await;
    let marked = seconds_until(stage, 15, async || stage.node(&stopped).await.unwrap().has_taint(SHUTDOWN));
    println!("the mark of a stopped instance: after {:?} s", marked.await.expect("L7-605 within 15 s"));

    stage.clouds[0].delete_instance(&instance(stage, &dead));
    stage.set_ready(&dead, false).await;
    let gone = seconds_until(stage, 60, async || stage.node(&dead).await.is_none()).await;
    println!("the deletion of a dead node: after {:?} s", gone.expect("L2-601 within 60 s"));
    stage.pass(60).await;
    assert_eq!(bill.reads(stage)["get instance"], 2, "L7-606 asked once for each confirmation");
    let writes = bill.writes(stage);
    println!("writes about both: {writes:?}");
    assert_eq!(writes["delete nodes"], 1, "L2-602");
    assert_members(stage, NODES - 1);
}

async fn one_more_node(stage: &ClusterFixture) {
    let bill = Bill::open(stage);
    stage.clouds[0].add_instance("newcomer", "north-1");
    let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
    let network = "10.200.7.0/24";
    let spec = json!({"taints": [taint], "podCIDR": network, "podCIDRs": [network]});
    stage.create(&stage.nodes(), "Node", "newcomer", json!({"spec": spec})).await;
    stage.set_ready("newcomer", true).await;
    stage.pass(60).await;
    let changed = bill.calls(stage, true);
    println!(
        "one node joining: {:?}, {:?}; {:?}",
        bill.mutations(stage),
        bill.reads(stage),
        bill.writes(stage)
    );
    let members: Vec<_> = changed.iter().filter(|call| call.operation == "add member").collect();
    let subjects: BTreeSet<_> = members.iter().map(|call| &call.subject).collect();
    assert_eq!((members.len(), subjects.len()), (SERVICES, SERVICES), "L7-607 each Service once");
    assert_eq!(
        bill.mutations(stage),
        BTreeMap::from([("add member", SERVICES), ("change routes", 1)]),
        "L7-607"
    );
    assert!(bill.writes(stage).keys().all(|kind| !kind.contains("services")), "L4-607");
    assert!(bill.listings(stage) <= 2, "L7-608");
    assert_eq!(bill.reads(stage).get("get instance"), None, "L7-608");
    assert_members(stage, NODES);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_and_a_hundred_services() {
    let mut stage = ClusterFixture::new();
    stage.run_watches();
    let controllers = initialisation(&mut stage).await;
    quiet_hour(&stage).await;
    new_terms(&mut stage, &controllers).await;
    an_hour_with_200_that_are_not_ready(&stage).await;
    trouble_with_instances(&stage).await;
    one_more_node(&stage).await;
}

/// The Service that meets the bug.
const UNLUCKY: &str = "s042";

/// A bug of the planner that one Service meets.
struct Buggy;

impl Hooks for Buggy {
    fn begins(&self, want: &Desired) {
        assert_ne!(want.service.name, UNLUCKY, "a bug of the planner");
    }
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_panics_for_one_service_serves_the_others() {
    let mut stage = ClusterFixture::new();
    stage.hook(Buggy);
    stage.run_watches();
    let nodes = 10;
    populate(&stage, nodes, SERVICES).await;
    start(&mut stage);
    stage.pass(60).await;
    for number in 0..SERVICES {
        let name = format!("s{number:03}");
        let served = !stage.service(&name).await.unwrap().ingress.is_empty();
        assert_eq!(served, name != UNLUCKY, "L11-601 {name}");
    }
    let members: Vec<_> = stage.clouds[0].balancers().iter().map(|balancer| balancer.members.len()).collect();
    assert_eq!(members, vec![nodes; SERVICES - 1], "L11-601");
    for number in 0..nodes {
        assert!(!stage.node(&name(number)).await.unwrap().has_taint(UNINITIALISED), "L11-602");
    }
    // `cloudberth_worker_panics_total`
    let panics = stage.ctx.metrics.queues.panics.with(&PoolLabels { queue: "service" }).get();
    println!(
        "a bug for one of {SERVICES} Services: met {panics} times in a minute, {} served",
        members.len()
    );
    assert!((1..=6).contains(&panics), "L11-603 counted and backed off: {panics}");
    let told = stage.events(UNLUCKY);
    assert!(told.iter().any(|line| line.contains("internal error")), "L11-604 {told:?}");
    let others = stage.api.objects("events");
    let says = |event: &Value| event["message"].as_str().unwrap_or_default().contains("internal error");
    let victims: BTreeSet<_> = others
        .iter()
        .filter(|event| says(event))
        .map(|event| event["involvedObject"]["name"].as_str())
        .collect();
    assert_eq!(victims, BTreeSet::from([Some(UNLUCKY)]), "L11-604 and nobody else is told so");
}
