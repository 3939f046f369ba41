//! The metrics of the program.
//!
//! Every part has its own struct, made once per process by [`Metrics::new`] and handed to the code that updates it; clones
//! update the same series. A part made by `default()` is not registered: that is for tests.
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
    /// The metrics of every queue and its workers.
    pub queues: QueueMetrics,
    /// The metrics of the node controller.
    pub node: NodeMetrics,
    /// The metrics of the node lifecycle controller.
    pub lifecycle: LifecycleMetrics,
    /// The metrics of the service controller.
    pub service: ServiceMetrics,
    /// The metrics of the route controller.
    pub route: RouteMetrics,
    /// The metrics of the leader election.
    pub election: ElectionMetrics,
    /// The metrics of the program as a whole.
    pub manager: ManagerMetrics,
    /// The metrics of the calls to the clouds.
    pub clouds: CloudMetrics,
    /// The metrics of the calls to the Kubernetes API.
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
