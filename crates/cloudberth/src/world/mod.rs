//! A cluster, its cloud and the controller manager in one process: what `cloudberth demo` tells a story on, and what
//! `cloudberth sandbox` leaves running.
//!
//! ```text
//!   commands ──► kubelets, cloud            what people, kubelets and the cloud do
//!                   │        │
//!                   ▼        ▼
//!         Kubernetes API ◄── manager ──► wire ──► cloud ──► node ports
//!                   │           │          │        ▲
//!                watches      steps      calls   visitors
//!                   └───────────┴────┬─────┴────────┘
//!                                    ▼
//!                    journal and snapshot: what is shown
//! ```

mod act;
mod clouds;
mod contract;
mod journal;
mod kubelets;
mod managers;
mod node_ports;
mod objects;
mod start;
mod steps;
mod view;
mod visitors;
mod wire;
mod writes;

use std::sync::{Arc, Mutex, PoisonError};

use cloudberth_core::{Clock, ObjectKey, Provider};
use embedded_kube::KubeApi;
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

pub use clouds::{PROVIDERS, free_port, mistake};
pub use contract::{
    BalancerCard, Breakage, Command, Entry, Happening, Health, Later, MemberCard, NodeCard, REMEMBERED,
    Snapshot, Totals, Watched,
};
pub use managers::{PERIOD, TIMING};
pub use objects::{Kind, Sighting, subject, text};
pub use start::{Cluster, WorldSettings};
pub use visitors::{Visit, answers};

use clouds::{Around, CLUSTER, WorldCloud};
use journal::Journal;
use kubelets::Kubelets;
use managers::Managers;
use node_ports::NodePorts;
use objects::Objects;
use view::Rates;
use visitors::Visitors;

/// A world that runs. Dropping it ends everything at once; [`World::close`] does it in order.
pub struct World {
    clock: Arc<dyn Clock>,
    journal: Arc<Journal>,
    objects: Arc<Objects>,
    cloud: Arc<dyn WorldCloud>,
    around: Around,
    /// Knows what load balancers are called.
    provider: Arc<dyn Provider>,
    managers: Managers,
    /// The client of everybody but the manager.
    people: Client,
    kubelets: Kubelets,
    node_ports: Arc<NodePorts>,
    visitors: Arc<Visitors>,
    rates: Arc<Mutex<Rates>>,
    /// The embedded API; `None` in a cluster of somebody else.
    api: Option<KubeApi>,
    /// How many instances were added so far.
    added: Mutex<u32>,
    tasks: Mutex<JoinSet<()>>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("provider", &self.cloud.name()).finish_non_exhaustive()
    }
}

impl World {
    /// The embedded Kubernetes API, to be put on a port; `None` in a cluster of somebody else.
    pub const fn api(&self) -> Option<&KubeApi> {
        self.api.as_ref()
    }

    /// A client of the Kubernetes API, for people.
    pub const fn client(&self) -> &Client {
        &self.people
    }

    /// Time, as everything in this world has it.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// What every watch shows from now on.
    pub fn sightings(&self) -> mpsc::UnboundedReceiver<Sighting> {
        self.objects.listen()
    }

    /// The objects of a kind, as the watches have shown them last.
    pub fn objects(&self, kind: Kind) -> Vec<Arc<serde_json::Value>> {
        self.objects.all(kind)
    }

    /// The number of the newest visit.
    pub fn newest_visit(&self) -> u64 {
        self.visitors.newest()
    }

    /// The newest visits after this one, oldest first.
    pub fn visits(&self, after: u64) -> Vec<Visit> {
        self.visitors.after(after)
    }

    /// The nodes that the cloud sends the traffic of a Service to, by name; `None` if it has no load balancer for it.
    pub fn members(&self, namespace: &str, name: &str) -> Option<Vec<String>> {
        let balancer = self.balancer(&self.objects.service(&ObjectKey::new(namespace, name))?)?;
        let mut members: Vec<_> = balancer.members.into_iter().map(|member| member.instance).collect();
        members.sort_unstable();
        Some(members)
    }

    /// The ports on which the load balancer of a Service listens; `None` if the cloud has none for it.
    pub fn ports(&self, namespace: &str, name: &str) -> Option<Vec<u16>> {
        let balancer = self.balancer(&self.objects.service(&ObjectKey::new(namespace, name))?)?;
        Some(balancer.ports)
    }

    /// The names of the nodes whose instances the cloud has.
    pub fn instance_names(&self) -> Vec<String> {
        self.cloud.instances().into_iter().map(|instance| instance.name).collect()
    }

    /// How many load balancers the cloud has.
    pub fn balancer_count(&self) -> usize {
        self.cloud.balancer_count()
    }

    /// Real requests can go through load balancers.
    pub fn has_traffic(&self) -> bool {
        self.cloud.name() == PROVIDERS[0]
    }

    /// No node port answers any more, although the instances run: what a broken kube-proxy looks like.
    pub fn kill_node_ports(&self) {
        self.node_ports.die();
    }

    /// Starts one more replica of the manager.
    pub fn start_manager(&self) -> Result<String, String> {
        self.managers.start()
    }

    /// Tells all replicas of the manager to end, and waits until they have.
    pub async fn stop_managers(&self) {
        self.managers.stop().await;
    }

    fn balancer(&self, service: &cloudberth_core::ServiceView) -> Option<clouds::BalancerView> {
        let name = self.provider.load_balancers()?.read(service, CLUSTER).name;
        self.cloud.balancer(&name.text)
    }
}

impl Watched for World {
    fn snapshot(&self) -> Snapshot {
        // The number first: what changes meanwhile is told by a later one.
        let (seq, totals) = self.journal.newest();
        let instances = view::by_name(self.cloud.instances());
        let nodes: Vec<_> =
            self.objects.nodes().iter().map(|node| view::node_card(node, &instances)).collect();
        let services = self.objects.services();
        let rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let balancers = services.iter().map(|service| {
            let key = ObjectKey::new(&service.namespace, &service.name);
            let refused = self.objects.warnings(&key);
            view::balancer_card(service, self.balancer(service).as_ref(), refused, &nodes, &rates)
        });
        let balancers = balancers.collect();
        Snapshot {
            seq,
            at_ms: self.journal.at_ms(),
            provider: self.cloud.name().to_owned(),
            leader: self.objects.leader().map(|identity| managers::name_of(&identity).to_owned()),
            fault: self.around.wire.breakage().map(|breakage| breakage.in_words().to_owned()),
            traffic: self.has_traffic(),
            totals,
            nodes,
            balancers,
        }
    }

    fn happenings(&self, after: u64) -> Vec<Entry> {
        self.journal.after(after)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.journal.changes()
    }

    fn run(&self, command: Command) -> Later<'_, Result<String, String>> {
        Box::pin(self.act(command))
    }
}
