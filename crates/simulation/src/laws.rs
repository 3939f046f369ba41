//! The laws, as questions to the logs of a run.

use std::{fmt::Write, time::Duration};

use cloudberth_core::Tick;
use cloudberth_sim::kube::Call;
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
/// How often a leader may list a cloud's machines in a quiet hour.
pub(crate) const LISTINGS: usize = 12;

/// Everything that can be told from the logs alone.
pub(crate) fn broken(world: &World) -> Vec<String> {
    let mut wrong = world.witness.wrong();
    wrong.extend(haste(world));
    wrong.extend(trespasses(world));
    wrong.extend(deletions(world));
    wrong.extend(lost_routes(world));
    wrong.extend(leadership(world));
    wrong
}

/// Law 2: within one term of leadership, nodes of a cloud go no faster than the cap. The clusters here are so small that
/// it is one in ten minutes.
fn haste(world: &World) -> Vec<String> {
    let all = world.witness.deletions();
    let pairs =
        all.iter().enumerate().flat_map(|(n, first)| all.iter().skip(n + 1).map(move |next| (first, next)));
    let hasty = pairs.filter(|(first, next)| {
        let same_term = world.witness.term_at(first.at) == world.witness.term_at(next.at);
        same_term && first.cloud == next.cloud && next.at.since(first.at) < WINDOW
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

/// Law 5: no load balancer was deleted whose owner had not said so.
fn deletions(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for patch in world.sky.iter() {
        let calls = patch.cloud.calls();
        for deletion in calls.iter().filter(|c| c.operation == "delete balancer" && c.outcome == "ok") {
            let known = patch.cloud.name_of_balancer(&deletion.subject);
            let uid = known.as_deref().and_then(|name| name.strip_prefix(CLUSTER)?.strip_prefix('-'));
            let condemned = uid.and_then(|uid| world.condemned.get(uid).copied());
            let demolished = world.demolished.contains(&(patch.name, deletion.subject.clone()));
            if condemned.is_none_or(|at| at > deletion.at) && !demolished {
                wrong.push(format!("law 5: {} was deleted although its Service wants it", deletion.subject));
            }
        }
    }
    wrong
}

/// Law 5: no route was deleted whose node was there.
fn lost_routes(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for call in world.sky.iter().flat_map(|patch| patch.cloud.calls()) {
        if call.operation != "change routes" || call.outcome != "ok" {
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
    let calls = world.sky.iter().flat_map(|patch| patch.cloud.calls()).filter(|call| call.write);
    let cloud = calls.map(|call| (call.sent, call.who, call.operation.to_owned()));
    let stray = kube.chain(cloud).filter_map(|(at, who, what)| {
        let holder = world.witness.holder_at(at);
        let wrong = format!("law 9: {who} sent {what} at {:?} while the lease named {holder:?}", at.0);
        (holder != who).then_some(wrong)
    });
    stray.collect()
}

/// The writes that the program has made so far, in words: to Kubernetes, events, to the clouds. The Lease aside, and what
/// is told about it.
pub(crate) fn writes(world: &World) -> [Vec<String>; 3] {
    let calls = world.api.calls(0);
    let kube = calls.iter().filter(|c| by_program(c) && c.is_write() && c.resource != "events");
    let kube = kube.map(|c| format!("{} {}/{} {} at {}", c.verb, c.resource, c.subresource, c.name, c.at));
    let events = world.api.objects("events");
    let field = |event: &Value, path| event.pointer(path).map(Value::to_string).unwrap_or_default();
    let told = events.iter().filter(|event| field(event, "/involvedObject/kind") != r#""Lease""#);
    let told = told
        .map(|e| ["/metadata/name", "/reason", "/count"].map(|path| field(e, path)).join(" "))
        .map(|e| format!("event {e}"));
    let clouds = world.sky.iter().flat_map(|patch| patch.cloud.calls()).filter(|c| c.write);
    let clouds = clouds.map(|c| format!("{} {} {} at {:?}", c.who, c.operation, c.subject, c.at.0));
    [kube.collect(), told.collect(), clouds.collect()]
}

/// Law 7: in a quiet hour that began at `since`, machines are listed now and then and never asked about one by one.
pub(crate) fn questions(world: &World, since: Tick) -> Vec<String> {
    let mut wrong = Vec::new();
    for patch in world.sky.iter() {
        let calls = patch.cloud.calls();
        let count = |operation| calls.iter().filter(|c| c.at > since && c.operation == operation).count();
        let (listings, questions) = (count("list machines"), count("get machine"));
        if listings > LISTINGS || questions > 0 {
            wrong.push(format!(
                "law 7: {} listings of machines and {questions} look-ups in a quiet hour of {}",
                listings, patch.name
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
    for patch in world.sky.iter() {
        for c in patch.cloud.calls() {
            let at = c.at.0.as_micros();
            let _ =
                writeln!(text, "{at} {} {} {} {} {}", patch.name, c.who, c.operation, c.subject, c.outcome);
        }
    }
    text
}
