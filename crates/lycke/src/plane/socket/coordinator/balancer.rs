//! A load balancer from the coordinator's view, and how it becomes like its configuration.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use jiff::Timestamp;

use super::{
    Coordinator,
    health::{BackendHere, Running},
    listeners::Slot,
};
use crate::plane::{
    config::{Backend, BalancerConfig, BalancerKey, Listener, Protocol},
    diff::{CheckScope, Endpoint, changes, endpoints, probes},
    report::{BalancerReport, Counters},
    socket::{
        counters::Cells,
        inbox::{Command, Doomed},
        shared::{
            BackendShared, BalancerShared, ListenerShared, PortShared, RangeShared, Target, Targets, View,
            lock,
        },
    },
    verdict::BackendHealth,
};

/// A load balancer.
#[derive(Debug)]
pub(crate) struct Balancer {
    pub(crate) config: BalancerConfig,
    pub(crate) shared: Arc<BalancerShared>,
    /// In the order of the configuration, for each address in its order.
    pub(crate) slots: Vec<Slot>,
    pub(crate) ports: BTreeMap<(Protocol, u16), Arc<PortShared>>,
    /// In the order of the configuration.
    pub(crate) backends: Vec<BackendHere>,
    /// Removed backends whose connections drain.
    pub(crate) leaving: BTreeMap<String, Arc<BackendShared>>,
    pub(crate) ranges: Vec<Arc<RangeShared>>,
}

impl Balancer {
    pub(crate) fn stop_checks(&mut self) {
        for backend in &mut self.backends {
            backend.running.clear();
        }
    }

    /// The listeners that are bound; the slots are empty afterwards.
    pub(crate) fn take_bound(&mut self) -> Vec<(Endpoint, Arc<ListenerShared>)> {
        let slots = std::mem::take(&mut self.slots).into_iter();
        slots.filter_map(|slot| Some((slot.endpoint, slot.bound?))).collect()
    }

    /// What clients of a listener are led to.
    pub(crate) fn targets(&self, listener: Listener, local: SocketAddr) -> Targets {
        let usable = self.backends.iter().filter(|backend| {
            backend.config.address.is_ipv4() == local.is_ipv4() && backend.health.serves(listener)
        });
        // A client of the other family is better led to any backend than to none.
        let mut targets: Vec<_> = usable.collect();
        if targets.is_empty() {
            targets = self.backends.iter().filter(|backend| backend.health.serves(listener)).collect();
        }
        let config = &self.config;
        Targets {
            usable: targets
                .into_iter()
                .map(|backend| Target {
                    backend: Arc::clone(&backend.shared),
                    address: SocketAddr::new(backend.config.address, listener.node_port),
                })
                .collect(),
            policy: config.policy,
            affinity: config.affinity,
            ranges: self.ranges.clone(),
            proxy_protocol: config.proxy_protocol,
            idle: config.idle_timeout,
            udp_idle: config.limits.udp_idle,
            udp_flows: config.limits.udp_flows,
        }
    }

    /// Puts what people may ask about where they can.
    pub(crate) fn publish(&self) -> BalancerReport {
        let report = BalancerReport {
            listeners: self.slots.iter().map(|slot| slot.report.clone()).collect(),
            backends: self.backends.iter().map(|backend| backend.report.clone()).collect(),
        };
        let mut view = lock(&self.shared.view);
        view.report = report.clone();
        view.backends = self.backends.iter().map(|backend| Arc::clone(&backend.shared)).collect();
        view.ranges.clone_from(&self.ranges);
        report
    }
}

impl Coordinator {
    pub(crate) async fn apply(&mut self, key: &BalancerKey, config: BalancerConfig) -> BalancerReport {
        let mut balancer = match self.balancers.remove(key) {
            Some(balancer) => balancer,
            None => self.new_balancer(key, config.clone()),
        };
        let is_new = balancer.slots.is_empty() && balancer.backends.is_empty();
        let changes = changes((!is_new).then_some(&balancer.config), &config);
        if changes.restart_counters {
            balancer.shared.restart_counters(self.plane.clock.wall());
        }
        if balancer.config.affinity.is_some() && config.affinity.is_none() {
            balancer.ports.values().for_each(|port| lock(&port.affinity).clear());
        }
        balancer.shared.most.store(config.limits.connections, Relaxed);
        balancer.config = config;
        self.close_removed(&mut balancer, &changes.close).await;
        set_ranges(&mut balancer);
        self.set_backends(&mut balancer, &changes.drain);
        arrange_slots(&mut balancer);
        self.start_checks(key, &mut balancer);
        self.balancers.insert(key.clone(), balancer);
        // Before anything is bound: the first client must find its backends.
        self.lead_to_targets(key);
        self.bind_missing(key);
        let report = self.balancers.get(key).map(Balancer::publish);
        if let Some(balancer) = self.balancers.get(key) {
            lock(&self.registry).insert(key.clone(), Arc::clone(&balancer.shared));
        }
        if !changes.close.is_empty() {
            self.retry_listeners();
        }
        report.unwrap_or(BalancerReport { listeners: Vec::new(), backends: Vec::new() })
    }

    fn new_balancer(&mut self, key: &BalancerKey, config: BalancerConfig) -> Balancer {
        let shared = BalancerShared {
            id: self.next_id(),
            key: key.clone(),
            cells: Cells::new(self.workers.len()),
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(config.limits.connections),
            view: Mutex::new(View {
                report: BalancerReport { listeners: Vec::new(), backends: Vec::new() },
                backends: Vec::new(),
                ranges: Vec::new(),
                baseline: Counters::default(),
                since: self.plane.clock.wall(),
            }),
        };
        Balancer {
            config,
            shared: Arc::new(shared),
            slots: Vec::new(),
            ports: BTreeMap::new(),
            backends: Vec::new(),
            leaving: BTreeMap::new(),
            ranges: Vec::new(),
        }
    }

    /// Makes the backends those of the configuration; what is known of a machine stays with it.
    fn set_backends(&mut self, balancer: &mut Balancer, draining: &[String]) {
        let now = self.plane.clock.wall();
        let probes = probes(&balancer.config.health, &balancer.config.listeners);
        let mut before: BTreeMap<String, BackendHere> = std::mem::take(&mut balancer.backends)
            .into_iter()
            .map(|b| (b.config.machine.clone(), b))
            .collect();
        for config in balancer.config.backends.clone() {
            let mut backend = match before.remove(&config.machine) {
                Some(backend) => backend,
                None => self.arriving(balancer.leaving.remove(&config.machine), &config, now),
            };
            if config.down.is_none() {
                self.drains.retain(|drain| drain.doomed != Doomed::Backend(backend.shared.id));
            } else if draining.contains(&config.machine) {
                self.drain(Doomed::Backend(backend.shared.id), balancer.config.limits.drain);
            }
            backend.health.configure(config.address, config.down.clone(), probes.clone());
            backend.config = config;
            self.update_report(&balancer.shared.key, &mut backend, now);
            balancer.backends.push(backend);
        }
        for (machine, backend) in before {
            let doomed = Doomed::Backend(backend.shared.id);
            if draining.contains(&machine) {
                self.drain(doomed, balancer.config.limits.drain);
            }
            // One that was down for longer than that has no connections, and nothing would ever forget it.
            if self.drains.iter().any(|drain| drain.doomed == doomed) {
                balancer.leaving.insert(machine, backend.shared);
            }
        }
    }

    fn arriving(
        &mut self,
        known: Option<Arc<BackendShared>>,
        config: &Backend,
        now: Timestamp,
    ) -> BackendHere {
        let shared = match known {
            Some(shared) => shared,
            None => Arc::new(BackendShared::new(self.next_id(), &config.machine)),
        };
        BackendHere::new(shared, config.clone(), BackendHealth::new(config.address), now)
    }

    /// Tells every listener where it leads to now.
    pub(crate) fn lead_to_targets(&self, key: &BalancerKey) {
        let Some(balancer) = self.balancers.get(key) else { return };
        for slot in &balancer.slots {
            let Some(listener) = &slot.bound else { continue };
            listener.set_targets(balancer.targets(slot.listener, listener.bound));
            if slot.listener.protocol == Protocol::Udp
                && let Some(worker) = self.udp_worker(listener.id)
            {
                worker.send(Command::Sweep { listener: listener.id });
            }
        }
    }

    /// Starts the checks that are missing and ends those that are no longer made.
    fn start_checks(&mut self, key: &BalancerKey, balancer: &mut Balancer) {
        let health = balancer.config.health.clone();
        let probes = probes(&health, &balancer.config.listeners);
        for backend in &mut balancer.backends {
            let mut before: BTreeMap<CheckScope, Running> = std::mem::take(&mut backend.running);
            if backend.config.down.is_some() {
                continue;
            }
            for (scope, probe) in &probes {
                let kept =
                    before.remove(scope).filter(|running| running.is_like(probe, &backend.config, &health));
                let running = match kept {
                    Some(running) => running,
                    None => self.start_check(key, backend, *scope, probe.clone(), &health),
                };
                backend.running.insert(*scope, running);
            }
        }
    }
}

/// Makes the ranges those of the configuration; one that stays goes on counting.
fn set_ranges(balancer: &mut Balancer) {
    let before = std::mem::take(&mut balancer.ranges);
    for range in &balancer.config.source_ranges {
        let known = before.iter().find(|known| known.range == *range).map(Arc::clone);
        let new = || Arc::new(RangeShared { range: *range, hits: AtomicU64::new(0) });
        balancer.ranges.push(known.unwrap_or_else(new));
    }
}

/// One slot for each socket that should be there, in order; those that are bound stay bound.
fn arrange_slots(balancer: &mut Balancer) {
    let mut before: BTreeMap<_, _> =
        std::mem::take(&mut balancer.slots).into_iter().map(|slot| (slot.endpoint, slot)).collect();
    for (listener, address, endpoint) in endpoints(&balancer.config) {
        let slot = match before.remove(&endpoint) {
            Some(slot) => Slot { listener, ..slot },
            None => Slot::new(listener, address, endpoint),
        };
        balancer.slots.push(slot);
    }
    let wanted: Vec<_> = balancer.config.listeners.iter().map(|l| (l.protocol, l.port)).collect();
    balancer.ports.retain(|port, _| wanted.contains(port));
    for port in wanted {
        balancer.ports.entry(port).or_default();
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use cloudberth_http::surroundings::SystemClock;

    use super::*;
    use crate::plane::socket::{
        inherited::SocketLender,
        shared::PlaneShared,
        tests::{Nobody, config, key},
    };

    #[tokio::test]
    async fn a_machine_that_was_removed_is_remembered_as_long_as_it_drains() {
        let hour = Duration::from_secs(3600);
        let down = || Some("machine stopped".to_owned());
        for (case, stopped, drain, want) in [
            ("removed while it ran", None, hour, 1),
            ("stopped a moment ago", down(), hour, 1),
            ("stopped for longer than it drains", down(), Duration::ZERO, 0),
        ] {
            let plane = PlaneShared::new(Arc::new(SystemClock::new()), 0, hour);
            let (registry, lender) = (super::super::Registry::default(), SocketLender::default());
            let (mut coordinator, _results) =
                Coordinator::new(Arc::new(plane), Arc::new(Nobody), Vec::new(), registry, lender);
            let backend = SocketAddr::from(([127, 0, 0, 1], 30_080));
            let (mut config, _) = config(Protocol::Tcp, Ipv4Addr::LOCALHOST, backend);
            config.listeners.clear();
            config.limits.drain = drain;
            coordinator.apply(&key("web"), config.clone()).await;
            if stopped.is_some() {
                config.backends[0].down = stopped;
                coordinator.apply(&key("web"), config.clone()).await;
                coordinator.handle_time();
            }
            config.backends.clear();
            coordinator.apply(&key("web"), config).await;
            assert_eq!(coordinator.balancers[&key("web")].leaving.len(), want, "CL-37 {case}");
        }
    }
}
