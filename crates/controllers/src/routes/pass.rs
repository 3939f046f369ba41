//! One pass over the routes of a cloud.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cloudberth_core::{
    Category, NodeView, Result,
    decide::{
        outage::is_silence,
        queue::{Requeue, requeue},
        routes::{Failure, Network, Outcome, Pass, Trigger, conclude, condition_patch, plan},
    },
    provider::Routes,
};
use cloudberth_runtime::recorder::{Event, ObjectRef};
use futures_util::{StreamExt, stream};

use super::{RouteController, Router};
use crate::lock;

/// The name under which it speaks in events.
const COMPONENT: &str = "route_controller";
/// How long a pass may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
/// How many nodes are written to at once.
const WRITES: usize = 16;

impl RouteController {
    pub(super) async fn pass(&self, router: &Router, trigger: Trigger) -> Requeue {
        let Some(table) = router.cloud.provider.routes() else { return Requeue::Forget };
        if let Some(why) = router.cloud.inventory.away().filter(|_| *lock(&router.silent)) {
            // Whoever asks the cloud for all of us says when it is back.
            return requeue(Err(&why));
        }
        lock(&router.pace).begin(trigger, self.ctx.clock().now());
        let mut nodes = BTreeMap::new();
        let pass = self.reroute(router, table, &mut nodes).await;
        self.ctx.metrics.route.synced(Outcome::of(&pass).label(), trigger.as_str());
        let silent = pass.as_ref().err().filter(|why| is_silence(why));
        if let Some(why) = silent {
            router.cloud.inventory.doubt(why);
        }
        *lock(&router.silent) = silent.is_some();
        let next = match pass {
            Ok(pass) => self.conclude(router, &nodes, pass).await,
            Err(why) => {
                tracing::warn!(cloud = router.cloud.name(), %why, "the routes could not be compared");
                requeue(Err(&why))
            }
        };
        match next {
            // What a failure brings back waits at least as long as any other pass.
            Requeue::Exactly(wait) => Requeue::Exactly(wait.max(self.gap(router, trigger))),
            other => other,
        }
    }

    /// Compares and changes. The nodes on which it was decided are left in `nodes`.
    async fn reroute(
        &self,
        router: &Router,
        table: &dyn Routes,
        nodes: &mut BTreeMap<String, Arc<NodeView>>,
    ) -> Result<Pass> {
        let call = self.ctx.cluster.call(PATIENCE);
        let listed = table.list(&call).await;
        let all = self.ctx.cluster.nodes.all();
        *nodes = all
            .iter()
            .filter(|node| self.is_of(router, node))
            .map(|node| (node.name.clone(), Arc::clone(node)))
            .collect();
        let unclaimed = |name: &str| {
            let node = self.ctx.cluster.nodes.get(&name.to_owned());
            node.is_some_and(|node| node.provider_id.is_none() && self.ctx.clouds.owner(&node).is_none())
        };
        let plan = plan(listed, nodes.values().map(AsRef::as_ref), unclaimed, &router.networks)?;
        let begun = self.ctx.clock().now();
        let mut answers = Vec::with_capacity(plan.rounds.len());
        for round in &plan.rounds {
            answers.push(table.apply(&call, round).await);
        }
        Ok(conclude(&plan, &answers, self.ctx.clock().now().since(begun)))
    }

    /// Says what came of it.
    async fn conclude(
        &self,
        router: &Router,
        nodes: &BTreeMap<String, Arc<NodeView>>,
        pass: Pass,
    ) -> Requeue {
        for failure in pass.failures {
            self.tell(failure);
        }
        for leftover in pass.leftovers {
            tracing::warn!(cloud = router.cloud.name(), "{leftover}");
        }
        let mut writes = Vec::new();
        for (name, network) in &pass.networks {
            if let Some(node) = nodes.get(name) {
                writes.push(self.write_condition(node, *network));
            }
        }
        let written: Vec<Result<()>> = stream::iter(writes).buffered(WRITES).collect().await;
        let failed = written.into_iter().find_map(Result::err);
        match (pass.retry, failed) {
            (Some(retry), _) => retry.into(),
            (None, Some(why)) => requeue(Err(&why)),
            (None, None) => Requeue::Forget,
        }
    }

    /// Writes the condition of the node on which was decided, in its newest version.
    async fn write_condition(&self, decided: &NodeView, network: Network) -> Result<()> {
        let cluster = &self.ctx.cluster;
        let newest = cluster.nodes.get(&decided.name).filter(|newest| newest.uid == decided.uid);
        let Some(node) = newest else { return Ok(()) };
        let Some(patch) = condition_patch(&node, network, self.ctx.clock().wall()) else { return Ok(()) };
        let answer = cluster.patch_node(&cluster.call(PATIENCE), &node.name, &patch).await;
        match answer {
            Err(why) if why.category() != Category::NotFound => {
                tracing::warn!(node = node.name, %why, "the condition of a node could not be written");
                Err(why)
            }
            _ => Ok(()),
        }
    }

    fn tell(&self, failure: Failure) {
        let about = ObjectRef::core("Node", "", &failure.node, &failure.uid);
        let (reason, message) = (failure.reason.to_owned(), failure.message);
        tracing::warn!(node = failure.node, "{message}");
        self.ctx.recorder.publish(Event { about, warning: true, reason, message, component: COMPONENT });
    }
}
