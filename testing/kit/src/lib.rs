//! A cluster and its clouds, in memory and on virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot set up its fixture has failed"
)]

pub mod checks;
pub mod crashes;
mod hooked;
mod people;
pub mod recovery;
pub mod seeded;
pub mod seeds;
pub mod takeover;
mod token_file;

use std::{collections::BTreeSet, fmt, ops::Deref, sync::Arc, time::Duration};

use cloudberth_controllers::{
    clouds::Clouds,
    context::ControllerContext,
    inventory::{Inventory, SurveyFleet},
};
use cloudberth_core::{
    Clock, Provider, Random, Tick,
    call::{Gate, Unguarded},
    lb::Fleet,
};
use cloudberth_fake::{Cloud, FakeProvider, SimSettings};
use cloudberth_runtime::{
    cluster::Cluster,
    metrics::{Metrics, Registry},
    recorder::EventRecorder,
};
use embedded_kube::{Call, KubeApi};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sim_kit::Surroundings;
use tokio::{
    task::{AbortHandle, JoinHandle},
    time::Instant,
};

pub use hooked::Hooks;
pub use people::People;
pub use token_file::{TokenFile, first_sent_elsewhere};

/// The instances of a cloud, as all Services of one survey that is begun now see them.
pub fn fleet(provider: Arc<dyn Provider>, clock: &Arc<dyn Clock>) -> Arc<dyn Fleet> {
    let inventory = Arc::new(Inventory::new(provider, Arc::clone(clock)));
    Arc::new(SurveyFleet::new(inventory, clock.now()))
}

/// The name that the program goes by in the clouds' logs.
pub const PROGRAM: &str = "program";

struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap() + self.0.elapsed()
    }
}

/// A cluster with its clouds, and the context of one program that works on them.
pub struct ClusterFixture {
    /// The cluster, with the log of its calls.
    pub api: KubeApi,
    /// The clouds, `alpha` first, then `beta`.
    pub clouds: Vec<Cloud>,
    /// The time of the test.
    pub clock: Arc<dyn Clock>,
    /// What the program under test works with.
    pub ctx: ControllerContext,
    names: Vec<String>,
    people: People,
    running: Vec<JoinHandle<()>>,
}

impl Drop for ClusterFixture {
    fn drop(&mut self) {
        self.running.iter().for_each(JoinHandle::abort);
    }
}

/// What people and kubelets do to the cluster.
impl Deref for ClusterFixture {
    type Target = People;

    fn deref(&self) -> &People {
        &self.people
    }
}

impl fmt::Debug for ClusterFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterFixture").field("clouds", &self.names).finish_non_exhaustive()
    }
}

impl Default for ClusterFixture {
    fn default() -> Self {
        Self::new()
    }
}

type Member = (Arc<dyn Provider>, BTreeSet<String>);

fn fakes(names: &[String], clouds: &[Cloud], clock: &Arc<dyn Clock>) -> Vec<Member> {
    let member = |(name, cloud): (&String, &Cloud)| {
        let provider = FakeProvider::new(name, cloud, PROGRAM, Arc::clone(clock));
        (Arc::new(provider) as Arc<dyn Provider>, BTreeSet::from([format!("{name}.example/lb")]))
    };
    names.iter().zip(clouds).map(member).collect()
}

fn ctx(
    members: Vec<Member>,
    client: &Client,
    clock: &Arc<dyn Clock>,
    gate: Arc<dyn Gate>,
) -> ControllerContext {
    let default = members.first().map(|(provider, _)| provider.name().to_owned());
    let clouds = Clouds::new(members, default, clock).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    let cluster = Cluster::new(client.clone(), Arc::clone(clock), gate)
        .with_endpoints(clouds.need_endpoints())
        .metered(&metrics.queues);
    let random = Arc::new(Random::seeded(1));
    let recorder = EventRecorder::new(cluster.writer().clone(), Arc::clone(&random));
    ControllerContext { cluster, clouds, recorder, metrics, random, cluster_name: "test".into() }
}

fn cluster(clock: &Arc<dyn Clock>) -> (KubeApi, People) {
    let wall = Arc::clone(clock);
    let api = KubeApi::new(Surroundings::new(7, move || wall.wall()));
    let people = People::of(&api);
    (api, people)
}

impl ClusterFixture {
    /// A cluster with one cloud, `alpha`, that is quick and never hides anything.
    pub fn new() -> Self {
        Self::with(&["alpha"], |_| {})
    }

    /// A cluster with these clouds, whose settings are set by `adjust`. The first serves Services without a class.
    pub fn with(names: &[&str], adjust: impl Fn(&mut SimSettings)) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Paused(Instant::now()));
        let (api, people) = cluster(&clock);
        let mut settings =
            SimSettings { latency: Duration::from_millis(20), quota: 1_000, ..SimSettings::default() };
        adjust(&mut settings);
        let cloud = |seed| Cloud::new(Arc::clone(&clock), Random::seeded(seed), settings);
        let clouds: Vec<_> = (0..).take(names.len()).map(cloud).collect();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let ctx = ctx(fakes(&names, &clouds, &clock), people.client(), &clock, Arc::new(Unguarded));
        Self { api, clouds, clock, ctx, names, people, running: Vec::new() }
    }

    /// A cluster on another cloud than the fake one. The provider uses the clock of the fixture.
    pub fn on(provider: impl FnOnce(&Arc<dyn Clock>) -> Arc<dyn Provider>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Paused(Instant::now()));
        let (api, people) = cluster(&clock);
        let provider = provider(&clock);
        let names = vec![provider.name().to_owned()];
        let ctx = ctx(vec![(provider, BTreeSet::new())], people.client(), &clock, Arc::new(Unguarded));
        Self { api, clouds: Vec::new(), clock, ctx, names, people, running: Vec::new() }
    }

    /// Kills everything that runs, and gives the next program a new context and this provider.
    pub fn reboot_with(&mut self, provider: Arc<dyn Provider>) {
        self.reboot_behind(provider, Arc::new(Unguarded));
    }

    /// The same, with a program that writes as far as `gate` allows.
    pub fn reboot_behind(&mut self, provider: Arc<dyn Provider>, gate: Arc<dyn Gate>) {
        self.running.drain(..).for_each(|task| task.abort());
        let members = vec![(provider, BTreeSet::new())];
        self.ctx = ctx(members, self.people.client(), &self.clock, gate);
    }

    /// A new context for another program in the same cluster, which writes as far as `gate` allows.
    pub fn another_context(&self, gate: Arc<dyn Gate>) -> ControllerContext {
        ctx(fakes(&self.names, &self.clouds, &self.clock), self.people.client(), &self.clock, gate)
    }

    /// Runs `part` until the fixture is dropped, or until it is aborted as if the program were killed.
    pub fn run(&mut self, part: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let task = tokio::spawn(part);
        let handle = task.abort_handle();
        self.running.push(task);
        handle
    }

    /// Kills everything that runs, and gives the next program a new context.
    pub fn reboot(&mut self) {
        self.running.drain(..).for_each(|task| task.abort());
        let cluster =
            Cluster::new(self.people.client().clone(), Arc::clone(&self.clock), Arc::new(Unguarded))
                .with_endpoints(self.ctx.clouds.need_endpoints());
        self.ctx.recorder = EventRecorder::new(cluster.writer().clone(), Arc::clone(&self.ctx.random));
        self.ctx.cluster = cluster;
    }

    /// Runs the watches and the event recorder.
    pub fn run_watches(&mut self) {
        let ControllerContext { cluster, recorder, random, .. } = self.ctx.clone();
        self.run(async move { cluster.watch(&random).await });
        self.run(async move { recorder.run().await });
    }

    /// An instance in the first cloud, and its kubelet that registers a node which waits for its cloud.
    pub async fn join(&self, name: &str) {
        self.clouds[0].add_instance(name, "north-1");
        let taint = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"});
        self.create(&self.nodes(), "Node", name, json!({"spec": {"taints": [taint]}})).await;
    }

    /// An instance in a cloud and its node, Ready and initialised. Returns the instance's id.
    pub async fn member(&self, cloud: usize, name: &str) -> String {
        let id = self.clouds[cloud].add_instance(name, "north-1").id;
        self.register(name, Some(&format!("{}://{id}", ["alpha", "beta"][cloud]))).await;
        id
    }

    /// The events about an object of this name, as `Type Reason: message`, in the order in which they were first
    /// published, each as often as it was published.
    pub fn events(&self, about: &str) -> Vec<String> {
        let text = |event: &Value, path: &str| {
            event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let mut events: Vec<_> = self.api.objects("events").iter().map(|event| Value::clone(event)).collect();
        events.retain(|event| text(event, "/involvedObject/name") == about);
        events.sort_by_key(|event| text(event, "/metadata/name").rsplit('.').next().map(str::to_owned));
        let line =
            |e: &Value| format!("{} {}: {}", text(e, "/type"), text(e, "/reason"), text(e, "/message"));
        // A repeated event only raises the count.
        let times = |e: &Value| {
            e.get("count").and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok()).unwrap_or(1)
        };
        events.iter().flat_map(|event| std::iter::repeat_n(line(event), times(event))).collect()
    }

    /// The writes since a revision of the call log.
    pub fn writes(&self, since: u64) -> Vec<Call> {
        self.api.calls(since).into_iter().filter(Call::is_write).collect()
    }

    /// Lets virtual time pass.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}
