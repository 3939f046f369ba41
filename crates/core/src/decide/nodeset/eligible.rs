//! Which nodes may take traffic.
//!
//! Readiness does not count: it flaps, and the health checks of the load balancer react to it. A node without a provider id
//! may still be the cloud's own; the caller says who owns it.

use std::sync::Arc;

use crate::{
    decide::{node::taints::TO_BE_DELETED, nodeset::Selector},
    view::NodeView,
};

/// Keeps a node out of every load balancer, unless its value says "false".
pub const EXCLUDE_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// The values that the programs we replace read as "false".
const FALSE: [&str; 6] = ["0", "f", "F", "false", "False", "FALSE"];

/// Whether no label keeps the node out.
pub fn included(node: &NodeView) -> bool {
    node.labels.get(EXCLUDE_LABEL).is_none_or(|value| FALSE.contains(&value))
}

/// Whether the node may take traffic.
pub fn eligible(node: &NodeView) -> bool {
    !node.deleting && included(node) && !node.has_taint(TO_BE_DELETED)
}

/// Whether the node belongs behind a load balancer: it may take traffic, is its provider's own, and is selected.
pub fn member(node: &NodeView, owned: bool, selector: Option<&Selector>) -> bool {
    owned && eligible(node) && selector.is_none_or(|selector| selector.matches(&node.labels))
}

/// The nodes behind a load balancer, sorted by name: those that are `owned` by its provider, may take traffic and are
/// selected.
pub fn members(
    nodes: &[Arc<NodeView>],
    owned: impl Fn(&NodeView) -> bool,
    selector: Option<&Selector>,
) -> Vec<Arc<NodeView>> {
    let mut chosen: Vec<_> =
        nodes.iter().filter(|node| member(node, owned(node), selector)).cloned().collect();
    chosen.sort_by(|a, b| a.name.cmp(&b.name));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::nodeset::fixture::{edited, excluded, label, node, taint, tainted},
        view::Ready,
    };

    #[test]
    fn who_may_take_traffic() {
        let exclude = |value: &str| edited(|n| label(n, EXCLUDE_LABEL, value));
        let table = [
            ("a plain node", node("n1"), true),
            ("FW-216 not Ready", edited(|n| n.ready = Ready::False), true),
            ("FW-224 no provider id", edited(|n| n.provider_id = None), true),
            ("FW-221 an unrelated taint", edited(|n| n.taints.push(taint("other"))), true),
            ("FW-220 being deleted", edited(|n| n.deleting = true), false),
            ("FW-217 FW-248 about to be removed", tainted(node("n1")), false),
            ("FW-246 excluded by an empty value", exclude(""), false),
            ("FW-246 excluded by true", exclude("true"), false),
            ("FW-246 excluded by anything", exclude("foo"), false),
            ("FW-247 the value is false", exclude("false"), true),
        ];
        for (case, node, want) in table {
            assert_eq!(eligible(&node), want, "{case}");
        }
        for value in FALSE {
            assert!(included(&exclude(value)), "FW-247 {value}");
        }
        assert!(!included(&exclude("fALSE")));
    }

    #[test]
    fn a_load_balancer_gets_its_providers_selected_nodes_in_order() {
        let blue = |mut n: NodeView| {
            label(&mut n, "color", "blue");
            n
        };
        let foreign = NodeView { provider_id: Some("other://x".to_owned()), ..node("n0") };
        let nodes: Vec<_> =
            [node("n3"), blue(node("n2")), foreign, excluded(blue(node("n4"))), blue(node("n1"))]
                .into_iter()
                .map(Arc::new)
                .collect();
        let ours = |n: &NodeView| n.provider_id.as_deref().is_some_and(|id| id.starts_with("cloud://"));
        let names = |owned: &dyn Fn(&NodeView) -> bool, selector: Option<&str>| {
            let selector = selector.map(|text| text.parse::<Selector>().unwrap());
            let chosen = members(&nodes, owned, selector.as_ref());
            chosen.iter().map(|n| n.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&ours, None), ["n1", "n2", "n3"], "L3-117 FW-249 only the provider's own");
        assert_eq!(names(&ours, Some("color=blue")), ["n1", "n2"], "FW-249");
        assert_eq!(names(&ours, Some("color=red")), [""; 0], "FW-249 none match");
        assert_eq!(names(&|_| true, None), ["n0", "n1", "n2", "n3"]);
    }
}
