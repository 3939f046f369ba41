//! One of the two copies of the program that run side by side, and the ways in which it ends.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_controllers::{
    clouds::Member, controller_set::ControllerSettings, lifecycle::LifecycleSettings, node::NodeSettings,
    routes::RouteSettings, service::ServiceSettings,
};
use cloudberth_core::{Clock, Random, Result, decide::election::Config};
use cloudberth_fake::FakeProvider;
use cloudberth_manager::{
    plan::{Plan, run_plan},
    replica::{Parts, Replica as Manager},
};
use cloudberth_runtime::metrics::{Metrics, Registry};
use embedded_kube::KubeApi;
use http::HeaderValue;
use kube::Client;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    broken::{Broken, Watched},
    clock::SkewedClock,
    clouds::{NAMES, NamedCloud, SimulatedClouds},
    people::{CLUSTER, CLUSTER_CIDR, class},
    touchy::Touchy,
    wire::{Loss, Partition, Snare, Wire},
    witness::Witness,
    world::Steps,
};

/// What the names of all replicas begin with, in all call logs.
pub(crate) const PROGRAM: &str = "cloudberth";

/// The most that one way of a request to the Kubernetes API takes.
const LATENCY: Duration = Duration::from_millis(50);

/// How long the Kubernetes API may take to list what a plan is about.
const LISTED: Duration = Duration::from_secs(30);

/// What a replica is started with.
pub(crate) struct Site<'a> {
    pub(crate) api: &'a KubeApi,
    pub(crate) clouds: &'a SimulatedClouds,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) random: &'a Arc<Random>,
    pub(crate) witness: &'a Arc<Witness>,
    pub(crate) snare: &'a Arc<Snare>,
    pub(crate) power: &'a Arc<Partition>,
    pub(crate) steps: &'a Arc<Mutex<Steps>>,
    pub(crate) broken: Option<Broken>,
    /// Nothing is going to happen for long.
    pub(crate) calm: bool,
}

/// A place for one copy of the program. A copy that ended is followed by another one, under another name.
pub(crate) struct Replica {
    slot: usize,
    lives: u32,
    pub(crate) identity: String,
    pub(crate) partition: Arc<Partition>,
    task: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
}

impl Replica {
    pub(crate) fn new(slot: usize) -> Self {
        Self {
            slot,
            lives: 0,
            identity: String::new(),
            partition: Arc::default(),
            task: None,
            stop: watch::Sender::new(false),
        }
    }

    /// Starts a copy with a clock and a name of its own. What ran before must have ended. One that cannot be made is
    /// missed by whoever asks whether it lives.
    pub(crate) fn start(&mut self, site: &Site<'_>) {
        self.lives += 1;
        self.identity = format!("{PROGRAM}-{}.{}", self.slot, self.lives);
        self.stop = watch::Sender::new(false);
        let clock = SkewedClock::draw(site.clock, site.random);
        // If both were slow, the other one would wait for as long as this one goes on.
        let slow = site.broken == Some(Broken::SlowClock) && self.slot == 0;
        let clock: Arc<dyn Clock> = Arc::new(if slow { clock.slow() } else { clock });
        let Ok(manager) = self.manager(site, &clock) else { return };
        if let Some(election) = manager.election() {
            site.witness.meet(&self.identity, election, &clock);
        }
        let mut stop = self.stop.subscribe();
        self.task = Some(tokio::spawn(async move {
            manager.run(async move { drop(stop.wait_for(|told| *told).await) }).await;
        }));
    }

    fn manager(&self, site: &Site<'_>, clock: &Arc<dyn Clock>) -> Result<Manager> {
        let wire = Wire {
            api: site.api.service(),
            who: HeaderValue::from_str(&self.identity).unwrap_or(HeaderValue::from_static(PROGRAM)),
            random: Arc::clone(site.random),
            latency: LATENCY,
            partition: Arc::clone(&self.partition),
            power: Arc::clone(site.power),
            witness: Some(Arc::clone(site.witness)),
            snare: Some(Arc::clone(site.snare)),
            loses: match site.broken {
                Some(Broken::NoIntent) => Some(Loss::Intent),
                Some(Broken::NoNodeUid) => Some(Loss::NodeUid),
                _ => None,
            },
        };
        let member = |named_cloud| self.member(named_cloud, site, clock);
        Manager::new(Parts {
            client: Client::new(wire.clone(), "default"),
            lease_client: Client::new(wire, "default"),
            clouds: site.clouds.iter().map(member).collect(),
            default_cloud: NAMES.first().map(|name| (*name).to_owned()),
            cluster_name: CLUSTER.to_owned(),
            controllers: controllers(),
            election: Some(self.election(site.calm)),
            migration: None,
            metrics: Metrics::new(&mut Registry::default()),
            clock: Arc::clone(clock),
            random: Arc::new(Random::seeded(site.random.bits())),
        })
    }

    /// In calm times the Lease is renewed less often: that is most of what there is to simulate then, and of no interest.
    fn election(&self, calm: bool) -> Config {
        let config = Config::with_defaults(&self.identity);
        let times = if calm { 10 } else { 1 };
        Config {
            lease_duration: config.lease_duration * times,
            renew_deadline: config.renew_deadline * times,
            retry_period: config.retry_period * times,
            ..config
        }
    }

    fn member(&self, named_cloud: &NamedCloud, site: &Site<'_>, clock: &Arc<dyn Clock>) -> Member {
        let inner =
            FakeProvider::new(named_cloud.name, &named_cloud.cloud, &self.identity, Arc::clone(clock));
        let (clock, steps) = (Arc::clone(clock), Arc::clone(site.steps));
        let provider = Watched { inner, broken: site.broken, clock, steps };
        (Arc::new(Touchy(Arc::new(provider))), BTreeSet::from([class(named_cloud.name)]))
    }

    /// Ends it at whatever it is doing, without a word.
    pub(crate) async fn kill(&mut self, witness: &Witness) {
        if let Some(task) = self.task.take() {
            task.abort();
            // Waits until everything that it held is dropped; the error says that it was told to.
            let _ = task.await;
        }
        witness.bury(&self.identity);
    }

    /// Tells it to finish what it is at, let go of the Lease, and end.
    pub(crate) fn retire(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn is_retiring(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits for one that was told to end.
    pub(crate) async fn retired(&mut self, witness: &Witness) {
        if let Some(task) = self.task.take() {
            // One that died of something else is missed by whoever asks whether it lives.
            let _ = task.await;
        }
        witness.bury(&self.identity);
    }

    /// Whether it is still there; it never ends by itself.
    pub(crate) fn lives(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }
}

/// What a program that is started for a plan says it would do.
pub(crate) async fn plan(site: &Site<'_>) -> Result<Plan> {
    let planner = Replica { identity: format!("{PROGRAM}-plan"), ..Replica::new(0) };
    let clock: Arc<dyn Clock> = Arc::new(SkewedClock::draw(site.clock, site.random));
    let manager = planner.manager(site, &clock)?;
    Ok(run_plan(manager.ctx(), &controllers(), LISTED).await)
}

/// Every controller, as the flags have it by default.
fn controllers() -> ControllerSettings {
    ControllerSettings {
        node: Some(NodeSettings::default()),
        lifecycle: Some(LifecycleSettings { workers: 1, ..LifecycleSettings::default() }),
        service: Some(ServiceSettings::default()),
        routes: Some(RouteSettings {
            configure_cloud_routes: true,
            cluster_cidr: CLUSTER_CIDR.to_owned(),
            period: Duration::from_secs(10),
        }),
    }
}
