use serde_json::json;

use super::*;

fn patched(shape: &str, original: &Value, patch: &Value) -> Result<Value> {
    merge(&Shapes::kubernetes(), shape, original, patch)
}

/// What is tried, on which shape, the object, the patch, and what comes of it.
type Row = (&'static str, &'static str, Value, Value, Value);

fn check<const N: usize>(table: [Row; N]) {
    for (case, shape, original, patch, want) in table {
        assert_eq!(patched(shape, &original, &patch).unwrap(), want, "{case}");
    }
}

#[test]
fn lists_merge_by_their_keys_and_directives_are_obeyed() {
    let ports = json!({"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 443, "name": "b"}]}});
    let table = [
        (
            "an element with a known key is merged",
            "core/v1.Service",
            ports.clone(),
            json!({"spec": {"ports": [{"port": 443, "nodePort": 30001}]}}),
            json!({"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 443, "name": "b", "nodePort": 30001}]}}),
        ),
        (
            "an element with a new key comes first",
            "core/v1.Service",
            ports.clone(),
            json!({"spec": {"ports": [{"port": 8080, "name": "c"}]}}),
            json!({"spec": {"ports": [{"port": 8080, "name": "c"}, {"port": 80, "name": "a"}, {"port": 443, "name": "b"}]}}),
        ),
        (
            "$patch: delete removes the element with that key",
            "core/v1.Service",
            ports.clone(),
            json!({"spec": {"ports": [{"$patch": "delete", "port": 80}]}}),
            json!({"spec": {"ports": [{"port": 443, "name": "b"}]}}),
        ),
        (
            "$patch: replace in a list replaces the whole list",
            "core/v1.Service",
            ports.clone(),
            json!({"spec": {"ports": [{"$patch": "replace"}, {"port": 1}]}}),
            json!({"spec": {"ports": [{"port": 1}]}}),
        ),
        (
            "$patch: replace in a map replaces the map",
            "core/v1.Service",
            json!({"spec": {"selector": {"a": "1", "b": "2"}}}),
            json!({"spec": {"selector": {"$patch": "replace", "c": "3"}}}),
            json!({"spec": {"selector": {"c": "3"}}}),
        ),
        (
            "$setElementOrder dictates the order",
            "core/v1.Service",
            ports.clone(),
            json!({"spec": {"$setElementOrder/ports": [{"port": 443}, {"port": 80}], "ports": [{"port": 80, "name": "z"}]}}),
            json!({"spec": {"ports": [{"port": 443, "name": "b"}, {"port": 80, "name": "z"}]}}),
        ),
        (
            "$setElementOrder alone reorders",
            "core/v1.Service",
            ports.clone(),
            json!({"spec": {"$setElementOrder/ports": [{"port": 443}, {"port": 80}]}}),
            json!({"spec": {"ports": [{"port": 443, "name": "b"}, {"port": 80, "name": "a"}]}}),
        ),
    ];
    check(table);
}

#[test]
fn every_field_merges_by_its_own_rule() {
    let table = [
        (
            "primitive lists are united, new ones first in place",
            "core/v1.Service",
            json!({"metadata": {"finalizers": ["a/x", "b/y"]}}),
            json!({"metadata": {"finalizers": ["c/z", "a/x"]}}),
            json!({"metadata": {"finalizers": ["c/z", "a/x", "b/y"]}}),
        ),
        (
            "$deleteFromPrimitiveList takes away",
            "core/v1.Service",
            json!({"metadata": {"finalizers": ["a/x", "b/y"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/x"]}}),
            json!({"metadata": {"finalizers": ["b/y"]}}),
        ),
        (
            "taints are replaced as a whole",
            "core/v1.Node",
            json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
            json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}),
            json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}),
        ),
        (
            "node addresses merge by type",
            "core/v1.Node",
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n"}]}}),
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}}),
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}, {"type": "Hostname", "address": "n"}]}}),
        ),
        (
            "null removes, and is dropped where nothing was",
            "core/v1.Node",
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
            json!({"metadata": {"labels": {"a": null, "z": null}, "annotations": {"x": null, "y": "1"}}}),
            json!({"metadata": {"labels": {"b": "2"}, "annotations": {"y": "1"}}}),
        ),
        (
            "$retainKeys drops what is not named",
            "core/v1.Volume",
            json!({"name": "v", "emptyDir": {}}),
            json!({"$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}),
            json!({"name": "v", "hostPath": {"path": "/x"}}),
        ),
        (
            "a directive where nothing was leaves nothing",
            "core/v1.Service",
            json!({}),
            json!({"spec": {"ports": [{"$patch": "delete", "port": 1}, {"port": 2}]}}),
            json!({"spec": {"ports": [{"port": 2}]}}),
        ),
    ];
    check(table);
}

#[test]
fn broken_patches_are_refused() {
    let ports = json!({"spec": {"ports": [{"port": 80}]}});
    let table = [
        (
            "no merge key",
            json!({"spec": {"ports": [{"name": "x"}]}}),
            500,
            "does not contain declared merge key: port",
        ),
        ("unknown directive", json!({"spec": {"$patch": "explode"}}), 500, "unknown patch type"),
        ("order without name", json!({"spec": {"$setElementOrder": []}}), 400, "setElementOrder list"),
        (
            "order that lacks an element",
            json!({"spec": {"$setElementOrder/ports": [{"port": 1}], "ports": [{"port": 2}]}}),
            500,
            "doesn't match",
        ),
        (
            "retainKeys that lacks a field",
            json!({"spec": {"$retainKeys": ["a"], "type": "X"}}),
            400,
            "retainKeys",
        ),
        ("not an object", json!([1]), 400, "Invalid JSON document"),
    ];
    for (case, patch, code, words) in table {
        let failure = patched("core/v1.Service", &ports, &patch).unwrap_err();
        assert_eq!(failure.code.as_u16(), code, "{case}: {}", failure.message);
        assert!(failure.message.contains(words), "{case}: {}", failure.message);
    }
}
