//! The controllers' settings, from the options.

use cloudberth_controllers::{
    controller_set::ControllerSettings, lifecycle::LifecycleSettings, node::NodeSettings,
    routes::RouteSettings, service::ServiceSettings,
};

use cloudberth_core::decide::{
    lifecycle::Timing,
    selection::{ControllerLeader, Placement, placement},
};

use crate::options::Controllers;

/// Nodes that are written to at once where nobody sets a ceiling.
const LIFECYCLE_WORKERS: u32 = 8;

/// The settings of those that run behind the main lock, and of those behind the lock of a migration.
pub fn by_lock(options: &Controllers, leaders: &[ControllerLeader]) -> [ControllerSettings; 2] {
    [Placement::MainLock, Placement::MigrationLock]
        .map(|place| controllers(options, |name| placement(name, leaders) == place))
}

fn controllers(options: &Controllers, here: impl Fn(&str) -> bool) -> ControllerSettings {
    let runs = |name: &str| here(name) && options.run.iter().any(|controller| controller.name == name);
    let number = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let workers = &options.workers;
    // Both kinds of work are done by one pool, under the lower ceiling.
    let nodes = [workers.node_syncs, workers.node_status_updates].into_iter().flatten().min();
    let node = NodeSettings { period: options.node_status_update_frequency, workers: nodes.map(number) };
    let lifecycle = LifecycleSettings {
        period: options.node_monitor_period,
        cap: options.deletions,
        workers: number(workers.node_lifecycle_syncs.unwrap_or(LIFECYCLE_WORKERS)),
        timing: Timing::LAW,
    };
    let automatic = ServiceSettings::default();
    let service =
        ServiceSettings { workers: workers.service_syncs.map_or(automatic.workers, number), ..automatic };
    let routes = RouteSettings {
        configure_cloud_routes: options.configure_cloud_routes,
        cluster_cidr: options.cluster_cidr.clone(),
        period: options.route_reconciliation_period,
    };
    ControllerSettings {
        node: runs("cloud-node-controller").then_some(node),
        lifecycle: runs("cloud-node-lifecycle-controller").then_some(lifecycle),
        service: runs("service-lb-controller").then_some(service),
        routes: runs("node-route-controller").then_some(routes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        flags::Flags,
        options::{Known, Options},
    };

    #[test]
    fn each_controller_runs_behind_one_lock_or_not_at_all() {
        let known = Known { providers: &[], webhooks: &[] };
        let options = Options::make(&Flags::default(), known, &|_| Err(String::new())).options.controllers;
        let leader =
            |name: &str, component: &str| ControllerLeader { name: name.into(), component: component.into() };
        let names = |controllers: &ControllerSettings| {
            [
                controllers.node.is_some(),
                controllers.lifecycle.is_some(),
                controllers.service.is_some(),
                controllers.routes.is_some(),
            ]
        };
        let [main, second] = by_lock(&options, &[]);
        assert_eq!((names(&main), names(&second)), ([true; 4], [false; 4]), "FW-327");
        let moved = [
            leader("service-lb-controller", "*"),
            leader("node-route-controller", "kube-controller-manager"),
        ];
        let [main, second] = by_lock(&options, &moved);
        assert_eq!(names(&main), [true, true, false, false], "FW-328");
        assert_eq!(names(&second), [false, false, true, false], "FW-328");
    }
}
