//! Short ways to write nodes, instances and addresses in tables, and what an API server makes of a patch.

use serde_json::Value;

use super::{
    patch::{NodePatch, Subresource},
    taints,
};
use crate::{
    address::{AddressKind, NodeAddress},
    instance::Instance,
    label::{LabelKey, LabelValue, Region, Zone},
    view::{NodeView, Pairs, Taint, TaintEffect},
};

/// `I 10.0.0.1, E 1.2.3.4, ID a, ED b, H node` and so on.
pub(super) fn addresses(text: &str) -> Vec<NodeAddress> {
    let one = |entry: &str| {
        let (kind, address) = entry.split_once(' ').unwrap();
        let kind = match kind {
            "H" => AddressKind::Hostname,
            "I" => AddressKind::InternalIp,
            "E" => AddressKind::ExternalIp,
            "ID" => AddressKind::InternalDns,
            "ED" => AddressKind::ExternalDns,
            other => panic!("{other}"),
        };
        NodeAddress::new(kind, address).unwrap()
    };
    text.split(", ").filter(|entry| !entry.is_empty()).map(one).collect()
}

/// `a=1, b=2`.
pub(super) fn map(text: &str) -> Pairs {
    text.split(", ").filter(|entry| !entry.is_empty()).map(|entry| entry.split_once('=').unwrap()).collect()
}

pub(super) fn taint(key: &str) -> Taint {
    Taint { key: key.into(), value: Some("true".into()), effect: TaintEffect::NoSchedule, time_added: None }
}

/// A node in service, at resource version 1.
pub(super) fn node(name: &str) -> NodeView {
    NodeView {
        name: name.into(),
        uid: format!("uid-{name}"),
        resource_version: "1".into(),
        ..NodeView::default()
    }
}

/// A node that waits for its cloud.
pub(super) fn waiting(name: &str) -> NodeView {
    NodeView { taints: vec![taint(taints::UNINITIALISED)], ..node(name) }
}

impl NodeView {
    pub(super) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key, value);
        self
    }

    pub(super) fn labelled(mut self, labels: &str) -> Self {
        map(labels).iter().for_each(|(key, value)| self.labels.insert(key, value));
        self
    }

    pub(super) fn at(mut self, list: &str) -> Self {
        self.addresses = addresses(list);
        self
    }

    pub(super) fn id(mut self, id: &str) -> Self {
        self.provider_id = Some(id.into());
        self
    }
}

/// A running instance without further facts.
pub(super) fn instance(id: &str, name: &str) -> Instance {
    Instance::new(id.parse().unwrap(), name)
}

impl Instance {
    pub(super) fn with_addresses(mut self, list: &str) -> Self {
        self.addresses = addresses(list);
        self
    }

    /// Instance type, zone and region; `-` for one that is not known.
    pub(super) fn with_facts(mut self, instance_type: &str, zone: &str, region: &str) -> Self {
        let known = |text: &str| (text != "-").then(|| text.to_owned());
        self.instance_type = known(instance_type).map(|t| LabelValue::new(&t).unwrap());
        self.zone = known(zone).map(|t| Zone::new(&t).unwrap());
        self.region = known(region).map(|t| Region::new(&t).unwrap());
        self
    }

    pub(super) fn with_labels(mut self, labels: &str) -> Self {
        self.labels = map(labels)
            .iter()
            .map(|(k, v)| (LabelKey::new(k).unwrap(), LabelValue::new(v).unwrap()))
            .collect();
        self
    }
}

fn merge(into: &mut Pairs, changes: &Value) {
    for (key, value) in changes.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(text) => into.insert(key, text),
            None => into.remove(key),
        }
    }
}

/// What an API server makes of `patch`: a conflict panics, and so does a body that says anything unexpected.
pub(super) fn apply(node: &NodeView, patch: &NodePatch) -> NodeView {
    let mut next = node.clone();
    let known = |value: &Value, keys: &[&str]| {
        value.as_object().into_iter().flatten().for_each(|(k, _)| assert!(keys.contains(&k.as_str()), "{k}"));
    };
    let body = patch.body();
    assert_eq!(body["metadata"]["uid"], node.uid.as_str(), "L2-604 precondition");
    match patch.subresource() {
        Subresource::Main => {
            known(body, &["metadata", "spec"]);
            known(&body["metadata"], &["uid", "resourceVersion", "labels", "annotations"]);
            known(&body["spec"], &["providerID", "taints"]);
            assert_eq!(body["metadata"]["resourceVersion"], node.resource_version.as_str(), "precondition");
            merge(&mut next.labels, &body["metadata"]["labels"]);
            merge(&mut next.annotations, &body["metadata"]["annotations"]);
            if let Some(id) = body["spec"]["providerID"].as_str() {
                assert_eq!(node.provider_id, None, "a provider id is written once");
                next.provider_id = Some(id.to_owned());
            }
            if let Some(list) = body["spec"].get("taints") {
                let read = serde_json::json!({ "metadata": { "name": "x" }, "spec": { "taints": list } });
                next.taints = NodeView::from_json(&read).unwrap().taints;
            }
        }
        Subresource::Status => {
            known(body, &["metadata", "status"]);
            known(&body["metadata"], &["uid"]);
            known(&body["status"], &["addresses"]);
            let list = body["status"]["addresses"].as_array().unwrap();
            assert_eq!(list.last().unwrap(), &serde_json::json!({ "$patch": "replace" }));
            next.addresses = NodeView::from_json(
                &serde_json::json!({ "metadata": { "name": "x" }, "status": body["status"] }),
            )
            .unwrap()
            .addresses;
        }
    }
    next.resource_version = format!("{}'", node.resource_version);
    next
}
