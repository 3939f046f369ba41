//! What a world shows of itself, and what one can do to it. The terminal and the page are built on this file alone.
//!
//! A view is kept up to date like this, and never falls behind for good, however slow it is:
//!
//! ```text
//!   let mut changes = world.changes();          // before the first snapshot, so that nothing is missed
//!   loop {
//!       show(world.snapshot(), world.happenings(last_seq));
//!       changes.changed().await;                // many changes while nobody looked are one
//!   }
//! ```
//!
//! In JSON, names of fields are as here. `Happening` and `Command` are objects with the variant's name in `kind` and `do`:
//! `{"seq": 7, "at_ms": 1200, "kind": "CloudCall", "method": "GET", …}` and `{"do": "StopInstance", "name": "node-1"}`.

use std::{future::Future, pin::Pin};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// How many happenings are remembered; older ones are forgotten.
pub const REMEMBERED: usize = 500;

/// The world at one moment. Everything in it was observed: in the Kubernetes API, in the cloud or by a request that
/// was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// Grows with every change; the happenings up to this number have happened.
    pub seq: u64,
    /// Milliseconds since the world began.
    pub at_ms: u64,
    /// The cloud: `cloudlycke`, `cloudscale`, `binarylane` or `brightbox`.
    pub provider: String,
    /// The replica of the manager that holds the Lease; none while there is no leader.
    pub leader: Option<String>,
    /// How the cloud is broken, in words; none while it is well.
    pub fault: Option<String>,
    /// Real requests go through the load balancers (Cloudlycke only).
    pub traffic: bool,
    /// What has been counted since the world began.
    pub totals: Totals,
    /// By name.
    pub nodes: Vec<NodeCard>,
    /// By namespace and name of their Services.
    pub balancers: Vec<BalancerCard>,
}

/// What has been counted since the world began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests of the manager to the cloud.
    pub cloud_calls: u64,
    /// Those of them that change something.
    pub cloud_changes: u64,
    /// Writes of the manager to Kubernetes, without renewals of the Lease.
    pub kube_writes: u64,
    /// Renewals of the Lease.
    pub lease_writes: u64,
    /// Requests through load balancers that were answered.
    pub requests: u64,
    /// Requests through load balancers that were not.
    pub errors: u64,
}

/// A node, and the instance under it. An instance without a node is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeCard {
    /// Its name.
    pub name: String,
    /// Its provider id; none before the cloud has claimed it.
    pub instance: Option<String>,
    /// What the cloud says of its instance: `running`, `stopped` or, if it has none of this name, `gone`.
    pub instance_state: String,
    /// Its Ready condition is True.
    pub ready: bool,
    /// `key:effect`, as `kubectl describe node` shows them.
    pub taints: Vec<String>,
    /// Its IP addresses.
    pub addresses: Vec<String>,
    /// Its zone, once a label says it.
    pub zone: Option<String>,
    /// Its instance type, once a label says it.
    pub instance_type: Option<String>,
}

/// A Service of type `LoadBalancer`, and its load balancer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BalancerCard {
    /// `namespace/name` of the Service.
    pub service: String,
    /// The address in the Service's status.
    pub address: Option<String>,
    /// A URL that a browser or curl on this computer can open; only where there is real traffic.
    pub url: Option<String>,
    /// `pending` without an address, `active` with one, `refused` while an event says that something of it is not carried
    /// out, `deleting` once it is to go.
    pub state: String,
    /// What warnings have said about it since it was last changed, in the words of their events.
    pub refused: Vec<String>,
    /// `80/TCP` and so on.
    pub ports: Vec<String>,
    /// The nodes that the cloud sends traffic to, by name.
    pub members: Vec<MemberCard>,
    /// Over the last seconds.
    pub requests_per_second: f64,
}

/// A node behind a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemberCard {
    /// The name of the node.
    pub node: String,
    /// Whether it gets traffic.
    pub health: Health,
    /// Over the last seconds.
    pub requests_per_second: f64,
}

/// Whether a member gets traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It does.
    Up,
    /// It still does, but its node is not Ready or its instance does not run: it is about to be taken out.
    Draining,
    /// It does not.
    Down,
    /// The cloud does not say.
    #[default]
    Unknown,
}

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Grows with every happening.
    pub seq: u64,
    /// Milliseconds since the world began.
    pub at_ms: u64,
    /// What it was.
    #[serde(flatten)]
    pub what: Happening,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind")]
pub enum Happening {
    /// An event was published in Kubernetes.
    Event {
        /// `node/worker-1`, `service/web`.
        object: String,
        /// Its reason.
        reason: String,
        /// Its message.
        message: String,
        /// It is a warning.
        warning: bool,
    },
    /// The manager sent a request to the cloud, and this came back.
    CloudCall {
        /// The HTTP method.
        method: String,
        /// The path, without the query.
        path: String,
        /// The status; none if there was no answer.
        status: Option<u16>,
        /// How long it took.
        ms: u64,
        /// It would change something.
        change: bool,
    },
    /// The manager took a step: the label and the impact are those that `cloudberth plan` prints.
    Decision {
        /// `node/worker-1`, `service/default/web`.
        object: String,
        /// What was done, or what was decided.
        label: String,
        /// The impact on traffic: `none`, `minimal`, `considerable`, `major`; empty where it is not about traffic.
        impact: String,
    },
    /// The manager wrote to Kubernetes. Renewals of the Lease are left out.
    KubeWrite {
        /// `create`, `patch`, `update`, `delete`.
        verb: String,
        /// `nodes/worker-1`, `services/default/web/status`.
        object: String,
        /// The status; none if there was no answer.
        status: Option<u16>,
    },
    /// Something that a person or the world itself did, in words.
    Deed {
        /// What was done.
        what: String,
    },
}

/// What a person can do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", deny_unknown_fields)]
pub enum Command {
    /// An instance boots, and its kubelet registers a node. The answer names it.
    AddInstance,
    /// An instance is switched off; its kubelet falls silent.
    StopInstance {
        /// The name of the node.
        name: String,
    },
    /// An instance is switched on.
    StartInstance {
        /// The name of the node.
        name: String,
    },
    /// An instance is destroyed; its kubelet falls silent.
    DestroyInstance {
        /// The name of the node.
        name: String,
    },
    /// `kubectl create -f`: one Service in YAML or JSON; without a namespace it goes to `default`.
    CreateService {
        /// The manifest.
        yaml: String,
    },
    /// `kubectl delete service`.
    DeleteService {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// From now on, the cloud's API misbehaves towards the manager.
    BreakCloud {
        /// In which way.
        how: Breakage,
    },
    /// The cloud's API is well again.
    MendCloud,
    /// The leading replica dies without a word; the other one takes over when the Lease has run out, and a new one takes
    /// its place.
    KillLeader,
    /// How many requests per second the world sends through each load balancer with an address; 0 stops them.
    Traffic {
        /// At most 100.
        per_second: u32,
    },
}

/// How a cloud's API misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Breakage {
    /// Every request is answered with 500.
    Errors,
    /// Every request is answered with 401, as if the token had been revoked.
    Token,
    /// Every answer comes five seconds late.
    Slow,
    /// Listings of instances are complete and empty, as with a token of another project.
    Lying,
}

impl Breakage {
    /// In words, for [`Snapshot::fault`].
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Errors => "every request to the cloud fails with 500",
            Self::Token => "the cloud refuses the token with 401",
            Self::Slow => "every answer of the cloud comes five seconds late",
            Self::Lying => "the cloud lists no instances, although there are some",
        }
    }
}

/// A future that answers later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A world that can be watched and worked on.
pub trait Watched: Send + Sync {
    /// How it is now. Cheap enough to be asked for ten times a second.
    fn snapshot(&self) -> Snapshot;

    /// What happened after the happening with this number, oldest first; at most the newest [`REMEMBERED`].
    fn happenings(&self, after: u64) -> Vec<Entry>;

    /// Says that something changed: the number is that of [`Snapshot::seq`]. Ends with the world.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Carries a command out. Both answers are plain words for a person: what was done, or why it was not. What follows
    /// from it shows up in the snapshot and among the happenings.
    fn run(&self, command: Command) -> Later<'_, Result<String, String>>;
}
