//! Rows and columns as `kubectl get` shows them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::{has_condition, selector_text};
use super::resource::{Behaviour, Resource};
use super::time;
use super::value::{at, entries, int, list, name, text, texts};

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

/// The columns of a resource. Those with a plus are shown only when asked for (`-o wide`).
fn titles(resource: &Resource) -> &'static str {
    match resource.behaviour {
        Behaviour::Node => {
            "Name|Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime"
        }
        Behaviour::Service => "Name|Type|Cluster-IP|External-IP|Port(s)|Age|+Selector",
        Behaviour::Pod => "Name|Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates",
        Behaviour::Deployment => "Name|Ready|Up-to-date|Available|Age|+Containers|+Images|+Selector",
        Behaviour::Event => {
            "Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+Count|+Name"
        }
        Behaviour::Namespace => "Name|Status|Age",
        Behaviour::ConfigMap => "Name|Data|Age",
        Behaviour::Secret => "Name|Type|Data|Age",
        Behaviour::Lease => "Name|Holder|Age",
        Behaviour::Endpoints => "Name|Endpoints|Age",
        Behaviour::EndpointSlice => "Name|AddressType|Ports|Endpoints|Age",
        Behaviour::Definition => "Name|Scope|Versions|Created At|+Group|+Kind|+ShortNames|+Established",
        Behaviour::ServiceAccount | Behaviour::Custom | Behaviour::Review => "Name|Age",
    }
}

/// The column definitions of a table.
pub(crate) fn columns(resource: &Resource) -> Value {
    let column = |title: &str| {
        let (title, wide) = title.strip_prefix('+').map_or((title, 0), |title| (title, 1));
        let format = if title == "Name" { "name" } else { "" };
        let description = format!("{title} of the {}", resource.singular);
        let of = match title {
            "Created At" => "date",
            "Age" if resource.custom.is_some() => "date",
            "Established" => "boolean",
            _ => "string",
        };
        json!({"name": title, "type": of, "format": format, "description": description, "priority": wide})
    };
    titles(resource).split('|').map(column).collect()
}

/// One row of a table, without the object that it may carry.
pub(crate) fn row(resource: &Resource, object: &Value, now: Timestamp) -> Value {
    let age = || since(object, "metadata.creationTimestamp", now).unwrap_or_else(|| UNKNOWN.to_owned());
    let cells = match resource.behaviour {
        Behaviour::Node => node(object, &age()),
        Behaviour::Service => service(object, &age()),
        Behaviour::Pod => pod(object, &age()),
        Behaviour::Deployment => deployment(object, &age()),
        Behaviour::Event => event(object, now),
        Behaviour::Namespace => json!([name(object), text(object, "status.phase"), age()]),
        Behaviour::ConfigMap => {
            let count = entries(object, "data").count() + entries(object, "binaryData").count();
            json!([name(object), count, age()])
        }
        Behaviour::Secret => {
            json!([name(object), text(object, "type"), entries(object, "data").count(), age()])
        }
        Behaviour::Lease => json!([name(object), text(object, "spec.holderIdentity"), age()]),
        Behaviour::Endpoints => json!([name(object), endpoints(object), age()]),
        Behaviour::EndpointSlice => {
            json!([
                name(object),
                text(object, "addressType"),
                slice_ports(object),
                slice_addresses(object),
                age()
            ])
        }
        Behaviour::Definition => definition(object),
        Behaviour::ServiceAccount | Behaviour::Custom | Behaviour::Review => json!([name(object), age()]),
    };
    json!({"cells": cells, "object": null})
}

fn since(object: &Value, path: &str, now: Timestamp) -> Option<String> {
    time::parse(text(object, path)).map(|at| time::age(at, now))
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

fn joined(list: &[String], other: &str) -> String {
    if list.is_empty() { other.to_owned() } else { list.join(",") }
}

fn node(node: &Value, age: &str) -> Value {
    let ready = list(node, "status.conditions").iter().find(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if at(node, "spec.unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<String> = entries(node, "metadata.labels")
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => Some(role.to_owned()),
            _ => (key == "kubernetes.io/role").then(|| value.as_str().unwrap_or_default().to_owned()),
        })
        .collect();
    roles.sort();
    roles.dedup();
    let address = |kind: &str| {
        let found = list(node, "status.addresses").iter().find(|address| text(address, "type") == kind);
        found.map_or(NONE, |address| text(address, "address"))
    };
    let info = |field: &str| text(node, &format!("status.nodeInfo.{field}"));
    let kernel = match (or(info("kernelVersion"), UNKNOWN), info("architecture")) {
        (kernel, "") => kernel.to_owned(),
        (kernel, architecture) => format!("{kernel} ({architecture})"),
    };
    json!([
        name(node),
        status,
        joined(&roles, NONE),
        age,
        info("kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        or(info("osImage"), UNKNOWN),
        kernel,
        or(info("containerRuntimeVersion"), UNKNOWN),
    ])
}

fn deployment(deployment: &Value, age: &str) -> Value {
    let count = |name: &str| int(deployment, &format!("status.{name}"));
    let ready = format!("{}/{}", count("readyReplicas"), int(deployment, "spec.replicas"));
    let containers = list(deployment, "spec.template.spec.containers");
    let each = |part: &str| containers.iter().map(|c| text(c, part)).collect::<Vec<_>>().join(",");
    let selector = at(deployment, "spec.selector").map(selector_text).unwrap_or_default();
    json!([
        name(deployment),
        ready,
        count("updatedReplicas"),
        count("availableReplicas"),
        age,
        each("name"),
        each("image"),
        selector
    ])
}

fn definition(definition: &Value) -> Value {
    let version = |version: &Value| {
        let mark = if at(version, "storage") == Some(&json!(true)) { "(storage)" } else { "" };
        format!("{}{mark}", text(version, "name"))
    };
    let served = |version: &&Value| at(version, "served") == Some(&json!(true));
    let mut versions: Vec<String> =
        list(definition, "spec.versions").iter().filter(served).map(version).collect();
    versions.sort();
    json!([
        name(definition),
        text(definition, "spec.scope"),
        versions.join(","),
        text(definition, "metadata.creationTimestamp"),
        text(definition, "spec.group"),
        text(definition, "spec.names.kind"),
        texts(definition, "spec.names.shortNames").join(","),
        has_condition(definition, "Established"),
    ])
}

fn service(service: &Value, age: &str) -> Value {
    let kind = text(service, "spec.type");
    let cluster = match kind {
        "ExternalName" => NONE,
        _ => or(text(service, "spec.clusterIP"), NONE),
    };
    let ports: Vec<String> = list(service, "spec.ports")
        .iter()
        .map(|port| match int(port, "nodePort") {
            0 => format!("{}/{}", int(port, "port"), text(port, "protocol")),
            node => format!("{}:{node}/{}", int(port, "port"), text(port, "protocol")),
        })
        .collect();
    let mut selector: Vec<String> = entries(service, "spec.selector")
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    selector.sort();
    json!([
        name(service),
        kind,
        cluster,
        external(service),
        joined(&ports, NONE),
        age,
        joined(&selector, NONE)
    ])
}

fn external(service: &Value) -> String {
    let given = texts(service, "spec.externalIPs");
    match text(service, "spec.type") {
        "ExternalName" => text(service, "spec.externalName").to_owned(),
        "LoadBalancer" => {
            let mut all: Vec<String> = list(service, "status.loadBalancer.ingress")
                .iter()
                .map(|entry| or(text(entry, "ip"), text(entry, "hostname")).to_owned())
                .collect();
            all.sort();
            all.extend(given);
            joined(&all, "<pending>")
        }
        _ => joined(&given, NONE),
    }
}

fn pod(pod: &Value, age: &str) -> Value {
    let statuses = list(pod, "status.containerStatuses");
    let total = list(pod, "spec.containers").len();
    let ready = statuses.iter().filter(|status| at(status, "ready") == Some(&json!(true))).count();
    let restarts: i64 = statuses.iter().map(|status| int(status, "restartCount")).sum();
    let mut reason = or(text(pod, "status.reason"), text(pod, "status.phase")).to_owned();
    for status in statuses.iter().rev() {
        let waiting = text(status, "state.waiting.reason");
        let ended = text(status, "state.terminated.reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut reason);
        } else if !ended.is_empty() {
            ended.clone_into(&mut reason);
        } else if let Some(code) = at(status, "state.terminated.exitCode") {
            reason = format!("ExitCode:{code}");
        }
    }
    if at(pod, "metadata.deletionTimestamp").is_some() {
        "Terminating".clone_into(&mut reason);
    }
    let gates = list(pod, "spec.readinessGates");
    let gates = if gates.is_empty() {
        NONE.to_owned()
    } else {
        let met = |gate: &&Value| {
            let wanted = text(gate, "conditionType");
            let is = |c: &&Value| text(c, "type") == wanted && text(c, "status") == "True";
            list(pod, "status.conditions").iter().any(|condition| is(&condition))
        };
        format!("{}/{}", gates.iter().filter(met).count(), gates.len())
    };
    json!([
        name(pod),
        format!("{ready}/{total}"),
        reason,
        restarts.to_string(),
        age,
        or(text(pod, "status.podIP"), NONE),
        or(text(pod, "spec.nodeName"), NONE),
        or(text(pod, "status.nominatedNodeName"), NONE),
        gates,
    ])
}

fn event(event: &Value, now: Timestamp) -> Value {
    let first = since(event, "firstTimestamp", now).or_else(|| since(event, "eventTime", now));
    let first = first.unwrap_or_else(|| UNKNOWN.to_owned());
    let last = since(event, "lastTimestamp", now).unwrap_or_else(|| first.clone());
    let (last, count) = match at(event, "series") {
        Some(series) => {
            let seen = since(series, "lastObservedTime", now).unwrap_or_else(|| UNKNOWN.to_owned());
            (seen, int(series, "count"))
        }
        None => (last, int(event, "count").max(1)),
    };
    let kind = text(event, "involvedObject.kind").to_lowercase();
    let target = match text(event, "involvedObject.name") {
        "" => kind,
        object => format!("{kind}/{object}"),
    };
    let component = or(text(event, "source.component"), text(event, "reportingComponent"));
    let host = match text(event, "source.component") {
        "" => text(event, "reportingInstance"),
        _ => text(event, "source.host"),
    };
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    json!([
        last,
        text(event, "type"),
        text(event, "reason"),
        target,
        text(event, "involvedObject.fieldPath"),
        source,
        text(event, "message").trim(),
        first,
        count,
        name(event),
    ])
}

/// At most three of a list, and how many more there are.
fn few(all: &[String], none: &str) -> String {
    match all {
        [] => none.to_owned(),
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a},{b},{c} + {} more...", rest.len()),
        all => all.join(","),
    }
}

fn endpoints(endpoints: &Value) -> String {
    let mut all = Vec::new();
    for subset in list(endpoints, "subsets") {
        let ports = list(subset, "ports");
        for address in list(subset, "addresses") {
            let ip = text(address, "ip");
            let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
            all.extend(ports.iter().map(|port| format!("{host}:{}", int(port, "port"))));
            if ports.is_empty() {
                all.push(ip.to_owned());
            }
        }
    }
    few(&all, NONE)
}

fn slice_ports(slice: &Value) -> String {
    let all: Vec<String> = list(slice, "ports")
        .iter()
        .map(|port| match (text(port, "name"), at(port, "port")) {
            (_, Some(number)) => number.to_string(),
            ("", None) => "*".to_owned(),
            (name, None) => name.to_owned(),
        })
        .collect();
    few(&all, "<unset>")
}

fn slice_addresses(slice: &Value) -> String {
    let all: Vec<String> =
        list(slice, "endpoints").iter().flat_map(|endpoint| texts(endpoint, "addresses")).collect();
    few(&all, "<unset>")
}

#[cfg(test)]
mod tests;
