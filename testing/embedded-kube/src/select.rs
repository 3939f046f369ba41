//! Which objects a list, a watch or a deletion is about.

use std::sync::Arc;

use serde_json::Value;

use super::fields::FieldSelector;
use super::history::{Change, Event};
use super::labels::LabelSelector;
use super::query::Query;
use super::resource::{Behaviour, Resource};
use super::status::{Answer, Failure};
use super::value;

/// A filter on one table.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The prefix of the keys: a namespace and a slash, or nothing.
    pub(crate) prefix: String,
    name: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    behaviour: Behaviour,
}

impl Selection {
    pub(crate) fn read(
        resource: &Resource,
        namespace: Option<&str>,
        name: Option<&str>,
        query: &Query,
    ) -> Answer<Self> {
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default())
            .map_err(Failure::bad_request)?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default(), resource)
            .map_err(Failure::bad_request)?;
        let namespace = namespace.map(str::to_owned).or_else(|| {
            let demanded = fields.demands("metadata.namespace").filter(|_| resource.namespaced);
            demanded.filter(|namespace| !namespace.is_empty()).map(str::to_owned)
        });
        Ok(Self {
            prefix: namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default(),
            name: name.map(str::to_owned),
            labels,
            fields,
            behaviour: resource.behaviour,
        })
    }

    /// Nothing is filtered but the namespace.
    pub(crate) fn is_plain(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.name.is_none()
    }

    pub(crate) fn matches(&self, key: &str, object: &Value) -> bool {
        key.starts_with(&self.prefix)
            && self.name.as_deref().is_none_or(|name| value::name(object) == name)
            && self.labels.matches(object)
            && self.fields.matches(object, self.behaviour)
    }

    /// The event as this selection sees it: an object that begins to match is added, one that no longer does is deleted.
    pub(crate) fn sees(&self, event: &Event) -> Option<(&'static str, Arc<Value>)> {
        let before = event.before.as_ref().is_some_and(|before| self.matches(&event.key, before));
        let now = event.change != Change::Deleted && self.matches(&event.key, &event.object);
        match (before, now) {
            (false, true) => Some(("ADDED", Arc::clone(&event.object))),
            (true, true) => Some(("MODIFIED", Arc::clone(&event.object))),
            (true, false) if event.change == Change::Deleted => Some(("DELETED", Arc::clone(&event.object))),
            (true, false) => {
                let mut last = event.before.as_deref().cloned().unwrap_or_default();
                value::set(&mut last, "metadata.resourceVersion", event.revision.to_string());
                Some(("DELETED", Arc::new(last)))
            }
            (false, false) => None,
        }
    }
}
