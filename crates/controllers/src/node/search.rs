//! The search for a node's instance.
//!
//! One listing serves every node of a pass, and what it shows is believed. For an instance that it lacks there is a
//! second listing, younger than the node, and at last a lookup of that one instance.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Call, NodeView,
    decide::node::{
        ownership::{self, NodeOwner},
        source::{self, Answer},
        taints,
    },
    provider_id::Reading,
    reason,
    time::Tick,
};
use futures_util::future::join_all;

use super::NodeController;
use crate::{clouds::Cloud, inventory::Snapshot, lock};

/// Nodes that come one after the other share listings: for a node that is missing in one, the next is not begun before
/// this time.
const SPACING: Duration = Duration::from_secs(2);

/// What the clouds say about a node's instance.
pub(super) struct Search {
    listings: Vec<(Cloud, Arc<Snapshot>)>,
    answers: Vec<Answer>,
}

impl Search {
    /// To whom the node belongs.
    pub(super) fn owner(&self, node: &NodeView) -> NodeOwner<'_> {
        let clouds = self.listings.iter().map(|(cloud, snapshot)| ownership::Cloud {
            name: cloud.name(),
            reading: node.provider_id.as_deref().map(|id| cloud.provider.read_id(id)),
            instances: &snapshot.answer,
        });
        let clouds: Vec<_> = clouds.collect();
        source::settle(node, ownership::claim(node, &clouds), &self.answers)
    }

    /// When the youngest of the listings was begun.
    pub(super) fn begun(&self) -> Tick {
        self.listings.iter().map(|(_, snapshot)| snapshot.begun).max().unwrap_or_default()
    }
}

impl NodeController {
    /// Searches the clouds that may have the node's instance; `None` if there is none. An error is how long to wait
    /// before the search.
    ///
    /// A name proves nothing in a listing that is older than the node: it may be that of an earlier instance, and an id
    /// once written stays. An id does.
    pub(super) async fn search(&self, call: &Call, node: &NodeView) -> Result<Option<Search>, Duration> {
        let clouds = self.ctx.clouds.candidates(node);
        if clouds.is_empty() {
            return Ok(None);
        }
        let record = self.records.get(node, self.ctx.clock().now());
        let named = if node.provider_id.is_none() { record.since } else { Tick::ZERO };
        let not_before = named.max(record.not_before).max(*lock(&self.not_before));
        let search = self.list(&clouds, not_before).await?;
        let waits = node.has_taint(taints::UNINITIALISED);
        if !waits || !source::is_denied(&search.owner(node)) {
            return Ok(Some(search));
        }
        let mut search =
            if search.begun() < record.since { self.list(&clouds, record.since).await? } else { search };
        // Once per node: from then on there is a warning, and the listings of the retries tell when it is over.
        let known_to_be_missing = record.warned.contains(&reason::CLOUD_RESOURCE_NOT_FOUND);
        if !known_to_be_missing && source::is_denied(&search.owner(node)) {
            search.answers = ask(call, node, &clouds).await;
        }
        Ok(Some(search))
    }

    async fn list(&self, clouds: &[&Cloud], not_before: Tick) -> Result<Search, Duration> {
        let now = self.ctx.clock().now();
        for newest in clouds.iter().filter_map(|cloud| cloud.inventory.newest()) {
            let rest = (newest.begun + SPACING).since(now);
            if newest.begun < not_before && !rest.is_zero() {
                return Err(rest);
            }
        }
        let snapshots = join_all(clouds.iter().map(|cloud| cloud.inventory.listing(not_before))).await;
        let listings = clouds.iter().map(|cloud| (*cloud).clone()).zip(snapshots).collect();
        Ok(Search { listings, answers: Vec::new() })
    }
}

/// Looks the instance up in each cloud: by the node's id if it has one, otherwise by its name.
async fn ask(call: &Call, node: &NodeView, clouds: &[&Cloud]) -> Vec<Answer> {
    let answers = clouds.iter().map(async |cloud| {
        let instance = match node.provider_id.as_deref().map(|id| cloud.provider.read_id(id)) {
            Some(Reading::Mine(id)) => cloud.inventory.ask(call, &id).await,
            _ => cloud.inventory.find(call, &node.name).await,
        };
        Answer { cloud: cloud.name().to_owned(), instance }
    });
    join_all(answers).await
}
