//! Servers as instances.

use std::collections::BTreeMap;

use cloudberth_core::{
    AddressKind, Error, Instance, InstanceState, LabelKey, LabelValue, NodeAddress, Region, Result, Zone,
    error::Context, instance::PrivateFacts, net::parse_ip,
};
use cloudberth_http::{Flawed, Item};

use crate::{
    id::provider_id,
    settings::NodeSettings,
    wire::{Named, Network, Server},
};

/// The label with the name of the physical host.
const HOST_LABEL: &str = "binarylane.com/host";
const LABEL_LIMIT: usize = 63;

/// What load balancers and routes need to know of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its id.
    pub server: i64,
    /// The slug of its region.
    pub region: String,
    /// The VPC that it is in.
    pub vpc: Option<i64>,
    /// Its addresses in that VPC, in the API's order.
    pub vpc_addresses: Vec<String>,
    /// It only takes packets to its own addresses, so routed ones are dropped.
    pub checks_destination: bool,
}

impl Server {
    /// Cancelled and switched off because of it.
    fn is_cancelled(&self) -> bool {
        self.status == "archive" && self.cancelled_at.is_some()
    }

    /// The same in the framework's words. Labels and addresses that Kubernetes would not take are left out.
    fn instance(&self, settings: NodeSettings) -> Result<Instance> {
        // Nodes have lower-case names, and host names are the same in any case.
        let mut instance = Instance::new(provider_id(positive(self.id)?)?, &self.name.to_ascii_lowercase());
        instance.state = match self.status.as_str() {
            "new" => InstanceState::Pending,
            "active" => InstanceState::Running,
            "off" | "archive" => InstanceState::Stopped,
            _ => InstanceState::Other,
        };
        let size = self.size.as_ref().map(|size| &size.slug).or(self.size_slug.as_ref());
        instance.instance_type = size.and_then(|slug| LabelValue::new(slug).ok());
        instance.zone = Zone::new(&self.region.slug).ok();
        instance.region = Region::new(&self.region.slug).ok();
        (instance.addresses, instance.withheld) = self.addresses(settings);
        instance.labels = self.labels();
        instance.facts = Some(PrivateFacts::new(self.facts()));
        Ok(instance)
    }

    fn facts(&self) -> Facts {
        let private = self.private().filter(|network| self.is_in_vpc(network));
        let vpc_addresses = private.map(|network| network.ip_address.clone()).collect();
        Facts {
            server: self.id,
            region: self.region.slug.clone(),
            vpc: self.vpc_id,
            vpc_addresses: if self.vpc_id.is_some() { vpc_addresses } else { Vec::new() },
            checks_destination: self.networks.source_and_destination_check == Some(true),
        }
    }

    fn private(&self) -> impl Iterator<Item = &Network> {
        self.networks.v4.iter().filter(|network| network.kind == "private")
    }

    /// Whether a private address is one of the VPC. The provider's own network counts only if there is no other.
    fn is_in_vpc(&self, network: &Network) -> bool {
        self.vpc_id.is_some() && (!is_providers(network) || self.private().all(is_providers))
    }

    /// The addresses that a node shows, and those that it shows only if its kubelet was told to use them: private ones
    /// that do not work, because the server is in no VPC or they are the provider's own.
    fn addresses(&self, settings: NodeSettings) -> (Vec<NodeAddress>, Vec<NodeAddress>) {
        let mut shown: Vec<_> = NodeAddress::new(AddressKind::Hostname, &self.name).into_iter().collect();
        let mut withheld = Vec::new();
        for network in &self.networks.v4 {
            let (kind, list) = match network.kind.as_str() {
                "public" => (AddressKind::ExternalIp, &mut shown),
                "private" if settings.include_private_without_vpc || self.is_in_vpc(network) => {
                    (AddressKind::InternalIp, &mut shown)
                }
                "private" => (AddressKind::InternalIp, &mut withheld),
                _ => continue,
            };
            list.extend(NodeAddress::new(kind, &network.ip_address));
        }
        let public = self.networks.v6.iter().filter(|network| network.kind == "public");
        shown.extend(
            public.filter_map(|network| NodeAddress::new(AddressKind::ExternalIp, &network.ip_address).ok()),
        );
        (shown, withheld)
    }

    fn labels(&self) -> BTreeMap<LabelKey, LabelValue> {
        let host = self.host.as_ref().map_or("", |host| host.display_name.as_str());
        let pair = LabelKey::new(HOST_LABEL).ok().zip(label(host));
        pair.into_iter().collect()
    }
}

/// Whether an address is of the network that the provider uses for itself.
fn is_providers(network: &Network) -> bool {
    matches!(parse_ip(&network.ip_address), Some(std::net::IpAddr::V4(ip)) if ip.octets().starts_with(&[172, 21]))
}

/// A text as a label value: what Kubernetes does not take becomes a dash. `None` if nothing is left.
fn label(text: &str) -> Option<LabelValue> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text: String = text.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let edge = |c: char| !c.is_ascii_alphanumeric();
    let text = text.trim_start_matches(edge);
    // Only ASCII is left, so any place is a boundary.
    let text = text.get(..LABEL_LIMIT).unwrap_or(text).trim_end_matches(edge);
    LabelValue::new(text).ok().filter(|_| !text.is_empty())
}

fn positive(id: i64) -> Result<i64> {
    if id > 0 {
        Ok(id)
    } else {
        Err(Error::permanent(format!("a server has the id {id}, which is not a positive number")))
    }
}

/// A server that exists, as an instance; `None` for one that counts as gone. Of one that cannot be read, only its
/// existence is known.
pub fn instance(server: Item<Server, Named>, settings: NodeSettings) -> Result<Option<Instance>> {
    match server {
        Item::Whole(server) if settings.cancelled_is_gone && server.is_cancelled() => Ok(None),
        Item::Whole(server) => server.instance(settings).map(Some),
        Item::Flawed(Flawed { identity: Named { id, name }, why }) => {
            let name = name.unwrap_or_default().to_ascii_lowercase();
            Ok(Some(Instance::flawed(provider_id(positive(id)?)?, &name, &why)))
        }
    }
}

/// The instances, and why one may be missing: a server without a usable id, or one whose name cannot be read.
pub(crate) fn instances(
    servers: Vec<Item<Server, Named>>,
    settings: NodeSettings,
) -> (Vec<Instance>, Option<String>) {
    let mut instances = Vec::with_capacity(servers.len());
    let mut flaw = None;
    for server in servers {
        match instance(server, settings).context("a server cannot be told apart") {
            Ok(Some(instance)) => {
                if let Some(why) = instance.flaw.as_deref().filter(|_| instance.name.is_empty()) {
                    flaw.get_or_insert_with(|| {
                        format!("the name of server {} is not known: {why}", instance.id)
                    });
                }
                instances.push(instance);
            }
            Ok(None) => {}
            Err(why) => drop(flaw.get_or_insert_with(|| why.message().to_owned())),
        }
    }
    (instances, flaw)
}

/// What a provider needs to know of an instance of its own.
pub(crate) fn facts(instance: &Instance) -> Option<&Facts> {
    instance.facts.as_ref().and_then(PrivateFacts::get::<Facts>)
}

#[cfg(test)]
mod tests;
