//! Which objects a watch covers.

use kube::api::{ApiResource, GroupVersionKind};

/// Which objects an informer holds: those of one kind, in one namespace or all, that both selectors match.
#[derive(Clone, Debug)]
pub struct WatchScope {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// The namespace; `None` for all of them, and for a kind that has none.
    pub namespace: Option<String>,
    /// A label selector; empty for all objects.
    pub labels: String,
    /// A field selector; empty for all objects.
    pub fields: String,
    /// The name of the watch in health checks and metrics.
    pub watch: &'static str,
}

impl WatchScope {
    /// All objects of a kind.
    pub const fn all(resource: ApiResource, watch: &'static str) -> Self {
        Self { resource, namespace: None, labels: String::new(), fields: String::new(), watch }
    }

    pub(crate) fn nodes() -> Self {
        Self::all(core("Node", "nodes"), "watch-nodes")
    }

    pub(crate) fn services() -> Self {
        Self::all(core("Service", "services"), "watch-services")
    }

    pub(crate) fn endpoint_slices() -> Self {
        let slices = ApiResource {
            group: "discovery.k8s.io".into(),
            version: "v1".into(),
            api_version: "discovery.k8s.io/v1".into(),
            kind: "EndpointSlice".into(),
            plural: "endpointslices".into(),
        };
        Self::all(slices, "watch-endpointslices")
    }

    /// The kind as log lines name it: `Node`, `Cluster.management.cattle.io`.
    pub(crate) fn kind(&self) -> String {
        let ApiResource { kind, group, .. } = &self.resource;
        if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") }
    }
}

fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", kind), plural)
}
