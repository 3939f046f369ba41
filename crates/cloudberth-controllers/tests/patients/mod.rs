//! What tests of a node's life have in common.

use std::{sync::Arc, time::Duration};

use cloudberth_controllers::lifecycle::{LifecycleController, LifecycleCounters, LifecycleSettings};
use cloudberth_core::decide::lifecycle::Share;
use cloudberth_fake::Cloud;
use serde_json::json;

use crate::stage::Stage;

/// How many machines a cloud was asked about one by one.
pub fn lookups(cloud: &Cloud) -> usize {
    cloud.calls().iter().filter(|call| call.operation == "get machine").count()
}

/// Those of the nodes that are gone.
pub async fn gone<'a>(stage: &Stage, names: &[&'a str]) -> Vec<&'a str> {
    let mut gone = Vec::new();
    for name in names {
        if stage.node(name).await.is_none() {
            gone.push(*name);
        }
    }
    gone
}

pub trait Patients {
    /// Runs the watches and the controller, with the law's own cap.
    fn begin_lifecycle(&mut self) -> Arc<LifecycleCounters>;
    /// The same with another.
    fn begin_lifecycle_with(&mut self, share: Share) -> Arc<LifecycleCounters>;
    /// A controller of one term.
    fn lifecycle(&self, share: Share, counters: &Arc<LifecycleCounters>) -> Arc<LifecycleController>;
    /// How often a cloud's machines were listed.
    fn listings(&self, cloud: usize) -> usize;
    /// How many calls reached the API so far.
    fn call_count(&self) -> u64;
    async fn pass_millis(&self, millis: u64);
    /// A node goes, and another comes under its name that is not Ready either.
    async fn clear_and_replace(&self, name: &str, provider_id: &str);
}

impl Patients for Stage {
    fn begin_lifecycle(&mut self) -> Arc<LifecycleCounters> {
        self.begin_lifecycle_with(Share::Percent(10))
    }

    fn begin_lifecycle_with(&mut self, share: Share) -> Arc<LifecycleCounters> {
        let counters = Arc::default();
        let controller = self.lifecycle(share, &counters);
        self.run_ground();
        self.run(controller.run());
        counters
    }

    fn lifecycle(&self, share: Share, counters: &Arc<LifecycleCounters>) -> Arc<LifecycleController> {
        let settings = LifecycleSettings::new(Duration::from_secs(5), share, 4).unwrap();
        LifecycleController::new(self.desk.clone(), settings, Arc::clone(counters))
    }

    fn listings(&self, cloud: usize) -> usize {
        self.clouds[cloud].calls().iter().filter(|call| call.operation == "list machines").count()
    }

    fn call_count(&self) -> u64 {
        self.api.calls(0).last().map_or(0, |call| call.number + 1)
    }

    async fn pass_millis(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    async fn clear_and_replace(&self, name: &str, provider_id: &str) {
        self.api.clear_faults();
        self.delete(&self.nodes(), name).await;
        self.create(&self.nodes(), "Node", name, json!({"spec": {"providerID": provider_id}})).await;
    }
}
