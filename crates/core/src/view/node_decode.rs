//! A node's JSON, read leniently.
//!
//! What the API server sends may be newer than we are, or trimmed. A part that is missing or of another shape than we
//! know counts as not set; only a node without a name cannot be worked with at all.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    filled, items,
    node::{Condition, NodeView, Ready, Taint, TaintEffect},
    pairs::{self, Pairs},
};
use crate::{
    address::NodeAddress,
    error::{Error, Result},
};

impl NodeView {
    /// Reads a node as the Kubernetes API writes it.
    ///
    /// Never panics, ignores what it does not know, skips what has the wrong type. The one error is a missing
    /// `metadata.name`.
    pub fn from_json(node: &Value) -> Result<Self> {
        let (metadata, spec, status) = (&node["metadata"], &node["spec"], &node["status"]);
        let name = filled(&metadata["name"])
            .ok_or_else(|| Error::permanent("node: metadata.name is missing or not text"))?;
        Ok(Self {
            name,
            uid: text(&metadata["uid"]),
            resource_version: text(&metadata["resourceVersion"]),
            created: metadata["creationTimestamp"].as_str().and_then(|t| t.parse::<Timestamp>().ok()),
            deleting: metadata["deletionTimestamp"].is_string(),
            labels: pairs::texts(&metadata["labels"]).collect(),
            annotations: annotations(&metadata["annotations"]),
            provider_id: filled(&spec["providerID"]),
            pod_cidrs: pod_cidrs(spec),
            taints: tight(items(&spec["taints"]).filter_map(taint)),
            addresses: tight(items(&status["addresses"]).filter_map(address)),
            ready: ready(status),
            network_unavailable: condition(status, "NetworkUnavailable"),
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Prefixes of the annotations that decisions use: ours, and the kubelet's about its addresses. Others are dropped, because
/// network and storage drivers write long ones, and there are thousands of nodes.
const READ: [&str; 2] = ["cloudberth.dev/", "alpha.kubernetes.io/"];

fn annotations(value: &Value) -> Pairs {
    pairs::texts(value).filter(|(key, _)| READ.iter().any(|prefix| key.starts_with(prefix))).collect()
}

/// A list without spare capacity: a vector starts with room for four, and most nodes have one taint or none.
fn tight<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = items.into_iter().collect();
    list.shrink_to_fit();
    list
}

/// The list, or the single network of older objects.
fn pod_cidrs(spec: &Value) -> Vec<String> {
    let list = tight(items(&spec["podCIDRs"]).filter_map(filled));
    if list.is_empty() { tight(filled(&spec["podCIDR"])) } else { list }
}

fn taint(value: &Value) -> Option<Taint> {
    Some(Taint {
        key: filled(&value["key"])?,
        value: value["value"].as_str().map(str::to_owned),
        effect: TaintEffect::from(value["effect"].as_str().unwrap_or_default()),
        time_added: filled(&value["timeAdded"]),
    })
}

fn address(value: &Value) -> Option<NodeAddress> {
    let kind = value["type"].as_str()?.parse().ok()?;
    Some(NodeAddress::recorded(kind, value["address"].as_str()?))
}

fn condition(status: &Value, kind: &str) -> Option<Condition> {
    items(&status["conditions"])
        .find(|condition| condition["type"].as_str() == Some(kind))
        .map(|condition| Condition { status: text(&condition["status"]), reason: text(&condition["reason"]) })
}

fn ready(status: &Value) -> Ready {
    match condition(status, "Ready").as_ref().map(|condition| condition.status.as_str()) {
        Some("True") => Ready::True,
        Some("False") => Ready::False,
        _ => Ready::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::address::AddressKind;

    fn full() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Node", "fromTheFuture": { "a": [1] },
            "metadata": {
                "name": "web-1", "uid": "u-1", "resourceVersion": "41",
                "creationTimestamp": "2026-08-01T10:00:00Z", "deletionTimestamp": "2026-08-02T10:00:00Z",
                "labels": { "a": "1", "empty": "" }, "annotations": { "b": "2" },
            },
            "spec": {
                "providerID": "cloudscale://x",
                "podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"],
                "taints": [
                    { "key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-08-01T10:00:01Z" },
                    { "key": "bare", "effect": "NoSchedule" },
                    { "key": "odd", "value": "", "effect": "Perhaps" },
                ],
            },
            "status": {
                "addresses": [
                    { "type": "InternalIP", "address": "10.0.0.1" },
                    { "type": "Hostname", "address": "web-1" },
                ],
                "conditions": [
                    { "type": "MemoryPressure", "status": "True" },
                    { "type": "Ready", "status": "False", "reason": "KubeletNotReady" },
                    { "type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated" },
                    { "type": "Ready", "status": "True" },
                ],
            },
        })
    }

    #[test]
    fn a_full_node_is_read_to_the_last_field() {
        let taint = |key: &str, value: Option<&str>, effect, time: Option<&str>| Taint {
            key: key.into(),
            value: value.map(Into::into),
            effect,
            time_added: time.map(Into::into),
        };
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        let want = NodeView {
            name: "web-1".into(),
            uid: "u-1".into(),
            resource_version: "41".into(),
            created: Some("2026-08-01T10:00:00Z".parse().unwrap()),
            deleting: true,
            labels: [pair("a", "1"), pair("empty", "")].into(),
            annotations: Pairs::default(),
            provider_id: Some("cloudscale://x".into()),
            pod_cidrs: vec!["10.1.0.0/24".into(), "fd00::/64".into()],
            taints: vec![
                taint("k", Some("v"), TaintEffect::NoExecute, Some("2026-08-01T10:00:01Z")),
                taint("bare", None, TaintEffect::NoSchedule, None),
                taint("odd", Some(""), TaintEffect::Other("Perhaps".into()), None),
            ],
            addresses: vec![
                NodeAddress::recorded(AddressKind::InternalIp, "10.0.0.1"),
                NodeAddress::recorded(AddressKind::Hostname, "web-1"),
            ],
            ready: Ready::False,
            network_unavailable: Some(Condition { status: "True".into(), reason: "NoRouteCreated".into() }),
        };
        assert_eq!(NodeView::from_json(&full()).unwrap(), want);
    }

    #[test]
    fn of_annotations_only_those_are_kept_that_are_read() {
        let kept =
            [("alpha.kubernetes.io/provided-node-ip", "10.0.0.1"), ("cloudberth.dev/applied-labels", "{}")];
        let other = [("csi.volume.kubernetes.io/nodeid", "long"), ("alpha.kubernetes.iodine/x", "y")];
        let all: std::collections::BTreeMap<_, _> = kept.into_iter().chain(other).collect();
        let node = NodeView::from_json(&json!({ "metadata": { "name": "n", "annotations": all } })).unwrap();
        assert_eq!(node.annotations, kept.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn only_a_missing_name_is_an_error() {
        let bare = NodeView { name: "n".into(), ..NodeView::default() };
        assert_eq!(NodeView::from_json(&json!({ "metadata": { "name": "n" } })).unwrap(), bare);
        for bad in [json!(null), json!([]), json!({}), json!({ "metadata": { "name": "" } })] {
            let error = NodeView::from_json(&bad).unwrap_err();
            assert!(error.message().contains("metadata.name"), "{bad}: {error}");
        }
        let wrong = json!({
            "metadata": {
                "name": "n", "uid": 1, "resourceVersion": {}, "creationTimestamp": "yesterday",
                "deletionTimestamp": null, "labels": { "a": 1, "b": "2" }, "annotations": ["x"],
            },
            "spec": { "providerID": "", "podCIDRs": [7, ""], "taints": [{ "effect": "NoSchedule" }, "x", { "key": "" }] },
            "status": {
                "addresses": [{ "type": "Pigeon", "address": "x" }, { "type": "Hostname", "address": 1 }, 5],
                "conditions": [{ "type": 1 }, { "type": "Ready", "status": true }],
            },
        });
        let want = NodeView { labels: [("b".to_owned(), "2".to_owned())].into(), ..bare };
        assert_eq!(NodeView::from_json(&wrong).unwrap(), want);
    }

    #[test]
    fn an_old_node_has_one_pod_network() {
        let table = [
            (json!({ "podCIDR": "10.1.0.0/24" }), vec!["10.1.0.0/24"]),
            (json!({ "podCIDR": "10.1.0.0/24", "podCIDRs": [] }), vec!["10.1.0.0/24"]),
            (json!({ "podCIDR": "10.1.0.0/24", "podCIDRs": ["fd00::/64"] }), vec!["fd00::/64"]),
            (json!({ "podCIDR": "" }), vec![]),
        ];
        for (spec, want) in table {
            let node = NodeView::from_json(&json!({ "metadata": { "name": "n" }, "spec": spec })).unwrap();
            assert_eq!(node.pod_cidrs, want, "{spec}");
        }
    }

    #[test]
    fn readiness_is_the_ready_condition_or_unknown() {
        let table = [("True", Ready::True), ("False", Ready::False), ("Unknown", Ready::Unknown)];
        for (status, want) in table {
            let conditions = json!([{ "type": "Ready", "status": status }]);
            let node = json!({ "metadata": { "name": "n" }, "status": { "conditions": conditions } });
            assert_eq!(NodeView::from_json(&node).unwrap().ready, want, "{status}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let key = prop_oneof![Just("metadata"), Just("name"), Just("spec"), Just("taints"), Just("key")];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..4).prop_map(|pairs| Value::Object(
                    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
                )),
            ]
        })
    }

    /// Every place in a document, root last.
    fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(k, v)| pointers(v, &format!("{at}/{k}"), out)),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(i, v)| pointers(v, &format!("{at}/{i}"), out));
            }
            _ => {}
        }
        out.push(at.to_owned());
    }

    proptest! {
        #[test]
        fn random_json_never_panics(value in any_json()) {
            let _ = NodeView::from_json(&value);
        }

        #[test]
        fn one_damaged_part_never_spoils_the_node(at in any::<prop::sample::Index>(), damage in any_json()) {
            let mut node = full();
            let mut places = Vec::new();
            pointers(&node, "", &mut places);
            let place = at.get(&places);
            *node.pointer_mut(place).unwrap() = damage;
            let named = node["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty());
            prop_assert_eq!(NodeView::from_json(&node).is_ok(), named, "{}", place);
        }
    }
}
