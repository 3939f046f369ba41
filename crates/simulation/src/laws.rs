//! The laws, as questions to a world that has come to rest and to its logs.

use std::collections::BTreeSet;

use cloudberth_core::{ServiceView, decide::service::FINALIZER, lb::INTENT_ANNOTATION, view::ServiceType};
use cloudberth_fake::{ALGORITHM, BALANCER_ID, Balancer, TABLE};
use cloudberth_sim::kube::Call;

use crate::{program::CLUSTER, replica::PROGRAM, world::World};

/// What is not yet as it should be; empty once the world has come to rest.
pub(crate) async fn unfinished(world: &World) -> Result<Vec<String>, String> {
    let services = world.all_services().await?;
    let machines = world.eligible_machines().await?;
    let mut wrong = Vec::new();
    let mut balancers = world.cloud.balancers();
    for service in &services {
        let name = format!("{CLUSTER}-{}", service.uid);
        let mine: Vec<_> = balancers.extract_if(.., |b| b.name == name).collect();
        let key = service.key();
        if service.deleting {
            wrong.push(format!("{key} is still being deleted"));
        }
        if service.annotations.contains_key(INTENT_ANNOTATION) {
            wrong.push(format!("{key} still carries an intent"));
        }
        match (&service.service_type, mine.as_slice()) {
            (ServiceType::LoadBalancer, [one]) => differences(service, one, &machines, &mut wrong),
            // What asks for the impossible gets nothing, until it asks for something else.
            (ServiceType::LoadBalancer, []) if !TABLE.parse(&service.annotations).refused.is_empty() => {}
            (ServiceType::LoadBalancer, several) => {
                wrong.push(format!("{key} has {} load balancers", several.len()));
            }
            (_, []) => released(service, &mut wrong),
            (_, several) => wrong.push(format!("{key} left {} load balancers", several.len())),
        }
    }
    wrong.extend(balancers.iter().map(|b| format!("load balancer {} ({}) belongs to nobody", b.id, b.name)));
    Ok(wrong)
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
    service: &ServiceView,
    balancer: &Balancer,
    machines: &BTreeSet<String>,
    wrong: &mut Vec<String>,
) {
    let key = service.key();
    let wanted: BTreeSet<_> = service.ports.iter().map(|p| (p.port, p.node_port)).collect();
    let open: BTreeSet<_> = balancer.listeners.values().map(|l| (l.port, l.node_port)).collect();
    if wanted != open {
        wrong.push(format!("{key} wants ports {wanted:?} and has {open:?}"));
    }
    let members: BTreeSet<_> = balancer.members.values().cloned().collect();
    if members != *machines || members.len() != balancer.members.len() {
        wrong.push(format!("{key} has members {members:?} instead of {machines:?}"));
    }
    let parsed = TABLE.parse(&service.annotations);
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

/// Law 5: nothing was deleted whose owner had not said so.
pub(crate) fn deletions(world: &World) -> Vec<String> {
    let calls = world.cloud.calls();
    let deletions = calls.iter().filter(|c| c.operation == "delete balancer" && c.outcome == "ok");
    let mut wrong = Vec::new();
    for deletion in deletions {
        let known = world.cloud.name_of_balancer(&deletion.subject);
        let uid =
            known.as_deref().and_then(|name| name.strip_prefix(&format!("{CLUSTER}-")).map(str::to_owned));
        let allowed =
            uid.and_then(|uid| world.condemned.get(&uid).copied()).is_some_and(|at| at <= deletion.at);
        if !allowed && !world.demolished.contains(&deletion.subject) {
            wrong.push(format!("law 5: {} was deleted although its Service wants it", deletion.subject));
        }
    }
    wrong
}

/// Law 9, by true time, which no replica knows:
///
/// - A write leaves a replica, for Kubernetes or for the cloud, only while the Lease as the API server stores it names
///   that replica. So no write is sent after another could have begun.
/// - At the instant at which the stored Lease comes to name somebody else, or nobody, no other replica holds a claim
///   that is still good by its own clock. No call outlives its sender's claim, so nothing that was sent before is still
///   being waited for.
///
/// What was sent in time may be carried out later; it was under way, and nobody acts on its answer any more.
pub(crate) fn leadership(world: &World) -> Vec<String> {
    let kube = world.witness.sent().into_iter().map(|write| (write.at, write.who, write.what));
    let calls = world.cloud.calls().into_iter().filter(|call| call.write);
    let cloud = calls.map(|call| (call.sent, call.who, call.operation.to_owned()));
    let stray = kube.chain(cloud).filter_map(|(at, who, what)| {
        let holder = world.witness.holder_at(at);
        let wrong = format!("law 9: {who} sent {what} at {:?} while the lease named {holder:?}", at.0);
        (holder != who).then_some(wrong)
    });
    world.witness.wrong().into_iter().chain(stray).collect()
}

/// How many writes the program has made so far, to Kubernetes and to the cloud. The Lease aside.
pub(crate) fn writes(world: &World) -> (usize, usize) {
    let kube = world.api.calls(0).iter().filter(|c| by_program(c) && c.is_write()).count();
    let cloud = world.cloud.calls().iter().filter(|c| c.write).count();
    (kube, cloud)
}

fn by_program(call: &Call) -> bool {
    call.user_agent.starts_with(PROGRAM) && call.resource != "leases"
}

/// Everything that was asked of both, in order: equal for equal seeds, to the byte.
pub(crate) fn log(world: &World) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for c in world.api.calls(0) {
        let _ = writeln!(
            text,
            "{} kube {} {} {}/{} {}/{} {:?}",
            c.at, c.user_agent, c.verb, c.resource, c.subresource, c.namespace, c.name, c.outcome
        );
    }
    for c in world.cloud.calls() {
        let at = c.at.0.as_micros();
        let _ = writeln!(text, "{at} cloud {} {} {} {}", c.who, c.operation, c.subject, c.outcome);
    }
    text
}
