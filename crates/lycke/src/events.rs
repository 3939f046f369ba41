//! What has happened, for those who wait for it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use cloudberth_core::Clock;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use crate::{
    plane::{BalancerKey, ListenerReport, PlaneEvent, PlaneObserver},
    spec::protocol_word,
};

/// So many events are kept.
const KEPT: usize = 1_000;

/// What kind of thing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it, and the API has them")]
pub enum EventKind {
    MachineState,
    InventoryLoaded,
    InventoryInvalid,
    BackendUp,
    BackendDown,
    ListenerBound,
    ListenerFailed,
    BalancerChanged,
    BalancerDeleted,
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// One more than the event before it.
    pub id: u64,
    /// When it happened.
    pub time: Timestamp,
    /// What kind of thing it is.
    pub kind: EventKind,
    /// To what it happened.
    pub object: String,
    /// What happened, for people.
    pub message: String,
}

/// The latest events. Clones are the same log.
#[derive(Clone)]
pub struct EventLog(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    events: Mutex<VecDeque<Event>>,
    /// The id of the latest event.
    latest: watch::Sender<u64>,
}

impl EventLog {
    /// An empty log.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared { clock, events: Mutex::default(), latest: watch::Sender::new(0) }))
    }

    /// Adds an event and wakes whoever waits.
    pub fn publish(&self, kind: EventKind, object: impl Into<String>, message: impl Into<String>) {
        let time = self.0.clock.wall();
        let mut events = self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
        let id = *self.0.latest.borrow() + 1;
        events.push_back(Event { id, time, kind, object: object.into(), message: message.into() });
        if events.len() > KEPT {
            events.pop_front();
        }
        self.0.latest.send_replace(id);
    }

    /// The id of the latest event; 0 before the first.
    pub fn latest(&self) -> u64 {
        *self.0.latest.borrow()
    }

    /// The events that are kept with ids above `since`, and the id to ask with next.
    pub fn after(&self, since: u64) -> (Vec<Event>, u64) {
        let events = self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
        (events.iter().filter(|event| event.id > since).cloned().collect(), self.latest())
    }

    /// Ends when there is an event above `since`. An id from the future belongs to another life of the process, so it
    /// ends at once too.
    pub async fn wait(&self, since: u64) {
        let mut latest = self.0.latest.subscribe();
        // The sender lives as long as this log.
        let _ = latest.wait_for(|latest| *latest != since).await;
    }
}

impl PlaneObserver for EventLog {
    fn notice(&self, key: &BalancerKey, event: PlaneEvent) {
        let (kind, message) = match event {
            PlaneEvent::BackendUp { machine } => {
                (EventKind::BackendUp, format!("backend {machine} is healthy"))
            }
            PlaneEvent::BackendDown { machine, reason } => {
                (EventKind::BackendDown, format!("backend {machine} is down: {reason}"))
            }
            PlaneEvent::ListenerBound { listener } => {
                let at = listener.bound.map(|at| at.to_string()).unwrap_or_default();
                (
                    EventKind::ListenerBound,
                    with_reason(format!("{} is bound at {at}", named(&listener)), &listener),
                )
            }
            PlaneEvent::ListenerFailed { listener } => (
                EventKind::ListenerFailed,
                with_reason(format!("{} is not bound", named(&listener)), &listener),
            ),
        };
        tracing::info!(balancer = %key, ?kind, "{message}");
        self.publish(kind, key.to_string(), message);
    }
}

fn named(listener: &ListenerReport) -> String {
    format!("{} {} of {}", protocol_word(listener.protocol), listener.port, listener.address)
}

fn with_reason(text: String, listener: &ListenerReport) -> String {
    if listener.message.is_empty() { text } else { format!("{text}: {}", listener.message) }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").field("latest", &self.latest()).finish_non_exhaustive()
    }
}
