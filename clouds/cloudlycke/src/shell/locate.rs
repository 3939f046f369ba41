//! The machines of the nodes behind a load balancer.
//!
//! Unlike the nodes themselves they need not be described whole: where a machine's state is unknown, its address is known,
//! and traffic goes on.

use cloudberth_core::{
    Call, Category, Error, Instance, Lookup, NodeView, ProviderId, Result,
    lb::{Backend, Fleet, Located, SharedInstances},
    provider_id::Reading,
};
use futures_util::future::join_all;

use crate::{
    id::read_id,
    machines::{facts, is_elsewhere},
    observed::BackendMachine,
};

/// What is known of a node's machine.
enum Machine<'a> {
    Listed(&'a Instance),
    /// The listing lacks it.
    Lacking(ProviderId),
    /// It has none, for this reason.
    None(String),
    /// The node is another cloud's.
    NotOurs,
}

fn machine<'a>(node: &NodeView, listed: &'a [Instance]) -> Machine<'a> {
    let Some(text) = node.provider_id.as_deref() else {
        let mut named = listed.iter().filter(|instance| instance.name == node.name);
        return match named.next() {
            Some(instance) => Machine::Listed(instance),
            None => Machine::None("no machine of the inventory has its name".to_owned()),
        };
    };
    let known = |id: &ProviderId| listed.iter().find(|instance| instance.id == *id);
    match read_id(text) {
        Reading::Mine(id) => known(&id).map_or_else(|| Machine::Lacking(id), Machine::Listed),
        Reading::Malformed => Machine::None(format!("its provider id {text:?} cannot be read")),
        Reading::Foreign => {
            let id = text.parse().ok();
            id.and_then(|id| known(&id)).map_or(Machine::NotOurs, Machine::Listed)
        }
    }
}

/// How many machines that the listing lacks are looked up. If all of them are absent, the others are taken to be absent too.
const ASKED: usize = 16;

/// Finds the machines of nodes. One that the listing lacks is looked up before its node is left out, and nobody is left out
/// unless `cluster` says that the cluster is in the inventory still: where that is gone or goes by another name, all its
/// machines look like those of nobody, or of somebody else (law 1).
///
/// If none of the nodes has a machine, the inventory is probably that of another cluster: nobody is taken away from a load
/// balancer because of that. A new one is made all the same, because its address is worth having.
pub(super) async fn machines(
    fleet: &dyn Fleet,
    call: &Call,
    backends: &[Backend],
    is_new: bool,
    cluster: impl Future<Output = Result<()>> + Send,
) -> Result<Located<BackendMachine>> {
    if backends.is_empty() {
        return Ok(Located::default());
    }
    if let Some(located) = fleet.recent().and_then(|recent| all_known(&recent, backends)) {
        return Ok(located);
    }
    let shared = fleet.listing().await;
    let listing = (*shared).as_ref().as_ref().map_err(Clone::clone)?;
    let mut located = Located::default();
    let mut lacking = Vec::new();
    for node in backends.iter().map(|backend| &*backend.node) {
        match machine(node, &listing.items) {
            Machine::Listed(instance) => take(&mut located, node, instance),
            Machine::NotOurs => {}
            Machine::None(_) if listing.short.is_some() => return Err(short(listing.short.as_deref())),
            Machine::None(why) => located.missing.push((node.name.clone(), why)),
            Machine::Lacking(id) => lacking.push((node, id)),
        }
    }
    ask(fleet, call, lacking, listing.short.as_deref(), &mut located).await?;
    if located.missing.is_empty() || is_new {
        return Ok(located);
    }
    cluster.await?;
    match located.missing.first() {
        Some((node, why)) if located.found.is_empty() && located.unknown.is_empty() => {
            let text = format!(
                "none of {} nodes is in the inventory; is it that of another cluster? The first: {node}: {why}",
                located.missing.len()
            );
            Err(Error::new(Category::NotFound, text))
        }
        _ => Ok(located),
    }
}

/// The machines of all nodes, if a listing that need not be young shows every one of them: nodes have their machines for
/// life, so nobody is listed again because something else about a Service has changed.
fn all_known(shared: &SharedInstances, backends: &[Backend]) -> Option<Located<BackendMachine>> {
    let listing = (**shared).as_ref().as_ref().ok()?;
    let mut located = Located::default();
    for node in backends.iter().map(|backend| &*backend.node) {
        let Machine::Listed(instance) = machine(node, &listing.items) else { return None };
        node.provider_id.as_ref()?;
        take(&mut located, node, instance);
    }
    located.unknown.is_empty().then_some(located)
}

fn take(located: &mut Located<BackendMachine>, node: &NodeView, instance: &Instance) {
    let node = node.name.clone();
    if let Some(facts) = facts(instance) {
        located.found.push(BackendMachine { node, facts: facts.clone() });
    } else {
        let why = instance.flaw.as_deref().unwrap_or("it is not described").to_owned();
        located.unknown.push((node, why));
    }
}

/// Looks up machines that the listing lacks, all at once.
async fn ask(
    fleet: &dyn Fleet,
    call: &Call,
    lacking: Vec<(&NodeView, ProviderId)>,
    short: Option<&str>,
    located: &mut Located<BackendMachine>,
) -> Result<()> {
    let asked = lacking.iter().take(ASKED).map(|(_, id)| fleet.ask(call, id));
    let answers = join_all(asked).await;
    let mut exist = 0;
    for ((node, id), answer) in lacking.iter().zip(&answers) {
        match answer {
            Lookup::Present(instance) => {
                exist += 1;
                take(located, node, instance);
            }
            Lookup::Absent => located.missing.push((node.name.clone(), format!("there is no machine {id}"))),
            Lookup::Unknown(why) if is_elsewhere(why) => {
                located.missing.push((node.name.clone(), why.message().to_owned()));
            }
            Lookup::Unknown(why) => return Err(why.clone()),
        }
    }
    let rest = lacking.get(ASKED..).unwrap_or_default();
    if !rest.is_empty() && (exist > 0 || short.is_some()) {
        let why = short.unwrap_or("some of them exist");
        let text = format!("the listing of machines lacks those of {} nodes: {why}", lacking.len());
        return Err(Error::temporary(text));
    }
    for (node, id) in rest {
        located.missing.push((node.name.clone(), format!("there is no machine {id}")));
    }
    Ok(())
}

fn short(why: Option<&str>) -> Error {
    Error::temporary(format!("the listing of machines is incomplete: {}", why.unwrap_or_default()))
}
