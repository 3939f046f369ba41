//! A stage with a service controller on it.

use std::sync::Arc;

use cloudberth_controllers::service::{ServiceController, ServiceSettings};
use cloudberth_core::{ServiceView, view::Ingress};
use cloudberth_fake::{Balancer, CallRecord, SimSettings};
use cloudberth_runtime::metrics::ServiceMetrics;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use testing_kit::ClusterFixture;

pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
pub const INTENT: &str = "cloudberth.dev/intent";

pub struct Fixture {
    pub stage: ClusterFixture,
    pub settings: ServiceSettings,
    pub controller: Arc<ServiceController>,
    task: AbortHandle,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(&["alpha"], |_| {})
    }

    pub fn with(clouds: &[&str], adjust: impl Fn(&mut SimSettings)) -> Self {
        Self::on(
            ClusterFixture::with(clouds, adjust),
            ServiceSettings { drift: None, ..ServiceSettings::default() },
        )
    }

    pub fn on(mut stage: ClusterFixture, settings: ServiceSettings) -> Self {
        stage.run_watches();
        let controller = ServiceController::new(stage.ctx.clone(), settings.clone());
        let task = stage.run(Arc::clone(&controller).run());
        Self { stage, settings, controller, task }
    }

    /// The program is killed.
    pub fn kill(&self) {
        self.task.abort();
    }

    /// The program starts; everything that it knew is lost.
    pub fn restart(&mut self) {
        self.stage.reboot();
        self.stage.run_watches();
        self.controller = ServiceController::new(self.stage.ctx.clone(), self.settings.clone());
        self.task = self.stage.run(Arc::clone(&self.controller).run());
    }

    /// An instance in the first cloud, and its node, which is known to be that instance.
    pub async fn node(&self, name: &str) -> String {
        self.node_in(0, "alpha", name).await
    }

    pub async fn node_in(&self, cloud: usize, scheme: &str, name: &str) -> String {
        let id = self.stage.clouds[cloud].add_instance(name, "north-1").id;
        let body = json!({"spec": {"providerID": format!("{scheme}://{id}")}});
        self.stage.create(&self.stage.nodes(), "Node", name, body).await;
        id
    }

    pub async fn label_node(&self, name: &str, labels: Value) {
        self.stage.merge(&self.stage.nodes(), name, json!({"metadata": {"labels": labels}})).await;
    }

    /// Somebody creates a Service that wants a load balancer; `more` is merged over it.
    pub async fn create(&self, name: &str, more: Value) {
        let mut body = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}});
        merge(&mut body, more);
        self.stage.create(&self.stage.services(), "Service", name, body).await;
    }

    pub async fn edit(&self, name: &str, body: Value) {
        self.stage.merge(&self.stage.services(), name, body).await;
    }

    pub async fn annotate(&self, name: &str, annotations: Value) {
        self.edit(name, json!({"metadata": {"annotations": annotations}})).await;
    }

    pub async fn delete(&self, name: &str) {
        self.stage.delete(&self.stage.services(), name).await;
    }

    pub async fn get(&self, name: &str) -> ServiceView {
        self.stage.service(name).await.unwrap()
    }

    pub fn metrics(&self) -> &ServiceMetrics {
        &self.stage.ctx.metrics.service
    }

    /// The load balancers in the first cloud.
    pub fn balancers(&self) -> Vec<Balancer> {
        self.stage.clouds[0].balancers()
    }

    /// The only load balancer of a Service.
    pub async fn balancer(&self, name: &str) -> Balancer {
        let wanted = format!("test-{}", self.get(name).await.uid);
        let mut found: Vec<_> = self.balancers().into_iter().filter(|b| b.name == wanted).collect();
        assert_eq!(found.len(), 1, "load balancers of {name}");
        found.remove(0)
    }

    /// What the first cloud was asked to change since `from`, oldest first.
    pub fn mutations(&self, from: usize) -> Vec<CallRecord> {
        self.stage.clouds[0].calls().into_iter().skip(from).filter(|call| call.write).collect()
    }

    /// How many calls the first cloud has had.
    pub fn calls(&self) -> usize {
        self.stage.clouds[0].calls().len()
    }

    /// How often the load balancers of the first cloud were listed.
    pub fn surveys(&self) -> usize {
        self.stage.clouds[0].calls().iter().filter(|call| call.operation == "list balancers").count()
    }

    /// How many calls the Kubernetes API has had.
    pub fn kube_calls(&self) -> u64 {
        self.stage.api.calls(0).last().map_or(0, |call| call.number + 1)
    }

    pub fn reasons(&self, about: &str) -> Vec<String> {
        let reason = |line: String| line.split([' ', ':']).nth(1).unwrap_or_default().to_owned();
        self.stage.events(about).into_iter().map(reason).collect()
    }

    pub async fn pass(&self, seconds: u64) {
        self.stage.pass(seconds).await;
    }

    /// The Service is served by a load balancer with these ports and instances, and says so.
    pub async fn assert_served(&self, name: &str, ports: &[i64], instances: &[&str]) -> Balancer {
        let (service, balancer) = (self.get(name).await, self.balancer(name).await);
        let mut open: Vec<_> = balancer.listeners.values().map(|listener| listener.port).collect();
        open.sort_unstable();
        assert_eq!(open, ports, "ports of {name}");
        let mut members: Vec<_> = balancer.members.values().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(members, instances, "instances of {name}");
        assert!(service.finalizers.contains(&FINALIZER.to_owned()));
        assert_eq!(addresses(&service.ingress), [balancer.address.as_str()]);
        assert_eq!(service.annotations.get("fake.cloudberth.dev/balancer-id"), Some(&balancer.id));
        assert_eq!(service.annotations.get(INTENT), None, "no intent is left on {name}");
        balancer
    }

    /// Runs `for_seconds` and asserts that nothing is written anywhere.
    pub async fn assert_quiet(&self, for_seconds: u64, case: &str) {
        let (cloud, kube) = (self.calls(), self.kube_calls());
        self.pass(for_seconds).await;
        assert_eq!(self.mutations(cloud), [], "{case}");
        assert_eq!(self.stage.writes(kube), [], "{case}");
    }
}

pub fn addresses(ingress: &[Ingress]) -> Vec<&str> {
    ingress.iter().filter_map(|entry| entry.ip.as_deref()).collect()
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}
