//! What the kit has to know of a cloud before it lets chance, crashes and outages loose on it.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::{Random, Tick};
use serde_json::Value;
use sim_kit::{Entry, Harm, Request, merge};

use crate::checks::{CloudFixture, CloudUnderTest};

/// What keeps a Service until its load balancer is gone.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// What says that a load balancer is about to be created.
pub const INTENT: &str = "cloudberth.dev/intent";

/// The ports of a load balancer, and behind each the names of the instances that take its traffic, in order. An instance
/// that is behind a port twice is there twice.
pub type Shape = BTreeMap<u16, Vec<String>>;

/// How many things of each kind there are.
pub type Parts = BTreeMap<&'static str, usize>;

/// Decides for each request what goes wrong with it, if anything.
pub type FaultPlan = Box<dyn FnMut(&Request) -> Option<Harm> + Send>;

/// A request that has reached the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// When it was sent.
    pub sent: Tick,
    /// The operation, as in [`Request::operation`].
    pub operation: String,
    /// It would change something.
    pub mutation: bool,
    /// It was carried out and did not fail, whatever the program heard of it.
    pub succeeded: bool,
}

impl From<Entry> for Reached {
    fn from(entry: Entry) -> Self {
        let Entry { sent, operation, mutation, outcome, .. } = entry;
        Self { sent, operation, mutation, succeeded: outcome.succeeded() }
    }
}

/// A cloud that the kit can play with by itself: it makes Services up, breaks requests and looks what came of it.
///
/// Bodies of Services are merged over a plain one: type `LoadBalancer`, port 80 over TCP.
pub trait SeededCloud: CloudUnderTest {
    /// Puts into an empty cloud what the Services of [`SeededCloud::new_service`] and [`SeededCloud::life`] need to be
    /// there, such as floating addresses. By default nothing.
    fn prepare(&self) {}

    /// Draws how the cloud behaves from now on: how long it takes, and what it may do in one way or another without
    /// breaking its promises.
    fn vary(&self, random: &Random);

    /// Draws what is the matter with the cloud for the next few seconds, beside what befalls single requests: tokens that
    /// are refused, lists that change while they are read. [`SeededCloud::stop_faults`] ends it. By default nothing.
    fn draw_trouble(&self, _random: &Random) {}

    /// How long it takes until somebody does something again. By default a few seconds; longer ones are for what a cloud
    /// does long after it was asked.
    fn pause(&self, random: &Random) -> Duration {
        Duration::from_millis(pick(random, 4_000))
    }

    /// Within this many seconds after its restart a program has done everything, whatever it was doing when it died.
    fn patience(&self) -> u64 {
        120
    }

    /// From now on a load balancer is built in this time.
    fn set_build_time(&self, build: Duration);

    /// A Service that somebody may want beside these others, which are in the cluster now.
    fn new_service(&self, random: &Random, name: &str, others: &BTreeMap<String, Value>) -> Value;

    /// An edit that gives a Service ports other than a plain one has.
    fn other_ports(&self, random: &Random) -> Value;

    /// An edit of something else than ports that takes nothing away from other Services.
    fn other_setting(&self, random: &Random) -> Value;

    /// The life of one Service, with as many parts as this cloud has: the Service as it is created, then edits, at least
    /// two, the first of them of its ports.
    fn life(&self) -> Vec<Value>;

    /// Something that can go wrong with a request. By default an honest API behind a bad network.
    fn misfortune(&self, random: &Random) -> Harm {
        misfortune(random)
    }

    /// The plan decides about every request from now on, in place of an earlier one.
    fn plan_faults(&self, plan: FaultPlan);

    /// Everything goes well from now on.
    fn stop_faults(&self);

    /// From now on, or no longer, no connection to the cloud comes about.
    fn refuse_connections(&self, refuse: bool);

    /// How many connections were refused so far.
    fn refused_connections(&self) -> usize;

    /// Every request so far, in the order in which they took effect.
    fn reached(&self) -> Vec<Reached>;

    /// The operations that make something, that of the load balancer first.
    fn creations(&self) -> &'static [&'static str];

    /// Destroys an instance, given by its provider id.
    fn remove_instance(&self, provider_id: &str);

    /// What a load balancer does now.
    fn shape(&self, balancer: &str) -> Shape;

    /// What a Service publishes whose load balancer this is: addresses or host names.
    fn published(&self, balancer: &str) -> Vec<String>;

    /// Everything that is there for load balancers, whosoever.
    fn parts(&self) -> Parts;

    /// What [`SeededCloud::parts`] has to be when these wishes are fulfilled, and nothing else is there.
    fn expected_parts(&self, wishes: &Wishes) -> Parts;

    /// Asserts what else holds in this cloud when wishes are fulfilled. `balancers` has the load balancer of each Service.
    fn assert_more(&self, _wishes: &Wishes, _balancers: &BTreeMap<String, String>, _case: &str) {}
}

/// Below `bound`.
pub fn pick(random: &Random, bound: u64) -> u64 {
    random.bits() % bound
}

/// What a request may meet: an honest API, a bad network.
pub fn misfortune(random: &Random) -> Harm {
    let millis = 10 + pick(random, 3_000);
    let busy = |code| Harm::Status { code, retry_after: u32::try_from(1 + pick(random, 5)).ok() };
    match pick(random, 10) {
        0 => Harm::status(500),
        1 => Harm::status(502),
        2 => busy(503),
        3 => busy(429),
        4 => Harm::status(401),
        5 => Harm::LostCall,
        6 | 7 => Harm::LostAnswer,
        8 => Harm::Truncated,
        _ => Harm::Latency { millis },
    }
}

/// What people want now: the Services as they wrote them, and the nodes with their provider ids.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The Services by name.
    pub services: BTreeMap<String, Value>,
    /// The provider ids of the nodes by name.
    pub nodes: BTreeMap<String, String>,
}

impl Wishes {
    /// The ports that a Service asks for, in order.
    pub fn ports(&self, service: &str) -> Vec<u16> {
        let wished = self.services[service].pointer("/spec/ports").and_then(Value::as_array);
        let number = |port: &Value| u16::try_from(port["port"].as_u64().unwrap()).unwrap();
        let mut ports: Vec<_> = wished.map_or(vec![80], |all| all.iter().map(number).collect());
        ports.sort_unstable();
        ports
    }

    /// The ports of all Services together.
    pub fn all_ports(&self) -> usize {
        self.services.keys().map(|name| self.ports(name).len()).sum()
    }

    /// Somebody creates a Service.
    pub async fn create<C: SeededCloud>(&mut self, fixture: &CloudFixture<C>, name: &str, body: Value) {
        fixture.create(name, body.clone()).await;
        self.services.insert(name.to_owned(), body);
    }

    /// Somebody edits a Service.
    pub async fn edit<C: SeededCloud>(&mut self, fixture: &CloudFixture<C>, name: &str, body: Value) {
        fixture.edit(name, body.clone()).await;
        merge(self.services.get_mut(name).unwrap(), body);
    }

    /// Somebody deletes a Service.
    pub async fn delete<C: SeededCloud>(&mut self, fixture: &CloudFixture<C>, name: &str) {
        fixture.delete(name).await;
        self.services.remove(name);
    }

    /// An instance and its node come.
    pub async fn join<C: SeededCloud>(&mut self, fixture: &CloudFixture<C>, name: &str) {
        self.nodes.insert(name.to_owned(), fixture.node(name).await);
    }

    /// A node goes. Returns the provider id of its instance, which stays.
    pub async fn drain<C: SeededCloud>(&mut self, fixture: &CloudFixture<C>, name: &str) -> String {
        fixture.cluster.delete(&fixture.cluster.nodes(), name).await;
        self.nodes.remove(name).unwrap()
    }

    /// Asserts that every Service has exactly one load balancer that does what the Service says, and that nothing else
    /// is there.
    pub async fn assert_fulfilled<C: SeededCloud>(&self, fixture: &CloudFixture<C>, case: &str) {
        let mut balancers = BTreeMap::new();
        for name in self.services.keys() {
            let service = fixture.service(name).await.unwrap();
            let events = || fixture.cluster.events(name);
            let id = service.annotations.get(fixture.cloud.id_annotation());
            let id = id.unwrap_or_else(|| panic!("{case} {name} has no load balancer: {:?}", events()));
            let nodes: Vec<_> = self.nodes.keys().cloned().collect();
            let want: Shape = self.ports(name).into_iter().map(|port| (port, nodes.clone())).collect();
            assert_eq!(fixture.cloud.shape(id), want, "{case} {name}: {:?}", events());
            let mut shown = fixture.ingress(name).await;
            let mut published = fixture.cloud.published(id);
            shown.sort();
            published.sort();
            assert!(!shown.is_empty(), "{case} {name}: {:?}", events());
            assert_eq!(shown, published, "{case} {name}");
            assert_eq!(service.annotations.get(INTENT), None, "{case} {name}");
            assert!(service.finalizers.contains(&FINALIZER.to_owned()), "{case} {name}");
            balancers.insert(name.clone(), id.clone());
        }
        let mut ids: Vec<_> = balancers.values().cloned().collect();
        ids.sort();
        let mut there = fixture.cloud.balancers();
        there.sort();
        assert_eq!(there, ids, "L6-807 {case}: nothing leaked, nothing doubled");
        let want = fixture.cloud.expected_parts(self);
        assert_eq!(fixture.cloud.parts(), want, "L6-808 {case}: no part is too many");
        for name in self.nodes.keys() {
            assert!(fixture.cluster.node(name).await.is_some(), "L2-820 {case}: node {name} is lost");
        }
        fixture.cloud.assert_more(self, &balancers, case);
    }
}

impl<C: SeededCloud> CloudFixture<C> {
    /// Lets time pass, and asserts that nothing is written in the cluster and that no change is asked of the cloud, not
    /// even one that fails.
    pub async fn assert_rest(&self, seconds: u64, case: &str) {
        let had = self.cloud.reached().len();
        let kube = self.kube_calls();
        self.pass(seconds).await;
        assert_eq!(self.changes_since(had), [""; 0], "{case}: nothing is asked of the cloud");
        assert_eq!(self.cluster.writes(kube), [], "{case}: nothing is written in the cluster");
    }

    /// The operations that asked for a change, without the first `had` requests.
    pub fn changes_since(&self, had: usize) -> Vec<String> {
        let new = self.cloud.reached().into_iter().skip(had);
        new.filter(|request| request.mutation).map(|request| request.operation).collect()
    }

    /// How many load balancers were created so far, also those that are gone.
    pub fn created(&self) -> usize {
        let operation = self.cloud.creations()[0];
        let made = |request: &&Reached| request.operation == operation && request.succeeded;
        self.cloud.reached().iter().filter(made).count()
    }
}
