//! Definitions of custom kinds: how they come to be served, what is refused, how they go.

use serde_json::{Value, json};

use super::with;
use crate::conformance::lens::{aggregated_custom, groups_custom, nothing, refusal, resources_custom};
use crate::conformance::row::Row;

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POOLS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pools.${id}.example";
/// What the server says of a definition that is served.
pub(super) const ESTABLISHED: &str = "\"reason\":\"InitialNamesAccepted\"";
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

pub(super) fn rows() -> Vec<Row> {
    [life(), changes(), refusals(), discovery()].concat()
}

/// A definition of pools of this group, which have these versions.
pub(super) fn pools(group: &str, scope: &str, versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("pools.{group}") },
        "spec": { "group": group, "scope": scope, "names": { "kind": "Pool", "plural": "pools" }, "versions": versions },
    })
}

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
    })
}

fn simple() -> Value {
    pools("${id}.example", "Namespaced", &json!([version("v1", true)]))
}

fn life() -> Vec<Row> {
    let objects = "/apis/${id}.example/v1/namespaces/${ns}/pools";
    let pool = json!({
        "apiVersion": "${id}.example/v1", "kind": "Pool",
        "metadata": { "name": "a", "finalizers": ["example.com/wait"] },
    });
    vec![
        Row::new("a definition is completed, established and deleted")
            .get(404, "/apis/${id}.example/v1/pools")
            .post(201, DEFINITIONS, simple())
            .until_says(POOLS, ESTABLISHED)
            .until(200, "/apis/${id}.example/v1/pools")
            .get(200, POOLS)
            .table(200, POOLS)
            .get(200, format!("{DEFINITIONS}?fieldSelector=metadata.name%3Dpools.${{id}}.example"))
            .get(400, format!("{DEFINITIONS}?fieldSelector=spec.group%3Dx"))
            .post(409, DEFINITIONS, simple())
            .delete(200, POOLS)
            .until(404, POOLS)
            .until(404, "/apis/${id}.example/v1/pools"),
        Row::new("everything that is given stays").post(201, DEFINITIONS, with(
            pools("${id}.example", "Cluster", &json!([{
                "name": "v1", "served": true, "storage": true, "deprecated": true, "deprecationWarning": "old",
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "description": "A pool.", "properties": {
                    "spec": { "type": "object", "required": ["a"], "properties": {
                        "a": { "type": "string", "description": "Its name.", "format": "byte" },
                        "b": { "type": "array", "items": { "type": "object", "properties": { "c": { "type": "integer" } } } },
                        "d": { "type": "object", "additionalProperties": { "type": "string" } },
                        "e": { "x-kubernetes-int-or-string": true },
                        "f": { "type": "number", "nullable": true },
                    } },
                } } },
            }])),
            &json!({
                "metadata": { "labels": { "a": "b" }, "annotations": { "c": "d" } },
                "status": { "storedVersions": ["v7"], "conditions": [{ "type": "Established", "status": "True" }] },
            }),
        )),
        Row::new("each step is told")
            .get(200, format!("{DEFINITIONS}?limit=1"))
            .through(nothing)
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", format!(
                "{DEFINITIONS}?watch=1&resourceVersion=${{rv}}&fieldSelector=metadata.name%3Dpools.${{id}}.example"
            ))
            .post(201, DEFINITIONS, simple())
            .take("w", 3)
            .until(200, "/apis/${id}.example/v1/pools")
            .delete(200, POOLS)
            .take("w", 3),
        Row::new("objects go with their definition, and it waits for them")
            .post(201, DEFINITIONS, simple())
            .until_says(POOLS, ESTABLISHED)
            .until(200, objects)
            .post(201, objects, pool.clone())
            .post(201, objects, with(pool.clone(), &json!({ "metadata": { "name": "b", "finalizers": [] } })))
            .delete(200, POOLS)
            .until_says(POOLS, "InstanceDeletionInProgress")
            .until_says(format!("{objects}/a"), "deletionTimestamp")
            .until(404, format!("{objects}/b"))
            .post(403, objects, with(pool, &json!({ "metadata": { "name": "c" } })))
            .merge_patch(200, format!("{objects}/a"), json!({ "metadata": { "finalizers": null } }))
            .until(404, POOLS),
    ]
}

fn changes() -> Vec<Row> {
    let other = |group: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("ponds.{group}") },
            "spec": { "group": group, "scope": "Namespaced", "versions": [version("v1", true)],
                "names": { "kind": "Pool", "plural": "ponds", "singular": "pond", "shortNames": ["po"], "listKind": "PondList" } },
        })
    };
    let ponds = format!("{DEFINITIONS}/ponds.${{id}}.example");
    vec![
        Row::new("versions come, are stored, and stay")
            .post(201, DEFINITIONS, simple())
            .until_says(POOLS, ESTABLISHED)
            .merge_patch(200, POOLS, json!({ "metadata": { "labels": { "a": "b" } } }))
            .merge_patch(200, POOLS, json!({ "spec": { "versions": [version("v1", false), version("v2", true)] } }))
            .until(200, "/apis/${id}.example/v2/pools")
            .until(200, "/apis/${id}.example/v1/pools")
            .merge_patch(422, POOLS, json!({ "spec": { "versions": [version("v2", true)] } }))
            .merge_patch(200, POOLS, json!({ "spec": { "versions": [with(version("v1", false), &json!({ "served": false })), version("v2", true)] } }))
            .until(404, "/apis/${id}.example/v1/pools")
            .get(404, "/apis/${id}.example/v3/pools")
            .get(404, "/apis/${id}.example/v2/ponds"),
        Row::new("what objects depend on cannot change")
            .post(201, DEFINITIONS, simple())
            .until_says(POOLS, ESTABLISHED)
            .merge_patch(422, POOLS, json!({ "spec": { "scope": "Cluster" } }))
            .merge_patch(422, POOLS, json!({ "spec": { "names": { "kind": "Pond", "listKind": "PondList" } } }))
            .merge_patch(422, POOLS, json!({ "spec": { "group": "other.example" } }))
            .put(422, POOLS, simple()),
        Row::new("a kind has one definition")
            .post(201, DEFINITIONS, simple())
            .until_says(POOLS, ESTABLISHED)
            .post(201, DEFINITIONS, other("${id}.example"))
            .until_says(ponds.clone(), "KindConflict")
            .get(404, "/apis/${id}.example/v1/ponds")
            .delete(200, POOLS)
            .until(404, POOLS)
            .until_says(ponds, ESTABLISHED),
        Row::new("names that are added are accepted")
            .post(201, DEFINITIONS, simple())
            .until_says(POOLS, ESTABLISHED)
            .merge_patch(200, POOLS, json!({ "spec": { "names": { "shortNames": ["pl"], "categories": ["all"] } } }))
            .until_says("/apis/${id}.example/v1", "\"pl\"")
            .through(resources_custom)
            .get(200, POOLS),
    ]
}

fn refusals() -> Vec<Row> {
    let of = |schema: Value| {
        pools(
            "${id}.example",
            "Namespaced",
            &json!([with(version("v1", true), &json!({ "schema": schema }))]),
        )
    };
    let schema = |schema: Value| of(json!({ "openAPIV3Schema": schema }));
    let spec = |change: Value| {
        let base = simple();
        let spec = with(base.get("spec").cloned().unwrap_or_default(), &change);
        with(base, &json!({ "spec": spec }))
    };
    let refused = |name, definition| Row::new(name).post(422, DEFINITIONS, definition);
    vec![
        refused(
            "a name of its own",
            with(simple(), &json!({ "metadata": { "name": "lakes.${id}.example" } })),
        ),
        refused(
            "nothing",
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "a.b" },
            }),
        ),
        refused(
            "a group without a dot",
            with(pools("${id}", "Namespaced", &json!([version("v1", true)])), &json!({})),
        ),
        refused("a scope that is none", spec(json!({ "scope": "World" }))),
        refused(
            "kinds that are no names",
            spec(json!({ "names": {
            "kind": "Po_ol", "plural": "pools", "singular": "Pool", "shortNames": ["1"],
        } })),
        ),
        // It quotes the versions in the order of the server's own fields.
        refused("no version is stored", spec(json!({ "versions": [version("v1", false)] }))).through(refusal),
        refused(
            "two versions are stored",
            spec(json!({ "versions": [version("v1", true), version("v2", true)] })),
        )
        .through(refusal),
        refused(
            "one version twice",
            spec(json!({ "versions": [version("v1", true), version("v1", false)] })),
        )
        .through(refusal),
        refused("no schema", of(json!({}))),
        refused("a schema without a type", schema(json!({}))),
        refused("a schema of another type", schema(json!({ "type": "string" }))),
        refused(
            "fields without a type",
            schema(json!({ "type": "object", "properties": { "spec": {
            "type": "object", "properties": { "a": {}, "b": { "type": "array", "items": {} }, "c": { "type": "array" } },
        } } })),
        ),
        Row::new("unknown fields and wrong types")
            .post(400, DEFINITIONS, spec(json!({ "versions": 1 })))
            .post(400, format!("{DEFINITIONS}?fieldValidation=Strict"), spec(json!({ "scop": "Cluster" })))
            .post(201, DEFINITIONS, spec(json!({ "scop": "Cluster" }))),
    ]
}

fn discovery() -> Vec<Row> {
    let group = "a.discovered.example";
    let versions = json!([
        version("v1alpha1", false),
        version("v2", false),
        with(version("v1beta2", true), &json!({ "subresources": { "status": {} } })),
        version("v10", false),
        version("x1", false),
        with(version("v3", false), &json!({ "served": false })),
        version("v1beta10", false),
    ]);
    let names =
        json!({ "kind": "Pool", "plural": "pools", "shortNames": ["pl", "pls"], "categories": ["all"] });
    let mut definition = pools(group, "Namespaced", &versions);
    if let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("names".into(), names);
    }
    vec![
        Row::new("groups and versions in the order of their priority")
            .post(201, DEFINITIONS, definition)
            .until(200, format!("/apis/{group}/v10"))
            .through(resources_custom)
            .until(200, format!("/apis/{group}/v1beta2"))
            .through(resources_custom)
            .until_says(format!("/apis/{group}"), "v1beta10")
            .get(404, format!("/apis/{group}/v3"))
            .until_says("/apis", "a.discovered.example/x1")
            .through(groups_custom)
            .get_as(200, "/apis", AGGREGATED)
            .through(aggregated_custom),
    ]
}
