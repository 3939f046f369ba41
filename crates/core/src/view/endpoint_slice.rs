//! The part of an `EndpointSlice` that says on which nodes a Service has ready pods.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    error::{Error, Result},
    view::{ObjectKey, filled, items},
};

/// The label that names the Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A slice of the endpoints of a Service, without their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointSliceView {
    /// The namespace, of the slice and of the Service.
    pub namespace: String,
    /// The name of the slice.
    pub name: String,
    /// The UID.
    pub uid: String,
    /// The version that this was read from.
    pub resource_version: String,
    /// The Service; `None` for a slice that belongs to none.
    pub service: Option<String>,
    /// The nodes on which at least one endpoint is ready.
    pub ready_on: BTreeSet<String>,
}

impl EndpointSliceView {
    /// Reads the JSON of a slice. The only error is a missing name.
    pub fn from_json(object: &Value) -> Result<Self> {
        let meta = &object["metadata"];
        let Some(name) = filled(&meta["name"]) else {
            return Err(Error::permanent("an EndpointSlice came without metadata.name"));
        };
        // An endpoint that does not say whether it is ready is to be taken for ready.
        let is_ready = |endpoint: &&Value| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false));
        let ready = items(&object["endpoints"]).filter(is_ready);
        Ok(Self {
            namespace: filled(&meta["namespace"]).unwrap_or_default(),
            name,
            uid: filled(&meta["uid"]).unwrap_or_default(),
            resource_version: filled(&meta["resourceVersion"]).unwrap_or_default(),
            service: meta.get("labels").and_then(|labels| filled(labels.get(SERVICE_NAME)?)),
            ready_on: ready.filter_map(|endpoint| filled(endpoint.get("nodeName")?)).collect(),
        })
    }

    /// Namespace and name of the slice.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }

    /// The Service that it belongs to.
    pub fn service_key(&self) -> Option<ObjectKey> {
        self.service.as_ref().map(|name| ObjectKey::new(&self.namespace, name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_slice_says_on_which_nodes_pods_are_ready() {
        let endpoint = |node: Value, conditions: Value| json!({"nodeName": node, "conditions": conditions});
        let table = [
            ("ready", json!([endpoint(json!("n1"), json!({"ready": true}))]), &["n1"][..]),
            ("BL-102 not ready", json!([endpoint(json!("n1"), json!({"ready": false}))]), &[]),
            ("not told is ready", json!([endpoint(json!("n1"), json!({}))]), &["n1"]),
            ("null is ready", json!([endpoint(json!("n1"), json!({"ready": null}))]), &["n1"]),
            ("no conditions at all", json!([endpoint(json!("n1"), json!(null))]), &["n1"]),
            ("on no node", json!([endpoint(json!(null), json!({"ready": true}))]), &[]),
            (
                "one of two on a node",
                json!([
                    endpoint(json!("n1"), json!({"ready": false})),
                    endpoint(json!("n1"), json!({"ready": true})),
                    endpoint(json!("n2"), json!({"ready": true}))
                ]),
                &["n1", "n2"],
            ),
            ("none", json!(null), &[]),
            ("of a wrong type", json!([7, "x"]), &[]),
        ];
        for (case, endpoints, want) in table {
            let slice = EndpointSliceView::from_json(&json!({
                "metadata": {"name": "web-x", "namespace": "shop", "labels": {SERVICE_NAME: "web"}},
                "endpoints": endpoints,
            }))
            .unwrap();
            assert_eq!(slice.ready_on.iter().map(String::as_str).collect::<Vec<_>>(), want, "{case}");
            assert_eq!(slice.service_key(), Some(ObjectKey::new("shop", "web")), "{case}");
        }
        let stray = EndpointSliceView::from_json(&json!({"metadata": {"name": "x"}})).unwrap();
        assert_eq!(stray.service_key(), None);
        assert!(EndpointSliceView::from_json(&json!({"metadata": {}})).is_err());
    }
}
