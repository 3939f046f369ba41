//! How a world begins, what keeps it moving, and how it ends.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{Call, Clock, ObjectKey, Random, ServiceView, call::Unguarded};
use cloudberth_manager::connect::{Address, configure};
use cloudberth_runtime::{
    connect::{Dialler, Throttle},
    metrics::RestMetrics,
};
use embedded_kube::{KubeApi, User};
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::{Client, client::Body};
use sim_kit::Surroundings;
use tokio::task::{AbortHandle, JoinSet};
use tower::ServiceExt as _;

use super::{
    Journal, Kubelets, Managers, NodePorts, Objects, Rates, Visitors, World,
    clouds::{self, Around, WorldCloud},
    kubelets::HEARTBEAT,
    view::Counters,
    visitors::come,
    wire::Wire,
};

/// How long a Kubernetes API may take to show what there is.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often counters are read.
const PULSE: Duration = Duration::from_secs(1);

/// In which cluster a world is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// One of its own, in the memory of this process.
    Embedded,
    /// The one that a kubeconfig file names.
    Real(PathBuf),
}

/// How a world is to be.
#[derive(Clone)]
pub struct WorldSettings {
    /// One of [`super::PROVIDERS`].
    pub provider: String,
    /// In which cluster.
    pub cluster: Cluster,
    /// How many replicas of the manager are started.
    pub managers: usize,
    /// How many instances there are in the beginning.
    pub nodes: u32,
    /// How many requests per second go through each load balancer, where there is traffic.
    pub requests_per_second: u32,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<Random>,
}

impl std::fmt::Debug for WorldSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorldSettings")
            .field("provider", &self.provider)
            .field("cluster", &self.cluster)
            .field("managers", &self.managers)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

impl World {
    /// Starts everything, and returns when every watch has shown what there is and the first instances have nodes. It
    /// needs a tokio runtime, and moves only as long as that runs.
    pub async fn start(settings: WorldSettings) -> Result<Arc<Self>, String> {
        let WorldSettings { provider, cluster, managers, nodes, requests_per_second, clock, random } =
            settings;
        let journal = Arc::new(Journal::new(Arc::clone(&clock)));
        let wire = Wire::new(Arc::clone(&journal));
        let around = Around { wire, clock: Arc::clone(&clock), random: Arc::clone(&random) };
        let cloud: Arc<dyn WorldCloud> = Arc::from(clouds::open(&provider, &around)?);
        let (server, people, api) = match &cluster {
            Cluster::Embedded => {
                let (client, api) = embedded(&clock, &random);
                (client.clone(), client, Some(api))
            }
            Cluster::Real(file) => {
                let client = real(file.clone(), &clock).await?;
                (client.clone(), without_claim(client, &clock), None)
            }
        };
        let objects = Arc::new(Objects::new(Arc::clone(&journal)));
        let manager = Managers::new(server, Arc::clone(&cloud), around.clone(), Arc::clone(&journal));
        let world = Arc::new(Self {
            provider: cloud.provider(&around)?,
            managers: manager,
            kubelets: Kubelets::new(people.clone()),
            node_ports: Arc::new(NodePorts::default()),
            visitors: Arc::new(Visitors::new(requests_per_second)),
            rates: Arc::new(Mutex::new(Rates::default())),
            added: Mutex::new(0),
            tasks: Mutex::default(),
            clock,
            journal,
            objects,
            cloud,
            around,
            people,
            api,
        });
        world.keep_moving();
        world.all_is_seen().await?;
        if cluster != Cluster::Embedded {
            world.enter_foreign_cluster().await?;
        }
        for _ in 0..managers {
            world.start_manager()?;
        }
        for _ in 0..nodes {
            world.add_instance().await?;
        }
        Ok(world)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }

    /// Nothing that runs on keeps the world alive.
    fn keep_moving(&self) {
        let (objects, client) = (Arc::clone(&self.objects), self.people.clone());
        self.spawn(async move { objects.follow(&client).await });
        if self.has_traffic() {
            self.spawn(follow_node_ports(
                Arc::clone(&self.node_ports),
                Arc::clone(&self.cloud),
                Arc::clone(&self.objects),
                Arc::clone(&self.journal),
            ));
        }
        self.spawn(Pulse::new(self).beat());
        if self.api.is_none() {
            let (kubelets, objects, cloud) =
                (self.kubelets.clone(), Arc::clone(&self.objects), Arc::clone(&self.cloud));
            let clock = Arc::clone(&self.clock);
            self.spawn(async move {
                loop {
                    tokio::time::sleep(HEARTBEAT).await;
                    let running = cloud.instances().into_iter().filter(|instance| instance.running);
                    for instance in running.filter(|instance| objects.has_node(&instance.name)) {
                        // The next one is soon enough.
                        let _ = kubelets.report(&instance.name, true, clock.wall()).await;
                    }
                }
            });
        }
    }

    async fn all_is_seen(&self) -> Result<(), String> {
        let mut changes = self.journal.changes();
        let seen = async {
            while !self.objects.complete()? {
                tokio::select! {
                    _ = changes.changed() => {}
                    () = tokio::time::sleep(PULSE) => {}
                }
            }
            Ok(())
        };
        let silent = |_| Err("the Kubernetes API has not shown its objects in time".to_owned());
        tokio::time::timeout(PATIENCE, seen).await.unwrap_or_else(silent)
    }

    /// Ends everything in order: the managers release their Lease, the load balancers close. In a cluster of somebody
    /// else, the nodes of this world are removed, and what its manager wrote to Services.
    pub async fn close(&self) {
        self.visitors.set_rate(0);
        self.managers.stop().await;
        if self.api.is_none() {
            self.leave().await;
        }
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
        self.node_ports.die();
        self.cloud.close().await;
    }
}

/// A cluster in memory, and a client of it. Requests without a token are refused, as anywhere.
fn embedded(clock: &Arc<dyn Clock>, random: &Random) -> (Client, KubeApi) {
    let wall = Arc::clone(clock);
    let api = KubeApi::new(Surroundings::new(random.bits(), move || wall.wall()));
    let token = random.uuid();
    api.add_token(&token, User::admin("sandbox"));
    let bearer = HeaderValue::from_str(&format!("Bearer {token}")).ok();
    let service = api.service().map_request(move |mut request: Request<Body>| {
        if let Some(bearer) = &bearer {
            request.headers_mut().insert(AUTHORIZATION, bearer.clone());
        }
        request
    });
    (Client::new(service, "default"), api)
}

async fn real(file: PathBuf, clock: &Arc<dyn Clock>) -> Result<Client, String> {
    let address = Address { kubeconfig: Some(file), master: None };
    let config = configure(&address).await.map_err(|why| why.to_string())?;
    let dialler = Dialler { config: &config, ceiling: &Throttle::none(), metrics: &RestMetrics::default() };
    dialler.client("cloudberth-sandbox", clock).map_err(|why| why.to_string())
}

/// A client for people. That of the manager sends no write without the leader's claim (law 9); people have none.
fn without_claim(client: Client, clock: &Arc<dyn Clock>) -> Client {
    let clock = Arc::clone(clock);
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let (client, clock) = (client.clone(), Arc::clone(&clock));
        async move {
            let now = clock.now();
            let write = Call::new(now + PATIENCE, Arc::new(Unguarded)).write(now)?;
            request.extensions_mut().insert(write.leave(clock));
            let heard = client.send(request).await;
            write.answered();
            heard.map_err(tower::BoxError::from)
        }
    });
    Client::new(service, "default")
}

async fn follow_node_ports(
    node_ports: Arc<NodePorts>,
    cloud: Arc<dyn WorldCloud>,
    objects: Arc<Objects>,
    journal: Arc<Journal>,
) {
    let mut changes = objects.changes();
    let mut said = None;
    loop {
        changes.borrow_and_update();
        let wrong = node_ports.follow(cloud.as_ref(), &objects.services()).await.err();
        if let Some(wrong) = wrong.clone().filter(|_| wrong != said) {
            journal.deed(wrong);
        }
        said = wrong;
        tokio::select! {
            _ = changes.changed() => {}
            // What could not be opened may be free by now, and instances change without an object.
            () = tokio::time::sleep(Duration::from_millis(250)) => {}
        }
    }
}

/// Once a second: counters are read, and visitors are sent to load balancers that are new.
struct Pulse {
    objects: Arc<Objects>,
    cloud: Arc<dyn WorldCloud>,
    provider: Arc<dyn cloudberth_core::Provider>,
    journal: Arc<Journal>,
    visitors: Arc<Visitors>,
    rates: Arc<Mutex<Rates>>,
    clock: Arc<dyn Clock>,
    visited: BTreeMap<(ObjectKey, SocketAddr), AbortHandle>,
    tasks: JoinSet<()>,
}

impl Pulse {
    fn new(world: &World) -> Self {
        Self {
            objects: Arc::clone(&world.objects),
            cloud: Arc::clone(&world.cloud),
            provider: Arc::clone(&world.provider),
            journal: Arc::clone(&world.journal),
            visitors: Arc::clone(&world.visitors),
            rates: Arc::clone(&world.rates),
            clock: Arc::clone(&world.clock),
            visited: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    async fn beat(mut self) {
        let mut changes = self.objects.changes();
        let mut sampled = self.clock.now();
        loop {
            let (wanted, counters) = self.look();
            self.send_visitors(wanted);
            let now = self.clock.now();
            if now.since(sampled) >= PULSE {
                sampled = now;
                let moving = !counters.is_empty();
                self.rates.lock().unwrap_or_else(PoisonError::into_inner).sample(now, counters);
                if moving {
                    self.journal.touch();
                }
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(PULSE) => {}
                Some(_) = self.tasks.join_next() => {}
            }
        }
    }

    /// The load balancers that can be visited, and the counters of all.
    fn look(&self) -> (Vec<(ObjectKey, SocketAddr)>, Counters) {
        let (mut wanted, mut counters) = (Vec::new(), BTreeMap::new());
        let Some(balancers) = self.provider.load_balancers() else { return (wanted, counters) };
        for service in self.objects.services() {
            let name = balancers.read(&service, clouds::CLUSTER).name;
            let Some(balancer) = self.cloud.balancer(&name.text) else { continue };
            let key = ObjectKey::new(&service.namespace, &service.name);
            let address = balancer.reachable.filter(|_| serves(&service));
            for member in balancer.members.iter().filter(|_| balancer.reachable.is_some()) {
                counters.insert((key.to_string(), member.instance.clone()), member.connections);
            }
            wanted.extend(address.map(|address| (key, address)));
        }
        (wanted, counters)
    }

    fn send_visitors(&mut self, wanted: Vec<(ObjectKey, SocketAddr)>) {
        self.visited.retain(|key, task| {
            let stays = wanted.contains(key);
            if !stays {
                task.abort();
            }
            stays
        });
        for (key, address) in wanted {
            if self.visited.contains_key(&(key.clone(), address)) {
                continue;
            }
            let (objects, journal) = (Arc::clone(&self.objects), Arc::clone(&self.journal));
            let heard = move |key: &ObjectKey, answer: &Result<String, String>| {
                if answer.is_err() && !objects.service(key).is_some_and(|service| serves(&service)) {
                    return false;
                }
                journal.count(|totals| match answer {
                    Ok(_) => totals.requests += 1,
                    Err(_) => totals.errors += 1,
                });
                true
            };
            let visitors = Arc::clone(&self.visitors);
            let task = self.tasks.spawn(come(visitors, key.clone(), address, heard));
            self.visited.insert((key, address), task);
        }
    }
}

/// It has an address, and nobody wants it gone.
fn serves(service: &ServiceView) -> bool {
    !service.deleting && !service.ingress.is_empty()
}
