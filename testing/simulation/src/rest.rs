//! What is not yet as it should be. A world at rest has nothing of it.

use std::collections::BTreeSet;

use cloudberth_core::{
    NodeView, ServiceView,
    decide::{
        node::taints::{SHUTDOWN, UNINITIALISED},
        nodeset::eligible::member,
        service::FINALIZER,
    },
    lb::INTENT_ANNOTATION,
    view::{Ready, ServiceType},
};
use cloudberth_fake::{ALGORITHM, BALANCER_ID, Balancer, FakeInstance, NODE_SELECTOR, PowerState, TABLE};

use crate::{
    clouds::{NAMES, NamedCloud},
    people::{CLUSTER, FOREIGN, class},
    touchy::odd_id,
    world::World,
};

const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";

/// What is not yet as it should be.
pub(crate) async fn unfinished(world: &World) -> Result<Vec<String>, String> {
    let services = world.people.all_services().await?;
    let nodes = world.people.all_nodes().await?;
    let mut wrong = Vec::new();
    for node in nodes.iter().filter(|node| !node.name.starts_with(FOREIGN)) {
        match world.clouds.named(&node.name) {
            Some((id, instance)) => about_node(node, &id, &instance, &mut wrong),
            None => wrong.push(format!("{} is still there without an instance", node.name)),
        }
    }
    for named_cloud in world.clouds.iter() {
        about_routes(named_cloud, &nodes, &mut wrong);
        about_balancers(world, named_cloud, &services, &nodes, &mut wrong);
    }
    for service in &services {
        let key = service.key();
        if service.deleting {
            wrong.push(format!("{key} is still being deleted"));
        }
        if service.annotations.contains_key(INTENT_ANNOTATION) {
            wrong.push(format!("{key} still carries an intent"));
        }
    }
    Ok(wrong)
}

/// How many nodes wait for nothing but the cap, at the most: their instances are gone.
pub(crate) async fn dead(world: &World) -> u32 {
    let nodes = world.people.all_nodes().await.unwrap_or_default();
    let dead = nodes.iter().filter(|node| world.clouds.named(&node.name).is_none());
    u32::try_from(dead.filter(|node| !node.name.starts_with(FOREIGN)).count()).unwrap_or(u32::MAX)
}

fn about_node(node: &NodeView, id: &str, instance: &FakeInstance, wrong: &mut Vec<String>) {
    let name = &node.name;
    if node.has_taint(UNINITIALISED) {
        wrong.push(format!("{name} is not initialised"));
        return;
    }
    if node.provider_id.as_deref() != Some(id) {
        wrong.push(format!("{name} carries {:?} instead of {id}", node.provider_id));
    }
    for (key, value) in [(INSTANCE_TYPE, &instance.flavor), (ZONE, &instance.zone)] {
        if node.labels.get(key) != Some(value) {
            wrong.push(format!("{name} has {key}={:?} instead of {value}", node.labels.get(key)));
        }
    }
    if !node.addresses.iter().any(|address| address.address() == instance.private_ip) {
        wrong.push(format!("{name} lacks its address {}", instance.private_ip));
    }
    let stopped = instance.state == PowerState::Stopped;
    if stopped && node.ready == Ready::True {
        // Its kubelet has not been missed yet. What follows from that is still to come.
        wrong.push(format!("{name} is switched off and still says that it is Ready"));
    } else if node.has_taint(SHUTDOWN) != stopped {
        wrong.push(format!("{name} has the shutdown taint: {}, and should: {stopped}", !stopped));
    }
    if node.network_unavailable.as_ref().is_none_or(|condition| condition.status != "False") {
        wrong.push(format!("the network of {name} is not said to be there"));
    }
}

fn owned(node: &NodeView, cloud: &str) -> bool {
    if node.provider_id == Some(odd_id(cloud)) {
        // Nobody can read it, so it is nobody's.
        return false;
    }
    node.provider_id.as_deref().and_then(|id| id.split_once("://")).is_some_and(|(scheme, _)| scheme == cloud)
}

fn about_routes(named_cloud: &NamedCloud, nodes: &[NodeView], wrong: &mut Vec<String>) {
    let mine = nodes.iter().filter(|node| owned(node, named_cloud.name));
    let mut wanted: Vec<_> =
        mine.flat_map(|node| node.pod_cidrs.iter().map(|cidr| (node.name.clone(), cidr.clone()))).collect();
    let mut there: Vec<_> =
        named_cloud.cloud.routes().into_iter().map(|route| (route.instance, route.destination)).collect();
    wanted.sort();
    there.sort();
    if wanted != there {
        wrong.push(format!("{} has routes {there:?} instead of {wanted:?}", named_cloud.name));
    }
}

fn about_balancers(
    world: &World,
    named_cloud: &NamedCloud,
    services: &[ServiceView],
    nodes: &[NodeView],
    wrong: &mut Vec<String>,
) {
    let mut balancers = named_cloud.cloud.balancers();
    let orphaned = |b: &Balancer| world.orphaned.contains(&(named_cloud.name, b.id.clone()));
    for service in services.iter().filter(|service| !service.name.starts_with(FOREIGN)) {
        let key = service.key();
        let name = format!("{CLUSTER}-{}", service.uid);
        let mine: Vec<_> = balancers.extract_if(.., |b| b.name == name).collect();
        let wants = service.service_type == ServiceType::LoadBalancer && serves(named_cloud, service);
        match (wants, mine.as_slice()) {
            (true, [one]) => differences(named_cloud, service, one, nodes, wrong),
            // What asks for the impossible gets nothing, until it asks for something else.
            (true, []) if !TABLE.parse(&service.annotations).refused.is_empty() => {}
            (true, several) => {
                wrong.push(format!(
                    "law 6: {key} has {} load balancers with {}",
                    several.len(),
                    named_cloud.name
                ));
            }
            (false, []) if service.service_type != ServiceType::LoadBalancer => released(service, wrong),
            (false, []) => {}
            // Its backup knew of none, so nobody looks for them until it wants one again.
            (false, several) if several.iter().all(orphaned) => {}
            (false, several) => {
                wrong.push(format!(
                    "law 6: {key} left {} load balancers with {}",
                    several.len(),
                    named_cloud.name
                ));
            }
        }
    }
    balancers.retain(|b| !world.foreign.iter().any(|(cloud, f)| *cloud == named_cloud.name && f.id == b.id));
    balancers.retain(|b| !orphaned(b));
    let leaked = |b: &Balancer| format!("law 6: load balancer {} ({}) belongs to nobody", b.id, b.name);
    wrong.extend(balancers.iter().map(leaked));
}

fn serves(named_cloud: &NamedCloud, service: &ServiceView) -> bool {
    let [default, _] = NAMES;
    match &service.class {
        Some(asked) => *asked == class(named_cloud.name),
        None => named_cloud.name == default,
    }
}

fn released(service: &ServiceView, wrong: &mut Vec<String>) {
    let key = service.key();
    if service.finalizers.iter().any(|f| f == FINALIZER) {
        wrong.push(format!("{key} is still held"));
    }
    if !service.ingress.is_empty() {
        wrong.push(format!("{key} still shows an address"));
    }
}

fn differences(
    named_cloud: &NamedCloud,
    service: &ServiceView,
    balancer: &Balancer,
    nodes: &[NodeView],
    wrong: &mut Vec<String>,
) {
    let key = service.key();
    let wanted: BTreeSet<_> = service.ports.iter().map(|p| (p.port, p.node_port)).collect();
    let open: BTreeSet<_> = balancer.listeners.values().map(|l| (l.port, l.node_port)).collect();
    if wanted != open {
        wrong.push(format!("{key} wants ports {wanted:?} and has {open:?}"));
    }
    let parsed = TABLE.parse(&service.annotations);
    let selector = parsed.get(&NODE_SELECTOR).set();
    let chosen = nodes.iter().filter(|node| member(node, owned(node, named_cloud.name), selector.as_ref()));
    let ids = chosen.filter_map(|node| node.provider_id.as_deref()?.split_once("://"));
    let instances: BTreeSet<_> = ids.map(|(_, id)| id.to_owned()).collect();
    let members: BTreeSet<_> = balancer.members.values().cloned().collect();
    if members != instances || members.len() != balancer.members.len() {
        wrong.push(format!("{key} has members {members:?} instead of {instances:?}"));
    }
    let algorithm = parsed.settle(&ALGORITHM, None).unwrap_or_default();
    if parsed.refused.is_empty() && algorithm != balancer.algorithm {
        wrong.push(format!("{key} wants {algorithm} and has {}", balancer.algorithm));
    }
    if parsed.get(&BALANCER_ID).set().as_ref() != Some(&balancer.id) {
        wrong.push(format!("{key} does not record {}", balancer.id));
    }
    if !service.finalizers.iter().any(|f| f == FINALIZER) {
        wrong.push(format!("{key} is not held"));
    }
    let shown: Vec<_> = service.ingress.iter().filter_map(|i| i.ip.as_deref()).collect();
    if shown != [balancer.address.as_str()] {
        wrong.push(format!("{key} shows {shown:?} instead of {}", balancer.address));
    }
}
