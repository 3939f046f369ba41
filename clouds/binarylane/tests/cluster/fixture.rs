//! A cluster at BinaryLane, with all controllers at work.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

pub(crate) use binarylane_sim::replaced::{annotated, ports};
use binarylane_sim::{Balancer, Entry, RouteEntry, SimSettings, Tally};
use cloudberth_core::{NodeView, ServiceView};
use serde_json::{Value, json};
use sim_kit::merge;
use testing_kit::checks::CloudFixture;
pub(crate) use testing_kit::seeded::{FINALIZER, INTENT};

use crate::under_test::BinaryLane;
pub(crate) use crate::under_test::Setup;

pub(crate) const ID: &str = "service.beta.kubernetes.io/binarylane-loadbalancer-id";
pub(crate) const CIDR: &str = "10.244.0.0/16";

/// The fixture of every cloud, with what only BinaryLane has.
pub(crate) struct Fixture(CloudFixture<BinaryLane>);

impl Deref for Fixture {
    type Target = CloudFixture<BinaryLane>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Fixture {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Fixture {
    /// The cloud answers after 20 ms and builds a load balancer in two seconds.
    pub(crate) fn new() -> Self {
        Self::with(Setup::default(), |_| {})
    }

    pub(crate) fn with(setup: Setup, adjust: impl FnOnce(&mut SimSettings)) -> Self {
        Self(CloudFixture::adjusted(setup.drift, |cloud: &BinaryLane| {
            *cloud.setup.lock().unwrap() = setup;
            cloud.change_settings(|settings| {
                settings.build = Duration::from_secs(2);
                adjust(settings);
            });
        }))
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

    pub(crate) async fn get(&self, name: &str) -> ServiceView {
        self.cluster.service(name).await.unwrap()
    }

    pub(crate) async fn is_gone(&self, name: &str) -> bool {
        self.cluster.service(name).await.is_none()
    }

    pub(crate) async fn recorded(&self, name: &str) -> Option<i64> {
        self.get(name).await.annotations.get(ID).map(|id| id.parse().unwrap())
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

    /// Time goes by and nothing is written anywhere.
    pub(crate) async fn assert_quiet(&self, seconds: u64, case: &str) {
        self.cloud.clear_journal();
        let kube = self.kube_calls();
        self.pass(seconds).await;
        assert_eq!(self.mutations(), [], "{case}");
        assert_eq!(self.cluster.writes(kube), [], "{case}");
    }
}
