//! Cluster addresses and node ports: chosen from ranges, never given twice.
//!
//! What is taken is read from the stored Services each time, so nothing can leak and nothing needs undoing.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::{Value, json};

use super::super::field::FieldErrors;
use super::super::status::{Answer, Failure};
use super::super::value::{self, at, at_mut, entries, int, list, put, set, text, texts};
use super::Setting;
use super::service::{is_headless, kind, needs_health_port, needs_node_port, node_ports};
use super::service_addresses::{family, other_family};
use super::service_validation::cluster_ip_fields;

/// Where addresses and ports come from.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    /// One range for each family; the first is the default family.
    pub(crate) cluster: Vec<IpNet>,
    pub(crate) ports: std::ops::RangeInclusive<i64>,
}

impl Ranges {
    fn of(&self, wanted: &str) -> Option<&IpNet> {
        self.cluster.iter().find(|range| family(&range.addr().to_string()) == wanted)
    }

    fn default_family(&self) -> &'static str {
        self.cluster.first().map_or("IPv4", |range| family(&range.addr().to_string()))
    }
}

fn invalid(service: &Value, errors: &FieldErrors) -> Failure {
    Failure::invalid("", "Service", value::name(service), errors)
}

/// Allocates addresses and ports for a new Service.
pub(super) fn create(service: &mut Value, setting: &mut Setting<'_>) -> Answer<()> {
    families(service, None, setting.ranges)?;
    if kind(service) != "ExternalName" && !is_headless(service) {
        fill_addresses(service, setting)?;
    }
    if needs_node_port(service) {
        fill_ports(service, None, setting)?;
    }
    if needs_health_port(service) {
        fill_health_port(service, setting)?;
    }
    Ok(())
}

/// Allocates the addresses and ports that a change of a Service needs.
pub(super) fn update(new: &mut Value, old: &Value, setting: &mut Setting<'_>) -> Answer<()> {
    families(new, Some(old), setting.ranges)?;
    let was_external = kind(old) == "ExternalName";
    let grown = list(old, "spec.ipFamilies").len() == 1 && list(new, "spec.ipFamilies").len() == 2;
    if kind(new) != "ExternalName" && !is_headless(new) && (was_external || (grown && !is_headless(old))) {
        fill_addresses(new, setting)?;
    }
    if needs_node_port(new) {
        fill_ports(new, Some(old), setting)?;
    }
    if needs_health_port(new) && !needs_health_port(old) {
        fill_health_port(new, setting)?;
    }
    Ok(())
}

/// Decides on `ipFamilyPolicy` and `ipFamilies` from what was given and what the cluster has.
fn families(service: &mut Value, old: Option<&Value>, ranges: &Ranges) -> Answer<()> {
    if kind(service) == "ExternalName" || old.is_some_and(|old| untouched_dual(service, old)) {
        return Ok(());
    }
    let headless = text(service, "spec.clusterIP") == "None";
    let selectorless = entries(service, "spec.selector").next().is_none();
    if text(service, "spec.ipFamilyPolicy").is_empty() {
        let policy = match old.map(|old| text(old, "spec.ipFamilyPolicy")) {
            Some(before) if !before.is_empty() => before,
            _ if headless && selectorless => "RequireDualStack",
            _ => "SingleStack",
        };
        set(service, "spec.ipFamilyPolicy", policy);
    }
    let errors = cluster_ip_fields(service, old);
    if !errors.is_empty() {
        return Err(invalid(service, &errors));
    }
    let mut errors = FieldErrors::default();
    if let Some(old) = old {
        shrink(service, old, &mut errors);
    }
    let policy = text(service, "spec.ipFamilyPolicy").to_owned();
    let single = policy == "SingleStack";
    if single {
        let wanted = "must be 'RequireDualStack' or 'PreferDualStack' when multiple";
        if list(service, "spec.clusterIPs").len() == 2 {
            errors.invalid(
                "spec.ipFamilyPolicy",
                policy.as_str(),
                &format!("{wanted} cluster IPs are specified"),
            );
        }
        if list(service, "spec.ipFamilies").len() == 2 {
            errors.invalid(
                "spec.ipFamilyPolicy",
                policy.as_str(),
                &format!("{wanted} IP families are specified"),
            );
        }
    }
    let mut families = texts(service, "spec.ipFamilies");
    let addresses = texts(service, "spec.clusterIPs");
    for (index, ip) in addresses.iter().enumerate().take_while(|(_, ip)| *ip != "None") {
        if index < families.len() {
            continue;
        }
        if ranges.of(family(ip)).is_some() {
            families.push(family(ip).to_owned());
        } else {
            let detail = format!("{} is not configured on this cluster", family(ip));
            errors.invalid(&format!("spec.clusterIPs[{index}]"), json!(addresses), &detail);
        }
    }
    if !errors.is_empty() {
        return Err(invalid(service, &errors));
    }
    let free = headless && selectorless;
    if !free {
        if policy == "RequireDualStack" && ranges.cluster.len() < 2 {
            let detail = "this cluster is not configured for dual-stack services";
            errors.invalid("spec.ipFamilyPolicy", policy.as_str(), detail);
        }
        for (index, name) in families.iter().enumerate().filter(|(_, name)| ranges.of(name).is_none()) {
            let path = format!("spec.ipFamilies[{index}]");
            errors.invalid(&path, name.as_str(), "not configured on this cluster");
        }
        if !errors.is_empty() {
            return Err(invalid(service, &errors));
        }
    }
    if families.is_empty() {
        families.push(ranges.default_family().to_owned());
    }
    if let ([only], false, true) = (families.as_slice(), single, free || ranges.cluster.len() == 2) {
        let second = other_family(only).to_owned();
        families.push(second);
    }
    set(service, "spec.ipFamilies", json!(families));
    Ok(())
}

/// A service that prefers two families and whose addresses nobody touched stays as it is.
fn untouched_dual(new: &Value, old: &Value) -> bool {
    let prefers = |service: &Value| text(service, "spec.ipFamilyPolicy") == "PreferDualStack";
    let before = text(old, "spec.ipFamilyPolicy");
    kind(new) == kind(old)
        && matches!(kind(new), "ClusterIP" | "NodePort" | "LoadBalancer")
        && prefers(new)
        && (before.is_empty() || prefers(old))
        && texts(new, "spec.clusterIPs") == texts(old, "spec.clusterIPs")
        && texts(new, "spec.ipFamilies") == texts(old, "spec.ipFamilies")
}

/// Going down to one family needs to be said in so many words.
fn shrink(new: &mut Value, old: &Value, errors: &mut FieldErrors) {
    let policy = text(new, "spec.ipFamilyPolicy").to_owned();
    for (path, what) in [("spec.clusterIPs", "cluster IP"), ("spec.ipFamilies", "IP family")] {
        let (before, mut after) = (texts(old, path), texts(new, path));
        if policy == "SingleStack" {
            if before == after && after.len() > 1 {
                after.truncate(1);
                set(new, path, json!(after));
            }
        } else if !after.is_empty() && after.len() < before.len() {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            errors.invalid("spec.ipFamilyPolicy", policy.as_str(), &detail);
        }
    }
}

fn fill_addresses(service: &mut Value, setting: &mut Setting<'_>) -> Answer<()> {
    let mine = format!("{}/{}", value::namespace(service), value::name(service));
    let taken: BTreeSet<String> = setting
        .store
        .all("services")
        .filter(|(key, _)| **key != mine)
        .flat_map(|(_, other)| texts(other, "spec.clusterIPs"))
        .collect();
    let own: Vec<String> =
        setting.store.get("services", &mine).map(|old| texts(old, "spec.clusterIPs")).unwrap_or_default();
    let mut addresses = texts(service, "spec.clusterIPs");
    for (index, name) in texts(service, "spec.ipFamilies").iter().enumerate() {
        let Some(range) = setting.ranges.of(name) else {
            continue;
        };
        match addresses.get(index).filter(|ip| !ip.is_empty()).cloned() {
            Some(ip) if own.contains(&ip) => {}
            Some(ip) => {
                let problem = match ip.parse::<IpAddr>() {
                    Ok(parsed) if !range.contains(&parsed) => {
                        Some("the provided network does not match the current range".to_owned())
                    }
                    _ if taken.contains(&ip) => Some("provided IP is already allocated".to_owned()),
                    _ => None,
                };
                if let Some(problem) = problem {
                    let mut errors = FieldErrors::default();
                    let detail = format!("failed to allocate IP {ip}: {problem}");
                    errors.invalid("spec.clusterIPs", json!(addresses), &detail);
                    return Err(invalid(service, &errors));
                }
            }
            None => {
                let ip = pick(range, &taken, setting.world.rng()).ok_or_else(|| {
                    let name = value::name(service);
                    Failure::internal(&format!(
                        "failed to allocate a serviceIP for Service {name:?}: range is full"
                    ))
                })?;
                match addresses.get_mut(index) {
                    Some(slot) => *slot = ip,
                    None => addresses.push(ip),
                }
            }
        }
    }
    put(service, "spec.clusterIP", addresses.first().map(|ip| json!(ip)));
    set(service, "spec.clusterIPs", json!(addresses));
    Ok(())
}

/// A free address: from a random place on, wrapping around. The first one belongs to the API server.
fn pick(range: &IpNet, taken: &BTreeSet<String>, rng: &mut fastrand::Rng) -> Option<String> {
    const MOST: u32 = 16;
    let bits = u32::from(range.max_prefix_len() - range.prefix_len()).min(MOST);
    let size = 1u128 << bits;
    let nth = |offset: u128| match range.network() {
        IpAddr::V4(base) => IpAddr::V4(Ipv4Addr::from(
            u32::from(base).wrapping_add(u32::try_from(offset).unwrap_or_default()),
        )),
        IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from(u128::from(base).wrapping_add(offset))),
    };
    let last = size.checked_sub(2).filter(|last| *last >= 2)?;
    let start = rng.u128(0..last);
    (0..last).map(|step| nth(2 + (start + step) % last).to_string()).find(|ip| !taken.contains(ip))
}

fn ports_in_use(setting: &Setting<'_>, mine: &str) -> BTreeSet<i64> {
    let others = setting.store.all("services").filter(|(key, _)| *key != mine);
    others
        .flat_map(|(_, service)| {
            let health = int(service, "spec.healthCheckNodePort");
            node_ports(service).into_iter().chain((health != 0).then_some(health))
        })
        .collect()
}

/// How many ports at the low end are allocated last, so that requests for a port by number find it free.
fn kept_for_wishes(size: i64) -> i64 {
    if size <= 16 { 0 } else { (size / 32).clamp(16, 128) }
}

fn next_port(taken: &BTreeSet<i64>, setting: &mut Setting<'_>) -> Answer<i64> {
    let range = setting.ranges.ports.clone();
    let size = range.end() - range.start() + 1;
    let kept = kept_for_wishes(size);
    let upper = (size - kept).max(1);
    let start = setting.world.rng().i64(0..upper);
    (0..upper)
        .map(|step| range.start() + kept + (start + step) % upper)
        .chain((0..kept).map(|step| range.start() + step))
        .find(|port| !taken.contains(port))
        .ok_or_else(|| Failure::internal("failed to allocate a nodePort: range is full"))
}

/// What is wrong with a port that was asked for.
fn refuse_port(port: i64, taken: &BTreeSet<i64>, ranges: &Ranges) -> Option<String> {
    if !ranges.ports.contains(&port) {
        let (first, last) = (ranges.ports.start(), ranges.ports.end());
        return Some(format!(
            "provided port is not in the valid range. The range of valid ports is {first}-{last}"
        ));
    }
    taken.contains(&port).then(|| "provided port is already allocated".to_owned())
}

fn fill_ports(service: &mut Value, old: Option<&Value>, setting: &mut Setting<'_>) -> Answer<()> {
    let before = old.map(node_ports).unwrap_or_default();
    let choose = kind(service) == "NodePort"
        || at(service, "spec.allocateLoadBalancerNodePorts").and_then(Value::as_bool) == Some(true);
    let settled = |asked: i64| before.contains(&asked) || (asked == 0 && !choose);
    if old.is_some() && list(service, "spec.ports").iter().all(|port| settled(int(port, "nodePort"))) {
        // Few changes are about ports; only those need a look at all other Services.
        return Ok(());
    }
    let mine = format!("{}/{}", value::namespace(service), value::name(service));
    let mut taken = ports_in_use(setting, &mine);
    taken.extend(old.map(|old| int(old, "spec.healthCheckNodePort")).filter(|port| *port != 0));
    let mut ports: Vec<Value> = list(service, "spec.ports").to_vec();
    // Ports of one number (TCP and UDP, say) share a node port on creation.
    let mut shared: Vec<(i64, i64)> = Vec::new();
    for index in 0..ports.len() {
        let Some(port) = ports.get(index) else { break };
        let (number, asked) = (int(port, "port"), int(port, "nodePort"));
        if asked == 0 && !choose {
            continue;
        }
        let twin = shared.iter().find(|(other, _)| old.is_none() && *other == number).map(|(_, node)| *node);
        let requested = || {
            let same = ports.iter().filter(|other| old.is_none() && int(other, "port") == number);
            same.map(|other| int(other, "nodePort")).find(|node| *node != 0).unwrap_or(asked)
        };
        let node = match (twin, asked) {
            (Some(node), 0) => node,
            (Some(node), asked) if node == asked => node,
            (Some(_), asked) => claim(service, index, asked, &mut taken, &before, setting.ranges)?,
            (None, _) => match requested() {
                0 => {
                    taken.extend(before.iter());
                    let node = next_port(&taken, setting)?;
                    taken.insert(node);
                    node
                }
                asked => claim(service, index, asked, &mut taken, &before, setting.ranges)?,
            },
        };
        shared.push((number, node));
        if let Some(port) = ports.get_mut(index) {
            set(port, "nodePort", node);
        }
    }
    if let Some(slot) = at_mut(service, "spec.ports") {
        *slot = Value::Array(ports);
    }
    Ok(())
}

fn claim(
    service: &Value,
    index: usize,
    port: i64,
    taken: &mut BTreeSet<i64>,
    before: &[i64],
    ranges: &Ranges,
) -> Answer<i64> {
    if before.contains(&port) {
        return Ok(port);
    }
    if let Some(problem) = refuse_port(port, taken, ranges) {
        let mut errors = FieldErrors::default();
        errors.invalid(&format!("spec.ports[{index}].nodePort"), port, &problem);
        return Err(invalid(service, &errors));
    }
    taken.insert(port);
    Ok(port)
}

fn fill_health_port(service: &mut Value, setting: &mut Setting<'_>) -> Answer<()> {
    let mine = format!("{}/{}", value::namespace(service), value::name(service));
    let mut taken = ports_in_use(setting, &mine);
    taken.extend(node_ports(service));
    let asked = int(service, "spec.healthCheckNodePort");
    if asked != 0 {
        return match refuse_port(asked, &taken, setting.ranges) {
            None => Ok(()),
            Some(problem) => Err(Failure::internal(&format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {problem}"
            ))),
        };
    }
    let port = next_port(&taken, setting)?;
    set(service, "spec.healthCheckNodePort", port);
    Ok(())
}

#[cfg(test)]
mod tests;
