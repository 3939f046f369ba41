//! What tests of a node's life have in common.

use std::{sync::Arc, time::Duration};

use cloudberth_controllers::lifecycle::{LifecycleController, LifecycleSettings};
use cloudberth_core::decide::lifecycle::{Cap, Share};
use cloudberth_fake::Cloud;
use cloudberth_runtime::metrics::{controllers::CallLabels, queue::PoolLabels};
use serde_json::json;

use testing_kit::ClusterFixture;

/// How many instances a cloud was asked about one by one.
pub fn lookups(cloud: &Cloud) -> usize {
    cloud.calls().iter().filter(|call| call.operation == "get instance").count()
}

/// Those of the nodes that are gone.
pub async fn gone<'a>(stage: &ClusterFixture, names: &[&'a str]) -> Vec<&'a str> {
    let mut gone = Vec::new();
    for name in names {
        if stage.node(name).await.is_none() {
            gone.push(*name);
        }
    }
    gone
}

pub trait LifecycleFixture {
    /// Runs the watches and the controller, with the law's own cap.
    fn begin_lifecycle(&mut self);
    /// The same with another.
    fn begin_lifecycle_with(&mut self, share: Share);
    /// A controller of one term.
    fn lifecycle(&self, share: Share) -> Arc<LifecycleController>;
    /// How often a cloud's instances were listed.
    fn listings(&self, cloud: usize) -> usize;
    /// The counter of questions to clouds, by operation and result.
    fn asked(&self, operation: &'static str, result: &'static str) -> u64;
    /// How many deletions were held back.
    fn held(&self) -> u64;
    /// How many bugs were met.
    fn panics(&self) -> u64;
    /// How many calls reached the API so far.
    fn call_count(&self) -> u64;
    async fn pass_millis(&self, millis: u64);
    /// A node goes, and another comes under its name that is not Ready either.
    async fn clear_and_replace(&self, name: &str, provider_id: &str);
}

impl LifecycleFixture for ClusterFixture {
    fn begin_lifecycle(&mut self) {
        self.begin_lifecycle_with(Share::Percent(10));
    }

    fn begin_lifecycle_with(&mut self, share: Share) {
        let controller = self.lifecycle(share);
        self.run_watches();
        self.run(controller.run());
    }

    fn lifecycle(&self, share: Share) -> Arc<LifecycleController> {
        let settings = LifecycleSettings { cap: Cap { share, ..Cap::LAW }, ..LifecycleSettings::default() };
        LifecycleController::new(self.ctx.clone(), settings)
    }

    fn listings(&self, cloud: usize) -> usize {
        self.clouds[cloud].calls().iter().filter(|call| call.operation == "list instances").count()
    }

    fn asked(&self, operation: &'static str, result: &'static str) -> u64 {
        self.ctx.metrics.lifecycle.cloud_calls.with(&CallLabels { operation, result }).get()
    }

    fn held(&self) -> u64 {
        self.ctx.metrics.lifecycle.deletions_held.get()
    }

    fn panics(&self) -> u64 {
        self.ctx.metrics.queues.panics.with(&PoolLabels { queue: "node_lifecycle" }).get()
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
