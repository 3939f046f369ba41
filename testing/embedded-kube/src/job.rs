//! One request on one resource, with all that is needed to answer it.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::negotiate::{self, Language, View};
use super::path::Target;
use super::protobuf;
use super::render::{Include, Renderer, bytes};
use super::resource::Resource;
use super::router::{Incoming, Reply};
use super::state::State;
use super::status::{Answer, Failure};
use super::store;
use super::structural;
use super::yaml;

/// A request under way.
pub(crate) struct Job<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) incoming: &'a Incoming,
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: Option<String>,
    pub(crate) renderer: Renderer,
    pub(crate) warnings: Vec<String>,
}

impl<'a> Job<'a> {
    pub(crate) fn new(
        state: &'a mut State,
        incoming: &'a Incoming,
        target: &Target,
        resource: &Arc<Resource>,
        view: View,
    ) -> Answer<Self> {
        let include = match incoming.query.get("includeObject") {
            None | Some("Metadata") => Include::Metadata,
            Some("None") => Include::None,
            Some("Object") => Include::Object,
            Some(other) => {
                return Err(Failure::bad_request(format!("unrecognized includeObject value: {other:?}")));
            }
        };
        let renderer = Renderer {
            resource: Arc::clone(resource),
            shapes: Arc::clone(&state.shapes),
            view,
            include,
            now: state.world.now(),
        };
        Ok(Self {
            state,
            incoming,
            resource: Arc::clone(resource),
            namespace: target.namespace.clone().unwrap_or_default(),
            name: target.name.clone().unwrap_or_default(),
            subresource: target.subresource.clone(),
            renderer,
            warnings: Vec::new(),
        })
    }

    /// The body as JSON, whatever language it came in.
    pub(crate) fn body(&self, shape: Option<&str>) -> Answer<Bytes> {
        let body = &self.incoming.body;
        match negotiate::language(&self.incoming.headers, shape.is_none())? {
            Language::Json => Ok(body.clone()),
            Language::Yaml => yaml::to_json(body),
            Language::Protobuf => {
                let value = protobuf::read(&self.state.shapes, shape.unwrap_or_default(), body);
                value.map(|value| bytes(&value)).map_err(|error| Failure::bad_request(error.to_string()))
            }
        }
    }

    pub(crate) fn key(&self, name: &str) -> String {
        store::key(Some(&self.namespace), name)
    }

    pub(crate) fn table(&self) -> String {
        self.resource.table.clone()
    }

    /// The stored object; a custom one with the fields that its version knows.
    pub(crate) fn stored(&self, name: &str) -> Option<Arc<Value>> {
        let found = self.state.store.get(&self.resource.table, &self.key(name))?;
        Some(match &self.resource.custom {
            Some(_) => Arc::new(self.renderer.shown(found).into_owned()),
            None => Arc::clone(found),
        })
    }

    /// Writes an object, in the version that it is stored in.
    pub(crate) fn store(&mut self, name: &str, mut object: Value) -> Arc<Value> {
        if let Some(custom) = &self.resource.custom {
            structural::prune(&mut object, &custom.stored_schema);
        }
        self.state.put(&self.table(), &self.key(name), object)
    }

    pub(crate) fn existing(&self) -> Answer<Arc<Value>> {
        self.stored(&self.name).ok_or_else(|| self.not_found())
    }

    pub(crate) fn not_found(&self) -> Failure {
        Failure::not_found(&self.resource.group, &self.resource.plural, &self.name)
    }

    pub(crate) fn reply(&mut self, status: StatusCode, object: &Arc<Value>) -> Reply {
        let content = self.renderer.object(object);
        Reply { warnings: std::mem::take(&mut self.warnings), ..Reply::json(status, content) }
    }
}
