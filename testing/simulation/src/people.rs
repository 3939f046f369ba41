//! People and kubelets: what they do to the cluster, and what they see in it. Nothing of theirs ever goes wrong.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{NodeView, Random, ServiceView, decide::node::taints::UNINITIALISED};
use cloudberth_fake::PowerState;
use embedded_kube::KubeApi;
use http::HeaderValue;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    clouds::{NAMES, SimulatedClouds},
    touchy::odd_id,
    wire::Wire,
};

/// The name that the simulated cluster has.
pub(crate) const CLUSTER: &str = "sim";
/// Where its pods live.
pub(crate) const CLUSTER_CIDR: &str = "10.244.0.0/16";
/// The label by which Services choose nodes.
const POOL: &str = "pool";
/// What the names of nodes and Services begin with that are none of ours.
pub(crate) const FOREIGN: &str = "foreign";

/// The load-balancer class of a cloud.
pub(crate) fn class(cloud: &str) -> String {
    format!("{cloud}.example/lb")
}

pub(crate) fn service_name(service: u8) -> String {
    format!("web-{service}")
}

pub(crate) fn node_name(node: u8) -> String {
    format!("node-{node}")
}

/// Everybody who is not the program.
#[derive(Clone)]
pub(crate) struct People(Client);

impl People {
    pub(crate) fn new(api: &KubeApi, random: &Arc<Random>) -> Self {
        let wire = Wire {
            api: api.service(),
            who: HeaderValue::from_static("people"),
            random: Arc::clone(random),
            latency: Duration::ZERO,
            partition: Arc::default(),
            power: Arc::default(),
            witness: None,
            snare: None,
            loses: None,
        };
        Self(Client::new(wire, "default"))
    }

    fn services(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.0.clone(), "default", &resource("Service", "services"))
    }

    fn nodes(&self) -> Api<DynamicObject> {
        Api::all_with(self.0.clone(), &resource("Node", "nodes"))
    }

    /// Every Service that there is, with the class by which the default cloud is left out of account.
    pub(crate) async fn all_services(&self) -> Result<Vec<ServiceView>, String> {
        views(&self.services(), ServiceView::from_json).await
    }

    pub(crate) async fn all_nodes(&self) -> Result<Vec<NodeView>, String> {
        views(&self.nodes(), NodeView::from_json).await
    }

    pub(crate) async fn uid(&self, service: u8) -> Option<String> {
        self.services().get(&service_name(service)).await.ok()?.metadata.uid
    }

    /// A Service with this number; even ones name no class.
    pub(crate) async fn create_service(&self, service: u8, ports: &[i64], annotations: &Value) {
        let spec = json!({
            "type": "LoadBalancer",
            "loadBalancerClass": service_class(service),
            "selector": {"app": "x"},
            "ports": ports_json(ports),
        });
        let rest = json!({"metadata": {"annotations": annotations}, "spec": spec});
        create(&self.services(), "Service", &service_name(service), &rest).await;
    }

    pub(crate) async fn create_foreign_service(&self, number: u8) {
        let spec = json!({
            "type": "LoadBalancer",
            "loadBalancerClass": "other.example/lb",
            "selector": {"app": "x"},
            "ports": ports_json(&[80]),
        });
        let name = format!("{FOREIGN}-{number}");
        create(&self.services(), "Service", &name, &json!({"spec": spec})).await;
    }

    pub(crate) async fn set_ports(&self, service: u8, ports: &[i64]) {
        self.patch_service(service, json!({"spec": {"ports": ports_json(ports)}})).await;
    }

    pub(crate) async fn annotate(&self, service: u8, key: &str, value: Option<String>) {
        self.patch_service(service, json!({"metadata": {"annotations": {key: value}}})).await;
    }

    /// A class goes with the type `LoadBalancer` and no other.
    pub(crate) async fn set_type(&self, service: u8, load_balancer: bool) {
        let spec = if load_balancer {
            json!({"type": "LoadBalancer", "loadBalancerClass": service_class(service)})
        } else {
            json!({"type": "ClusterIP", "loadBalancerClass": null})
        };
        self.patch_service(service, json!({"spec": spec})).await;
    }

    async fn patch_service(&self, service: u8, patch: Value) {
        // It may not be there.
        let _ = self
            .services()
            .patch(&service_name(service), &PatchParams::default(), &Patch::Merge(patch))
            .await;
    }

    pub(crate) async fn delete_service(&self, service: u8) {
        // Deleting what is not there is nothing.
        let _ = self.services().delete(&service_name(service), &DeleteParams::default()).await;
    }

    /// A kubelet registers its node, which waits for its cloud. Returns the UID if there is a new node.
    pub(crate) async fn register(&self, node: u8, provider_id: Option<&str>) -> Option<String> {
        let cidr = pod_cidr(node);
        let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
        let spec = json!({"taints": [taint], "providerID": provider_id, "podCIDR": cidr, "podCIDRs": [cidr]});
        create(&self.nodes(), "Node", &node_name(node), &json!({"spec": spec})).await
    }

    pub(crate) async fn register_foreign(&self, number: u8, initialised: bool) {
        let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
        let taints = if initialised { json!([]) } else { json!([taint]) };
        let spec = json!({"taints": taints, "providerID": format!("other://{number}")});
        create(&self.nodes(), "Node", &format!("{FOREIGN}-{number}"), &json!({"spec": spec})).await;
    }

    /// Somebody's node carries an id that the cloud's provider does not survive.
    pub(crate) async fn register_odd(&self, cloud: &str) {
        let spec = json!({"providerID": odd_id(cloud)});
        create(&self.nodes(), "Node", &format!("{FOREIGN}-odd-{cloud}"), &json!({"spec": spec})).await;
    }

    pub(crate) async fn label(&self, node: u8, key: &str, value: Option<&str>) {
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        let _ = self.nodes().patch(&node_name(node), &PatchParams::default(), &patch).await;
    }

    pub(crate) async fn set_pool(&self, node: u8, pool: &str) {
        self.label(node, POOL, Some(pool)).await;
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        let _ = self.nodes().delete(name, &DeleteParams::default()).await;
    }

    /// Lets go of the Lease in the name of a replica that holds it.
    pub(crate) async fn let_go(&self, who: &str) {
        let mut resource = resource("Lease", "leases");
        "coordination.k8s.io".clone_into(&mut resource.group);
        "coordination.k8s.io/v1".clone_into(&mut resource.api_version);
        let leases: Api<DynamicObject> = Api::all_with(self.0.clone(), &resource);
        for lease in leases.list(&ListParams::default()).await.into_iter().flatten() {
            let held = lease.data.pointer("/spec/holderIdentity").and_then(Value::as_str) == Some(who);
            if let (true, Some(namespace), Some(name)) = (held, lease.metadata.namespace, lease.metadata.name)
            {
                let api: Api<DynamicObject> = Api::namespaced_with(self.0.clone(), &namespace, &resource);
                let patch = Patch::Merge(json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}));
                let _ = api.patch(&name, &PatchParams::default(), &patch).await;
            }
        }
    }

    /// The kubelet of an instance that runs says that it is Ready; of any other, Kubernetes finds that it does not answer.
    pub(crate) async fn heartbeat(&self, clouds: &SimulatedClouds, name: &str) {
        let runs = clouds.named(name).is_some_and(|(_, instance)| instance.state == PowerState::Running);
        let status = if runs { "True" } else { "Unknown" };
        let condition = json!({"type": "Ready", "status": status, "reason": "Kubelet"});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        let _ = self.nodes().patch_status(name, &PatchParams::default(), &patch).await;
    }

    /// People take an annotation off that they set by mistake.
    pub(crate) async fn take_off(&self, service: u8, key: &str, value: &str) {
        let there = self.services().get(&service_name(service)).await.ok();
        let annotations = there.and_then(|service| service.metadata.annotations).unwrap_or_default();
        if annotations.get(key).is_some_and(|carried| carried == value) {
            self.annotate(service, key, None).await;
        }
    }

    /// People take away nodes whose instances went before any cloud knew them: nobody else may. Returns their names.
    pub(crate) async fn tidy_up(&self, clouds: &SimulatedClouds) -> Vec<String> {
        let mut gone = Vec::new();
        for node in self.all_nodes().await.unwrap_or_default() {
            let lost = node.has_taint(UNINITIALISED) && clouds.named(&node.name).is_none();
            if lost && !node.name.starts_with(FOREIGN) {
                self.delete_node(&node.name).await;
                gone.push(node.name);
            }
        }
        gone
    }
}

/// The selector of a pool, as an annotation has it.
pub(crate) fn selector(pool: &str) -> String {
    format!("{POOL}={pool}")
}

/// The network of a node's pods.
pub(crate) fn pod_cidr(node: u8) -> String {
    format!("10.244.{node}.0/24")
}

fn service_class(service: u8) -> Option<String> {
    let [_, beta] = NAMES;
    (!service.is_multiple_of(2)).then(|| class(beta))
}

/// Creates what may be there already. Returns the UID if it was not.
async fn create(api: &Api<DynamicObject>, kind: &str, name: &str, end: &Value) -> Option<String> {
    let mut object = DynamicObject::new(name, &resource(kind, ""));
    object.metadata.annotations =
        end.pointer("/metadata/annotations").and_then(|all| serde_json::from_value(all.clone()).ok());
    object.data = json!({"spec": end.get("spec")});
    api.create(&PostParams::default(), &object).await.ok()?.metadata.uid
}

async fn views<T>(
    api: &Api<DynamicObject>,
    read: fn(&Value) -> cloudberth_core::Result<T>,
) -> Result<Vec<T>, String> {
    let list = api.list(&ListParams::default()).await.map_err(|e| e.to_string())?;
    let view = |object: DynamicObject| {
        let json = serde_json::to_value(&object).map_err(|e| e.to_string())?;
        read(&json).map_err(|e| e.to_string())
    };
    list.items.into_iter().map(view).collect()
}

fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

fn ports_json(ports: &[i64]) -> Value {
    ports.iter().map(|port| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP"})).collect()
}
