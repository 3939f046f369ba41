//! A plane in memory: it carries no traffic, remembers what it was told and says what a test wants it to say.

pub mod half_open;

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cloudberth_core::Clock;
use jiff::Timestamp;

use crate::plane::{
    Answer, BackendCounters, BackendReport, BalancerConfig, BalancerKey, BalancerReport, Counters,
    ListenerFault, ListenerReport, Plane, PlaneEvent, PlaneObserver, PlaneTotals,
};

/// A plane in memory. Clones are the same one.
#[derive(Clone)]
pub struct MemoryPlane(Arc<Shared>);

struct Shared {
    observer: Arc<dyn PlaneObserver>,
    clock: Arc<dyn Clock>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    balancers: BTreeMap<BalancerKey, Known>,
    /// Ports that cannot be bound, and why.
    faults: BTreeMap<u16, ListenerFault>,
    applies: usize,
    connections: Option<usize>,
    closed: bool,
}

struct Known {
    config: BalancerConfig,
    /// Since when each backend is as it is.
    health: BTreeMap<String, (Option<bool>, Option<String>, Timestamp)>,
    since: Timestamp,
}

impl MemoryPlane {
    /// A plane without load balancers.
    pub fn new(observer: Arc<dyn PlaneObserver>, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared { observer, clock, inner: Mutex::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it was told about a load balancer.
    pub fn config(&self, key: &BalancerKey) -> Option<BalancerConfig> {
        self.lock().balancers.get(key).map(|known| known.config.clone())
    }

    /// The load balancers that it has.
    pub fn keys(&self) -> Vec<BalancerKey> {
        self.lock().balancers.keys().cloned().collect()
    }

    /// How often it was told about a load balancer.
    pub fn applies(&self) -> usize {
        self.lock().applies
    }

    /// How many connections it may have open at most, if it was told.
    pub fn most_connections(&self) -> Option<usize> {
        self.lock().connections
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// From now on, a port cannot be bound, or can be bound again. As the real plane does, it tries again by itself.
    pub fn set_fault(&self, port: u16, fault: Option<ListenerFault>) {
        let mut inner = self.lock();
        match fault {
            Some(fault) => inner.faults.insert(port, fault),
            None => inner.faults.remove(&port),
        };
        let concerned = inner.balancers.iter().flat_map(|(key, known)| {
            let reports = listeners(&known.config, &inner.faults);
            reports.into_iter().filter(|report| report.port == port).map(|report| (key.clone(), report))
        });
        let concerned: Vec<_> = concerned.collect();
        drop(inner);
        for (key, listener) in concerned {
            self.0.observer.notice(&key, event(listener));
        }
    }

    /// A backend passes its checks, or fails them for a reason.
    pub fn set_health(&self, key: &BalancerKey, machine: &str, healthy: Result<(), &str>) {
        let now = self.0.clock.wall();
        let reason = healthy.err().map(str::to_owned);
        if let Some(known) = self.lock().balancers.get_mut(key) {
            known.health.insert(machine.to_owned(), (Some(healthy.is_ok()), reason, now));
        }
        let machine = machine.to_owned();
        self.0.observer.notice(
            key,
            match healthy {
                Ok(()) => PlaneEvent::BackendUp { machine },
                Err(reason) => PlaneEvent::BackendDown { machine, reason: reason.to_owned() },
            },
        );
    }

    fn accept(&self, key: &BalancerKey, config: BalancerConfig) -> BalancerReport {
        let now = self.0.clock.wall();
        let mut inner = self.lock();
        inner.applies += 1;
        let old = inner.balancers.remove(key);
        let before = old.as_ref().map(|old| listeners(&old.config, &inner.faults)).unwrap_or_default();
        let mut health = old.as_ref().map(|old| old.health.clone()).unwrap_or_default();
        health.retain(|machine, _| config.backends.iter().any(|backend| backend.machine == *machine));
        for backend in &config.backends {
            let entry = health.entry(backend.machine.clone()).or_insert((None, None, now));
            if let Some(why) = &backend.down {
                *entry = (Some(false), Some(why.clone()), now);
            } else if entry.1.as_ref().is_some_and(|reason| reason.starts_with("machine ")) {
                *entry = (None, None, now);
            }
        }
        let since = old.filter(|old| old.config.uid == config.uid).map_or(now, |old| old.since);
        let known = Known { config, health, since };
        let report = report(&known, &inner.faults);
        inner.balancers.insert(key.clone(), known);
        drop(inner);
        for listener in report.listeners.iter().filter(|listener| !before.contains(listener)) {
            self.0.observer.notice(key, event(listener.clone()));
        }
        report
    }
}

fn event(listener: ListenerReport) -> PlaneEvent {
    match listener.bound {
        Some(_) => PlaneEvent::ListenerBound { listener },
        None => PlaneEvent::ListenerFailed { listener },
    }
}

fn listeners(config: &BalancerConfig, faults: &BTreeMap<u16, ListenerFault>) -> Vec<ListenerReport> {
    let each = config.listeners.iter().flat_map(|one| config.addresses.iter().map(move |at| (one, *at)));
    each.map(|(one, address)| {
        let fault = faults.get(&one.port).cloned();
        let bound = match &fault {
            None => Some(one.port),
            Some(ListenerFault::Shifted) => Some(one.port + 10_000),
            Some(_) => None,
        };
        let message = match &fault {
            None => String::new(),
            Some(ListenerFault::AddressInUse(Some(owner))) => format!("the port belongs to {owner}"),
            Some(fault) => format!("{fault:?}"),
        };
        let bound = bound.map(|port| SocketAddr::new(address, port));
        ListenerReport { protocol: one.protocol, address, port: one.port, bound, fault, message }
    })
    .collect()
}

fn report(known: &Known, faults: &BTreeMap<u16, ListenerFault>) -> BalancerReport {
    let backends = known.config.backends.iter().map(|backend| {
        let (healthy, reason, since) =
            known.health.get(&backend.machine).cloned().unwrap_or((None, None, known.since));
        BackendReport { machine: backend.machine.clone(), healthy, reason, since }
    });
    BalancerReport { listeners: listeners(&known.config, faults), backends: backends.collect() }
}

impl Plane for MemoryPlane {
    fn apply(&self, key: &BalancerKey, config: BalancerConfig) -> Answer<BalancerReport> {
        let (plane, key) = (self.clone(), key.clone());
        Box::pin(async move { plane.accept(&key, config) })
    }

    fn remove(&self, key: &BalancerKey) -> Answer<()> {
        let (plane, key) = (self.clone(), key.clone());
        Box::pin(async move {
            plane.lock().balancers.remove(&key);
        })
    }

    fn report(&self, key: &BalancerKey) -> Option<BalancerReport> {
        let inner = self.lock();
        inner.balancers.get(key).map(|known| report(known, &inner.faults))
    }

    fn counters(&self, key: &BalancerKey) -> Option<Counters> {
        let inner = self.lock();
        let known = inner.balancers.get(key)?;
        let backend =
            |machine: &str| BackendCounters { machine: machine.to_owned(), ..BackendCounters::default() };
        Some(Counters {
            backends: known.config.backends.iter().map(|one| backend(&one.machine)).collect(),
            source_ranges: known.config.source_ranges.iter().map(|range| (*range, 0)).collect(),
            since: Some(known.since),
            ..Counters::default()
        })
    }

    fn totals(&self) -> PlaneTotals {
        PlaneTotals::default()
    }

    fn limit_connections(&self, connections: usize) {
        self.lock().connections = Some(connections);
    }

    fn close(&self) -> Answer<()> {
        let plane = self.clone();
        Box::pin(async move {
            plane.lock().closed = true;
        })
    }
}

impl fmt::Debug for MemoryPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryPlane")
    }
}
