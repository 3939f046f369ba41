//! A cluster on the cloud under test, with all controllers at work.

use std::{sync::Arc, time::Duration};

use cloudberth_controllers::{
    controller_set::{ControllerSet, ControllerSettings},
    lifecycle::LifecycleSettings,
    node::NodeSettings,
    service::ServiceSettings,
};
use cloudberth_core::{
    ServiceView,
    call::{Gate, Unguarded},
    decide::node::taints::UNINITIALISED,
    view::ServiceType,
};
use serde_json::{Value, json};
use sim_kit::merge;
use tokio::task::AbortHandle;

use super::CloudUnderTest;
use crate::ClusterFixture;

/// A cluster on the cloud under test.
#[derive(Debug)]
pub struct CloudFixture<C> {
    /// The cluster.
    pub cluster: ClusterFixture,
    /// The cloud.
    pub cloud: C,
    settings: ControllerSettings,
    controllers: AbortHandle,
}

fn start(cluster: &mut ClusterFixture, settings: &ControllerSettings) -> AbortHandle {
    cluster.run_watches();
    let controllers = ControllerSet::new(&cluster.ctx, settings).unwrap();
    cluster.run(async move { controllers.run().await })
}

impl<C: CloudUnderTest> CloudFixture<C> {
    /// An empty cluster on an empty cloud. The slow pass that looks for what changed behind the program's back comes
    /// every two minutes.
    pub fn new() -> Self {
        Self::looking_again(Some(Duration::from_secs(120)))
    }

    /// The same with a slow pass every so often, or with none.
    pub fn looking_again(drift: Option<Duration>) -> Self {
        Self::adjusted(drift, |_| {})
    }

    /// The same on a cloud that is adjusted before anybody works with it.
    pub fn adjusted(drift: Option<Duration>, adjust: impl FnOnce(&C)) -> Self {
        let mut cloud = None;
        let mut cluster = ClusterFixture::on(|clock| {
            let new = C::new(clock);
            adjust(&new);
            let provider = new.provider(clock);
            cloud = Some(new);
            provider
        });
        let cloud = cloud.unwrap();
        let settings = ControllerSettings {
            node: Some(NodeSettings::default()),
            lifecycle: Some(LifecycleSettings::default()),
            service: Some(ServiceSettings { drift, ..ServiceSettings::default() }),
            routes: cloud.routes(),
        };
        let controllers = start(&mut cluster, &settings);
        Self { cluster, cloud, settings, controllers }
    }

    /// The same with this many nodes, `node-1` and so on.
    pub async fn with_nodes(count: usize) -> Self {
        let fixture = Self::new();
        for number in 1..=count {
            fixture.node(&format!("node-{number}")).await;
        }
        fixture
    }

    /// Aborting this kills the program; requests that it has sent still arrive.
    pub fn killer(&self) -> AbortHandle {
        self.controllers.clone()
    }

    /// Starts the program again, without anything that it knew.
    pub fn restart(&mut self) {
        self.restart_behind(Arc::new(Unguarded));
    }

    /// Starts the program again, while another one leads: it writes as far as `gate` allows.
    pub fn restart_behind(&mut self, gate: Arc<dyn Gate>) {
        let provider = self.cloud.provider(&Arc::clone(&self.cluster.clock));
        self.cluster.reboot_behind(provider, gate);
        self.controllers = start(&mut self.cluster, &self.settings);
    }

    /// An instance and its node, Ready and initialised. Returns the provider id.
    pub async fn node(&self, name: &str) -> String {
        let id = self.cloud.add_instance(name);
        let mut spec = self.cloud.node_spec(&id);
        merge(&mut spec, json!({"providerID": id}));
        self.cluster.register_with(name, spec).await;
        id
    }

    /// The kubelet of a fresh instance registers its node, which is Ready and waits for its cloud.
    pub async fn join(&self, name: &str) {
        let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
        let node = json!({"spec": {"taints": [taint]}});
        self.cluster.create(&self.cluster.nodes(), "Node", name, node).await;
        self.cluster.set_ready(name, true).await;
    }

    /// A Service that wants a load balancer; `more` is merged over it.
    pub async fn create(&self, name: &str, more: Value) {
        let ports = json!([{"port": 80, "protocol": "TCP"}]);
        let mut body = json!({"spec": {"type": "LoadBalancer", "ports": ports}});
        merge(&mut body, more);
        self.cluster.create(&self.cluster.services(), "Service", name, body).await;
    }

    /// Somebody edits a Service.
    pub async fn edit(&self, name: &str, body: Value) {
        self.cluster.merge(&self.cluster.services(), name, body).await;
    }

    /// Somebody sets an annotation; null removes it.
    pub async fn annotate(&self, name: &str, key: &str, value: Value) {
        self.edit(name, annotation(key, value)).await;
    }

    /// Somebody deletes a Service.
    pub async fn delete(&self, name: &str) {
        self.cluster.delete(&self.cluster.services(), name).await;
    }

    /// A Service as it is now; `None` for one that is gone.
    pub async fn service(&self, name: &str) -> Option<ServiceView> {
        self.cluster.service(name).await
    }

    /// The id of the load balancer that a Service has recorded.
    pub async fn recorded(&self, name: &str) -> Option<String> {
        self.service(name).await?.annotations.get(self.cloud.id_annotation()).cloned()
    }

    /// The ingress of a Service, as addresses and host names.
    pub async fn ingress(&self, name: &str) -> Vec<String> {
        let ingress = self.service(name).await.map(|service| service.ingress).unwrap_or_default();
        ingress.into_iter().filter_map(|entry| entry.ip.or(entry.hostname)).collect()
    }

    /// Waits until a Service shows an address. Returns how long that took.
    pub async fn addressed(&self, name: &str, limit: Duration) -> Duration {
        let start = self.cluster.clock.now();
        loop {
            let took = self.cluster.clock.now().since(start);
            if !self.ingress(name).await.is_empty() {
                return took;
            }
            assert!(took < limit, "{name} has no address: {:?}", self.cluster.events(name));
            // What takes long need not be known so exactly.
            let millis = if took < Duration::from_secs(5) { 10 } else { 100 };
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
    }

    /// The name that the load balancer of a Service gets when nobody names it.
    pub async fn generated_name(&self, service: &str) -> String {
        self.cloud.generated_name(&self.service(service).await.unwrap())
    }

    /// The generated name of a Service of another cluster.
    pub fn name_elsewhere(&self, uid: &str) -> String {
        let service = ServiceView {
            uid: uid.to_owned(),
            service_type: ServiceType::LoadBalancer,
            ..ServiceView::default()
        };
        self.cloud.generated_name(&service)
    }

    /// The warnings about a Service.
    pub fn warnings(&self, name: &str) -> Vec<String> {
        self.cluster.events(name).into_iter().filter(|event| event.starts_with("Warning")).collect()
    }

    /// Lets virtual time pass.
    pub async fn pass(&self, seconds: u64) {
        self.cluster.pass(seconds).await;
    }

    /// How many calls the Kubernetes API has had.
    pub fn kube_calls(&self) -> u64 {
        self.cluster.api.calls(0).last().map_or(0, |call| call.number + 1)
    }

    /// Lets time pass, and asserts that nothing is written in the cluster or changed in the cloud.
    pub async fn assert_quiet(&self, seconds: u64, case: &str) {
        let (mutations, kube) = (self.cloud.mutations(), self.kube_calls());
        self.pass(seconds).await;
        assert_eq!(self.cloud.mutations(), mutations, "{case}: nothing is changed in the cloud");
        assert_eq!(self.cluster.writes(kube), [], "{case}: nothing is written in the cluster");
    }
}

impl<C: CloudUnderTest> Default for CloudFixture<C> {
    fn default() -> Self {
        Self::new()
    }
}

/// A body with one annotation.
pub fn annotation(key: &str, value: Value) -> Value {
    let annotations: Value = [(key.to_owned(), value)].into_iter().collect();
    json!({"metadata": {"annotations": annotations}})
}
