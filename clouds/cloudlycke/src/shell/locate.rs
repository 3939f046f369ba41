//! The machines of the nodes behind a load balancer.
//!
//! Unlike the nodes themselves they need not be described whole: where a machine's state is unknown, its address is known,
//! and traffic goes on.

use cloudberth_core::{
    Call, Category, Error, Instance, Lookup, NodeView, Result,
    lb::{Backend, Fleet, Located},
    provider_id::Reading,
};

use crate::{id::read_id, machines::facts, observed::BackendMachine};

/// What is known of a node's machine.
enum Machine<'a> {
    Listed(&'a Instance),
    /// The listing lacks it.
    Lacking(cloudberth_core::ProviderId),
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
    let known = |id: &cloudberth_core::ProviderId| listed.iter().find(|instance| instance.id == *id);
    match read_id(text) {
        Reading::Mine(id) => known(&id).map_or_else(|| Machine::Lacking(id), Machine::Listed),
        Reading::Malformed => Machine::None(format!("its provider id {text:?} cannot be read")),
        Reading::Foreign => {
            let id = text.parse().ok();
            id.and_then(|id| known(&id)).map_or(Machine::NotOurs, Machine::Listed)
        }
    }
}

/// Finds the machines of nodes. One that the listing lacks is looked up before its node is left out.
///
/// If none of the nodes has a machine, the inventory is probably that of another cluster: nobody is taken away from a load
/// balancer because of that (law 1). A new one is made all the same, because its address is worth having.
pub(super) async fn machines(
    fleet: &dyn Fleet,
    call: &Call,
    backends: &[Backend],
    is_new: bool,
) -> Result<Located<BackendMachine>> {
    let mut located = Located::default();
    if backends.is_empty() {
        return Ok(located);
    }
    let shared = fleet.listing().await;
    let listing = (*shared).as_ref().as_ref().map_err(Clone::clone)?;
    let mut take = |node: &NodeView, instance: &Instance| {
        let node = node.name.clone();
        if let Some(facts) = facts(instance) {
            located.found.push(BackendMachine { node, facts: facts.clone() });
        } else {
            let why = instance.flaw.as_deref().unwrap_or("it is not described").to_owned();
            located.unknown.push((node, why));
        }
    };
    let mut missing = Vec::new();
    for node in backends.iter().map(|backend| &*backend.node) {
        match machine(node, &listing.items) {
            Machine::Listed(instance) => take(node, instance),
            Machine::NotOurs => {}
            Machine::None(_) if listing.short.is_some() => return Err(short(listing.short.as_deref())),
            Machine::None(why) => missing.push((node.name.clone(), why)),
            Machine::Lacking(id) => match fleet.ask(call, &id).await {
                Lookup::Present(instance) => take(node, &instance),
                Lookup::Absent => missing.push((node.name.clone(), format!("there is no machine {id}"))),
                Lookup::Unknown(why) if why.category() == Category::NotFound => {
                    missing.push((node.name.clone(), why.message().to_owned()));
                }
                Lookup::Unknown(why) => return Err(why),
            },
        }
    }
    located.missing = missing;
    match located.missing.first() {
        Some((node, why)) if !is_new && located.found.is_empty() && located.unknown.is_empty() => {
            let text = format!(
                "none of {} nodes is in the inventory; is it that of another cluster? The first: {node}: {why}",
                located.missing.len()
            );
            Err(Error::new(Category::NotFound, text))
        }
        _ => Ok(located),
    }
}

fn short(why: Option<&str>) -> Error {
    Error::temporary(format!("the listing of machines is incomplete: {}", why.unwrap_or_default()))
}
