//! What the program measures as a whole.

#![allow(missing_docs, reason = "fields are labels and metrics, explained where they are registered")]

use prometheus_client::encoding::EncodeLabelSet;

use super::{
    Registry,
    kinds::{Counter, Family, Gauge, publish},
    table,
};

const MANAGER: &str = "cloud-controller-manager";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct ControllerLabels {
    pub name: String,
    pub manager: &'static str,
}

/// What was built, when and from what.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct BuildInfo {
    pub major: String,
    pub minor: String,
    /// The version, with a `v` in front.
    pub git_version: String,
    pub git_commit: String,
    pub git_tree_state: String,
    pub build_date: String,
    /// The tool chain; the label's name is what dashboards look for.
    pub go_version: String,
    pub compiler: String,
    pub platform: String,
}

/// The metrics of the program as a whole.
#[derive(Clone, Debug, Default)]
pub struct ManagerMetrics {
    pub running: Family<ControllerLabels, Gauge>,
    pub build: Family<BuildInfo, Gauge>,
    /// Events that were never written.
    pub events_dropped: Counter,
}

/// Publishes how many events were never written, for a program that has nothing else of this.
pub fn register_dropped(registry: &mut Registry, dropped: &Counter) {
    publish(registry, &table::EVENTS_DROPPED, dropped.clone());
}

impl ManagerMetrics {
    /// Says whether a controller runs.
    pub fn set_running(&self, controller: &str, runs: bool) {
        let labels = ControllerLabels { name: controller.to_owned(), manager: MANAGER };
        self.running.with(&labels).set(i64::from(runs));
    }

    /// Says which build this is. Once.
    pub fn set_build(&self, build: &BuildInfo) {
        self.build.with(build).set(1);
    }

    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &table::RUNNING_CONTROLLERS, self.running.clone());
        publish(registry, &table::BUILD_INFO, self.build.clone());
        register_dropped(registry, &self.events_dropped);
    }
}
