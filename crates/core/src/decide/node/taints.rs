//! Taints: finding, adding, removing, and the patch that carries the whole list.

use serde_json::{Map, Value};

use super::patch::NodePatch;
use crate::view::{NodeView, Taint, TaintEffect};

/// Set by the kubelet on a node that waits for its cloud. Value and effect do not matter.
pub const UNINITIALISED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Set on a node whose instance exists and is powered off.
pub const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Set by the cluster autoscaler on a node that it is about to remove.
pub const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// The taint of an instance that is powered off.
#[must_use]
pub fn shutdown() -> Taint {
    Taint { key: SHUTDOWN.to_owned(), value: None, effect: TaintEffect::NoSchedule, time_added: None }
}

/// Two taints are the same entry of a list when key and effect agree; the value is what such an entry says.
fn same_entry(a: &Taint, b: &Taint) -> bool {
    a.key == b.key && a.effect == b.effect
}

/// The entry of `taints` with the key and effect of `like`.
#[must_use]
pub fn find<'a>(taints: &'a [Taint], like: &Taint) -> Option<&'a Taint> {
    taints.iter().find(|taint| same_entry(taint, like))
}

/// The list with `taint` in it: in place of the entry with its key and effect, or at the end. `None` if it is there.
#[must_use]
pub fn with(taints: &[Taint], taint: &Taint) -> Option<Vec<Taint>> {
    let mut list = taints.to_vec();
    match list.iter_mut().find(|other| same_entry(other, taint)) {
        Some(other) if other.value == taint.value => return None,
        Some(other) => *other = taint.clone(),
        None => list.push(taint.clone()),
    }
    Some(list)
}

/// The list without the entry that has the key and effect of `like`. `None` if there is no such entry.
#[must_use]
pub fn without(taints: &[Taint], like: &Taint) -> Option<Vec<Taint>> {
    find(taints, like).map(|_| taints.iter().filter(|taint| !same_entry(taint, like)).cloned().collect())
}

/// The list without any taint of this key, whatever value and effect. `None` if there is none.
#[must_use]
pub fn without_key(taints: &[Taint], key: &str) -> Option<Vec<Taint>> {
    let rest: Vec<Taint> = taints.iter().filter(|taint| taint.key != key).cloned().collect();
    (rest.len() < taints.len()).then_some(rest)
}

/// The patch that gives `node` exactly these taints.
#[must_use]
pub fn patch(node: &NodeView, taints: &[Taint]) -> NodePatch {
    NodePatch::main(node, Map::new(), Map::from_iter([("taints".to_owned(), to_json(taints))]))
}

/// The list as Kubernetes writes it; an empty one is `null`, which removes the field.
#[must_use]
pub fn to_json(taints: &[Taint]) -> Value {
    let entry = |taint: &Taint| {
        let mut map = Map::new();
        map.insert("key".into(), taint.key.as_str().into());
        if let Some(value) = &taint.value {
            map.insert("value".into(), value.as_str().into());
        }
        map.insert("effect".into(), taint.effect.as_str().into());
        if let Some(time) = &taint.time_added {
            map.insert("timeAdded".into(), time.as_str().into());
        }
        Value::Object(map)
    };
    if taints.is_empty() { Value::Null } else { taints.iter().map(entry).collect() }
}

#[cfg(test)]
mod tests {
    use super::{TaintEffect::*, *};
    use crate::decide::node::patch::Subresource;
    use serde_json::json;

    fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
        Taint { key: key.into(), value: Some(value.into()), effect, time_added: None }
    }

    #[test]
    fn an_entry_is_found_by_key_and_effect() {
        let list = [taint("a", "1", NoSchedule), taint("b", "2", NoExecute)];
        let table = [
            ("FW-138 same key and effect, other value", taint("b", "9", NoExecute), Some(&list[1])),
            ("FW-139 other key", taint("c", "1", NoSchedule), None),
            ("FW-139 same key, other effect", taint("a", "1", NoExecute), None),
        ];
        for (case, like, want) in table {
            assert_eq!(find(&list, &like), want, "{case}");
        }
    }

    #[test]
    fn removing_reports_whether_there_was_anything_to_remove() {
        let (a, b) = (taint("a", "1", NoSchedule), taint("b", "2", NoExecute));
        let a_elsewhere = taint("a", "1", NoExecute);
        let table = [
            ("FW-140 not there", vec![a.clone()], b.clone(), None),
            ("FW-140 same key, other effect", vec![a.clone()], a_elsewhere.clone(), None),
            ("FW-140 empty list", vec![], a.clone(), None),
            ("FW-141 there", vec![a.clone(), b.clone()], a.clone(), Some(vec![b.clone()])),
            ("FW-141 the last one", vec![a.clone()], a.clone(), Some(vec![])),
            (
                "FW-141 twin with other effect stays",
                vec![a_elsewhere.clone(), a.clone()],
                a,
                Some(vec![a_elsewhere]),
            ),
        ];
        for (case, list, like, want) in table {
            assert_eq!(without(&list, &like), want, "{case}");
        }
    }

    #[test]
    fn adding_what_is_there_is_no_change() {
        let (a, b) = (taint("a", "1", NoSchedule), taint("b", "2", NoExecute));
        let a2 = taint("a", "2", NoSchedule);
        let dated = Taint { time_added: Some("2026-08-01T10:00:00Z".into()), ..a.clone() };
        let table = [
            ("FW-142 identical", vec![a.clone(), b.clone()], a.clone(), None),
            ("FW-142 identical but for its date", vec![dated], a.clone(), None),
            ("FW-143 other value", vec![a.clone(), b.clone()], a2.clone(), Some(vec![a2, b.clone()])),
            ("not there", vec![a.clone()], b.clone(), Some(vec![a.clone(), b.clone()])),
            (
                "other effect",
                vec![a.clone()],
                taint("a", "1", NoExecute),
                Some(vec![a, taint("a", "1", NoExecute)]),
            ),
        ];
        for (case, list, add, want) in table {
            assert_eq!(with(&list, &add), want, "{case}");
        }
    }

    #[test]
    fn the_mark_of_a_waiting_node_is_its_key_alone() {
        let other = taint("other", "x", NoExecute);
        for mark in [taint(UNINITIALISED, "true", NoSchedule), taint(UNINITIALISED, "", NoExecute)] {
            let list = [other.clone(), mark.clone(), mark];
            assert_eq!(without_key(&list, UNINITIALISED), Some(vec![other.clone()]), "FW-36");
        }
        assert_eq!(without_key(&[other], UNINITIALISED), None);
    }

    #[test]
    fn the_patch_carries_the_whole_list_and_the_version_it_was_decided_on() {
        let node = NodeView {
            name: "n".into(),
            uid: "u".into(),
            resource_version: "7".into(),
            ..NodeView::default()
        };
        let dated = Taint { time_added: Some("2026-08-01T10:00:00Z".into()), ..taint("a", "1", NoSchedule) };
        let made = patch(&node, &[dated, shutdown()]);
        assert_eq!(made.subresource(), Subresource::Main);
        let want = json!({
            "metadata": { "uid": "u", "resourceVersion": "7" },
            "spec": { "taints": [
                { "key": "a", "value": "1", "effect": "NoSchedule", "timeAdded": "2026-08-01T10:00:00Z" },
                { "key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule" },
            ] },
        });
        assert_eq!(*made.body(), want);
        assert_eq!(patch(&node, &[]).body()["spec"], json!({ "taints": null }));
    }
}
