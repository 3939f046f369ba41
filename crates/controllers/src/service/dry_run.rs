//! What would be done about the Services now, with nothing written and nothing told.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc};

use cloudberth_core::{
    Error, Lookup, NodeView, ObjectKey, Result, ServiceView,
    annotation::Table,
    decide::service::{
        account::would_be_denied,
        assignments::Assignment,
        events,
        lifecycle::{Opening, open},
        ownership::Ownership,
        patch,
    },
    lb::{Goal, Impact, Intent, Plan, Survey, TurnEnd},
    time::Tick,
};
use futures_util::FutureExt;

use super::{ServiceController, pass::PATIENCE};
use crate::{
    dry_run::{
        DryRun,
        words::{self, Values},
    },
    lock,
};

/// One look at each cloud.
type Looks = BTreeMap<String, Result<Survey>>;

impl ServiceController {
    /// What would be done about every Service now, if the nodes were `nodes`.
    ///
    /// Nothing is written, and one survey of each cloud that is concerned serves all Services.
    pub async fn dry_run(&self, nodes: &[Arc<NodeView>]) -> Vec<(ObjectKey, DryRun)> {
        let begun = self.ctx.clock().now();
        let services = self.ctx.cluster.services.all();
        // Whoever keys the same thing is a rival, whichever of them is looked at first.
        for service in &services {
            self.enter(&service.key(), Some(service));
        }
        let mut looks = Looks::new();
        let mut all = Vec::new();
        for service in &services {
            let one =
                AssertUnwindSafe(self.dry_run_one(service, nodes, begun, &mut looks)).catch_unwind().await;
            all.push((service.key(), one.unwrap_or_else(|_| DryRun::bug())));
        }
        all
    }

    async fn dry_run_one(
        &self,
        service: &Arc<ServiceView>,
        nodes: &[Arc<NodeView>],
        begun: Tick,
        looks: &mut Looks,
    ) -> DryRun {
        let assignments = &self.ctx.clouds.assignments;
        let now = self.ctx.clock().now();
        let assignment = assignments.of(service);
        let cloud = assignment.holder.and_then(|name| self.clouds.get(name));
        let Some((cloud, balancers)) = cloud.and_then(|cloud| Some((cloud, cloud.balancers()?))) else {
            return idle(&open(assignments, service, Intent::Free));
        };
        let intent = lock(&self.intents).judge(service, now, balancers.settle_time());
        let opening = open(assignments, service, intent);
        let Some((provider, goal, _)) = opening.turn() else { return idle(&opening) };
        let keys = balancers.lock_keys(service, &self.ctx.cluster_name);
        if !looks.contains_key(provider) {
            looks.insert(provider.to_owned(), cloud.survey(&[], now).await);
        }
        let survey = match looks.get(provider) {
            Some(Ok(survey)) => survey,
            Some(Err(why)) => return DryRun::unknown(provider, why.clone()),
            None => return DryRun::of(provider),
        };
        let want = self.want(balancers, provider, goal, Arc::clone(service), &keys, nodes);
        let call = self.ctx.cluster.call(PATIENCE);
        if matches!(opening, Opening::CleanupIfProven { .. }) {
            match balancers.owner(&call, survey, &want).await {
                Lookup::Present(Ownership::Proven) => {}
                Lookup::Present(_) | Lookup::Absent => return DryRun::default(),
                Lookup::Unknown(why) => return DryRun::unknown(provider, why),
            }
        }
        let mut plan = balancers.dry_run(&call, survey, &want).await;
        if goal == Goal::Gone
            && would_be_denied(&plan, intent, service, &keys)
            && let Err(why) = self.check_account(cloud.cloud(), nodes, begun).await
        {
            plan.end = TurnEnd::Unknown(why);
        }
        let mut told = DryRun::of(provider);
        if let Opening::Prepare { provider, .. } = opening
            && !matches!(plan.end, TurnEnd::Unknown(_))
            && let Some(body) = patch::prepare(assignments, service, provider, None)
        {
            told.step(Impact::None, words::service(&body, Values::Known));
        }
        plan.publish = plan.publish.map(|publish| publish.fit_for(self.ctx.cluster.version()).into_owned());
        let writer = ServiceWriter { service, assignment: &assignment, table: balancers.annotations() };
        tell(&writer, goal, intent, plan, &mut told);
        if let Some(server) = assignment.server.filter(|server| *server != provider) {
            told.remarks.push(format!("it moves: {server} serves it once {provider} has let go of it"));
        }
        told
    }
}

/// What would be written on.
struct ServiceWriter<'a> {
    service: &'a ServiceView,
    assignment: &'a Assignment<'a>,
    table: &'a Table,
}

/// Puts what the loop would do into words, and what would be written on the Service in the end.
fn tell(writer: &ServiceWriter<'_>, goal: Goal, intent: Intent, plan: Plan, told: &mut DryRun) {
    let ServiceWriter { service, assignment, table } = *writer;
    let Plan { steps, end, publish, refused, notices } = plan;
    // What is published after steps are the cloud's answers to them, and these can only be assumed.
    let values = if steps.is_empty() { Values::Known } else { Values::Assumed };
    if intent != Intent::Free && !steps.is_empty() {
        told.remarks.push("an earlier creation may still show up; until then nothing is created".to_owned());
    }
    told.steps.extend(steps);
    told.remarks.extend(refused.iter().map(ToString::to_string));
    told.remarks.extend(notices.into_iter().map(|notice| notice.message));
    let publish = publish.unwrap_or_default();
    let body = match (end, goal) {
        (TurnEnd::Converged, Goal::Present) => patch::record(service, &publish, true),
        (TurnEnd::Converged, Goal::Gone) if intent == Intent::Free => {
            patch::release(service, assignment, table.recorded())
        }
        (TurnEnd::Converged, Goal::Gone) => {
            told.waits = Some("an earlier creation, which may still show up".to_owned());
            None
        }
        (TurnEnd::Wait { on, .. }, _) => {
            told.waits = Some(on.to_owned());
            patch::record(service, &publish, false)
        }
        (TurnEnd::Refused, _) => None,
        (TurnEnd::Failed(why) | TurnEnd::Unknown(why), _) => {
            told.unknown = Some(why);
            None
        }
        (TurnEnd::NeedsIntent, _) => {
            told.unknown = Some(Error::permanent("internal error: a dry run needs no intent"));
            None
        }
    };
    if let Some(body) = body {
        told.step(Impact::None, words::service(&body, values));
    }
}

/// What is to be said about a Service for which nothing is done.
fn idle(opening: &Opening<'_>) -> DryRun {
    match opening {
        Opening::Doubt(why) => DryRun { remarks: vec![why.message().to_owned()], ..DryRun::default() },
        Opening::Orphan { provider } => {
            let remark = events::orphan(provider).message;
            DryRun { remarks: vec![remark], ..DryRun::of(provider) }
        }
        _ => DryRun::default(),
    }
}
