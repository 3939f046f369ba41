//! Servers as instances.

use std::net::IpAddr;

use cloudberth_core::{
    AddressKind, Error, Instance, InstanceState, LabelValue, NodeAddress, Region, Result, Zone,
};
use cloudberth_http::{Flawed, Item};

use crate::{
    ids::{region, server_id},
    wire::{Interface, Named, Server, ServerCloudIp, ServerStatus},
};

/// How addresses are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reporting {
    /// Private addresses of interfaces are internal, and Cloud IPs show their IPv6 address too. Off, everything is external,
    /// as in the replaced program.
    pub internal: bool,
}

impl ServerStatus {
    /// What it says about an instance; `None` where there is none any more.
    fn state(&self) -> Option<InstanceState> {
        match self {
            Self::Creating => Some(InstanceState::Pending),
            Self::Active => Some(InstanceState::Running),
            Self::Inactive | Self::Unavailable => Some(InstanceState::Stopped),
            Self::Deleting | Self::Other(_) => Some(InstanceState::Other),
            Self::Deleted | Self::Failed => None,
        }
    }
}

/// A server as an instance; `None` for one that is gone. Of one that cannot be described only its existence is known: a
/// mistake in one field must not look like a server without addresses.
pub fn instance(server: Item<Server, Named>, reporting: Reporting) -> Result<Option<Instance>> {
    let server = match server {
        Item::Whole(server) => server,
        Item::Flawed(Flawed { identity, why }) => return flawed(&identity, &why).map(Some),
    };
    let Some(state) = server.status.state() else { return Ok(None) };
    let id = server_id(&server.id).ok_or_else(|| unreadable(&server.id))?;
    let described = describe(&server, reporting);
    let (instance_type, zone, region, addresses) = match described {
        Ok(described) => described,
        Err(why) => return Ok(Some(Instance::flawed(id, &server.id, &why))),
    };
    let mut instance = Instance::new(id, &server.id);
    instance.state = state;
    instance.instance_type = Some(instance_type);
    instance.zone = Some(zone);
    instance.region = Some(region);
    instance.addresses = addresses;
    Ok(Some(instance))
}

fn unreadable(id: &str) -> Error {
    Error::permanent(format!("{id:?} is not the id of a server"))
}

fn flawed(identity: &Named, why: &str) -> Result<Instance> {
    let id = server_id(&identity.id).ok_or_else(|| unreadable(&identity.id))?;
    Ok(Instance::flawed(id, &identity.id, why))
}

type Description = (LabelValue, Zone, Region, Vec<NodeAddress>);

fn describe(server: &Server, reporting: Reporting) -> Result<Description, String> {
    if let ServerStatus::Other(word) = &server.status {
        return Err(format!("the status {word:?} of server {} is not known", server.id));
    }
    let zone = &server.zone.handle;
    let region = region(zone).ok_or_else(|| format!("the zone {zone:?} names no region"))?;
    let said = |why: Error| why.message().to_owned();
    let addresses = addresses(server, reporting)?;
    Ok((
        LabelValue::new(&server.server_type.handle).map_err(said)?,
        Zone::new(zone).map_err(said)?,
        Region::new(region).map_err(said)?,
        addresses,
    ))
}

/// Host name, public name, interfaces, Cloud IPs: the order in which nodes have always shown them.
fn addresses(server: &Server, reporting: Reporting) -> Result<Vec<NodeAddress>, String> {
    let mut found = Vec::new();
    let mut name = |kind, text: Option<&String>| {
        found.extend(text.and_then(|text| NodeAddress::new(kind, text).ok()));
    };
    name(AddressKind::Hostname, server.hostname.as_ref());
    name(AddressKind::ExternalDns, server.fqdn.as_ref());
    for Interface { ipv4_address, ipv6_address } in &server.interfaces {
        for (family, text) in [("IPv4", ipv4_address), ("IPv6", ipv6_address)] {
            let owner = format!("{family} address of server {}", server.id);
            found.extend(address(text.as_deref(), &owner, reporting)?);
        }
    }
    for ServerCloudIp { id, public_ip, public_ipv6, fqdn } in &server.cloud_ips {
        let owner = format!("address of Cloud IP {id}");
        found.extend(address(public_ip.as_deref(), &owner, Reporting::default())?);
        if reporting.internal {
            found.extend(address(public_ipv6.as_deref(), &owner, Reporting::default())?);
        }
        found.extend(fqdn.as_ref().and_then(|text| NodeAddress::new(AddressKind::ExternalDns, text).ok()));
    }
    Ok(found)
}

/// An address in canonical form; one that is not there is left out.
fn address(text: Option<&str>, owner: &str, reporting: Reporting) -> Result<Option<NodeAddress>, String> {
    let Some(text) = text else { return Ok(None) };
    let ip = text.parse::<IpAddr>().map_err(|_| format!("the {owner} is not an address: {text:?}"))?;
    let ip = ip.to_canonical();
    let private = match ip {
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => v6.is_unique_local(),
    };
    let kind = if reporting.internal && private { AddressKind::InternalIp } else { AddressKind::ExternalIp };
    NodeAddress::new(kind, &ip.to_string()).map(Some).map_err(|why| why.message().to_owned())
}

/// A listed server.
pub(crate) type Listed = Item<Server, Named>;

/// The instances of a listing, and why one may be missing: a server without a readable id.
pub(crate) fn instances(servers: Vec<Listed>, reporting: Reporting) -> (Vec<Instance>, Option<String>) {
    let mut instances = Vec::with_capacity(servers.len());
    let mut flaw = None;
    for server in servers {
        match instance(server, reporting) {
            Ok(found) => instances.extend(found),
            Err(why) => drop(flaw.get_or_insert_with(|| why.message().to_owned())),
        }
    }
    (instances, flaw)
}
