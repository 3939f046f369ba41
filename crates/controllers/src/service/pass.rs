//! One look at one Service: open, look, a turn of the load-balancer loop, close.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Category, Error, LoadBalancers, Lookup, NodeView, ObjectKey, Result, ServiceView,
    decide::{
        nodeset::synced::Fleet,
        queue::{Requeue, requeue},
        service::{
            account::is_denied,
            events,
            lifecycle::{Closing, Opening, close, open},
            ownership::Ownership,
        },
    },
    lb::{Goal, INTENT_ANNOTATION, Intent, LockKey, Notice, Permit, Publish, Survey, Turn},
    time::Tick,
};

use super::{ServiceController, check_account::AccountCheck, memory::SyncReason, writer::ServiceWriter};
use crate::lock;

/// How long one turn of the loop may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// A look that is at most as old as this serves.
const YOUNG: Duration = Duration::from_secs(3);
/// A look that is at most as old as this serves a Service that is looked at only for the sake of hand edits.
const YOUNG_FOR_DRIFT: Duration = Duration::from_secs(60);

/// Why a pass ended before its time.
enum Interrupted {
    /// A write failed.
    Error(Error),
    /// The Service is not any more what the pass began with: begin again.
    Changed,
}

impl From<Error> for Interrupted {
    fn from(why: Error) -> Self {
        Self::Error(why)
    }
}

/// The keys of a Service, as long as a pass needs them. Whoever waits for one of them is sent to work when the pass
/// is over, also if a bug ends it.
struct LockGuard<'a> {
    controller: &'a ServiceController,
    key: &'a ObjectKey,
    /// Whether the key only stands in line.
    waits: bool,
    /// The cloud one of whose workers this is.
    lane: Option<&'a str>,
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        let next = lock(&self.controller.lanes).leave(self.lane);
        for other in next {
            self.controller.pool.add(other);
        }
        if self.waits {
            return;
        }
        let freed = lock(&self.controller.book).release(self.key);
        for other in freed {
            self.controller.pool.add(other);
        }
        self.controller.looked_at(self.key);
        if self.controller.ctx.cluster.services.get(self.key).is_none() {
            self.controller.memory.erase(self.key);
        }
    }
}

/// A turn is under way. One that never ends, because of a bug, may have changed things all the same; what one that was
/// allowed to create has sent may still be on its way.
struct Mutating<'a> {
    writer: &'a ServiceWriter<'a>,
    keys: &'a [LockKey],
    permit: Permit,
    ended: bool,
}

impl Drop for Mutating<'_> {
    fn drop(&mut self) {
        let controller = self.writer.controller;
        if !self.ended {
            self.writer.cloud.mutated(self.keys);
        }
        if self.permit == Permit::Create {
            lock(&controller.intents).touched(self.writer.key, controller.ctx.clock().now());
        }
    }
}

/// What there is in a cloud, and for whose sake it was looked at.
struct Look {
    survey: Survey,
    keys: Vec<LockKey>,
}

/// How a turn ended, and the nodes that it was had with.
type Ended = (Turn, Vec<Arc<NodeView>>);

struct Pass<'a> {
    controller: &'a ServiceController,
    writer: &'a ServiceWriter<'a>,
    balancers: &'a dyn LoadBalancers,
    reason: SyncReason,
}

impl ServiceController {
    /// Looks at the Service of this key, and does what is to be done about it.
    pub(super) async fn work(&self, key: ObjectKey) -> Requeue {
        let mut held = LockGuard { controller: self, key: &key, waits: false, lane: None };
        let Some(service) = self.ctx.cluster.services.get(&key) else { return Requeue::Forget };
        let assignments = &self.ctx.clouds.assignments;
        let cloud = assignments.of(&service).holder.and_then(|name| self.clouds.get(name));
        let Some((cloud, balancers)) = cloud.and_then(|cloud| Some((cloud, cloud.balancers()?))) else {
            // Nobody's of ours, or nobody can tell whose.
            match open(assignments, &service, Intent::Free) {
                Opening::LeaveAlone => self.memory.erase(&key),
                opening => {
                    let notices = self.memory.of(&key, |note| {
                        note.reason = None;
                        note.told.opening(&opening)
                    });
                    self.tell(&service, notices);
                }
            }
            return Requeue::Forget;
        };
        if !lock(&self.lanes).enter(cloud.name(), &key) {
            held.waits = true;
            return Requeue::Forget;
        }
        held.lane = Some(cloud.name());
        let writer = ServiceWriter::new(self, cloud, &key, service);
        if !lock(&self.book).acquire(&key, &writer.lock_keys()) {
            // Whoever holds one of them sends us to work when it lets go.
            held.waits = true;
            return Requeue::Forget;
        }
        let reason = self.memory.of(&key, |note| {
            note.asleep = false;
            note.further = false;
            note.reason.take().unwrap_or(SyncReason::Service)
        });
        let pass = Pass { controller: self, writer: &writer, balancers, reason };
        let began = self.ctx.clock().now();
        let after = pass.run().await;
        if reason == SyncReason::Nodes {
            self.ctx.metrics.service.update_hosts_latency.observe(self.ctx.clock().now().since(began));
        }
        after
    }
}

impl Pass<'_> {
    async fn run(&self) -> Requeue {
        match self.go().await {
            Ok(after) => after,
            Err(Interrupted::Changed) => Requeue::After(Duration::ZERO),
            Err(Interrupted::Error(why)) => {
                // Somebody else wrote at the same time, or the object is gone: its next version is on its way.
                let quiet = matches!(why.category(), Category::Conflict | Category::NotFound);
                self.say(events::sync_failed(&why).filter(|_| !quiet));
                self.writer.cloud.cloud().inventory.report(&why);
                self.again(&why)
            }
        }
    }

    async fn go(&self) -> Result<Requeue, Interrupted> {
        let service = self.writer.newest();
        // Judged before the look: what a look shows that began while an intent pended is no proof of absence.
        let intent = self.judge(&service);
        let Some((provider, goal, _)) = self.open(&service, intent).turn() else {
            self.open_aloud(&service, intent);
            return Ok(Requeue::Forget);
        };
        let not_before = self.not_before(&service);
        let look = match self.look(goal, not_before).await {
            Ok(look) => look,
            Err(why) => {
                let unknown = (Turn::unknown(why), self.members(provider, goal, &service));
                let closing = self.close(goal, Permit::NoCreate, &unknown, intent);
                return self.end(provider, closing).await;
            }
        };
        let service = self.same(provider, goal, intent, &look)?;
        if matches!(self.open(&service, intent), Opening::CleanupIfProven { .. })
            && let Some(after) = self.leave_alone(provider, goal, &look).await
        {
            return Ok(after);
        }
        let opening = self.open_aloud(&service, intent);
        if let Opening::Prepare { provider, intent } = opening {
            self.prepare(provider, intent).await?;
        }
        let permit = opening.turn().map_or(Permit::NoCreate, |(_, _, permit)| permit);
        let mut turn = self.turn(provider, &look, goal, permit).await;
        if is_denied(goal, &turn.0, intent, &self.writer.newest(), &self.writer.lock_keys()) {
            turn = self.confirm(provider, goal, intent, turn).await?;
        }
        let mut closing = self.close(goal, permit, &turn, intent);
        if closing == Closing::RecordIntent {
            // What the turn did before it met the creation, the look must show too.
            let look = self.look(goal, not_before).await?;
            self.same(provider, goal, intent, &look)?;
            self.prepare(provider, true).await?;
            let turn = self.turn(provider, &look, goal, Permit::Create).await;
            closing = self.close(goal, Permit::Create, &turn, intent);
        }
        self.end(provider, closing).await
    }

    fn open(&self, service: &ServiceView, intent: Intent) -> Opening<'_> {
        let ctx = &self.controller.ctx;
        let opening = open(&ctx.clouds.assignments, service, intent);
        let generated = self.balancers.name_for(service, &ctx.cluster_name).generated;
        if generated { opening } else { opening.look_first() }
    }

    /// Opens, and says what is to be said about it.
    fn open_aloud(&self, service: &ServiceView, intent: Intent) -> Opening<'_> {
        let opening = self.open(service, intent);
        let orphan = matches!(opening, Opening::Orphan { .. }).then(|| service.uid.clone());
        let notices = self.controller.memory.of(self.writer.key, |note| {
            let news = orphan.is_some() && note.orphan != orphan;
            note.orphan = orphan.or_else(|| note.orphan.take());
            if news {
                self.controller.ctx.metrics.service.orphans.inc();
            }
            note.told.opening(&opening)
        });
        self.say(notices);
        opening
    }

    /// What the recorded intent allows.
    fn judge(&self, service: &ServiceView) -> Intent {
        let now = self.controller.ctx.clock().now();
        lock(&self.controller.intents).judge(service, now, self.balancers.settle_time())
    }

    /// How old a look may be. Where an intent is recorded, it has to be begun after the judgement.
    fn not_before(&self, service: &ServiceView) -> Tick {
        let now = self.controller.ctx.clock().now();
        match self.reason {
            _ if service.annotations.contains_key(INTENT_ANNOTATION) => now,
            SyncReason::Drift => now - YOUNG_FOR_DRIFT,
            SyncReason::Nodes | SyncReason::Service => now - YOUNG,
        }
    }

    /// What there is. While the cloud is away it is not asked.
    async fn look(&self, goal: Goal, not_before: Tick) -> Result<Look> {
        if let Some(why) = self.writer.cloud.away(goal) {
            return Err(why);
        }
        let keys = self.writer.lock_keys();
        let survey = self.writer.cloud.survey(&keys, not_before).await?;
        Ok(Look { survey, keys })
    }

    /// The newest version, if it still asks for the same of the same cloud, the look was for what it keys, and nobody
    /// else works on that.
    fn same(
        &self,
        provider: &str,
        goal: Goal,
        intent: Intent,
        look: &Look,
    ) -> Result<Arc<ServiceView>, Interrupted> {
        let service = self.writer.newest();
        let gone =
            self.controller.ctx.cluster.services.get(self.writer.key).is_none_or(|s| s.uid != service.uid);
        let again = self.open(&service, intent).turn();
        let same = again.is_some_and(|(who, what, _)| (who, what) == (provider, goal));
        let seen = self.writer.lock_keys() == look.keys;
        if gone || !same || !seen || !lock(&self.controller.book).acquire(self.writer.key, &look.keys) {
            return Err(Interrupted::Changed);
        }
        Ok(service)
    }

    /// Puts the finalizer on. Where somebody else wrote at the same time and that is known by now, there is no need to
    /// wait before beginning again.
    async fn prepare(&self, provider: &str, intent: bool) -> Result<(), Interrupted> {
        let used = self.writer.newest().resource_version.clone();
        match self.writer.prepare(provider, intent).await {
            Err(why)
                if why.category() == Category::Conflict && self.writer.newest().resource_version != used =>
            {
                Err(Interrupted::Changed)
            }
            other => Ok(other?),
        }
    }

    /// Has a turn of the loop with the newest nodes; returns these too.
    async fn turn(&self, provider: &str, look: &Look, goal: Goal, permit: Permit) -> Ended {
        let ctx = &self.controller.ctx;
        let Look { survey, keys } = look;
        let want = self.controller.want(
            self.balancers,
            provider,
            goal,
            self.writer.newest(),
            keys,
            &ctx.cluster.nodes.all(),
        );
        let members: Vec<_> = want.backends.iter().map(|backend| Arc::clone(&backend.node)).collect();
        if goal == Goal::Present {
            lock(&self.controller.synced).note(self.writer.key, Fleet::of(&members));
        }
        let call = ctx.cluster.call(PATIENCE);
        let mut mutating = Mutating { writer: self.writer, keys, permit, ended: false };
        let turn = self.balancers.turn(&call, survey, &want, permit, self.writer).await;
        mutating.ended = true;
        (turn, members)
    }

    /// Believes a turn that found nothing only if that was in the cluster's own account.
    ///
    /// The instances are listed after the denial, and where they vouch for the account, the load balancer is looked for
    /// once more after that. A credential that was another account's before or after the listing is found out either way.
    async fn confirm(
        &self,
        provider: &str,
        goal: Goal,
        intent: Intent,
        denied: Ended,
    ) -> Result<Ended, Interrupted> {
        let began = self.controller.ctx.clock().now();
        let nodes = self.controller.ctx.cluster.nodes.all();
        match self.controller.check_account(self.writer.cloud.cloud(), &nodes, began).await {
            Ok(AccountCheck::Silent) => Ok(denied),
            Ok(AccountCheck::Ours(seen)) => {
                let look = self.look(goal, seen).await?;
                self.same(provider, goal, intent, &look)?;
                Ok(self.turn(provider, &look, goal, Permit::NoCreate).await)
            }
            Err(why) => Ok((Turn::unknown(why), denied.1)),
        }
    }

    /// Why a Service of another class is not worked on, unless the cloud proves that the load balancer is its own. People
    /// who look at somebody else's Service are not told about it.
    async fn leave_alone(&self, provider: &str, goal: Goal, look: &Look) -> Option<Requeue> {
        let ctx = &self.controller.ctx;
        let service = self.writer.newest();
        let want = self.controller.want(self.balancers, provider, goal, service, &look.keys, &[]);
        match self.balancers.owner(&ctx.cluster.call(PATIENCE), &look.survey, &want).await {
            Lookup::Present(Ownership::Proven) => None,
            Lookup::Present(_) | Lookup::Absent => {
                tracing::debug!(service = %self.writer.key, "of another class, and its id may be copied");
                Some(Requeue::Forget)
            }
            Lookup::Unknown(why) => {
                tracing::debug!(service = %self.writer.key, %why, "of another class, and whose it is is not known");
                Some(requeue(Err(&why)))
            }
        }
    }

    fn members(&self, provider: &str, goal: Goal, service: &ServiceView) -> Vec<Arc<NodeView>> {
        let nodes = self.controller.ctx.cluster.nodes.all();
        self.controller.members_for(self.balancers, provider, goal, service, &nodes)
    }

    /// Closes, and says what is to be said about it.
    fn close(&self, goal: Goal, permit: Permit, (turn, members): &Ended, intent: Intent) -> Closing {
        let closing = close(goal, permit, turn, intent);
        self.writer.cloud.heard(goal, turn);
        let names: Vec<_> = members.iter().map(|node| node.name.as_str()).collect();
        let occasion = self.reason.occasion();
        let notices = self.controller.memory.of(self.writer.key, |note| {
            note.further |= note.progress.advance(turn);
            note.told.closing(goal, occasion, turn, &names, &closing)
        });
        self.say(notices);
        if self.reason == SyncReason::Nodes && goal == Goal::Present {
            let metrics = &self.controller.ctx.metrics.service;
            metrics.load_balancer_syncs.inc();
            if matches!(closing, Closing::Retry { .. }) {
                metrics.node_sync_errors.inc();
            }
        }
        closing
    }

    /// Writes down what is to be written at the end, and says when the Service is looked at again.
    async fn end(&self, provider: &str, closing: Closing) -> Result<Requeue, Interrupted> {
        let nothing = Publish::default();
        Ok(match closing {
            Closing::TurnEnd { clear_intent } => {
                self.writer.record(&nothing, clear_intent).await?;
                Requeue::Forget
            }
            Closing::Wait { poll, clear_intent } => {
                self.writer.record(&nothing, clear_intent).await?;
                self.controller.memory.send(self.writer.key, self.reason);
                if self.is_further() { Requeue::After(poll) } else { Requeue::Exactly(poll) }
            }
            Closing::Hold { left } => Requeue::Exactly(left),
            Closing::Release => self.release(provider).await?,
            Closing::Retry { error, clear_intent } => {
                self.writer.record(&nothing, clear_intent).await?;
                let asleep = error.category() == Category::UserInput;
                self.controller.memory.of(self.writer.key, |note| note.asleep = asleep);
                self.again(&error)
            }
            Closing::RecordIntent => {
                return Err(Error::permanent("internal error: an intent is asked for twice").into());
            }
        })
    }

    /// When a pass that failed is followed by another.
    fn again(&self, why: &Error) -> Requeue {
        let after = requeue(Err(why));
        if self.is_further() { after.further() } else { after }
    }

    fn is_further(&self) -> bool {
        self.controller.memory.peek(self.writer.key, |note| note.is_some_and(|note| note.further))
    }

    /// Lets go of the Service, unless it wants its load balancer back by now.
    async fn release(&self, provider: &str) -> Result<Requeue, Interrupted> {
        let still = |opening: Opening<'_>| {
            opening.turn().is_some_and(|(who, goal, _)| (who, goal) == (provider, Goal::Gone))
        };
        if !still(self.open(&self.writer.newest(), Intent::Free)) {
            return Err(Interrupted::Changed);
        }
        self.writer.release().await?;
        lock(&self.controller.synced).forget(self.writer.key);
        let notices = self.controller.memory.of(self.writer.key, |note| note.told.released());
        self.say(notices);
        let service = self.writer.newest();
        if service.deleting {
            // It is about to vanish; that it was let go of is remembered until then.
            return Ok(Requeue::Forget);
        }
        if self.open(&service, Intent::Free).turn().is_some() {
            // Another cloud serves it now.
            return Ok(Requeue::After(Duration::ZERO));
        }
        self.controller.memory.erase(self.writer.key);
        Ok(Requeue::Forget)
    }

    fn say(&self, notices: impl IntoIterator<Item = Notice>) {
        self.controller.tell(&self.writer.newest(), notices);
    }
}
