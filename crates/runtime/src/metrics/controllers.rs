//! What the controllers measure.

#![allow(missing_docs, reason = "fields are labels and metrics, explained where they are registered")]

use prometheus_client::encoding::EncodeLabelSet;

use super::{
    Registry,
    kinds::{Counter, Family, Histogram, Stability::Alpha, publish},
};

#[derive(Clone, Debug)]
pub struct NodeMetrics {
    /// From a node's creation until its taint was gone.
    pub taint_removal_delay: Histogram,
    /// From a node's creation until it was synced for the first time.
    pub initial_sync_delay: Histogram,
}

impl Default for NodeMetrics {
    fn default() -> Self {
        let delay = || Histogram::exponential(1.0, 4.0, 6);
        Self { taint_removal_delay: delay(), initial_sync_delay: delay() }
    }
}

impl NodeMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let name = "node_controller_cloud_provider_taint_removal_delay_seconds";
        let help = "Seconds from the creation of a node until the taint of uninitialised nodes was removed";
        publish(registry, name, Alpha, help, self.taint_removal_delay.clone());
        let name = "node_controller_initial_node_sync_delay_seconds";
        let help = "Seconds from the creation of a node until it was synced for the first time";
        publish(registry, name, Alpha, help, self.initial_sync_delay.clone());
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
        let name = "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds";
        let help = "Seconds that a pass over all nodes took";
        publish(registry, name, Alpha, help, self.monitor_duration.clone());
        let name = "cloud_node_lifecycle_controller_cloud_provider_calls_total";
        publish(registry, name, Alpha, "Questions put to the cloud about nodes", self.cloud_calls.clone());
        let name = "cloudberth_node_deletions_held_total";
        let help = "Node deletions put off because too many were due at once";
        publish(registry, name, Alpha, help, self.deletions_held.clone());
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
        }
    }
}

impl ServiceMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let name = "service_controller_loadbalancer_sync_total";
        let help = "Updates of the hosts of load balancers";
        publish(registry, name, Alpha, help, self.load_balancer_syncs.clone());
        let name = "service_controller_nodesync_error_total";
        let help = "Failed updates of the hosts of load balancers";
        publish(registry, name, Alpha, help, self.node_sync_errors.clone());
        let name = "service_controller_nodesync_latency_seconds";
        let help = "Seconds that a pass over all load balancers took after nodes had changed";
        publish(registry, name, Alpha, help, self.node_sync_latency.clone());
        let name = "service_controller_update_loadbalancer_host_latency_seconds";
        let help = "Seconds that the update of the hosts of one load balancer took";
        publish(registry, name, Alpha, help, self.update_hosts_latency.clone());
        let name = "cloudberth_orphaned_load_balancers_total";
        let help = "Load balancers that may be left without a Service; they are never deleted";
        publish(registry, name, Alpha, help, self.orphans.clone());
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
        let help = "Passes over the routes";
        publish(registry, "route_controller_route_sync_total", Alpha, help, self.syncs.clone());
    }
}
