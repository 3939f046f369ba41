//! What the tests of this crate have in common: an API that is a script, Services and nodes.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Call, Clock, NodeView, Random, Secret, ServiceView,
    call::Unguarded,
    lb::{Backend, Claims, Desired, Fleet, Goal},
};
use cloudberth_http::{TokenSource, Unobserved, surroundings::SystemClock, testing::ScriptedCloud};
use serde_json::{Value, json};

use crate::{
    api::{Api, Surroundings},
    provider::CloudscaleProvider,
    settings::Settings,
    shell::Cloudscales,
};

pub(crate) struct Script {
    pub(crate) cloud: ScriptedCloud,
    pub(crate) api: Api,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Script {
    pub(crate) fn new() -> Self {
        let cloud = ScriptedCloud::new();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let token = TokenSource::fixed(Secret::new("t0k3n").unwrap());
        let settings = Settings::read(Ok(Some(token)), |_| None).unwrap();
        let around = Surroundings {
            transport: cloud.transport(),
            clock: Arc::clone(&clock),
            random: Arc::new(Random::seeded(1)),
            observer: Arc::new(Unobserved),
        };
        Self { api: Api::new(&settings, around), cloud, clock }
    }

    pub(crate) fn balancers(&self) -> Cloudscales {
        Cloudscales::new(self.api.clone(), Arc::clone(&self.clock))
    }

    /// The servers, as all Services of one survey see them.
    pub(crate) fn fleet(&self) -> Arc<dyn Fleet> {
        let provider = CloudscaleProvider { balancers: self.balancers(), api: self.api.clone() };
        testing_kit::fleet(Arc::new(provider), &self.clock)
    }

    pub(crate) fn call(&self) -> Call {
        Call::new(self.clock.now() + Duration::from_secs(120), Arc::new(Unguarded))
    }
}

/// A UUID that ends in this number.
pub(crate) fn uuid(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// A Service with these annotations, without their common prefix.
pub(crate) fn service(annotations: &[(&str, &str)]) -> ServiceView {
    let annotations: serde_json::Map<String, Value> = annotations
        .iter()
        .map(|(key, value)| (format!("k8s.cloudscale.ch/loadbalancer-{key}"), json!(value)))
        .collect();
    ServiceView::from_json(&json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "deadbeef", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"protocol": "TCP", "port": 80, "nodePort": 30080}]},
    }))
    .unwrap()
}

pub(crate) fn node(name: &str, provider_id: Option<&str>) -> Backend {
    let node = NodeView::from_json(&json!({"metadata": {"name": name}, "spec": {"providerID": provider_id}}));
    Backend { node: Arc::new(node.unwrap()), local_endpoint: None }
}

pub(crate) fn want(service: ServiceView, goal: Goal, backends: Vec<Backend>) -> Desired {
    Desired {
        service: Arc::new(service),
        cluster: "kubernetes".to_owned(),
        goal,
        backends,
        rivals: Vec::new(),
        nodes: Vec::new(),
        claims: Claims::default(),
    }
}
