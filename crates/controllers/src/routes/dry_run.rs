//! What would be done about routes, with nothing written and nothing told.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cloudberth_core::{
    NodeView,
    decide::routes::{conclude, condition_patch, plan},
    lb::Impact,
    route::RouteChange,
};

use super::{RouteController, Router, pass::PATIENCE};
use crate::dry_run::{DryRun, words};

impl RouteController {
    /// What would be done about the routes of every cloud that has them, if the nodes were `nodes`.
    pub async fn dry_run(&self, nodes: &[Arc<NodeView>]) -> Vec<DryRun> {
        let mut all = Vec::new();
        for router in &self.routers {
            all.push(self.dry_run_one(router, nodes).await);
        }
        all
    }

    async fn dry_run_one(&self, router: &Router, nodes: &[Arc<NodeView>]) -> DryRun {
        let mut told = DryRun::of(router.cloud.name());
        let Some(table) = router.cloud.provider.routes() else { return told };
        let listed = table.list(&self.ctx.cluster.call(PATIENCE)).await;
        let mine: BTreeMap<_, _> = nodes
            .iter()
            .filter(|node| self.is_of(router, node))
            .map(|node| (node.name.as_str(), node))
            .collect();
        let unclaimed = |name: &str| {
            let node = nodes.iter().find(|node| node.name == name);
            node.is_some_and(|node| node.provider_id.is_none() && self.ctx.clouds.owner(node).is_none())
        };
        let plan = match plan(listed, mine.values().map(|node| &***node), unclaimed, &router.networks) {
            Ok(plan) => plan,
            Err(why) => return DryRun { unknown: Some(why), ..told },
        };
        for change in plan.rounds.iter().flatten() {
            match change {
                RouteChange::Delete(route) => {
                    let target = route.target.as_deref().unwrap_or("nowhere");
                    told.step(
                        Impact::Minimal,
                        format!("delete the route of {} to {target}", route.destination),
                    );
                }
                RouteChange::Create(route) => {
                    let label = format!("create a route of {} to {}", route.destination, route.node);
                    told.step(Impact::None, label);
                }
            }
        }
        let answers: Vec<_> = plan.rounds.iter().map(|round| vec![Ok(()); round.len()]).collect();
        for (name, network) in conclude(&plan, &answers, Duration::ZERO).networks {
            let Some(node) = mine.get(name.as_str()) else { continue };
            if let Some(patch) = condition_patch(node, network, self.ctx.clock().wall()) {
                told.step(Impact::None, format!("on node {name}, {}", words::node(node, &patch)));
            }
        }
        told
    }
}
