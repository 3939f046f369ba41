//! Routes to the pods of every node.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_controllers::{
    clouds::Clouds,
    routes::{RouteController, RouteSettings},
};
use cloudberth_core::{
    Call, Category, Instances, NodeView, Provider, Result, Routes,
    lb::{Fleet, Notice},
    provider::Boxed,
    reason,
    route::{RouteChange, RouteData, RouteTable},
    view::Condition,
};
use cloudberth_fake::{Cloud, FakeProvider, Fault};
use cloudberth_runtime::metrics::controllers::RouteLabels;
use embedded_kube::{self as kube, Harm};
use serde_json::json;
use testing_kit::{ClusterFixture, PROGRAM};

fn settings() -> RouteSettings {
    RouteSettings {
        configure_cloud_routes: true,
        cluster_cidr: "10.244.0.0/16".into(),
        period: Duration::from_secs(10),
    }
}

fn begin(stage: &mut ClusterFixture) {
    stage.run_watches();
    begin_term(stage);
}

fn begin_term(stage: &mut ClusterFixture) {
    let controller = RouteController::new(stage.ctx.clone(), &settings());
    stage.run(controller.unwrap().unwrap().run());
}

/// A node with a network for its pods.
async fn node(stage: &ClusterFixture, cloud: usize, name: &str, cidr: &str) {
    let id = stage.clouds[cloud].add_instance(name, "north-1").id;
    let provider_id = format!("{}://{id}", ["alpha", "beta"][cloud]);
    let spec = json!({"providerID": provider_id, "podCIDRs": [cidr], "podCIDR": cidr});
    stage.create(&stage.nodes(), "Node", name, json!({"spec": spec})).await;
}

/// The routes of a cloud, as `instance network`.
fn routes(cloud: &Cloud) -> Vec<String> {
    let mut all: Vec<_> =
        cloud.routes().iter().map(|r| format!("{} {}", r.instance, r.destination)).collect();
    all.sort();
    all
}

fn count(cloud: &Cloud, operation: &str) -> usize {
    cloud.calls().iter().filter(|call| call.operation == operation).count()
}

fn passes_of(stage: &ClusterFixture, outcome: &'static str, trigger: &'static str) -> u64 {
    stage.ctx.metrics.route.syncs.with(&RouteLabels { outcome, trigger }).get()
}

async fn condition(stage: &ClusterFixture, name: &str) -> Option<String> {
    let node = stage.node(name).await.unwrap();
    node.network_unavailable.map(|Condition { status, reason }| format!("{status} {reason}"))
}

fn call_count(stage: &ClusterFixture) -> u64 {
    stage.api.calls(0).last().map_or(0, |call| call.number + 1)
}

#[tokio::test(start_paused = true)]
async fn routes_come_and_go_with_the_nodes_and_the_condition_is_written_once() {
    let mut stage = ClusterFixture::new();
    begin(&mut stage);
    stage.pass(20).await;
    node(&stage, 0, "a", "10.244.1.0/24").await;
    stage.pass(1).await;
    assert_eq!(routes(&stage.clouds[0]), ["a 10.244.1.0/24"], "FW-304 the first at once");
    assert_eq!(condition(&stage, "a").await.unwrap(), "False RouteCreated", "FW-294");
    // A node without a network is nobody's business.
    stage.create(&stage.nodes(), "Node", "bare", json!({})).await;
    for number in 2..40 {
        node(&stage, 0, &format!("n{number}"), &format!("10.244.{number}.0/24")).await;
    }
    stage.pass(10).await;
    assert_eq!(routes(&stage.clouds[0]).len(), 39, "FW-304 at most a gap later");
    assert_eq!(count(&stage.clouds[0], "change routes"), 2, "L7-170 in one batch");
    assert_eq!(condition(&stage, "bare").await, None, "FW-282");
    let patches = stage.api.calls(0).into_iter().filter(|call| call.verb == "patch").count();
    assert_eq!(patches, 39, "L4-170 each condition once");

    let (since, passes) = (call_count(&stage), count(&stage.clouds[0], "list routes"));
    stage.pass(3_600).await;
    assert_eq!(stage.writes(since), [], "L4-171");
    assert_eq!(count(&stage.clouds[0], "change routes"), 2, "L4-171");
    let rare = count(&stage.clouds[0], "list routes") - passes;
    println!("a quiet hour of 39 routes: {rare} listings");
    assert!((8..=12).contains(&rare), "L7-171 {rare}");

    stage.delete(&stage.nodes(), "a").await;
    stage.pass(1).await;
    assert_eq!(routes(&stage.clouds[0]).len(), 38, "FW-280 gone with its node");
    assert_eq!(passes_of(&stage, "changed", "node_change"), 3);
    assert_eq!(passes_of(&stage, "noop", "periodic"), u64::try_from(rare).unwrap() + 1, "FW-292");
}

#[tokio::test(start_paused = true)]
async fn what_routes_do_not_depend_on_begins_no_pass() {
    let mut stage = ClusterFixture::new();
    begin(&mut stage);
    node(&stage, 0, "a", "10.244.1.0/24").await;
    stage.pass(30).await;
    let passes = count(&stage.clouds[0], "list routes");
    stage.merge(&stage.nodes(), "a", json!({"metadata": {"labels": {"x": "y"}}})).await;
    stage.set_ready("a", true).await;
    stage.pass(30).await;
    assert_eq!(count(&stage.clouds[0], "list routes"), passes, "FW-303");
    let address = json!([{"type": "InternalIP", "address": "10.0.0.9"}]);
    stage.merge_status(&stage.nodes(), "a", json!({"status": {"addresses": address}})).await;
    stage.pass(1).await;
    assert_eq!(count(&stage.clouds[0], "list routes"), passes + 1, "FW-301");
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_failed_or_is_short_changes_nothing_and_is_tried_again() {
    let table = [
        ("L5-170 short", Fault::ShortPage),
        ("FW-290 503", Fault::Refuse(Category::Temporary)),
        ("FW-290 401", Fault::Refuse(Category::Unauthorised)),
        ("FW-290 lost", Fault::AnswerLost),
    ];
    for (case, fault) in table {
        let mut stage = ClusterFixture::new();
        begin(&mut stage);
        for number in 1..5 {
            node(&stage, 0, &format!("n{number}"), &format!("10.244.{number}.0/24")).await;
        }
        stage.pass(30).await;
        let (before, changes) = (routes(&stage.clouds[0]), count(&stage.clouds[0], "change routes"));
        stage.clouds[0].plan_faults(move |r| (r.operation == "list routes").then_some(fault));
        node(&stage, 0, "n5", "10.244.5.0/24").await;
        stage.delete(&stage.nodes(), "n1").await;
        stage.pass(600).await;
        assert_eq!(routes(&stage.clouds[0]), before, "{case}");
        assert_eq!(count(&stage.clouds[0], "change routes"), changes, "{case}");
        assert!(passes_of(&stage, "error", "node_change") > 1, "FW-305 {case}");
        stage.clouds[0].stop_faults();
        stage.pass(450).await;
        let want = ["n2 10.244.2.0/24", "n3 10.244.3.0/24", "n4 10.244.4.0/24", "n5 10.244.5.0/24"];
        assert_eq!(routes(&stage.clouds[0]), want, "FW-305 {case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_that_cannot_be_created_is_told_on_its_node() {
    let mut stage = ClusterFixture::new();
    begin(&mut stage);
    stage.pass(20).await;
    stage.clouds[0]
        .plan_faults(|r| (r.operation == "change routes").then_some(Fault::Refuse(Category::Permanent)));
    node(&stage, 0, "a", "10.244.1.0/24").await;
    stage.pass(5).await;
    let said = stage.events("a");
    assert_eq!(said.len(), 1, "FW-289 {said:?}");
    assert!(said[0].starts_with("Warning FailedToCreateRoute: Could not create route "), "FW-289 {said:?}");
    assert!(said[0].contains(" 10.244.1.0/24 for node a after "), "FW-289 {said:?}");
    assert_eq!(condition(&stage, "a").await.unwrap(), "True NoRouteCreated", "FW-295");
    assert_eq!(passes_of(&stage, "noop", "node_change"), 1, "FW-289 not an error");
    stage.clouds[0].stop_faults();
    stage.pass(120).await;
    assert_eq!(routes(&stage.clouds[0]), ["a 10.244.1.0/24"]);
    assert_eq!(condition(&stage, "a").await.unwrap(), "False RouteCreated", "FW-294");
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_could_not_be_written_is_written_later() {
    let mut stage = ClusterFixture::new();
    begin(&mut stage);
    stage.pass(20).await;
    stage.api.add_fault(
        kube::Fault::new(Harm::Status { code: 503, retry_after: None }).on("patch", "nodes").times(2),
    );
    node(&stage, 0, "a", "10.244.1.0/24").await;
    stage.pass(5).await;
    assert_eq!(condition(&stage, "a").await, None);
    stage.pass(60).await;
    assert_eq!(condition(&stage, "a").await.unwrap(), "False RouteCreated", "FW-294");
}

#[tokio::test(start_paused = true)]
async fn each_cloud_routes_to_its_own_nodes() {
    let mut stage = ClusterFixture::with(&["alpha", "beta"], |_| {});
    begin(&mut stage);
    node(&stage, 0, "a", "10.244.1.0/24").await;
    node(&stage, 1, "b", "10.244.2.0/24").await;
    let metal = json!({"providerID": "metal://1", "podCIDRs": ["10.244.3.0/24"], "podCIDR": "10.244.3.0/24"});
    stage.create(&stage.nodes(), "Node", "metal", json!({"spec": metal})).await;
    let nobody = json!({"podCIDRs": ["10.244.4.0/24"], "podCIDR": "10.244.4.0/24"});
    stage.create(&stage.nodes(), "Node", "nobody", json!({"spec": nobody})).await;
    stage.pass(30).await;
    assert_eq!(routes(&stage.clouds[0]), ["a 10.244.1.0/24"], "L3-170");
    assert_eq!(routes(&stage.clouds[1]), ["b 10.244.2.0/24"], "L3-170");
    assert_eq!(condition(&stage, "metal").await, None, "L3-171");
    assert_eq!(condition(&stage, "nobody").await, None, "L3-171");
    let passes = count(&stage.clouds[0], "list routes");
    stage.delete(&stage.nodes(), "b").await;
    stage.delete(&stage.nodes(), "metal").await;
    stage.pass(30).await;
    assert_eq!(routes(&stage.clouds[1]), [""; 0]);
    assert_eq!(count(&stage.clouds[0], "list routes"), passes, "L3-172 not looked at");
    // The cloud that claims it at last routes to it.
    stage.merge(&stage.nodes(), "nobody", json!({"spec": {"providerID": "alpha://m-77"}})).await;
    stage.pass(11).await;
    assert_eq!(routes(&stage.clouds[0]), ["a 10.244.1.0/24", "nobody 10.244.4.0/24"], "L3-173");
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_call_it_comes_to_the_same_end() {
    for (fault, at) in
        [Fault::AnswerLost, Fault::RequestLost].into_iter().flat_map(|f| (0..6).map(move |k| (f, k)))
    {
        let mut stage = ClusterFixture::new();
        stage.run_watches();
        node(&stage, 0, "a", "10.244.1.0/24").await;
        node(&stage, 0, "b", "10.244.2.0/24").await;
        let controller = RouteController::new(stage.ctx.clone(), &settings());
        stage.clouds[0].plan_faults(move |r| (r.number == at).then_some(fault));
        // It is dropped somewhere in the middle of its first pass: requests take up to 40 ms.
        let term = controller.unwrap().unwrap().run();
        assert!(tokio::time::timeout(Duration::from_millis(15 * (at + 1)), term).await.is_err());
        begin_term(&mut stage);
        stage.pass(400).await;
        assert_eq!(routes(&stage.clouds[0]), ["a 10.244.1.0/24", "b 10.244.2.0/24"], "L6-170 {fault:?} {at}");
        assert_eq!(condition(&stage, "a").await.unwrap(), "False RouteCreated", "L6-171 {fault:?} {at}");
        let since = call_count(&stage);
        stage.pass(900).await;
        assert_eq!(stage.writes(since), [], "L4-172 {fault:?} {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_runs_only_where_routes_are_wanted_and_networks_are_good() {
    let stage = ClusterFixture::new();
    let new = |settings| RouteController::new(stage.ctx.clone(), &settings);
    let off = RouteSettings { configure_cloud_routes: false, cluster_cidr: String::new(), ..settings() };
    assert!(new(off).unwrap().is_none(), "FW-306");
    let bad = RouteSettings { cluster_cidr: "10.244.0.0/16, fd00::/48".into(), ..settings() };
    assert!(new(bad).unwrap_err().message().contains("--cluster-cidr"), "FW-307");
    assert!(new(settings()).unwrap().is_some(), "FW-309");
}

#[tokio::test(start_paused = true)]
async fn two_passes_are_never_close_whoever_asks() {
    let mut stage = ClusterFixture::new();
    begin(&mut stage);
    stage.pass(20).await;
    let throttled = Category::Throttled { retry_after: Some(Duration::from_secs(1)) };
    stage.clouds[0].plan_faults(move |r| {
        (r.operation == "list routes" && r.number < 8).then_some(Fault::Refuse(throttled))
    });
    for number in 1..60 {
        node(&stage, 0, &format!("n{number}"), &format!("10.244.{number}.0/24")).await;
        stage.pass(1).await;
    }
    stage.pass(60).await;
    let listings = stage.clouds[0].calls().into_iter().filter(|call| call.operation == "list routes");
    let at: Vec<_> = listings.skip(1).map(|call| call.at.0.as_secs_f64()).collect();
    assert!(at.len() > 6 && at.windows(2).all(|two| two[1] - two[0] > 9.9), "FW-304 FW-305 {at:?}");
    assert_eq!(routes(&stage.clouds[0]).len(), 59, "FW-305");
}

#[tokio::test(start_paused = true)]
async fn a_network_that_cannot_be_routed_is_told_once_and_the_other_gets_its_route() {
    let mut stage = ClusterFixture::new();
    begin(&mut stage);
    let id = stage.clouds[0].add_instance("a", "north-1").id;
    let cidrs = json!(["10.244.1.0/24", "fd00:1::/64"]);
    let spec = json!({"providerID": format!("alpha://{id}"), "podCIDRs": cidrs, "podCIDR": cidrs[0]});
    stage.create(&stage.nodes(), "Node", "a", json!({"spec": spec})).await;
    stage.pass(60).await;
    node(&stage, 0, "b", "10.244.2.0/24").await;
    stage.pass(3_600).await;
    assert_eq!(routes(&stage.clouds[0]), ["a 10.244.1.0/24", "b 10.244.2.0/24"], "BL-148");
    assert_eq!(condition(&stage, "a").await.unwrap(), "False RouteCreated", "BL-148");
    let told = stage.events("a");
    assert_eq!(told.len(), 1, "BL-148 {told:?}");
    assert!(told[0].contains("UnroutableNetwork") && told[0].contains("fd00:1::/64"), "BL-148 {told:?}");
}

/// Routes that track addresses, with a provider that keeps what it is given.
struct Probe {
    inner: FakeProvider,
    /// The nodes and instances of each listing, and the number that came back with each change.
    listed: Mutex<Vec<(Vec<String>, Vec<String>)>>,
    applied: Mutex<Vec<Option<usize>>>,
}

impl Provider for Probe {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn scheme(&self) -> &str {
        self.inner.scheme()
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.inner.instances()
    }

    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }
}

impl Routes for Probe {
    fn list<'a>(
        &'a self,
        call: &'a Call,
        nodes: &'a [Arc<NodeView>],
        fleet: &'a Arc<dyn Fleet>,
    ) -> Boxed<'a, Result<RouteTable>> {
        Box::pin(async move {
            let mut table = Routes::list(&self.inner, call, nodes, fleet).await?;
            table.routes.items.iter_mut().for_each(|route| route.addresses = Some(Vec::new()));
            let instances = (*fleet.listing().await).as_ref().clone()?;
            let names = nodes.iter().map(|node| node.name.clone()).collect();
            let instances = instances.items.iter().map(|instance| instance.name.clone()).collect();
            let mut listed = self.listed.lock().unwrap();
            listed.push((names, instances));
            Ok(RouteTable { data: Arc::new(listed.len()), ..table })
        })
    }

    fn apply<'a>(
        &'a self,
        call: &'a Call,
        listed: Option<&'a RouteData>,
        changes: &'a [RouteChange],
    ) -> Boxed<'a, Vec<Result<Vec<Notice>>>> {
        Box::pin(async move {
            let number = listed.map(|data| *data.downcast_ref::<usize>().unwrap());
            self.applied.lock().unwrap().push(number);
            let answers = self.inner.apply(call, None, changes).await.into_iter().zip(changes);
            let notice = |change: &RouteChange| match change {
                RouteChange::Create(new) => {
                    let text = format!("{} checks sources", new.provider_id.as_deref().unwrap());
                    vec![Notice::warning(reason::FAILED_TO_CREATE_ROUTE, text)]
                }
                RouteChange::Delete(_) => Vec::new(),
            };
            answers.map(|(answer, change)| answer.map(|_| notice(change))).collect()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_sees_nodes_with_their_instances_and_gets_back_what_it_read() {
    let mut stage = ClusterFixture::new();
    let inner = FakeProvider::new("alpha", &stage.clouds[0], PROGRAM, Arc::clone(&stage.clock));
    let probe = Arc::new(Probe { inner, listed: Mutex::default(), applied: Mutex::default() });
    let members = vec![(Arc::clone(&probe) as Arc<dyn Provider>, BTreeSet::new())];
    stage.ctx.clouds = Clouds::new(members, None, &stage.clock).unwrap();
    begin(&mut stage);
    stage.create(&stage.nodes(), "Node", "s", json!({"spec": {"providerID": "other://1"}})).await;
    node(&stage, 0, "a", "10.244.1.0/24").await;
    stage.pass(30).await;
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(probe.listed.lock().unwrap().last().unwrap(), &(names(&["a"]), names(&["a"])));
    let told = stage.events("a");
    assert!(
        told.len() == 1 && told[0].contains("alpha://") && told[0].contains("checks sources"),
        "{told:?}"
    );

    // Another address: a deletion and a creation, and for the second round what was read before the first is outdated.
    probe.applied.lock().unwrap().clear();
    let address = json!([{"type": "InternalIP", "address": "10.0.0.9"}]);
    stage.merge_status(&stage.nodes(), "a", json!({"status": {"addresses": address}})).await;
    stage.pass(1).await;
    let last = probe.listed.lock().unwrap().len();
    assert_eq!(*probe.applied.lock().unwrap(), [Some(last), None]);
}
