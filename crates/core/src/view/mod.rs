//! Kubernetes objects, read once from their JSON, without the types of its client.

mod endpoint_slice;
mod node;
mod node_decode;
mod pairs;
mod service;
mod service_decode;

pub use endpoint_slice::EndpointSliceView;
pub use node::{Condition, NodeView, Ready, Taint, TaintEffect};
pub use pairs::Pairs;
pub use service::{
    ExternalTrafficPolicy, Ingress, IngressPort, IpFamilyPolicy, IpMode, ServicePort, ServiceProtocol,
    ServiceType, ServiceView, SessionAffinity, TargetPort,
};

use std::fmt;

use serde_json::Value;

/// A text that is not empty.
fn filled(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// The key of a namespaced object.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
