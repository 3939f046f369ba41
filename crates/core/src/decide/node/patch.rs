//! The form of a write to a node.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{labels::LabelChanges, record, taints};
use crate::{
    error::Category,
    provider_id::ProviderId,
    view::{NodeView, Taint},
};

/// Which part of a node a patch goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// The node itself: labels, annotations, provider id, taints.
    Main,
    /// Its `status`: addresses.
    Status,
}

/// A strategic-merge patch of one node.
///
/// Every patch carries the UID of the node that it was decided on, so that it never lands on another node that was made
/// under the same name meanwhile: a provider id that was written on the wrong node stays there, and that node is later
/// deleted for an instance that it never had. It can be made only from a node, so none can be made without.
///
/// A patch of [`Subresource::Main`] also carries the resource version that it was decided on, so that it meets either
/// that object or a conflict, never somebody's newer edit. A patch of [`Subresource::Status`] carries none: it replaces
/// a whole list of which we are the only author, and the kubelet writes the rest of the status too often to race it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePatch {
    subresource: Subresource,
    uid: String,
    body: Value,
}

impl NodePatch {
    /// A patch of `node` itself: what it says under `metadata` and under `spec`.
    #[must_use]
    pub fn main(node: &NodeView, mut metadata: Map<String, Value>, spec: Map<String, Value>) -> Self {
        metadata.insert("uid".into(), node.uid.as_str().into());
        metadata.insert("resourceVersion".into(), node.resource_version.as_str().into());
        let mut body = Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
        if !spec.is_empty() {
            body.insert("spec".into(), Value::Object(spec));
        }
        Self { subresource: Subresource::Main, uid: node.uid.clone(), body: Value::Object(body) }
    }

    /// A patch of the node's status.
    #[must_use]
    pub fn status(node: &NodeView, status: Value) -> Self {
        let mut body = json!({ "metadata": { "uid": node.uid } });
        if let Some(body) = body.as_object_mut() {
            body.insert("status".into(), status);
        }
        Self { subresource: Subresource::Status, uid: node.uid.clone(), body }
    }

    /// Where it goes.
    #[must_use]
    pub const fn subresource(&self) -> Subresource {
        self.subresource
    }

    /// The UID of the node that it is meant for.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// What it says.
    #[must_use]
    pub const fn body(&self) -> &Value {
        &self.body
    }

    /// The node as it would be once this was written, for dry runs. What cannot be read back changes nothing.
    #[must_use]
    pub fn assume(&self, node: &NodeView) -> NodeView {
        let mut next = node.clone();
        let said = |path: &str| self.body.pointer(path);
        for (key, value) in said("/metadata/labels").and_then(Value::as_object).into_iter().flatten() {
            match value.as_str() {
                Some(value) => next.labels.insert(key, value),
                None => next.labels.remove(key),
            }
        }
        let read = json!({
            "metadata": { "name": node.name }, "spec": said("/spec"), "status": said("/status"),
        });
        let Ok(read) = NodeView::from_json(&read) else { return next };
        next.provider_id = next.provider_id.or(read.provider_id);
        if said("/spec/taints").is_some() {
            next.taints = read.taints;
        }
        if said("/status/addresses").is_some() {
            next.addresses = read.addresses;
        }
        next
    }
}

/// The patch of `node` itself that makes these changes, in one write; what is not given is not mentioned.
#[must_use]
pub fn main_patch(
    node: &NodeView,
    labels: &LabelChanges,
    provider_id: Option<&ProviderId>,
    taints: Option<&[Taint]>,
) -> NodePatch {
    let mut metadata = Map::new();
    if !labels.labels.is_empty() {
        metadata.insert("labels".into(), json!(labels.labels));
    }
    if let Some(record) = &labels.record {
        metadata.insert("annotations".into(), json!({ record::ANNOTATION: record.to_json() }));
    }
    let mut spec = Map::new();
    if let Some(id) = provider_id {
        spec.insert("providerID".into(), id.to_string().into());
    }
    if let Some(taints) = taints {
        spec.insert("taints".into(), taints::to_json(taints));
    }
    NodePatch::main(node, metadata, spec)
}

/// How often a write that met a conflict is tried again, each time decided anew on a fresh read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConflictRetry {
    /// Tries in total.
    pub attempts: u32,
    /// The shortest wait between two; the caller draws from one to two times this.
    pub wait: Duration,
}

impl ConflictRetry {
    /// For the writes that initialise a node.
    pub const INITIALISE: Self = Self { attempts: 20, wait: Duration::from_millis(50) };

    /// For labels and taints of a node in service.
    pub const UPKEEP: Self = Self { attempts: 5, wait: Duration::from_millis(100) };

    /// The wait before the next try, after `tries` of them ended in `failure`. `None`: give up and let the queue
    /// bring the node back later. Only a conflict is worth another try at once.
    #[must_use]
    pub fn again(self, tries: u32, failure: Category) -> Option<Duration> {
        (failure == Category::Conflict && tries < self.attempts).then_some(self.wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::node::{fixture::node, record::Record};

    #[test]
    fn a_patch_mentions_only_what_changes() {
        let nothing = LabelChanges::default();
        let bare = main_patch(&node("n"), &nothing, None, None);
        assert_eq!(bare.subresource, Subresource::Main);
        assert_eq!(bare.body, json!({ "metadata": { "uid": "uid-n", "resourceVersion": "1" } }), "L2-603");

        let id: ProviderId = "fake://7".parse().unwrap();
        let made = main_patch(&node("n"), &nothing, Some(&id), Some(&[taints::shutdown()]));
        let want = json!({
            "metadata": { "uid": "uid-n", "resourceVersion": "1" },
            "spec": {
                "providerID": "fake://7",
                "taints": [{ "key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule" }],
            },
        });
        assert_eq!(made.body, want);

        let mut record = Record::default();
        record.note("a", "1");
        let changes = LabelChanges {
            labels: [("a".to_owned(), Some("1".to_owned())), ("b".to_owned(), None)].into(),
            record: Some(record),
            notices: vec![],
        };
        let want = json!({ "metadata": {
            "uid": "uid-n",
            "resourceVersion": "1",
            "labels": { "a": "1", "b": null },
            "annotations": { "cloudberth.dev/applied-labels": "{\"a\":\"1\"}" },
        } });
        assert_eq!(main_patch(&node("n"), &changes, None, None).body, want);
    }

    #[test]
    fn a_dry_run_goes_on_from_the_node_that_a_patch_would_make() {
        use crate::decide::node::{addresses, fixture::waiting};

        let id: ProviderId = "fake://7".parse().unwrap();
        let labels = [("a".to_owned(), Some("1".to_owned())), ("b".to_owned(), None)].into();
        let changes = LabelChanges { labels, record: None, notices: vec![] };
        let mut before = waiting("n");
        before.labels.insert("b", "0");
        let after = main_patch(&before, &changes, Some(&id), Some(&[])).assume(&before);
        assert_eq!(after.provider_id.as_deref(), Some("fake://7"));
        assert_eq!(after.taints, []);
        assert_eq!(after.labels, [("a".to_owned(), "1".to_owned())].into());

        let list = crate::decide::node::fixture::addresses("I 10.0.0.1, I 10.0.0.2");
        let after = addresses::patch(&before, &list).assume(&before);
        assert_eq!((after.addresses, after.taints), (list, before.taints.clone()));
        let mut odd = NodePatch::main(&before, Map::new(), Map::new());
        odd.body = json!({ "spec": "what" });
        assert_eq!(odd.assume(&before), before, "what cannot be read changes nothing");
    }

    #[test]
    fn only_conflicts_are_tried_again_at_once_and_not_for_ever() {
        let (init, upkeep) = (ConflictRetry::INITIALISE, ConflictRetry::UPKEEP);
        let ms = |n| Some(Duration::from_millis(n));
        let table = [
            ("FW-28 19 conflicts leave one try", init, 19, Category::Conflict, ms(50)),
            ("FW-29 20 conflicts leave none", init, 20, Category::Conflict, None),
            ("FW-30 any other failure ends it", init, 1, Category::Temporary, None),
            ("FW-144 4 conflicts leave one try", upkeep, 4, Category::Conflict, ms(100)),
            ("FW-144 5 conflicts leave none", upkeep, 5, Category::Conflict, None),
        ];
        for (case, rule, tries, failure, want) in table {
            assert_eq!(rule.again(tries, failure), want, "{case}");
        }
    }
}
