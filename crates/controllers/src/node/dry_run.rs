//! What would be done about the nodes now, with nothing written and nothing told.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use cloudberth_core::{
    Category, Error, Lookup, NodeView,
    decide::node::{
        events,
        initialise::{Verdict, initialise},
        ownership::NodeOwner,
        patch::{NodePatch, Subresource},
        reconcile::reconcile,
    },
    lb::Impact,
};
use futures_util::FutureExt;

use super::{
    NodeController,
    look::Look,
    memory::Known,
    work::{MOST_WRITES, PATIENCE},
};
use crate::{
    clouds::Cloud,
    dry_run::{DryRun, words},
    lock,
};

/// What a decision about a node comes to.
enum Next {
    Write(NodePatch, Impact),
    Done,
}

impl NodeController {
    /// What would be done about every node now, each with how it would be afterwards.
    ///
    /// Nothing is written, and one new listing of each cloud serves all nodes.
    pub async fn dry_run(&self) -> Vec<(Arc<NodeView>, DryRun)> {
        let now = self.ctx.clock().now();
        *lock(&self.floor) = now;
        let nodes = self.ctx.cluster.nodes.all();
        let met: Vec<_> = nodes.iter().map(|node| (node, self.memory.meet(node, now))).collect();
        let mut all = Vec::with_capacity(met.len());
        for (node, known) in met {
            let one = AssertUnwindSafe(self.dry_run_one(node, &known)).catch_unwind().await;
            all.push(one.unwrap_or_else(|_| (Arc::clone(node), DryRun::bug())));
        }
        all
    }

    async fn dry_run_one(&self, node: &Arc<NodeView>, known: &Known) -> (Arc<NodeView>, DryRun) {
        let clouds: Vec<Cloud> = self.ctx.clouds.candidates(node).into_iter().cloned().collect();
        if clouds.is_empty() {
            return (Arc::clone(node), DryRun::default());
        }
        let call = self.ctx.cluster.call(PATIENCE);
        loop {
            match self.look(&call, node, known, &clouds).await {
                Ok(look) => return decide(node, &look),
                // A listing that is too old for this node was begun a moment ago, and the next has to wait.
                Err(wait) => tokio::time::sleep(wait.max(Duration::from_millis(1))).await,
            }
        }
    }
}

/// Decides until nothing is left to write, each time on the node that the write before would have made.
fn decide(node: &Arc<NodeView>, look: &Look) -> (Arc<NodeView>, DryRun) {
    let mut view = Arc::clone(node);
    let mut told = DryRun::default();
    for _ in 0..MOST_WRITES {
        let owner = look.owner(&view);
        if let NodeOwner::Ours { cloud, .. } = owner {
            told.cloud = Some(cloud.to_owned());
        }
        match next(&view, &owner, &mut told) {
            Next::Done => break,
            Next::Write(patch, impact) => {
                told.step(impact, words::node(&view, &patch));
                view = Arc::new(patch.assume(&view));
            }
        }
    }
    (view, told)
}

fn next(node: &NodeView, key: &NodeOwner<'_>, told: &mut DryRun) -> Next {
    match initialise(node, key) {
        Verdict::Addresses(patch) | Verdict::Join { patch, .. } => return Next::Write(patch, Impact::None),
        Verdict::Leave(_) => {}
        Verdict::NotFound(why) => told.remarks.push(why.message().to_owned()),
        Verdict::Retry(why) => match key {
            NodeOwner::Ours { instance: Lookup::Present(_), .. } if why.category() == Category::Temporary => {
                told.waits = Some(why.message().to_owned());
            }
            _ => not_told(why, told),
        },
        Verdict::Skip => match key {
            NodeOwner::Ours { instance: Lookup::Present(_), .. } => return keep_up(node, key, told),
            NodeOwner::Ours { instance: Lookup::Unknown(why), .. } | NodeOwner::Undecided(why) => {
                not_told(why.clone(), told);
            }
            // Whether a node whose instance is missing stays is another controller's question.
            NodeOwner::Ours { instance: Lookup::Absent, .. }
            | NodeOwner::Foreign(_)
            | NodeOwner::Nowhere(_) => {}
        },
    }
    Next::Done
}

fn keep_up(node: &NodeView, key: &NodeOwner<'_>, told: &mut DryRun) -> Next {
    let upkeep = reconcile(node, key);
    if let Some(patch) = upkeep.writes.into_iter().next() {
        // Connections may use an address that is replaced.
        let impact = if patch.subresource() == Subresource::Status { Impact::Minimal } else { Impact::None };
        return Next::Write(patch, impact);
    }
    told.remarks.extend(upkeep.addresses_held.map(|why| why.message().to_owned()));
    told.remarks.extend(upkeep.unbound.then(|| events::UNBOUND_MESSAGE.to_owned()));
    Next::Done
}

/// A person can mend what is worth telling on the node; everything else means that the cloud did not say.
fn not_told(why: Error, told: &mut DryRun) {
    if events::worth_telling(why.category()).is_some() {
        told.remarks.push(why.message().to_owned());
    } else {
        told.unknown = Some(why);
    }
}
