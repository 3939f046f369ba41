//! How many API calls a cluster at BinaryLane takes, beside the budgets.
//!
//! Everything runs in this process and in virtual time: the real controllers and the provider, the embedded Kubernetes API
//! and the simulated cloud. An hour takes seconds, and the figures do not depend on the computer.

use std::sync::Arc;
use std::time::Duration;

use binarylane_sim::{Cloud, SimSettings};
use cloudberth_binarylane::{BinaryLaneProvider, FileSettings, Settings, Sources, Surroundings};
use cloudberth_controllers::controller_set::{ControllerSet, ControllerSettings};
use cloudberth_controllers::lifecycle::LifecycleSettings;
use cloudberth_controllers::node::NodeSettings;
use cloudberth_controllers::routes::RouteSettings;
use cloudberth_controllers::service::ServiceSettings;
use cloudberth_core::{Random, Secret};
use cloudberth_http::{Env, GivenFlags, TokenSource, Transport, Unobserved};
use serde_json::{Value, json};
use testing_kit::ClusterFixture;

use crate::programs::{BenchError, UNINITIALISED};
use crate::services::Report;

const CIDR: &str = "10.244.0.0/16";
const FLAGS: [(&str, &str); 2] = [("cluster-cidr", CIDR), ("configure-cloud-routes", "true")];

/// Measures, on a runtime of its own whose time is virtual.
pub(crate) fn run() -> Result<Report, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(measure())
}

fn failed(why: impl std::fmt::Debug) -> BenchError {
    BenchError::Program("the measurement failed".to_owned(), format!("{why:?}"))
}

/// What the program is told, with routes or without.
fn settings(routes: bool) -> Result<Settings, BenchError> {
    let token = TokenSource::fixed(Secret::new("any").map_err(failed)?);
    let given = FLAGS.into_iter().take(1 + usize::from(routes));
    let given: GivenFlags = given.map(|(name, value)| (name, value.to_owned())).collect();
    let (env, file) = (Env::default(), FileSettings::default());
    let sources = Sources { token: Ok(Some(token)), env: &env, file, given: &given, cluster: "test" };
    Settings::read(sources).map_err(failed)
}

/// A cluster at BinaryLane.
struct Site {
    cluster: ClusterFixture,
    cloud: Cloud,
}

impl Site {
    /// Without nodes, and without a program yet.
    fn empty(routes: bool) -> Result<Self, BenchError> {
        let settings = settings(routes)?;
        let mut made = None;
        let cluster = ClusterFixture::on(|clock| {
            let pace = SimSettings { latency: Duration::from_millis(20), ..SimSettings::default() };
            let cloud = Cloud::new(Arc::clone(clock), Random::seeded(7), pace);
            let around = Surroundings {
                transport: Transport::new(cloud.service()),
                clock: Arc::clone(clock),
                random: Arc::new(Random::seeded(1)),
                observer: Arc::new(Unobserved),
            };
            made = Some(cloud);
            Arc::new(BinaryLaneProvider::new(settings, around))
        });
        Ok(Self { cluster, cloud: made.ok_or_else(|| failed("there is no cloud"))? })
    }

    /// A server and its node, which is Ready and has this spec.
    async fn node(&self, number: usize, spec: impl Fn(i64) -> Value) {
        let name = format!("node-{number:04}");
        let id = self.cloud.add_server(&name, "bne").id;
        self.cluster.register_with(&name, spec(id)).await;
    }

    /// The program starts, with the settings that its flags have by default.
    fn start(&mut self) -> Result<(), BenchError> {
        let settings = ControllerSettings {
            node: Some(NodeSettings::default()),
            lifecycle: Some(LifecycleSettings::default()),
            service: Some(ServiceSettings::default()),
            routes: Some(RouteSettings {
                configure_cloud_routes: true,
                cluster_cidr: CIDR.to_owned(),
                period: Duration::from_secs(10),
            }),
        };
        self.cluster.run_watches();
        let controllers = ControllerSet::new(&self.cluster.ctx, &settings).map_err(failed)?;
        self.cluster.run(async move { controllers.run().await });
        Ok(())
    }

    async fn service(&self, name: &str) {
        let spec = json!({"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]});
        self.cluster.create(&self.cluster.services(), "Service", name, json!({"spec": spec})).await;
    }

    /// The calls within so many seconds whose operations begin like this.
    async fn calls_in(&self, seconds: u64, operations: &str) -> usize {
        self.cluster.pass(seconds).await;
        let tally = self.cloud.tally();
        self.cloud.clear_journal();
        tally.operations.iter().filter(|(name, _)| name.starts_with(operations)).map(|(_, count)| count).sum()
    }
}

fn known(id: i64) -> Value {
    json!({"providerID": format!("binarylane://{id}")})
}

async fn measure() -> Result<Report, BenchError> {
    let mut report = Report::default();

    let mut large = Site::empty(false)?;
    let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
    for number in 0..1_000 {
        large.node(number, |_| json!({"taints": [taint]})).await;
    }
    large.start()?;
    report.calls("initialising 1,000 nodes", large.calls_in(45, "").await, 5, "1,000 calls");
    report.calls("an hour with 1,000 nodes at rest", large.calls_in(3_600, "").await, 60, "12,000 calls");
    drop(large);

    let mut small = Site::empty(false)?;
    for number in 0..2 {
        small.node(number, known).await;
    }
    small.start()?;
    small.calls_in(10, "").await;
    small.service("web").await;
    report.calls(
        "creating a load balancer",
        small.calls_in(60, "").await,
        5,
        "1 call, and another at every change",
    );
    small.node(2, known).await;
    // Its server is found in one listing, however many load balancers there are.
    let what = "a node joins, for each load balancer, beside one listing of servers";
    report.calls(what, small.calls_in(60, "load_balancers.").await, 2, "2 to 4 calls");
    drop(small);

    let mut routed = Site::empty(true)?;
    for number in 0..100 {
        let cidr = format!("10.244.{number}.0/24");
        let pods = json!({"podCIDR": cidr, "podCIDRs": [cidr]});
        let spec = |id| {
            let mut spec = known(id);
            sim_kit::merge(&mut spec, pods.clone());
            spec
        };
        routed.node(number, spec).await;
    }
    routed.start()?;
    report.calls(
        "routes for 100 nodes, for each VPC",
        routed.calls_in(30, "vpcs.").await,
        3,
        "18 calls a node",
    );
    Ok(report)
}
