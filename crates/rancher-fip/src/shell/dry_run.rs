//! What would be done to which cluster, without doing it: the same passes, whose writes are only told.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde::Serialize;
use tokio::sync::Semaphore;

use super::{Api, Context, Effects, lock};
use crate::{
    plan::select::{Selection, select},
    problem::{Again, Problem},
};

/// The exit code for nothing to do.
const NOTHING: u8 = 0;
/// The exit code if it could not be told.
const UNKNOWN: u8 = 1;
/// The exit code for something to do.
const CHANGES: u8 = 2;

/// What would be done to one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClusterPlan {
    /// The id of the cluster, or `local` for what is written in the management cluster.
    pub cluster: String,
    /// Its display name.
    #[serde(rename = "displayName")]
    pub display_name: String,
    /// The steps, in order.
    pub steps: Vec<String>,
    /// What stands in the way.
    pub problems: Vec<String>,
    /// Whether the steps are all there are: not if something could not be looked at.
    pub complete: bool,
}

/// What would be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// By cluster, those that take part.
    pub clusters: Vec<ClusterPlan>,
    /// Why nothing, or not everything, could be told.
    pub trouble: Vec<String>,
}

impl Plan {
    /// For people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for trouble in &self.trouble {
            let _ = writeln!(text, "cannot tell: {trouble}");
        }
        for ClusterPlan { cluster, display_name, steps, problems, .. } in &self.clusters {
            let _ = writeln!(text, "{cluster} ({display_name})");
            if steps.is_empty() && problems.is_empty() {
                text.push_str("  nothing to do\n");
            }
            for step in steps {
                let _ = writeln!(text, "  - {step}");
            }
            for problem in problems {
                let _ = writeln!(text, "  ! {problem}");
            }
        }
        if self.clusters.is_empty() && self.trouble.is_empty() {
            text.push_str("no cluster takes part\n");
        }
        text
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .map_or_else(|why| format!("{{\"trouble\": [\"{why}\"]}}\n"), |text| text + "\n")
    }

    /// 0 for nothing to do, 2 for something, 1 if it could not be told.
    pub fn exit_code(&self) -> u8 {
        if !self.trouble.is_empty() || self.clusters.iter().any(|cluster| !cluster.complete) {
            UNKNOWN
        } else if self.clusters.iter().any(|cluster| !cluster.steps.is_empty()) {
            CHANGES
        } else {
            NOTHING
        }
    }
}

/// Makes a plan, once the management cluster has been listed and the configuration read.
pub(super) async fn dry_run(ctx: &Context, patience: Duration) -> Plan {
    let mut config = ctx.config.clone();
    let ready = async {
        let _ = config.wait_for(|loaded| loaded.good.is_some() || !loaded.trouble.is_empty()).await;
        ctx.stores.clusters.until_synced().await;
        ctx.stores.projects.until_synced().await;
        ctx.stores.provisioning.until_synced().await;
        while ctx.stores.floating().is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let mut plan = Plan::default();
    if tokio::time::timeout(patience, ready).await.is_err() {
        plan.trouble.push("the management cluster was not listed in time: is this the management cluster of Rancher, with the floating-IP kinds?".to_owned());
    }
    let loaded = ctx.config.borrow().clone();
    plan.trouble.extend(loaded.trouble.iter().cloned());
    let Some(good) = loaded.good else { return plan };
    for cluster in ctx.stores.clusters.all() {
        if select(&cluster) != Selection::Enabled {
            continue;
        }
        let steps = Arc::new(Mutex::new(Vec::new()));
        let dry = told(ctx, &steps);
        let memory = dry.memory(cluster.name());
        let passed = dry.enabled_pass(&cluster, &good, &memory).await;
        let problems =
            passed.problems.iter().map(|problem| format!("{}: {}", problem.reason, problem.message));
        // What a person has to decide is known; what is tried again by itself is not.
        let is_known = |problem: &Problem| matches!(problem.again, Again::Slow | Again::Never);
        plan.clusters.push(ClusterPlan {
            complete: passed.problems.iter().all(is_known),
            cluster: cluster.name().to_owned(),
            display_name: cluster.body.display_name.clone(),
            problems: problems.collect(),
            steps: lock(&steps).clone(),
        });
    }
    plan
}

/// The same context, whose writes are only told.
fn told(ctx: &Context, steps: &Arc<Mutex<Vec<String>>>) -> Context {
    let effects = Effects::Dry(Arc::clone(steps));
    Context {
        local: Api::new(ctx.local.writer().clone(), "local", ctx.delays.local_timeout, effects),
        stores: Arc::clone(&ctx.stores),
        dial: Arc::clone(&ctx.dial),
        helm: Arc::clone(&ctx.helm),
        helm_slots: Semaphore::new(1),
        leash: ctx.leash.clone(),
        config: ctx.config.clone(),
        recorder: None,
        metrics: crate::metrics::FipMetrics::default(),
        random: Arc::clone(&ctx.random),
        tokens: Arc::clone(&ctx.tokens),
        delays: ctx.delays,
        memories: Mutex::new(BTreeMap::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_for_people_and_for_programs() {
        let mut plan = Plan::default();
        assert_eq!((plan.to_text().as_str(), plan.exit_code()), ("no cluster takes part\n", 0));
        plan.clusters.push(ClusterPlan {
            cluster: "c-1".into(),
            display_name: "one".into(),
            complete: true,
            ..ClusterPlan::default()
        });
        assert_eq!((plan.to_text().as_str(), plan.exit_code()), ("c-1 (one)\n  nothing to do\n", 0));
        plan.clusters[0].steps.push("create the namespace fip".to_owned());
        plan.clusters[0].problems.push("ChartFailed: x".to_owned());
        assert_eq!(
            (plan.to_text().as_str(), plan.exit_code()),
            ("c-1 (one)\n  - create the namespace fip\n  ! ChartFailed: x\n", 2)
        );
        assert!(plan.to_json().contains("\"displayName\": \"one\""));
        plan.clusters[0].complete = false;
        assert_eq!(plan.exit_code(), 1, "what could not be looked at is not known to be as it should be");
        plan.clusters[0].complete = true;
        plan.trouble.push("away".to_owned());
        assert_eq!(plan.exit_code(), 1);
    }
}
