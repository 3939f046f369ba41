//! Tells people what happened, as events on the objects that it happened to.
//!
//! Telling never waits and never fails: what cannot be written is dropped and counted. It is a courtesy; nothing may
//! depend on it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Dice, NodeView, Result, ServiceView};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{cluster::Cluster, lock};

/// More than these are never kept waiting.
const CAPACITY: usize = 1_000;
/// How long the writing of one may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// `v1` and the like.
    pub api_version: String,
    /// `Node`, `Service`, `Lease`.
    pub kind: String,
    /// Empty for what has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

impl About {
    /// A node.
    pub fn node(node: &NodeView) -> Self {
        Self::core("Node", "", &node.name, &node.uid)
    }

    /// A Service.
    pub fn service(service: &ServiceView) -> Self {
        Self::core("Service", &service.namespace, &service.name, &service.uid)
    }

    /// An object of the core group.
    pub fn core(kind: &str, namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
        }
    }
}

/// Something that people should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// What it happened to.
    pub about: About,
    /// `Warning`, otherwise `Normal`.
    pub warning: bool,
    /// One word, for alerts.
    pub reason: String,
    /// A sentence, for people.
    pub message: String,
    /// Which controller says so.
    pub component: &'static str,
}

/// The writer of events.
pub struct Herald {
    cluster: Cluster,
    dice: Arc<Dice>,
    waiting: Mutex<VecDeque<(Occurrence, Timestamp)>>,
    dropped: Mutex<u64>,
    news: Notify,
}

impl Herald {
    /// A herald with nothing to say yet.
    pub fn new(cluster: Cluster, dice: Arc<Dice>) -> Arc<Self> {
        Arc::new(Self {
            cluster,
            dice,
            waiting: Mutex::new(VecDeque::new()),
            dropped: Mutex::new(0),
            news: Notify::new(),
        })
    }

    /// Says it, soon.
    pub fn tell(&self, what: Occurrence) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= CAPACITY {
            *lock(&self.dropped) += 1;
            return;
        }
        waiting.push_back((what, self.cluster.clock().wall()));
        self.news.notify_one();
    }

    /// How many were never written.
    pub fn dropped(&self) -> u64 {
        *lock(&self.dropped)
    }

    /// Writes until it is dropped.
    pub async fn run(&self) {
        loop {
            let next = lock(&self.waiting).pop_front();
            match next {
                Some((what, at)) => self.write(&what, at).await,
                None => self.news.notified().await,
            }
        }
    }

    async fn write(&self, what: &Occurrence, at: Timestamp) {
        if let Err(why) = self.create(what, at).await {
            tracing::debug!(reason = what.reason, %why, "an event was not written");
            *lock(&self.dropped) += 1;
        }
    }

    async fn create(&self, what: &Occurrence, at: Timestamp) -> Result<()> {
        let namespace = if what.about.namespace.is_empty() { "default" } else { &what.about.namespace };
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let call = self.cluster.call(PATIENCE);
        self.cluster.post(&call, &path, &body(what, namespace, at, self.dice.bits())).await.map(|_| ())
    }
}

fn body(what: &Occurrence, namespace: &str, at: Timestamp, bits: u64) -> Value {
    let about = &what.about;
    let involved = json!({
        "apiVersion": about.api_version, "kind": about.kind,
        "namespace": about.namespace, "name": about.name, "uid": about.uid,
    });
    let at = at.round(jiff::Unit::Second).unwrap_or(at).to_string();
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{}.{bits:016x}", about.name), "namespace": namespace},
        "involvedObject": involved,
        "type": if what.warning { "Warning" } else { "Normal" },
        "reason": what.reason, "message": what.message, "count": 1,
        "firstTimestamp": at, "lastTimestamp": at,
        "source": {"component": what.component},
        "reportingComponent": what.component, "reportingInstance": "",
    })
}

impl fmt::Debug for Herald {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Herald").field("waiting", &lock(&self.waiting).len()).finish_non_exhaustive()
    }
}
