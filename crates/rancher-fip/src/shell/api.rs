//! One cluster: reads that know what they do not know, and writes under the leader's claim.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Category, Error, Result, lookup::Lookup};
use cloudberth_runtime::{api_error::translate, dynamic::DynamicView, object::Watched, writer::Writer};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::lock;
use crate::plan::Change;

/// What a name, a label or a selector may have in an address.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How many objects are asked for at once.
const PAGE: usize = 500;

/// Whether writes are made, or only told.
#[derive(Clone, Debug)]
pub(super) enum Effects {
    /// They are made.
    Live,
    /// They are told, and taken for made.
    Dry(Arc<Mutex<Vec<String>>>),
}

impl Effects {
    /// Tells a step of a dry run. Returns whether it is to be made.
    pub(super) fn step(&self, cluster: &str, label: &str) -> bool {
        match self {
            Self::Live => {
                tracing::info!(cluster, "{label}");
                true
            }
            Self::Dry(steps) => {
                lock(steps).push(label.to_owned());
                false
            }
        }
    }
}

/// One cluster.
#[derive(Clone)]
pub(super) struct Api {
    writer: Writer,
    /// The name of the cluster, for the log.
    name: String,
    timeout: Duration,
    effects: Effects,
}

impl Api {
    /// A cluster that has `timeout` for every answer.
    pub(super) fn new(writer: Writer, name: &str, timeout: Duration, effects: Effects) -> Self {
        Self { writer, name: name.to_owned(), timeout, effects }
    }

    /// What every write goes through.
    pub(super) const fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The name of the cluster.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether writes are made.
    pub(super) const fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Reads an object. It is absent only if the API server itself says that there is no object of this name: a proxy, or
    /// a server without the kind, answers 404 too.
    pub(super) async fn get(&self, path: &str, name: &str) -> Lookup<Value> {
        let path = format!("{path}/{}", utf8_percent_encode(name, IN_QUERY));
        match self.send::<Value>(&path).await {
            Ok(object) => Lookup::Present(without_fields(object)),
            Err(why) if is_absence(&why, name) => Lookup::Absent,
            Err(why) => Lookup::Unknown(self.explain(&why)),
        }
    }

    /// All objects that the query selects, from all pages.
    pub(super) async fn list(&self, path: &str, query: &[(&str, &str)]) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut token = String::new();
        loop {
            let page = PAGE.to_string();
            let more = [("limit", page.as_str()), ("continue", token.as_str())];
            let list = self.read(&address(path, query.iter().copied().chain(more))).await?;
            let Some(Value::Array(found)) = list.get("items") else {
                return Err(Error::temporary(format!("{path}: the answer is no list")));
            };
            items.extend(found.iter().cloned().map(without_fields));
            crate::view::text(&list, "/metadata/continue").clone_into(&mut token);
            if token.is_empty() {
                return Ok(items);
            }
        }
    }

    /// Asks for one object, only to see whether the cluster answers.
    pub(super) async fn probe(&self, path: &str) -> Result<()> {
        self.read(&address(path, [("limit", "1")])).await.map(|_| ())
    }

    /// Reads whatever is at a path.
    pub(super) async fn read(&self, path: &str) -> Result<Value> {
        self.send(path).await.map_err(|why| self.explain(&why))
    }

    async fn send<T: DeserializeOwned>(&self, path: &str) -> std::result::Result<T, kube::Error> {
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let sent = self.writer.client().request::<T>(request);
        match tokio::time::timeout(self.timeout, sent).await {
            Ok(answer) => answer,
            Err(_) => Err(kube::Error::Service(Box::new(Error::temporary("there was no answer in time")))),
        }
    }

    fn explain(&self, why: &kube::Error) -> Error {
        translate(why).context(&self.name)
    }

    /// Carries out a change; returns the object as it is then. `label` says what it is, for people.
    pub(super) async fn apply(&self, label: &str, path: &str, change: &Change) -> Result<Option<Value>> {
        let Some(object) = change.object() else { return Ok(None) };
        if !self.effects.step(&self.name, label) {
            return Ok(Some(object.clone()));
        }
        let call = self.writer.call(self.timeout);
        let written = match change {
            Change::Create(_) => self.writer.create(&call, path, object).await,
            _ => self.writer.replace(&call, path, object).await,
        };
        written.map(|object| Some(without_fields(object))).map_err(|why| why.context(label))
    }

    /// Merges a patch into an object as it was read; returns the object as it is then.
    pub(super) async fn merge(
        &self,
        label: &str,
        path: &str,
        object: &Value,
        change: &Value,
    ) -> Result<Value> {
        if !self.effects.step(&self.name, label) {
            return Ok(merged(object, change));
        }
        let name = crate::view::text(object, "/metadata/name");
        let call = self.writer.call(self.timeout);
        let written = self.writer.merge(&call, path, name, change).await;
        written.map(without_fields).map_err(|why| why.context(label))
    }

    /// Deletes an object as it was read.
    pub(super) async fn delete(
        &self,
        label: &str,
        path: &str,
        name: &str,
        uid: &str,
        version: &str,
    ) -> Result<()> {
        if !self.effects.step(&self.name, label) {
            return Ok(());
        }
        let read =
            DynamicView::read(json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version}}))?;
        let call = self.writer.call(self.timeout);
        self.writer.delete(&call, path, name, &read).await.map_err(|why| why.context(label))
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A path with a query, of which empty values are left out.
fn address<'a>(path: &str, query: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = query.into_iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<_> =
        pairs.map(|(key, value)| format!("{key}={}", utf8_percent_encode(value, IN_QUERY))).collect();
    format!("{path}?{}", pairs.join("&"))
}

/// Whether an error says that there is no object of this name.
fn is_absence(why: &kube::Error, name: &str) -> bool {
    let kube::Error::Api(status) = why else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

/// Without what only takes memory; the API server keeps it when an object is replaced by one without.
fn without_fields(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// The object after a merge patch, as far as we use them: nothing is removed.
fn merged(object: &Value, patch: &Value) -> Value {
    match (object, patch) {
        (Value::Object(old), Value::Object(new)) => {
            let mut all = old.clone();
            for (key, value) in new {
                let value = merged(old.get(key).unwrap_or(&Value::Null), value);
                all.insert(key.clone(), value);
            }
            Value::Object(all)
        }
        _ => patch.clone(),
    }
}

/// Whether another attempt may succeed by itself soon.
pub(super) fn again(why: &Error) -> crate::problem::Again {
    use crate::problem::Again;
    match why.category() {
        Category::NotFound | Category::Unauthorised | Category::Throttled { .. } => Again::Soon,
        Category::Permanent | Category::UserInput => Again::Slow,
        Category::Cancelled => Again::Never,
        _ => Again::Backoff,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{Status, response::StatusDetails};

    use super::*;

    #[test]
    fn only_the_api_server_can_say_that_an_object_is_absent() {
        let named = |name: &str| serde_json::from_value::<StatusDetails>(json!({"name": name})).unwrap();
        let api = |code, details| {
            let mut status = Status::failure("no", "NotFound").with_code(code);
            status.details = details;
            kube::Error::Api(Box::new(status))
        };
        let table = [
            ("RF-142 the object", api(404, Some(named("x"))), true),
            ("RF-180 no such kind here", api(404, None), false),
            ("a proxy that does not know the cluster", api(404, Some(named(""))), false),
            ("RF-142 403", api(403, Some(named("x"))), false),
            ("RF-142 500", api(500, Some(named("x"))), false),
        ];
        for (case, error, want) in table {
            assert_eq!(is_absence(&error, "x"), want, "{case}");
        }
    }

    #[test]
    fn a_selector_fits_into_an_address() {
        let selected = [("labelSelector", "owner=helm,name=a"), ("continue", "")];
        assert_eq!(address("/api", selected), "/api?labelSelector=owner%3Dhelm%2Cname%3Da");
    }

    #[test]
    fn a_patch_that_is_only_told_is_taken_for_made() {
        let object = json!({"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": 1});
        let patch = json!({"metadata": {"labels": {"y": "2"}}});
        assert_eq!(merged(&object, &patch)["metadata"]["labels"], json!({"x": "1", "y": "2"}));
    }
}
