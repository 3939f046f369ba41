//! The metrics of the program.
//!
//! Every part has its own struct, made once per process by [`Metrics::new`] and handed to the code that updates it; clones
//! update the same series. A part made by `default()` is not registered: that is for tests.
//!
//! Names, labels and buckets are those that dashboards and alerts for cloud controller managers look for. [`TABLE`] has
//! them all.

pub mod clouds;
pub mod controllers;
pub mod election;
mod kinds;
pub mod manager;
mod process;
pub mod queue;
pub mod rest;
mod table;
mod text;

pub use prometheus_client::{encoding::EncodeLabelSet, registry::Registry};

pub use self::{
    clouds::{CloudMeter, CloudMetrics},
    controllers::{LifecycleMetrics, NodeMetrics, RouteMetrics, ServiceMetrics},
    election::ElectionMetrics,
    kinds::{Counter, Family, Gauge, Histogram, publish},
    manager::{BuildInfo, ManagerMetrics},
    queue::{Meter, QueueMetrics},
    rest::RestMetrics,
    table::TABLE,
    text::{CONTENT_TYPE, render},
};

#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "each part says what it measures")]
pub struct Metrics {
    pub queues: QueueMetrics,
    pub node: NodeMetrics,
    pub lifecycle: LifecycleMetrics,
    pub service: ServiceMetrics,
    pub route: RouteMetrics,
    pub election: ElectionMetrics,
    pub manager: ManagerMetrics,
    pub clouds: CloudMetrics,
    pub rest: RestMetrics,
}

impl Metrics {
    /// Makes every part and registers it, the process's own numbers included. Twice in one registry is a mistake:
    /// every series would be printed twice.
    pub fn new(registry: &mut Registry) -> Self {
        registry.register_collector(Box::new(process::Process::default()));
        let all = Self::default();
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
