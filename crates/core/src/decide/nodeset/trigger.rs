//! Which change of a node touches which Services.
//!
//! A node that is added, removed, excluded or included again, or that gets another provider id affects every load balancer
//! of its provider. A label affects those whose selector uses it; the programs that we replace miss that. Readiness,
//! taints, the start of a deletion, conditions and addresses affect none: they come in bursts, and the next pass works
//! from the newest nodes anyway.

use crate::{
    decide::nodeset::{
        Selector,
        eligible::{eligible, included, member},
    },
    view::NodeView,
};

/// What a change of a node touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// No load balancer.
    None,
    /// It was added, removed, excluded or included again.
    Membership,
    /// It is another instance now, or known to be one.
    ProviderId,
    /// Other labels: only load balancers with a selector can be touched.
    Labels,
}

/// What the change from `old` to `new` touches; `None` stands for a node that is not there.
pub fn trigger(old: Option<&NodeView>, new: Option<&NodeView>) -> Trigger {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (None, None) => return Trigger::None,
        _ => return Trigger::Membership,
    };
    if included(old) != included(new) {
        Trigger::Membership
    } else if old.provider_id != new.provider_id {
        Trigger::ProviderId
    } else if old.labels != new.labels && eligible(new) {
        Trigger::Labels
    } else {
        Trigger::None
    }
}

/// Whether the change touches the load balancers of one provider with one selector. `owned` tells which nodes are the
/// provider's own.
pub fn affects(
    old: Option<&NodeView>,
    new: Option<&NodeView>,
    owned: impl Fn(&NodeView) -> bool,
    selector: Option<&Selector>,
) -> bool {
    let is_member = |node: Option<&NodeView>| node.is_some_and(|n| member(n, owned(n), selector));
    match trigger(old, new) {
        Trigger::None => false,
        Trigger::Membership | Trigger::ProviderId => [old, new].into_iter().flatten().any(&owned),
        Trigger::Labels => is_member(old) != is_member(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::nodeset::fixture::{edited, excluded, label, node, taint, tainted},
        view::{Condition, Ready},
    };

    /// Whether load balancers without a selector are touched, as upstream has it.
    fn wakes(old: &NodeView, new: &NodeView) -> bool {
        affects(Some(old), Some(new), |_| true, None)
    }

    fn id(value: Option<&str>) -> NodeView {
        edited(|n| n.provider_id = value.map(str::to_owned))
    }

    fn ready(ready: Ready) -> NodeView {
        edited(|n| n.ready = ready)
    }

    #[test]
    fn what_wakes_load_balancers_without_a_selector() {
        use Ready::{False, True, Unknown};
        let plain = || node("n1");
        let labelled = || edited(|n| label(n, "color", "blue"));
        let network = |status: &str| {
            let condition = Condition { status: status.to_owned(), reason: String::new() };
            edited(|n| n.network_unavailable = Some(condition))
        };
        let with = |base: &NodeView, edit: fn(&mut NodeView)| {
            let mut changed = base.clone();
            edit(&mut changed);
            changed
        };
        let other_id: fn(&mut NodeView) = |n| n.provider_id = Some("cloud://new".to_owned());
        let not_ready: fn(&mut NodeView) = |n| n.ready = False;
        let (tainted_node, excluded_node) = (tainted(plain()), excluded(plain()));
        let (down, anonymous) = (ready(False), id(None));
        let table = vec![
            ("FW-231 nothing changed", plain(), plain(), false),
            ("FW-232 exclusion added", plain(), excluded(plain()), true),
            ("FW-232 exclusion removed", excluded(plain()), plain(), true),
            ("FW-233 excluded on both sides", excluded(plain()), excluded(plain()), false),
            ("FW-234 another taint", plain(), edited(|n| n.taints.push(taint("other"))), false),
            ("FW-234 another taint removed", edited(|n| n.taints.push(taint("other"))), plain(), false),
            ("FW-234 another label", plain(), labelled(), false),
            ("FW-234 another label removed", labelled(), plain(), false),
            ("FW-235 F to F", ready(False), ready(False), false),
            ("FW-235 F to unset", ready(False), ready(Unknown), false),
            ("FW-235 unset to F", ready(Unknown), ready(False), false),
            ("FW-235 unset to unset", ready(Unknown), ready(Unknown), false),
            ("FW-216 Ready goes", ready(True), ready(False), false),
            ("FW-216 Ready comes", ready(False), ready(True), false),
            ("FW-236 another condition", network("False"), network("True"), false),
            ("FW-237 deletion begins", plain(), edited(|n| n.deleting = true), false),
            ("FW-238 provider id set", id(None), plain(), true),
            ("FW-238 provider id cleared", plain(), id(None), true),
            ("FW-238 provider id changed", plain(), id(Some("cloud://new")), true),
            ("FW-239 autoscaler taint added", plain(), tainted(plain()), false),
            ("FW-239 autoscaler taint removed", tainted(plain()), plain(), false),
            ("FW-240 tainted: exclusion", tainted_node.clone(), excluded(tainted_node.clone()), true),
            ("FW-240 tainted: provider id", tainted_node.clone(), with(&tainted_node, other_id), true),
            ("FW-240 tainted: readiness", tainted_node.clone(), with(&tainted_node, not_ready), false),
            (
                "FW-241 excluded: autoscaler taint",
                excluded_node.clone(),
                tainted(excluded_node.clone()),
                false,
            ),
            ("FW-241 excluded: readiness", excluded_node.clone(), with(&excluded_node, not_ready), false),
            ("FW-241 excluded: provider id", excluded_node.clone(), with(&excluded_node, other_id), true),
            ("FW-242 not Ready: autoscaler taint", down.clone(), tainted(down.clone()), false),
            ("FW-242 not Ready: exclusion", down.clone(), excluded(down.clone()), true),
            ("FW-242 not Ready: provider id", down.clone(), with(&down, other_id), true),
            ("FW-243 no provider id: exclusion", anonymous.clone(), excluded(anonymous.clone()), true),
            ("FW-243 no provider id: readiness", anonymous.clone(), with(&anonymous, not_ready), false),
            ("FW-243 no provider id: autoscaler taint", anonymous.clone(), tainted(anonymous), false),
        ];
        for (case, old, new, want) in table {
            assert_eq!(wakes(&old, &new), want, "{case}");
        }
    }

    #[test]
    fn what_kind_of_change_it_is() {
        let labelled = edited(|n| label(n, "color", "blue"));
        let hidden = excluded(labelled.clone());
        let moved = edited(|n| {
            n.provider_id = None;
            label(n, "color", "blue");
        });
        let table = [
            ("it came", None, Some(node("n1")), Trigger::Membership),
            ("it went", Some(node("n1")), None, Trigger::Membership),
            ("it never was", None, None, Trigger::None),
            ("a label", Some(node("n1")), Some(labelled.clone()), Trigger::Labels),
            ("a label and the id", Some(node("n1")), Some(moved), Trigger::ProviderId),
            ("a label and the exclusion", Some(node("n1")), Some(hidden.clone()), Trigger::Membership),
            ("a label of an excluded node", Some(excluded(node("n1"))), Some(hidden), Trigger::None),
            ("a label of a node that goes", Some(node("n1")), Some(tainted(labelled)), Trigger::None),
        ];
        for (case, old, new, want) in table {
            assert_eq!(trigger(old.as_ref(), new.as_ref()), want, "{case}");
        }
    }

    #[test]
    fn a_label_touches_the_services_that_select_by_it() {
        let blue: Selector = "color=blue".parse().unwrap();
        let labelled = edited(|n| label(n, "color", "blue"));
        let shaped = edited(|n| label(n, "shape", "round"));
        let table = [
            ("FW-234 it matches now", node("n1"), labelled.clone(), true),
            ("it matches no more", labelled.clone(), node("n1"), true),
            ("another label", node("n1"), shaped, false),
        ];
        for (case, old, new, want) in table {
            assert_eq!(affects(Some(&old), Some(&new), |_| true, Some(&blue)), want, "{case}");
            assert!(
                !affects(Some(&old), Some(&new), |_| false, Some(&blue)),
                "L3-118 {case}: another provider's"
            );
        }
    }

    #[test]
    fn only_the_providers_own_nodes_touch_its_load_balancers() {
        let ours = |n: &NodeView| n.provider_id.is_some();
        let (known, unknown) = (node("n1"), id(None));
        assert!(affects(None, Some(&known), ours, None), "FW-214");
        assert!(affects(Some(&known), None, ours, None), "FW-219");
        assert!(affects(Some(&unknown), Some(&known), ours, None), "FW-223");
        assert!(affects(Some(&known), Some(&unknown), ours, None));
        assert!(!affects(None, Some(&unknown), ours, None), "L3-119");
        assert!(!affects(Some(&unknown), Some(&excluded(unknown.clone())), ours, None), "L3-120");
    }
}
