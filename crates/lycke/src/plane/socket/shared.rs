//! What the coordinator writes and the workers read.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use cloudberth_core::time::{Clock, Tick};
use ipnet::IpNet;
use jiff::Timestamp;

use super::counters::{self, Cell, Cells};
use crate::plane::{
    affinity::AffinityTable,
    choose::{Candidate, choose},
    config::{BalancerKey, Policy, ProxyProtocol},
    report::{BackendCounters, BalancerReport, Counters},
    source_ranges::{Admission, admit},
};

/// Locks, also after a panic elsewhere: what is behind these locks is replaced as a whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What belongs to the whole plane.
pub(crate) struct PlaneShared {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cells: Cells,
    /// TCP connections that are open. Each has two descriptors.
    pub(crate) open: AtomicUsize,
    /// How many may be.
    pub(crate) most: AtomicUsize,
    /// UDP flows. Each has a descriptor.
    pub(crate) flows: AtomicUsize,
    /// How many descriptors connections and flows may have together.
    pub(crate) descriptors: AtomicUsize,
    pub(crate) connect_timeout: Duration,
    /// No connection is accepted any more, and somebody waits for the last one to end.
    pub(crate) closing: AtomicBool,
}

impl PlaneShared {
    /// For so many workers. Nobody may connect before somebody says how many may.
    pub(crate) fn new(clock: Arc<dyn Clock>, workers: usize, connect_timeout: Duration) -> Self {
        let [open, most, flows, descriptors] = [const { AtomicUsize::new(0) }; 4];
        let (cells, closing) = (Cells::new(workers), AtomicBool::new(false));
        Self { clock, cells, open, most, flows, descriptors, connect_timeout, closing }
    }

    /// How many TCP connections there may be beside the flows.
    pub(crate) fn most_connections(&self) -> usize {
        let left = self.descriptors.load(Relaxed).saturating_sub(self.flows.load(Relaxed));
        self.most.load(Relaxed).min(left / 2)
    }

    /// How many flows there may be beside the connections: no more than a quarter of all descriptors, because datagrams
    /// cost whoever sends them nothing.
    pub(crate) fn most_flows(&self) -> usize {
        let all = self.descriptors.load(Relaxed);
        all.saturating_sub(self.open.load(Relaxed).saturating_mul(2)).min(all / 4)
    }
}

/// A load balancer.
#[derive(Debug)]
pub(crate) struct BalancerShared {
    pub(crate) id: u64,
    pub(crate) key: BalancerKey,
    pub(crate) cells: Cells,
    /// TCP connections that are open.
    pub(crate) open: AtomicUsize,
    /// How many may be.
    pub(crate) most: AtomicUsize,
    pub(crate) view: Mutex<View>,
}

/// What people are told of a load balancer.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) report: BalancerReport,
    pub(crate) backends: Vec<Arc<BackendShared>>,
    pub(crate) ranges: Vec<Arc<RangeShared>>,
    /// What was counted before counting started again.
    pub(crate) baseline: Counters,
    pub(crate) since: Timestamp,
}

impl BalancerShared {
    pub(crate) fn counters(&self) -> Counters {
        let view = lock(&self.view);
        counters::since(&view.baseline, self.all_counters(&view))
    }

    /// Counts from zero.
    pub(crate) fn restart_counters(&self, now: Timestamp) {
        let mut view = lock(&self.view);
        view.baseline = self.all_counters(&view);
        view.since = now;
    }

    fn all_counters(&self, view: &View) -> Counters {
        Counters {
            backends: view.backends.iter().map(|backend| backend.counters()).collect(),
            source_ranges: view.ranges.iter().map(|range| (range.range, range.hits.load(Relaxed))).collect(),
            since: Some(view.since),
            ..self.cells.counters()
        }
    }
}

/// A backend of one load balancer. Connections hold on to it, also after it was removed.
#[derive(Debug)]
pub(crate) struct BackendShared {
    pub(crate) id: u64,
    pub(crate) machine: String,
    pub(crate) open: AtomicU64,
    pub(crate) flows: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) failures: AtomicU64,
}

impl BackendShared {
    pub(crate) fn new(id: u64, machine: &str) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            id,
            machine: machine.to_owned(),
            open: zero(),
            flows: zero(),
            connections: zero(),
            failures: zero(),
        }
    }

    fn counters(&self) -> BackendCounters {
        BackendCounters {
            machine: self.machine.clone(),
            open: self.open.load(Relaxed),
            connections: self.connections.load(Relaxed),
            failures: self.failures.load(Relaxed),
        }
    }
}

/// A range of addresses that are let in.
#[derive(Debug)]
pub(crate) struct RangeShared {
    pub(crate) range: IpNet,
    pub(crate) hits: AtomicU64,
}

/// What the sockets of one port have in common, whatever their addresses.
#[derive(Debug, Default)]
pub(crate) struct PortShared {
    pub(crate) turns: AtomicUsize,
    pub(crate) affinity: Mutex<AffinityTable<u64>>,
}

/// A listening socket. All workers have it.
#[derive(Debug)]
pub(crate) struct ListenerShared {
    pub(crate) id: u64,
    pub(crate) balancer: Arc<BalancerShared>,
    pub(crate) port: Arc<PortShared>,
    /// Where it listens.
    pub(crate) bound: SocketAddr,
    targets: Mutex<Arc<Targets>>,
    /// Grows with each new `targets`, so that workers need not lock to see that nothing has changed.
    version: AtomicU64,
}

impl ListenerShared {
    pub(crate) fn new(
        id: u64,
        balancer: Arc<BalancerShared>,
        port: Arc<PortShared>,
        bound: SocketAddr,
    ) -> Self {
        let (targets, version) = (Mutex::default(), AtomicU64::new(1));
        Self { id, balancer, port, bound, targets, version }
    }

    pub(crate) fn set_targets(&self, targets: Targets) {
        *lock(&self.targets) = Arc::new(targets);
        self.version.fetch_add(1, Relaxed);
    }

    /// Brings a worker's copy up to date.
    pub(crate) fn refresh(&self, cached: &mut CachedTargets) {
        let version = self.version.load(Relaxed);
        if cached.version != version {
            *cached = CachedTargets { version, targets: Arc::clone(&lock(&self.targets)) };
        }
    }
}

/// A worker's copy of what a listener leads to.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedTargets {
    version: u64,
    pub(crate) targets: Arc<Targets>,
}

/// Where a listener leads to, and how. Never changed, only replaced.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// Backends that may be used now.
    pub(crate) usable: Vec<Target>,
    pub(crate) policy: Policy,
    pub(crate) affinity: Option<Duration>,
    pub(crate) ranges: Vec<Arc<RangeShared>>,
    pub(crate) proxy_protocol: ProxyProtocol,
    pub(crate) idle: Option<Duration>,
    pub(crate) udp_idle: Duration,
    pub(crate) udp_flows: usize,
}

/// A backend at its node port.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) backend: Arc<BackendShared>,
    pub(crate) address: SocketAddr,
}

impl Targets {
    /// Whether a client is let in; counts it at its range.
    pub(crate) fn admits(&self, client: SocketAddr) -> bool {
        match admit(self.ranges.iter().map(|range| &range.range), client.ip()) {
            Admission::Open => true,
            Admission::Refused => false,
            Admission::By(at) => {
                if let Some(range) = self.ranges.get(at) {
                    range.hits.fetch_add(1, Relaxed);
                }
                true
            }
        }
    }

    /// Whether a backend may be used.
    pub(crate) fn has(&self, backend: u64) -> bool {
        self.usable.iter().any(|target| target.backend.id == backend)
    }

    /// Chooses among those that were not tried, and remembers the choice for clients that are bound to a backend.
    pub(crate) fn choose(
        &self,
        port: &PortShared,
        client: SocketAddr,
        tried: &[u64],
        now: Tick,
    ) -> Option<&Target> {
        let is_tried = |target: &Target| tried.contains(&target.backend.id);
        let ip = client.ip();
        if let Some(timeout) = self.affinity {
            let mut table = lock(&port.affinity);
            table.expire(now, timeout);
            let kept = table.backend_of(ip, now, timeout).copied();
            let bound = self.usable.iter().find(|t| Some(t.backend.id) == kept && !is_tried(t));
            let target = bound.or_else(|| self.by_policy(port, client, is_tried))?;
            table.bind(ip, target.backend.id, now);
            return Some(target);
        }
        self.by_policy(port, client, is_tried)
    }

    fn by_policy(
        &self,
        port: &PortShared,
        client: SocketAddr,
        tried: impl Fn(&Target) -> bool,
    ) -> Option<&Target> {
        // Only who needs a turn takes one: a sequence without gaps is what makes round-robin exact.
        let turn = port.turns.fetch_add(1, Relaxed);
        let candidates = self.usable.iter().map(|target| Candidate {
            machine: &target.backend.machine,
            open: target.backend.open.load(Relaxed) + target.backend.flows.load(Relaxed),
        });
        let tried = |at: usize| self.usable.get(at).is_none_or(&tried);
        self.usable.get(choose(self.policy, client.ip(), turn, candidates, &tried)?)
    }
}

/// Where a worker counts: at the load balancer and for the whole plane.
pub(crate) fn count(plane: &PlaneShared, balancer: &BalancerShared, worker: usize, add: impl Fn(&Cell)) {
    for cells in [&plane.cells, &balancer.cells] {
        if let Some(cell) = cells.of(worker) {
            add(cell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(ids: &[u64], affinity: Option<Duration>) -> Targets {
        let target = |id: &u64| Target {
            backend: Arc::new(BackendShared::new(*id, &format!("m{id}"))),
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
        };
        Targets { usable: ids.iter().map(target).collect(), affinity, ..Targets::default() }
    }

    #[test]
    fn a_client_that_is_bound_moves_only_when_its_backend_cannot_be_used() {
        let (port, client) = (PortShared::default(), SocketAddr::from(([127, 0, 0, 1], 4000)));
        let all = targets(&[1, 2, 3], Some(Duration::from_secs(5)));
        let pick = |targets: &Targets, tried: &[u64], at: u64| {
            targets.choose(&port, client, tried, Tick::from_secs(at)).map(|target| target.backend.id)
        };
        assert_eq!([0, 1, 2].map(|at| pick(&all, &[], at)), [Some(1); 3], "CL-59 it keeps its backend");
        assert_eq!(pick(&all, &[1], 3), Some(2), "CL-59 its backend does not answer");
        assert_eq!(pick(&all, &[], 4), Some(2), "CL-59 it stays where it went");
        let without = targets(&[1, 3], Some(Duration::from_secs(5)));
        assert_eq!(pick(&without, &[], 5), Some(1), "CL-59 its backend is down");
        assert_eq!(pick(&all, &[], 9), Some(1), "CL-59 and back does not move it again");
        assert_eq!(pick(&all, &[], 14), Some(1), "CL-59 its time is over: the turn decides");
        assert_eq!(pick(&targets(&[], None), &[], 15), None, "CL-53 nobody is there");
    }
}
