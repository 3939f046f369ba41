//! Services, and a cloud that does at once what it is told.

use std::{net::IpAddr, sync::Arc};

use cloudberth_brightbox::{Action, Observed, Switches, assume, decide as decide_with, fold, wire::CloudIp};
use cloudberth_core::{
    Lookup, ServiceView,
    lb::{Claims, Decision, Desired, Goal, Next, Refusal},
    view::{ServicePort, ServiceProtocol, ServiceType},
};
use serde_json::{Value, json};

pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/brightbox-load-balancer-";
pub(crate) const NAME: &str = "web.shop.prod";
pub(crate) const APPLIED: &str = "cloudberth.dev/applied";
pub(crate) const FQDN: &str = "cip-q4t9z.gb1.brightbox.com";
pub(crate) const REVERSE: &str = "cip-203-0-113-9.gb1.brightbox.com";
pub(crate) const V4: &str = "203.0.113.9";
pub(crate) const V6: &str = "2a02:1348:ffff:ffff::cb00:7109";

pub(crate) fn port(name: &str, number: i64, node_port: i64) -> ServicePort {
    ServicePort { name: name.to_owned(), port: number, node_port, ..ServicePort::default() }
}

pub(crate) fn udp(number: i64) -> ServicePort {
    ServicePort { protocol: ServiceProtocol::Udp, ..port("", number, 31_999) }
}

/// A Service with one port; a key without a slash gets the prefix.
pub(crate) fn service(annotations: &[(&str, &str)]) -> ServiceView {
    let key = |key: &str| if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") };
    ServiceView {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: "9bde5f33-1379-4b8c-877a-777f5da4d766".to_owned(),
        service_type: ServiceType::LoadBalancer,
        annotations: annotations.iter().map(|(k, v)| (key(k), (*v).to_owned())).collect(),
        ports: vec![port("http", 80, 31_348)],
        ..ServiceView::default()
    }
}

/// The same with port 443 in front.
pub(crate) fn secure(annotations: &[(&str, &str)]) -> ServiceView {
    let ports = vec![port("https", 443, 31_347), port("http", 80, 31_348)];
    ServiceView { ports, ..service(annotations) }
}

pub(crate) fn want(service: ServiceView) -> Desired {
    Desired {
        service: Arc::new(service),
        cluster: "prod".to_owned(),
        goal: Goal::Present,
        backends: Vec::new(),
        rivals: Vec::new(),
        nodes: Vec::new(),
        claims: Claims::default(),
    }
}

pub(crate) fn gone(want: &Desired) -> Desired {
    Desired { goal: Goal::Gone, ..want.clone() }
}

pub(crate) fn edited(want: &Desired, edit: impl FnOnce(&mut ServiceView)) -> Desired {
    let mut service = (*want.service).clone();
    edit(&mut service);
    Desired { service: Arc::new(service), ..want.clone() }
}

/// Sets an annotation, or removes it.
pub(crate) fn annotated(want: &Desired, key: &str, value: Option<&str>) -> Desired {
    let key = if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") };
    edited(want, |service| match value {
        Some(value) => drop(service.annotations.insert(key, value.to_owned())),
        None => drop(service.annotations.remove(&key)),
    })
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A Cloud IP; `target` is the id of a load balancer.
pub(crate) fn cloud_ip(id: &str, name: &str, target: Option<(&str, &str)>) -> CloudIp {
    let host = id.trim_start_matches("cip-");
    let last = id.bytes().map(u32::from).sum::<u32>() % 200;
    let own = id == "cip-q4t9z";
    read(json!({
        "id": id, "name": name, "status": if target.is_some() { "mapped" } else { "unmapped" },
        "public_ipv4": if own { V4.to_owned() } else { format!("198.51.100.{last}") },
        "public_ipv6": if own { V6.to_owned() } else { format!("2001:db8::{last}") },
        "fqdn": format!("cip-{host}.gb1.brightbox.com"),
        "reverse_dns": if own { REVERSE.to_owned() } else { format!("cip-198-51-100-{last}.gb1.brightbox.com") },
        "load_balancer": target.map(|(id, name)| json!({"id": id, "name": name})),
        "server": null, "server_group": null, "database_server": null,
    }))
}

/// An empty account with these servers and a Cloud IP of the name, whose names lead to it.
pub(crate) fn account(servers: &[&str]) -> Observed {
    let mut observed = Observed { cloud_ips: vec![cloud_ip("cip-q4t9z", NAME, None)], ..Observed::default() };
    observed.servers.found = servers.iter().map(|id| (*id).to_owned()).collect();
    for name in [FQDN, REVERSE] {
        resolve(&mut observed, name, Lookup::Present(vec![ip(V4), ip(V6)]));
    }
    observed
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn resolve(observed: &mut Observed, name: &str, answer: Lookup<Vec<IpAddr>>) {
    observed.resolved.insert(name.to_owned(), answer);
}

pub(crate) fn decide(want: &Desired, observed: &Observed) -> Decision<Action> {
    decide_with(want, Some(observed), Switches::default())
}

/// What is refused of a Service that has nothing yet.
pub(crate) fn refused(service: ServiceView) -> Vec<String> {
    let refused = decide_with(&want(service), None, Switches::default()).refused;
    refused.iter().map(Refusal::to_string).collect()
}

pub(crate) struct Way {
    pub(crate) observed: Observed,
    pub(crate) acts: Vec<Action>,
    pub(crate) labels: Vec<String>,
    pub(crate) last: Decision<Action>,
}

/// At most `limit` steps.
pub(crate) fn walk(want: &Desired, observed: Observed, limit: usize) -> Way {
    walk_with(want, observed, limit, Switches::default())
}

fn walk_with(want: &Desired, observed: Observed, limit: usize, switches: Switches) -> Way {
    let (mut observed, mut acts, mut labels) = (observed, Vec::new(), Vec::new());
    for _ in 0..64 {
        let last = decide_with(want, Some(&observed), switches);
        let Next::Act(steps) = &last.next else { return Way { observed, acts, labels, last } };
        for step in steps {
            if acts.len() == limit {
                return Way { observed, acts, labels, last };
            }
            observed = fold(Some(observed), &step.act, &assume(&step.act)).unwrap();
            acts.push(step.act.clone());
            labels.push(step.label.clone());
        }
    }
    panic!("no rest: {labels:?}");
}

pub(crate) fn settle(want: &Desired, observed: Observed) -> Way {
    walk(want, observed, usize::MAX)
}

pub(crate) fn settle_with(want: &Desired, observed: Observed, switches: Switches) -> Way {
    walk_with(want, observed, usize::MAX, switches)
}

/// What a fresh look would show.
pub(crate) fn aged(observed: Observed) -> Observed {
    Observed { written: false, mapping: [].into(), unmapping: [].into(), ..observed }
}

/// What there is when everything is done; the Service says so.
pub(crate) fn built(want: &Desired, servers: &[&str]) -> (Desired, Observed) {
    let way = settle(want, account(servers));
    assert_eq!(way.last.next, Next::Converged, "{:?} {:?}", way.labels, way.last.refused);
    let recorded = way.last.publish.unwrap();
    let want = edited(want, |service| {
        service.annotations.extend(recorded.annotations);
        service.ingress = recorded.ingress.unwrap_or_default();
    });
    (want, aged(way.observed))
}

/// The load balancer that is created for a Service.
pub(crate) fn created(service: ServiceView, servers: &[&str]) -> Value {
    let way = settle(&want(service), account(servers));
    let new = way.acts.iter().find_map(|act| match act {
        Action::CreateBalancer(new) => Some(json!(new)),
        _ => None,
    });
    new.unwrap_or_else(|| panic!("{:?} {:?}", way.labels, way.last))
}

pub(crate) fn notices(decision: &Decision<Action>) -> Vec<String> {
    decision.notices.iter().map(|notice| format!("{}: {}", notice.reason, notice.message)).collect()
}
