//! Asks the machines whether the account that denies a load balancer is the cluster's own.

use std::sync::Arc;

use cloudberth_core::{
    NodeView, Result,
    decide::{
        lifecycle::{Suspect, has_witnesses},
        service::account::vouch,
    },
    time::Tick,
};

use super::ServiceController;
use crate::clouds::Cloud;

/// What the machines say about an account that denies a load balancer.
pub(super) enum Witness {
    /// No node can tell: the cluster has none of this cloud, or this cloud has no machines.
    Silent,
    /// The account is the cluster's own, as it was seen at this time.
    Ours(Tick),
}

impl ServiceController {
    /// What a listing of the machines of `cloud` that was begun at `not_before` or later says, if the nodes are `nodes`.
    /// An error is the reason why a denial means nothing. Whoever asks at the same time shares the listing.
    pub(super) async fn witness(
        &self,
        cloud: &Cloud,
        nodes: &[Arc<NodeView>],
        not_before: Tick,
    ) -> Result<Witness> {
        let provider = &cloud.provider;
        let suspect = |node: &Arc<NodeView>| Suspect::of(node, |text| provider.read_id(text), not_before);
        // A node whose id makes the provider panic is nobody's, and must not keep the others from speaking.
        let owner = |node: &&Arc<NodeView>| self.desk.clouds.owner(node).map(Cloud::name);
        let suspects: Vec<_> =
            nodes.iter().filter(|node| owner(node) == Some(cloud.name())).map(suspect).collect();
        if provider.instances().is_none() || !has_witnesses(&suspects) {
            return Ok(Witness::Silent);
        }
        let seen = cloud.inventory.listing(not_before).await;
        vouch(&seen.machines, &suspects).map(|()| Witness::Ours(seen.ended))
    }
}
