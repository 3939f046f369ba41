//! What is refused: changes of immutable settings, and what another Service claims too.

use std::net::IpAddr;

use cloudberth_core::{
    annotation::Value,
    lb::{Desired, INTENT_ANNOTATION, LockKey, LockKind, Notice, Refusal, Rival},
    net::parse_ip,
    reason::ADDRESS_TAKEN,
    view::IpFamilyPolicy,
};

use crate::{
    annotations::{CREATED, FLAVOR, FLOATING_IPS, Floating, NAME, TABLE, UUID, VIP_ADDRESSES, Vip, ZONE},
    find::default_name,
    observed::ObservedBalancer,
    reasons::{CLAIMED_BY_ANOTHER_SERVICE, IMMUTABLE_FIELD},
    spec::Spec,
    wire::VipAddress,
};

/// Whether we created the load balancer for this Service.
///
/// True if our record says so or this turn created it; and where the answer was lost, if an intent is still recorded and
/// the name carries the UID.
pub(super) fn created_here(want: &Desired, existing: &ObservedBalancer) -> bool {
    let annotations = &want.service.annotations;
    let parsed = TABLE.parse(annotations);
    let marked = parsed.get(&CREATED).set().as_ref() == Some(&existing.balancer.uuid);
    let recovered = annotations.contains_key(INTENT_ANNOTATION)
        && parsed.get(&UUID) == Value::Unset
        && existing.balancer.name == default_name(&want.service);
    existing.new || marked || recovered
}

/// Refuses what cannot be changed on an existing load balancer. Everything else is carried out.
pub(super) fn immutable(spec: &mut Spec<'_>, want: &Desired, existing: &ObservedBalancer) {
    let balancer = &existing.balancer;
    let id = &balancer.uuid;
    let flavor = balancer.flavor.as_ref().map(|flavor| flavor.slug.as_str());
    if let Some(flavor) =
        flavor.filter(|flavor| spec.flavor.as_deref().is_some_and(|wanted| wanted != *flavor))
    {
        let text =
            format!("the flavor of load balancer {id} is {flavor} and stays; set it back, or ask support");
        spec.refused.push(Refusal::new(IMMUTABLE_FIELD, FLAVOR.name(), text));
    }
    let zone = balancer.zone.as_ref().map(|zone| zone.slug.as_str());
    if let Some(zone) = zone.filter(|zone| spec.zone.as_deref().is_some_and(|wanted| wanted != *zone)) {
        let text =
            format!("load balancer {id} is in {zone} and stays; set it back, or create the Service anew");
        spec.refused.push(Refusal::new(IMMUTABLE_FIELD, ZONE.name(), text));
    }
    if !spec.vips.is_empty() && !same_vips(&spec.vips, &balancer.vip_addresses) {
        let text =
            format!("the addresses of load balancer {id} stay; set them back, or create the Service anew");
        spec.refused.push(Refusal::new(IMMUTABLE_FIELD, VIP_ADDRESSES.name(), text));
    }
    let v6 = |vip: &VipAddress| parse_ip(&vip.address).map(|ip| ip.is_ipv6());
    let families: std::collections::BTreeSet<bool> = balancer.vip_addresses.iter().filter_map(v6).collect();
    if want.service.ip_family_policy == Some(IpFamilyPolicy::RequireDualStack) && families.len() == 1 {
        let text = format!("spec.ipFamilyPolicy: load balancer {id} has addresses of one family only");
        spec.notices.push(Notice::warning(IMMUTABLE_FIELD, text));
    }
}

/// Compares in order; an address or subnet that is not given matches any.
fn same_vips(wanted: &[Vip], observed: &[VipAddress]) -> bool {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let same = |(wanted, observed): (&Vip, &VipAddress)| {
        let address = text(&wanted.address).is_none_or(|address| {
            address == observed.address
                || parse_ip(&address).is_some_and(|ip| parse_ip(&observed.address) == Some(ip))
        });
        let subnet = text(&wanted.subnet).is_none_or(|subnet| {
            observed.subnet.as_ref().is_some_and(|stub| stub.uuid.eq_ignore_ascii_case(&subnet))
        });
        address && subnet
    };
    wanted.len() == observed.len() && wanted.iter().zip(observed).all(same)
}

/// Why this Service must not change the load balancer, if another one claims it too.
///
/// It belongs to this Service if its name carries the UID, if we created it, if no other Service records its id, or if
/// only this Service publishes its address. Otherwise neither changes it.
pub(super) fn contested(want: &Desired, existing: Option<&ObservedBalancer>) -> Option<Refusal> {
    let rivals = |kind| want.rivals.iter().find(move |rival| rival.key.kind == kind);
    let rival: &Rival = rivals(LockKind::Id).or_else(|| rivals(LockKind::Name))?;
    if let Some(existing) = existing {
        let balancer = &existing.balancer;
        let recorded = TABLE.parse(&want.service.annotations).get(&UUID).set();
        let shared = |ip: IpAddr| {
            let key = LockKey::new(LockKind::Published, ip.to_string());
            want.rivals.iter().any(|rival| rival.key == key)
        };
        let shown = want.service.ingress.iter().filter_map(|entry| parse_ip(entry.ip.as_deref()?));
        let own = |ip: IpAddr| balancer.vip_addresses.iter().any(|vip| parse_ip(&vip.address) == Some(ip));
        let mine = existing.new
            || balancer.name == default_name(&want.service)
            || (recorded.as_ref() == Some(&balancer.uuid) && rivals(LockKind::Id).is_none())
            || shown.into_iter().any(|ip| own(ip) && !shared(ip));
        if mine {
            return None;
        }
    }
    let field = if rival.key.kind == LockKind::Id { UUID.name() } else { NAME.name() };
    let text =
        format!("{} is claimed by Service {} too; change or remove it", rival.key.value, rival.service);
    Some(Refusal::new(CLAIMED_BY_ANOTHER_SERVICE, field, text))
}

/// The floating IPs that still have to be assigned. One that another Service claims too stays where it is assigned; if
/// it is free, it goes to the Service that comes first by namespace and name.
pub(super) fn floating(spec: &mut Spec<'_>, want: &Desired, existing: &ObservedBalancer) -> Vec<Floating> {
    let mut missing = Vec::new();
    for ip in spec.floating_ips.clone() {
        let same =
            |network: &str| Floating::parse(network).is_some_and(|observed| observed.network == ip.network);
        let observed = existing.floating_ips.iter().find(|observed| same(&observed.network));
        let target = observed.and_then(|observed| observed.load_balancer.as_ref());
        if target.is_some_and(|stub| stub.uuid == existing.balancer.uuid) || missing.contains(&ip) {
            continue;
        }
        let claimed =
            |rival: &&Rival| rival.key.kind == LockKind::Address && rival.key.value == ip.network.to_string();
        let rival = want.rivals.iter().filter(claimed).min_by(|a, b| a.service.cmp(&b.service));
        let free = target.is_none() && observed.is_none_or(|observed| observed.server.is_none());
        match rival {
            Some(rival) if !(free && want.service.key() < rival.service) => {
                let text = format!("{} is assigned to another service: {}", ip.network, rival.service);
                spec.refused.push(Refusal::new(ADDRESS_TAKEN, FLOATING_IPS.name(), text));
            }
            _ => missing.push(ip),
        }
    }
    missing
}
