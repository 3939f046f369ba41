//! The world of one run: clock, Kubernetes API, cloud, people, and the program that may die.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use cloudberth_core::{Clock, Dice, NodeView, ServiceView, Tick, decide::nodeset::eligible::eligible};
use cloudberth_fake::{Cloud, FakeProvider, Manners};
use cloudberth_sim::{
    Surroundings,
    kube::{Fault, KubeApi},
};
use http::HeaderValue;
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    program::{Broken, CLUSTER, Program, resource},
    schedule::Deed,
    wire::Wire,
};

/// The name that the program goes by in both call logs.
pub(crate) const PROGRAM: &str = "reference-program";

/// Time as it passes in this run only, beginning at a fixed date.
struct RunClock(Instant);

impl Clock for RunClock {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000)
            .ok()
            .and_then(|t| t.checked_add(self.0.elapsed()).ok())
            .unwrap_or_default()
    }
}

/// Everything that one run is made of.
pub(crate) struct World {
    pub(crate) api: KubeApi,
    pub(crate) cloud: Cloud,
    pub(crate) clock: Arc<dyn Clock>,
    /// When the owner of a load balancer first said that it may go: by the Service's UID.
    pub(crate) condemned: BTreeMap<String, Tick>,
    /// Load balancers that somebody deleted by hand.
    pub(crate) demolished: BTreeSet<String>,
    people: Client,
    dice: Arc<Dice>,
    broken: Option<Broken>,
    program: Option<JoinHandle<()>>,
}

impl World {
    pub(crate) fn new(seed: u64, broken: Option<Broken>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RunClock(Instant::now()));
        let dice = Arc::new(Dice::seeded(seed ^ 0x5eed));
        let wall = Arc::clone(&clock);
        let api = KubeApi::new(Surroundings::new(seed, move || wall.wall()));
        let manners = Manners {
            latency: Duration::from_millis(200),
            lag: Duration::from_secs(dice.bits() % 10),
            build: Duration::from_secs(dice.bits() % 20),
            quota: 100,
        };
        let cloud = Cloud::new(Arc::clone(&clock), Dice::seeded(seed ^ 0xc10d), manners);
        let people = client(&api, "people", &dice, Duration::ZERO);
        Self {
            api,
            cloud,
            clock,
            condemned: BTreeMap::new(),
            demolished: BTreeSet::new(),
            people,
            dice,
            broken,
            program: None,
        }
    }

    /// Starts the program, or starts it again.
    pub(crate) async fn restart_program(&mut self) {
        if let Some(old) = self.program.take() {
            old.abort();
            // Waits until everything that it held is dropped; the error says that it was told to.
            let _ = old.await;
        }
        let program = Program {
            client: client(&self.api, PROGRAM, &self.dice, Duration::from_millis(50)),
            provider: Arc::new(FakeProvider::new("fake", &self.cloud, PROGRAM, Arc::clone(&self.clock))),
            clock: Arc::clone(&self.clock),
            dice: Arc::new(Dice::seeded(self.dice.bits())),
            broken: self.broken,
        };
        self.program = Some(tokio::spawn(program.run()));
    }

    /// Whether the program is still there; it never ends by itself.
    pub(crate) fn program_lives(&self) -> bool {
        self.program.as_ref().is_some_and(|program| !program.is_finished())
    }

    /// From now on everything goes well.
    pub(crate) fn end_faults(&mut self) {
        self.cloud.stop_faults();
        self.api.clear_faults();
    }

    pub(crate) async fn perform(&mut self, deed: &Deed) {
        match deed {
            Deed::Create { service, ports } => self.create_service(*service, ports).await,
            Deed::SetPorts { service, ports } => {
                self.patch_service(*service, json!({"spec": {"ports": ports_json(ports)}})).await;
            }
            Deed::SetAlgorithm { service, algorithm } => {
                let annotations = json!({"fake.cloudberth.dev/algorithm": algorithm});
                self.patch_service(*service, json!({"metadata": {"annotations": annotations}})).await;
            }
            Deed::SetType { service, load_balancer } => {
                let kind = if *load_balancer { "LoadBalancer" } else { "ClusterIP" };
                if !load_balancer {
                    self.condemn(*service).await;
                }
                self.patch_service(*service, json!({"spec": {"type": kind}})).await;
            }
            Deed::Delete { service } => {
                self.condemn(*service).await;
                // Deleting what is not there is nothing.
                let _ = self.services().delete(&service_name(*service), &DeleteParams::default()).await;
            }
            Deed::AddNode { node } => self.add_node(*node).await,
            Deed::RemoveNode { node } => {
                let name = node_name(*node);
                if let Some(machine) = self.cloud.machines().into_iter().find(|m| m.name == name) {
                    self.cloud.delete_machine(&machine.id);
                }
                let _ = self.nodes().delete(&name, &DeleteParams::default()).await;
            }
            Deed::Exclude { node, excluded } => {
                let value = if *excluded { json!("") } else { Value::Null };
                let labels = json!({"node.kubernetes.io/exclude-from-external-load-balancers": value});
                let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
                let _ = self.nodes().patch(&node_name(*node), &PatchParams::default(), &patch).await;
            }
            Deed::Demolish { service } => self.demolish(*service).await,
            Deed::Crash => self.restart_program().await,
            Deed::Cloud { fault, one_in, seconds } => {
                let (fault, one_in) = (*fault, *one_in);
                let until = self.clock.now() + Duration::from_secs(*seconds);
                let clock = Arc::clone(&self.clock);
                let dice = Dice::seeded(self.dice.bits());
                self.cloud.plan_faults(move |_| {
                    (clock.now() < until && dice.bits().is_multiple_of(one_in)).then_some(fault)
                });
            }
            Deed::Kube { harm, verb, times } => {
                let mut fault = Fault::new(harm.clone());
                PROGRAM.clone_into(&mut fault.user_agent);
                (*verb).clone_into(&mut fault.verb);
                fault.times = Some(*times);
                self.api.add_fault(fault);
            }
            Deed::RestartKube => self.api.restart(),
            Deed::Compact => self.api.compact(),
        }
    }

    async fn create_service(&mut self, service: u8, ports: &[i64]) {
        let spec = json!({"type": "LoadBalancer", "selector": {"app": "x"}, "ports": ports_json(ports)});
        let object = object("Service", &service_name(service), &json!({"spec": spec}));
        // It may be there already.
        let _ = self.services().create(&PostParams::default(), &object).await;
    }

    async fn patch_service(&mut self, service: u8, patch: Value) {
        // It may not be there.
        let _ = self
            .services()
            .patch(&service_name(service), &PatchParams::default(), &Patch::Merge(patch))
            .await;
    }

    async fn condemn(&mut self, service: u8) {
        if let Ok(object) = self.services().get(&service_name(service)).await {
            let uid = object.metadata.uid.unwrap_or_default();
            self.condemned.entry(uid).or_insert_with(|| self.clock.now());
        }
    }

    async fn demolish(&mut self, service: u8) {
        let Ok(object) = self.services().get(&service_name(service)).await else { return };
        let name = format!("{CLUSTER}-{}", object.metadata.uid.unwrap_or_default());
        for balancer in self.cloud.balancers().into_iter().filter(|b| b.name == name) {
            self.cloud.delete_balancer(&balancer.id);
            self.demolished.insert(balancer.id);
        }
    }

    async fn add_node(&mut self, node: u8) {
        let name = node_name(node);
        if self.cloud.machines().iter().any(|m| m.name == name) {
            return;
        }
        let machine = self.cloud.add_machine(&name, "north-1");
        let spec = json!({"providerID": format!("fake://{}", machine.id)});
        let _ =
            self.nodes().create(&PostParams::default(), &object("Node", &name, &json!({"spec": spec}))).await;
    }

    fn services(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.people.clone(), "default", &resource("Service", "services"))
    }

    fn nodes(&self) -> Api<DynamicObject> {
        Api::all_with(self.people.clone(), &resource("Node", "nodes"))
    }

    /// Every Service that there is, as people see it.
    pub(crate) async fn all_services(&self) -> Result<Vec<ServiceView>, String> {
        let list = self.services().list(&ListParams::default()).await.map_err(|e| e.to_string())?;
        let view = |object: DynamicObject| {
            let json = serde_json::to_value(&object).map_err(|e| e.to_string())?;
            ServiceView::from_json(&json).map_err(|e| e.to_string())
        };
        list.items.into_iter().map(view).collect()
    }

    /// The machines of the nodes that take traffic.
    pub(crate) async fn eligible_machines(&self) -> Result<BTreeSet<String>, String> {
        let list = self.nodes().list(&ListParams::default()).await.map_err(|e| e.to_string())?;
        let mut machines = BTreeSet::new();
        for object in list.items {
            let json = serde_json::to_value(&object).map_err(|e| e.to_string())?;
            let node = NodeView::from_json(&json).map_err(|e| e.to_string())?;
            if eligible(&node) {
                machines
                    .extend(node.provider_id.and_then(|id| id.strip_prefix("fake://").map(str::to_owned)));
            }
        }
        Ok(machines)
    }
}

fn client(api: &KubeApi, who: &'static str, dice: &Arc<Dice>, latency: Duration) -> Client {
    let who = HeaderValue::from_static(who);
    Client::new(Wire { api: api.service(), who, dice: Arc::clone(dice), latency }, "default")
}

fn service_name(service: u8) -> String {
    format!("web-{service}")
}

fn node_name(node: u8) -> String {
    format!("node-{node}")
}

fn ports_json(ports: &[i64]) -> Value {
    ports.iter().map(|port| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP"})).collect()
}

fn object(kind: &str, name: &str, rest: &Value) -> DynamicObject {
    let mut object = DynamicObject::new(name, &resource(kind, ""));
    object.data = rest.clone();
    object
}
