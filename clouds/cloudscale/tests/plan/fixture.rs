//! Services, nodes and servers; and a cloud that takes one mutation at a time and insists on its rules.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use cloudberth_cloudscale::{
    Action, BackendInstances, Observed, ObservedBalancer, assume, backend_instance, fold, instance, read_id,
    selector,
    wire::{LoadBalancer, Named, Server},
};
use cloudberth_core::{
    NodeView, Result, ServiceView,
    decide::nodeset,
    lb::{Backend, Claims, Decision, Desired, Goal, Impact, Next, locate_among},
    view::{ServicePort, ServiceProtocol, ServiceType},
};
use cloudberth_http::{Flawed, Item};
use serde_json::{Value, json};

pub(crate) const PREFIX: &str = "k8s.cloudscale.ch/loadbalancer-";
pub(crate) const UID: &str = "2f0c2a4e-aaaa-4b3c-9d1e-0123456789ab";
pub(crate) const LB: &str = "c0ffee01-2d6b-4e55-8a7e-31f2a9b4d001";
pub(crate) const SUBNET: &str = "55ee0000-0000-4000-8000-000000000001";
pub(crate) const SUBNET_B: &str = "55ee0000-0000-4000-8000-000000000002";

pub(crate) fn port(name: &str, protocol: ServiceProtocol, port: i64, node_port: i64) -> ServicePort {
    ServicePort { name: name.to_owned(), protocol, port, node_port, ..ServicePort::default() }
}

pub(crate) fn tcp(name: &str, number: i64, node_port: i64) -> ServicePort {
    port(name, ServiceProtocol::Tcp, number, node_port)
}

pub(crate) fn udp(name: &str, number: i64, node_port: i64) -> ServicePort {
    port(name, ServiceProtocol::Udp, number, node_port)
}

/// A Service with these annotations; a key without a slash gets the prefix.
pub(crate) fn service(annotations: &[(&str, &str)]) -> ServiceView {
    let key = |key: &str| if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") };
    ServiceView {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: UID.to_owned(),
        service_type: ServiceType::LoadBalancer,
        annotations: annotations.iter().map(|(k, v)| (key(k), (*v).to_owned())).collect(),
        ports: vec![tcp("", 80, 30080)],
        ..ServiceView::default()
    }
}

pub(crate) fn server_uuid(number: usize) -> String {
    format!("3b1d8a52-6f0e-4c1b-9a57-{number:012}")
}

pub(crate) fn node(number: usize) -> NodeView {
    NodeView {
        name: format!("node-{number:03}"),
        provider_id: Some(format!("cloudscale://{}", server_uuid(number))),
        ..NodeView::default()
    }
}

/// A server with a public address and a private one.
pub(crate) fn server(number: usize) -> Value {
    json!({
        "href": "x", "uuid": server_uuid(number), "name": format!("node-{number:03}"), "status": "running",
        "zone": {"slug": "lpg1"}, "flavor": {"slug": "flex-4-2"}, "ssh_host_keys": null,
        "interfaces": [
            {"type": "public", "addresses": [
                {"version": 4, "address": format!("203.0.113.{number}"), "subnet": {"uuid": "22bb"}}]},
            {"type": "private", "addresses": [
                {"version": 4, "address": format!("10.0.0.{number}"), "subnet": {"uuid": SUBNET, "cidr": "10.0.0.0/24"}}]},
        ],
    })
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn servers(numbers: impl IntoIterator<Item = usize>) -> Vec<Server> {
    numbers.into_iter().map(|number| read(server(number))).collect()
}

/// The servers of the nodes that `want` names, from a complete listing of servers that can all be read.
pub(crate) fn instances_of<'a>(
    want: &Desired,
    servers: impl IntoIterator<Item = &'a Server>,
) -> Result<BackendInstances> {
    instances_among(want, servers, &[])
}

/// The same from a listing in which some cannot be read.
pub(crate) fn instances_among<'a>(
    want: &Desired,
    servers: impl IntoIterator<Item = &'a Server>,
    flawed: &[Flawed<Named>],
) -> Result<BackendInstances> {
    let whole = servers.into_iter().cloned().map(Item::Whole);
    let listed: Vec<_> =
        whole.chain(flawed.iter().cloned().map(Item::Flawed)).map(|one| instance(one).unwrap()).collect();
    locate_among(&want.backends, &listed, &[], read_id, backend_instance)
}

pub(crate) fn want(service: ServiceView, nodes: impl IntoIterator<Item = NodeView>) -> Desired {
    let selector = selector(&service).ok().flatten();
    let nodes: Vec<_> = nodes.into_iter().map(Arc::new).collect();
    let backends = nodeset::eligible::members(&nodes, |_| true, selector.as_ref());
    Desired {
        service: Arc::new(service),
        cluster: "kubernetes".to_owned(),
        goal: Goal::Present,
        backends: backends.into_iter().map(|node| Backend { node, local_endpoint: None }).collect(),
        rivals: Vec::new(),
        nodes: Vec::new(),
        claims: Claims::default(),
    }
}

/// A Service with these annotations, one port and two nodes.
pub(crate) fn plain(annotations: &[(&str, &str)]) -> Desired {
    want(service(annotations), [node(1), node(2)])
}

pub(crate) fn nodes(numbers: impl IntoIterator<Item = usize>) -> Vec<NodeView> {
    numbers.into_iter().map(node).collect()
}

/// The same wish for another version of the Service.
pub(crate) fn edited(want: &Desired, edit: impl FnOnce(&mut ServiceView)) -> Desired {
    let mut service = (*want.service).clone();
    edit(&mut service);
    Desired { service: Arc::new(service), ..want.clone() }
}

/// The same, with one more annotation.
pub(crate) fn annotated(want: &Desired, key: &str, value: &str) -> Desired {
    edited(want, |service| _ = service.annotations.insert(format!("{PREFIX}{key}"), value.to_owned()))
}

pub(crate) fn gone(want: &Desired) -> Desired {
    Desired { goal: Goal::Gone, backends: Vec::new(), ..want.clone() }
}

/// A look at a project without a load balancer for this Service.
pub(crate) fn absent(want: &Desired) -> Observed {
    look(want, None)
}

/// A look that shows `existing`.
pub(crate) fn look(want: &Desired, existing: Option<ObservedBalancer>) -> Observed {
    static PROJECT: LazyLock<Vec<Server>> = LazyLock::new(|| servers(1..=30));
    Observed { existing, instances: instances_of(want, PROJECT.iter()).unwrap() }
}

pub(crate) fn decide(want: &Desired, observed: &Observed) -> Decision<Action> {
    cloudberth_cloudscale::decide(want, Some(observed))
}

/// What happened on the way to rest.
pub(crate) struct Way {
    pub(crate) acts: Vec<Action>,
    pub(crate) labels: Vec<String>,
    pub(crate) worst: Impact,
    pub(crate) observed: Observed,
    pub(crate) last: Decision<Action>,
}

impl Way {
    pub(crate) fn existing(&self) -> ObservedBalancer {
        self.observed.existing.clone().unwrap()
    }

    pub(crate) fn refused(&self) -> Vec<&str> {
        self.last.refused.iter().map(|refusal| refusal.field.as_str()).collect()
    }

    pub(crate) fn warned(&self) -> Vec<&str> {
        self.last.notices.iter().map(|notice| notice.reason.name()).collect()
    }
}

/// Decide, carry out, fold, again, until at most `limit` mutations were made or nothing is left to do.
pub(crate) fn walk(want: &Desired, mut observed: Observed, limit: usize) -> Way {
    let (mut acts, mut labels, mut worst) = (Vec::new(), Vec::new(), Impact::None);
    for _ in 0..64 {
        let last = decide(want, &observed);
        let steps = match &last.next {
            Next::Act(steps) => steps.clone(),
            Next::Converged | Next::Wait { .. } => return Way { acts, labels, worst, observed, last },
        };
        if steps.iter().any(|step| step.creates) && !last.refused.is_empty() {
            return Way { acts, labels, worst, observed, last };
        }
        for step in steps {
            if acts.len() == limit {
                return Way { acts, labels, worst, observed, last };
            }
            insist(&observed, &step.act);
            let before = observed.clone();
            observed = fold(Some(observed), &step.act, &assume(&step.act)).unwrap();
            never_emptied(want, &before, &observed, &step.act);
            worst = worst.max(step.impact);
            acts.push(step.act);
            labels.push(step.label);
        }
    }
    panic!("no rest after: {labels:#?}");
}

pub(crate) fn settle(want: &Desired, observed: Observed) -> Way {
    walk(want, observed, usize::MAX)
}

/// A load balancer as we build it ourselves.
pub(crate) fn built(want: &Desired) -> ObservedBalancer {
    let way = settle(want, absent(want));
    assert!(way.last.refused.is_empty(), "{:?}", way.last.refused);
    aged(way.existing())
}

/// The same some time later: every thing has an id that the cloud gave it, and the load balancer is in a zone.
pub(crate) fn aged(mut existing: ObservedBalancer) -> ObservedBalancer {
    existing.new = false;
    LB.clone_into(&mut existing.balancer.uuid);
    let mut number = 0;
    let mut next = |uuid: &mut String| {
        number += 1;
        *uuid = format!("00000000-0000-4000-8000-{number:012}");
    };
    for pool in &mut existing.pools {
        next(&mut pool.pool.uuid);
        pool.members.iter_mut().for_each(|member| next(&mut member.uuid));
        pool.listeners.iter_mut().for_each(|listener| next(&mut listener.uuid));
        pool.monitors.iter_mut().for_each(|monitor| next(&mut monitor.uuid));
    }
    for ip in existing.floating_ips.iter_mut().filter_map(|ip| ip.load_balancer.as_mut()) {
        LB.clone_into(&mut ip.uuid);
    }
    existing
}

/// The labels of what is done about `want` where `existing` stands.
pub(crate) fn labels(want: &Desired, existing: &ObservedBalancer) -> Vec<String> {
    settle(want, look(want, Some(existing.clone()))).labels
}

/// The rules of the API: it answers 400 to what breaks one.
fn insist(observed: &Observed, act: &Action) {
    let Some(existing) = &observed.existing else {
        assert!(matches!(act, Action::CreateBalancer(_)), "there is nothing to {act:?}");
        return;
    };
    let pool = |uuid: &str| {
        let found = existing.pools.iter().find(|observed| observed.pool.uuid == uuid);
        found.unwrap_or_else(|| panic!("no pool {uuid} for {act:?}"))
    };
    let all = || existing.pools.iter().flat_map(|pool| &pool.listeners);
    match act {
        Action::CreateBalancer(_) => panic!("a second load balancer"),
        Action::CreateMember { pool: uuid, member } => {
            let taken = |m: &&cloudberth_cloudscale::wire::Member| {
                (&m.address, m.protocol_port) == (&member.address, member.protocol_port)
            };
            assert_eq!(
                pool(uuid).members.iter().find(taken),
                None,
                "the same address and port twice: {act:?}"
            );
        }
        Action::CreateListener(new) => {
            pool(&new.pool);
            let taken = all().any(|l| (&l.protocol, l.protocol_port) == (&new.protocol, new.protocol_port));
            assert!(!taken, "two listeners on one port: {act:?}");
        }
        Action::CreateMonitor(new) => {
            assert!(pool(&new.pool).monitors.is_empty(), "two monitors of one pool: {act:?}");
            let http = matches!(new.kind.as_str(), "http" | "https");
            assert!(http || new.http == cloudberth_cloudscale::wire::NewHttp::default(), "{act:?}");
        }
        Action::DeleteMember { pool: uuid, member } => {
            assert!(pool(uuid).members.iter().any(|m| m.uuid == *member), "{act:?}");
        }
        Action::DeleteListener { listener } | Action::UpdateListener { listener, .. } => {
            assert!(all().any(|l| l.uuid == *listener), "{act:?}");
        }
        Action::DeletePool { pool: uuid } => _ = pool(uuid),
        _ => {}
    }
}

/// A pool that keeps a listener loses its last member only for its own successor, or because nobody is wanted.
fn never_emptied(want: &Desired, before: &Observed, after: &Observed, act: &Action) {
    let (Action::DeleteMember { pool, .. }, Some(before), Some(after)) =
        (act, &before.existing, &after.existing)
    else {
        return;
    };
    let find = |existing: &ObservedBalancer| {
        existing.pools.iter().find(|observed| observed.pool.uuid == *pool).cloned().unwrap()
    };
    if !find(after).members.is_empty() || want.backends.is_empty() {
        return;
    }
    let now = Observed { existing: Some(after.clone()), ..look(want, None) };
    let Next::Act(steps) = decide(want, &now).next else { return };
    let last = &find(before).members[0];
    let back = steps.iter().any(
        |step| matches!(&step.act, Action::CreateMember { member, .. } if member.address == last.address),
    );
    let none_wanted = !steps.iter().any(|step| matches!(&step.act, Action::CreateMember { .. }));
    assert!(back || none_wanted, "pool {pool} was emptied by {act:?}");
}

pub(crate) fn balancer(uuid: &str, name: &str) -> LoadBalancer {
    read(json!({"uuid": uuid, "name": name, "status": "running", "zone": {"slug": "lpg1"},
        "flavor": {"slug": "lb-standard"}, "tags": {}, "vip_addresses": [
            {"version": 4, "address": "203.0.113.90", "subnet": {"uuid": "22bb"}},
            {"version": 6, "address": "2001:db8:10::90", "subnet": {"uuid": "33cc"}}]}))
}

pub(crate) fn strings(map: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    map.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
}
