//! What the replaced program asks of the cloud for a Service.

use serde_json::{Map, Value, json};

use super::{PREFIX, name_of};
use crate::CloudIp;

fn said<'a>(service: &'a Value, key: &str) -> Option<&'a str> {
    service["metadata"]["annotations"].get(format!("{PREFIX}{key}"))?.as_str()
}

/// A number that is given and is not 0.
fn number(service: &Value, key: &str) -> Option<u32> {
    said(service, key)?.parse().ok().filter(|number| *number != 0)
}

fn ports(service: &Value) -> impl Iterator<Item = &Value> {
    service["spec"]["ports"].as_array().into_iter().flatten()
}

/// The port at which nodes say whether they have a pod, where the traffic policy asks for that.
fn local_check(service: &Value) -> Option<&Value> {
    let local = service["spec"]["externalTrafficPolicy"] == "Local";
    service["spec"].get("healthCheckNodePort").filter(|_| local)
}

/// The rule of the firewall, without its policy.
pub(super) fn rule(service: &Value) -> Value {
    let mut open: Vec<_> = ports(service).map(|port| port["nodePort"].to_string()).collect();
    open.extend(service["spec"].get("healthCheckNodePort").map(Value::to_string));
    json!({
        "protocol": "tcp", "source": "10.0.0.0/8",
        "destination_port": open.join(","), "description": name_of(service),
    })
}

fn listener(service: &Value, port: &Value) -> Value {
    let protocol = said(service, "listener-protocol").unwrap_or("http");
    let listed = said(service, "ssl-ports").unwrap_or_default().split(',').any(|item| {
        let by_name = port["name"].as_str() == Some(item) && !item.is_empty();
        item.parse().map_or(by_name, |number: u64| port["port"] == number)
    });
    let secure = protocol != "tcp" && (port["port"] == 443 || listed);
    let mut listener = json!({
        "protocol": if secure { "https" } else { protocol }, "in": port["port"], "out": port["nodePort"],
    });
    if let Some(ms) = number(service, "listener-idle-timeout") {
        listener["timeout"] = json!(ms);
    }
    if let Some(version) = said(service, "listener-proxy-protocol") {
        listener["proxy_protocol"] = json!(version);
    }
    listener
}

fn check(service: &Value) -> Value {
    let tcp = match said(service, "healthcheck-protocol") {
        Some(kind) => kind == "tcp",
        None => said(service, "listener-protocol") == Some("tcp") && local_check(service).is_none(),
    };
    let first = ports(service).next().map_or(json!(80), |port| port["nodePort"].clone());
    let mut check = Map::new();
    check.insert("type".to_owned(), json!(if tcp { "tcp" } else { "http" }));
    check.insert("port".to_owned(), local_check(service).cloned().unwrap_or(first));
    let path = if tcp { "/" } else { said(service, "healthcheck-request").unwrap_or("/healthz") };
    if !path.is_empty() {
        check.insert("request".to_owned(), json!(path));
    }
    for (key, field) in [
        ("healthcheck-timeout", "timeout"),
        ("healthcheck-healthy-threshold", "threshold_up"),
        ("healthcheck-unhealthy-threshold", "threshold_down"),
    ] {
        check.extend(number(service, key).map(|number| (field.to_owned(), json!(number))));
    }
    Value::Object(check)
}

/// The whole load balancer.
pub(super) fn balancer(service: &Value, own: &CloudIp, servers: &[String]) -> Value {
    let listeners: Vec<_> = ports(service).map(|port| listener(service, port)).collect();
    let https = listeners.iter().any(|listener| listener["protocol"] == "https");
    let mut body = json!({
        "name": name_of(service),
        "nodes": servers.iter().map(|id| json!({"node": id})).collect::<Vec<_>>(),
        "listeners": listeners, "healthcheck": check(service), "https_redirect": https,
    });
    if let Some(policy) = said(service, "policy") {
        body["policy"] = json!(policy);
    }
    if https {
        let asked = said(service, "ssl-domains").into_iter().flat_map(|text| text.split(','));
        let mut domains: Vec<_> =
            asked.chain([own.fqdn.as_str()]).chain(own.reverse_dns.as_deref()).collect();
        domains.sort_unstable();
        domains.dedup();
        body["domains"] = json!(domains);
    }
    body
}
