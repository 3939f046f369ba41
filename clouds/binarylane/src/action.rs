//! The mutations of load balancers, one API request each, and what they are answered with.

use cloudberth_core::Category;
use cloudberth_http::{Answer as Raw, Dialect, Operation, Write};

use crate::wire::{BalancerUpdate, LoadBalancer, NewBalancer, ServerIds};

/// One mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the names say")]
pub enum Action {
    /// Builds a load balancer.
    Create(NewBalancer),
    /// Replaces everything but the region and the address.
    Update { id: i64, update: BalancerUpdate },
    /// Puts servers into the pool.
    AddServers { id: i64, servers: Vec<i64> },
    /// Takes servers out of the pool.
    RemoveServers { id: i64, servers: Vec<i64> },
    /// Deletes a load balancer. Its servers are not touched.
    Delete { id: i64 },
}

/// What the cloud answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The load balancer as it is now.
    Balancer(Box<LoadBalancer>),
    /// As it was asked for.
    Done,
    /// Of the servers that were to be added these do not exist any more; the others were added.
    WithoutServers(Vec<i64>),
}

impl Action {
    /// The request that carries it out.
    pub(crate) fn operation(&self) -> Operation<Write> {
        let at = |operation: Operation<Write>, id: &i64| operation.segment(&id.to_string());
        let root = "load_balancers";
        match self {
            Self::Create(new) => Operation::post("create load balancer", root).json(new),
            Self::Update { id, update } => at(Operation::put("update load balancer", root), id).json(update),
            Self::AddServers { id, servers } => at(Operation::post("add servers to load balancer", root), id)
                .segment("servers")
                .json(&ServerIds { server_ids: servers.clone() }),
            Self::RemoveServers { id, servers } => {
                at(Operation::delete("remove servers from load balancer", root), id)
                    .segment("servers")
                    .json(&ServerIds { server_ids: servers.clone() })
                    .dialect(Dialect { category: meanwhile, ..Dialect::default() })
            }
            Self::Delete { id } => at(Operation::delete("delete load balancer", root), id),
        }
    }

    /// The servers that have to exist for it to be carried out.
    pub(crate) fn servers(&self) -> &[i64] {
        match self {
            Self::Create(new) => &new.server_ids,
            Self::Update { update, .. } => &update.server_ids,
            Self::AddServers { servers, .. } => servers,
            Self::RemoveServers { .. } | Self::Delete { .. } => &[],
        }
    }
}

/// No user wrote what a removal holds: 400 means that the pool changed meanwhile.
fn meanwhile(answer: &Raw) -> Option<Category> {
    (answer.status() == 400).then_some(Category::Conflict)
}
