//! What would be done to this cluster now. No write leaves the process.
//!
//! ```text
//!   one listing of nodes and Services ──► a dry run of every controller ──► words, and an exit code
//! ```
//!
//! Services are planned with the nodes as they would be once their own steps were done.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

mod text;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cloudberth_controllers::{
    context::ControllerContext, controller_set::ControllerSettings, dry_run::DryRun,
    lifecycle::LifecycleController, node::NodeController, routes::RouteController,
    service::ServiceController,
};
use cloudberth_core::call::ReadOnly;
use serde::Serialize;

/// The exit code when there is nothing to do.
pub const EXIT_NOTHING: u8 = 0;
/// The exit code when something could not be told; the plan names it.
pub const EXIT_UNKNOWN: u8 = 1;
/// The exit code when something would be done, or is under way.
pub const EXIT_PENDING: u8 = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The Services about which there is something to say, by namespace and name.
    pub services: Vec<Entry>,
    /// The nodes about which there is something to say, by name.
    pub nodes: Vec<Entry>,
    /// The routes of each cloud about which there is something to say.
    pub routes: Vec<Entry>,
    pub unknown: Vec<Unknown>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub name: String,
    /// The cloud that is concerned, where it is known.
    pub cloud: Option<String>,
    pub steps: Vec<Step>,
    /// What is waited for before anything else is done.
    pub waits_for: Option<String>,
    /// What people would be told, refusals included. It changes nothing.
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// In words; for a step in a cloud those of the log.
    pub label: String,
    /// What it does to traffic: none, minimal, considerable or major.
    pub impact: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    pub what: String,
    /// The cloud that is concerned, where it is known.
    pub cloud: Option<String>,
    pub why: String,
}

impl Plan {
    /// 0 for nothing to do, 2 for changes, 1 where something could not be told. Remarks alone are nothing to do.
    pub fn exit_code(&self) -> u8 {
        let pending = |entry: &Entry| !entry.steps.is_empty() || entry.waits_for.is_some();
        if !self.unknown.is_empty() {
            EXIT_UNKNOWN
        } else if self.services.iter().chain(&self.nodes).chain(&self.routes).any(pending) {
            EXIT_PENDING
        } else {
            EXIT_NOTHING
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    fn could_not_be_told(&mut self, what: String, cloud: Option<String>, why: &str) {
        self.unknown.push(Unknown { what, cloud, why: why.to_owned() });
    }

    /// Takes in what was assumed about one object of `kind`.
    fn entry(&mut self, kind: &str, name: String, assumed: DryRun) -> Option<Entry> {
        let DryRun { cloud, steps, waits, remarks, unknown } = assumed;
        if let Some(why) = unknown {
            self.could_not_be_told(format!("{kind} {name}"), cloud.clone(), why.message());
        }
        let step = |step: cloudberth_core::lb::PlannedStep| Step {
            label: step.label,
            impact: step.impact.to_string(),
        };
        let steps: Vec<_> = steps.into_iter().map(step).collect();
        let silent = steps.is_empty() && waits.is_none() && remarks.is_empty();
        (!silent).then_some(Entry { name, cloud, steps, waits_for: waits, remarks })
    }
}

/// What would be done to the cluster whose nodes and Services the ctx knows.
pub async fn plan(ctx: &ControllerContext, settings: &ControllerSettings) -> Plan {
    let ctx = ControllerContext { cluster: ctx.cluster.behind(Arc::new(ReadOnly)), ..ctx.clone() };
    let begun = ctx.clock().now();
    let mut plan = Plan::default();
    let mut nodes = ctx.cluster.nodes.all();
    let mut about_nodes: BTreeMap<String, DryRun> = BTreeMap::new();
    if let Some(settings) = settings.node
        && let Ok(controller) = NodeController::new(ctx.clone(), settings)
    {
        let assumed = controller.dry_run().await;
        nodes = assumed.iter().map(|(node, _)| Arc::clone(node)).collect();
        about_nodes = assumed.into_iter().map(|(node, what)| (node.name.clone(), what)).collect();
    }
    if let Some(settings) = settings.lifecycle {
        let controller = LifecycleController::new(ctx.clone(), settings);
        for (name, assumed) in controller.dry_run(begun).await {
            about_nodes.entry(name).or_default().extend(assumed);
        }
    }
    for (name, assumed) in about_nodes {
        let entry = plan.entry("node", name, assumed);
        plan.nodes.extend(entry);
    }
    if let Some(settings) = &settings.service {
        let controller = ServiceController::new(ctx.clone(), settings.clone());
        for (key, assumed) in controller.dry_run(&nodes).await {
            let entry = plan.entry("Service", key.to_string(), assumed);
            plan.services.extend(entry);
        }
    }
    let routes = settings.routes.as_ref().map(|settings| RouteController::new(ctx.clone(), settings));
    match routes {
        Some(Err(why)) => plan.could_not_be_told("routes".to_owned(), None, why.message()),
        Some(Ok(Some(controller))) => {
            for assumed in controller.dry_run(&nodes).await {
                let entry = plan.entry("the", "routes".to_owned(), assumed);
                plan.routes.extend(entry);
            }
        }
        Some(Ok(None)) | None => {}
    }
    plan
}

/// Lists the cluster's nodes and Services, and says what would be done to them. What is not there after `patience`
/// could not be told.
pub async fn run_plan(ctx: &ControllerContext, settings: &ControllerSettings, patience: Duration) -> Plan {
    let cluster = &ctx.cluster;
    // What is planned is one moment: the watches end with the listings.
    tokio::select! {
        biased;
        () = cluster.until_synced() => {}
        () = cluster.watch(&ctx.random) => {}
        () = tokio::time::sleep(patience) => {}
    }
    let mut late = Plan::default();
    for (what, _) in cluster.synced().into_iter().filter(|(_, synced)| !synced) {
        let why =
            format!("the API server did not list them within {patience:?}; the log says what it answered");
        late.could_not_be_told(format!("all {what}"), None, &why);
    }
    if !late.unknown.is_empty() {
        return late;
    }
    if let Err(why) = cluster.ask_version().await {
        tracing::warn!(%why, "the Kubernetes API did not say its version; the plan is one for a new one");
    }
    plan(ctx, settings).await
}
