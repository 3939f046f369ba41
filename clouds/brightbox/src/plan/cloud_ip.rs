//! Which Cloud IP is used, and where it leads.

use std::net::IpAddr;

use cloudberth_core::{
    lb::{Desired, LockKind, Refusal},
    net::parse_ip,
    reason::ADDRESS_TAKEN,
};

use crate::{
    annotations::CLOUD_IP,
    observed::Observed,
    spec::{CloudIpRequest, balancer_name},
    wire::{BalancerStatus, CloudIp, CloudIpStatus},
};

/// Which Cloud IP a Service gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice<'a> {
    /// This one.
    Found(&'a CloudIp),
    /// A new one.
    New,
    /// None for now: what is asked for does not exist, or nobody can tell what is asked for.
    None,
}

/// Where a Cloud IP leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To the load balancer that serves.
    Here,
    Nowhere,
    /// To a load balancer of the name that is being deleted.
    Leaving(String),
    /// To a load balancer of the name that the cloud gave up on.
    Failed(String),
    /// To something else, in words.
    Elsewhere(String),
}

/// The field by which a Service asks for a Cloud IP.
pub(super) fn field(request: &CloudIpRequest) -> &'static str {
    match request {
        CloudIpRequest::Address(_) => "spec.loadBalancerIP",
        _ => CLOUD_IP.name(),
    }
}

/// The addresses of a Cloud IP, as far as they can be read.
pub(crate) fn addresses(cloud_ip: &CloudIp) -> Vec<IpAddr> {
    [&cloud_ip.public_ipv4, &cloud_ip.public_ipv6]
        .into_iter()
        .flatten()
        .filter_map(|text| parse_ip(text))
        .collect()
}

/// Whether this is the Cloud IP that a Service names.
pub(crate) fn is_requested(request: &CloudIpRequest, cloud_ip: &CloudIp) -> bool {
    match request {
        CloudIpRequest::Id(id) => cloud_ip.id == *id,
        CloudIpRequest::Address(address) => addresses(cloud_ip).contains(address),
        CloudIpRequest::Own | CloudIpRequest::Unclear => false,
    }
}

/// The Cloud IP to use. One that is given counts; otherwise the first of the name, or the first that leads to a load
/// balancer of the name: so one that was given once stays in use when it is no longer asked for.
pub(crate) fn choose<'a>(request: &CloudIpRequest, name: &str, observed: &'a Observed) -> Choice<'a> {
    let all = observed.cloud_ips.iter();
    let leads_here = |cloud_ip: &CloudIp| {
        let target = cloud_ip.load_balancer.as_ref();
        target.is_some_and(|target| target.name == name || observed.balancer(&target.id).is_some())
    };
    let found = match request {
        CloudIpRequest::Own => {
            return match all.clone().find(|one| one.name == name || leads_here(one)) {
                Some(found) => Choice::Found(found),
                None => Choice::New,
            };
        }
        CloudIpRequest::Unclear => observed.live().and_then(|live| {
            let used = |one: &&CloudIp| live.cloud_ips.iter().any(|stub| stub.id == one.id);
            all.clone().find(used)
        }),
        given => all.clone().find(|one| is_requested(given, one)),
    };
    found.map_or(Choice::None, Choice::Found)
}

/// Where a Cloud IP leads, for the Service whose things have this name.
pub(super) fn target(name: &str, cloud_ip: &CloudIp, observed: &Observed) -> Target {
    let live = observed.live();
    if live.is_some_and(|live| live.cloud_ips.iter().any(|stub| stub.id == cloud_ip.id)) {
        return Target::Here;
    }
    if cloud_ip.status != CloudIpStatus::Mapped {
        return Target::Nowhere;
    }
    let Some(target) = &cloud_ip.load_balancer else {
        let parts = [
            ("server", &cloud_ip.server),
            ("server group", &cloud_ip.server_group),
            ("database server", &cloud_ip.database_server),
        ];
        let named = parts.iter().find_map(|(kind, stub)| Some(format!("{kind} {}", stub.as_ref()?.id)));
        return Target::Elsewhere(named.unwrap_or_else(|| "something else".to_owned()));
    };
    match observed.balancer(&target.id) {
        Some(balancer) if live.is_some_and(|live| live.id == balancer.id) => Target::Here,
        Some(balancer) if balancer.status == BalancerStatus::Deleting => Target::Leaving(target.id.clone()),
        Some(_) => Target::Failed(target.id.clone()),
        // It is deleted and has not let go yet.
        None if target.name == name => Target::Leaving(target.id.clone()),
        None => Target::Elsewhere(format!("load balancer {} ({})", target.id, target.name)),
    }
}

/// Why the Cloud IP that a Service asks for is not used, if it is not. Nobody fights over one: it stays where it leads, and
/// while two Services ask for one that leads nowhere, neither gets it.
pub(super) fn refusal(
    request: &CloudIpRequest,
    want: &Desired,
    observed: &Observed,
    choice: &Choice<'_>,
) -> Option<Refusal> {
    let field = field(request);
    match (request, choice) {
        (CloudIpRequest::Id(id), Choice::None) => {
            Some(Refusal::unsupported(field, format!("there is no Cloud IP {id} in this account")))
        }
        (CloudIpRequest::Address(address), Choice::None) => Some(Refusal::unsupported(
            field,
            format!("no Cloud IP of this account has the address {address}"),
        )),
        (_, Choice::Found(cloud_ip)) => {
            let id = &cloud_ip.id;
            match target(&balancer_name(&want.service, &want.cluster), cloud_ip, observed) {
                Target::Elsewhere(what) => {
                    let text =
                        format!("Cloud IP {id} is mapped to {what}; unmap it there, or use another one");
                    Some(Refusal::new(ADDRESS_TAKEN, field, text))
                }
                Target::Here => None,
                _ => {
                    let rival = want.rivals.iter().find(|rival| rival.key.kind == LockKind::Address)?;
                    let text = format!("Cloud IP {id} is asked for by Service {} too", rival.service);
                    Some(Refusal::new(ADDRESS_TAKEN, field, text))
                }
            }
        }
        _ => None,
    }
}
