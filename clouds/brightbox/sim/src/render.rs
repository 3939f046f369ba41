//! Resources as the JSON of the API.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    resources::{
        Balancer, CloudIp, Destination, FirewallPolicy, FirewallRule, Group, Listener, Resources, Server,
        in_order,
    },
    route::Kind,
    settings::{SERVER_TYPES, SimSettings},
};

/// The resources at one moment, as one client sees them.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) account: &'a str,
    pub(crate) resources: &'a Resources,
    pub(crate) settings: &'a SimSettings,
    /// The base URL that the client used; links begin with it.
    pub(crate) base: &'a str,
}

fn time(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// What belongs to each server, by the server's id.
#[derive(Default)]
struct Neighbours<'a> {
    groups: BTreeMap<&'a str, Vec<&'a Group>>,
    cloud_ips: BTreeMap<&'a str, Vec<&'a CloudIp>>,
}

impl<'a> Neighbours<'a> {
    fn of(resources: &'a Resources) -> Self {
        let mut neighbours = Self::default();
        for group in in_order(resources.groups.values(), |group| (group.created_at, &group.id)) {
            for server in &group.servers {
                neighbours.groups.entry(server).or_default().push(group);
            }
        }
        for ip in in_order(resources.cloud_ips.values(), |ip| (ip.created_at, &ip.id)) {
            if let Some(Destination::Server(server)) = &ip.destination {
                neighbours.cloud_ips.entry(server).or_default().push(ip);
            }
        }
        neighbours
    }
}

impl View<'_> {
    /// All resources of a kind, oldest first.
    pub(crate) fn list(&self, kind: Kind) -> Vec<Value> {
        let Resources { servers, groups, policies, balancers, cloud_ips, .. } = self.resources;
        match kind {
            Kind::Account => vec![self.account()],
            Kind::Server => {
                let near = Neighbours::of(self.resources);
                let servers = in_order(servers.values(), |server| (server.created_at, &server.id));
                servers.into_iter().map(|server| self.server(server, &near)).collect()
            }
            Kind::ServerType => SERVER_TYPES.iter().map(|(handle, ..)| self.server_type(handle)).collect(),
            Kind::Zone => self.settings.zones().iter().map(|handle| self.zone(handle)).collect(),
            Kind::Group => {
                let groups = in_order(groups.values(), |group| (group.created_at, &group.id));
                groups.into_iter().map(|group| self.group(group)).collect()
            }
            Kind::Policy => {
                let policies = in_order(policies.values(), |policy| (policy.created_at, &policy.id));
                policies.into_iter().map(|policy| self.policy(policy)).collect()
            }
            Kind::Rule => Vec::new(),
            Kind::Balancer => {
                let balancers = in_order(balancers.values(), |balancer| (balancer.created_at, &balancer.id));
                let detail = self.settings.acme_in_lists;
                balancers.into_iter().map(|balancer| self.balancer(balancer, detail)).collect()
            }
            Kind::CloudIp => {
                let ips = in_order(cloud_ips.values(), |ip| (ip.created_at, &ip.id));
                ips.into_iter().map(|ip| self.cloud_ip(ip)).collect()
            }
        }
    }

    /// One resource in full.
    pub(crate) fn get(&self, kind: Kind, id: &str) -> Option<Value> {
        let Resources { servers, groups, policies, balancers, cloud_ips, .. } = self.resources;
        match kind {
            Kind::Server => {
                servers.get(id).map(|server| self.server(server, &Neighbours::of(self.resources)))
            }
            Kind::Group => groups.get(id).map(|group| self.group(group)),
            Kind::Policy => policies.get(id).map(|policy| self.policy(policy)),
            Kind::Balancer => balancers.get(id).map(|balancer| self.balancer(balancer, true)),
            Kind::CloudIp => cloud_ips.get(id).map(|ip| self.cloud_ip(ip)),
            Kind::Rule => policies.values().find_map(|policy| {
                let mut rule = self.rule(policy.rules.iter().find(|rule| rule.id == id)?);
                insert(&mut rule, "firewall_policy", self.policy_stub(policy));
                Some(rule)
            }),
            Kind::Account | Kind::ServerType | Kind::Zone => {
                self.list(kind).into_iter().find(|item| item.get("id").and_then(Value::as_str) == Some(id))
            }
        }
    }

    /// What every resource has, also within another one.
    fn stub(&self, kind: Kind, id: &str) -> Value {
        let plural = kind.plural();
        let singular = plural
            .strip_suffix("ies")
            .map_or_else(|| plural.trim_end_matches('s').to_owned(), |stem| format!("{stem}y"));
        json!({"id": id, "resource_type": singular, "url": format!("{}/1.0/{plural}/{id}", self.base)})
    }

    fn account(&self) -> Value {
        let gone = |balancer: &&Balancer| balancer.status != "deleted";
        merge(
            self.stub(Kind::Account, self.account),
            json!({
                "name": "Harbour Ltd",
                "status": "active",
                "cloud_ips_limit": self.settings.limits.cloud_ips,
                "cloud_ips_used": self.resources.cloud_ips.len(),
                "load_balancers_limit": self.settings.limits.balancers,
                "load_balancers_used": self.resources.balancers.values().filter(gone).count(),
            }),
        )
    }

    fn zone(&self, handle: &str) -> Value {
        let id = format!("zon-{}", handle.replace('-', ""));
        merge(self.stub(Kind::Zone, &id), json!({"handle": handle}))
    }

    fn server_type(&self, handle: &str) -> Value {
        let id = format!("typ-{}", handle.replace('.', ""));
        let known = SERVER_TYPES.iter().find(|(known, ..)| *known == handle);
        let (_, name, cores, ram, disk, status) =
            known.copied().unwrap_or((handle, handle, 1, 1_024, 20_480, "available"));
        merge(
            self.stub(Kind::ServerType, &id),
            json!({
                "handle": handle,
                "name": name,
                "cores": cores,
                "ram": ram,
                "disk_size": disk,
                "storage_type": "local",
                "status": status,
            }),
        )
    }

    fn server_stub(&self, id: &str) -> Value {
        let stub = self.stub(Kind::Server, id);
        let Some(server) = self.resources.servers.get(id) else { return stub };
        merge(
            stub,
            json!({
                "name": server.name,
                "status": server.status,
                "locked": server.locked,
                "hostname": server.hostname,
                "fqdn": server.fqdn,
                "created_at": time(server.created_at),
                "started_at": server.started_at.map(time),
                "deleted_at": server.deleted_at.map(time),
            }),
        )
    }

    fn server(&self, server: &Server, near: &Neighbours<'_>) -> Value {
        let interfaces = server.interfaces.iter().map(|interface| {
            let mut shown = json!({
                "id": interface.id,
                "resource_type": "interface",
                "url": format!("{}/1.0/interfaces/{}", self.base, interface.id),
                "mac_address": interface.mac_address,
                "ipv4_address": interface.ipv4_address,
            });
            if let Some(v6) = &interface.ipv6_address {
                insert(&mut shown, "ipv6_address", json!(v6));
            }
            shown
        });
        let groups = near.groups.get(server.id.as_str()).into_iter().flatten();
        let cloud_ips = near.cloud_ips.get(server.id.as_str()).into_iter().flatten();
        merge(
            self.server_stub(&server.id),
            json!({
                "zone": server.zone.as_ref().map(|handle| self.zone(handle)),
                "server_type": server.server_type.as_ref().map(|handle| self.server_type(handle)),
                "interfaces": interfaces.collect::<Vec<_>>(),
                "cloud_ips": cloud_ips.map(|ip| self.cloud_ip_stub(ip)).collect::<Vec<_>>(),
                "server_groups": groups.map(|group| self.group_stub(group)).collect::<Vec<_>>(),
            }),
        )
    }

    fn group_stub(&self, group: &Group) -> Value {
        let fields = json!({
            "name": group.name,
            "description": group.description,
            "default": group.default,
            "fqdn": group.fqdn,
            "created_at": time(group.created_at),
        });
        merge(self.stub(Kind::Group, &group.id), fields)
    }

    fn group(&self, group: &Group) -> Value {
        let policy = self.resources.policy_of(&group.id);
        let servers = group.servers.iter().map(|id| self.server_stub(id)).collect::<Vec<_>>();
        let fields =
            json!({"firewall_policy": policy.map(|policy| self.policy_stub(policy)), "servers": servers});
        merge(self.group_stub(group), fields)
    }

    fn policy_stub(&self, policy: &FirewallPolicy) -> Value {
        let fields = json!({
            "name": policy.name,
            "description": policy.description,
            "default": policy.default,
            "created_at": time(policy.created_at),
        });
        merge(self.stub(Kind::Policy, &policy.id), fields)
    }

    fn policy(&self, policy: &FirewallPolicy) -> Value {
        let group = policy.group.as_ref().and_then(|id| self.resources.groups.get(id));
        let rules = policy.rules.iter().map(|rule| self.rule(rule)).collect::<Vec<_>>();
        let fields = json!({"server_group": group.map(|group| self.group_stub(group)), "rules": rules});
        merge(self.policy_stub(policy), fields)
    }

    fn rule(&self, rule: &FirewallRule) -> Value {
        let fields = json!({
            "source": rule.source,
            "source_port": rule.source_port,
            "destination": rule.destination,
            "destination_port": rule.destination_port,
            "protocol": rule.protocol,
            "icmp_type_name": rule.icmp_type_name,
            "description": rule.description,
            "created_at": time(rule.created_at),
        });
        merge(self.stub(Kind::Rule, &rule.id), fields)
    }

    fn balancer_stub(&self, balancer: &Balancer) -> Value {
        let fields = json!({
            "name": balancer.name,
            "status": balancer.status,
            "locked": balancer.locked,
            "created_at": time(balancer.created_at),
            "deleted_at": balancer.deleted_at.map(time),
        });
        merge(self.stub(Kind::Balancer, &balancer.id), fields)
    }

    fn balancer(&self, balancer: &Balancer, detail: bool) -> Value {
        let listener = |listener: &Listener| {
            json!({
                "protocol": listener.protocol,
                "in": listener.in_port,
                "out": listener.out_port,
                "timeout": listener.timeout,
                "proxy_protocol": listener.proxy_protocol,
            })
        };
        let check = &balancer.healthcheck;
        let cloud_ips = self.resources.cloud_ips_of(&Destination::Balancer(balancer.id.clone()));
        let mut shown = merge(
            self.balancer_stub(balancer),
            json!({
                "policy": balancer.policy,
                "buffer_size": balancer.buffer_size,
                "https_redirect": balancer.https_redirect,
                "listeners": balancer.listeners.iter().map(listener).collect::<Vec<_>>(),
                "healthcheck": {
                    "type": check.kind,
                    "port": check.port,
                    "request": check.request,
                    "interval": check.interval,
                    "timeout": check.timeout,
                    "threshold_up": check.threshold_up,
                    "threshold_down": check.threshold_down,
                },
                "cloud_ips": cloud_ips.iter().map(|ip| self.cloud_ip_stub(ip)).collect::<Vec<_>>(),
                "nodes": balancer.nodes.iter().map(|id| self.server_stub(id)).collect::<Vec<_>>(),
                "account": self.stub(Kind::Account, self.account),
            }),
        );
        if detail {
            insert(&mut shown, "ssl_minimum_version", json!(balancer.ssl_minimum_version));
            insert(&mut shown, "acme", acme(balancer));
            let certificate =
                balancer.certificate.then(|| json!({"subject": "/CN=own", "issuer": "/CN=own"}));
            insert(&mut shown, "certificate", json!(certificate));
        }
        shown
    }

    fn cloud_ip_stub(&self, ip: &CloudIp) -> Value {
        let fields = json!({
            "name": ip.name,
            "status": ip.status(),
            "mode": ip.mode,
            "public_ip": ip.public_ipv4,
            "public_ipv4": ip.public_ipv4,
            "public_ipv6": ip.public_ipv6,
            "fqdn": ip.fqdn,
            "reverse_dns": ip.reverse_dns,
        });
        merge(self.stub(Kind::CloudIp, &ip.id), fields)
    }

    fn cloud_ip(&self, ip: &CloudIp) -> Value {
        let Resources { servers, groups, balancers, .. } = self.resources;
        let (mut server, mut balancer, mut group, mut interface) = (None, None, None, None);
        match &ip.destination {
            None => {}
            Some(Destination::Server(id)) => {
                server = Some(self.server_stub(id));
                let first = servers.get(id).and_then(|server| server.interfaces.first());
                interface = first.map(|interface| json!({"id": interface.id, "resource_type": "interface"}));
            }
            Some(Destination::Balancer(id)) => {
                balancer = balancers.get(id).map(|found| self.balancer_stub(found));
            }
            Some(Destination::Group(id)) => group = groups.get(id).map(|found| self.group_stub(found)),
        }
        merge(
            self.cloud_ip_stub(ip),
            json!({
                "port_translators": ip.port_translators,
                "account": self.stub(Kind::Account, self.account),
                "interface": interface,
                "server": server,
                "load_balancer": balancer,
                "server_group": group,
                "database_server": null,
            }),
        )
    }
}

/// The certificate that a balancer gets by itself, once all its domains are valid.
fn acme(balancer: &Balancer) -> Value {
    let domains: Vec<_> = balancer.domains.iter().map(|domain| {
        json!({"identifier": domain.identifier, "status": domain.status, "last_message": domain.last_message})
    }).collect();
    let complete = !domains.is_empty() && balancer.domains.iter().all(|domain| domain.status == "valid");
    let issued = balancer.created_at;
    let expires = issued.checked_add(SignedDuration::from_hours(90 * 24)).unwrap_or(issued);
    let certificate = complete.then(|| {
        json!({
            "fingerprint": format!("sim-{}", balancer.id),
            "issued_at": time(issued),
            "expires_at": time(expires),
            "domains": balancer.domains.iter().map(|domain| &domain.identifier).collect::<Vec<_>>(),
        })
    });
    json!({"certificate": certificate, "domains": domains})
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

/// One object with the fields of both.
fn merge(first: Value, second: Value) -> Value {
    let mut fields = Map::new();
    for part in [first, second] {
        if let Value::Object(part) = part {
            fields.extend(part);
        }
    }
    Value::Object(fields)
}
