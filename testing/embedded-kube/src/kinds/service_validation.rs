//! Validation of Services: valid fields, and valid changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::names::{dns_label, dns_subdomain, port_name, qualified_name};
use super::super::value::{at, entries, int, list, text, texts};
use super::service::{externally_accessible, is_headless, kind, needs_health_port};
use super::service_addresses::{check_cidr, check_external, check_ip, family};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const ONLY_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) fn validate(service: &Value, old: Option<&Value>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if list(service, "spec.ports").is_empty() && !is_headless(service) && kind(service) != "ExternalName" {
        errors.required("spec.ports", "");
    }
    by_type(service, &mut errors);
    ports(service, &mut errors);
    meta::labels(service, "spec.selector", &mut errors);
    affinity(service, &mut errors);
    errors.append(cluster_ip_fields(service, old));
    let known = old.map(|old| texts(old, "spec.externalIPs")).unwrap_or_default();
    for (index, ip) in texts(service, "spec.externalIPs").iter().enumerate() {
        let path = format!("spec.externalIPs[{index}]");
        if check_ip(&path, ip, &known, &mut errors) {
            check_external(&path, ip, &mut errors);
        }
    }
    match kind(service) {
        "" => errors.required("spec.type", ""),
        known if TYPES.contains(&known) => {}
        other => errors.not_supported("spec.type", other, &TYPES),
    }
    repeated_ports(service, &mut errors);
    source_ranges(service, old, &mut errors);
    let balancer = kind(service) == "LoadBalancer";
    if at(service, "spec.allocateLoadBalancerNodePorts").is_some() && !balancer {
        errors.forbidden("spec.allocateLoadBalancerNodePorts", ONLY_BALANCER);
    }
    class(None, service, &mut errors);
    traffic(service, &mut errors);
    errors
}

fn by_type(service: &Value, errors: &mut FieldErrors) {
    let kind = kind(service);
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(service) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.invalid("spec.clusterIPs[0]", "None", &detail);
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if at(service, &format!("spec.{field}")).is_some() {
                    errors.forbidden(&format!("spec.{field}"), "may not be set for ExternalName services");
                }
            }
            let name = text(service, "spec.externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.required("spec.externalName", ""),
                name => errors.invalid_each("spec.externalName", name, dns_subdomain(name)),
            }
        }
        _ => {}
    }
}

fn ports(service: &Value, errors: &mut FieldErrors) {
    let all = list(service, "spec.ports");
    let mut names = BTreeSet::new();
    for (index, port) in all.iter().enumerate() {
        let path = |field: &str| format!("spec.ports[{index}].{field}");
        match text(port, "name") {
            "" if all.len() > 1 => errors.required(&path("name"), ""),
            "" => {}
            name => {
                errors.invalid_each(&path("name"), name, dns_label(name));
                if !names.insert(name) {
                    errors.duplicate(&path("name"), name);
                }
            }
        }
        let number = int(port, "port");
        if !(1..=65_535).contains(&number) {
            errors.invalid(&path("port"), number, PORT_RANGE);
        }
        match text(port, "protocol") {
            "" => errors.required(&path("protocol"), ""),
            "TCP" | "UDP" | "SCTP" => {}
            other => errors.not_supported(&path("protocol"), other, &["SCTP", "TCP", "UDP"]),
        }
        let target = int(port, "targetPort");
        if let Some(Value::String(name)) = at(port, "targetPort") {
            errors.invalid_each(&path("targetPort"), name, port_name(name));
        } else if !(1..=65_535).contains(&target) {
            errors.invalid(&path("targetPort"), target, PORT_RANGE);
        }
        let protocol = text(port, "appProtocol");
        if at(port, "appProtocol").is_some() {
            errors.invalid_each(&path("appProtocol"), protocol, qualified_name(protocol));
        }
    }
}

fn affinity(service: &Value, errors: &mut FieldErrors) {
    match text(service, "spec.sessionAffinity") {
        "" => errors.required("spec.sessionAffinity", ""),
        "None" => {
            if at(service, "spec.sessionAffinityConfig").is_some() {
                let detail = "must not be set when session affinity is None";
                errors.forbidden("spec.sessionAffinityConfig", detail);
            }
        }
        "ClientIP" => {
            let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
            let seconds = int(service, path);
            if seconds <= 0 || seconds > 86_400 {
                errors.invalid(path, seconds, "must be greater than 0 and less than 86400");
            }
        }
        other => errors.not_supported("spec.sessionAffinity", other, &["ClientIP", "None"]),
    }
}

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` must fit each other.
pub(super) fn cluster_ip_fields(service: &Value, old: Option<&Value>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if kind(service) == "ExternalName" {
        return errors;
    }
    let (single, all) = (text(service, "spec.clusterIP"), texts(service, "spec.clusterIPs"));
    match (single, all.first()) {
        ("", Some(_)) => {
            errors.invalid("spec.clusterIPs", json!(all), "must be empty when `clusterIP` is not specified");
        }
        ("", None) => {}
        (_, None) => errors.required("spec.clusterIPs", ""),
        (single, Some(first)) if single != first => {
            errors.invalid("spec.clusterIPs", json!(all), "first value must match `clusterIP`");
        }
        _ => {}
    }
    let families = texts(service, "spec.ipFamilies");
    for (index, name) in families.iter().enumerate() {
        let path = format!("spec.ipFamilies[{index}]");
        if !matches!(name.as_str(), "IPv4" | "IPv6") {
            errors.not_supported(&path, name.as_str(), &["IPv4", "IPv6"]);
        }
        if families.iter().take(index).any(|other| other == name) {
            errors.duplicate(&path, name.as_str());
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    let policy = text(service, "spec.ipFamilyPolicy");
    if at(service, "spec.ipFamilyPolicy").is_some() && !policies.contains(&policy) {
        errors.not_supported("spec.ipFamilyPolicy", policy, &policies);
    }
    let known = old.map(|old| texts(old, "spec.clusterIPs")).unwrap_or_default();
    let mut sound = true;
    for (index, ip) in all.iter().enumerate() {
        if index == 0 && ip == "None" {
            if all.len() > 1 {
                sound = false;
                errors.invalid("spec.clusterIPs", json!(all), "'None' must be the first and only value");
            }
            continue;
        }
        sound &= check_ip(&format!("spec.clusterIPs[{index}]"), ip, &known, &mut errors);
    }
    if all.len() > 2 {
        errors.invalid("spec.clusterIPs", json!(all), "may only hold up to 2 values");
    }
    if !sound {
        return errors;
    }
    if all.len() > 1 && !matches!(all.as_slice(), [a, b] if family(a) != family(b)) {
        let detail = "may specify no more than one IP for each IP family";
        errors.invalid("spec.clusterIPs", json!(all), detail);
    }
    if !is_headless(service) {
        for (index, (ip, name)) in all.iter().zip(&families).enumerate() {
            if family(ip) != name && matches!(name.as_str(), "IPv4" | "IPv6") {
                let detail = format!("expected an {name} value as indicated by `ipFamilies[{index}]`");
                errors.invalid(&format!("spec.clusterIPs[{index}]"), ip.as_str(), &detail);
            }
        }
    }
    errors
}

fn repeated_ports(service: &Value, errors: &mut FieldErrors) {
    let all = list(service, "spec.ports");
    if kind(service) == "ClusterIP" {
        for (index, _) in all.iter().enumerate().filter(|(_, port)| int(port, "nodePort") != 0) {
            let path = format!("spec.ports[{index}].nodePort");
            errors.forbidden(&path, "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut node_ports = BTreeSet::new();
    for (index, port) in all.iter().enumerate().filter(|(_, port)| int(port, "nodePort") != 0) {
        if !node_ports.insert((text(port, "protocol"), int(port, "nodePort"))) {
            errors.duplicate(&format!("spec.ports[{index}].nodePort"), int(port, "nodePort"));
        }
    }
    let mut numbers = BTreeSet::new();
    for (index, port) in all.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), int(port, "port"));
        if !numbers.insert((protocol, number)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\
                 \"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.duplicate_shown(&format!("spec.ports[{index}]"), shown, "");
        }
    }
}

fn source_ranges(service: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    const KEY: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let balancer = kind(service) == "LoadBalancer";
    let ranges = texts(service, "spec.loadBalancerSourceRanges");
    if !ranges.is_empty() {
        if !balancer {
            errors.forbidden("spec.LoadBalancerSourceRanges", ONLY_BALANCER);
        }
        let trim = |list: Vec<String>| list.iter().map(|range| range.trim().to_owned()).collect::<Vec<_>>();
        let known = old.map(|old| trim(texts(old, "spec.loadBalancerSourceRanges"))).unwrap_or_default();
        for (index, range) in trim(ranges).iter().enumerate() {
            check_cidr(&format!("spec.LoadBalancerSourceRanges[{index}]"), range, &known, errors);
        }
        return;
    }
    let annotation = |service: &Value| {
        entries(service, "metadata.annotations").find(|(key, _)| *key == KEY).map(|(_, value)| value.clone())
    };
    if let Some(value) = annotation(service) {
        let path = format!("metadata.annotations[{KEY}]");
        if !balancer {
            errors.forbidden(&path, ONLY_BALANCER);
        }
        if old.and_then(annotation).as_ref() != Some(&value) {
            let text = value.as_str().unwrap_or_default().trim().to_owned();
            for range in text.split(',').filter(|_| !text.is_empty()) {
                check_cidr(&path, range.trim(), &[], errors);
            }
        }
    }
}

fn class(old: Option<&Value>, service: &Value, errors: &mut FieldErrors) {
    const PATH: &str = "spec.loadBalancerClass";
    let class = at(service, PATH);
    if let Some(old) = old {
        let both = kind(old) == "LoadBalancer" && kind(service) == "LoadBalancer";
        if both && at(old, PATH) != class {
            errors.invalid(PATH, class.cloned().unwrap_or(Value::Null), "may not change once set");
        }
    }
    match (kind(service), class.and_then(Value::as_str)) {
        ("LoadBalancer", Some(name)) => errors.invalid_each(PATH, name, qualified_name(name)),
        (_, Some(_)) => errors.forbidden(PATH, ONLY_BALANCER),
        _ => {}
    }
}

fn traffic(service: &Value, errors: &mut FieldErrors) {
    let external = text(service, "spec.externalTrafficPolicy");
    if externally_accessible(service) {
        match external {
            "" => errors.required("spec.externalTrafficPolicy", ""),
            "Cluster" | "Local" => {}
            other => errors.not_supported("spec.externalTrafficPolicy", other, &["Cluster", "Local"]),
        }
    } else if !external.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.invalid("spec.externalTrafficPolicy", external, detail);
    }
    let health = int(service, "spec.healthCheckNodePort");
    match (needs_health_port(service), health) {
        (false, 0) => {}
        (false, port) => {
            let detail =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid("spec.healthCheckNodePort", port, detail);
        }
        (true, 0) => errors.required("spec.healthCheckNodePort", ""),
        (true, port) if !(1..=65_535).contains(&port) => {
            errors.invalid("spec.healthCheckNodePort", port, PORT_RANGE);
        }
        (true, _) => {}
    }
    match (text(service, "spec.internalTrafficPolicy"), kind(service)) {
        ("" | "Cluster" | "Local", _) => {}
        (other, _) => errors.not_supported("spec.internalTrafficPolicy", other, &["Cluster", "Local"]),
    }
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let distribution = text(service, "spec.trafficDistribution");
    if at(service, "spec.trafficDistribution").is_some() && !known.contains(&distribution) {
        errors.not_supported("spec.trafficDistribution", distribution, &known);
    }
}

pub(super) fn validate_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if kind(new) != "ExternalName" && kind(old) != "ExternalName" {
        changed_addresses(new, old, &mut errors);
        changed_families(new, old, &mut errors);
    }
    class(Some(old), new, &mut errors);
    if needs_health_port(old)
        && needs_health_port(new)
        && int(old, "spec.healthCheckNodePort") != int(new, "spec.healthCheckNodePort")
    {
        errors.forbidden("spec.healthCheckNodePort", "field is immutable");
    }
    errors.append(validate(new, Some(old)));
    errors
}

fn changed_addresses(new: &Value, old: &Value, errors: &mut FieldErrors) {
    if is_headless(old) && is_headless(new) {
        return;
    }
    let (before, after) = (texts(old, "spec.clusterIPs"), texts(new, "spec.clusterIPs"));
    changed(&before, &after, "clusterIPs", "clusterIP", "primary clusterIP can not be unset", new, errors);
}

fn changed_families(new: &Value, old: &Value, errors: &mut FieldErrors) {
    if is_headless(old) || is_headless(new) {
        return;
    }
    let (before, after) = (texts(old, "spec.ipFamilies"), texts(new, "spec.ipFamilies"));
    changed(&before, &after, "ipFamilies", "ipFamily", "primary ipFamily can not be unset", new, errors);
}

/// The first of a list never changes; the second may come and, with the right policy, go.
fn changed(
    before: &[String],
    after: &[String],
    field: &str,
    singular: &str,
    unset: &str,
    new: &Value,
    errors: &mut FieldErrors,
) {
    let path = |index: usize| format!("spec.{field}[{index}]");
    if before.len() == after.len() {
        for (index, _) in before.iter().zip(after).enumerate().filter(|(_, (a, b))| a != b) {
            let index = if field == "clusterIPs" { index } else { 0 };
            errors.invalid(&path(index), json!(after), "may not change once set");
        }
        return;
    }
    if after.is_empty() {
        errors.invalid(&path(0), json!(after), unset);
    }
    let changed = before.first().zip(after.first()).is_some_and(|(before, after)| before != after);
    if changed {
        errors.invalid(&path(0), json!(after), "may not change once set");
    }
    let policy = at(new, "spec.ipFamilyPolicy");
    if before.len() > after.len() && after.len() == 1 && policy != Some(&json!("SingleStack")) {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {singular}");
        errors.invalid("spec.ipFamilyPolicy", policy.cloned().unwrap_or(Value::Null), &detail);
    }
}

pub(super) fn validate_status(new: &Value, old: &Value) -> FieldErrors {
    const PATH: &str = "status.loadBalancer.ingress";
    let mut errors = FieldErrors::default();
    let ingress = list(new, PATH);
    if kind(new) != "LoadBalancer" {
        if !ingress.is_empty() {
            errors.forbidden(PATH, "may only be used when `spec.type` is 'LoadBalancer'");
        }
        return errors;
    }
    let known: Vec<String> = list(old, PATH).iter().map(|entry| text(entry, "ip").to_owned()).collect();
    for (index, entry) in ingress.iter().enumerate() {
        let path = |field: &str| format!("{PATH}[{index}].{field}");
        let (ip, host) = (text(entry, "ip"), text(entry, "hostname"));
        if !ip.is_empty() {
            check_ip(&path("ip"), ip, &known, &mut errors);
        }
        match (at(entry, "ipMode").and_then(Value::as_str), ip) {
            (None, "") => {}
            (None, _) => errors.required(&path("ipMode"), "must be specified when `ip` is set"),
            (Some(_), "") => errors.forbidden(&path("ipMode"), "may not be specified when `ip` is not set"),
            (Some("VIP" | "Proxy"), _) => {}
            (Some(other), _) => errors.not_supported(&path("ipMode"), other, &["Proxy", "VIP"]),
        }
        if !host.is_empty() {
            errors.invalid_each(&path("hostname"), host, dns_subdomain(host));
            if host.parse::<std::net::IpAddr>().is_ok() {
                errors.invalid(&path("hostname"), host, "must be a DNS name, not an IP address");
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests;
