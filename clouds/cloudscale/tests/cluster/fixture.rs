//! A cluster at cloudscale.ch, with all controllers at work.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cloudberth_cloudscale::{CloudscaleProvider, Settings, Surroundings};
use cloudberth_controllers::{
    controller_set::{ControllerSet, ControllerSettings},
    lifecycle::LifecycleSettings,
    node::NodeSettings,
    service::ServiceSettings,
};
use cloudberth_core::{Clock, Provider, Random, Secret, ServiceView, call::ReadOnly};
use cloudberth_http::{TokenSource, Transport, Unobserved, testing::Door};
use cloudscale_sim::{Balancer, Cloud, Entry, SimSettings, Tally};
use serde_json::{Value, json};
use testing_kit::ClusterFixture;
pub(crate) use testing_kit::cloudscale::{FINALIZER, PREFIX, annotated, merge};
use tokio::task::AbortHandle;

pub(crate) const INTENT: &str = "cloudberth.dev/intent";

pub(crate) struct Fixture {
    pub(crate) cluster: ClusterFixture,
    pub(crate) cloud: Cloud,
    /// The way to the cloud.
    pub(crate) door: Door,
    pub(crate) settings: ControllerSettings,
    controllers: AbortHandle,
}

fn provider(cloud: &Cloud, door: &Door, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
    let token = TokenSource::fixed(Secret::new("t0k3n").unwrap());
    let settings = Settings::read(Ok(Some(token)), |_| None).unwrap();
    let around = Surroundings {
        transport: door.before(Transport::new(cloud.service())),
        clock: Arc::clone(clock),
        random: Arc::new(Random::seeded(1)),
        observer: Arc::new(Unobserved),
    };
    Arc::new(CloudscaleProvider::new(&settings, around))
}

/// Nodes and Services.
fn everybody() -> ControllerSettings {
    let period = Duration::from_secs(5);
    ControllerSettings {
        node: Some(NodeSettings::default()),
        lifecycle: Some(LifecycleSettings { period, ..LifecycleSettings::default() }),
        service: None,
        routes: None,
    }
}

fn start(cluster: &mut ClusterFixture, settings: &ControllerSettings) -> AbortHandle {
    cluster.run_watches();
    let controllers = ControllerSet::new(&cluster.ctx, settings).unwrap();
    cluster.run(async move { controllers.run().await })
}

impl Fixture {
    /// The cloud answers after 20 ms and builds a load balancer in a second, as in the promises about time.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut SimSettings)) -> Self {
        Self::looking_again(None, adjust)
    }

    /// With a slow pass that looks for what changed behind the program's back.
    pub(crate) fn looking_again(drift: Option<Duration>, adjust: impl FnOnce(&mut SimSettings)) -> Self {
        let mut settings = SimSettings {
            latency: Duration::from_millis(20),
            build: Duration::from_secs(1),
            ..SimSettings::default()
        };
        adjust(&mut settings);
        let (mut made, door) = (None, Door::default());
        let mut cluster = ClusterFixture::on(|clock| {
            let cloud = Cloud::new(Arc::clone(clock), Random::seeded(7), settings);
            made = Some(cloud.clone());
            provider(&cloud, &door, clock)
        });
        let service = Some(ServiceSettings { drift, ..ServiceSettings::default() });
        let settings = ControllerSettings { service, ..everybody() };
        let controllers = start(&mut cluster, &settings);
        Self { cluster, cloud: made.unwrap(), door, settings, controllers }
    }

    /// With this the program is killed; what it has sent is on its way.
    pub(crate) fn killer(&self) -> AbortHandle {
        self.controllers.clone()
    }

    /// The program starts, and knows nothing.
    pub(crate) fn restart(&mut self) {
        let provider = provider(&self.cloud, &self.door, &self.cluster.clock);
        self.cluster.reboot_with(provider);
        self.controllers = start(&mut self.cluster, &self.settings);
    }

    /// The program starts while another one leads.
    pub(crate) fn restart_behind_another(&mut self) {
        let provider = provider(&self.cloud, &self.door, &self.cluster.clock);
        self.cluster.reboot_behind(provider, Arc::new(ReadOnly));
        self.controllers = start(&mut self.cluster, &self.settings);
    }

    /// A server and its node, Ready and initialised. Returns the server's id.
    pub(crate) async fn node(&self, name: &str) -> String {
        let id = self.cloud.add_server(name, "rma1").uuid;
        self.cluster.register(name, Some(&format!("cloudscale://{id}"))).await;
        id
    }

    /// The kubelet of a fresh instance registers a node that waits for its cloud.
    pub(crate) async fn join(&self, name: &str) {
        let key = "node.cloudprovider.kubernetes.io/uninitialized";
        let taint = json!({"key": key, "value": "true", "effect": "NoSchedule"});
        self.cluster.create(&self.cluster.nodes(), "Node", name, json!({"spec": {"taints": [taint]}})).await;
        self.cluster.set_ready(name, true).await;
    }

    pub(crate) async fn nodes(&self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for number in 1..=count {
            ids.push(self.node(&format!("node-{number:02}")).await);
        }
        ids
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

    /// Annotations without their prefix; null removes one.
    pub(crate) async fn annotate(&self, name: &str, annotations: &[(&str, Value)]) {
        self.edit(name, annotated(annotations)).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.cluster.delete(&self.cluster.services(), name).await;
    }

    pub(crate) async fn get(&self, name: &str) -> ServiceView {
        self.cluster.service(name).await.unwrap()
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.cluster.pass(seconds).await;
    }

    /// The load balancer that a Service has recorded.
    pub(crate) async fn balancer(&self, name: &str) -> Balancer {
        let service = self.get(name).await;
        let id = service.annotations.get(&format!("{PREFIX}uuid")).unwrap_or_else(|| {
            panic!("{name} has no load balancer: {:?} {:?}", service.annotations, self.cluster.events(name))
        });
        self.cloud.balancers().into_iter().find(|balancer| balancer.uuid == *id).unwrap()
    }

    /// Ports, and the addresses behind each, of the load balancer of a Service.
    pub(crate) async fn shape(&self, name: &str) -> Vec<(u16, Vec<String>)> {
        let id = self.balancer(name).await.uuid;
        let stock = self.cloud.resources();
        let mut shape = Vec::new();
        for listener in stock.listeners.values() {
            let Some(pool) = stock
                .pools
                .get(listener.pool.as_deref().unwrap_or_default())
                .filter(|pool| pool.balancer == id)
            else {
                continue;
            };
            let members = stock.members.values().filter(|member| member.pool == pool.uuid);
            let mut members: Vec<_> = members.map(|member| member.name.clone()).collect();
            members.sort();
            shape.push((listener.protocol_port, members));
        }
        shape.sort();
        shape
    }

    /// The warnings about a Service.
    pub(crate) fn warnings(&self, name: &str) -> Vec<String> {
        self.cluster.events(name).into_iter().filter(|event| event.starts_with("Warning")).collect()
    }

    /// The ids of everything below the load balancers, by kind: pools, listeners, monitors, members.
    pub(crate) fn parts(&self) -> [BTreeSet<String>; 4] {
        let stock = self.cloud.resources();
        [
            stock.pools.into_keys().collect(),
            stock.listeners.into_keys().collect(),
            stock.monitors.into_keys().collect(),
            stock.members.into_keys().collect(),
        ]
    }

    /// The operations that changed something since the journal was cleared.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.mutations().into_iter().map(|entry| entry.operation).collect()
    }

    /// What was asked of the cloud since the journal was cleared.
    pub(crate) fn tally(&self) -> Tally {
        self.cloud.tally()
    }

    pub(crate) fn mutations(&self) -> Vec<Entry> {
        self.cloud.journal().into_iter().filter(|entry| entry.mutation).collect()
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

    /// Waits until the Service shows an address; returns how long that took.
    pub(crate) async fn addressed(&self, name: &str, limit: Duration) -> Duration {
        let start = self.cluster.clock.now();
        loop {
            let service = self.get(name).await;
            let took = self.cluster.clock.now().since(start);
            if !service.ingress.is_empty() {
                return took;
            }
            assert!(took < limit, "{name} has no address: {:?}", self.cluster.events(name));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
