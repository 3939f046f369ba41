//! Tells people what happened, as events on the objects that it happened to.
//!
//! Telling never waits and never fails: what cannot be written is dropped and counted. It is a courtesy; nothing may
//! depend on it. Nothing is said twice by itself: whoever tells decides that there is something to tell.

pub mod correlate;
mod recent;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Category, Dice, Error, NodeView, Result, ServiceView};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::correlate::{Memory, Note, Step, correlate};
use crate::{cluster::Cluster, lock, metrics::Counter};

/// More than these are never kept waiting.
const CAPACITY: usize = 1_000;
/// How long the writing of one may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// So often is the writing of one tried …
const TRIES: u32 = 12;
/// … this far apart, the first time less, so that not everybody comes back at once.
const REST: Duration = Duration::from_secs(10);
/// Nobody may ask us to stay away for longer.
const LONGEST_REST: Duration = Duration::from_secs(60);

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
    memory: Mutex<Memory>,
    dropped: Counter,
    news: Notify,
}

impl Herald {
    /// A herald with nothing to say yet.
    pub fn new(cluster: Cluster, dice: Arc<Dice>) -> Arc<Self> {
        Self::counting(cluster, dice, Counter::default())
    }

    /// One that counts in `dropped` what is never written.
    pub fn counting(cluster: Cluster, dice: Arc<Dice>, dropped: Counter) -> Arc<Self> {
        let (waiting, memory, news) = (Mutex::default(), Mutex::default(), Notify::new());
        Arc::new(Self { cluster, dice, waiting, memory, dropped, news })
    }

    /// Says it, soon.
    pub fn tell(&self, what: Occurrence) {
        let Occurrence { about, reason, message, component, .. } = &what;
        let (kind, namespace, name) = (&about.kind, &about.namespace, &about.name);
        let level = what.level();
        tracing::info!(component, kind, namespace, name, level, reason, message, "event");
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= CAPACITY {
            self.dropped.inc();
            return;
        }
        waiting.push_back((what, self.cluster.clock().wall()));
        self.news.notify_one();
    }

    /// How many were never written.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
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
        let step = correlate(&mut lock(&self.memory), what, at, self.cluster.clock().now());
        if let Err(why) = self.insist(&step).await {
            // Whoever does not lead any more cannot even say so: that is in the log already, and nobody can mend it.
            if why.category() == Category::Cancelled {
                tracing::debug!(reason = what.reason, %why, "an event was not written");
            } else {
                tracing::info!(reason = what.reason, %why, "an event was not written");
            }
            self.dropped.inc();
        }
    }

    /// Tries again what may go better next time.
    async fn insist(&self, step: &Step) -> Result<()> {
        for tried in 1..TRIES {
            let Err(why) = self.take(step).await else { return Ok(()) };
            let asked = match why.category() {
                Category::Temporary => Duration::ZERO,
                Category::Throttled { retry_after } => retry_after.unwrap_or_default().min(LONGEST_REST),
                _ => return Err(why),
            };
            let rest = if tried == 1 { REST.mul_f64(self.dice.fraction()) } else { REST };
            tokio::time::sleep(rest.max(asked)).await;
        }
        self.take(step).await
    }

    async fn take(&self, step: &Step) -> Result<()> {
        match step {
            Step::Create(note) => self.create(note).await,
            Step::Patch(note) => self.patch(note).await,
            Step::Drop => Err(Error::permanent("there were too many about this object lately")),
        }
    }

    async fn create(&self, note: &Note) -> Result<()> {
        let call = self.cluster.call(PATIENCE);
        match self.cluster.post(&call, &path(note), &body(note)).await {
            // An earlier attempt got through, and only its answer was lost.
            Err(why) if why.category() == Category::Conflict => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    async fn patch(&self, note: &Note) -> Result<()> {
        let change =
            json!({"count": note.count, "lastTimestamp": stamp(note.last), "message": note.what.message});
        let call = self.cluster.call(PATIENCE);
        match self.cluster.merge(&call, &path(note), &note.name, &change).await {
            // Events are forgotten after a while.
            Err(why) if why.category() == Category::NotFound => self.create(note).await,
            answer => answer.map(|_| ()),
        }
    }
}

impl Occurrence {
    fn level(&self) -> &'static str {
        if self.warning { "Warning" } else { "Normal" }
    }

    /// What has no namespace is talked about in the default one.
    fn namespace(&self) -> &str {
        if self.about.namespace.is_empty() { "default" } else { &self.about.namespace }
    }
}

fn path(note: &Note) -> String {
    format!("/api/v1/namespaces/{}/events", note.what.namespace())
}

fn body(note: &Note) -> Value {
    let (what, about) = (&note.what, &note.what.about);
    let mut event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": note.name, "namespace": what.namespace()},
        "involvedObject": {
            "apiVersion": about.api_version, "kind": about.kind,
            "namespace": about.namespace, "name": about.name, "uid": about.uid,
        },
        "type": what.level(), "reason": what.reason, "message": what.message,
        "count": note.count, "firstTimestamp": stamp(note.first), "lastTimestamp": stamp(note.last),
        "source": {"component": what.component},
        "reportingComponent": "", "reportingInstance": "",
    });
    if !note.combined
        && let Some(reporter) = event.get_mut("reportingComponent")
    {
        *reporter = what.component.into();
    }
    event
}

/// Whole seconds, those begun not counted.
fn stamp(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

impl fmt::Debug for Herald {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Herald").field("waiting", &lock(&self.waiting).len()).finish_non_exhaustive()
    }
}
