//! Health checks that run, and what follows from their results.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{MissedTickBehavior, interval},
};

use super::Coordinator;
use crate::plane::{
    config::{Backend, BalancerKey, Health, Listener},
    diff::{CheckScope, Probe},
    report::{BackendReport, PlaneEvent},
    socket::{
        probe::check,
        shared::{BackendShared, BalancerShared},
    },
    verdict::BackendHealth,
};

/// A backend from the coordinator's view.
#[derive(Debug)]
pub(crate) struct BackendHere {
    pub(crate) shared: Arc<BackendShared>,
    pub(crate) config: Backend,
    pub(crate) health: BackendHealth,
    pub(crate) running: BTreeMap<CheckScope, Running>,
    pub(crate) report: BackendReport,
}

impl BackendHere {
    pub(crate) fn new(
        shared: Arc<BackendShared>,
        config: Backend,
        health: BackendHealth,
        since: Timestamp,
    ) -> Self {
        let report = BackendReport { machine: config.machine.clone(), healthy: None, reason: None, since };
        Self { shared, config, health, running: BTreeMap::new(), report }
    }

    /// Which listeners use it.
    fn serves(&self, listeners: &[Listener]) -> Vec<bool> {
        listeners.iter().map(|listener| self.health.serves(*listener)).collect()
    }
}

/// A check that is made again and again, until this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    run: u64,
    probe: Probe,
    address: IpAddr,
    interval: Duration,
    timeout: Duration,
    task: AbortHandle,
}

impl Running {
    /// Whether it does what such a check would do.
    pub(crate) fn is_like(&self, probe: &Probe, backend: &Backend, health: &Health) -> bool {
        self.probe == *probe
            && self.address == backend.address
            && (self.interval, self.timeout) == (health.interval, health.timeout)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a check brought back.
#[derive(Debug)]
pub(crate) struct ProbeResult {
    key: BalancerKey,
    backend: u64,
    scope: CheckScope,
    run: u64,
    result: Result<(), String>,
}

impl Coordinator {
    pub(crate) fn start_check(
        &mut self,
        key: &BalancerKey,
        backend: &BackendHere,
        scope: CheckScope,
        probe: Probe,
        health: &Health,
    ) -> Running {
        let run = self.next_id();
        let (address, timeout) = (backend.config.address, health.timeout);
        let (key, backend) = (key.clone(), backend.shared.id);
        let work = keep_checking(probe.clone(), address, (health.interval, timeout), self.results.clone(), {
            move |result| ProbeResult { key: key.clone(), backend, scope, run, result }
        });
        let task = tokio::spawn(work).abort_handle();
        Running { run, probe, address, interval: health.interval, timeout, task }
    }

    pub(crate) fn handle_result(&mut self, result: ProbeResult) {
        let ProbeResult { key, backend, scope, run, result } = result;
        self.change_health(&key, backend, |backend, health| {
            // A check that was ended may have sent a last result.
            if backend.running.get(&scope).is_some_and(|running| running.run == run) {
                backend.health.result(scope, result, health);
            }
        });
    }

    pub(crate) fn connect_failed(
        &mut self,
        balancer: &BalancerShared,
        backend: u64,
        node_port: u16,
        failure: &str,
    ) {
        let is_there = self.balancers.get(&balancer.key).is_some_and(|here| here.shared.id == balancer.id);
        if is_there {
            self.change_health(&balancer.key, backend, |backend, _| {
                backend.health.connect_failed(node_port, failure);
            });
        }
    }

    /// Changes what is known of a backend, and tells everybody whom it concerns.
    fn change_health(
        &mut self,
        key: &BalancerKey,
        backend: u64,
        change: impl FnOnce(&mut BackendHere, &Health),
    ) {
        let Some(mut balancer) = self.balancers.remove(key) else { return };
        let now = self.plane.clock.wall();
        let mut moved = false;
        if let Some(backend) = balancer.backends.iter_mut().find(|here| here.shared.id == backend) {
            let before = backend.serves(&balancer.config.listeners);
            change(backend, &balancer.config.health);
            moved = before != backend.serves(&balancer.config.listeners);
            moved |= self.update_report(key, backend, now);
        }
        if moved {
            balancer.publish();
        }
        self.balancers.insert(key.clone(), balancer);
        if moved {
            self.lead_to_targets(key);
        }
    }

    /// Brings the report of a backend up to date; whether that changed anything.
    pub(crate) fn update_report(&self, key: &BalancerKey, backend: &mut BackendHere, now: Timestamp) -> bool {
        let (healthy, reason) = backend.health.summary();
        let before = &backend.report;
        if (before.healthy, &before.reason) == (healthy, &reason) {
            return false;
        }
        let since = if before.healthy == healthy { before.since } else { now };
        let turned = before.healthy != healthy;
        let machine = backend.config.machine.clone();
        backend.report = BackendReport { machine: machine.clone(), healthy, reason: reason.clone(), since };
        match healthy {
            Some(true) if turned => self.notify(key, PlaneEvent::BackendUp { machine }),
            Some(false) if turned => {
                self.notify(key, PlaneEvent::BackendDown { machine, reason: reason.unwrap_or_default() });
            }
            _ => {}
        }
        true
    }
}

/// Checks at once and then at every interval. A slow check delays the next one, so that there is never more than one.
async fn keep_checking(
    probe: Probe,
    address: IpAddr,
    (every, timeout): (Duration, Duration),
    results: mpsc::UnboundedSender<ProbeResult>,
    wrap: impl Fn(Result<(), String>) -> ProbeResult,
) {
    let mut ticks = interval(every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let result = check(&probe, address, timeout).await;
        if results.send(wrap(result)).is_err() {
            return;
        }
    }
}
