//! Which addresses a node shows.
//!
//! The cloud's, in the cloud's order and spelling. Three things are added to that: a node keeps the host name that it
//! has when the cloud gives none, a cloud that lists no IP clears nothing, and what the kubelet was told to use comes
//! first (see [`node_ip`]).
//!
//! # What counts as a change
//! Other entries, more or fewer of them, are a change. Another order alone is not: clouds list interfaces in no
//! promised order, and a node whose addresses swap places with every listing helps nobody. The exception is the order
//! among the addresses that the kubelet was told to use: there the order is what the person asked for.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{node_ip, patch::NodePatch};
use crate::{
    address::{AddressKind, NodeAddress},
    error::Result,
    instance::Instance,
    view::NodeView,
};

/// The patch that brings the node's addresses up to what the cloud lists; `None` when there is nothing to write.
///
/// An error (the kubelet was told to use an address that the cloud does not list) leaves the addresses as they are.
pub fn update(node: &NodeView, instance: &Instance) -> Result<Option<NodePatch>> {
    if !has_ip(&instance.addresses) && !has_ip(&instance.withheld) {
        return Ok(None);
    }
    let provided = node_ip::provided(node)?;
    show(node, &node_ip::offered(instance, &provided), &provided)
}

/// The same for what the cloud offers a node whose kubelet was told to use the `provided` addresses.
pub fn show(node: &NodeView, offered: &[NodeAddress], provided: &[IpAddr]) -> Result<Option<NodePatch>> {
    if !has_ip(offered) {
        return Ok(None);
    }
    let wanted = node_ip::choose(&with_host_name(offered, &node.addresses), provided)
        .map_err(|why| node_ip::invalid(node, &why))?;
    Ok(differ(&node.addresses, &wanted, provided).then(|| patch(node, &wanted)))
}

/// Whether any entry is an IP. A list of names alone is no list: every instance has an address, so the cloud did not say.
#[must_use]
pub fn has_ip(list: &[NodeAddress]) -> bool {
    list.iter().any(|address| matches!(address.kind(), AddressKind::InternalIp | AddressKind::ExternalIp))
}

/// The cloud's list, with the host names that the node shows now at its end where the cloud gives none.
fn with_host_name(cloud: &[NodeAddress], shown: &[NodeAddress]) -> Vec<NodeAddress> {
    let is_host_name = |address: &&NodeAddress| address.kind() == AddressKind::Hostname;
    let mut list = cloud.to_vec();
    if !cloud.iter().any(|address| is_host_name(&address)) {
        list.extend(shown.iter().filter(is_host_name).cloned());
    }
    list
}

/// Whether `wanted` says something else than `shown`; see the module's description.
#[must_use]
pub fn differ(shown: &[NodeAddress], wanted: &[NodeAddress], provided: &[IpAddr]) -> bool {
    let sorted = |list: &[NodeAddress]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    let asked_for = |list: &[NodeAddress]| {
        let is_asked_for = |address: &&NodeAddress| address.ip().is_some_and(|ip| provided.contains(&ip));
        list.iter().filter(is_asked_for).cloned().collect::<Vec<_>>()
    };
    sorted(shown) != sorted(wanted) || asked_for(shown) != asked_for(wanted)
}

/// The patch that gives `node` exactly these addresses.
///
/// It always replaces the whole list. The list's declared merge goes by kind, and two addresses of one kind (every
/// dual-stack node has them) would swallow each other.
#[must_use]
pub fn patch(node: &NodeView, list: &[NodeAddress]) -> NodePatch {
    let entry = |a: &NodeAddress| json!({ "type": a.kind().as_str(), "address": a.address() });
    let entries: Vec<Value> = list.iter().map(entry).chain([json!({ "$patch": "replace" })]).collect();
    NodePatch::status(node, json!({ "addresses": entries }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::node::{
            fixture::{addresses, apply, node},
            patch::Subresource,
        },
        error::Category,
    };

    /// An instance with these addresses.
    fn showing(list: &str) -> Instance {
        Instance { addresses: addresses(list), ..Instance::new("fake://1".parse().unwrap(), "n") }
    }

    #[test]
    fn a_withheld_address_is_shown_only_if_the_kubelet_was_told_to_use_it() {
        let instance = Instance { withheld: addresses("I 10.0.0.1, I 10.0.0.2"), ..showing("E 1.1.1.1") };
        let alone = Instance { addresses: Vec::new(), ..instance.clone() };
        let table = [
            ("nothing said", &instance, None, Some("E 1.1.1.1")),
            ("BL-31 told to use it", &instance, Some("10.0.0.1"), Some("I 10.0.0.1, E 1.1.1.1")),
            ("told to use another", &instance, Some("1.1.1.1"), Some("E 1.1.1.1")),
            ("nothing but withheld ones", &alone, None, None),
            ("BL-31 and told to use one", &alone, Some("10.0.0.2"), Some("I 10.0.0.2")),
        ];
        for (case, instance, provided, want) in table {
            let plain = node("n").at("");
            let node = match provided {
                Some(ip) => plain.annotated(node_ip::ANNOTATION, ip),
                None => plain,
            };
            let made = update(&node, instance).unwrap();
            assert_eq!(made.as_ref().map(|made| apply(&node, made).addresses), want.map(addresses), "{case}");
        }
        let node = node("n").annotated(node_ip::ANNOTATION, "9.9.9.9");
        assert!(update(&node, &instance).is_err(), "an address that it does not have");
    }

    #[test]
    fn only_other_entries_are_a_change() {
        let table = [
            ("FW-58", "I 10.0.0.1, E 1.1.1.1", "I 10.0.0.1, E 1.1.1.1", "", false),
            ("FW-59", "I 10.0.0.1, E 1.1.1.1", "I 10.0.0.1, E 2.2.2.2", "", true),
            ("FW-60", "I 10.0.0.1, E 1.1.1.1, H n", "I 10.0.0.1, E 1.1.1.1", "", true),
            ("FW-61", "I 10.0.0.1, E 1.1.1.1", "I 10.0.0.1, E 1.1.1.1, H n", "", true),
            ("FW-62", "I 10.0.0.1, E 1.1.1.1", "I 1.1.1.1, E 10.0.0.1", "", true),
            ("FW-63", "I 10.0.0.1, E 1.1.1.1", "E 1.1.1.1, I 10.0.0.1", "", false),
            ("FW-63 asked for", "I 10.0.0.1, E 1.1.1.1", "E 1.1.1.1, I 10.0.0.1", "10.0.0.1", false),
            ("FW-63 of one kind", "I 10.0.0.1, I fd00::1", "I fd00::1, I 10.0.0.1", "", false),
            (
                "L4-201 two of a kind, the same two",
                "I 10.0.0.1, I fd00::1",
                "I 10.0.0.1, I fd00::1",
                "",
                false,
            ),
            ("one of two of a kind", "I 10.0.0.1, I fd00::1", "I 10.0.0.1, I fd00::2", "", true),
            ("one twice, then the other", "I 10.0.0.1, I 10.0.0.1, H n", "I 10.0.0.1, H n, H n", "", true),
            (
                "asked for in another order",
                "I 10.0.0.1, I fd00::1",
                "I fd00::1, I 10.0.0.1",
                "fd00::1,10.0.0.1",
                true,
            ),
            (
                "asked for in this order",
                "I fd00::1, I 10.0.0.1",
                "I fd00::1, I 10.0.0.1",
                "fd00::1,10.0.0.1",
                false,
            ),
            ("only others moved", "I fd00::1, E 1.1.1.1, H n", "I fd00::1, H n, E 1.1.1.1", "fd00::1", false),
        ];
        for (case, shown, wanted, provided, want) in table {
            let provided = if provided.is_empty() { vec![] } else { node_ip::parse(provided).unwrap() };
            assert_eq!(differ(&addresses(shown), &addresses(wanted), &provided), want, "{case}");
        }
    }

    #[test]
    fn a_node_follows_its_cloud() {
        let table = [
            (
                "FW-1 the cloud's host name wins",
                "H nodeoverriden",
                "H node0.cloud.internal, I 10.0.0.1, E 132.143.154.163",
                None,
                Some("H node0.cloud.internal, I 10.0.0.1, E 132.143.154.163"),
            ),
            (
                "FW-2 without one the node's stays, last",
                "H nodeoverriden, I 10.9.9.9",
                "I 10.0.0.1, E 132.143.154.163",
                None,
                Some("I 10.0.0.1, E 132.143.154.163, H nodeoverriden"),
            ),
            ("two host names stay in order", "H b, H a", "I 10.0.0.1", None, Some("I 10.0.0.1, H b, H a")),
            ("FW-66 no address clears nothing", "I 10.0.0.1", "", None, None),
            ("FW-66 whatever was asked for", "I 10.0.0.1", "", Some("10.0.0.2"), None),
            ("L1-421 a host name alone clears nothing", "I 10.0.0.1, H n", "H n", None, None),
            ("L1-421 one that looks like an address neither", "I 10.0.0.1", "H 10.0.0.9", None, None),
            ("L1-421 nor is it added", "I 10.0.0.1", "H other", None, None),
            ("FW-3 nothing shown yet", "", "I 10.0.0.1, E 1.1.1.1", None, Some("I 10.0.0.1, E 1.1.1.1")),
            ("L4-202 already there", "I 10.0.0.1, I fd00::1, H n", "I 10.0.0.1, I fd00::1", None, None),
            (
                "FW-18 what was asked for, the rest, the host name",
                "H n",
                "E 1.1.1.1, I 10.0.0.1",
                Some("10.0.0.1"),
                Some("I 10.0.0.1, E 1.1.1.1, H n"),
            ),
            (
                "an address gone from the cloud goes",
                "I 10.0.0.1, E 1.1.1.1",
                "I 10.0.0.1",
                None,
                Some("I 10.0.0.1"),
            ),
        ];
        for (case, shown, cloud, provided, want) in table {
            let mut node = node("n").at(shown);
            if let Some(text) = provided {
                node = node.annotated(node_ip::ANNOTATION, text);
            }
            let made = update(&node, &showing(cloud)).unwrap();
            assert_eq!(made.as_ref().map(|made| apply(&node, made).addresses), want.map(addresses), "{case}");
            if let Some(made) = made {
                assert_eq!(update(&apply(&node, &made), &showing(cloud)), Ok(None), "{case}, once more");
            }
        }
    }

    #[test]
    fn what_was_asked_for_and_is_not_listed_changes_nothing() {
        let table =
            [("FW-69 10.0.0.2", "10.0.0.2", Category::NotFound), ("FW-9", "invalid-ip", Category::UserInput)];
        for (case, text, category) in table {
            let node = node("n").at("I 10.0.0.2").annotated(node_ip::ANNOTATION, text);
            let error = update(&node, &showing("I 10.0.0.1")).unwrap_err();
            assert_eq!(error.category(), category, "{case}");
            assert!(
                error.message().starts_with("provided node ip for node \"n\" is not valid: "),
                "{case}: {error}"
            );
        }
    }

    #[test]
    fn the_patch_replaces_the_whole_list() {
        let want = json!({ "metadata": { "uid": "uid-n" }, "status": { "addresses": [
            { "type": "InternalIP", "address": "10.0.0.1" },
            { "type": "InternalIP", "address": "fd00::1" },
            { "$patch": "replace" },
        ] } });
        for (case, shown) in [("FW-70", "I 10.9.9.9"), ("FW-71", "")] {
            let made = update(&node("n").at(shown), &showing("I 10.0.0.1, I fd00::1")).unwrap().unwrap();
            assert_eq!((made.subresource(), made.body()), (Subresource::Status, &want), "{case}");
        }
    }
}
