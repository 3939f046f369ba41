//! What a pass is about, read once from one version of a Service.

use std::sync::Arc;

use cloudberth_core::{
    LoadBalancers, ServiceView,
    decide::service::{
        assignments::Assignment,
        lifecycle::{Opening, open},
    },
    lb::{Goal, Intent, LockKey, Request},
};

use super::{ServiceController, survey_cache::SurveyCache};
use crate::lock;

/// Everything that a pass starts from.
#[derive(Clone)]
pub(crate) struct SyncInput<'a> {
    pub(crate) cloud: &'a SurveyCache,
    pub(super) balancers: &'a dyn LoadBalancers,
    /// The version that the rest was read from.
    pub(super) service: Arc<ServiceView>,
    pub(super) assignment: Assignment<'a>,
    pub(super) request: Request,
    pub(super) intent: Intent,
    pub(super) opening: Opening<'a>,
}

impl<'a> SyncInput<'a> {
    /// The cloud that is asked, and what for; `None` where nothing is to be done.
    pub(crate) fn task(&self) -> Option<(&'a str, Goal)> {
        self.opening.turn().map(|(provider, goal, _)| (provider, goal))
    }

    pub(crate) fn keys(&self) -> &[LockKey] {
        &self.request.keys
    }
}

impl ServiceController {
    /// What a pass over this version starts from, or goes on with at the cloud and with the intent that it `began` with. An
    /// error is how a pass opens over a Service that concerns no cloud of ours. What the index does not know is read.
    pub(super) fn read<'a>(
        &'a self,
        service: Arc<ServiceView>,
        began: Option<&SyncInput<'a>>,
    ) -> Result<SyncInput<'a>, Opening<'a>> {
        let assignment = self.ctx.clouds.assignments.of(&service);
        let (cloud, balancers, intent) = if let Some(began) = began {
            (began.cloud, began.balancers, began.intent)
        } else {
            let cloud = assignment.holder.and_then(|name| self.clouds.get(name));
            let Some((cloud, balancers)) =
                cloud.and_then(|cloud| Some((cloud, cloud.cloud.load_balancers()?)))
            else {
                return Err(open(&service, &assignment, Intent::Free));
            };
            // Judged before the look: what a look shows that began while an intent pended is no proof of absence.
            let settle_time = balancers.profile().settle_time;
            (cloud, balancers, lock(&self.intents).judge(&service, self.ctx.clock().now(), settle_time))
        };
        let known = lock(&self.index).known(&service, cloud.name());
        let request = known.unwrap_or_else(|| balancers.read(&service, &self.ctx.cluster_name));
        let opening = open(&service, &assignment, intent);
        let opening = if request.name.generated { opening } else { opening.look_first() };
        Ok(SyncInput { cloud, balancers, service, assignment, request, intent, opening })
    }
}
