//! Routes to the pods of a node, where the cloud has a router that needs them.

use std::{any::Any, net::IpAddr, sync::Arc};

use ipnet::IpNet;

use crate::{
    address::NodeAddress,
    error::{Error, Result},
    lookup::Listing,
    net,
};

/// A route as the cloud lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The cloud's own name for it, handed back on deletion.
    pub name: String,
    /// The node it leads to; `None` when it leads nowhere we know.
    pub target: Option<String>,
    /// The addresses it points at, where the cloud keeps track of them; `None` where it does not, and then a
    /// difference of addresses is no difference.
    pub addresses: Option<Vec<NodeAddress>>,
    /// The network it leads to, as the cloud spells it.
    pub destination: String,
    /// It drops all packets; never useful inside the cluster's range.
    pub blackhole: bool,
    /// It may be removed by us: it carries our mark or that of a program that we replace, or the cloud cannot mark
    /// routes and only the cluster's range tells whose they are. Somebody else's route can do a node's work, but it
    /// is never deleted (law 3).
    pub ours: bool,
}

/// What a provider read to list its routes, for its own use when it changes them.
pub type RouteData = Arc<dyn Any + Send + Sync>;

/// The routes of a cloud, as they were listed.
#[derive(Clone, Debug)]
pub struct RouteTable {
    /// The routes.
    pub routes: Listing<Route>,
    /// What they were read from; `()` where the provider has no use for it.
    pub data: RouteData,
}

impl From<Listing<Route>> for RouteTable {
    fn from(routes: Listing<Route>) -> Self {
        Self { routes, data: Arc::new(()) }
    }
}

/// A route that should exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoute {
    /// A name that no other node's route has: the node's UID.
    pub hint: String,
    /// The node it leads to.
    pub node: String,
    /// The provider id of that node.
    pub provider_id: Option<String>,
    /// The node's addresses.
    pub addresses: Vec<NodeAddress>,
    /// The network, as the node spells it.
    pub destination: String,
}

/// One change of the routing, to be carried out together with others of the same routing object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteChange {
    /// Remove this one.
    Delete(Route),
    /// Add this one.
    Create(NewRoute),
}

/// The networks that belong to the cluster's pods: one, or one of each family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterCidrs(Vec<IpNet>);

impl ClusterCidrs {
    /// Reads the value of `--cluster-cidr`. Blanks at both ends of the whole value do not count; anything else that
    /// is not a network, and nothing at all, is an error.
    pub fn parse(flag: &str) -> Result<Self> {
        let bad = |why: String| Error::user_input(format!("--cluster-cidr: {why}"));
        let read = |text: &str| {
            net::parse_cidr(text)
                .ok_or_else(|| bad(format!("{text:?} is not a network; write for example 10.244.0.0/16")))
        };
        let networks: Vec<IpNet> = flag.trim().split(',').map(read).collect::<Result<_>>()?;
        let v6 = networks.iter().filter(|network| matches!(network, IpNet::V6(_))).count();
        match (networks.len() - v6, v6) {
            (0..=1, 0..=1) => Ok(Self(networks)),
            (v4, v6) => Err(bad(format!(
                "{flag:?} holds {v4} IPv4 and {v6} IPv6 networks; at most one of each family can be routed"
            ))),
        }
    }

    /// The networks, in the order of the flag.
    #[must_use]
    pub fn networks(&self) -> &[IpNet] {
        &self.0
    }

    /// Whether an address belongs to the cluster's pods.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&ip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_holds_one_network_or_one_of_each_family() {
        let table = [
            ("one", "10.244.0.0/16", Some(&["10.244.0.0/16"][..])),
            ("one of IPv6", "a00:100::/24", Some(&["a00:100::/24"])),
            ("host bits are masked", "10.244.1.2/16", Some(&["10.244.0.0/16"])),
            ("blanks around the whole", " 10.244.0.0/16 ", Some(&["10.244.0.0/16"])),
            ("FW-309 one of each", "10.244.0.0/16,fd00::/48", Some(&["10.244.0.0/16", "fd00::/48"])),
            ("FW-309 the other order", "fd00::/48,10.244.0.0/16", Some(&["fd00::/48", "10.244.0.0/16"])),
            ("FW-307 empty", "", None),
            ("FW-307 blank", "  ", None),
            ("FW-307 malformed", "10.244.0.0", None),
            ("FW-307 one of two malformed", "10.244.0.0/16,x", None),
            ("FW-307 a space after the comma", "10.244.0.0/16, fd00::/48", None),
            ("FW-307 a comma at the end", "10.244.0.0/16,", None),
            ("FW-308 two of IPv4", "10.244.0.0/16,10.245.0.0/16", None),
            ("FW-308 two of IPv6", "fd00::/48,fd01::/48", None),
            ("FW-308 three", "10.244.0.0/16,fd00::/48,10.245.0.0/16", None),
            ("FW-308 three, the other way", "fd00::/48,10.244.0.0/16,fd01::/48", None),
        ];
        for (case, flag, want) in table {
            let got = ClusterCidrs::parse(flag);
            let texts =
                got.as_ref().ok().map(|c| c.networks().iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(
                texts.as_deref(),
                want.map(|w| w.iter().map(ToString::to_string).collect::<Vec<_>>()).as_deref(),
                "{case}"
            );
            if let Err(error) = got {
                assert!(error.message().starts_with("--cluster-cidr: "), "{case}: {error}");
            }
        }
        let error = ClusterCidrs::parse("10.0.0.0/8, 1.2.3.4").unwrap_err();
        assert!(error.message().contains("\" 1.2.3.4\" is not a network"), "{error}");
        let error = ClusterCidrs::parse("10.0.0.0/8,11.0.0.0/8,fd00::/8").unwrap_err();
        assert!(error.message().contains("2 IPv4 and 1 IPv6"), "{error}");
    }

    #[test]
    fn an_address_belongs_to_any_of_the_networks() {
        let cidrs = ClusterCidrs::parse("10.244.0.0/16,fd00::/48").unwrap();
        let table = [("10.244.255.255", true), ("10.245.0.0", false), ("fd00::1", true), ("fd01::1", false)];
        for (ip, want) in table {
            assert_eq!(cidrs.contains(ip.parse().unwrap()), want, "{ip}");
        }
    }
}
