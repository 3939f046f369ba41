//! From options to what the controllers are set to.

use cloudberth_controllers::{
    lifecycle::LifecycleSettings, node::NodeSettings, routes::RouteSettings, service::ServiceSettings,
    team::TeamSettings,
};

use crate::options::Controllers;

/// Nodes that are written to at once where nobody sets a ceiling.
const LIFECYCLE_WORKERS: u32 = 8;

/// The settings of those that run.
#[must_use]
pub fn team(options: &Controllers) -> TeamSettings {
    let runs = |name: &str| options.run.iter().any(|controller| controller.name == name);
    let number = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let workers = &options.workers;
    let node = NodeSettings {
        period: options.node_status_update_frequency,
        workers: workers.node_syncs.map(number),
    };
    let lifecycle = LifecycleSettings {
        period: options.node_monitor_period,
        cap: options.deletions,
        workers: number(workers.node_lifecycle_syncs.unwrap_or(LIFECYCLE_WORKERS)),
    };
    let automatic = ServiceSettings::default();
    let service =
        ServiceSettings { workers: workers.service_syncs.map_or(automatic.workers, number), ..automatic };
    let routes = RouteSettings {
        configure_cloud_routes: options.configure_cloud_routes,
        cluster_cidr: options.cluster_cidr.clone(),
        period: options.route_reconciliation_period,
    };
    TeamSettings {
        node: runs("cloud-node-controller").then_some(node),
        lifecycle: runs("cloud-node-lifecycle-controller").then_some(lifecycle),
        service: runs("service-lb-controller").then_some(service),
        routes: runs("node-route-controller").then_some(routes),
    }
}
