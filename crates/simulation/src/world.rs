//! The world of one run: clock, Kubernetes API, cloud, people, and two replicas that may die.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use cloudberth_core::{Clock, Dice, NodeView, ServiceView, Tick, decide::nodeset::eligible::eligible};
use cloudberth_fake::{Cloud, Manners};
use cloudberth_sim::{
    Surroundings,
    kube::{Fault, KubeApi},
};
use http::HeaderValue;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    clock::RunClock,
    program::{Broken, CLUSTER, resource},
    replica::{PROGRAM, Replica, Site},
    schedule::Deed,
    wire::{Cut, Wire},
    witness::Witness,
};

/// Everything that one run is made of.
pub(crate) struct World {
    pub(crate) api: KubeApi,
    pub(crate) cloud: Cloud,
    pub(crate) clock: Arc<dyn Clock>,
    /// When the owner of a load balancer first said that it may go: by the Service's UID.
    pub(crate) condemned: BTreeMap<String, Tick>,
    /// Load balancers that somebody deleted by hand.
    pub(crate) demolished: BTreeSet<String>,
    /// Sees by true time who leads and who writes.
    pub(crate) witness: Arc<Witness>,
    people: Client,
    dice: Arc<Dice>,
    broken: Option<Broken>,
    replicas: Vec<Replica>,
}

impl World {
    pub(crate) fn new(seed: u64, broken: Option<Broken>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RunClock(Instant::now()));
        let dice = Arc::new(Dice::seeded(seed ^ 0x5eed));
        let wall = Arc::clone(&clock);
        let api = KubeApi::new(Surroundings::new(seed, move || wall.wall()));
        let manners = Manners {
            latency: Duration::from_millis(200),
            lag: Duration::from_secs(dice.bits() % 30),
            build: Duration::from_secs(dice.bits() % 20),
            quota: 100,
        };
        let cloud = Cloud::new(Arc::clone(&clock), Dice::seeded(seed ^ 0xc10d), manners);
        let people = people(&api, &dice);
        let witness = Arc::new(Witness::new(api.clone(), Arc::clone(&clock)));
        Self {
            api,
            cloud,
            clock,
            condemned: BTreeMap::new(),
            demolished: BTreeSet::new(),
            witness,
            people,
            dice,
            broken,
            replicas: vec![Replica::new(0), Replica::new(1)],
        }
    }

    /// Starts both replicas, or starts them again: they know nothing and see everything for the first time.
    pub(crate) async fn restart_program(&mut self) {
        for slot in 0..self.replicas.len() {
            self.restart(slot).await;
        }
    }

    async fn restart(&mut self, slot: usize) {
        let Self { api, cloud, clock, dice, witness, broken, replicas, .. } = self;
        let site = Site { api, cloud, clock, dice, witness, broken: *broken };
        if let Some(replica) = replicas.get_mut(slot) {
            replica.kill(witness).await;
            replica.start(&site);
        }
    }

    /// Starts a successor for each replica that was told to end and has, or must.
    async fn replace_retired(&mut self, wait: bool) {
        for slot in 0..self.replicas.len() {
            let Some(replica) = self.replicas.get_mut(slot).filter(|replica| replica.is_retiring()) else {
                continue;
            };
            if wait || !replica.lives() {
                replica.retired(&self.witness).await;
                self.restart(slot).await;
            }
        }
    }

    /// The replica that leads by true time, or the other one. While nobody leads, either will do.
    fn slot(&self, leader: bool) -> usize {
        let name = self.witness.leader();
        let leads = self.replicas.iter().position(|replica| replica.identity == name).unwrap_or_default();
        if leader { leads } else { (leads + 1) % self.replicas.len() }
    }

    async fn crash(&mut self, leader: bool) {
        self.restart(self.slot(leader)).await;
    }

    fn retire_leader(&self) {
        if let Some(replica) = self.replicas.get(self.slot(true)) {
            replica.retire();
        }
    }

    fn cut_off(&self, leader: bool, silent: bool, seconds: u64) {
        let Some(replica) = self.replicas.get(self.slot(leader)) else { return };
        let partition = Arc::clone(&replica.partition);
        partition.cut(if silent { Cut::Silent } else { Cut::Refused });
        // What was being streamed to it ends; the other replica takes its watches up again at once.
        self.api.restart();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            partition.mend();
        });
    }

    /// Whether both replicas are still there; they never end by themselves.
    pub(crate) fn program_lives(&self) -> bool {
        self.replicas.iter().all(Replica::lives)
    }

    /// From now on everything goes well.
    pub(crate) async fn end_faults(&mut self) {
        self.cloud.stop_faults();
        self.api.clear_faults();
        for replica in &self.replicas {
            replica.partition.mend();
        }
        self.replace_retired(true).await;
    }

    pub(crate) async fn perform(&mut self, deed: &Deed) {
        self.replace_retired(false).await;
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
            Deed::Crash { leader } => self.crash(*leader).await,
            Deed::Retire => self.retire_leader(),
            Deed::Partition { leader, silent, seconds } => self.cut_off(*leader, *silent, *seconds),
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

fn people(api: &KubeApi, dice: &Arc<Dice>) -> Client {
    let wire = Wire {
        api: api.service(),
        who: HeaderValue::from_static("people"),
        dice: Arc::clone(dice),
        latency: Duration::ZERO,
        partition: Arc::default(),
        witness: None,
    };
    Client::new(wire, "default")
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
