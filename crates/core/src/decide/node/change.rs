//! Which changes of a node need a look.

use super::{node_ip, record, taints};
use crate::view::NodeView;

/// Whether anything has changed that the decisions about addresses, labels and initialisation depend on.
///
/// A kubelet reports its conditions again and again, and that is most of what a watch of nodes tells: none of it
/// matters here.
#[must_use]
pub fn matters(old: &NodeView, new: &NodeView) -> bool {
    let waits = |node: &NodeView| node.has_taint(taints::UNINITIALISED);
    let noted = |key| old.annotations.get(key) != new.annotations.get(key);
    old.uid != new.uid
        || waits(old) != waits(new)
        || old.provider_id != new.provider_id
        || old.labels != new.labels
        || old.addresses != new.addresses
        || [node_ip::ANNOTATION, record::ANNOTATION].into_iter().any(noted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::node::fixture::{node, taint, waiting},
        view::Ready,
    };

    #[test]
    fn only_what_a_decision_looks_at_needs_a_look() {
        let table = [
            ("nothing", node("n"), false),
            ("L7-201 a heartbeat", NodeView { resource_version: "2".into(), ..node("n") }, false),
            ("readiness", NodeView { ready: Ready::True, ..node("n") }, false),
            ("pods have a range", NodeView { pod_cidrs: vec!["10.0.0.0/24".into()], ..node("n") }, false),
            ("another taint", NodeView { taints: vec![taint("other")], ..node("n") }, false),
            ("somebody's annotation", node("n").annotated("a", "1"), false),
            ("it waits for its cloud", waiting("n"), true),
            ("an id", node("n").id("fake://1"), true),
            ("a label", node("n").labelled("a=1"), true),
            ("an address", node("n").at("I 10.0.0.1"), true),
            ("the kubelet was told an address", node("n").annotated(node_ip::ANNOTATION, "10.0.0.1"), true),
            ("our record was edited", node("n").annotated(record::ANNOTATION, "{}"), true),
            ("another node of that name", NodeView { uid: "2".into(), ..node("n") }, true),
        ];
        for (case, new, want) in table {
            assert_eq!(matters(&node("n"), &new), want, "{case}");
            assert_eq!(matters(&new, &node("n")), want, "{case}, back");
        }
    }
}
