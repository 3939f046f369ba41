//! Writes to Kubernetes in words.

use cloudberth_core::{NodeView, decide::node::patch::NodePatch, view::Taint};
use serde_json::{Map, Value};

/// Whether the values of a write are known, or will be the cloud's answers to steps that were only assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Known,
    Assumed,
}

/// A write to a Service.
pub(crate) fn service(body: &Value, values: Values) -> String {
    let mut parts = Vec::new();
    let metadata = |key: &str| body.get("metadata").and_then(|metadata| metadata.get(key));
    for (key, verb) in [("finalizers", "add"), ("$deleteFromPrimitiveList/finalizers", "remove")] {
        for name in metadata(key).and_then(Value::as_array).into_iter().flatten() {
            parts.push(format!("{verb} the finalizer {}", plain(name)));
        }
    }
    parts.extend(map("annotation", metadata("annotations"), values));
    if let Some(list) = body.pointer("/status/loadBalancer/ingress") {
        let address = |entry: &Value| entry.get("ip").or_else(|| entry.get("hostname")).map(plain);
        let list: Vec<_> = list.as_array().into_iter().flatten().filter_map(address).collect();
        parts.push(match values {
            _ if list.is_empty() => "withdraw the published addresses".to_owned(),
            Values::Assumed => "publish the addresses of the load balancer".to_owned(),
            Values::Known => format!("publish {}", list.join(", ")),
        });
    }
    sentence(&parts)
}

/// A write to a node that is `node` before.
pub(crate) fn node(node: &NodeView, patch: &NodePatch) -> String {
    let body = patch.body();
    let mut parts = Vec::new();
    if let Some(id) = body.pointer("/spec/providerID") {
        parts.push(format!("set the provider id {}", plain(id)));
    }
    parts.extend(map("label", body.pointer("/metadata/labels"), Values::Known));
    // What the record of written labels holds is said by the labels.
    parts.extend(map("annotation", body.pointer("/metadata/annotations"), Values::Assumed));
    let after = patch.assume(node);
    if after.addresses != node.addresses {
        let each = |address: &cloudberth_core::address::NodeAddress| {
            format!("{} {}", address.kind().as_str(), address.address())
        };
        let list: Vec<_> = after.addresses.iter().map(each).collect();
        parts.push(format!("set the addresses {}", list.join(", ")));
    }
    let only_in = |list: &[Taint], other: &[Taint], verb: &str| {
        let lacking = list.iter().filter(|taint| !other.contains(taint));
        lacking.map(|taint| format!("{verb} the taint {}", taint.key)).collect::<Vec<_>>()
    };
    parts.extend(only_in(&after.taints, &node.taints, "add"));
    parts.extend(only_in(&node.taints, &after.taints, "remove"));
    for condition in body.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| condition.get(key).map(plain).unwrap_or_default();
        parts.push(format!("set the condition {} to {} ({})", text("type"), text("status"), text("reason")));
    }
    sentence(&parts)
}

/// Entries that are set, and entries that go.
fn map(kind: &str, entries: Option<&Value>, values: Values) -> Vec<String> {
    let nothing = Map::new();
    let entries = entries.and_then(Value::as_object).unwrap_or(&nothing);
    let (gone, set): (Vec<_>, Vec<_>) = entries.iter().partition(|(_, value)| value.is_null());
    let set = set.into_iter().map(|(key, value)| match values {
        Values::Known => format!("{key}={}", plain(value)),
        Values::Assumed => key.clone(),
    });
    let gone = gone.into_iter().map(|(key, _)| key.clone());
    let list = |verb: &str, names: Vec<String>| {
        let plural = if names.len() == 1 { "" } else { "s" };
        (!names.is_empty()).then(|| format!("{verb} the {kind}{plural} {}", names.join(", ")))
    };
    [list("set", set.collect()), list("remove", gone.collect())].into_iter().flatten().collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A write that says nothing which is known here is still a write.
fn sentence(parts: &[String]) -> String {
    if parts.is_empty() { "write to the object".to_owned() } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::decide::node::taints;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_of_a_write_to_a_service_is_named() {
        let full = json!({
            "metadata": {"uid": "u", "finalizers": ["f"], "annotations": {"a": "1", "b": null}},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example"}]}},
        });
        let release = json!({
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["f"]},
            "status": {"loadBalancer": {"ingress": null}},
        });
        let table = [
            (
                &full,
                Values::Known,
                "add the finalizer f; set the annotation a=1; remove the annotation b; publish 192.0.2.1, lb.example",
            ),
            (
                &full,
                Values::Assumed,
                "add the finalizer f; set the annotation a; remove the annotation b; publish the addresses of the \
                 load balancer",
            ),
            (&release, Values::Known, "remove the finalizer f; withdraw the published addresses"),
            (&json!({"spec": 1}), Values::Known, "write to the object"),
        ];
        for (body, values, want) in table {
            assert_eq!(service(body, values), want);
        }
    }

    #[test]
    fn every_part_of_a_write_to_a_node_is_named() {
        let before = NodeView { name: "n".into(), taints: vec![taints::shutdown()], ..NodeView::default() };
        let part = |body: &Value, key: &str| body[key].as_object().cloned().unwrap_or_default();
        let made = |body: &Value| match body.get("status") {
            Some(status) => NodePatch::status(&before, status.clone()),
            None => NodePatch::main(&before, part(body, "metadata"), part(body, "spec")),
        };
        let table = [
            (
                json!({"metadata": {"labels": {"a": "1", "b": null, "c": "2"}}, "spec": {"providerID": "x://1", "taints": []}}),
                "set the provider id x://1; set the labels a=1, c=2; remove the label b; remove the taint \
                 node.cloudprovider.kubernetes.io/shutdown",
            ),
            (
                json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"$patch": "replace"}]}}),
                "set the addresses InternalIP 10.0.0.1",
            ),
            (
                json!({"status": {"conditions": [{"type": "T", "status": "False", "reason": "R"}]}}),
                "set the condition T to False (R)",
            ),
        ];
        for (body, want) in table {
            assert_eq!(node(&before, &made(&body)), want);
        }
    }
}
