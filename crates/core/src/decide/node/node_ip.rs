//! `alpha.kubernetes.io/provided-node-ip`: the addresses that the kubelet was told to use.
//!
//! The kubelet writes one address, or one of each family. The cloud must know them; then they come first, and their
//! kinds show nothing else.

use std::net::IpAddr;

use crate::{
    address::{AddressKind, NodeAddress},
    error::{Category, Error, Result},
    instance::Instance,
    net::{self, IpFamily},
    view::NodeView,
};

/// Where the kubelet says which addresses it was told to use.
pub const ANNOTATION: &str = "alpha.kubernetes.io/provided-node-ip";

/// The addresses that the kubelet of `node` was told to use, in its order; empty when it was told nothing.
pub fn provided(node: &NodeView) -> Result<Vec<IpAddr>> {
    match node.annotations.get(ANNOTATION) {
        None => Ok(Vec::new()),
        Some(text) => parse(text).map_err(|why| invalid(node, &why)),
    }
}

/// Says which node an error about its provided addresses is about.
pub(super) fn invalid(node: &NodeView, why: &Error) -> Error {
    let message = format!("provided node ip for node {:?} is not valid: {why}", node.name);
    Error::new(why.category(), message)
}

/// Reads the annotation's value: one address, or one of each family, joined by a comma and nothing else.
pub fn parse(text: &str) -> Result<Vec<IpAddr>> {
    let refuse = |why: String| Error::user_input(format!("annotation {ANNOTATION}: {why}"));
    let ips = text
        .split(',')
        .map(|part| net::parse_ip(part).ok_or_else(|| refuse(format!("{part:?} is not an IP address"))))
        .collect::<Result<Vec<_>>>()?;
    match ips.as_slice() {
        [_] => Ok(ips),
        [a, b] if IpFamily::of(*a) != IpFamily::of(*b) => match ips.iter().find(|ip| ip.is_unspecified()) {
            Some(ip) => Err(refuse(format!("{ip} cannot be one of a pair, it is no node's address"))),
            None => Ok(ips),
        },
        _ => Err(refuse(format!("{text:?} must contain either a single IP or a dual-stack pair of IPs"))),
    }
}

/// What an instance offers a node whose kubelet was told to use the `provided` addresses: its addresses, and those of the
/// withheld ones that are among the provided.
#[must_use]
pub fn offered(instance: &Instance, provided: &[IpAddr]) -> Vec<NodeAddress> {
    let asked_for = |address: &&NodeAddress| address.ip().is_some_and(|ip| provided.contains(&ip));
    instance.addresses.iter().chain(instance.withheld.iter().filter(asked_for)).cloned().collect()
}

/// The cloud's addresses in the order that the provided ones ask for.
///
/// First, for each provided address, every entry that equals it as a number, in the cloud's spelling; then the entries
/// of those kinds that none of them had. A provided address that the cloud does not list is an error that shows both
/// sides; it may be cured by a change in the cloud, so it is not the object's fault alone.
pub fn choose(cloud: &[NodeAddress], provided: &[IpAddr]) -> Result<Vec<NodeAddress>> {
    let mut chosen: Vec<NodeAddress> = Vec::with_capacity(cloud.len());
    for ip in provided {
        let before = chosen.len();
        chosen.extend(cloud.iter().filter(|address| address.ip() == Some(*ip)).cloned());
        if chosen.len() == before {
            return Err(unmatched(*ip, cloud));
        }
    }
    let shown: Vec<AddressKind> = chosen.iter().map(NodeAddress::kind).collect();
    chosen.extend(cloud.iter().filter(|address| !shown.contains(&address.kind())).cloned());
    Ok(chosen)
}

fn unmatched(ip: IpAddr, cloud: &[NodeAddress]) -> Error {
    let listed: Vec<String> = cloud.iter().map(ToString::to_string).collect();
    let listed = if listed.is_empty() { "no address".to_owned() } else { listed.join(", ") };
    let message = format!(
        "failed to get node address from cloud provider that matches ip: {ip} (from {ANNOTATION}, set by the \
         kubelet's --node-ip; the cloud lists {listed})"
    );
    Error::new(Category::NotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::node::fixture::{addresses, node};

    #[test]
    fn the_annotation_is_read_strictly() {
        let table = [
            ("FW-72", "", None),
            ("FW-73", " ", None),
            ("FW-74", "blah", None),
            ("FW-75", "1.2.3.4", Some("1.2.3.4")),
            ("FW-76", " 1.2.3.4   ", None),
            ("FW-77", "01.2.3.004", Some("1.2.3.4")),
            ("FW-78", "1.2.3", None),
            ("FW-78", "1.2.3.0/24", None),
            ("FW-79", "0.0.0.0", Some("0.0.0.0")),
            ("FW-80", "1.2.3.4,not-an-IPv6-address", None),
            ("FW-81", "abcd::ef01", Some("abcd::ef01")),
            ("FW-81", "abcd:0abc:00ab:0000:0000::1", Some("abcd:abc:ab::1")),
            ("FW-82", "1.2.3.4,abcd::ef01", Some("1.2.3.4 abcd::ef01")),
            ("FW-82 the other way round", "abcd::ef01,1.2.3.4", Some("abcd::ef01 1.2.3.4")),
            ("FW-83", "abcd::ef01 , 1.2.3.4", None),
            ("FW-84", "1.2.3.4,5.6.7.8", None),
            ("FW-84", "abcd::1,abcd::2", None),
            ("FW-84 an IPv4 address in IPv6 clothes is IPv4", "1.2.3.4,::ffff:5.6.7.8", None),
            ("FW-85", "1.2.3.4,::", None),
            ("FW-85", "0.0.0.0,abcd::1", None),
            ("FW-86", "1.2.3.4,abcd::1,5.6.7.8", None),
            ("a comma too many", "1.2.3.4,", None),
        ];
        for (case, text, want) in table {
            let want =
                want.map(|ips| ips.split(' ').map(|ip| ip.parse::<IpAddr>().unwrap()).collect::<Vec<_>>());
            assert_eq!(parse(text).ok(), want, "{case} {text:?}");
        }
    }

    #[test]
    fn a_wrong_annotation_is_named_and_left_to_its_author() {
        let table = [
            ("x", "annotation alpha.kubernetes.io/provided-node-ip: \"x\" is not an IP address"),
            ("1.1.1.1,2.2.2.2", "must contain either a single IP or a dual-stack pair of IPs"),
            ("1.1.1.1,::", ":: cannot be one of a pair"),
        ];
        for (text, want) in table {
            let error = provided(&node("n").annotated(ANNOTATION, text)).unwrap_err();
            assert_eq!(error.category(), Category::UserInput);
            assert!(error.message().contains(want), "{error}");
            assert!(error.message().starts_with("provided node ip for node \"n\" is not valid: "), "{error}");
        }
        assert_eq!(provided(&node("n")), Ok(vec![]));
        let two = provided(&node("n").annotated(ANNOTATION, "1.2.3.4,::1")).unwrap();
        assert_eq!(two, parse("1.2.3.4,::1").unwrap());
    }

    #[test]
    fn provided_addresses_come_first_and_alone_among_their_kind() {
        let table = [
            ("FW-87", "I 10.1.1.1, H n", "10.1.1.1", Some("I 10.1.1.1, H n")),
            (
                "FW-88",
                "I 10.1.1.1, E 55.55.55.55, H n",
                "55.55.55.55",
                Some("E 55.55.55.55, I 10.1.1.1, H n"),
            ),
            (
                "FW-89",
                "I 44.44.44.44, I 55.55.55.55, E 44.44.44.44, E 55.55.55.55, H n",
                "55.55.55.55",
                Some("I 55.55.55.55, E 55.55.55.55, H n"),
            ),
            (
                "FW-90",
                "I 10.1.1.1, E 55.55.55.55, ID in, ED out, H n",
                "10.1.1.1",
                Some("I 10.1.1.1, E 55.55.55.55, ID in, ED out, H n"),
            ),
            (
                "FW-91",
                "I 10.1.1.1, I 10.2.2.2, I 10.3.3.3, E 55.55.55.55, H n",
                "10.1.1.1",
                Some("I 10.1.1.1, E 55.55.55.55, H n"),
            ),
            ("FW-92", "I 10.1.1.1, E 55.55.55.55, H n", "10.9.9.9", None),
            (
                "FW-93",
                "I 10.1.1.1, I 2600:1f14:1d4:d101:0:0:0:ba3d, H n",
                "2600:1f14:1d4:d101::ba3d",
                Some("I 2600:1f14:1d4:d101:0:0:0:ba3d, H n"),
            ),
            ("FW-94", "I 10.1.1.1, H n", "10.1.1.1,fd00::1", None),
            ("FW-95", "I 10.1.1.1, I fd00::1, H n", "10.1.1.1,fd00::1", Some("I 10.1.1.1, I fd00::1, H n")),
            ("FW-96", "I fd00::1, I 10.1.1.1, H n", "10.1.1.1,fd00::1", Some("I 10.1.1.1, I fd00::1, H n")),
            (
                "FW-97",
                "I 10.1.1.1, I 10.1.1.2, I fd00::1, I fd00::2, H n",
                "10.1.1.2,fd00::2",
                Some("I 10.1.1.2, I fd00::2, H n"),
            ),
            (
                "FW-98",
                "I 10.1.1.1, I fd00::1, E 55.55.55.55, H n",
                "10.1.1.1,fd00::1",
                Some("I 10.1.1.1, I fd00::1, E 55.55.55.55, H n"),
            ),
            (
                "FW-99",
                "I 10.1.1.1, I fd00::1, E 55.55.55.55, E 2001:db8::5, H n",
                "fd00::1,10.1.1.1",
                Some("I fd00::1, I 10.1.1.1, E 55.55.55.55, E 2001:db8::5, H n"),
            ),
            (
                "FW-100",
                "I 10.1.1.1, I fd00::1, E 55.55.55.55, E 2001:db8::5, H n",
                "55.55.55.55,fd00::1",
                Some("E 55.55.55.55, I fd00::1, H n"),
            ),
            ("an IP for a host name", "I 10.1.1.1, H 10.1.1.2", "10.1.1.2", Some("H 10.1.1.2, I 10.1.1.1")),
            ("a mapped address", "I ::ffff:10.1.1.1, H n", "10.1.1.1", Some("I ::ffff:10.1.1.1, H n")),
            ("unspecified, alone, not listed", "I 10.1.1.1", "0.0.0.0", None),
        ];
        for (case, cloud, provided, want) in table {
            let got = choose(&addresses(cloud), &parse(provided).unwrap()).ok();
            assert_eq!(got, want.map(addresses), "{case}");
        }
        let plain = addresses("I 10.1.1.1, I 10.1.1.2, H n");
        assert_eq!(choose(&plain, &[]), Ok(plain), "nothing provided, nothing changed");
    }

    #[test]
    fn the_order_of_the_internal_addresses_is_that_of_the_annotation() {
        let cloud = addresses(
            "I 10.0.0.1, I 172.16.0.1, I fd00:1:2:3:4::, I 192.168.0.1, I 2001:db2::1, E 132.143.154.163, H n",
        );
        for text in ["192.168.0.1", "2001:db2::1", "2001:db2::1,172.16.0.1", "192.168.0.1,fd00:1:2:3:4::"] {
            let chosen = choose(&cloud, &parse(text).unwrap()).unwrap();
            let internal: Vec<&str> = chosen
                .iter()
                .filter(|address| address.kind() == AddressKind::InternalIp)
                .map(NodeAddress::address)
                .collect();
            assert_eq!(internal.join(","), text, "FW-40");
            assert_eq!(chosen.len(), internal.len() + 2, "FW-40");
        }
    }

    #[test]
    fn an_address_that_the_cloud_lacks_shows_both_sides() {
        let wanted = parse("10.9.9.9").unwrap();
        let error = choose(&addresses("I 10.1.1.1, H n"), &wanted).unwrap_err();
        assert_eq!(error.category(), Category::NotFound, "FW-10 it comes back with back-off");
        let text = error.message();
        assert!(
            text.contains("that matches ip: 10.9.9.9") && text.contains("InternalIP 10.1.1.1, Hostname n")
        );
        assert!(choose(&[], &wanted).unwrap_err().message().contains("the cloud lists no address"));
    }
}
