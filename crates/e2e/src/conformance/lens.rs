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
    for cause in body["details"]["causes"].as_array_mut().into_iter().flatten() {
        without(cause, "message");
    }
    body
}

/// What clients look at in `/version`.
pub(crate) fn version(body: &Value) -> Value {
    json!({ "major": body["major"], "minor": body["minor"], "gitVersion": body["gitVersion"] })
}

/// The names of the items of a list, in order.
pub(crate) fn names(body: &Value) -> Value {
    let items = body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<_> = items.iter().map(|item| item["metadata"]["name"].clone()).collect();
    json!({ "kind": body["kind"], "metadata": body["metadata"], "names": names })
}

/// Of an `APIResourceList`, the resources that both servers have.
pub(crate) fn resources(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(list) = body["resources"].as_array_mut() {
        list.retain(|resource| listed(RESOURCES, &resource["name"]));
        for resource in list {
            without(resource, "storageVersionHash");
        }
    }
    body
}

/// Of an `APIGroupList`, the groups that both servers have, with the version that we use of each.
pub(crate) fn groups(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(list) = body["groups"].as_array_mut() {
        list.retain(|group| listed(GROUPS, &group["name"]));
        for group in list {
            only_v1(&mut group["versions"]);
        }
    }
    body
}

/// Of an aggregated discovery document, the groups and resources that both servers have.
pub(crate) fn aggregated(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(items) = body["items"].as_array_mut() {
        items.retain(|item| item["metadata"]["name"].is_null() || listed(GROUPS, &item["metadata"]["name"]));
        for item in items {
            only_v1(&mut item["versions"]);
            for version in item["versions"].as_array_mut().into_iter().flatten() {
                if let Some(resources) = version["resources"].as_array_mut() {
                    resources.retain(|resource| listed(RESOURCES, &resource["resource"]));
                    resources.iter_mut().for_each(known_subresources);
                }
            }
        }
    }
    body
}

fn known_subresources(resource: &mut Value) {
    let name = resource["resource"].as_str().unwrap_or_default().to_owned();
    if let Some(list) = resource["subresources"].as_array_mut() {
        list.retain(|sub| {
            let sub = sub["subresource"].as_str().unwrap_or_default();
            RESOURCES.contains(&format!("{name}/{sub}").as_str())
        });
        if list.is_empty() {
            without(resource, "subresources");
        }
    }
}

fn only_v1(versions: &mut Value) {
    if let Some(list) = versions.as_array_mut() {
        list.retain(|version| version["version"] == "v1");
    }
}

fn listed(names: &[&str], name: &Value) -> bool {
    name.as_str().is_some_and(|name| names.contains(&name))
}

fn without(value: &mut Value, key: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(key);
    }
}
