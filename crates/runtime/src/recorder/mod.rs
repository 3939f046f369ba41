//! Tells people what happened, as events on the objects that it happened to.
//!
//! Telling never waits and never fails: what cannot be written is dropped and counted. It is a courtesy; nothing may
//! depend on it. Nothing is said twice by itself: whoever tells decides that there is something to tell.

pub mod correlate;
mod line;
mod recent;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Category, Error, NodeView, Random, Result, ServiceView};
use futures_util::{StreamExt, stream::FuturesUnordered};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::{
    correlate::{Memory, Note, Step, correlate},
    line::{Entry, Line, Next},
};
use crate::{cluster::Cluster, lock, metrics::Counter};

/// More than these are never kept waiting.
const CAPACITY: usize = 1_000;
/// So many are written at once, each in another namespace.
const WRITERS: usize = 4;
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
pub struct ObjectRef {
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

impl ObjectRef {
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
pub struct Event {
    /// What it happened to.
    pub about: ObjectRef,
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
pub struct EventRecorder {
    cluster: Cluster,
    random: Arc<Random>,
    waiting: Mutex<Line>,
    memory: Mutex<Memory>,
    dropped: Counter,
    news: Notify,
}

impl EventRecorder {
    /// A recorder with nothing to say yet.
    pub fn new(cluster: Cluster, random: Arc<Random>) -> Arc<Self> {
        Self::counting(cluster, random, Counter::default())
    }

    /// One that counts in `dropped` what is never written.
    pub fn counting(cluster: Cluster, random: Arc<Random>, dropped: Counter) -> Arc<Self> {
        let (waiting, memory, news) = (Mutex::new(Line::new(CAPACITY)), Mutex::default(), Notify::new());
        Arc::new(Self { cluster, random, waiting, memory, dropped, news })
    }

    /// Says it, soon.
    pub fn publish(&self, what: Event) {
        let Event { about, reason, message, component, .. } = &what;
        let (kind, namespace, name) = (&about.kind, &about.namespace, &about.name);
        let level = what.level();
        tracing::info!(component, kind, namespace, name, level, reason, message, "event");
        let clock = self.cluster.clock();
        if !lock(&self.waiting).add(what, clock.wall(), clock.now()) {
            self.dropped.inc();
        }
        self.news.notify_one();
    }

    /// How many were never written.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }

    /// Writes until it is dropped.
    pub async fn run(&self) {
        lock(&self.waiting).begin();
        let mut running = FuturesUnordered::new();
        loop {
            let now = self.cluster.clock().now();
            let mut wakeup = None;
            while running.len() < WRITERS {
                match lock(&self.waiting).take(now) {
                    Next::Write(entry) => running.push(self.write(*entry)),
                    Next::Wait(until) => {
                        wakeup = until;
                        break;
                    }
                }
            }
            let nap = wakeup.map(|at| at.since(now));
            tokio::select! {
                biased;
                Some((about, again)) = running.next(), if !running.is_empty() => {
                    lock(&self.waiting).done(&about, again);
                }
                () = self.news.notified() => {}
                () = tokio::time::sleep(nap.unwrap_or_default()), if nap.is_some() => {}
            }
        }
    }

    /// Tries to write one. If that failed and may go better next time, it is returned to be tried again.
    async fn write(&self, mut entry: Entry) -> (ObjectRef, Option<Entry>) {
        let about = entry.what.about.clone();
        let now = self.cluster.clock().now();
        let step =
            entry.step.get_or_insert_with(|| correlate(&mut lock(&self.memory), &entry.what, entry.at, now));
        let Err(why) = self.take(step).await else { return (about, None) };
        entry.tries += 1;
        if let Some(rest) = self.rest(entry.tries, &why) {
            entry.due = self.cluster.clock().now() + rest;
            return (about, Some(entry));
        }
        // Whoever does not lead any more cannot even say so: that is in the log already, and nobody can mend it.
        if why.category() == Category::Cancelled {
            tracing::debug!(reason = entry.what.reason, %why, "an event was not written");
        } else {
            tracing::info!(reason = entry.what.reason, %why, "an event was not written");
        }
        self.dropped.inc();
        (about, None)
    }

    /// How long to wait before what failed for this reason is tried again; `None` if it is not.
    fn rest(&self, tries: u32, why: &Error) -> Option<Duration> {
        let asked = match why.category() {
            _ if tries >= TRIES => return None,
            Category::Temporary => Duration::ZERO,
            Category::Throttled { retry_after } => retry_after.unwrap_or_default().min(LONGEST_REST),
            _ => return None,
        };
        let rest = if tries == 1 { REST.mul_f64(self.random.fraction()) } else { REST };
        Some(rest.max(asked))
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

impl Event {
    fn level(&self) -> &'static str {
        if self.warning { "Warning" } else { "Normal" }
    }

    fn namespace(&self) -> &str {
        line::namespace(&self.about)
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

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("waiting", &lock(&self.waiting).len()).finish_non_exhaustive()
    }
}
