//! What the tests of this folder share.

use serde_json::{Map, Value};

use crate::{
    decide::service::assignments::{Assignments, Candidate},
    view::{ServicePort, ServiceType, ServiceView},
};

pub(super) const CLOUD: &str = "cloud";
pub(super) const CLASS: &str = "cloud.example/lb";
pub(super) const MARK: &str = "cloud.example/id";

/// One provider, which is the default and claims one class.
pub(super) fn assignments() -> Assignments {
    let cloud = Candidate {
        name: CLOUD.to_owned(),
        classes: [CLASS.to_owned()].into(),
        marks: [MARK.to_owned()].into(),
    };
    Assignments::new(vec![cloud], Some(CLOUD.to_owned())).unwrap()
}

/// A Service of type `LoadBalancer` that nobody has touched yet.
pub(super) fn service() -> ServiceView {
    ServiceView {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: "u-1".to_owned(),
        resource_version: "7".to_owned(),
        service_type: ServiceType::LoadBalancer,
        ports: vec![ServicePort { port: 80, node_port: 30080, ..ServicePort::default() }],
        ..ServiceView::default()
    }
}

pub(super) fn typed(service_type: ServiceType) -> ServiceView {
    ServiceView { service_type, ..service() }
}

pub(super) fn classy(class: &str) -> ServiceView {
    ServiceView { class: Some(class.to_owned()), ..service() }
}

pub(super) fn annotated(mut view: ServiceView, key: &str, value: &str) -> ServiceView {
    view.annotations.insert(key.to_owned(), value.to_owned());
    view
}

/// Applies a strategic merge patch the way the API server does, as far as our patches go.
pub(super) fn apply(object: &mut Value, patch: &Value) {
    let (Some(object), Some(patch)) = (object.as_object_mut(), patch.as_object()) else { return };
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") {
            let list = object.get_mut(field).and_then(Value::as_array_mut).unwrap();
            list.retain(|entry| !value.as_array().unwrap().contains(entry));
        } else if key.starts_with("$setElementOrder/") {
        } else if key == "finalizers" {
            let list = object.entry(key).or_insert_with(|| Value::Array(Vec::new()));
            let list = list.as_array_mut().unwrap();
            list.extend(
                value.as_array().unwrap().iter().filter(|v| !list.contains(v)).cloned().collect::<Vec<_>>(),
            );
        } else if value.is_null() {
            object.remove(key);
        } else if value.is_object() {
            apply(object.entry(key).or_insert_with(|| Value::Object(Map::new())), value);
        } else {
            object.insert(key.clone(), value.clone());
        }
    }
}
