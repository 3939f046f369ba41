//! What people and kubelets do to a cluster, and what they see of it.

use cloudberth_core::{NodeView, ServiceView};
use embedded_kube::KubeApi;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// Those who may do everything.
#[derive(Clone)]
pub struct People(Client);

impl std::fmt::Debug for People {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("People").finish_non_exhaustive()
    }
}

impl People {
    /// The people of a cluster.
    pub fn of(api: &KubeApi) -> Self {
        Self(Client::new(api.service(), "default"))
    }

    /// What they work with.
    pub fn client(&self) -> &Client {
        &self.0
    }

    /// Objects of a kind of the core in `namespace`; empty for those that have none.
    pub fn objects(&self, kind: &str, plural: &str, namespace: &str) -> Api<DynamicObject> {
        self.objects_of("", kind, plural, namespace)
    }

    fn objects_of(&self, group: &str, kind: &str, plural: &str, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: group.into(),
            version: "v1".into(),
            api_version: if group.is_empty() { "v1".into() } else { format!("{group}/v1") },
            kind: kind.into(),
            plural: plural.into(),
        };
        match namespace {
            "" => Api::all_with(self.0.clone(), &resource),
            namespace => Api::namespaced_with(self.0.clone(), namespace, &resource),
        }
    }

    /// All nodes.
    pub fn nodes(&self) -> Api<DynamicObject> {
        self.objects("Node", "nodes", "")
    }

    /// The Services in `default`.
    pub fn services(&self) -> Api<DynamicObject> {
        self.objects("Service", "services", "default")
    }

    /// The slices of endpoints in `default`.
    pub fn endpoint_slices(&self) -> Api<DynamicObject> {
        self.objects_of("discovery.k8s.io", "EndpointSlice", "endpointslices", "default")
    }

    /// A person or a kubelet creates something; `body` is the rest of it.
    pub async fn create(&self, api: &Api<DynamicObject>, kind: &str, name: &str, mut body: Value) -> Value {
        if body["apiVersion"].is_null() {
            body["apiVersion"] = json!("v1");
        }
        body["kind"] = json!(kind);
        body["metadata"]["name"] = json!(name);
        let object = serde_json::from_value(body).unwrap();
        serde_json::to_value(api.create(&PostParams::default(), &object).await.unwrap()).unwrap()
    }

    /// Somebody edits something.
    pub async fn merge(&self, api: &Api<DynamicObject>, name: &str, body: Value) {
        api.patch(name, &PatchParams::default(), &Patch::Merge(body)).await.unwrap();
    }

    /// Somebody edits the status of something.
    pub async fn merge_status(&self, api: &Api<DynamicObject>, name: &str, body: Value) {
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(body)).await.unwrap();
    }

    /// Somebody deletes something.
    pub async fn delete(&self, api: &Api<DynamicObject>, name: &str) {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The kubelet of a fresh instance says what its node's Ready condition is.
    pub async fn set_ready(&self, node: &str, ready: bool) {
        let status = if ready { "True" } else { "Unknown" };
        let condition = json!({"type": "Ready", "status": status, "reason": "Test"});
        self.merge_status(&self.nodes(), node, json!({"status": {"conditions": [condition]}})).await;
    }

    /// A Ready and initialised node.
    pub async fn register(&self, name: &str, provider_id: Option<&str>) {
        self.register_with(name, json!({"providerID": provider_id})).await;
    }

    /// The same with this spec.
    pub async fn register_with(&self, name: &str, spec: Value) {
        self.create(&self.nodes(), "Node", name, json!({"spec": spec})).await;
        self.set_ready(name, true).await;
    }

    /// A node as it is now; `None` for one that is not there.
    pub async fn node(&self, name: &str) -> Option<NodeView> {
        let object = self.nodes().get_opt(name).await.unwrap()?;
        Some(NodeView::from_json(&serde_json::to_value(&object).unwrap()).unwrap())
    }

    /// A Service as it is now; `None` for one that is not there.
    pub async fn service(&self, name: &str) -> Option<ServiceView> {
        let object = self.services().get_opt(name).await.unwrap()?;
        Some(ServiceView::from_json(&serde_json::to_value(&object).unwrap()).unwrap())
    }
}
