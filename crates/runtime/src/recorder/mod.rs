//! Writes events about objects.
//!
//! Publishing never waits and never fails: what cannot be written is dropped and counted, so nothing may depend on an
//! event. Nothing is published twice by itself: the caller decides when there is something new.

pub mod correlate;
mod queue;
mod recent;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Category, Error, NodeView, Random, Reason, Result, ServiceView};
use futures_util::{StreamExt, stream::FuturesUnordered};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::{
    correlate::{EventRecord, History, Step, correlate},
    queue::{Entry, EventQueue, Next},
};
use crate::{
    lock,
    metrics::Counter,
    writer::{Failed, Writer},
};

const CAPACITY: usize = 1_000;
/// How many are written at once, each in another namespace.
const WRITERS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(10);
const TRIES: u32 = 12;
/// The wait between two tries; a random part of it the first time, so that replicas do not come back together.
const RETRY_WAIT: Duration = Duration::from_secs(10);
/// The longest wait that a server can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// `v1` and the like.
    pub api_version: String,
    /// `Node`, `Service`, `Lease`.
    pub kind: String,
    /// Empty for what has none.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
}

impl ObjectRef {
    /// The reference to a node.
    pub fn node(node: &NodeView) -> Self {
        Self::core("Node", "", &node.name, &node.uid)
    }

    /// The reference to a Service.
    pub fn service(service: &ServiceView) -> Self {
        Self::core("Service", &service.namespace, &service.name, &service.uid)
    }

    /// The reference to an object of the core group.
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

/// An event about an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// The object that it is about.
    pub about: ObjectRef,
    /// `Warning`, otherwise `Normal`.
    pub warning: bool,
    /// One word, for alerts.
    pub reason: Reason,
    /// A sentence, for people.
    pub message: String,
    /// The controller that reports it.
    pub component: &'static str,
}

/// Writes published events in the background.
pub struct EventRecorder {
    writer: Writer,
    random: Arc<Random>,
    waiting: Mutex<EventQueue>,
    history: Mutex<History>,
    dropped: Counter,
    news: Notify,
    /// Whoever gives no right to write events can do without them: the log has what they say.
    optional: bool,
}

impl EventRecorder {
    /// A recorder that writes nothing before [`run`](Self::run).
    pub fn new(writer: Writer, random: Arc<Random>) -> Arc<Self> {
        Self::counting(writer, random, Counter::default())
    }

    /// A recorder that counts in `dropped` what is never written.
    pub fn counting(writer: Writer, random: Arc<Random>, dropped: Counter) -> Arc<Self> {
        Arc::new(Self::build(writer, random, dropped, false))
    }

    /// The same, where the right to write events may be missing: an event that is refused for that (403) is neither tried
    /// again nor counted. A credential that nobody knows (401) is a failure like any other.
    pub fn optional(writer: Writer, random: Arc<Random>, dropped: Counter) -> Arc<Self> {
        Arc::new(Self::build(writer, random, dropped, true))
    }

    fn build(writer: Writer, random: Arc<Random>, dropped: Counter, optional: bool) -> Self {
        let (waiting, history, news) =
            (Mutex::new(EventQueue::new(CAPACITY)), Mutex::default(), Notify::new());
        Self { writer, random, waiting, history, dropped, news, optional }
    }

    /// Logs the event and queues it for writing.
    pub fn publish(&self, what: Event) {
        let Event { about, reason, message, component, .. } = &what;
        let (kind, namespace, name) = (&about.kind, &about.namespace, &about.name);
        let level = what.level();
        tracing::info!(component, kind, namespace, name, level, reason = reason.name(), message, "event");
        let clock = self.writer.clock();
        if !lock(&self.waiting).add(what, clock.wall(), clock.now()) {
            self.dropped.inc();
        }
        self.news.notify_one();
    }

    /// How many events were never written.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }

    /// Writes until it is dropped.
    pub async fn run(&self) {
        lock(&self.waiting).begin();
        let mut running = FuturesUnordered::new();
        loop {
            let now = self.writer.clock().now();
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

    /// Tries to write an event; returns it if it should be tried again.
    async fn write(&self, mut entry: Entry) -> (ObjectRef, Option<Entry>) {
        let about = entry.what.about.clone();
        let now = self.writer.clock().now();
        let step =
            entry.step.get_or_insert_with(|| correlate(&mut lock(&self.history), &entry.what, entry.at, now));
        let Err(Failed { why, is_forbidden }) = self.take(step).await else { return (about, None) };
        entry.tries += 1;
        if let Some(wait) = self.retry_wait(entry.tries, &why) {
            entry.due = self.writer.clock().now() + wait;
            return (about, Some(entry));
        }
        if self.optional && is_forbidden {
            tracing::debug!(reason = entry.what.reason.name(), %why, "event not written");
            return (about, None);
        }
        // A replica that stopped leading cannot write events; the log says already that it stopped.
        if why.category() == Category::Cancelled {
            tracing::debug!(reason = entry.what.reason.name(), %why, "event not written");
        } else {
            tracing::info!(reason = entry.what.reason.name(), %why, "event not written");
        }
        self.dropped.inc();
        (about, None)
    }

    /// The wait before the next try after this failure; `None` if there is none.
    fn retry_wait(&self, tries: u32, why: &Error) -> Option<Duration> {
        let asked = match why.category() {
            _ if tries >= TRIES => return None,
            Category::Temporary => Duration::ZERO,
            Category::Throttled { retry_after } => retry_after.unwrap_or_default().min(LONGEST_WAIT),
            _ => return None,
        };
        let wait = if tries == 1 { RETRY_WAIT.mul_f64(self.random.fraction()) } else { RETRY_WAIT };
        Some(wait.max(asked))
    }

    async fn take(&self, step: &Step) -> Result<(), Failed> {
        match step {
            Step::Create(record) => self.create(record).await,
            Step::Patch(record) => self.patch(record).await,
            Step::Drop => Err(Error::permanent("there were too many about this object lately").into()),
        }
    }

    async fn create(&self, record: &EventRecord) -> Result<(), Failed> {
        let call = self.writer.call(PATIENCE);
        match self.writer.try_create(&call, &path(record), &body(record)).await {
            // An earlier attempt succeeded, and only its answer was lost.
            Err(failed) if failed.why.category() == Category::Conflict => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    async fn patch(&self, record: &EventRecord) -> Result<(), Failed> {
        let change = json!({"count": record.count, "lastTimestamp": stamp(record.last), "message": record.what.message});
        let call = self.writer.call(PATIENCE);
        match self.writer.try_merge(&call, &path(record), &record.name, &change).await {
            // Events expire.
            Err(failed) if failed.why.category() == Category::NotFound => self.create(record).await,
            answer => answer.map(|_| ()),
        }
    }
}

impl Event {
    fn level(&self) -> &'static str {
        if self.warning { "Warning" } else { "Normal" }
    }

    fn namespace(&self) -> &str {
        queue::namespace(&self.about)
    }
}

fn path(record: &EventRecord) -> String {
    format!("/api/v1/namespaces/{}/events", record.what.namespace())
}

fn body(record: &EventRecord) -> Value {
    let (what, about) = (&record.what, &record.what.about);
    let mut event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": record.name, "namespace": what.namespace()},
        "involvedObject": {
            "apiVersion": about.api_version, "kind": about.kind,
            "namespace": about.namespace, "name": about.name, "uid": about.uid,
        },
        "type": what.level(), "reason": what.reason.name(), "message": what.message,
        "count": record.count, "firstTimestamp": stamp(record.first), "lastTimestamp": stamp(record.last),
        "source": {"component": what.component},
        "reportingComponent": "", "reportingInstance": "",
    });
    if !record.combined
        && let Some(reporter) = event.get_mut("reportingComponent")
    {
        *reporter = what.component.into();
    }
    event
}

/// Truncated to whole seconds.
fn stamp(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("waiting", &lock(&self.waiting).len()).finish_non_exhaustive()
    }
}
