//! What the replaced program would write, if it came back: the way back is judged by what it compares.

use serde_json::{Value, json};

use super::{members, name_of, wanted};
use crate::{Cloud, CloudIp, Destination};

/// What the replaced program would do for a Service whose Cloud IP is `own`, in words. It compares the order of nodes, and
/// hands them over in an order of chance: with one node there is only one.
pub fn would_write(cloud: &Cloud, service: &Value, own: &CloudIp) -> Vec<String> {
    let (name, all) = (name_of(service), cloud.resources());
    let mut found = Vec::new();
    let mut note = |differs: bool, what: &str| {
        if differs {
            found.push(what.to_owned());
        }
    };
    let mut servers = members(cloud);
    let groups: Vec<_> = all.groups.values().filter(|one| one.name.as_ref() == Some(&name)).collect();
    let body = wanted::balancer(service, own, &servers);
    let [group] = groups.as_slice() else { return vec![format!("{} groups", groups.len())] };
    let mut grouped = group.servers.clone();
    servers.sort();
    grouped.sort();
    note(grouped != servers, "members of the group");
    let policy = all.policies.values().find(|one| one.name.as_ref() == Some(&name));
    let first = policy.and_then(|policy| policy.rules.first());
    let rule = first.map(|rule| {
        json!({"protocol": rule.protocol, "source": rule.source, "destination_port": rule.destination_port,
            "description": rule.description})
    });
    note(rule != Some(wanted::rule(service)), "the first rule");
    let alive: Vec<_> =
        all.balancers.values().filter(|one| one.alive() && one.name.as_ref() == Some(&name)).collect();
    let [live] = alive.as_slice() else { return vec![format!("{} load balancers", alive.len())] };
    let nodes: Vec<_> = live.nodes.iter().map(|id| json!({"node": id})).collect();
    note(body["nodes"] != json!(nodes), "nodes");
    let check = &live.healthcheck;
    let running = [json!(check.kind), json!(check.port), json!(check.request)];
    let asked = ["type", "port", "request"].map(|field| body["healthcheck"][field].clone());
    note(asked != running, "the health check");
    let same = |(listener, running): (&Value, &crate::Listener)| {
        let timeout = listener["timeout"].as_i64().unwrap_or_default();
        listener["protocol"] == running.protocol.as_str()
            && listener["in"] == running.in_port
            && listener["out"] == running.out_port
            && listener["proxy_protocol"].as_str() == running.proxy_protocol.as_deref()
            && (timeout == 0 || running.timeout == 0 || timeout == running.timeout)
    };
    let listeners = body["listeners"].as_array().unwrap();
    let equal = listeners.len() == live.listeners.len() && listeners.iter().zip(&live.listeners).all(same);
    note(!equal, "listeners");
    let mut domains: Vec<_> = live.domains.iter().map(|domain| domain.identifier.clone()).collect();
    domains.sort();
    note(body.get("domains").is_some_and(|asked| *asked != json!(domains)), "domains");
    let mapped = all.cloud_ips_of(&Destination::Balancer(live.id.clone()));
    note(mapped.iter().map(|ip| &ip.id).ne([&own.id]), "the mapping");
    let spare = |ip: &&CloudIp| ip.name.as_ref() == Some(&name) && ip.id != own.id;
    note(all.cloud_ips.values().any(|ip| spare(&ip)), "other Cloud IPs of the name");
    found
}
