//! API objects, trimmed while they are decoded.
//!
//! Images, capacities and most conditions make up most of a Node and are dropped. An object that cannot be decoded keeps
//! its name and the reason, so that it does not hide the others in the same list (law 11).

use std::{borrow::Cow, fmt::Debug};

use cloudberth_core::{Error, NodeView, ObjectKey, Result, ServiceView, view::EndpointSliceView};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, api::ApiResource, core::DynamicResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::bug::caught;

/// A view of the objects that are watched.
pub trait Watched: Clone + Debug + Send + Sync + 'static {
    /// Identifies an object of this kind.
    type Key: Clone + Debug + Ord + Send + Sync;

    /// Reads the parts of an object that are used.
    fn read(json: Value) -> Result<Self>;
    /// The key of the object with this name.
    fn key_of(namespace: &str, name: &str) -> Self::Key;
    /// The key of this object.
    fn key(&self) -> Self::Key;
    /// The UID: two objects with one key and different UIDs are different objects.
    fn uid(&self) -> &str;
    /// The `resourceVersion`.
    fn resource_version(&self) -> &str;
}

impl Watched for NodeView {
    type Key = String;

    fn read(json: Value) -> Result<Self> {
        Self::from_json(&without_copy(json))
    }

    fn key_of(_: &str, name: &str) -> String {
        name.to_owned()
    }

    fn key(&self) -> String {
        self.name.clone()
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

impl Watched for ServiceView {
    type Key = ObjectKey;

    fn read(json: Value) -> Result<Self> {
        Self::from_json(&without_copy(json))
    }

    fn key_of(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(namespace, name)
    }

    fn key(&self) -> ObjectKey {
        self.key()
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

impl Watched for EndpointSliceView {
    type Key = ObjectKey;

    fn read(json: Value) -> Result<Self> {
        Self::from_json(&without_copy(json))
    }

    fn key_of(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(namespace, name)
    }

    fn key(&self) -> ObjectKey {
        self.key()
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

/// Without the annotation that repeats the whole object as text.
fn without_copy(mut json: Value) -> Value {
    if let Some(Value::Object(annotations)) = json.pointer_mut("/metadata/annotations") {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    json
}

/// An object as a watch delivers it.
#[derive(Clone, Debug)]
pub struct Object<V> {
    meta: ObjectMeta,
    /// The parts that are used, or why they cannot be decoded.
    pub view: Result<V>,
}

impl<V: Watched> Object<V> {
    /// The key; known even if the rest cannot be decoded.
    pub fn key(&self) -> V::Key {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        V::key_of(&text(&self.meta.namespace), &text(&self.meta.name))
    }
}

impl<'de, V: Watched> Deserialize<'de> for Object<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let json = Value::deserialize(from)?;
        let field = |name: &str| json.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
        // Only what the watcher itself needs.
        let meta = ObjectMeta {
            name: field("name").map(Into::into),
            namespace: field("namespace").map(Into::into),
            uid: field("uid").map(Into::into),
            resource_version: field("resourceVersion").map(Into::into),
            // An annotation on its last bookmark marks the end of a streaming list.
            annotations: json
                .pointer("/metadata/annotations/k8s.io~1initial-events-end")
                .and_then(Value::as_str)
                .map(|value| [("k8s.io/initial-events-end".to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let bug = |text| Err(Error::permanent(format!("internal error: {text}")));
        Ok(Self { meta, view: caught(|| V::read(json)).unwrap_or_else(bug) })
    }
}

impl<V: Watched> Resource for Object<V> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
