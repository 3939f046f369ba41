//! One pass over one Service, live or dry: observe, decide, act, record.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Category, Error, Lookup, Result,
    decide::{
        nodeset::synced::Fleet,
        service::{
            account::is_denied,
            lifecycle::{Closing, Opening, close, is_new},
            ownership::Ownership,
            patch,
        },
    },
    lb::{Desired, Effects, Goal, IntentMark, LockKey, Permit, Publish, StepReport, Survey, Turn},
    provider::Boxed,
    time::Tick,
};

use super::{
    ServiceController, SurveyCache, check_account::AccountCheck, input::SyncInput, node_changes::accepts,
};
use crate::{effects::services::ServiceEffects, lock};

/// How long one turn of the loop may take.
const TURN_TIMEOUT: Duration = Duration::from_secs(120);

/// Why a pass ended before its time.
pub(crate) enum Interrupted {
    /// A write failed.
    Error(Error),
    /// The Service is no longer what the pass began with: begin again.
    Changed,
    /// It is of another class, and the cloud does not prove that the load balancer is its own, or could not say so.
    NotOurs(Option<Error>),
}

impl From<Error> for Interrupted {
    fn from(why: Error) -> Self {
        Self::Error(why)
    }
}

/// One pass over one Service.
pub(crate) struct Pass<'a> {
    pub(super) controller: &'a ServiceController,
    pub(super) effects: &'a dyn ServiceEffects,
}

/// How a turn ended.
struct Ended {
    turn: Turn,
    /// Whether it was allowed to create.
    permit: Permit,
    /// What it was to reach.
    want: Desired,
}

impl Ended {
    /// How a turn ends about which nothing is known.
    fn unknown(want: Desired, why: Error) -> Self {
        Self { turn: Turn::unknown(why), permit: Permit::NoCreate, want }
    }
}

impl<'a> Pass<'a> {
    /// Takes the Service as far as it goes now; `None` where nothing is to be done about it.
    ///
    /// The cloud may have been looked at as early as `not_before`.
    pub(super) async fn sync(
        &self,
        mut input: SyncInput<'a>,
        not_before: Tick,
    ) -> Result<Option<Closing>, Interrupted> {
        let Some((_, goal)) = input.task() else {
            self.effects.opened(&input.opening);
            return Ok(None);
        };
        let want = self.desired(&input);
        if is_new(&input.service, &input.assignment, &input.opening, input.keys()) {
            let refused = input.balancers.screen(&want);
            if !refused.is_empty() {
                // It asks for what cannot be done: people are told, and that is all.
                let turn = Turn::screened(refused);
                let closing = close(goal, Permit::NoCreate, &turn, input.intent);
                self.effects.closed(&want, &turn, &closing);
                return Ok(Some(closing));
            }
        }
        let mut ended = self.attempt(&mut input, want, None, not_before).await?;
        if is_denied(goal, &ended.turn, input.intent, &self.effects.newest(), &self.keys(&input)) {
            ended = self.confirm(&mut input, ended).await?;
        }
        let mut closing = self.close(&input, &ended);
        if closing == Closing::RecordIntent {
            self.recheck(&mut input)?;
            let want = self.desired(&input);
            ended = self.attempt(&mut input, want, Some(Permit::Create), not_before).await?;
            closing = self.close(&input, &ended);
        }
        self.record(&mut input, &closing).await?;
        Ok(Some(closing))
    }

    /// Has a turn of the loop for what an input wants that was just checked, with an intent on the Service if the turn may
    /// create.
    async fn attempt(
        &self,
        input: &mut SyncInput<'a>,
        mut want: Desired,
        permit: Option<Permit>,
        not_before: Tick,
    ) -> Result<Ended, Interrupted> {
        let survey = match input.cloud.survey(input, not_before) {
            Ok(survey) => survey,
            Err(why) => return Ok(Ended::unknown(want, why)),
        };
        if matches!(input.opening, Opening::CleanupIfProven { .. }) {
            self.prove(input, &survey, &want).await?;
            self.recheck(input)?;
            want = self.desired(input);
        }
        self.effects.opened(&input.opening);
        let permit = permit.or(input.opening.turn().map(|(_, _, permit)| permit)).unwrap_or(Permit::NoCreate);
        if permit == Permit::Create || matches!(input.opening, Opening::Prepare { .. }) {
            self.prepare(input, permit).await?;
            want = self.desired(input);
        }
        if want.goal == Goal::Present && !self.effects.is_dry() {
            lock(&self.controller.synced).note(&want.service.key(), Fleet::of(&want.backends));
        }
        let call = self.controller.ctx.cluster.call(TURN_TIMEOUT);
        let mut under_way = UnderWay { pass: self, input, permit, ended: false };
        let turn = input.balancers.turn(&call, &survey, &want, permit, &under_way).await;
        under_way.ended = true;
        Ok(Ended { turn, permit, want })
    }

    /// Reads the Service again if there is a newer version. Interrupted, if it is gone, asks for something else, or lays
    /// claim to more: that is not locked, and the survey may be too old for it.
    fn recheck(&self, input: &mut SyncInput<'a>) -> Result<(), Interrupted> {
        let Some(service) = self.effects.known() else { return Err(Interrupted::Changed) };
        if service.resource_version == input.service.resource_version {
            input.service = service;
            return Ok(());
        }
        let now = self.controller.read(service, Some(input)).map_err(|_| Interrupted::Changed)?;
        if now.task() != input.task() || now.keys().iter().any(|key| !input.keys().contains(key)) {
            return Err(Interrupted::Changed);
        }
        *input = now;
        Ok(())
    }

    /// What the newest version lays claim to.
    fn keys(&self, input: &SyncInput<'a>) -> Vec<LockKey> {
        let service = self.effects.newest();
        if service.resource_version == input.service.resource_version {
            return input.keys().to_vec();
        }
        let now = self.controller.read(service, Some(input));
        now.map_or_else(|_| input.keys().to_vec(), |now| now.request.keys)
    }

    /// Goes on with a Service of another class only if the cloud proves that the load balancer is its own. People who
    /// look at somebody else's Service are not told about it.
    async fn prove(&self, input: &SyncInput<'a>, survey: &Survey, want: &Desired) -> Result<(), Interrupted> {
        let call = self.controller.ctx.cluster.call(TURN_TIMEOUT);
        match input.balancers.owner(&call, survey, want).await {
            Lookup::Present(Ownership::Proven) => Ok(()),
            Lookup::Present(_) | Lookup::Absent => Err(Interrupted::NotOurs(None)),
            Lookup::Unknown(why) => Err(Interrupted::NotOurs(Some(why))),
        }
    }

    /// Puts the finalizer on, with an intent if the turn may create. Where somebody else wrote at the same time and that
    /// is known by now, the pass begins again at once.
    async fn prepare(&self, input: &mut SyncInput<'a>, permit: Permit) -> Result<(), Interrupted> {
        let Some((provider, _)) = input.task() else { return Err(Interrupted::Changed) };
        let ctx = &self.controller.ctx;
        let intent =
            (permit == Permit::Create).then(|| (ctx.clock().wall(), input.request.name.text.as_str()));
        let body = patch::prepare(&ctx.clouds.assignments, &input.service, provider, intent);
        if let Err(why) = self.effects.write(body).await {
            let known = self.effects.newest().resource_version != input.service.resource_version;
            return Err(if known && why.category() == Category::Conflict {
                Interrupted::Changed
            } else {
                why.context("failed to add load balancer cleanup finalizer").into()
            });
        }
        self.recheck(input)
    }

    /// What the Service wants of its cloud, with the nodes that belong behind its load balancer.
    fn desired(&self, input: &SyncInput<'a>) -> Desired {
        let SyncInput { cloud: SurveyCache { cloud, .. }, service, request, .. } = input;
        let (controller, me) = (self.controller, service.key());
        let goal = input.task().map_or(Goal::Gone, |(_, goal)| goal);
        let mut nodes = self.effects.nodes();
        nodes.retain(|node| accepts(&controller.ctx.clouds, cloud, node));
        let backends = match goal {
            Goal::Present => controller.backends(cloud, service, request.selector.as_ref(), &nodes),
            Goal::Gone => Vec::new(),
        };
        Desired {
            service: Arc::clone(service),
            cluster: controller.ctx.cluster_name.clone(),
            goal,
            backends,
            nodes,
            rivals: lock(&controller.index).rivals(&me, cloud.name(), &request.keys).into_iter().collect(),
            claims: controller.claims(&me, cloud.name()),
        }
    }

    /// Believes a turn that found nothing only if that was in the cluster's own account.
    ///
    /// The instances are listed after the denial, and where they vouch for the account, the load balancer is looked for
    /// once more after that. A credential that was another account's before or after the listing is found out either way,
    /// unless it changes again within that second turn; then the next pass has to tell.
    async fn confirm(&self, input: &mut SyncInput<'a>, denied: Ended) -> Result<Ended, Interrupted> {
        let (began, nodes) = (self.effects.now(), self.effects.nodes());
        match self.controller.check_account(&input.cloud.cloud, &nodes, began).await {
            Ok(AccountCheck::Silent) => Ok(denied),
            Ok(AccountCheck::Ours(seen)) => {
                self.recheck(input)?;
                // One survey serves all Services of a dry run.
                let not_before = if self.effects.is_dry() { began } else { seen };
                let want = self.desired(input);
                let again = self.attempt(input, want, Some(Permit::NoCreate), not_before).await?;
                Ok(if again.turn.denied { Ended::unknown(again.want, seen_and_gone()) } else { again })
            }
            Err(why) => Ok(Ended::unknown(denied.want, why)),
        }
    }

    fn close(&self, input: &SyncInput<'a>, Ended { turn, permit, want }: &Ended) -> Closing {
        let closing = close(want.goal, *permit, turn, input.intent);
        self.effects.heard(want.goal, turn);
        self.effects.closed(want, turn, &closing);
        closing
    }

    /// Writes what is to be written at the end.
    async fn record(&self, input: &mut SyncInput<'a>, closing: &Closing) -> Result<(), Interrupted> {
        match closing {
            Closing::TurnEnd { clear_intent }
            | Closing::Wait { clear_intent, .. }
            | Closing::Retry { clear_intent, .. } => {
                Ok(self.publish(&Publish::default(), *clear_intent).await?)
            }
            Closing::Hold { .. } => Ok(()),
            Closing::Release => self.release(input).await,
            Closing::RecordIntent => {
                Err(Error::permanent("internal error: an intent is asked for twice").into())
            }
        }
    }

    /// Takes the finalizer off, unless the Service wants its load balancer back by now. From here on the object may
    /// vanish at any moment.
    async fn release(&self, input: &mut SyncInput<'a>) -> Result<(), Interrupted> {
        let service = self.effects.newest();
        if self.effects.known().is_some() {
            self.recheck(input)?;
        }
        let assignment = self.controller.ctx.clouds.assignments.of(&service);
        let recorded = input.balancers.profile().annotations.recorded();
        match self.effects.release(patch::release(&service, &assignment, recorded)).await {
            Err(why) if why.category() != Category::NotFound => {
                Err(why.context("failed to remove load balancer cleanup finalizer").into())
            }
            _ => Ok(()),
        }
    }

    /// Writes what differs. An object that is gone needs nothing.
    async fn publish(&self, publish: &Publish, clear_intent: bool) -> Result<()> {
        let publish = publish.fit_for(self.controller.ctx.cluster.version());
        let body = patch::record(&self.effects.newest(), &publish, clear_intent);
        patch::written(self.effects.write(body).await)
    }
}

fn seen_and_gone() -> Error {
    Error::temporary(
        "the load balancer was seen twice, and each time it was not there when it was to be deleted",
    )
}

/// A turn that is under way. One that never ends, because of a bug, may have changed things all the same.
struct UnderWay<'p, 'a> {
    pass: &'p Pass<'a>,
    input: &'p SyncInput<'a>,
    permit: Permit,
    ended: bool,
}

impl Effects for UnderWay<'_, '_> {
    fn is_dry(&self) -> bool {
        self.pass.effects.is_dry()
    }

    fn record<'b>(&'b self, publish: &'b Publish, intent: IntentMark) -> Boxed<'b, Result<()>> {
        Box::pin(self.pass.publish(publish, intent == IntentMark::Clear))
    }

    fn step(&self, report: StepReport) {
        self.pass.effects.step(report, &self.pass.keys(self.input));
    }
}

impl Drop for UnderWay<'_, '_> {
    fn drop(&mut self) {
        self.pass.effects.turn_over(self.input.keys(), self.permit, self.ended);
    }
}
