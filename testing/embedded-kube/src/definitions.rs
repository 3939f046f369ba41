//! Serves the kinds that definitions of custom kinds describe, and clears up behind definitions that go.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::{CLEANUP, advance, has_condition, set_condition};
use super::meta;
use super::resource::{Behaviour, Resource};
use super::state::State;
use super::status::qualified;
use super::value::{at, list, name, set, text, texts};

/// The table of definitions.
pub(crate) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// What is special about a custom kind.
#[derive(Clone, Debug)]
pub(crate) struct Custom {
    /// The schema of the version that is asked through.
    pub(crate) schema: Value,
    /// The schema of the version that objects are stored in.
    pub(crate) stored_schema: Value,
    pub(crate) list_kind: String,
    /// What users of an old version are told.
    pub(crate) warning: Option<String>,
    /// Its definition is going: nothing new is made.
    pub(crate) terminating: bool,
}

/// Sorts versions as clients prefer them: released before beta before alpha, newer before older, all others last by
/// name.
pub(crate) fn priority(version: &str) -> impl Ord + use<> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| !text.starts_with('0'));
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, stage) = rest.split_at(end);
        let stage = match stage {
            "" => (0, 0),
            stage => match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
                (Some(minor), _) => (1, number(minor)?),
                (_, Some(minor)) => (2, number(minor)?),
                _ => return None,
            },
        };
        Some((stage.0, Reverse(number(major)?), Reverse(stage.1)))
    });
    let other = parsed.is_none().then(|| version.to_owned());
    (parsed.is_none(), parsed, other)
}

fn schema(version: &Value) -> Value {
    at(version, "schema.openAPIV3Schema").cloned().unwrap_or_default()
}

/// The resources of one definition: one for each served version, all with the same objects.
fn resources(definition: &Value) -> Vec<Resource> {
    let names = |field: &str| text(definition, &format!("status.acceptedNames.{field}")).to_owned();
    let (group, kind, plural) = (text(definition, "spec.group"), names("kind"), names("plural"));
    let versions = list(definition, "spec.versions");
    let is = |version: &Value, flag: &str| at(version, flag) == Some(&Value::Bool(true));
    let stored_schema =
        versions.iter().find(|version| is(version, "storage")).map(schema).unwrap_or_default();
    let mut best: Vec<&str> = versions
        .iter()
        .filter(|version| is(version, "served") && !is(version, "deprecated"))
        .map(|version| text(version, "name"))
        .collect();
    best.sort_by_key(|version| priority(version));
    let warning = |version: &Value| {
        let (name, own) = (text(version, "name"), text(version, "deprecationWarning"));
        if !own.is_empty() {
            return own.to_owned();
        }
        let instead = best.first().filter(|best| priority(best) < priority(name));
        let instead = instead.map(|best| format!("; use {group}/{best} {kind}")).unwrap_or_default();
        format!("{group}/{name} {kind} is deprecated{instead}")
    };
    let resource = |version: &Value| {
        let namespaced = text(definition, "spec.scope") == "Namespaced";
        let mut resource = Resource::new(group, text(version, "name"), &kind, &plural, namespaced);
        resource.singular = names("singular");
        resource.short_names = texts(definition, "status.acceptedNames.shortNames");
        resource.categories = texts(definition, "status.acceptedNames.categories");
        resource.custom = Some(Custom {
            schema: schema(version),
            stored_schema: stored_schema.clone(),
            list_kind: names("listKind"),
            warning: is(version, "deprecated").then(|| warning(version)),
            terminating: at(definition, "metadata.deletionTimestamp").is_some(),
        });
        if at(version, "subresources.status").is_some() {
            resource = resource.with_status();
        }
        resource
    };
    versions.iter().filter(|version| is(version, "served")).map(resource).collect()
}

impl State {
    fn definitions(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.store.all(TABLE).map(|(_, definition)| definition)
    }

    /// Serves what the definitions in the store say, and nothing else.
    pub(crate) fn serve_definitions(&mut self) {
        self.resources.retain(|resource| resource.behaviour != Behaviour::Custom);
        let established = self.definitions().filter(|definition| has_condition(definition, "Established"));
        let custom: Vec<Arc<Resource>> =
            established.flat_map(|definition| resources(definition)).map(Arc::new).collect();
        self.resources.extend(custom);
    }

    /// Takes every definition as far as it can go, as the controllers of a real server do.
    pub(crate) fn settle_definitions(&mut self) {
        // A definition that goes frees its names for others.
        while self.settle_once() {}
        self.serve_definitions();
    }

    /// Says whether a definition is gone.
    fn settle_once(&mut self) -> bool {
        let now = self.world.now();
        loop {
            let next = self
                .definitions()
                .find_map(|definition| advance(definition, self.definitions().map(AsRef::as_ref), now));
            match next {
                Some(next) => self.write_definition(next),
                None => break,
            }
        }
        let doomed: Vec<Arc<Value>> = self
            .definitions()
            .filter(|definition| at(definition, "metadata.deletionTimestamp").is_some())
            .filter(|definition| texts(definition, "metadata.finalizers").iter().any(|f| f == CLEANUP))
            .cloned()
            .collect();
        let gone: Vec<bool> = doomed.iter().map(|definition| self.clear_up(definition)).collect();
        gone.contains(&true)
    }

    fn write_definition(&mut self, definition: Value) {
        let key = name(&definition).to_owned();
        self.store.put(TABLE, &key, definition);
        self.watchers.wake(TABLE);
    }

    /// Deletes the objects of a definition, and the definition once none of them is left: then it says so.
    fn clear_up(&mut self, definition: &Value) -> bool {
        let now = self.world.now();
        let table = qualified(text(definition, "spec.group"), text(definition, "spec.names.plural"));
        let mut definition = definition.clone();
        let message = "CustomResource deletion is in progress";
        set_condition(&mut definition, "Terminating", true, "InstanceDeletionInProgress", message, now);
        self.write_definition(definition.clone());
        let objects: Vec<(String, Arc<Value>)> =
            self.store.all(&table).map(|(key, object)| (key.clone(), Arc::clone(object))).collect();
        for (key, object) in objects {
            if list(&object, "metadata.finalizers").is_empty() {
                self.store.remove(&table, &key);
            } else if at(&object, "metadata.deletionTimestamp").is_none() {
                let mut marked = (*object).clone();
                meta::mark_deleting(&mut marked, now);
                self.store.put(&table, &key, marked);
            }
        }
        self.watchers.wake(&table);
        if self.store.all(&table).next().is_some() {
            return false;
        }
        self.watchers.end(&table);
        let mut left = texts(&definition, "metadata.finalizers");
        left.retain(|finalizer| finalizer != CLEANUP);
        if left.is_empty() {
            let key = name(&definition).to_owned();
            self.store.remove(TABLE, &key);
            self.watchers.wake(TABLE);
            true
        } else {
            set(&mut definition, "metadata.finalizers", json!(left));
            let message = "removed all instances";
            set_condition(&mut definition, "Terminating", false, "InstanceDeletionCompleted", message, now);
            self.write_definition(definition);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_versions_come_first_and_newer_before_older() {
        let mut versions = [
            "foo10",
            "v1beta1",
            "v11alpha2",
            "v1",
            "v11",
            "v3beta1",
            "foo1",
            "v10",
            "v12alpha1",
            "v2",
            "v10beta3",
            "v1beta2",
        ];
        versions.sort_by_key(|version| priority(version));
        assert_eq!(
            versions,
            [
                "v11",
                "v10",
                "v2",
                "v1",
                "v10beta3",
                "v3beta1",
                "v1beta2",
                "v1beta1",
                "v12alpha1",
                "v11alpha2",
                "foo1",
                "foo10"
            ]
        );
    }
}
