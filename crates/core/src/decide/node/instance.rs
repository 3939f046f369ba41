//! Which instance of a listing a node is.
//!
//! By its id when it has one; the names do not matter then, instances get renamed. Else by its name, exactly: a part of
//! a name, or a name with a domain behind it, is another name. Because an id once written stays, a match by name must
//! be certain: the listing complete, and the name unique in it.

use std::{collections::BTreeSet, net::IpAddr};

use super::node_ip;
use crate::{
    address::NodeAddress,
    error::{Category, Error},
    instance::{Instance, InstanceListing},
    lookup::Lookup,
    view::NodeView,
};

/// How many names an explanation offers.
const NEAREST: usize = 3;

impl Instance {
    /// Why nothing may be written from what the cloud says about this instance, if it does not say enough.
    pub(super) fn unreadable(&self) -> Option<Error> {
        let flaw = self.flaw.as_deref()?;
        Some(Error::temporary(format!("the cloud does not describe instance {} fully: {flaw}", self.id)))
    }
}

/// The instance that is called like the node.
///
/// Of several with that name, the one that has an address of the node; if that does not single one out it is
/// `Unknown`, and the error names them. A short listing is `Unknown` too, even if it shows one: the missing part may
/// hold its namesake.
pub fn by_name<'a>(node: &NodeView, instances: &'a InstanceListing) -> Lookup<&'a Instance> {
    if let Some(why) = &instances.short {
        return Lookup::Unknown(Error::temporary(format!(
            "looking for the instance of node {:?}: the listing is incomplete: {why}",
            node.name
        )));
    }
    let namesakes: Vec<&Instance> = instances.called(&node.name).collect();
    match namesakes.as_slice() {
        [] => Lookup::Absent,
        [instance] => Lookup::Present(instance),
        _ => only_with_an_address_of(node, &namesakes).map_or_else(
            || Lookup::Unknown(ambiguous(node, namesakes.iter().map(|instance| instance.id.to_string()))),
            Lookup::Present,
        ),
    }
}

fn only_with_an_address_of<'a>(node: &NodeView, instances: &[&'a Instance]) -> Option<&'a Instance> {
    let mut own: BTreeSet<IpAddr> = node.addresses.iter().filter_map(NodeAddress::ip).collect();
    own.extend(node_ip::provided(node).unwrap_or_default());
    let has_one = |instance: &&&Instance| {
        instance.addresses.iter().filter_map(NodeAddress::ip).any(|ip| own.contains(&ip))
    };
    match instances.iter().filter(has_one).collect::<Vec<_>>().as_slice() {
        [instance] => Some(**instance),
        _ => None,
    }
}

/// Several instances answer to the node's name.
pub(super) fn ambiguous(node: &NodeView, instances: impl Iterator<Item = String>) -> Error {
    let instances: Vec<String> = instances.collect();
    let message = format!(
        "several instances are called {:?}: {}; rename all but one, or start the node's kubelet with --provider-id",
        node.name,
        instances.join(", ")
    );
    Error::new(Category::Conflict, message)
}

/// Up to three of `names` that a person may have meant by `name`, nearest first.
#[must_use]
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let near: BTreeSet<(usize, &str)> =
        names.filter_map(|other| distance(name, other).map(|distance| (distance, other))).collect();
    near.into_iter().map(|(_, other)| other).take(NEAREST).collect()
}

/// How far apart two names are; `None` when nobody would take one for the other.
///
/// Another case is nearest, then the same host with and without a domain, then a few letters changed.
fn distance(a: &str, b: &str) -> Option<usize> {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    if a == b {
        return Some(0);
    }
    let host_of =
        |short: &str, long: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    if host_of(&a, &b) || host_of(&b, &a) {
        return Some(1);
    }
    let edits = strsim::levenshtein(&a, &b);
    (edits <= 1 + a.len().min(b.len()) / 4).then_some(1 + edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::node::fixture::{instance, node},
        lookup::Listing,
    };

    fn listing() -> Vec<Instance> {
        vec![
            instance("fake://1", "web-1").with_addresses("I 10.0.0.1"),
            instance("fake://2", "twin").with_addresses("I 10.0.0.2, E 1.1.1.2"),
            instance("fake://3", "twin").with_addresses("I 10.0.0.3, E 1.1.1.2"),
            instance("fake://4", "web-1.example.com"),
        ]
    }

    #[test]
    fn a_name_finds_an_instance_only_if_there_is_no_doubt() {
        let all = InstanceListing::from(Listing::complete(listing()));
        let found = |node: &NodeView| match by_name(node, &all) {
            Lookup::Present(instance) => instance.id.to_string(),
            Lookup::Absent => "absent".to_owned(),
            Lookup::Unknown(_) => "unknown".to_owned(),
        };
        let table = [
            ("FW-41 FW-129 exactly", node("web-1"), "fake://1"),
            ("with a domain it is another name", node("web-1.example.com"), "fake://4"),
            ("no part of a name", node("web"), "absent"),
            ("two of one name", node("twin"), "unknown"),
            ("two, told apart by an address", node("twin").at("H twin, I 10.0.0.3"), "fake://3"),
            (
                "two, told apart by the kubelet",
                node("twin").annotated(node_ip::ANNOTATION, "10.0.0.2"),
                "fake://2",
            ),
            ("two, both with the address", node("twin").at("E 1.1.1.2"), "unknown"),
            ("two, an address of neither", node("twin").at("I 10.0.0.1"), "unknown"),
            ("two, a broken annotation", node("twin").annotated(node_ip::ANNOTATION, "x"), "unknown"),
        ];
        for (case, node, want) in table {
            assert_eq!(found(&node), want, "{case}");
        }
        let why = by_name(&node("twin"), &all).known().unwrap_err();
        assert_eq!(why.category(), Category::Conflict);
        assert!(why.message().contains("\"twin\": fake://2, fake://3;"), "{why}");
        let short = InstanceListing::from(Listing::short(listing(), "page 2 is missing"));
        let why = by_name(&node("web-1"), &short).known().unwrap_err();
        assert!(
            why.message().contains("\"web-1\"") && why.message().contains("page 2 is missing"),
            "L1-207 {why}"
        );
    }

    #[test]
    fn the_nearest_names_are_those_that_a_person_may_have_meant() {
        let table = [
            ("web-1", "web-01 db-1 WEB-1 web-2", "WEB-1 web-01 web-2"),
            ("web-1", "web-1.example.com web-1x.example.com", "web-1.example.com"),
            ("web-1", "web-0 web-1.example.com", "web-1.example.com web-0"),
            ("web-1.example.com", "web-1 web", "web-1"),
            ("web-1", "web-2 web-3 web-4 web-5", "web-2 web-3 web-4"),
            ("web-1", "mail database", ""),
            ("ab", "ac cd", "ac"),
            ("abcd", "abxy abxd axyz", "abxd abxy"),
            ("worker-a", "aworker", ""),
            ("worker-a", "wroker-a worker", "worker wroker-a"),
            ("x", "x x", "x"),
        ];
        for (name, names, want) in table {
            assert_eq!(nearest(name, names.split(' ')).join(" "), want, "{name} among {names}");
        }
    }
}
