//! The parts of answers that are compared, where we use only a part.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

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
    "customresourcedefinitions",
    "customresourcedefinitions/status",
    "deployments",
    "deployments/status",
    "endpoints",
    "endpointslices",
    "leases",
    "tokenreviews",
    "subjectaccessreviews",
    "selfsubjectaccessreviews",
];
/// The API groups that both servers are to have.
const GROUPS: &[&str] = &[
    "apiextensions.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
];

/// The kinds, and what they are made of, that both servers are to describe.
const KINDS: &[&str] = &[
    "io.k8s.api.core.v1.Node",
    "io.k8s.api.core.v1.NodeSpec",
    "io.k8s.api.core.v1.Taint",
    "io.k8s.api.core.v1.NodeStatus",
    "io.k8s.api.core.v1.NodeAddress",
    "io.k8s.api.core.v1.NodeCondition",
    "io.k8s.api.core.v1.Service",
    "io.k8s.api.core.v1.ServiceSpec",
    "io.k8s.api.core.v1.ServicePort",
    "io.k8s.api.core.v1.ServiceStatus",
    "io.k8s.api.core.v1.LoadBalancerStatus",
    "io.k8s.api.core.v1.LoadBalancerIngress",
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Secret",
    "io.k8s.api.core.v1.ServiceAccount",
    "io.k8s.api.core.v1.Namespace",
    "io.k8s.api.core.v1.Event",
    "io.k8s.api.core.v1.ObjectReference",
    "io.k8s.api.core.v1.PodSpec",
    "io.k8s.api.core.v1.Container",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
];

/// The same, of the group of workloads.
const WORKLOADS: &[&str] = &[
    "io.k8s.api.apps.v1.Deployment",
    "io.k8s.api.apps.v1.DeploymentCondition",
    "io.k8s.api.apps.v1.DeploymentSpec",
    "io.k8s.api.apps.v1.DeploymentStatus",
    "io.k8s.api.apps.v1.DeploymentStrategy",
    "io.k8s.api.apps.v1.RollingUpdateDeployment",
    "io.k8s.api.core.v1.PodTemplateSpec",
];

/// The same, of the group of definitions of custom kinds.
const DEFINITIONS: &[&str] = &[
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion",
];

/// Nothing but the status code.
pub(crate) fn nothing(_: &Value) -> Value {
    Value::Null
}

/// Everything of a refusal but its message, for messages that quote internals of the server's language.
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

/// An `APIResourceList` of custom kinds, without the hash that no client computes.
pub(crate) fn resources_custom(body: &Value) -> Value {
    let mut body = body.clone();
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

/// Of an aggregated discovery document, the groups of custom kinds that rows make for it.
pub(crate) fn aggregated_custom(body: &Value) -> Value {
    let mut body = body.clone();
    keep(&mut body, "/items", |group| {
        let name = group.pointer("/metadata/name").and_then(Value::as_str);
        name.is_some_and(|name| name.ends_with(".discovered.example"))
    });
    body
}

/// Of an `APIGroupList`, the same.
pub(crate) fn groups_custom(body: &Value) -> Value {
    let mut body = body.clone();
    keep(&mut body, "/groups", |group| {
        group.get("name").and_then(Value::as_str).is_some_and(|name| name.ends_with(".discovered.example"))
    });
    body
}

/// Of the description of kinds, in any of its forms, what those that we write look like: which fields there are, of which
/// type, which of them have to be there, and how a strategic merge treats them.
pub(crate) fn described(body: &Value) -> Value {
    kinds(body, KINDS)
}

/// The same, of workloads.
pub(crate) fn described_workloads(body: &Value) -> Value {
    kinds(body, WORKLOADS)
}

/// The same, of definitions of custom kinds.
pub(crate) fn described_definitions(body: &Value) -> Value {
    kinds(body, DEFINITIONS)
}

fn kinds(body: &Value, names: &[&str]) -> Value {
    let all = body.get("definitions").or_else(|| body.pointer("/components/schemas")).unwrap_or(&Value::Null);
    let kinds = names.iter().map(|name| ((*name).to_owned(), kind(all.get(*name).unwrap_or(&Value::Null))));
    Value::Object(kinds.collect())
}

fn kind(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let fields: Map<String, Value> =
        properties.map(|(name, field)| (name.clone(), field_of(field))).collect();
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: BTreeSet<&str> = names.filter_map(Value::as_str).collect();
    json!({
        "fields": fields, "required": required, "type": schema.get("type"),
        "of": schema.get("x-kubernetes-group-version-kind"),
    })
}

fn field_of(schema: &Value) -> Value {
    let get = |key: &str| schema.get(key);
    // Version 3 wraps references, because nothing may stand beside one.
    let reference = get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
    let reference = reference.and_then(|path| path.rsplit('/').next());
    let inner = |key: &str| get(key).map(field_of);
    json!({
        "type": get("type"), "format": get("format"), "ref": reference,
        "items": inner("items"), "values": inner("additionalProperties"),
        "merge": get("x-kubernetes-patch-strategy"), "by": get("x-kubernetes-patch-merge-key"),
    })
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
