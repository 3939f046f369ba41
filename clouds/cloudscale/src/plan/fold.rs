//! What there is after a mutation was answered, and what it would be answered with.

use crate::{
    action::{Action, Answer},
    annotations::Floating,
    observed::{Observed, ObservedBalancer, ObservedPool},
    wire::{
        FlavorStub, FloatingIp, HealthMonitor, HttpChange, HttpOptions, Listener, ListenerChange,
        LoadBalancer, Member, MonitorChange, NewMonitor, NewVip, Pool, SlugStub, Stub, SubnetStub,
        VipAddress,
    },
};

/// What there is after `act` was answered by `answer`.
pub fn fold(observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
    let mut observed = observed.unwrap_or_default();
    match (act, answer) {
        (Action::CreateBalancer(_), Answer::Balancer(balancer)) => {
            observed.existing = Some(ObservedBalancer {
                balancer: (**balancer).clone(),
                new: true,
                ..ObservedBalancer::default()
            });
        }
        (Action::DeleteBalancer { .. }, _) => observed.existing = None,
        _ => {
            if let Some(existing) = &mut observed.existing {
                below(existing, act, answer);
            }
        }
    }
    Some(observed)
}

fn below(existing: &mut ObservedBalancer, act: &Action, answer: &Answer) {
    match (act, answer) {
        (Action::RenameBalancer { name, .. }, _) => name.clone_into(&mut existing.balancer.name),
        (Action::CreatePool(_), Answer::Pool(pool)) => {
            existing.pools.push(ObservedPool { pool: pool.clone(), ..ObservedPool::default() });
        }
        (Action::CreateMember { pool, .. }, Answer::Member(member)) => {
            on_pool(existing, pool, |observed| observed.members.push(member.clone()));
        }
        (Action::CreateListener(new), Answer::Listener(listener)) => {
            on_pool(existing, &new.pool, |observed| observed.listeners.push((**listener).clone()));
        }
        (Action::CreateMonitor(new), Answer::Monitor(monitor)) => {
            on_pool(existing, &new.pool, |observed| observed.monitors.push((**monitor).clone()));
        }
        (Action::UpdateListener { listener, change }, _) => {
            let all = existing.pools.iter_mut().flat_map(|observed| &mut observed.listeners);
            all.filter(|observed| observed.uuid == *listener)
                .for_each(|observed| update_listener(observed, change));
        }
        (Action::UpdateMonitor { monitor, change }, _) => {
            let all = existing.pools.iter_mut().flat_map(|observed| &mut observed.monitors);
            all.filter(|observed| observed.uuid == *monitor)
                .for_each(|observed| update_monitor(observed, change));
        }
        (Action::AssignFloatingIp { network, balancer, .. }, _) => {
            assign(&mut existing.floating_ips, network, balancer);
        }
        (Action::DeleteListener { listener }, _) => {
            existing.pools.iter_mut().for_each(|observed| observed.listeners.retain(|l| l.uuid != *listener));
        }
        (Action::DeleteMember { pool, member }, _) => {
            on_pool(existing, pool, |observed| observed.members.retain(|m| m.uuid != *member));
        }
        (Action::DeleteMonitor { monitor }, _) => {
            existing.pools.iter_mut().for_each(|observed| observed.monitors.retain(|m| m.uuid != *monitor));
        }
        (Action::DeletePool { pool }, _) => existing.pools.retain(|observed| observed.pool.uuid != *pool),
        _ => {}
    }
}

fn on_pool(existing: &mut ObservedBalancer, uuid: &str, change: impl FnOnce(&mut ObservedPool)) {
    if let Some(pool) = existing.pools.iter_mut().find(|observed| observed.pool.uuid == uuid) {
        change(pool);
    }
}

fn update_listener(listener: &mut Listener, change: &ListenerChange) {
    match change {
        ListenerChange::AllowedCidrs(list) => list.clone_into(&mut listener.allowed_cidrs),
        ListenerChange::TimeoutClientData(ms) => listener.timeout_client_data_ms = Some(*ms),
        ListenerChange::TimeoutMemberConnect(ms) => listener.timeout_member_connect_ms = Some(*ms),
        ListenerChange::TimeoutMemberData(ms) => listener.timeout_member_data_ms = Some(*ms),
    }
}

fn update_monitor(monitor: &mut HealthMonitor, change: &MonitorChange) {
    let http = |monitor: &mut HealthMonitor, change: &HttpChange| {
        let http = monitor.http.get_or_insert_default();
        match change {
            HttpChange::Host(host) => http.host = Some(host.clone()),
            HttpChange::UrlPath(path) => path.clone_into(&mut http.url_path),
            HttpChange::Method(method) => method.clone_into(&mut http.method),
            HttpChange::ExpectedCodes(codes) => codes.clone_into(&mut http.expected_codes),
        }
    };
    match change {
        MonitorChange::Http(change) => http(monitor, change),
        MonitorChange::Delay(n) => monitor.delay_s = Some(*n),
        MonitorChange::Timeout(n) => monitor.timeout_s = Some(*n),
        MonitorChange::UpThreshold(n) => monitor.up_threshold = Some(*n),
        MonitorChange::DownThreshold(n) => monitor.down_threshold = Some(*n),
    }
}

fn assign(all: &mut Vec<FloatingIp>, network: &str, balancer: &str) {
    let load_balancer = Some(Stub { uuid: balancer.to_owned() });
    let wanted = Floating::parse(network).map(|floating| floating.network);
    let same = |ip: &&mut FloatingIp| Floating::parse(&ip.network).map(|floating| floating.network) == wanted;
    match all.iter_mut().find(same) {
        Some(ip) => {
            ip.load_balancer = load_balancer;
            ip.server = None;
        }
        None => all.push(FloatingIp { network: network.to_owned(), load_balancer, server: None }),
    }
}

/// A plausible answer to `act`. A new load balancer is ready at once, so that a dry run shows all the steps.
pub fn assume(act: &Action) -> Answer {
    match act {
        Action::CreateBalancer(new) => Answer::Balancer(Box::new(LoadBalancer {
            uuid: format!("(new) {}", new.name),
            name: new.name.clone(),
            zone: Some(SlugStub { slug: new.zone.clone().unwrap_or_else(|| "(default)".to_owned()) }),
            flavor: Some(FlavorStub { slug: new.flavor.clone() }),
            vip_addresses: vips(&new.vip_addresses),
            ..LoadBalancer::default()
        })),
        Action::CreatePool(new) => Answer::Pool(Pool {
            uuid: format!("(new) {} {} {}", new.name, new.algorithm, new.protocol),
            name: new.name.clone(),
            load_balancer: Stub { uuid: new.load_balancer.clone() },
            algorithm: new.algorithm.clone(),
            protocol: new.protocol.clone(),
        }),
        Action::CreateMember { pool, member: new } => Answer::Member(Member {
            uuid: format!("(new) {} {} {} in {pool}", new.name, new.monitor_port, new.subnet),
            name: new.name.clone(),
            enabled: true,
            subnet: Some(SubnetStub { uuid: new.subnet.clone() }),
            address: new.address.clone(),
            protocol_port: new.protocol_port,
            monitor_port: Some(new.monitor_port),
        }),
        Action::CreateListener(new) => Answer::Listener(Box::new(Listener {
            uuid: format!("(new) {} on {}", new.name, new.pool),
            name: new.name.clone(),
            pool: Some(Stub { uuid: new.pool.clone() }),
            protocol: new.protocol.clone(),
            protocol_port: new.protocol_port,
            allowed_cidrs: new.allowed_cidrs.clone(),
            timeout_client_data_ms: Some(new.timeout_client_data_ms),
            timeout_member_connect_ms: Some(new.timeout_member_connect_ms),
            timeout_member_data_ms: Some(new.timeout_member_data_ms),
        })),
        Action::CreateMonitor(new) => Answer::Monitor(Box::new(assumed_monitor(new))),
        _ => Answer::Done,
    }
}

fn vips(wanted: &[NewVip]) -> Vec<VipAddress> {
    if wanted.is_empty() {
        let public = |address: &str| VipAddress { address: address.to_owned(), subnet: None };
        return vec![public("(new IPv4)"), public("(new IPv6)")];
    }
    let vip = |new: &NewVip| VipAddress {
        address: new.address.clone().unwrap_or_else(|| "(new)".to_owned()),
        subnet: new.subnet.clone().map(|uuid| SubnetStub { uuid }),
    };
    wanted.iter().map(vip).collect()
}

fn assumed_monitor(new: &NewMonitor) -> HealthMonitor {
    let or = |text: &str, default: &str| if text.is_empty() { default } else { text }.to_owned();
    let http = HttpOptions {
        expected_codes: match new.http.expected_codes.as_slice() {
            [] => vec!["200".to_owned()],
            codes => codes.to_vec(),
        },
        method: or(&new.http.method, "GET"),
        url_path: or(&new.http.url_path, "/"),
        version: or(&new.http.version, "1.1"),
        host: new.http.host.clone(),
    };
    HealthMonitor {
        uuid: format!("(new) {} {} on {}", new.kind, http.version, new.pool),
        pool: Some(Stub { uuid: new.pool.clone() }),
        kind: new.kind.clone(),
        delay_s: Some(new.delay_s),
        timeout_s: Some(new.timeout_s),
        up_threshold: Some(new.up_threshold),
        down_threshold: Some(new.down_threshold),
        http: matches!(new.kind.as_str(), "http" | "https").then_some(http),
    }
}
