//! Routes to the pods of a node, where the cloud has a router that needs telling.

use ipnet::IpNet;

use crate::address::NodeAddress;

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
    /// It swallows what it is given; never useful inside the cluster's range.
    pub blackhole: bool,
}

/// A route that should exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoute {
    /// A name that no other route has: the node's UID.
    pub hint: String,
    /// The node it leads to.
    pub node: String,
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
pub struct ClusterCidrs(pub Vec<IpNet>);
