//! Objects of the API, trimmed to what is used the moment they are decoded.
//!
//! Images, capacities and most conditions of a Node, which are most of it, do not stay. An object that cannot be read
//! stays an object with a name and an explanation: it must not keep its neighbours in the same list from being seen
//! (law 11).

use std::{borrow::Cow, fmt::Debug};

use cloudberth_core::{NodeView, ObjectKey, Result, ServiceView};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, core::DynamicResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A kind of object that is watched.
pub trait Watched: Clone + Debug + Send + Sync + 'static {
    /// What tells two of them apart.
    type Key: Clone + Debug + Ord + Send + Sync;

    /// `Node`, `Service`.
    const KIND: &'static str;
    /// `nodes`, `services`.
    const PLURAL: &'static str;
    /// What its watch is called in health checks and metrics.
    const WATCH: &'static str;

    /// Takes from an object what is used.
    fn read(json: &Value) -> Result<Self>;
    /// The key of an object of this name.
    fn key_of(namespace: &str, name: &str) -> Self::Key;
    /// The key of this one.
    fn key(&self) -> Self::Key;
    /// Two objects of one key with different ones are not the same object.
    fn uid(&self) -> &str;
    /// Which version of it this is.
    fn resource_version(&self) -> &str;
}

impl Watched for NodeView {
    type Key = String;
    const KIND: &'static str = "Node";
    const PLURAL: &'static str = "nodes";
    const WATCH: &'static str = "watch-nodes";

    fn read(json: &Value) -> Result<Self> {
        Self::from_json(json)
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
    const KIND: &'static str = "Service";
    const PLURAL: &'static str = "services";
    const WATCH: &'static str = "watch-services";

    fn read(json: &Value) -> Result<Self> {
        Self::from_json(json)
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

/// An object as a watch delivers it.
#[derive(Clone, Debug)]
pub struct Object<V> {
    meta: ObjectMeta,
    /// What is used of it, or why it cannot be read.
    pub view: Result<V>,
}

impl<V: Watched> Object<V> {
    /// Its key, also where the rest cannot be read.
    pub fn key(&self) -> V::Key {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        V::key_of(&text(&self.meta.namespace), &text(&self.meta.name))
    }
}

impl<'de, V: Watched> Deserialize<'de> for Object<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let mut json = Value::deserialize(from)?;
        // The object once more, as text. Nobody here reads it, and it is larger than all the rest.
        if let Some(Value::Object(annotations)) = json.pointer_mut("/metadata/annotations") {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        let field = |name: &str| json.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
        // What the watch itself looks at, and no more.
        let meta = ObjectMeta {
            name: field("name").map(Into::into),
            namespace: field("namespace").map(Into::into),
            uid: field("uid").map(Into::into),
            resource_version: field("resourceVersion").map(Into::into),
            // The end of a streaming list is told by an annotation of its last bookmark.
            annotations: json
                .pointer("/metadata/annotations/k8s.io~1initial-events-end")
                .and_then(Value::as_str)
                .map(|value| [("k8s.io/initial-events-end".to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, view: V::read(&json) })
    }
}

impl<V: Watched> Resource for Object<V> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        V::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        V::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
