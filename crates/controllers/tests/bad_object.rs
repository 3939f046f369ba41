//! A provider that panics on one node's id: everybody else goes on, and so does the program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{collections::BTreeSet, sync::Arc};

use cloudberth_controllers::{
    clouds::Clouds,
    controller_set::{ControllerSet, ControllerSettings},
    lifecycle::LifecycleSettings,
    node::NodeSettings,
    service::ServiceSettings,
};
use cloudberth_core::{
    Instances, Provider, decide::node::taints::UNINITIALISED, provider::LoadBalancers, provider_id::Reading,
};
use cloudberth_fake::FakeProvider;
use cloudberth_runtime::metrics::queue::PoolLabels;
use serde_json::json;
use testing_kit::{ClusterFixture, PROGRAM};

const UNLUCKY: &str = "alpha://unlucky";

/// The fake cloud, with a bug in the reading of one id.
struct Odd(FakeProvider);

impl Provider for Odd {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn scheme(&self) -> &str {
        self.0.scheme()
    }

    fn read_id(&self, text: &str) -> Reading {
        assert_ne!(text, UNLUCKY, "a bug");
        self.0.read_id(text)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.0.instances()
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        self.0.load_balancers()
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_on_which_the_provider_panics_stalls_its_own_node_only() {
    let mut stage = ClusterFixture::new();
    let fake = FakeProvider::new("alpha", &stage.clouds[0], PROGRAM, Arc::clone(&stage.clock));
    let provider: Arc<dyn Provider> = Arc::new(Odd(fake));
    let clouds = Clouds::new(vec![(provider, BTreeSet::new())], None, &stage.clock).unwrap();
    stage.ctx.clouds = clouds.metered(&stage.ctx.metrics.queues);
    stage.run_watches();
    let settings = ControllerSettings {
        node: Some(NodeSettings::default()),
        lifecycle: Some(LifecycleSettings::default()),
        service: Some(ServiceSettings::default()),
        routes: None,
    };
    let controllers = ControllerSet::new(&stage.ctx, &settings).unwrap();
    let id = stage.member(0, "a").await;
    stage.member(0, "b").await;
    stage.run(async move { controllers.run().await });
    stage.pass(100).await;
    let web = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    stage.create(&stage.services(), "Service", "web", web).await;
    stage.register("odd", Some(UNLUCKY)).await;
    stage.set_ready("odd", false).await;
    stage.pass(30).await;

    stage.join("late").await;
    stage.pass(10).await;
    assert!(!stage.node("late").await.unwrap().has_taint(UNINITIALISED), "L11-614 the watch goes on");
    stage.set_ready("late", true).await;
    stage.pass(30).await;
    let members: Vec<_> = stage.clouds[0].balancers().iter().map(|balancer| balancer.members.len()).collect();
    assert_eq!(members, [3], "L11-615 a, b and late serve");
    let lost = stage.clouds[0].balancers().remove(0).id;
    stage.clouds[0].delete_balancer(&lost);
    stage.pass(900).await;
    let ids: Vec<_> = stage.clouds[0].balancers().into_iter().map(|balancer| balancer.id).collect();
    assert!(ids.len() == 1 && ids[0] != lost, "L11-1000 the instances still speak for the account: {ids:?}");
    stage.clouds[0].delete_instance(&id);
    stage.set_ready("a", false).await;
    stage.pass(60).await;
    assert!(stage.node("a").await.is_none(), "L11-616 nodes whose instances are gone are still found");
    assert!(stage.node("odd").await.is_some(), "L11-617 nothing is done about a node that cannot be read");
    let counted = |queue| stage.ctx.metrics.queues.panics.with(&PoolLabels { queue }).get();
    assert_eq!(counted("provider-ids"), 1, "L11-618 counted, and not met again each time");
    assert_eq!((counted("node_lifecycle"), counted("node"), counted("service")), (0, 0, 0), "L11-619");
}
