//! What there is for one Service, with as few requests as prove it.

use std::sync::{Arc, Mutex};

use cloudberth_core::{
    Call, Error, Result, Tick,
    lb::{Desired, Fleet, Goal, Trail, locate, locate_known},
};
use cloudberth_http::{Flawed, Item};
use futures_util::future::{try_join, try_join_all, try_join4};

use super::{KnownMonitors, Survey, lock, survey::Listed};
use crate::{
    BackendInstances, Observed, ObservedBalancer, Parts, all_told,
    annotations::{FLOATING_IPS, TABLE},
    api::Api,
    backend_instance, follow, read_id,
    wire::{BalancerStatus, LoadBalancer, Member},
};

/// One observation.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) api: &'a Api,
    pub(super) call: &'a Call,
    pub(super) fleet: &'a dyn Fleet,
    pub(super) survey: &'a Survey,
    pub(super) want: &'a Desired,
    pub(super) trail: &'a Trail,
    pub(super) known: &'a Mutex<KnownMonitors>,
    pub(super) now: Tick,
}

impl Look<'_> {
    /// The load balancer alone; `None` where there is none.
    pub(super) async fn balancer(self) -> Result<Option<LoadBalancer>> {
        let Look { api, call, survey, trail, .. } = self;
        let asked = match &trail.id {
            Some(id) => api.balancer(call, id).await.known()?,
            None => None,
        };
        // The recorded id and the name agree, so there is no need to look for others of that name.
        if let Some(balancer) = asked.as_ref().filter(|balancer| balancer.name == trail.name) {
            return Ok(Some(balancer.clone()));
        }
        let listed = survey.balancers(api, call).await?;
        // The lookup by id is newer than the listing: what it denies no longer exists, even if the listing shows it.
        let denied = if asked.is_none() { trail.id.as_deref() } else { None };
        all_told(trail, &listed.flawed)?;
        let listed: Vec<LoadBalancer> =
            listed.whole.iter().filter(|balancer| Some(balancer.uuid.as_str()) != denied).cloned().collect();
        match follow(trail, &listed, asked.as_ref())? {
            None => Ok(None),
            Some(found) if asked.as_ref().is_some_and(|asked| asked.uuid == found.uuid) => {
                Ok(Some(found.clone()))
            }
            // The listing may be old, so the source is asked.
            Some(found) => api.balancer(call, &found.uuid).await.known(),
        }
    }

    /// Everything that the decision needs about a load balancer that is there, and perhaps the `servers` of the nodes.
    pub(super) async fn around(
        self,
        balancer: LoadBalancer,
        servers: Option<Result<BackendInstances>>,
        changing_for: std::time::Duration,
    ) -> Result<Observed> {
        if self.want.goal == Goal::Gone || balancer.status == BalancerStatus::Changing {
            let existing = Some(ObservedBalancer::bare(balancer, changing_for));
            return Ok(Observed { existing, ..Observed::default() });
        }
        let instances = async {
            match servers {
                Some(servers) => servers,
                None => self.instances().await,
            }
        };
        let (existing, instances) = try_join(self.existing(balancer), instances).await?;
        Ok(Observed { existing: Some(existing), instances })
    }

    /// A load balancer with its parts. All of them are below pools, so nothing more is asked where there is none.
    async fn existing(self, balancer: LoadBalancer) -> Result<ObservedBalancer> {
        let Look { api, call, survey, want, known, now, .. } = self;
        let mut parts = Parts::default();
        survey.pools(api, call).await?.add_to("pool", &mut parts.pools, &mut parts.flawed);
        parts.all_readable(&balancer.uuid)?;
        let pools: Vec<_> = parts.pools_of(&balancer.uuid).map(str::to_owned).collect();
        let monitors = lock(known).of(&pools, now);
        let are_known = monitors.is_some();
        let named = TABLE.parse(&want.service.annotations).get(&FLOATING_IPS).set().unwrap_or_default();
        let (listeners, monitors, ips, members) = try_join4(
            unless(pools.is_empty().then(Vec::new), survey.listeners(api, call)),
            unless(monitors, survey.monitors(api, call)),
            unless(named.is_empty().then(Vec::new), survey.floating_ips(api, call)),
            try_join_all(pools.iter().map(|pool| self.members(&balancer.uuid, pool))),
        )
        .await?;
        listeners.add_to("listener", &mut parts.listeners, &mut parts.flawed);
        monitors.add_to("health monitor", &mut parts.monitors, &mut parts.flawed);
        parts.floating_ips.clone_from(&ips.whole);
        parts.flawed_ips.clone_from(&ips.flawed);
        parts.all_told(&named)?;
        let members = pools.iter().cloned().zip(members).collect();
        let existing = ObservedBalancer::assemble(balancer, &parts, members)?;
        if !are_known {
            lock(known).listed(&pools, &parts.monitors, now);
        }
        Ok(existing)
    }

    async fn members(self, balancer: &str, pool: &str) -> Result<Vec<Member>> {
        let (own, flawed) = Item::sort(self.api.members(self.call, pool).await?.all()?);
        match flawed.into_iter().next() {
            None => Ok(own),
            Some(Flawed { identity, why }) => {
                let place = format!("member {} of pool {pool} of load balancer {balancer}", identity.uuid);
                Err(Error::temporary(format!("{place} cannot be read: {why}")))
            }
        }
    }

    /// The servers of the nodes behind a load balancer that is there. It proves that it is our project that answers: they
    /// are listed then only if a listing of the last minutes lacks one of them.
    async fn instances(self) -> Result<BackendInstances> {
        let Look { call, fleet, want, .. } = self;
        match fleet.recent().and_then(|all| locate_known(&all, &want.backends, read_id, backend_instance)) {
            Some(known) => Ok(known),
            None => locate(fleet, call, &want.backends, read_id, backend_instance).await,
        }
    }
}

/// What is known without a listing, or else what the listing shows.
async fn unless<T, I>(
    known: Option<Vec<T>>,
    listing: impl Future<Output = Result<Arc<Listed<T, I>>>> + Send,
) -> Result<Arc<Listed<T, I>>> {
    match known {
        Some(whole) => Ok(Arc::new(Listed { whole, flawed: Vec::new() })),
        None => listing.await,
    }
}
