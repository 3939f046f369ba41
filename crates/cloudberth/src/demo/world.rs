//! The cluster and its cloud, and what people, kubelets and the cloud do there.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cloudberth_controllers::{
    controller_set::ControllerSettings, lifecycle::LifecycleSettings, node::NodeSettings,
    service::ServiceSettings,
};
use cloudberth_core::{
    Category, Clock, Provider, Random, Result, Tick,
    decide::{election::Config, node::taints::UNINITIALISED},
};
use cloudberth_fake::{Cloud, FakeProvider, Fault, PowerState, SimSettings};
use cloudberth_manager::replica::{Parts, Replica};
use cloudberth_runtime::metrics::{Metrics, Registry};
use embedded_kube::KubeApi;
use http::{HeaderValue, Request, header::USER_AGENT};
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sim_kit::Surroundings;
use tokio::{sync::Notify, time::Instant};
use tower::ServiceExt as _;

use super::{
    story::Act,
    watch::{Kind, Sighting},
};

/// What the manager calls itself, in the logs of the API and of the cloud.
pub(super) const MANAGER: &str = "cloudberth";
/// The cloud's name, and the scheme of its ids.
const PROVIDER: &str = "demo";

/// Real time. Under a paused runtime it is that of the runtime.
struct RunningClock {
    begun: Instant,
    wall: Timestamp,
}

impl Clock for RunningClock {
    fn now(&self) -> Tick {
        Tick(self.begun.elapsed())
    }

    fn wall(&self) -> Timestamp {
        self.wall.checked_add(self.begun.elapsed()).unwrap_or(self.wall)
    }
}

pub(super) struct World {
    pub(super) api: KubeApi,
    pub(super) cloud: Cloud,
    clock: Arc<dyn Clock>,
    people: Client,
    random: Arc<Random>,
    stop: Notify,
}

impl World {
    /// An empty cluster, and a cloud that is as quick as a good one.
    pub(super) fn new(mut surroundings: Surroundings) -> Self {
        let clock: Arc<dyn Clock> =
            Arc::new(RunningClock { begun: Instant::now(), wall: surroundings.now() });
        let settings = SimSettings {
            latency: Duration::from_millis(40),
            build: Duration::from_secs(2),
            quota: 10,
            ..SimSettings::default()
        };
        let cloud = Cloud::new(Arc::clone(&clock), Random::seeded(surroundings.rng().u64(..)), settings);
        let random = Arc::new(Random::seeded(surroundings.rng().u64(..)));
        let api = KubeApi::new(surroundings);
        let people = client(&api, "people-and-kubelets");
        Self { api, cloud, clock, people, random, stop: Notify::new() }
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The client of everybody but the manager.
    pub(super) const fn people(&self) -> &Client {
        &self.people
    }

    /// The manager, with the settings that it has in production.
    pub(super) fn manager(&self) -> Result<Replica> {
        let provider = FakeProvider::new(PROVIDER, &self.cloud, MANAGER, self.clock());
        let lifecycle = LifecycleSettings { workers: 1, ..LifecycleSettings::default() };
        let candidate = format!("cloudberth-demo_{}", self.random.uuid());
        Replica::new(Parts {
            client: client(&self.api, MANAGER),
            lease_client: client(&self.api, MANAGER),
            clouds: vec![(Arc::new(provider) as Arc<dyn Provider>, BTreeSet::new())],
            default_cloud: None,
            cluster_name: "demo".to_owned(),
            controllers: ControllerSettings {
                node: Some(NodeSettings::default()),
                lifecycle: Some(lifecycle),
                service: Some(ServiceSettings::default()),
                routes: None,
            },
            election: Some(Config::with_defaults(&candidate)),
            migration: None,
            metrics: Metrics::new(&mut Registry::default()),
            clock: self.clock(),
            random: Arc::clone(&self.random),
        })
    }

    /// Tells the manager to stop, as SIGTERM does.
    pub(super) fn stop_manager(&self) {
        self.stop.notify_one();
    }

    /// Waits until the manager is told to stop.
    pub(super) async fn manager_is_stopped(&self) {
        self.stop.notified().await;
    }

    pub(super) async fn act(&self, act: Act) -> kube::Result<()> {
        match act {
            Act::Nothing => {}
            Act::Join(names) => {
                for (name, zone) in names {
                    self.join(name, zone).await?;
                }
            }
            Act::Stop(name) => {
                self.with_instance(name, |id| self.cloud.set_state(id, PowerState::Stopped));
                self.set_ready(name, false).await?;
            }
            Act::Start(name) => {
                self.with_instance(name, |id| self.cloud.set_state(id, PowerState::Running));
                self.set_ready(name, true).await?;
            }
            Act::Destroy(name) => {
                self.with_instance(name, |id| self.cloud.delete_instance(id));
                self.set_ready(name, false).await?;
            }
            Act::Serve(name, (key, value)) => {
                let port = json!({"name": "http", "port": 80, "protocol": "TCP"});
                let body = json!({
                    "metadata": {"annotations": {key: value}},
                    "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [port]},
                });
                self.create(Kind::Service, name, body).await?;
            }
            Act::Annotate(name, (key, value)) => {
                self.merge(name, json!({"metadata": {"annotations": {key: value}}})).await?;
            }
            Act::BreakCloudAndOpenPort(name) => {
                self.cloud.plan_faults(|_| Some(Fault::Refuse(Category::Temporary)));
                let port = |name, port| json!({"name": name, "port": port, "protocol": "TCP"});
                self.merge(name, json!({"spec": {"ports": [port("http", 80), port("https", 443)]}})).await?;
            }
            Act::MendCloud => self.cloud.stop_faults(),
            Act::Delete(name) => {
                self.objects(Kind::Service).delete(name, &DeleteParams::default()).await?;
            }
            Act::StopManager => self.stop_manager(),
        }
        Ok(())
    }

    /// Everything that is there, as far as the story looks at it.
    pub(super) fn everything(&self) -> Vec<Sighting> {
        let all = |(kind, table): (Kind, &str)| {
            let there = |object: Arc<Value>| Sighting { kind, gone: false, object: Value::clone(&object) };
            self.api.objects(table).into_iter().map(there).collect::<Vec<_>>()
        };
        [(Kind::Node, "nodes"), (Kind::Service, "services"), (Kind::Event, "events")]
            .into_iter()
            .flat_map(all)
            .collect()
    }

    fn objects(&self, kind: Kind) -> Api<DynamicObject> {
        match kind {
            Kind::Node => Api::all_with(self.people.clone(), &kind.resource()),
            _ => Api::namespaced_with(self.people.clone(), "default", &kind.resource()),
        }
    }

    /// An instance boots, and its kubelet registers a node that waits for its cloud.
    async fn join(&self, name: &str, zone: &str) -> kube::Result<()> {
        self.cloud.add_instance(name, zone);
        let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
        self.create(Kind::Node, name, json!({"spec": {"taints": [taint]}})).await?;
        self.set_ready(name, true).await
    }

    async fn set_ready(&self, name: &str, ready: bool) -> kube::Result<()> {
        let (status, reason) =
            if ready { ("True", "KubeletReady") } else { ("Unknown", "NodeStatusUnknown") };
        let condition = json!({"type": "Ready", "status": status, "reason": reason});
        let body = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        self.objects(Kind::Node).patch_status(name, &PatchParams::default(), &body).await?;
        Ok(())
    }

    async fn create(&self, kind: Kind, name: &str, body: Value) -> kube::Result<()> {
        let mut object = DynamicObject::new(name, &kind.resource()).data(body);
        let metadata = object.data.as_object_mut().and_then(|body| body.remove("metadata"));
        let annotations = metadata.as_ref().and_then(|metadata| metadata.get("annotations")).cloned();
        object.metadata.annotations = annotations.and_then(|all| serde_json::from_value(all).ok());
        self.objects(kind).create(&PostParams::default(), &object).await?;
        Ok(())
    }

    async fn merge(&self, service: &str, body: Value) -> kube::Result<()> {
        let (params, body) = (PatchParams::default(), Patch::Merge(body));
        self.objects(Kind::Service).patch(service, &params, &body).await?;
        Ok(())
    }

    fn with_instance(&self, name: &str, change: impl Fn(&str)) {
        self.cloud.instances().iter().filter(|instance| instance.name == name).for_each(|m| change(&m.id));
    }
}

/// A client of the embedded API that says who it is.
fn client(api: &KubeApi, who: &'static str) -> Client {
    let named = api.service().map_request(move |mut request: Request<kube::client::Body>| {
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(who));
        request
    });
    Client::new(named, "default")
}
