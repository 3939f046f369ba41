//! A cluster at BinaryLane, with all controllers at work.

use std::{sync::Arc, time::Duration};

use binarylane_sim::{Balancer, Cloud, Entry, RouteEntry, SimSettings, Tally};
use cloudberth_binarylane::{BinaryLaneProvider, FileSettings, Settings, Sources, Surroundings};
use cloudberth_controllers::{
    controller_set::{ControllerSet, ControllerSettings},
    lifecycle::LifecycleSettings,
    node::NodeSettings,
    routes::RouteSettings,
    service::ServiceSettings,
};
use cloudberth_core::{Clock, NodeView, Provider, Random, Secret, ServiceView};
use cloudberth_http::{Env, GivenFlags, TokenSource, Transport, Unobserved, yaml};
use serde_json::{Value, json};
use sim_kit::merge;
use testing_kit::ClusterFixture;
use tokio::task::AbortHandle;

pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/binarylane-loadbalancer-";
pub(crate) const ID: &str = "service.beta.kubernetes.io/binarylane-loadbalancer-id";
pub(crate) const INTENT: &str = "cloudberth.dev/intent";
pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
pub(crate) const CIDR: &str = "10.244.0.0/16";

pub(crate) fn settings(token: TokenSource, file: &str, flags: &[(&'static str, &str)]) -> Settings {
    let (env, given) =
        (Env::default(), flags.iter().map(|&(name, value)| (name, value.to_owned())).collect());
    let given: GivenFlags = given;
    let file = yaml::read(file, FileSettings::read).unwrap();
    Settings::read(Sources { token: Ok(Some(token)), env: &env, file, given: &given, cluster: "test" })
        .unwrap()
}

/// How a cluster is set up.
#[derive(Clone, Default)]
pub(crate) struct Setup {
    /// The file of `--cloud-config`.
    pub(crate) file: &'static str,
    /// Routes are looked after.
    pub(crate) routes: bool,
    /// How often is looked for what changed behind the program's back.
    pub(crate) drift: Option<Duration>,
}

pub(crate) struct Fixture {
    pub(crate) cluster: ClusterFixture,
    pub(crate) cloud: Cloud,
    setup: Setup,
    controllers: AbortHandle,
}

fn provider(cloud: &Cloud, setup: &Setup, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
    let token = TokenSource::fixed(Secret::new("t0k3n-of-the-account").unwrap());
    let on: &[(&str, &str)] = &[("configure-cloud-routes", "true"), ("cluster-cidr", CIDR)];
    let settings = settings(token, setup.file, if setup.routes { on } else { &on[1..] });
    let around = Surroundings {
        transport: Transport::new(cloud.service()),
        clock: Arc::clone(clock),
        random: Arc::new(Random::seeded(1)),
        observer: Arc::new(Unobserved),
    };
    Arc::new(BinaryLaneProvider::new(settings, around))
}

fn start(cluster: &mut ClusterFixture, setup: &Setup) -> AbortHandle {
    let period = Duration::from_secs(5);
    let settings = ControllerSettings {
        node: Some(NodeSettings::default()),
        lifecycle: Some(LifecycleSettings { period, ..LifecycleSettings::default() }),
        service: Some(ServiceSettings { drift: setup.drift, ..ServiceSettings::default() }),
        // The flag's default is on; the provider alone decides.
        routes: Some(RouteSettings {
            configure_cloud_routes: true,
            cluster_cidr: CIDR.to_owned(),
            period: Duration::from_secs(10),
        }),
    };
    cluster.run_watches();
    let controllers = ControllerSet::new(&cluster.ctx, &settings).unwrap();
    cluster.run(async move { controllers.run().await })
}

/// A patch with annotations, given without their prefix; null removes one.
pub(crate) fn annotated(annotations: &[(&str, Value)]) -> Value {
    let key = |key: &str| if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") };
    let all: serde_json::Map<_, _> = annotations.iter().map(|(k, value)| (key(k), value.clone())).collect();
    json!({"metadata": {"annotations": all}})
}

pub(crate) fn ports(numbers: &[u16]) -> Value {
    let port = |number: &u16| json!({"name": format!("p{number}"), "port": number, "protocol": "TCP"});
    json!({"spec": {"ports": numbers.iter().map(port).collect::<Vec<_>>()}})
}

impl Fixture {
    /// The cloud answers after 20 ms and builds a load balancer in two seconds.
    pub(crate) fn new() -> Self {
        Self::with(Setup::default(), |_| {})
    }

    pub(crate) fn with(setup: Setup, adjust: impl FnOnce(&mut SimSettings)) -> Self {
        let mut settings = SimSettings { latency: Duration::from_millis(20), ..SimSettings::default() };
        adjust(&mut settings);
        let mut made = None;
        let mut cluster = ClusterFixture::on(|clock| {
            let cloud = Cloud::new(Arc::clone(clock), Random::seeded(7), settings);
            made = Some(cloud.clone());
            provider(&cloud, &setup, clock)
        });
        let controllers = start(&mut cluster, &setup);
        Self { cluster, cloud: made.unwrap(), setup, controllers }
    }

    /// With two nodes, a moment after they came.
    pub(crate) async fn with_nodes() -> Self {
        let fixture = Self::new();
        fixture.nodes(2).await;
        fixture.pass(10).await;
        fixture.cloud.clear_journal();
        fixture
    }

    /// With two nodes and a Service of this port that has its address.
    pub(crate) async fn settled() -> Self {
        let fixture = Self::with_nodes().await;
        fixture.create("web", json!({})).await;
        fixture.pass(30).await;
        assert!(!fixture.get("web").await.ingress.is_empty(), "{:?}", fixture.cluster.events("web"));
        fixture.cloud.clear_journal();
        fixture
    }

    /// With this the program is killed; what it has sent is on its way.
    pub(crate) fn killer(&self) -> AbortHandle {
        self.controllers.clone()
    }

    /// The program starts, and knows nothing.
    pub(crate) fn restart(&mut self) {
        let provider = provider(&self.cloud, &self.setup, &self.cluster.clock);
        self.cluster.reboot_with(provider);
        self.controllers = start(&mut self.cluster, &self.setup);
    }

    /// A server and its node, Ready and initialised. Returns the server's id.
    pub(crate) async fn node(&self, name: &str) -> i64 {
        let id = self.cloud.add_server(name, "bne").id;
        self.cluster.register(name, Some(&format!("binarylane://{id}"))).await;
        id
    }

    pub(crate) async fn nodes(&self, count: usize) -> Vec<i64> {
        let mut ids = Vec::new();
        for number in 1..=count {
            ids.push(self.node(&format!("node-{number:02}")).await);
        }
        ids
    }

    /// A node that waits for its cloud, with this provider id, if any.
    pub(crate) async fn join(&self, name: &str, more: Value) {
        let key = "node.cloudprovider.kubernetes.io/uninitialized";
        let taint = json!({"key": key, "value": "true", "effect": "NoSchedule"});
        let mut body = json!({"spec": {"taints": [taint]}});
        merge(&mut body, more);
        self.cluster.create(&self.cluster.nodes(), "Node", name, body).await;
        self.cluster.set_ready(name, true).await;
    }

    pub(crate) async fn get_node(&self, name: &str) -> NodeView {
        self.cluster.node(name).await.unwrap_or_else(|| panic!("there is no node {name}"))
    }

    pub(crate) async fn is_initialised(&self, name: &str) -> bool {
        !self.get_node(name).await.has_taint("node.cloudprovider.kubernetes.io/uninitialized")
    }

    /// A Service that wants a load balancer; `more` is merged over it.
    pub(crate) async fn create(&self, name: &str, more: Value) {
        let mut body = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}});
        merge(&mut body, more);
        self.cluster.create(&self.cluster.services(), "Service", name, body).await;
    }

    pub(crate) async fn edit(&self, name: &str, body: Value) {
        self.cluster.merge(&self.cluster.services(), name, body).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.cluster.delete(&self.cluster.services(), name).await;
    }

    pub(crate) async fn get(&self, name: &str) -> ServiceView {
        self.cluster.service(name).await.unwrap()
    }

    pub(crate) async fn is_gone(&self, name: &str) -> bool {
        self.cluster.service(name).await.is_none()
    }

    pub(crate) async fn recorded(&self, name: &str) -> Option<i64> {
        self.get(name).await.annotations.get(ID).map(|id| id.parse().unwrap())
    }

    pub(crate) async fn shown(&self, name: &str) -> Vec<String> {
        self.get(name).await.ingress.into_iter().filter_map(|entry| entry.ip).collect()
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.cluster.pass(seconds).await;
    }

    /// The load balancer that a Service has recorded.
    pub(crate) async fn balancer(&self, name: &str) -> Balancer {
        let id = self.recorded(name).await;
        let found = id.and_then(|id| self.cloud.balancer(id));
        found.unwrap_or_else(|| panic!("{name} has no load balancer: {:?}", self.cluster.events(name)))
    }

    /// The pool of the load balancer of a Service, sorted.
    pub(crate) async fn pool(&self, name: &str) -> Vec<i64> {
        let mut pool = self.balancer(name).await.server_ids;
        pool.sort_unstable();
        pool
    }

    pub(crate) fn warnings(&self, about: &str) -> Vec<String> {
        self.cluster.events(about).into_iter().filter(|event| event.starts_with("Warning")).collect()
    }

    pub(crate) fn warned(&self, about: &str, word: &str) -> bool {
        self.warnings(about).iter().any(|line| line.contains(word))
    }

    /// The requests that would change something since the journal was cleared.
    pub(crate) fn mutations(&self) -> Vec<Entry> {
        self.cloud.journal().into_iter().filter(|entry| entry.mutation).collect()
    }

    /// Their operations.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.mutations().into_iter().map(|entry| entry.operation).collect()
    }

    pub(crate) fn tally(&self) -> Tally {
        self.cloud.tally()
    }

    pub(crate) fn routes(&self) -> Vec<RouteEntry> {
        self.cloud.routes(self.cloud.first_vpc())
    }

    /// How many calls the Kubernetes API has had.
    pub(crate) fn kube_calls(&self) -> u64 {
        self.cluster.api.calls(0).last().map_or(0, |call| call.number + 1)
    }

    /// Time goes by and nothing is written anywhere.
    pub(crate) async fn assert_quiet(&self, seconds: u64, case: &str) {
        self.cloud.clear_journal();
        let kube = self.kube_calls();
        self.pass(seconds).await;
        assert_eq!(self.mutations(), [], "{case}");
        assert_eq!(self.cluster.writes(kube), [], "{case}");
    }
}
