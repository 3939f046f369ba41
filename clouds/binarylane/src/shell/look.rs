//! What there is for one Service, with as few requests as prove it.

use std::time::Duration;

use cloudberth_core::{
    Call, Error, Result,
    lb::{Backend, Desired, Fleet, Goal, Located, locate},
    view::ExternalTrafficPolicy,
};

use super::{Survey, memory::Memory};
use crate::{
    api::Api,
    find::{Found, KnownServers, ListedBalancers, Search, recorded_id},
    id::read_id,
    observed::{BackendServer, Build, Observed},
    plan::Planner,
    servers,
    wire::{BalancerStatus, LoadBalancer, Progress},
};

/// A load balancer is built within seconds. One that is not may wait for somebody, which its action says.
const SLOW_BUILD: Duration = Duration::from_secs(10);

/// One observation.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) api: &'a Api,
    pub(super) planner: &'a Planner,
    pub(super) memory: &'a Memory,
    pub(super) call: &'a Call,
    pub(super) fleet: &'a dyn Fleet,
    pub(super) survey: &'a Survey,
    pub(super) want: &'a Desired,
}

impl Look<'_> {
    pub(super) async fn observe(self) -> Result<Observed> {
        let search = Search::new(self.want, &self.planner.prefix);
        let Found { balancer, surplus, notices } = self.find(&search).await?;
        let mut observed = Observed { surplus, notices, ..Observed::default() };
        if let Some(existing) = &balancer {
            observed.known_as =
                if search.names.fit(&existing.name) { search.names.base } else { existing.name.clone() };
            observed.build = self.build(existing).await?;
        }
        let waits = |one: &LoadBalancer| matches!(one.status, BalancerStatus::New | BalancerStatus::Errored);
        if self.want.goal == Goal::Present && !balancer.as_ref().is_some_and(waits) {
            observed.servers = self.servers().await?;
        }
        observed.existing = balancer;
        Ok(observed)
    }

    /// The load balancer, by its id and by its names.
    async fn find(self, search: &Search<'_>) -> Result<Found> {
        let id = recorded_id(&self.want.service);
        // While one of ours is being built a poll is one question.
        let building = id.filter(|id| self.want.goal == Goal::Present && self.memory.building(*id).is_some());
        if let Some(id) = building
            && let Some(balancer) = self.ask(id).await?
            && search.anothers(&balancer).is_none()
        {
            return Ok(Found { balancer: Some(balancer), ..Found::default() });
        }
        let listed = self.survey.balancers(self.api, self.call).await?;
        let known = match id {
            Some(id) => self.known(id, &listed).await?,
            None => None,
        };
        let denied = id.filter(|_| known.is_none());
        let late = denied.filter(|id| !self.memory.is_gone(*id));
        if let Some(id) = late.filter(|_| self.want.goal == Goal::Gone) {
            return Err(not_shown(id));
        }
        let contested = known.as_ref().and_then(|known| search.anothers(known));
        let known = known.filter(|_| contested.is_none());
        let mut found = self.by_name(search, &listed, known, denied).await?;
        if let Some(id) = late.filter(|_| found.balancer.is_none()) {
            return Err(not_shown(id));
        }
        if self.want.goal == Goal::Gone {
            // What another Service records too is left to it.
            found.balancer = found.balancer.filter(|one| !search.recorded_by_another(one));
        }
        found.notices.extend(contested);
        Ok(found)
    }

    /// The load balancer with the recorded id. A listing shows it; only the source itself denies it.
    async fn known(self, id: i64, listed: &ListedBalancers) -> Result<Option<LoadBalancer>> {
        match listed.whole.iter().find(|one| one.id == id) {
            Some(one) => Ok(Some(one.clone())),
            None => self.ask(id).await,
        }
    }

    async fn ask(self, id: i64) -> Result<Option<LoadBalancer>> {
        let found = self.api.balancer(self.call, id).await.known()?;
        if found.is_some() {
            self.memory.shown(id);
        }
        Ok(found)
    }

    async fn by_name(
        self,
        search: &Search<'_>,
        listed: &ListedBalancers,
        known: Option<LoadBalancer>,
        denied: Option<i64>,
    ) -> Result<Found> {
        let namesakes = match search.namesakes(listed, denied) {
            Ok(namesakes) => namesakes,
            // Who has a load balancer is not held up by somebody else's that cannot be read.
            Err(_) if known.is_some() && self.want.goal == Goal::Present => Vec::new(),
            Err(why) => return Err(why),
        };
        let others: Vec<_> = namesakes
            .into_iter()
            .filter(|one| known.as_ref().is_none_or(|known| known.id != one.id))
            .collect();
        let servers = if search.needs_servers(&others, known.as_ref()) {
            let shared = self.fleet.listing().await;
            let listing = (*shared).as_ref().as_ref().map_err(Clone::clone)?;
            KnownServers::new(listing, &self.want.nodes)?
        } else {
            KnownServers::default()
        };
        Ok(search.choose(&others, known.as_ref(), &servers))
    }

    /// What is known about a load balancer that is being built.
    async fn build(self, existing: &LoadBalancer) -> Result<Option<Build>> {
        let Some((created, age)) = self.memory.building(existing.id) else { return Ok(None) };
        let settled = matches!(existing.status, BalancerStatus::Active | BalancerStatus::Other(_));
        if settled {
            self.memory.built(existing.id);
            return Ok(None);
        }
        let slow = age >= SLOW_BUILD || existing.status == BalancerStatus::Errored;
        let progress: Option<Progress> = match created.job.filter(|_| slow) {
            Some(job) => self.api.job(self.call, job).await.known()?.map(|job| job.progress()),
            None => None,
        };
        Ok(Some(Build { age, progress }))
    }

    /// The servers of the nodes. With `externalTrafficPolicy: Local` nodes without a ready pod are left out.
    async fn servers(self) -> Result<Located<BackendServer>> {
        let local = self.want.service.external_traffic_policy == ExternalTrafficPolicy::Local;
        let idle = |backend: &&Backend| local && backend.local_endpoint == Some(false);
        let backends: Vec<Backend> = self.want.backends.iter().filter(|one| !idle(one)).cloned().collect();
        let take = |node: &cloudberth_core::NodeView, instance: &cloudberth_core::Instance| {
            let facts = servers::facts(instance).cloned();
            facts.map(|facts| BackendServer { node: node.name.clone(), facts })
        };
        let Located { found, missing, unknown } =
            locate(self.fleet, self.call, &backends, read_id, take).await?;
        Ok(Located { found: found.into_iter().flatten().collect(), missing, unknown })
    }
}

fn not_shown(id: i64) -> Error {
    let text = format!(
        "load balancer {id} is recorded and not found; it is looked for a while before that is believed"
    );
    Error::temporary(text)
}
