//! Parts of answers that are compared, where the whole would be about more than we use.

use serde_json::{Value, json};

/// The resources that both servers are to have, in the core group and elsewhere.
const RESOURCES: &[&str] = &[
    "nodes",
    "nodes/status",
    "services",
    "services/status",
    "events",
    "namespaces",
    "namespaces/status",
    "namespaces/finalize",
    "secrets",
    "configmaps",
    "serviceaccounts",
    "pods",
    "pods/status",
    "endpoints",
    "endpointslices",
    "leases",
    "tokenreviews",
    "subjectaccessreviews",
    "selfsubjectaccessreviews",
];
/// The API groups that both servers are to have.
const GROUPS: &[&str] = &[
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
];

/// Nothing but the status code.
pub(crate) fn nothing(_: &Value) -> Value {
    Value::Null
}

/// Of a refusal, everything but the words: for messages that quote the innards of the server's language.
pub(crate) fn refusal(body: &Value) -> Value {
    let mut body = body.clone();
    without(&mut body, "message");
    for cause in items_mut(&mut body, "/details/causes") {
        without(cause, "message");
    }
    body
}

/// What clients look at in `/version`.
pub(crate) fn version(body: &Value) -> Value {
    json!({ "major": body.get("major"), "minor": body.get("minor"), "gitVersion": body.get("gitVersion") })
}

/// The versions of the core group, without the addresses under which they are served.
pub(crate) fn versions(body: &Value) -> Value {
    json!({ "kind": body.get("kind"), "versions": body.get("versions") })
}

/// The names of the items of a list, in order.
pub(crate) fn names(body: &Value) -> Value {
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names: Vec<_> = items.iter().map(|item| item.pointer("/metadata/name")).collect();
    json!({ "kind": body.get("kind"), "metadata": body.get("metadata"), "names": names })
}

/// Of an `APIResourceList`, the resources that both servers have.
pub(crate) fn resources(body: &Value) -> Value {
    let mut body = body.clone();
    keep(&mut body, "/resources", |resource| listed(RESOURCES, resource.get("name")));
    items_mut(&mut body, "/resources").for_each(|resource| without(resource, "storageVersionHash"));
    body
}

/// Of an `APIGroupList`, the groups that both servers have, with the version that we use of each.
pub(crate) fn groups(body: &Value) -> Value {
    let mut body = body.clone();
    keep(&mut body, "/groups", |group| listed(GROUPS, group.get("name")));
    items_mut(&mut body, "/groups").for_each(only_v1);
    body
}

/// Of an aggregated discovery document, the groups and resources that both servers have.
pub(crate) fn aggregated(body: &Value) -> Value {
    let mut body = body.clone();
    // The core group has no name.
    keep(&mut body, "/items", |group| {
        let name = group.pointer("/metadata/name");
        name.is_none() || listed(GROUPS, name)
    });
    for group in items_mut(&mut body, "/items") {
        only_v1(group);
        for version in items_mut(group, "/versions") {
            keep(version, "/resources", |resource| listed(RESOURCES, resource.get("resource")));
            items_mut(version, "/resources").for_each(known_subresources);
        }
    }
    body
}

fn known_subresources(resource: &mut Value) {
    let name = resource.get("resource").and_then(Value::as_str).unwrap_or_default().to_owned();
    keep(resource, "/subresources", |sub| {
        let sub = sub.get("subresource").and_then(Value::as_str).unwrap_or_default();
        RESOURCES.contains(&format!("{name}/{sub}").as_str())
    });
    if resource.get("subresources").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        without(resource, "subresources");
    }
}

fn only_v1(group: &mut Value) {
    keep(group, "/versions", |version| version.get("version").is_some_and(|version| version == "v1"));
}

fn listed(names: &[&str], name: Option<&Value>) -> bool {
    name.and_then(Value::as_str).is_some_and(|name| names.contains(&name))
}

fn keep(body: &mut Value, pointer: &str, wanted: impl Fn(&Value) -> bool) {
    if let Some(list) = body.pointer_mut(pointer).and_then(Value::as_array_mut) {
        list.retain(wanted);
    }
}

fn items_mut<'v>(body: &'v mut Value, pointer: &str) -> impl Iterator<Item = &'v mut Value> {
    body.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

fn without(value: &mut Value, key: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(key);
    }
}
