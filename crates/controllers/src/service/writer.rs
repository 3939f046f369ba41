//! A Service in its newest version, and the only way in which a pass writes on it.

use std::sync::{Arc, Mutex};

use cloudberth_core::{
    Category, Error, ObjectKey, Result, ServiceView,
    decide::service::{change::remember, patch},
    lb::{IntentMark, LockKey, Publish, ServiceRecorder, StepReport},
    provider::Boxed,
};
use serde_json::Value;

use super::{ServiceController, surveys::Surveys};
use crate::lock;

/// How long one write may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// The page of one Service during one pass.
pub(super) struct ServiceWriter<'a> {
    pub(super) controller: &'a ServiceController,
    pub(super) cloud: &'a Surveys,
    pub(super) key: &'a ObjectKey,
    /// The newest version that this pass has seen, in case that the store has lost it by now.
    seen: Mutex<Arc<ServiceView>>,
}

impl<'a> ServiceWriter<'a> {
    pub(super) fn new(
        controller: &'a ServiceController,
        cloud: &'a Surveys,
        key: &'a ObjectKey,
        service: Arc<ServiceView>,
    ) -> Self {
        Self { controller, cloud, key, seen: Mutex::new(service) }
    }

    /// The newest version of this very object: the store has the answers of our own writes too.
    pub(super) fn newest(&self) -> Arc<ServiceView> {
        let mut seen = lock(&self.seen);
        let known = self.controller.ctx.cluster.services.get(self.key);
        if let Some(known) = known.filter(|known| known.uid == seen.uid) {
            *seen = known;
        }
        Arc::clone(&seen)
    }

    /// What the newest version lays claim to.
    pub(super) fn lock_keys(&self) -> Vec<LockKey> {
        let service = self.newest();
        let balancers = self.cloud.balancers();
        balancers.map(|b| b.lock_keys(&service, &self.controller.ctx.cluster_name)).unwrap_or_default()
    }

    /// Puts the finalizer on, with an intent where one is asked for. An object that is gone is an error: nothing may
    /// be made for it any more.
    pub(super) async fn prepare(&self, provider: &str, intent: bool) -> Result<()> {
        let ctx = &self.controller.ctx;
        let service = self.newest();
        // The name is that of the version on which the write insists.
        let name = self.cloud.balancers().map(|b| b.name_for(&service, &ctx.cluster_name).text);
        let intent = name.as_deref().filter(|_| intent).map(|name| (ctx.clock().wall(), name));
        let body = patch::prepare(&ctx.clouds.assignments, &service, provider, intent);
        let written = self.write(body).await;
        written.map_err(|why| why.context("failed to add load balancer cleanup finalizer"))
    }

    /// Writes what differs. An object that is gone needs nothing.
    pub(super) async fn record(&self, publish: &Publish, clear_intent: bool) -> Result<()> {
        let publish = publish.fit_for(self.controller.ctx.cluster.version());
        patch::written(self.write(patch::record(&self.newest(), &publish, clear_intent)).await)
    }

    /// Takes the finalizer off. From here on the object may vanish at any moment, and that is as it should be.
    pub(super) async fn release(&self) -> Result<()> {
        let service = self.newest();
        let clouds = &self.controller.ctx.clouds;
        let assignment = clouds.assignments.of(&service);
        let holder = assignment.holder.and_then(|name| clouds.named(name)?.load_balancers());
        let recorded = holder.into_iter().flat_map(|cloud| cloud.annotations().recorded());
        let memory = &self.controller.memory;
        memory.of(self.key, |note| note.released = Some(service.uid.clone()));
        match self.write(patch::release(&service, &assignment, recorded)).await {
            Err(why) if why.category() == Category::NotFound => Ok(()),
            Err(why) => {
                if why.category() == Category::Conflict {
                    memory.of(self.key, |note| note.released = None);
                }
                Err(why.context("failed to remove load balancer cleanup finalizer"))
            }
            Ok(()) => Ok(()),
        }
    }

    async fn write(&self, body: Option<Value>) -> Result<(), Error> {
        let Some(body) = body else { return Ok(()) };
        // The watch may be faster than the answer.
        self.controller.memory.of(self.key, |note| remember(&mut note.written, &body));
        let cluster = &self.controller.ctx.cluster;
        let answer = cluster.patch_service(&cluster.call(PATIENCE), self.key, &body).await?;
        let mut seen = lock(&self.seen);
        if answer.uid == seen.uid {
            *seen = answer;
        }
        Ok(())
    }
}

impl ServiceRecorder for ServiceWriter<'_> {
    fn record<'a>(&'a self, publish: &'a Publish, intent: IntentMark) -> Boxed<'a, Result<()>> {
        Box::pin(ServiceWriter::record(self, publish, intent == IntentMark::Clear))
    }

    fn step(&self, report: StepReport) {
        let StepReport { label, impact, result } = report;
        match result {
            Ok(()) => tracing::info!(service = %self.key, %impact, "{label}"),
            Err(why) => tracing::warn!(service = %self.key, %impact, %why, "{label}: not done, or not known"),
        }
        self.cloud.mutated(&self.lock_keys());
    }
}
