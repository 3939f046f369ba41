//! The world of one run: clock, Kubernetes API, clouds, people, and two replicas that may die.

mod backup;
mod mistakes;
mod program;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Clock, Random, Tick, decide::nodeset::eligible::EXCLUDE_LABEL};
use cloudberth_fake::{ALGORITHM, Balancer, Cloud, NODE_SELECTOR, PowerState};
use cloudberth_manager::replica::GRACE;
use embedded_kube::{Fault, KubeApi, Snapshot};
use serde_json::{Value, json};
use sim_kit::Surroundings;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{
    broken::Broken,
    clock::RunClock,
    clouds::{NamedCloud, SimulatedClouds},
    people::{CLUSTER, People, node_name, selector},
    replica::{PROGRAM, Replica},
    schedule::Deed,
    wire::{Cut, Partition, Snare},
    witness::Witness,
};

/// So long after its end an instance may still be listed, and its name is not given to another one.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The steps that were sent to clouds, in words, by Service.
pub(crate) type Steps = BTreeMap<String, Vec<String>>;

/// Somebody walked into a trap that a deed had set.
#[derive(Debug)]
pub(crate) enum Alarm {
    /// The replica that leads asked a cloud for a load balancer.
    Ambush,
    /// The API server comes back, with its backup.
    Restore,
    /// The replica that leads sent a write to a cloud that will take its time.
    Busy,
    /// A write to a node has reached the API server, which waits.
    Snared { node: u8, knows_id: bool, go_on: oneshot::Sender<()> },
}

/// Everything that one run is made of.
pub(crate) struct World {
    pub(crate) api: KubeApi,
    pub(crate) clouds: SimulatedClouds,
    pub(crate) clock: Arc<dyn Clock>,
    /// From when until when the owner of a load balancer said that it may go: by the Service's UID.
    pub(crate) condemned: BTreeMap<String, Vec<(Tick, Option<Tick>)>>,
    /// Load balancers of which a restored backup knows nothing: the cloud's name, and the id. Nobody misses them.
    pub(crate) orphaned: BTreeSet<(&'static str, String)>,
    /// When the API server last came back with a backup.
    restored: Option<Tick>,
    /// Load balancers that are none of ours, as they were built: the cloud's name, and what there was.
    pub(crate) foreign: Vec<(&'static str, Balancer)>,
    /// Annotations that people set by mistake: the Service's number, the key, and the value.
    mistakes: BTreeSet<(u8, &'static str, String)>,
    /// Load balancers that somebody deleted by hand: the cloud's name, and the id.
    pub(crate) demolished: BTreeSet<(&'static str, String)>,
    /// From when until when people let each node live; what the program deleted, the witness knows.
    pub(crate) lives: BTreeMap<String, Vec<(Tick, Option<Tick>)>>,
    /// Sees by true time who leads and who writes.
    pub(crate) witness: Arc<Witness>,
    pub(crate) people: People,
    random: Arc<Random>,
    steps: Arc<Mutex<Steps>>,
    broken: Option<Broken>,
    calm: bool,
    replicas: Vec<Replica>,
    /// The clouds whose credential was swapped.
    swapped: BTreeSet<u8>,
    alarm: mpsc::UnboundedSender<Alarm>,
    snare: Arc<Snare>,
    backup: Option<Snapshot>,
    /// Cuts all replicas off while the API server is down.
    power: Arc<Partition>,
}

impl World {
    pub(crate) fn new(seed: u64, broken: Option<Broken>, alarm: mpsc::UnboundedSender<Alarm>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RunClock(Instant::now()));
        let random = Arc::new(Random::seeded(seed ^ 0x5eed));
        let wall = Arc::clone(&clock);
        let api = KubeApi::new(Surroundings::new(seed, move || wall.wall()));
        let clouds = SimulatedClouds::draw(seed, &clock, &random);
        let people = People::new(&api, &random);
        let witness = Arc::new(Witness::new(api.clone(), clouds.clone(), Arc::clone(&clock)));
        Self {
            api,
            clouds,
            clock,
            condemned: BTreeMap::new(),
            orphaned: BTreeSet::new(),
            restored: None,
            foreign: Vec::new(),
            mistakes: BTreeSet::new(),
            swapped: BTreeSet::new(),
            backup: None,
            power: Arc::default(),
            demolished: BTreeSet::new(),
            lives: BTreeMap::new(),
            witness,
            people,
            random,
            steps: Arc::default(),
            broken,
            calm: false,
            replicas: vec![Replica::new(0), Replica::new(1)],
            snare: Arc::new(Snare::new(alarm.clone())),
            alarm,
        }
    }

    /// The replica that leads by true time, or the other one. While nobody leads, either will do.
    fn slot(&self, leader: bool) -> usize {
        let name = self.witness.leader();
        let leads = self.replicas.iter().position(|replica| replica.identity == name).unwrap_or_default();
        if leader { leads } else { (leads + 1) % self.replicas.len() }
    }

    pub(crate) async fn heed(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Ambush => self.crash(true).await,
            Alarm::Busy => self.retire_leader(),
            Alarm::Restore => self.restore().await,
            Alarm::Snared { node, knows_id, go_on } => {
                self.recreate(node, knows_id).await;
                // Whoever sent the request may be gone; the request goes on.
                let _ = go_on.send(());
            }
        }
    }

    /// The next write to a cloud is slow, and whoever sent it is told to end meanwhile.
    fn interrupt(&self, cloud: u8, seconds: u64) {
        let mut alarm = Some(self.alarm.clone());
        self.clouds.of(cloud).cloud.plan_faults(move |request| {
            let alarm = request.write.then(|| alarm.take()).flatten()?;
            let _ = alarm.send(Alarm::Busy);
            Some(cloudberth_fake::Fault::Stall(Duration::from_secs(seconds)))
        });
    }

    fn lie_in_wait(&self, cloud: u8) {
        let mut alarm = Some(self.alarm.clone());
        self.clouds.of(cloud).cloud.plan_faults(move |request| {
            if request.operation == "create balancer"
                && let Some(alarm) = alarm.take()
            {
                // Once everything goes well nobody listens any more.
                let _ = alarm.send(Alarm::Ambush);
            }
            None
        });
    }

    async fn crash(&mut self, leader: bool) {
        self.restart(self.slot(leader)).await;
    }

    fn retire_leader(&self) {
        let Some(replica) = self.replicas.get(self.slot(true)) else { return };
        replica.retire();
        if self.broken == Some(Broken::LetsGo) {
            let (people, witness, who) =
                (self.people.clone(), Arc::clone(&self.witness), replica.identity.clone());
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                people.let_go(&who).await;
                witness.looks();
            });
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
        self.clouds.iter().for_each(|named_cloud| named_cloud.cloud.stop_faults());
        self.api.clear_faults();
        self.snare.clear();
        self.power.mend();
        for replica in &self.replicas {
            replica.partition.mend();
        }
        self.replace_retired(true).await;
        for name in self.people.tidy_up(&self.clouds).await {
            self.bury(&name);
        }
        for (service, key, value) in std::mem::take(&mut self.mistakes) {
            self.people.take_off(service, key, &value).await;
        }
    }

    pub(crate) async fn perform(&mut self, deed: &Deed) {
        self.replace_retired(false).await;
        let people = self.people.clone();
        match deed {
            Deed::Create { service, ports } => people.create_service(*service, ports, &json!({})).await,
            Deed::CreateCopy { service, of } => self.create_copy(*service, *of).await,
            Deed::CreateNamed { service } => self.create_named(*service).await,
            Deed::SetPorts { service, ports } => people.set_ports(*service, ports).await,
            Deed::SetAlgorithm { service, algorithm } => {
                people.annotate(*service, ALGORITHM.name(), Some((*algorithm).to_owned())).await;
            }
            Deed::SetSelector { service, pool } => {
                people.annotate(*service, NODE_SELECTOR.name(), pool.map(selector)).await;
            }
            Deed::SetType { service, load_balancer } => {
                if !load_balancer {
                    self.condemn(*service).await;
                }
                people.set_type(*service, *load_balancer).await;
            }
            Deed::Delete { service } => {
                self.condemn(*service).await;
                people.delete_service(*service).await;
            }
            Deed::AddForeignService { number } => people.create_foreign_service(*number).await,
            Deed::Join { node, knows_id } => self.join(*node, *knows_id).await,
            // Each cloud keeps the first of its instances.
            Deed::Remove { node } | Deed::Destroy { node, .. } | Deed::Recreate { node, .. } if *node < 2 => {
            }
            Deed::Recreate { node, knows_id } => {
                // A new node is written to soon, and that write finds yet another one.
                self.recreate(*node, *knows_id).await;
                self.snare.set(*node, *knows_id);
            }
            Deed::Remove { node } => self.remove(*node).await,
            Deed::Power { node, on, lag } => {
                let state = if *on { PowerState::Running } else { PowerState::Stopped };
                self.to_instance(*node, |cloud, id| cloud.set_state(id, state));
                self.follow(*node, *lag);
            }
            Deed::Destroy { node, lag } => {
                self.to_instance(*node, Cloud::delete_instance);
                self.follow(*node, *lag);
            }
            Deed::Resize { node, flavor } => self.to_instance(*node, |cloud, id| cloud.resize(id, flavor)),
            Deed::SetPool { node, pool } => people.set_pool(*node, pool).await,
            Deed::Exclude { node, excluded } => {
                people.label(*node, EXCLUDE_LABEL, excluded.then_some("")).await;
            }
            Deed::AddForeignNode { number, initialised } => {
                people.register_foreign(*number, *initialised).await;
            }
            Deed::AddOddNode { cloud } => people.register_odd(self.clouds.of(*cloud).name).await,
            Deed::Demolish { service } => self.demolish(*service).await,
            Deed::Crash { leader } => self.crash(*leader).await,
            Deed::Ambush { cloud } => self.lie_in_wait(*cloud),
            Deed::Retire => self.retire_leader(),
            Deed::Interrupt { cloud, seconds } => self.interrupt(*cloud, *seconds),
            Deed::Partition { leader, silent, seconds } => self.cut_off(*leader, *silent, *seconds),
            Deed::Cloud { cloud, fault, one_in, seconds } => {
                self.plan(*cloud, "", *fault, *one_in, *seconds);
            }
            Deed::Lie { cloud, operation, seconds } => {
                self.plan(*cloud, operation, cloudberth_fake::Fault::Deny, 1, *seconds);
            }
            Deed::Swap { cloud, operation, seconds } => self.swap(*cloud, operation, *seconds),
            Deed::Kube { harm, verb, times } => {
                let mut fault = Fault::new(harm.clone());
                PROGRAM.clone_into(&mut fault.user_agent);
                (*verb).clone_into(&mut fault.verb);
                fault.times = Some(*times);
                self.api.add_fault(fault);
            }
            Deed::Backup => self.backup = Some(self.api.snapshot()),
            Deed::Restore { outage, .. } => self.shut_down(*outage),
            Deed::RestartKube => self.api.restart(),
            Deed::Compact => self.api.compact(),
        }
    }

    /// Lets requests to a cloud go wrong, of one operation or of all, instead of what went wrong before.
    fn plan(
        &self,
        cloud: u8,
        operation: &'static str,
        fault: cloudberth_fake::Fault,
        one_in: u64,
        seconds: u64,
    ) {
        let until = self.clock.now() + Duration::from_secs(seconds);
        let clock = Arc::clone(&self.clock);
        let random = Random::seeded(self.random.bits());
        self.clouds.of(cloud).cloud.plan_faults(move |request| {
            let meant = operation.is_empty() || request.operation == operation;
            (meant && clock.now() < until && random.bits().is_multiple_of(one_in)).then_some(fault)
        });
    }

    /// Swaps the credential of a cloud during the next request of this operation. Not before some node carries an id of
    /// that cloud: without one nobody could tell the accounts apart, and law 1 believes a denial then. And not where a
    /// Service asks for a load balancer by the name that somebody gave it: where that one does not show, the intent to
    /// build it is the only trace of who did, and it would be taken for our own later.
    fn swap(&mut self, cloud: u8, operation: &'static str, seconds: u64) {
        if self.asks_by_name(cloud) {
            return;
        }
        self.swapped.insert(cloud % 2);
        let (api, clock, length) = (self.api.clone(), Arc::clone(&self.clock), Duration::from_secs(seconds));
        let NamedCloud { name, cloud } = self.clouds.of(cloud);
        let prefix = format!("{name}://m-");
        let known = move || {
            let id = |node: &Arc<Value>| {
                node.pointer("/spec/providerID").and_then(Value::as_str).map(str::to_owned)
            };
            api.objects("nodes").iter().filter_map(id).any(|id| id.starts_with(&prefix))
        };
        let mut until = None;
        cloud.plan_faults(move |request| match until {
            None if request.operation == operation && known() => {
                until = Some(clock.now() + length);
                Some(cloudberth_fake::Fault::Swapped)
            }
            Some(until) if clock.now() < until => Some(cloudberth_fake::Fault::OtherAccount),
            _ => None,
        });
    }

    async fn condemn(&mut self, service: u8) {
        self.abandon(service).await;
        if let Some(uid) = self.people.uid(service).await {
            let spans = self.condemned.entry(uid).or_default();
            if spans.last().is_none_or(|(_, until)| until.is_some()) {
                spans.push((self.clock.now(), None));
            }
        }
    }

    async fn demolish(&mut self, service: u8) {
        let Some(uid) = self.people.uid(service).await else { return };
        let name = format!("{CLUSTER}-{uid}");
        let NamedCloud { name: cloud_name, cloud } = self.clouds.of(service);
        for balancer in cloud.balancers().into_iter().filter(|b| b.name == name) {
            cloud.delete_balancer(&balancer.id);
            self.demolished.insert((*cloud_name, balancer.id));
        }
    }

    async fn join(&mut self, node: u8, knows_id: bool) {
        let name = node_name(node);
        let there = self.people.all_nodes().await.is_ok_and(|all| all.iter().any(|other| other.name == name));
        let last = self.lives.get(&name).and_then(|all| all.last()).and_then(|(_, died)| *died);
        let listed = last.is_some_and(|died| self.clock.now().since(died) < REMEMBERED);
        if there || listed || self.clouds.named(&name).is_some() {
            return;
        }
        self.clouds.of(node).cloud.add_instance(&name, "north-1");
        self.register(node, knows_id).await;
    }

    /// The kubelet of a node's instance registers the node.
    async fn register(&mut self, node: u8, knows_id: bool) {
        let name = node_name(node);
        let Some((id, instance)) = self.clouds.named(&name) else { return };
        if let Some(uid) = self.people.register(node, knows_id.then_some(&id)).await {
            self.witness.registered(uid, id, instance.private_ip);
        }
        self.lives.entry(name.clone()).or_default().push((self.clock.now(), None));
        self.people.heartbeat(&self.clouds, &name).await;
    }

    /// A node and its instance make way for others of the same name.
    async fn recreate(&mut self, node: u8, knows_id: bool) {
        let name = node_name(node);
        if self.clouds.named(&name).is_none() {
            return;
        }
        self.to_instance(node, |cloud, id| drop(cloud.replace_instance(id)));
        self.people.delete_node(&name).await;
        self.bury(&name);
        self.register(node, knows_id).await;
    }

    async fn remove(&mut self, node: u8) {
        let name = node_name(node);
        self.to_instance(node, Cloud::delete_instance);
        self.people.delete_node(&name).await;
        self.bury(&name);
    }

    /// People have taken this node away.
    fn bury(&mut self, name: &str) {
        if let Some((_, died)) = self.lives.get_mut(name).and_then(|all| all.last_mut()) {
            died.get_or_insert(self.clock.now());
        }
    }

    fn to_instance(&self, node: u8, deed: impl FnOnce(&Cloud, &str)) {
        if let Some((_, instance)) = self.clouds.named(&node_name(node)) {
            deed(&self.clouds.of(node).cloud, &instance.id);
        }
    }

    /// A while later a node is Ready if its instance runs by then, and otherwise not.
    fn follow(&self, node: u8, lag: u64) {
        let (people, clouds) = (self.people.clone(), self.clouds.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(lag)).await;
            people.heartbeat(&clouds, &node_name(node)).await;
        });
    }
}
