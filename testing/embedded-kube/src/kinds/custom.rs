//! Custom resources: all that is known of them is their schema.

use serde_json::Value;

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::resource::Resource;
use super::super::structural;
use super::super::value::{at, put, set, texts, unset};

fn has_status(resource: &Resource) -> bool {
    resource.subresources.iter().any(|part| part.name == "status")
}

pub(super) fn prepare_create(resource: &Resource, object: &mut Value) {
    set(object, "metadata.generation", 1);
    if has_status(resource) {
        unset(object, "status");
    }
}

/// A change of anything but metadata and status is a new generation; the status path changes the status alone.
pub(super) fn prepare_update(resource: &Resource, subresource: Option<&str>, new: &mut Value, old: &Value) {
    if subresource == Some("status") {
        let status = at(new, "status").cloned();
        let version = at(new, "metadata.resourceVersion").cloned();
        *new = old.clone();
        put(new, "status", status);
        put(new, "metadata.resourceVersion", version);
        return;
    }
    if has_status(resource) {
        put(new, "status", at(old, "status").cloned());
    }
    let content = |object: &Value| {
        let mut object = object.clone();
        unset(&mut object, "metadata");
        if has_status(resource) {
            unset(&mut object, "status");
        }
        object
    };
    if content(new) != content(old) {
        meta::bump_generation(new);
    }
}

pub(super) fn validate(resource: &Resource, object: &Value) -> FieldErrors {
    let custom = resource.custom.as_ref();
    custom.map_or_else(FieldErrors::default, |custom| structural::validate(object, None, &custom.schema))
}

pub(super) fn validate_update(
    resource: &Resource,
    subresource: Option<&str>,
    new: &Value,
    old: &Value,
) -> FieldErrors {
    match (&resource.custom, subresource) {
        (None, _) => FieldErrors::default(),
        (Some(custom), None) => structural::validate(new, Some(old), &custom.schema),
        (Some(custom), Some(_)) => structural::validate_status(new, old, &custom.schema),
    }
}

/// New finalizers that name nobody are let pass with a warning.
pub(super) fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(|old| texts(old, "metadata.finalizers")).unwrap_or_default();
    let mut added = texts(new, "metadata.finalizers");
    added.retain(|finalizer| {
        let standard = matches!(finalizer.as_str(), "kubernetes" | "orphan" | "foregroundDeletion");
        !finalizer.contains('/') && !standard && !known.contains(finalizer)
    });
    added.sort();
    let warning = |finalizer: &String| {
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name{path} to avoid accidental \
             conflicts with other finalizer writers"
        )
    };
    added.iter().map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spec_and_status_are_kept_apart() {
        let resource = Resource::new("a.b", "v1", "W", "ws", true).with_status();
        let mut old = json!({"metadata": {"name": "w"}, "spec": {"a": 1}, "status": {"x": 1}});
        prepare_create(&resource, &mut old);
        assert_eq!(old, json!({"metadata": {"name": "w", "generation": 1}, "spec": {"a": 1}}));
        let table = [
            (
                "the spec",
                None,
                json!({"metadata": {"generation": 1}, "spec": {"a": 2}, "status": {"x": 2}}),
                json!({"metadata": {"generation": 2}, "spec": {"a": 2}}),
            ),
            (
                "a label",
                None,
                json!({"metadata": {"generation": 1, "labels": {}}, "spec": {"a": 1}}),
                json!({"metadata": {"generation": 1, "labels": {}}, "spec": {"a": 1}}),
            ),
            (
                "the status",
                Some("status"),
                json!({"metadata": {"labels": {}}, "spec": {"a": 9}, "status": {"x": 2}}),
                json!({"metadata": {"name": "w", "generation": 1}, "spec": {"a": 1}, "status": {"x": 2}}),
            ),
        ];
        for (case, part, mut new, want) in table {
            prepare_update(&resource, part, &mut new, &old);
            assert_eq!(new, want, "{case}");
        }
    }
}
