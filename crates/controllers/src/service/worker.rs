//! What a worker does with a key from the queue: take the locks, have a pass, say when the next one is due.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Category, Error, NodeView, ObjectKey, ServiceView,
    decide::{
        queue::{Requeue, requeue},
        service::{
            events,
            lifecycle::{Closing, Opening, open},
        },
    },
    lb::{INTENT_ANNOTATION, Intent},
    time::Tick,
};
use futures_util::FutureExt;

use super::{
    ServiceController,
    state::SyncReason,
    sync::{Interrupted, Pass},
};
use crate::{
    dry_run::DryRun,
    effects::services::{Dry, DryWorld, Live, ServiceEffects},
    lock,
};

/// A survey that is at most as old as this serves.
pub(super) const MAX_AGE: Duration = Duration::from_secs(3);
/// The same for a Service that is only looked at in case somebody edited its load balancer by hand.
const MAX_AGE_FOR_DRIFT: Duration = Duration::from_secs(60);

/// The locks of a Service, as long as a pass needs them. Whoever waits for one of them is put into the queue when the pass
/// is over, also if a bug ends it.
struct LockGuard<'a> {
    controller: &'a ServiceController,
    key: &'a ObjectKey,
    /// Whether the key only stands in line.
    waits: bool,
    /// The cloud one of whose workers this is.
    cloud: Option<&'a str>,
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        let next = lock(&self.controller.limits).leave(self.cloud);
        for other in next {
            self.controller.pool.add(other);
        }
        if self.waits {
            return;
        }
        let freed = lock(&self.controller.locks).release(self.key);
        for other in freed {
            self.controller.pool.add(other);
        }
        self.controller.finish_batches(self.key);
        if self.controller.ctx.cluster.services.get(self.key).is_none() {
            self.controller.states.erase(self.key);
        }
    }
}

impl ServiceController {
    /// Has a pass over the Service of this key.
    pub(super) async fn work(&self, key: ObjectKey) -> Requeue {
        let mut held = LockGuard { controller: self, key: &key, waits: false, cloud: None };
        let Some(service) = self.ctx.cluster.services.get(&key) else { return Requeue::Forget };
        let input = match self.read(Arc::clone(&service), None) {
            Ok(input) => input,
            Err(opening) => {
                self.leave(&key, &service, &opening);
                return Requeue::Forget;
            }
        };
        if !lock(&self.limits).enter(input.cloud.name(), &key) {
            held.waits = true;
            return Requeue::Forget;
        }
        held.cloud = Some(input.cloud.name());
        if !lock(&self.locks).acquire(&key, input.keys()) {
            // Whoever holds one of them puts us into the queue when it lets go.
            held.waits = true;
            return Requeue::Forget;
        }
        let reason = self.states.of(&key, |state| {
            state.asleep = false;
            state.further = false;
            state.reason.take().unwrap_or(SyncReason::Service)
        });
        let (began, cloud) = (self.ctx.clock().now(), input.cloud);
        let not_before = not_before(reason, &service, began);
        let live = Live { controller: self, cloud, key: &key, reason, seen: Mutex::new(service) };
        let pass = Pass { controller: self, effects: &live };
        let after = self.requeue(&live, pass.sync(input, not_before).await);
        if reason == SyncReason::Nodes {
            self.ctx.metrics.service.update_hosts_latency.observe(self.ctx.clock().now().since(began));
        }
        after
    }

    /// A Service that concerns no cloud of ours, or of which that cannot be told.
    fn leave(&self, key: &ObjectKey, service: &ServiceView, opening: &Opening<'_>) {
        if *opening == Opening::LeaveAlone {
            return self.states.erase(key);
        }
        let notices = self.states.of(key, |state| {
            state.reason = None;
            state.told.opening(opening)
        });
        self.tell(service, notices);
    }

    /// When the Service is looked at again.
    fn requeue(&self, live: &Live<'_>, ended: Result<Option<Closing>, Interrupted>) -> Requeue {
        match ended {
            Ok(Some(Closing::Wait { poll, .. })) => {
                self.states.add_reason(live.key, live.reason);
                if self.is_further(live.key) { Requeue::After(poll) } else { Requeue::Exactly(poll) }
            }
            Ok(Some(Closing::Hold { poll })) => Requeue::Exactly(poll),
            Ok(Some(Closing::Retry { error, .. })) => {
                let asleep = error.category() == Category::UserInput;
                self.states.of(live.key, |state| state.asleep = asleep);
                self.again(live.key, &error)
            }
            Ok(Some(Closing::Release)) => self.released(live),
            Ok(Some(Closing::TurnEnd { .. } | Closing::RecordIntent) | None) => Requeue::Forget,
            Err(Interrupted::Changed) => Requeue::After(Duration::ZERO),
            Err(Interrupted::NotOurs(None)) => {
                tracing::debug!(service = %live.key, "left alone: it is of another class and its id may be copied");
                Requeue::Forget
            }
            Err(Interrupted::NotOurs(Some(why))) => {
                tracing::debug!(service = %live.key, %why, "left alone: it is of another class and its owner is unknown");
                requeue(Err(&why))
            }
            Err(Interrupted::Error(why)) => {
                // Somebody else wrote at the same time, or the object is gone: its next version is on its way.
                let quiet = matches!(why.category(), Category::Conflict | Category::NotFound);
                self.tell(&live.newest(), events::sync_failed(&why).filter(|_| !quiet));
                live.cloud.cloud.inventory.report(&why);
                self.again(live.key, &why)
            }
        }
    }

    /// When a pass that failed is followed by another.
    fn again(&self, key: &ObjectKey, why: &Error) -> Requeue {
        let after = requeue(Err(why));
        if self.is_further(key) { after.further() } else { after }
    }

    fn is_further(&self, key: &ObjectKey) -> bool {
        self.states.peek(key, |state| state.is_some_and(|state| state.further))
    }

    /// The finalizer is off.
    fn released(&self, live: &Live<'_>) -> Requeue {
        let service = live.newest();
        if service.deleting {
            // It is about to vanish; that it was let go of is remembered until then.
            return Requeue::Forget;
        }
        let assignment = self.ctx.clouds.assignments.of(&service);
        if open(&service, &assignment, Intent::Free).turn().is_some() {
            // Another cloud serves it now.
            return Requeue::After(Duration::ZERO);
        }
        self.states.erase(live.key);
        Requeue::Forget
    }

    /// What would be done about every Service now, if the nodes were `nodes`.
    ///
    /// Nothing is written, and one survey of each cloud that is concerned serves all Services.
    pub async fn dry_run(&self, nodes: &[Arc<NodeView>]) -> Vec<(ObjectKey, DryRun)> {
        let services = self.ctx.cluster.services.all();
        // Whoever claims the same thing is a rival, whichever of them is looked at first.
        for service in &services {
            let assignment = self.ctx.clouds.assignments.of(service);
            self.update_index(&service.key(), Some((service, &assignment)));
        }
        for slice in self.ctx.cluster.endpoint_slices.iter().flat_map(|slices| slices.all()) {
            lock(&self.endpoints).0.update(None, Some(&slice));
        }
        let world = DryWorld { begun: self.ctx.clock().now(), nodes };
        let mut all = Vec::new();
        for service in &services {
            let one = AssertUnwindSafe(self.dry_run_one(service, &world)).catch_unwind().await;
            all.push((service.key(), one.unwrap_or_else(|_| DryRun::bug())));
        }
        all
    }

    async fn dry_run_one(&self, service: &Arc<ServiceView>, world: &DryWorld<'_>) -> DryRun {
        let dry = Dry::new(world, Arc::clone(service));
        let input = match self.read(Arc::clone(service), None) {
            Ok(input) => input,
            Err(opening) => return dry.left(&opening),
        };
        let (task, server) = (input.task().map(|(provider, _)| provider), input.assignment.server);
        let ended = Pass { controller: self, effects: &dry }.sync(input, world.begun).await;
        let mut told = dry.finish(task, ended);
        if let (Some(provider), Some(server)) = (task, server)
            && server != provider
        {
            told.remarks.push(format!("it moves: {server} serves it once {provider} has let go of it"));
        }
        told
    }
}

/// How old a look may be. Where an intent is recorded, it has to be begun after the intent was judged.
fn not_before(reason: SyncReason, service: &ServiceView, now: Tick) -> Tick {
    match reason {
        _ if service.annotations.contains_key(INTENT_ANNOTATION) => now,
        SyncReason::Drift => now - MAX_AGE_FOR_DRIFT,
        SyncReason::Nodes | SyncReason::Service => now - MAX_AGE,
    }
}
