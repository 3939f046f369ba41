//! What a pass over a Service does to the world.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Category, Error, NodeView, ObjectKey, Result, ServiceView,
    decide::service::{
        census::is_refused,
        change::remember,
        events,
        lifecycle::{Closing, Opening},
        patch,
    },
    lb::{Desired, Goal, INTENT_ANNOTATION, Impact, LockKey, Permit, PlannedStep, StepReport, Turn, TurnEnd},
    provider::Boxed,
    time::Tick,
};
use serde_json::Value;

use crate::{
    dry_run::{
        DryRun,
        words::{self, Values},
    },
    lock,
    service::{Interrupted, ServiceController, SurveyCache, SyncReason},
};

/// How long one write may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a pass sees of the world and does to it. There are two: [`Live`] and [`Dry`].
pub(crate) trait ServiceEffects: Send + Sync {
    /// Whether nothing is sent, to no cloud and no API server.
    fn is_dry(&self) -> bool;

    /// The newest version of this very object; `None` if it is gone from the cluster.
    fn known(&self) -> Option<Arc<ServiceView>>;

    /// The newest version of this very object, the last one if it is gone.
    fn newest(&self) -> Arc<ServiceView>;

    /// The nodes of the cluster.
    fn nodes(&self) -> Vec<Arc<NodeView>>;

    /// The time from which on a listing is new enough.
    fn now(&self) -> Tick;

    /// Writes on the Service, if there is anything to write.
    fn write(&self, body: Option<Value>) -> Boxed<'_, Result<()>>;

    /// Writes what takes the finalizer off.
    fn release(&self, body: Option<Value>) -> Boxed<'_, Result<()>> {
        self.write(body)
    }

    /// A pass opened so.
    fn opened(&self, opening: &Opening<'_>);

    /// A step for the load balancer behind `keys` was answered, or given up.
    fn step(&self, report: StepReport, keys: &[LockKey]);

    /// A turn ended, or was given up.
    fn turn_over(&self, _keys: &[LockKey], _permit: Permit, _ended: bool) {}

    /// The cloud was asked, and the turn ended so.
    fn heard(&self, _goal: Goal, _turn: &Turn) {}

    /// A pass closed so, after a turn for what was wanted.
    fn closed(&self, want: &Desired, turn: &Turn, closing: &Closing);
}

/// The real world.
pub(crate) struct Live<'a> {
    pub(crate) controller: &'a ServiceController,
    pub(crate) cloud: &'a SurveyCache,
    pub(crate) key: &'a ObjectKey,
    pub(crate) reason: SyncReason,
    /// The newest version that this pass has seen, in case the store has lost it by now.
    pub(crate) seen: Mutex<Arc<ServiceView>>,
}

impl ServiceEffects for Live<'_> {
    fn is_dry(&self) -> bool {
        false
    }

    /// The store has the answers of our own writes too.
    fn known(&self) -> Option<Arc<ServiceView>> {
        let mut seen = lock(&self.seen);
        let known = self.controller.ctx.cluster.services.get(self.key)?;
        if known.uid != seen.uid {
            return None;
        }
        seen.clone_from(&known);
        Some(known)
    }

    fn newest(&self) -> Arc<ServiceView> {
        self.known().unwrap_or_else(|| Arc::clone(&lock(&self.seen)))
    }

    fn nodes(&self) -> Vec<Arc<NodeView>> {
        self.controller.ctx.cluster.nodes.all()
    }

    fn now(&self) -> Tick {
        self.controller.ctx.clock().now()
    }

    fn write(&self, body: Option<Value>) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let Some(body) = body else { return Ok(()) };
            // The watch may be faster than the answer.
            self.controller.states.of(self.key, |state| remember(&mut state.written, &body));
            let cluster = &self.controller.ctx.cluster;
            let answer = cluster.patch_service(&cluster.call(WRITE_TIMEOUT), self.key, &body).await?;
            let mut seen = lock(&self.seen);
            if answer.uid == seen.uid {
                *seen = answer;
            }
            Ok(())
        })
    }

    fn release(&self, body: Option<Value>) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let states = &self.controller.states;
            let uid = self.newest().uid.clone();
            states.of(self.key, |state| state.released = Some(uid));
            let written = self.write(body).await;
            let failure = written.as_ref().err().map(Error::category);
            if failure == Some(Category::Conflict) {
                states.of(self.key, |state| state.released = None);
            }
            if failure.is_some_and(|category| category != Category::NotFound) {
                return written;
            }
            lock(&self.controller.synced).forget(self.key);
            let notices = states.of(self.key, |state| state.told.released());
            self.controller.tell(&self.newest(), notices);
            Ok(())
        })
    }

    fn opened(&self, opening: &Opening<'_>) {
        let orphan = matches!(opening, Opening::Orphan { .. }).then(|| self.newest().uid.clone());
        let notices = self.controller.states.of(self.key, |state| {
            if orphan.is_some() && state.orphan != orphan {
                self.controller.ctx.metrics.service.orphans.inc();
            }
            state.orphan = orphan.or_else(|| state.orphan.take());
            state.told.opening(opening)
        });
        self.controller.tell(&self.newest(), notices);
    }

    fn step(&self, report: StepReport, keys: &[LockKey]) {
        let StepReport { label, impact, result } = report;
        match result {
            Ok(()) => tracing::info!(service = %self.key, %impact, "{label}"),
            Err(why) => tracing::warn!(service = %self.key, %impact, %why, "{label}: not done, or not known"),
        }
        self.cloud.mutated(keys);
    }

    fn turn_over(&self, keys: &[LockKey], permit: Permit, ended: bool) {
        if !ended {
            self.cloud.mutated(keys);
        }
        // What a turn that was allowed to create has sent may still be on its way.
        if permit == Permit::Create {
            lock(&self.controller.intents).touched(self.key, self.now());
        }
    }

    fn heard(&self, goal: Goal, turn: &Turn) {
        self.cloud.heard(goal, turn);
    }

    fn closed(&self, want: &Desired, turn: &Turn, closing: &Closing) {
        let goal = want.goal;
        let nodes: Vec<_> = want.backends.iter().map(|backend| backend.node.name.as_str()).collect();
        let notices = self.controller.states.of(self.key, |state| {
            state.further |= state.progress.advance(turn);
            state.told.closing(goal, self.reason.occasion(), turn, &nodes, closing)
        });
        self.controller.tell(&self.newest(), notices);
        if let Some(refused) = is_refused(goal, turn) {
            self.controller.census.judged(self.key, refused);
        }
        if self.reason == SyncReason::Nodes && goal == Goal::Present {
            let metrics = &self.controller.ctx.metrics.service;
            metrics.load_balancer_syncs.inc();
            if matches!(closing, Closing::Retry { .. }) {
                metrics.node_sync_errors.inc();
            }
        }
    }
}

/// What all Services of one dry run share: the time, and with it one survey of each cloud, and the nodes.
pub(crate) struct DryWorld<'a> {
    pub(crate) begun: Tick,
    pub(crate) nodes: &'a [Arc<NodeView>],
}

/// A world in which every write succeeds and is only noted.
pub(crate) struct Dry<'a> {
    world: &'a DryWorld<'a>,
    before: Arc<ServiceView>,
    assumed: Mutex<Arc<ServiceView>>,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    /// The write that puts the finalizer on.
    prepared: Option<Value>,
    steps: Vec<PlannedStep>,
    /// All later writes in one.
    written: Value,
    told: DryRun,
}

impl<'a> Dry<'a> {
    pub(crate) fn new(world: &'a DryWorld<'a>, service: Arc<ServiceView>) -> Self {
        let assumed = Mutex::new(Arc::clone(&service));
        Self { world, before: service, assumed, noted: Mutex::default() }
    }

    /// What is said about a Service that concerns no cloud of ours.
    pub(crate) fn left(self, opening: &Opening<'_>) -> DryRun {
        self.opened(opening);
        self.finish(None, Ok(None))
    }

    /// What the pass would do at the cloud that it was about.
    pub(crate) fn finish(self, cloud: Option<&str>, ended: Result<Option<Closing>, Interrupted>) -> DryRun {
        let Noted { prepared, steps, written, mut told } =
            self.noted.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        told.cloud = cloud.map(str::to_owned).or(told.cloud);
        match ended {
            Ok(_) => {}
            Err(Interrupted::NotOurs(None)) => return DryRun::default(),
            Err(Interrupted::Changed) => {
                told.unknown = Some(Error::permanent("internal error: a dry run changed the Service"));
            }
            Err(Interrupted::NotOurs(Some(why))) => {
                return DryRun::unknown(cloud.unwrap_or_default(), why);
            }
            Err(Interrupted::Error(why)) => told.unknown = Some(why),
        }
        // What is published after steps are the cloud's answers to them, and these can only be assumed.
        let values = if steps.is_empty() { Values::Known } else { Values::Assumed };
        // An intent that the pass itself puts on and takes off again is no news.
        let stays = self.before.annotations.contains_key(INTENT_ANNOTATION);
        if let Some(body) = prepared.and_then(|body| without_intent(body, false)) {
            told.step(Impact::None, words::service(&body, Values::Known));
        }
        told.steps.extend(steps);
        if let Some(body) = without_intent(written, stays) {
            told.step(Impact::None, words::service(&body, values));
        }
        told
    }

    fn note(&self, body: Value) {
        let mut assumed = lock(&self.assumed);
        *assumed = Arc::new(patch::assume(&assumed, &body));
        let mut noted = lock(&self.noted);
        if body.pointer("/metadata/finalizers").is_some() {
            noted.prepared = Some(body);
        } else {
            merge(&mut noted.written, body);
        }
    }
}

impl ServiceEffects for Dry<'_> {
    fn is_dry(&self) -> bool {
        true
    }

    fn known(&self) -> Option<Arc<ServiceView>> {
        Some(self.newest())
    }

    fn newest(&self) -> Arc<ServiceView> {
        Arc::clone(&lock(&self.assumed))
    }

    fn nodes(&self) -> Vec<Arc<NodeView>> {
        self.world.nodes.to_vec()
    }

    fn now(&self) -> Tick {
        self.world.begun
    }

    fn write(&self, body: Option<Value>) -> Boxed<'_, Result<()>> {
        if let Some(body) = body {
            self.note(body);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn opened(&self, opening: &Opening<'_>) {
        let mut noted = lock(&self.noted);
        // The turn that follows starts again from what the cloud showed.
        noted.steps.clear();
        match opening {
            Opening::Doubt(why) => noted.told.remarks = vec![why.message().to_owned()],
            Opening::Orphan { provider } => {
                noted.told.remarks = vec![events::orphan(provider).message];
                noted.told.cloud = Some((*provider).to_owned());
            }
            _ => {}
        }
    }

    fn step(&self, report: StepReport, _: &[LockKey]) {
        lock(&self.noted).steps.push(PlannedStep { label: report.label, impact: report.impact });
    }

    fn closed(&self, _: &Desired, turn: &Turn, closing: &Closing) {
        let told = &mut lock(&self.noted).told;
        told.remarks = turn.refused.iter().map(ToString::to_string).collect();
        told.remarks.extend(turn.notices.iter().map(|notice| notice.message.clone()));
        match (closing, &turn.end) {
            (Closing::Hold { .. }, _) => {
                told.waits = Some("an earlier creation, which may still show up".to_owned());
            }
            (_, TurnEnd::Wait { on, .. }) => told.waits = Some(on.to_string()),
            (Closing::Retry { error, .. }, _) => told.unknown = Some(error.clone()),
            _ => {}
        }
    }
}

/// Puts one merge patch on top of another.
fn merge(into: &mut Value, body: Value) {
    match (into, body) {
        (Value::Object(into), Value::Object(body)) => {
            for (key, value) in body {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, body) => *into = body,
    }
}

/// The write without its intent, unless that `stays`; `None` where it then changes nothing.
fn without_intent(mut body: Value, stays: bool) -> Option<Value> {
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut)?;
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        if !stays {
            annotations.remove(INTENT_ANNOTATION);
        }
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    let has_more = metadata.keys().any(|key| key != "uid" && key != "resourceVersion");
    (has_more || body.get("status").is_some()).then_some(body)
}
