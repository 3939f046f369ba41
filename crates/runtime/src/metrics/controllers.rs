//! What the controllers measure.

#![allow(missing_docs, reason = "fields are labels and metrics, explained where they are registered")]

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;

use super::{
    Registry,
    kinds::{Counter, Family, Gauge, Histogram, publish},
    table,
};

/// How many wait, and since when the one does that waits longest.
#[derive(Clone, Debug, Default)]
pub struct WaitingMetrics {
    pub count: Gauge,
    /// In seconds since 1970; 0 if none waits.
    pub since: Gauge,
}

impl WaitingMetrics {
    pub fn set(&self, count: usize, oldest: Option<Timestamp>) {
        self.count.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.since.set(oldest.map_or(0, Timestamp::as_second));
    }
}

#[derive(Clone, Debug)]
pub struct NodeMetrics {
    /// Nodes that wait for their cloud.
    pub waiting: WaitingMetrics,
    /// From a node's creation until its taint was gone.
    pub taint_removal_delay: Histogram,
    /// From a node's creation until it was synced for the first time.
    pub initial_sync_delay: Histogram,
}

impl Default for NodeMetrics {
    fn default() -> Self {
        let delay = || Histogram::exponential(1.0, 4.0, 6);
        Self { waiting: WaitingMetrics::default(), taint_removal_delay: delay(), initial_sync_delay: delay() }
    }
}

impl NodeMetrics {
    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &table::TAINT_REMOVAL_DELAY, self.taint_removal_delay.clone());
        publish(registry, &table::INITIAL_SYNC_DELAY, self.initial_sync_delay.clone());
        publish(registry, &table::NODES_WAITING, self.waiting.count.clone());
        publish(registry, &table::NODES_WAITING_SINCE, self.waiting.since.clone());
    }
}

/// Which question was put to the cloud, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct CallLabels {
    pub operation: &'static str,
    pub result: &'static str,
}

#[derive(Clone, Debug)]
pub struct LifecycleMetrics {
    /// How long a pass over all nodes took.
    pub monitor_duration: Histogram,
    /// Questions put to the cloud about single nodes.
    pub cloud_calls: Family<CallLabels, Counter>,
    /// Deletions that law 2's cap put off.
    pub deletions_held: Counter,
}

impl Default for LifecycleMetrics {
    fn default() -> Self {
        Self {
            monitor_duration: Histogram::exponential(0.001, 2.0, 15),
            cloud_calls: Family::default(),
            deletions_held: Counter::default(),
        }
    }
}

impl LifecycleMetrics {
    pub fn called(&self, operation: &'static str, result: &'static str) {
        self.cloud_calls.with(&CallLabels { operation, result }).inc();
    }

    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &table::MONITOR_DURATION, self.monitor_duration.clone());
        publish(registry, &table::NODE_CLOUD_CALLS, self.cloud_calls.clone());
        publish(registry, &table::DELETIONS_HELD, self.deletions_held.clone());
    }
}

#[derive(Clone, Debug)]
pub struct ServiceMetrics {
    /// Updates of a load balancer's hosts. Ensuring one is not counted.
    pub load_balancer_syncs: Counter,
    pub node_sync_errors: Counter,
    /// How long a pass over all load balancers took after the set of nodes had changed.
    pub node_sync_latency: Histogram,
    /// How long it took to update the hosts of one.
    pub update_hosts_latency: Histogram,
    /// Load balancers that may be left without a Service, because somebody took the finalizer away.
    pub orphans: Counter,
    /// Services that wait for an address.
    pub waiting: WaitingMetrics,
    /// Services of which something is refused.
    pub refused: Gauge,
}

impl Default for ServiceMetrics {
    fn default() -> Self {
        let latency = || Histogram::exponential(1.0, 2.0, 15);
        Self {
            load_balancer_syncs: Counter::default(),
            node_sync_errors: Counter::default(),
            node_sync_latency: latency(),
            update_hosts_latency: latency(),
            orphans: Counter::default(),
            waiting: WaitingMetrics::default(),
            refused: Gauge::default(),
        }
    }
}

impl ServiceMetrics {
    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &table::LOAD_BALANCER_SYNCS, self.load_balancer_syncs.clone());
        publish(registry, &table::NODE_SYNC_ERRORS, self.node_sync_errors.clone());
        publish(registry, &table::NODE_SYNC_LATENCY, self.node_sync_latency.clone());
        publish(registry, &table::UPDATE_HOSTS_LATENCY, self.update_hosts_latency.clone());
        publish(registry, &table::ORPHANS, self.orphans.clone());
        publish(registry, &table::SERVICES_WAITING, self.waiting.count.clone());
        publish(registry, &table::SERVICES_WAITING_SINCE, self.waiting.since.clone());
        publish(registry, &table::SERVICES_REFUSED, self.refused.clone());
    }
}

/// How a pass over the routes ended, and what set it off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct RouteLabels {
    /// `changed`, `noop` or `error`.
    pub outcome: &'static str,
    pub trigger: &'static str,
}

#[derive(Clone, Debug, Default)]
pub struct RouteMetrics {
    pub syncs: Family<RouteLabels, Counter>,
}

impl RouteMetrics {
    pub fn synced(&self, outcome: &'static str, trigger: &'static str) {
        self.syncs.with(&RouteLabels { outcome, trigger }).inc();
    }

    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &table::ROUTE_SYNCS, self.syncs.clone());
    }
}
