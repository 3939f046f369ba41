//! Asks the instances whether the account in which a load balancer is not found is the cluster's own.

use std::sync::Arc;

use cloudberth_core::{
    NodeView, Result,
    decide::{
        lifecycle::{NodeFacts, has_witnesses},
        service::account::vouch,
    },
    time::Tick,
};

use super::ServiceController;
use crate::clouds::Cloud;

/// What the instances say about an account in which a load balancer is not found.
pub(super) enum AccountCheck {
    /// No node can tell: the cluster has none of this cloud, or this cloud has no instances.
    Silent,
    /// The account is the cluster's own, as it was seen at this time.
    Ours(Tick),
}

impl ServiceController {
    /// What a listing of the instances of `cloud` that was begun at `not_before` or later says, if the nodes are `nodes`.
    /// An error is the reason why a denial means nothing. Whoever asks at the same time shares the listing.
    pub(super) async fn check_account(
        &self,
        cloud: &Cloud,
        nodes: &[Arc<NodeView>],
        not_before: Tick,
    ) -> Result<AccountCheck> {
        let provider = &cloud.provider;
        let facts = |node: &Arc<NodeView>| NodeFacts::of(node, |text| provider.read_id(text), not_before);
        // A node whose id makes the provider panic is nobody's, and must not keep the others from speaking.
        let owner = |node: &&Arc<NodeView>| self.ctx.clouds.owner(node).map(Cloud::name);
        let all_facts: Vec<_> =
            nodes.iter().filter(|node| owner(node) == Some(cloud.name())).map(facts).collect();
        if provider.instances().is_none() || !has_witnesses(&all_facts) {
            return Ok(AccountCheck::Silent);
        }
        let seen = cloud.inventory.listing(not_before).await;
        vouch(&seen.answer, &all_facts).map(|()| AccountCheck::Ours(seen.ended))
    }
}
