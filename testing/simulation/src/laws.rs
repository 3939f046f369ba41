//! The laws, as questions to the logs of a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    time::Duration,
};

use cloudberth_core::Tick;
use cloudberth_fake::{Balancer, CallRecord, PowerState};
use embedded_kube::Call;
use serde_json::Value;

use crate::{
    people::{CLUSTER, FOREIGN},
    replica::PROGRAM,
    world::World,
};

/// The window of the cap on deletions of nodes, by the fastest clock there is.
const WINDOW: Duration = Duration::from_secs(599);
/// How long after a node was there again a route to the one before it may still be removed: the decision was under way.
const AFTERTHOUGHT: Duration = Duration::from_secs(90);
/// A leader may list a cloud's instances this often at rest, on average.
const LISTING: Duration = Duration::from_secs(300);
/// How much more often where nodes are not Ready: a new leader looks after them in growing intervals.
const FOR_NOT_READY: usize = 10;

/// Everything that can be told from the logs alone.
pub(crate) fn broken(world: &World) -> Vec<String> {
    let mut wrong = world.witness.wrong();
    wrong.extend(haste(world));
    wrong.extend(trespasses(world));
    wrong.extend(taken(world));
    wrong.extend(deletions(world));
    wrong.extend(lost_routes(world));
    wrong.extend(leadership(world));
    wrong.extend(let_go(world));
    wrong
}

/// Law 2: one replica lets the nodes of a cloud go no faster than the cap, by the times at which the API server carried the
/// deletions out. The clusters here are so small that it is one in ten minutes. What another replica did, it cannot know.
fn haste(world: &World) -> Vec<String> {
    let all = world.witness.deletions();
    let pairs =
        all.iter().enumerate().flat_map(|(n, first)| all.iter().skip(n + 1).map(move |next| (first, next)));
    let hasty = pairs.filter(|(first, next)| {
        !first.undone
            && first.who == next.who
            && first.cloud == next.cloud
            && next.at.since(first.at) < WINDOW
    });
    let words = |(first, next): (&crate::witness::Deletion, &crate::witness::Deletion)| {
        format!(
            "law 2: {} deleted {} and {} within {:?}",
            next.who,
            first.node,
            next.node,
            next.at.since(first.at)
        )
    };
    hasty.map(words).collect()
}

/// Law 3: what is somebody else's is never written.
fn trespasses(world: &World) -> Vec<String> {
    let calls = world.api.calls(0);
    let written = calls.iter().filter(|call| by_program(call) && call.is_write());
    let foreign = written.filter(|call| {
        matches!(call.resource.as_str(), "nodes" | "services") && call.name.starts_with(FOREIGN)
    });
    foreign.map(|call| format!("law 3: {} of {} {}", call.verb, call.resource, call.name)).collect()
}

/// Law 3: load balancers of others are as they were built.
fn taken(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for (cloud, built) in &world.foreign {
        let named_cloud = world.clouds.iter().find(|named_cloud| named_cloud.name == *cloud);
        let there = named_cloud
            .into_iter()
            .flat_map(|named_cloud| named_cloud.cloud.balancers())
            .find(|b| b.id == built.id);
        let Some(there) = there else {
            wrong.push(format!("law 3: {} ({}), which is somebody else's, is gone", built.id, built.name));
            continue;
        };
        if there != (Balancer { ready: there.ready, ..built.clone() }) {
            wrong
                .push(format!("law 3: {} ({}), which is somebody else's, was changed", built.id, built.name));
        }
    }
    wrong
}

/// Law 5: no load balancer was deleted whose owner had not said so.
fn deletions(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for named_cloud in world.clouds.iter() {
        let calls = named_cloud.cloud.calls();
        for deletion in calls.iter().filter(|c| is_ours(c) && c.operation == "delete balancer") {
            let known = named_cloud.cloud.name_of_balancer(&deletion.subject);
            let uid = known.as_deref().and_then(|name| name.strip_prefix(CLUSTER)?.strip_prefix('-'));
            let spans = uid.and_then(|uid| world.condemned.get(uid)).map(Vec::as_slice).unwrap_or_default();
            let within = |(from, until): &(Tick, Option<Tick>)| {
                *from <= deletion.at && until.is_none_or(|until| deletion.at < until)
            };
            let demolished = world.demolished.contains(&(named_cloud.name, deletion.subject.clone()));
            if !spans.iter().any(within) && !demolished {
                wrong.push(format!("law 5: {} was deleted although its Service wants it", deletion.subject));
            }
        }
    }
    wrong
}

/// Whether something was done, and in the cluster's own account.
fn is_ours(call: &CallRecord) -> bool {
    call.outcome == "ok" && !call.elsewhere
}

/// Law 5: no route was deleted whose node was there.
fn lost_routes(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for call in world.clouds.iter().flat_map(|named_cloud| named_cloud.cloud.calls()) {
        if call.operation != "change routes" || !is_ours(&call) {
            continue;
        }
        for node in call.subject.split(", ").filter_map(|change| change.strip_prefix('-')) {
            let node = node.split(' ').next().unwrap_or_default();
            if was_there(world, node, call.at) {
                wrong.push(format!("law 5: the route to {node} was deleted at {:?}", call.at.0));
            }
        }
    }
    wrong
}

/// Whether a node was there all the time shortly before `at`.
fn was_there(world: &World, node: &str, at: Tick) -> bool {
    let deletions = world.witness.deletions();
    let lives = world.lives.get(node).map(Vec::as_slice).unwrap_or_default();
    lives.iter().any(|(born, died)| {
        let killed = deletions.iter().find(|d| d.node == node && d.at >= *born).map(|d| d.at);
        let end = [*died, killed].into_iter().flatten().min();
        *born + AFTERTHOUGHT < at && end.is_none_or(|end| at < end)
    })
}

/// Law 9, by true time, which no replica knows:
///
/// - A write leaves a replica, for Kubernetes or for a cloud, only while the Lease as the API server stores it names
///   that replica. So no write is sent after another could have begun.
/// - At the instant at which the stored Lease comes to name somebody else, or nobody, no other replica holds a claim
///   that is still good by its own clock. No call outlives its sender's claim, so nothing that was sent before is still
///   being waited for. (The witness has seen to that.)
///
/// What was sent in time may be carried out later; it was under way, and nobody acts on its answer any more.
fn leadership(world: &World) -> Vec<String> {
    let kube = world.witness.sent().into_iter().map(|write| (write.at, write.who, write.what));
    let calls =
        world.clouds.iter().flat_map(|named_cloud| named_cloud.cloud.calls()).filter(|call| call.write);
    let cloud = calls.map(|call| (call.sent, call.who, call.operation.to_owned()));
    let stray = kube.chain(cloud).filter_map(|(at, who, what)| {
        let holder = world.witness.holder_at(at);
        let wrong = format!("law 9: {who} sent {what} at {:?} while the lease named {holder:?}", at.0);
        (holder != who).then_some(wrong)
    });
    stray.collect()
}

/// Law 9: whoever lets go of the Lease waits for no answer of a cloud any more, to a write that may still take effect.
/// A Lease that runs out is no such promise.
fn let_go(world: &World) -> Vec<String> {
    let calls: Vec<_> =
        world.clouds.iter().flat_map(|named_cloud| named_cloud.cloud.calls()).filter(|c| c.write).collect();
    let mut wrong = Vec::new();
    for (at, who) in world.witness.released() {
        let under_way = |c: &&CallRecord| c.who == who && c.sent < at && at < c.at.min(c.until);
        wrong.extend(calls.iter().filter(under_way).map(|c| {
            format!("law 9: {who} let go of the lease at {:?} while its {} was under way", at.0, c.operation)
        }));
    }
    wrong
}

/// What the program has written and told so far; the Lease aside.
pub(crate) struct Writes {
    /// To Kubernetes and to the clouds, in words.
    calls: BTreeSet<String>,
    /// How often each thing was told about each object: the object, the type of the event, its reason.
    told: BTreeMap<[String; 3], u64>,
}

pub(crate) fn writes(world: &World) -> Writes {
    let calls = world.api.calls(0);
    let kube = calls.iter().filter(|c| by_program(c) && c.is_write() && c.resource != "events");
    let kube = kube.map(|c| format!("{} {}/{} {} at {}", c.verb, c.resource, c.subresource, c.name, c.at));
    let clouds = world.clouds.iter().flat_map(|named_cloud| named_cloud.cloud.calls()).filter(|c| c.write);
    let clouds = clouds.map(|c| format!("{} {} {} at {:?}", c.who, c.operation, c.subject, c.at.0));
    let mut told = BTreeMap::new();
    for event in world.api.objects("events") {
        let text = |path| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text("/involvedObject/kind") != "Lease" {
            let key = [text("/involvedObject/name"), text("/type"), text("/reason")];
            *told.entry(key).or_default() += event.pointer("/count").and_then(Value::as_u64).unwrap_or(1);
        }
    }
    Writes { calls: kube.chain(clouds).collect(), told }
}

/// The Services that the program wrote to, in order.
pub(crate) fn service_writes(world: &World) -> Vec<String> {
    let calls = world.api.calls(0);
    let writes = calls.iter().filter(|c| by_program(c) && c.is_write() && c.resource == "services");
    writes.map(|c| format!("{}/{}", c.namespace, c.name)).collect()
}

/// Law 4: what was written after the world had come to rest. A new leader may say once more what is still wrong with an
/// object: it does not know who was told, and by then the event may have expired.
pub(crate) fn restless(before: &Writes, after: &Writes) -> Vec<String> {
    let written = after.calls.difference(&before.calls).cloned();
    let told = after.told.iter().filter_map(|(key, count)| {
        let [object, kind, reason] = key;
        let allowed = u64::from(kind == "Warning");
        let new = count.saturating_sub(before.told.get(key).copied().unwrap_or_default());
        (new > allowed).then(|| format!("{object} was told {reason} {new} times"))
    });
    written.chain(told).map(|what| format!("law 4: at rest, {what}")).collect()
}

/// Law 7: in the `quiet` time since `since`, instances are listed now and then and never asked about one by one.
pub(crate) fn questions(world: &World, since: Tick, quiet: Duration) -> Vec<String> {
    let regular = usize::try_from(quiet.as_secs() / LISTING.as_secs()).unwrap_or(usize::MAX);
    let mut wrong = Vec::new();
    for named_cloud in world.clouds.iter() {
        let off = named_cloud.cloud.instances().iter().any(|instance| instance.state == PowerState::Stopped);
        let allowed = if off { regular + FOR_NOT_READY } else { regular };
        let calls = named_cloud.cloud.calls();
        let count = |operation| calls.iter().filter(|c| c.at > since && c.operation == operation).count();
        let (listings, questions) = (count("list instances"), count("get instance"));
        if listings > allowed || questions > 0 {
            wrong.push(format!(
                "law 7: {listings} listings of instances of {} and {questions} look-ups in {quiet:?} of quiet",
                named_cloud.name
            ));
        }
    }
    wrong
}

fn by_program(call: &Call) -> bool {
    call.user_agent.starts_with(PROGRAM) && call.resource != "leases"
}

/// Everything that was asked of anybody, in order: equal for equal seeds, to the byte.
pub(crate) fn log(world: &World) -> String {
    let mut text = String::new();
    for c in world.api.calls(0) {
        let _ = writeln!(
            text,
            "{} kube {} {} {}/{} {}/{} {:?}",
            c.at, c.user_agent, c.verb, c.resource, c.subresource, c.namespace, c.name, c.outcome
        );
    }
    for named_cloud in world.clouds.iter() {
        for c in named_cloud.cloud.calls() {
            let at = c.at.0.as_micros();
            let _ = writeln!(
                text,
                "{at} {} {} {} {} {}",
                named_cloud.name, c.who, c.operation, c.subject, c.outcome
            );
        }
    }
    text
}
