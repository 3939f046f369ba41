//! What the program counts and measures about itself.
//!
//! Every part has a struct of its own, made once per process by [`Metrics::new`] and handed to whoever feeds it; clones
//! feed the same series. A part that was made by `default()` counts too, but nobody sees it: that is for tests.
//!
//! Names, labels and buckets are those that dashboards and alerts for cloud controller managers look for.

pub mod clouds;
pub mod controllers;
pub mod election;
mod kinds;
pub mod manager;
mod process;
pub mod queue;
pub mod rest;
mod text;

pub use prometheus_client::{encoding::EncodeLabelSet, registry::Registry};

pub use self::{
    clouds::{CloudMeter, CloudMetrics},
    controllers::{LifecycleMetrics, NodeMetrics, RouteMetrics, ServiceMetrics},
    election::ElectionMetrics,
    kinds::{Counter, Family, Gauge, Histogram, Stability, publish},
    manager::{BuildInfo, ManagerMetrics},
    queue::{Meter, QueueMetrics},
    rest::RestMetrics,
    text::{CONTENT_TYPE, render},
};

/// All parts, registered in one registry.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Of every queue and its workers.
    pub queues: QueueMetrics,
    /// Of the node controller.
    pub node: NodeMetrics,
    /// Of the node lifecycle controller.
    pub lifecycle: LifecycleMetrics,
    /// Of the service controller.
    pub service: ServiceMetrics,
    /// Of the route controller.
    pub route: RouteMetrics,
    /// Of the leader election.
    pub election: ElectionMetrics,
    /// Of the program as a whole.
    pub manager: ManagerMetrics,
    /// Of the calls to the clouds.
    pub clouds: CloudMetrics,
    /// Of the calls to the Kubernetes API.
    pub rest: RestMetrics,
}

impl Metrics {
    /// Makes every part and registers it, the process's own numbers included. Twice in one registry is a mistake:
    /// every series would be printed twice.
    pub fn new(registry: &mut Registry) -> Self {
        registry.register_collector(Box::new(process::Process::default()));
        let all = Self {
            queues: QueueMetrics::default(),
            node: NodeMetrics::default(),
            lifecycle: LifecycleMetrics::default(),
            service: ServiceMetrics::default(),
            route: RouteMetrics::default(),
            election: ElectionMetrics::default(),
            manager: ManagerMetrics::default(),
            clouds: CloudMetrics::default(),
            rest: RestMetrics::default(),
        };
        all.queues.register(registry);
        all.node.register(registry);
        all.lifecycle.register(registry);
        all.service.register(registry);
        all.route.register(registry);
        all.election.register(registry);
        all.manager.register(registry);
        all.clouds.register(registry);
        all.rest.register(registry);
        all
    }
}

#[cfg(test)]
mod tests;
