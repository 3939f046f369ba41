//! Objects of kinds that are chosen while the program runs.

use std::{fmt, sync::Arc};

use cloudberth_core::{Call, Error, ObjectKey, Result};
use kube::{Resource, api::DynamicObject};
use serde_json::Value;

use crate::{
    informer::Informer,
    object::Watched,
    writer::{Writer, replacement},
};

/// An object of any kind, complete but for `managedFields`: it can be changed and written back without losing a field
/// that nobody here knows.
#[derive(Clone, PartialEq)]
pub struct DynamicView(Value);

impl DynamicView {
    /// The whole object.
    pub const fn json(&self) -> &Value {
        &self.0
    }

    /// The text at a JSON pointer; empty if there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

impl Watched for DynamicView {
    type Key = ObjectKey;

    fn read(mut json: Value) -> Result<Self> {
        if let Some(Value::Object(metadata)) = json.get_mut("metadata") {
            // The API server keeps them when an object is replaced by one without.
            metadata.remove("managedFields");
        }
        let view = Self(json);
        if view.text("/metadata/name").is_empty() {
            return Err(Error::permanent("metadata.name is missing"));
        }
        Ok(view)
    }

    fn key_of(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(namespace, name)
    }

    fn key(&self) -> ObjectKey {
        Self::key_of(self.text("/metadata/namespace"), self.text("/metadata/name"))
    }

    fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    fn resource_version(&self) -> &str {
        self.text("/metadata/resourceVersion")
    }
}

impl Informer<DynamicView> {
    /// Replaces a watched object by `new`, which is the object as it was read, changed; returns the new version. If it
    /// changed since, or another has its name now, nothing is written and the error is a conflict.
    pub async fn replace(&self, writer: &Writer, call: &Call, new: &Value) -> Result<Arc<DynamicView>> {
        let text = |pointer: &str| new.pointer(pointer).and_then(Value::as_str);
        let path = DynamicObject::url_path(&self.scope().resource, text("/metadata/namespace"));
        let uid = text("/metadata/uid").unwrap_or_default();
        writer.write(call, replacement(&path, new)?, self, uid).await
    }
}

/// Names the object and shows nothing of it: it may be a Secret (law 10).
impl fmt::Debug for DynamicView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicView")
            .field("kind", &self.text("/kind"))
            .field("key", &self.key())
            .field("resource_version", &self.resource_version())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_kept_whole_and_not_shown() {
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
        let metadata = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "annotations": annotations, "managedFields": [{"manager": "kubectl"}]});
        let secret = json!({"kind": "Secret", "metadata": metadata, "data": {"value": "czNjcjN0"}});
        let view = DynamicView::read(secret).unwrap();
        assert_eq!((view.key(), view.uid(), view.resource_version()), (ObjectKey::new("n", "a"), "u", "7"));
        assert_eq!(view.json()["metadata"]["annotations"], annotations, "a replace would remove it");
        assert!(view.json()["metadata"].get("managedFields").is_none());
        let shown = format!("{view:?}");
        assert!(shown.contains("Secret") && !shown.contains("czNjcjN0"), "law 10: {shown}");
        assert!(DynamicView::read(json!({"metadata": {}})).is_err());
    }
}
