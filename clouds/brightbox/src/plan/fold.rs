//! What there is after a mutation was answered, and what it would be answered with.

use crate::{
    action::{Action, Answer},
    observed::Observed,
    wire::{
        Acme, AcmeDomain, BalancerOptions, BalancerStatus, CheckOptions, CloudIp, CloudIpStatus, HealthCheck,
        Listener, ListenerOptions, LoadBalancer, NodeRef, Policy, Rule, RuleOptions, ServerGroup, Stub,
    },
};

/// What there is after `act` was answered by `answer`.
pub fn fold(observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
    let mut observed = observed.unwrap_or_default();
    match (act, answer) {
        (Action::AllocateCloudIp { .. }, Answer::CloudIp(new)) => observed.cloud_ips.push((**new).clone()),
        (Action::CreateGroup { .. }, Answer::Group(new)) => observed.groups.push(new.clone()),
        (Action::AddServers { group, servers }, _) => {
            on_group(&mut observed, group, |one| one.servers.extend(servers.iter().map(|id| Stub::new(id))));
        }
        (Action::RemoveServers { group, servers }, _) => {
            on_group(&mut observed, group, |one| one.servers.retain(|server| !servers.contains(&server.id)));
        }
        (Action::CreatePolicy(_), Answer::Policy(new)) => observed.policies.push(new.clone()),
        (Action::AttachPolicy { policy, group }, _) => {
            on_policy(&mut observed, policy, |one| one.server_group = Some(Stub::new(group)));
        }
        (Action::CreateRule(options), Answer::Rule(new)) => {
            on_policy(&mut observed, &options.firewall_policy, |one| one.rules.push(new.clone()));
        }
        (Action::UpdateRule { rule, options }, _) => {
            on_policy(&mut observed, &options.firewall_policy, |one| {
                one.rules
                    .iter_mut()
                    .filter(|old| old.id == *rule)
                    .for_each(|old| *old = made_rule(rule, options));
            });
        }
        (Action::DeleteRule { policy, rule }, _) => {
            on_policy(&mut observed, policy, |one| one.rules.retain(|old| old.id != *rule));
        }
        (Action::DeleteCloudIp { cloud_ip }, _) => observed.cloud_ips.retain(|one| one.id != *cloud_ip),
        (Action::DeleteGroup { group }, _) => observed.groups.retain(|one| one.id != *group),
        (Action::DeletePolicy { policy }, _) => observed.policies.retain(|one| one.id != *policy),
        _ => balancer(&mut observed, act, answer),
    }
    Some(observed)
}

fn balancer(observed: &mut Observed, act: &Action, answer: &Answer) {
    match (act, answer) {
        (Action::CreateBalancer(_), Answer::Balancer(new)) => {
            observed.balancers.push((**new).clone());
            observed.written = true;
        }
        (Action::UpdateBalancer { balancer, .. }, Answer::Balancer(new)) => {
            observed
                .balancers
                .iter_mut()
                .filter(|one| one.id == *balancer)
                .for_each(|one| *one = (**new).clone());
            observed.written = true;
        }
        (Action::UpdateBalancer { balancer, options }, _) => {
            observed
                .balancers
                .iter_mut()
                .filter(|one| one.id == *balancer)
                .for_each(|one| write(one, options));
            observed.written = true;
        }
        (Action::Map { cloud_ip, .. }, Answer::Accepted(read)) => {
            if let (Some(read), Some(live)) = (read, observed.live_mut()) {
                live.clone_from(read);
            }
            observed.mapping.insert(cloud_ip.clone());
        }
        (Action::Map { cloud_ip, balancer }, _) => {
            if let Some(live) = observed.live_mut() {
                live.cloud_ips.push(Stub::new(cloud_ip));
            }
            on_cloud_ip(observed, cloud_ip, |one| {
                one.status = CloudIpStatus::Mapped;
                one.load_balancer = Some(Stub::new(balancer));
            });
        }
        (Action::Unmap { cloud_ip }, Answer::Accepted(_)) => {
            observed.unmapping.insert(cloud_ip.clone());
        }
        (Action::Unmap { cloud_ip }, _) => unmap(observed, cloud_ip),
        (Action::DeleteBalancer { balancer }, Answer::Accepted(_)) => {
            let Observed { balancers, replaced, .. } = observed;
            for one in balancers.iter_mut().filter(|one| one.id == *balancer) {
                if one.status == BalancerStatus::Failed {
                    *replaced = Some(one.id.clone());
                }
                one.status = BalancerStatus::Deleting;
            }
        }
        (Action::DeleteBalancer { balancer }, _) => {
            let led =
                |one: &&CloudIp| one.load_balancer.as_ref().is_some_and(|target| target.id == *balancer);
            let freed: Vec<_> = observed.cloud_ips.iter().filter(led).map(|one| one.id.clone()).collect();
            for id in &freed {
                unmap(observed, id);
            }
            observed.balancers.retain(|one| one.id != *balancer);
        }
        _ => {}
    }
}

fn unmap(observed: &mut Observed, cloud_ip: &str) {
    observed.balancers.iter_mut().for_each(|one| one.cloud_ips.retain(|stub| stub.id != cloud_ip));
    on_cloud_ip(observed, cloud_ip, |one| {
        one.status = CloudIpStatus::Unmapped;
        one.load_balancer = None;
    });
}

fn on_group(observed: &mut Observed, id: &str, change: impl FnOnce(&mut ServerGroup)) {
    if let Some(group) = observed.groups.iter_mut().find(|group| group.id == id) {
        change(group);
    }
}

fn on_policy(observed: &mut Observed, id: &str, change: impl FnOnce(&mut Policy)) {
    if let Some(policy) = observed.policies.iter_mut().find(|policy| policy.id == id) {
        change(policy);
    }
}

fn on_cloud_ip(observed: &mut Observed, id: &str, change: impl FnOnce(&mut CloudIp)) {
    if let Some(cloud_ip) = observed.cloud_ips.iter_mut().find(|cloud_ip| cloud_ip.id == id) {
        change(cloud_ip);
    }
}

/// A plausible answer to `act`. Everything takes effect at once, so that a dry run shows all the steps.
pub fn assume(act: &Action) -> Answer {
    let id = |name: &str| format!("(new) {name}");
    match act {
        Action::AllocateCloudIp { name } => Answer::CloudIp(Box::new(CloudIp {
            id: id(name),
            name: name.clone(),
            status: CloudIpStatus::Unmapped,
            public_ipv4: None,
            public_ipv6: None,
            fqdn: None,
            reverse_dns: None,
            load_balancer: None,
            server: None,
            server_group: None,
            database_server: None,
        })),
        Action::CreateGroup { name } => {
            Answer::Group(ServerGroup { id: id(name), name: name.clone(), servers: Vec::new() })
        }
        Action::CreatePolicy(new) => Answer::Policy(Policy {
            id: id(&new.name),
            name: new.name.clone(),
            server_group: Some(Stub::new(&new.server_group)),
            rules: Vec::new(),
        }),
        Action::CreateRule(new) => Answer::Rule(made_rule(&id(&new.destination_port), new)),
        Action::CreateBalancer(new) => {
            let mut balancer = LoadBalancer {
                id: id(&new.name),
                name: String::new(),
                status: BalancerStatus::Active,
                locked: false,
                policy: None,
                listeners: Vec::new(),
                healthcheck: HealthCheck::default(),
                acme: None,
                cloud_ips: Vec::new(),
                nodes: Vec::new(),
            };
            write(&mut balancer, new);
            Answer::Balancer(Box::new(balancer))
        }
        _ => Answer::Done,
    }
}

fn made_rule(id: &str, options: &RuleOptions) -> Rule {
    Rule {
        id: id.to_owned(),
        protocol: options.protocol.clone(),
        source: options.source.clone(),
        destination_port: options.destination_port.clone(),
        description: options.description.clone(),
    }
}

/// Writes options over a load balancer: what is not sent stays.
fn write(balancer: &mut LoadBalancer, options: &BalancerOptions) {
    let BalancerOptions { name, nodes, listeners, healthcheck, policy, domains, https_redirect: _ } = options;
    balancer.name.clone_from(name);
    if let Some(nodes) = nodes {
        balancer.nodes = nodes.iter().map(|NodeRef { node }| Stub::new(node)).collect();
    }
    if let Some(listeners) = listeners {
        balancer.listeners = listeners.iter().map(made_listener).collect();
    }
    check(&mut balancer.healthcheck, healthcheck);
    if policy.is_some() {
        balancer.policy.clone_from(policy);
    }
    if let Some(domains) = domains {
        let valid = |name: &String| AcmeDomain {
            identifier: name.clone(),
            status: "valid".to_owned(),
            last_message: None,
        };
        balancer.acme = Some(Acme { domains: domains.iter().map(valid).collect() });
    }
}

fn made_listener(options: &ListenerOptions) -> Listener {
    Listener {
        protocol: options.protocol.clone(),
        inside: options.inside,
        outside: Some(options.outside),
        timeout: options.timeout,
        proxy_protocol: options.proxy_protocol.clone(),
    }
}

fn check(running: &mut HealthCheck, options: &CheckOptions) {
    let CheckOptions { kind, port, request, interval, timeout, threshold_up, threshold_down } = options;
    running.kind.clone_from(kind);
    running.port = *port;
    if let Some(request) = request {
        running.request.clone_from(request);
    }
    running.interval = interval.or(running.interval);
    running.timeout = timeout.or(running.timeout);
    running.threshold_up = threshold_up.or(running.threshold_up);
    running.threshold_down = threshold_down.or(running.threshold_down);
}
