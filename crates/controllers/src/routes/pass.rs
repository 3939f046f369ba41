//! One pass over the routes of a cloud.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cloudberth_core::{
    Category, NodeView, Result,
    decide::{
        outage::is_silence,
        queue::{Requeue, requeue},
        routes::{Network, Outcome, Pass, RouteNotice, Trigger, conclude, condition_patch, plan},
    },
    lb::{Fleet, Notice, Severity},
    provider::Routes,
    reason::EventSource,
    route::RouteTable,
};
use cloudberth_runtime::recorder::{Event, ObjectRef};
use futures_util::{StreamExt, stream};

use super::{RouteController, Router};
use crate::{
    dry_run::DryRun,
    effects::nodes::{Dry, Effects, Live},
    inventory::SurveyFleet,
    lock,
};

/// All nodes of a moment, by name.
type Nodes = BTreeMap<String, Arc<NodeView>>;

/// A listing of instances that is at most as old as this serves.
const MAX_AGE: Duration = Duration::from_secs(3);
/// How long a pass may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// How many nodes are written to at once.
const WRITES: usize = 16;

impl RouteController {
    pub(super) async fn pass(&self, router: &Router, trigger: Trigger) -> Requeue {
        let Some(table) = router.cloud.provider.routes() else { return Requeue::Forget };
        if let Some(why) = router.cloud.inventory.away().filter(|_| *lock(&router.silent)) {
            // The inventory says when the cloud is back.
            return requeue(Err(&why));
        }
        lock(&router.pace).begin(trigger, self.ctx.clock().now());
        let effects = Live(&self.ctx);
        let nodes = || self.ctx.cluster.nodes.all();
        let pass = self.reconcile(&effects, router, table, nodes).await;
        let outcome = Outcome::of(pass.as_ref().map(|(_, pass)| pass));
        self.ctx.metrics.route.synced(outcome.label(), trigger.as_str());
        let silent = pass.as_ref().err().filter(|why| is_silence(why));
        if let Some(why) = silent {
            router.cloud.inventory.report(why);
        }
        *lock(&router.silent) = silent.is_some();
        let next = match pass {
            Ok((nodes, pass)) => self.record(&effects, router, &nodes, pass).await,
            Err(why) => {
                tracing::warn!(cloud = router.cloud.name(), %why, "routes not compared");
                requeue(Err(&why))
            }
        };
        match next {
            // What a failure brings back waits at least as long as any other pass.
            Requeue::Exactly(wait) => Requeue::Exactly(wait.max(self.gap(router, trigger))),
            other => other,
        }
    }

    /// What would be done about the routes of every cloud that has them, if the nodes were `nodes`.
    pub async fn dry_run(&self, nodes: &[Arc<NodeView>]) -> Vec<DryRun> {
        let mut all = Vec::new();
        for router in &self.routers {
            let effects = Dry::routes(&self.ctx.cluster, router.cloud.name());
            if let Some(table) = router.cloud.provider.routes() {
                match self.reconcile(&effects, router, table, || nodes.to_vec()).await {
                    Ok((nodes, pass)) => drop(self.record(&effects, router, &nodes, pass).await),
                    Err(why) => effects.unknown(&why),
                }
            }
            all.push(effects.finish());
        }
        all
    }

    /// Compares and changes. Returns the nodes on which it was decided, and what came of it.
    async fn reconcile<E: Effects>(
        &self,
        effects: &E,
        router: &Router,
        table: &dyn Routes,
        nodes: impl Fn() -> Vec<Arc<NodeView>>,
    ) -> Result<(Nodes, Pass)> {
        let call = self.ctx.cluster.call(PATIENCE);
        let of_router = |all: &[Arc<NodeView>]| -> Vec<Arc<NodeView>> {
            all.iter().filter(|node| self.is_of(router, node)).cloned().collect()
        };
        let inventory = Arc::clone(&router.cloud.inventory);
        let fleet: Arc<dyn Fleet> = Arc::new(SurveyFleet::new(inventory, effects.now() - MAX_AGE));
        let listed = table.list(&call, &of_router(&nodes()), &fleet).await;
        let (listed, data) = match listed {
            Ok(RouteTable { routes, data }) => (Ok(routes), Some(data)),
            Err(why) => (Err(why), None),
        };
        let nodes = nodes();
        let mine = of_router(&nodes);
        let nodes: Nodes = nodes.into_iter().map(|node| (node.name.clone(), node)).collect();
        let unclaimed = |name: &str| {
            let node = nodes.get(name);
            node.is_some_and(|node| node.provider_id.is_none() && self.ctx.clouds.owner(node).is_none())
        };
        let mine = mine.iter().map(AsRef::as_ref);
        let plan = plan(listed, mine, unclaimed, &router.networks, table.families())?;
        let told = std::mem::replace(&mut *lock(&router.unroutable), plan.unroutable.clone());
        for one in plan.unroutable.difference(&told) {
            effects.publish(event(&one.node, &one.uid, one.notice()));
        }
        let begun = effects.now();
        let mut answers = Vec::with_capacity(plan.rounds.len());
        for (number, round) in plan.rounds.iter().enumerate() {
            // After the first round it is outdated.
            let data = data.as_ref().filter(|_| number == 0);
            answers.push(effects.apply_routes(&call, table, data, round).await);
        }
        let pass = conclude(&plan, &answers, effects.now().since(begun));
        Ok((nodes, pass))
    }

    /// Publishes what came of a pass: events, conditions of nodes, and when to come back.
    async fn record<E: Effects>(&self, effects: &E, router: &Router, nodes: &Nodes, pass: Pass) -> Requeue {
        for RouteNotice { node, uid, notice } in pass.notices {
            effects.publish(event(&node, &uid, notice));
        }
        for leftover in pass.leftovers {
            tracing::warn!(cloud = router.cloud.name(), "{leftover}");
        }
        let mut writes = Vec::new();
        for (name, network) in &pass.networks {
            if let Some(node) = nodes.get(name) {
                writes.push(self.write_condition(effects, node, *network));
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
    async fn write_condition<E: Effects>(
        &self,
        effects: &E,
        decided: &NodeView,
        network: Network,
    ) -> Result<()> {
        let cluster = &self.ctx.cluster;
        let newest = cluster.nodes.get(&decided.name).filter(|newest| newest.uid == decided.uid);
        let Some(node) = newest else { return Ok(()) };
        let Some(patch) = condition_patch(&node, network, self.ctx.clock().wall()) else { return Ok(()) };
        match effects.patch_node(&cluster.call(PATIENCE), &node, &patch).await {
            Err(why) if why.category() != Category::NotFound => {
                tracing::warn!(node = node.name, %why, "condition of the node not written");
                Err(why)
            }
            _ => Ok(()),
        }
    }
}

fn event(node: &str, uid: &str, Notice { severity, reason, message }: Notice) -> Event {
    let about = ObjectRef::core("Node", "", node, uid);
    let component = EventSource::Route.component();
    Event { about, warning: severity == Severity::Warning, reason, message, component }
}
