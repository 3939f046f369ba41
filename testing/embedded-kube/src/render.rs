//! Objects, lists and watch events as bytes on the wire.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};

use super::canonical;
use super::kinds;
use super::negotiate::View;
use super::resource::{Behaviour, Resource};
use super::shape::Shapes;
use super::structural;
use super::table;

/// Everything needed to show objects of one resource in one form.
#[derive(Clone, Debug)]
pub(crate) struct Renderer {
    pub(crate) resource: Arc<Resource>,
    pub(crate) shapes: Arc<Shapes>,
    pub(crate) view: View,
    /// What a table's rows carry beside their cells.
    pub(crate) include: Include,
    pub(crate) now: jiff::Timestamp,
}

/// The `includeObject` of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

/// The metadata of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: u64,
    pub(crate) resume: Option<String>,
    pub(crate) remaining: Option<u64>,
}

impl ListMeta {
    fn value(&self, custom: bool) -> Value {
        let mut meta = json!({"resourceVersion": self.revision.to_string()});
        if custom {
            // Lists of custom kinds say, too, that there is no more.
            super::value::set(&mut meta, "continue", "");
        }
        if let Some(map) = meta.as_object_mut() {
            if let Some(resume) = &self.resume {
                map.insert("continue".to_owned(), json!(resume));
            }
            if let Some(remaining) = self.remaining {
                map.insert("remainingItemCount".to_owned(), json!(remaining));
            }
        }
        meta
    }
}

/// An object with its kind and version in front, without copying it.
struct Named<'a> {
    kind: &'a str,
    version: &'a str,
    object: &'a Value,
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind)?;
        map.serialize_entry("apiVersion", self.version)?;
        for (key, value) in self.object.as_object().into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A list of objects, without copying them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a, T: Serialize> {
    kind: &'a str,
    api_version: &'a str,
    metadata: &'a Value,
    items: &'a [T],
}

pub(crate) fn bytes<T: Serialize + ?Sized>(value: &T) -> Bytes {
    // Values made here always serialize: keys are strings, nothing fails.
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

impl Renderer {
    /// The object in the shape of the API it is asked for through.
    pub(crate) fn shown<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        if let Some(custom) = &self.resource.custom {
            let mut shown = object.clone();
            structural::prune(&mut shown, &custom.schema);
            return Cow::Owned(shown);
        }
        if self.resource.behaviour != Behaviour::Event || self.resource.group.is_empty() {
            return Cow::Borrowed(object);
        }
        let converted = kinds::event_from_core(object);
        match canonical::read(&self.shapes, "events/v1.Event", &converted) {
            Ok(reading) => Cow::Owned(reading.value),
            Err(_) => Cow::Owned(converted),
        }
    }

    /// The object with its kind and version, for patching and for showing.
    pub(crate) fn full(&self, object: &Value) -> Value {
        let mut full = self.shown(object).into_owned();
        super::value::set(&mut full, "kind", self.resource.kind.as_str());
        super::value::set(&mut full, "apiVersion", self.resource.api_version());
        full
    }

    fn metadata_only(object: &Value, version: &str) -> Value {
        let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
        json!({"kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata})
    }

    fn table(&self, objects: &[Arc<Value>], version: &str, columns: bool, meta: &Value) -> Value {
        let rows: Vec<Value> = objects
            .iter()
            .map(|object| {
                let mut row = table::row(&self.resource, object, self.now);
                let carried = match self.include {
                    Include::None => None,
                    Include::Metadata => Some(Self::metadata_only(object, version)),
                    Include::Object => Some(self.full(object)),
                };
                if let (Some(map), Some(carried)) = (row.as_object_mut(), carried) {
                    map.insert("object".to_owned(), carried);
                }
                row
            })
            .collect();
        let definitions = if columns { table::columns(&self.resource) } else { Value::Null };
        json!({
            "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": meta,
            "columnDefinitions": definitions, "rows": rows,
        })
    }

    /// One object.
    pub(crate) fn object(&self, object: &Arc<Value>) -> Bytes {
        match self.view {
            View::Object => self.named(object, &|named| bytes(named)),
            View::Metadata(version) => bytes(&Self::metadata_only(object, version)),
            View::Table(version) => {
                let meta = json!({"resourceVersion": super::value::revision(object)});
                bytes(&self.table(std::slice::from_ref(object), version, true, &meta))
            }
        }
    }

    fn named<T>(&self, object: &Value, then: &dyn Fn(&Named<'_>) -> T) -> T {
        let (shown, version) = (self.shown(object), self.resource.api_version());
        then(&Named { kind: &self.resource.kind, version: &version, object: &shown })
    }

    /// A list.
    pub(crate) fn list(&self, objects: &[Arc<Value>], meta: &ListMeta) -> Bytes {
        match self.view {
            View::Object => {
                let items: Vec<Cow<'_, Value>> = objects
                    .iter()
                    .map(|object| match self.resource.shape {
                        // Items of a typed list do not repeat their kind; custom ones do.
                        Some(_) => self.shown(object),
                        None => Cow::Owned(self.full(object)),
                    })
                    .collect();
                bytes(&List {
                    kind: &self.resource.list_kind(),
                    api_version: &self.resource.api_version(),
                    metadata: &meta.value(self.resource.custom.is_some()),
                    items: &items,
                })
            }
            View::Metadata(version) => {
                let items: Vec<Value> = objects.iter().map(|o| Self::metadata_only(o, version)).collect();
                bytes(&List {
                    kind: "PartialObjectMetadataList",
                    api_version: &format!("meta.k8s.io/{version}"),
                    metadata: &meta.value(false),
                    items: &items,
                })
            }
            View::Table(version) => bytes(&self.table(objects, version, true, &meta.value(false))),
        }
    }

    /// One line of a watch. The first table of a watch carries the column definitions.
    pub(crate) fn event(&self, kind: &str, object: &Arc<Value>, first: bool) -> Bytes {
        let value = match self.view {
            View::Object => {
                let line = self.named(object, &|named| bytes(&Line { kind, object: named }));
                return with_newline(line);
            }
            View::Metadata(version) => Self::metadata_only(object, version),
            View::Table(version) => {
                let meta = json!({"resourceVersion": super::value::revision(object)});
                self.table(std::slice::from_ref(object), version, first, &meta)
            }
        };
        with_newline(bytes(&Line { kind, object: &value }))
    }

    /// The object of a bookmark: empty but for its revision.
    pub(crate) fn bookmark(&self, revision: u64, initial_end: bool, first: bool) -> Bytes {
        let empty = self.resource.shape.as_ref().and_then(|_| {
            let shape = if self.resource.behaviour == Behaviour::Event {
                "core/v1.Event"
            } else {
                self.resource.shape.as_deref()?
            };
            canonical::read(&self.shapes, shape, &Value::Null).ok().map(|reading| reading.value)
        });
        let mut object = empty.unwrap_or_else(|| json!({}));
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            super::value::set(&mut metadata, "annotations", json!({"k8s.io/initial-events-end": "true"}));
        }
        super::value::set(&mut object, "metadata", metadata);
        self.event("BOOKMARK", &Arc::new(object), first)
    }
}

/// `{"type":…,"object":…}`.
struct Line<'a, T: Serialize> {
    kind: &'a str,
    object: &'a T,
}

impl<T: Serialize> Serialize for Line<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", self.kind)?;
        map.serialize_entry("object", self.object)?;
        map.end()
    }
}

/// An error as the last line of a watch.
pub(crate) fn error_line(failure: &super::status::Failure) -> Bytes {
    with_newline(bytes(&Line { kind: "ERROR", object: &failure.body() }))
}

pub(crate) fn with_newline(line: Bytes) -> Bytes {
    let mut line = Vec::from(line);
    line.push(b'\n');
    Bytes::from(line)
}
