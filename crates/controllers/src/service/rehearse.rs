//! What would be done about the Services now, with nothing written and nothing told.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc};

use cloudberth_core::{
    Error, Lookup, NodeView, ObjectKey, Result, ServiceView,
    annotation::Table,
    decide::service::{
        account::would_be_denied,
        events,
        lifecycle::{Opening, open},
        ownership::Ownership,
        patch,
        roster::Standing,
    },
    lb::{Goal, Impact, Intent, Plan, Rest, Survey},
    time::Tick,
};
use futures_util::FutureExt;

use super::{ServiceController, pass::PATIENCE};
use crate::{
    lock,
    rehearsal::{
        Rehearsal,
        words::{self, Values},
    },
};

/// One look at each cloud.
type Looks = BTreeMap<String, Result<Survey>>;

impl ServiceController {
    /// What would be done about every Service now, if the nodes were `nodes`.
    ///
    /// Nothing is written, and one survey of each cloud that is concerned serves all Services.
    pub async fn rehearse(&self, nodes: &[Arc<NodeView>]) -> Vec<(ObjectKey, Rehearsal)> {
        let begun = self.desk.clock().now();
        let services = self.desk.cluster.services.all();
        // Whoever claims the same thing is a rival, whichever of them is looked at first.
        for service in &services {
            self.enter(&service.key(), Some(service));
        }
        let mut looks = Looks::new();
        let mut all = Vec::new();
        for service in &services {
            let one =
                AssertUnwindSafe(self.rehearse_one(service, nodes, begun, &mut looks)).catch_unwind().await;
            all.push((service.key(), one.unwrap_or_else(|_| Rehearsal::bug())));
        }
        all
    }

    async fn rehearse_one(
        &self,
        service: &Arc<ServiceView>,
        nodes: &[Arc<NodeView>],
        begun: Tick,
        looks: &mut Looks,
    ) -> Rehearsal {
        let roster = &self.desk.clouds.roster;
        let now = self.desk.clock().now();
        let standing = roster.standing(service);
        let cloud = standing.holder.and_then(|name| self.clouds.get(name));
        let Some((cloud, balancers)) = cloud.and_then(|cloud| Some((cloud, cloud.balancers()?))) else {
            return idle(&open(roster, service, Intent::Free));
        };
        let intent = lock(&self.intents).judge(service, now, balancers.settle_time());
        let opening = open(roster, service, intent);
        let Some((provider, goal, _)) = opening.turn() else { return idle(&opening) };
        let claims = balancers.claims(service, &self.desk.cluster_name);
        if !looks.contains_key(provider) {
            looks.insert(provider.to_owned(), cloud.survey(&[], now).await);
        }
        let survey = match looks.get(provider) {
            Some(Ok(survey)) => survey,
            Some(Err(why)) => return Rehearsal::unknown(provider, why.clone()),
            None => return Rehearsal::of(provider),
        };
        let want = self.want(balancers, provider, goal, Arc::clone(service), &claims, nodes);
        let call = self.desk.cluster.call(PATIENCE);
        if matches!(opening, Opening::CleanupIfProven { .. }) {
            match balancers.owner(&call, survey, &want).await {
                Lookup::Present(Ownership::Proven) => {}
                Lookup::Present(_) | Lookup::Absent => return Rehearsal::default(),
                Lookup::Unknown(why) => return Rehearsal::unknown(provider, why),
            }
        }
        let mut plan = balancers.rehearse(&call, survey, &want).await;
        if goal == Goal::Gone
            && would_be_denied(&plan, intent, service, &claims)
            && let Err(why) = self.witness(cloud.cloud(), nodes, begun).await
        {
            plan.rest = Rest::Unknown(why);
        }
        let mut told = Rehearsal::of(provider);
        if let Opening::Prepare { provider, .. } = opening
            && !matches!(plan.rest, Rest::Unknown(_))
            && let Some(body) = patch::prepare(roster, service, provider, None)
        {
            told.step(Impact::None, words::service(&body, Values::Known));
        }
        plan.publish = plan.publish.map(|publish| publish.fit_for(self.desk.cluster.version()).into_owned());
        let page = Page { service, standing: &standing, table: balancers.annotations() };
        tell(&page, goal, intent, plan, &mut told);
        if let Some(server) = standing.server.filter(|server| *server != provider) {
            told.remarks.push(format!("it moves: {server} serves it once {provider} has let go of it"));
        }
        told
    }
}

/// What would be written on.
struct Page<'a> {
    service: &'a ServiceView,
    standing: &'a Standing<'a>,
    table: &'a Table,
}

/// Puts what the loop would do into words, and what would be written on the Service in the end.
fn tell(page: &Page<'_>, goal: Goal, intent: Intent, plan: Plan, told: &mut Rehearsal) {
    let Page { service, standing, table } = *page;
    let Plan { steps, rest, publish, refused, notices } = plan;
    // What is published after steps are the cloud's answers to them, and these can only be assumed.
    let values = if steps.is_empty() { Values::Known } else { Values::Assumed };
    if intent != Intent::Free && !steps.is_empty() {
        told.remarks.push("an earlier creation may still show up; until then nothing is created".to_owned());
    }
    told.steps.extend(steps);
    told.remarks.extend(refused.iter().map(ToString::to_string));
    told.remarks.extend(notices.into_iter().map(|notice| notice.message));
    let publish = publish.unwrap_or_default();
    let body = match (rest, goal) {
        (Rest::Converged, Goal::Present) => patch::record(service, &publish, true),
        (Rest::Converged, Goal::Gone) if intent == Intent::Free => {
            patch::release(service, standing, table.recorded())
        }
        (Rest::Converged, Goal::Gone) => {
            told.waits = Some("an earlier creation, which may still show up".to_owned());
            None
        }
        (Rest::Wait { on, .. }, _) => {
            told.waits = Some(on.to_owned());
            patch::record(service, &publish, false)
        }
        (Rest::Refused, _) => None,
        (Rest::Failed(why) | Rest::Unknown(why), _) => {
            told.unknown = Some(why);
            None
        }
        (Rest::NeedsIntent, _) => {
            told.unknown = Some(Error::permanent("internal error: a rehearsal needs no intent"));
            None
        }
    };
    if let Some(body) = body {
        told.step(Impact::None, words::service(&body, values));
    }
}

/// What is to be said about a Service for which nothing is done.
fn idle(opening: &Opening<'_>) -> Rehearsal {
    match opening {
        Opening::Doubt(why) => Rehearsal { remarks: vec![why.message().to_owned()], ..Rehearsal::default() },
        Opening::Orphan { provider } => {
            let remark = events::orphan(provider).message;
            Rehearsal { remarks: vec![remark], ..Rehearsal::of(provider) }
        }
        _ => Rehearsal::default(),
    }
}
