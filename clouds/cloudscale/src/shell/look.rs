//! What there is for one Service, with as few requests as prove it.

use std::collections::BTreeMap;

use cloudberth_core::{
    Call, Error, Result,
    lb::{Desired, Goal, locate},
};
use cloudberth_http::{Flawed, Item};

use super::Survey;
use crate::{
    BackendInstances, Observed, ObservedBalancer, Parts, all_told,
    annotations::{FLOATING_IPS, TABLE},
    api::Api,
    backend_instance, follow, read_id, trail_of,
    wire::{BalancerStatus, LoadBalancer, Member},
};

/// One observation.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) api: &'a Api,
    pub(super) call: &'a Call,
    pub(super) survey: &'a Survey,
    pub(super) want: &'a Desired,
}

impl Look<'_> {
    /// The load balancer alone; `None` where there is none.
    pub(super) async fn balancer(self) -> Result<Option<LoadBalancer>> {
        let Look { api, call, survey, want } = self;
        let trail = trail_of(&want.service, want.goal)?;
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
        all_told(&trail, &listed.flawed)?;
        let listed: Vec<LoadBalancer> =
            listed.whole.iter().filter(|balancer| Some(balancer.uuid.as_str()) != denied).cloned().collect();
        match follow(&trail, &listed, asked.as_ref())? {
            None => Ok(None),
            Some(found) if asked.as_ref().is_some_and(|asked| asked.uuid == found.uuid) => {
                Ok(Some(found.clone()))
            }
            // The listing may be old, so the source is asked.
            Some(found) => api.balancer(call, &found.uuid).await.known(),
        }
    }

    /// Everything that the decision needs, now that the load balancer is known.
    pub(super) async fn around(
        self,
        balancer: Option<LoadBalancer>,
        changing_for: std::time::Duration,
    ) -> Result<Observed> {
        let gone = self.want.goal == Goal::Gone;
        let bare = |balancer: &LoadBalancer| gone || balancer.status == BalancerStatus::Changing;
        let (existing, instances) = match balancer {
            Some(balancer) if bare(&balancer) => {
                (Some(ObservedBalancer::bare(balancer, changing_for)), BackendInstances::default())
            }
            None if gone => (None, BackendInstances::default()),
            None => (None, self.instances().await?),
            Some(balancer) => {
                let instances = self.instances().await?;
                (Some(self.existing(balancer).await?), instances)
            }
        };
        Ok(Observed { existing, instances })
    }

    async fn existing(self, balancer: LoadBalancer) -> Result<ObservedBalancer> {
        let Look { api, call, survey, want } = self;
        let mut parts = Parts::default();
        let flawed = &mut parts.flawed;
        survey.pools(api, call).await?.add_to("pool", &mut parts.pools, flawed);
        survey.listeners(api, call).await?.add_to("listener", &mut parts.listeners, flawed);
        survey.monitors(api, call).await?.add_to("health monitor", &mut parts.monitors, flawed);
        let named = TABLE.parse(&want.service.annotations).get(&FLOATING_IPS).set();
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let ips = survey.floating_ips(api, call).await?;
            parts.floating_ips.clone_from(&ips.whole);
            parts.flawed_ips.clone_from(&ips.flawed);
            parts.all_told(&named)?;
        }
        parts.all_readable(&balancer.uuid)?;
        let mut members: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        for pool in parts.pools_of(&balancer.uuid) {
            let (own, flawed) = Item::sort(api.members(call, pool).await?.all()?);
            if let Some(Flawed { identity, why }) = flawed.into_iter().next() {
                let place =
                    format!("member {} of pool {pool} of load balancer {}", identity.uuid, balancer.uuid);
                return Err(Error::temporary(format!("{place} cannot be read: {why}")));
            }
            members.insert(pool.to_owned(), own);
        }
        ObservedBalancer::assemble(balancer, &parts, members)
    }

    /// The servers of the nodes.
    async fn instances(self) -> Result<BackendInstances> {
        let Look { call, survey, want, .. } = self;
        locate(&*survey.fleet, call, &want.backends, read_id, backend_instance).await
    }
}
