//! Looking for a node's instance.
//!
//! One listing serves every node of a pass, and what it shows is believed. What it does not show is asked about again
//! with a listing that is younger than the node, and at last at the source.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{
    Call, NodeView,
    decide::node::{
        events,
        ownership::{self, NodeOwner},
        source::{self, Answer},
        taints,
    },
    error::Category,
    provider_id::Reading,
    time::Tick,
};
use futures_util::future::join_all;

use super::{NodeController, memory::Known};
use crate::{clouds::Cloud, inventory::Snapshot, lock};

/// Nodes that come one after the other share listings: for a node that is missing in one, the next is not begun before
/// this time.
const SPACING: Duration = Duration::from_secs(2);

/// What was learnt about where a node's instance may be.
pub(super) struct Look {
    sources: Vec<Source>,
    answers: Vec<Answer>,
}

struct Source {
    cloud: Cloud,
    read: Box<dyn Fn(&str) -> Reading + Send + Sync>,
    snapshot: Arc<Snapshot>,
}

impl Source {
    fn new(cloud: Cloud, snapshot: Arc<Snapshot>) -> Self {
        let provider = Arc::clone(&cloud.provider);
        Self { cloud, read: Box::new(move |text| provider.read_id(text)), snapshot }
    }

    fn seen(&self) -> ownership::Cloud<'_> {
        ownership::Cloud { name: self.cloud.name(), read: &*self.read, instances: &self.snapshot.instances }
    }
}

impl Look {
    /// To whom the node belongs, by what was learnt.
    pub(super) fn owner(&self, node: &NodeView) -> NodeOwner<'_> {
        let clouds: Vec<_> = self.sources.iter().map(Source::seen).collect();
        source::settle(node, ownership::claim(node, &clouds), &self.answers)
    }

    /// When the youngest of the listings was begun.
    pub(super) fn begun(&self) -> Tick {
        self.sources.iter().map(|source| source.snapshot.begun).max().unwrap_or_default()
    }
}

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Look").field("answers", &self.answers).finish_non_exhaustive()
    }
}

impl NodeController {
    /// Looks for the node's instance in `clouds`. An error is how long to wait before looking.
    ///
    /// A name proves nothing in a listing that is older than the node: it may be that of an instance before it, and an id
    /// once written stays. An id does.
    pub(super) async fn look(
        &self,
        call: &Call,
        node: &NodeView,
        known: &Known,
        clouds: &[Cloud],
    ) -> Result<Look, Duration> {
        let floor = *lock(&self.floor);
        let named = if node.provider_id.is_none() { known.since } else { Tick::ZERO };
        let look = self.list(clouds, floor.max(named).max(known.fresh_from)).await?;
        let waits = node.has_taint(taints::UNINITIALISED);
        if !waits || !source::is_denied(&look.owner(node)) {
            return Ok(look);
        }
        let mut look = if look.begun() < known.since { self.list(clouds, known.since).await? } else { look };
        // Once per node: from then on people know, and the listings of the retries tell when it is over.
        let known_to_be_missing =
            events::worth_telling(Category::NotFound).is_some_and(|reason| known.told.contains(reason));
        if !known_to_be_missing && source::is_denied(&look.owner(node)) {
            look.answers = ask(call, node, clouds).await;
        }
        Ok(look)
    }

    async fn list(&self, clouds: &[Cloud], not_before: Tick) -> Result<Look, Duration> {
        let now = self.ctx.clock().now();
        for newest in clouds.iter().filter_map(|cloud| cloud.inventory.newest()) {
            let rest = (newest.begun + SPACING).since(now);
            if newest.begun < not_before && !rest.is_zero() {
                return Err(rest);
            }
        }
        let snapshots = join_all(clouds.iter().map(|cloud| cloud.inventory.listing(not_before))).await;
        let sources =
            clouds.iter().cloned().zip(snapshots).map(|(cloud, snapshot)| Source::new(cloud, snapshot));
        Ok(Look { sources: sources.collect(), answers: Vec::new() })
    }
}

/// Asks the sources themselves: about the node's id if it has one, otherwise about its name.
async fn ask(call: &Call, node: &NodeView, clouds: &[Cloud]) -> Vec<Answer> {
    let answers = clouds.iter().map(async |cloud| {
        let instance = match node.provider_id.as_deref().map(|id| cloud.provider.read_id(id)) {
            Some(Reading::Mine(id)) => cloud.inventory.ask(call, &id).await,
            _ => cloud.inventory.find(call, &node.name).await,
        };
        Answer { cloud: cloud.name().to_owned(), instance }
    });
    join_all(answers).await
}
