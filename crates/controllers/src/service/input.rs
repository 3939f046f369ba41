//! What a pass is about, read once from one version of a Service.

use std::sync::Arc;

use cloudberth_core::{
    LoadBalancers, ServiceView,
    decide::service::lifecycle::{Opening, open},
    lb::{Goal, Intent, LockKey, Request},
};

use super::{ServiceController, index::Entry, survey_cache::SurveyCache};
use crate::lock;

/// Everything that a pass starts from.
#[derive(Clone)]
pub(crate) struct SyncInput<'a> {
    pub(crate) cloud: &'a SurveyCache,
    pub(super) balancers: &'a dyn LoadBalancers,
    /// The version that the rest was read from.
    pub(super) service: Arc<ServiceView>,
    pub(super) request: Request,
    pub(super) intent: Intent,
    pub(super) opening: Opening<'a>,
}

impl SyncInput<'_> {
    /// The cloud that is asked, and what for; `None` where nothing is to be done.
    pub(crate) fn task(&self) -> Option<(&str, Goal)> {
        self.opening.turn().map(|(provider, goal, _)| (provider, goal))
    }

    pub(crate) fn keys(&self) -> &[LockKey] {
        &self.request.keys
    }
}

impl ServiceController {
    /// Reads a Service; an error is how a pass over one opens that concerns no cloud of ours.
    pub(super) fn read(&self, service: Arc<ServiceView>) -> Result<SyncInput<'_>, Opening<'_>> {
        let assignments = &self.ctx.clouds.assignments;
        let known = lock(&self.index).known(&service);
        let holder = known.as_ref().map(|entry| entry.cloud.as_str());
        let holder = holder.or_else(|| assignments.of(&service).holder);
        let cloud = holder.and_then(|name| self.clouds.get(name));
        let Some((cloud, balancers)) = cloud.and_then(|cloud| Some((cloud, cloud.cloud.load_balancers()?)))
        else {
            return Err(open(assignments, &service, Intent::Free));
        };
        // Judged before the look: what a look shows that began while an intent pended is no proof of absence.
        let settle_time = balancers.profile().settle_time;
        let intent = lock(&self.intents).judge(&service, self.ctx.clock().now(), settle_time);
        Ok(self.input(cloud, balancers, service, intent, known))
    }

    /// What a pass over this version starts from, at the cloud where it began. What the index does not know is read.
    pub(super) fn input<'a>(
        &'a self,
        cloud: &'a SurveyCache,
        balancers: &'a dyn LoadBalancers,
        service: Arc<ServiceView>,
        intent: Intent,
        known: Option<Entry>,
    ) -> SyncInput<'a> {
        let known = known.filter(|entry| entry.cloud == cloud.name());
        let request =
            known.map_or_else(|| balancers.read(&service, &self.ctx.cluster_name), |entry| entry.request);
        let opening = open(&self.ctx.clouds.assignments, &service, intent);
        let opening = if request.name.generated { opening } else { opening.look_first() };
        SyncInput { cloud, balancers, service, request, intent, opening }
    }
}
