//! What there is for one Service, with as few requests as prove it.

use std::collections::{BTreeMap, BTreeSet};

use cloudberth_core::{
    Call, Error, Lookup, Result,
    lb::{Desired, Goal},
};
use cloudberth_http::{Flawed, Item};

use super::{Survey, survey::Servers};
use crate::{
    BackendInstances, Observed, ObservedBalancer, Parts, all_told,
    annotations::{FLOATING_IPS, TABLE},
    api::Api,
    follow, trail_of,
    uuid::{ServerId, parse_uuid, server_id},
    wire::{BalancerStatus, LoadBalancer, Member, Named, Server},
};

/// How many servers that a listing lacks are looked up one by one. If all of them are absent, the others are taken to be
/// absent too.
const ASKED: usize = 16;

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

    /// The servers of the nodes. One that the listing lacks is looked up before its node is left out.
    async fn instances(self) -> Result<BackendInstances> {
        let Look { api, call, survey, want } = self;
        if want.backends.is_empty() {
            return Ok(BackendInstances::default());
        }
        let Servers { listed, short } = &*survey.servers(api, call).await?;
        let nameless = want.backends.iter().any(|backend| backend.node.provider_id.is_none());
        if let Some(why) = short.as_ref().filter(|_| nameless) {
            return Err(Error::temporary(format!("listing servers: {why}")));
        }
        let whole = listed.whole.iter().map(|server| &server.uuid);
        let all = whole.chain(listed.flawed.iter().map(|flawed| &flawed.identity.uuid));
        let there: BTreeSet<String> = all.filter_map(|uuid| parse_uuid(uuid)).collect();
        let ids = want.backends.iter().filter_map(|backend| {
            match server_id(backend.node.provider_id.as_deref()?) {
                ServerId::Known(id) => Some(id),
                ServerId::Malformed | ServerId::Foreign => None,
            }
        });
        let (known, lacking): (Vec<_>, Vec<_>) = ids.partition(|id| there.contains(id));
        // A listing that shows none of the nodes is that of another project, so lookups would prove nothing.
        let asked = if !known.is_empty() || short.is_some() {
            self.confirm(&lacking, short.as_deref()).await?
        } else {
            Vec::new()
        };
        let (asked, more) = Item::sort(asked);
        let flawed = [listed.flawed.as_slice(), &more].concat();
        BackendInstances::among(want, listed.whole.iter().chain(&asked), &flawed)
    }

    /// Those of the servers lacking from the listing that exist.
    async fn confirm(self, lacking: &[String], short: Option<&str>) -> Result<Vec<Item<Server, Named>>> {
        let Look { api, call, survey, .. } = self;
        let mut found = Vec::new();
        for id in lacking.iter().take(ASKED) {
            match survey.unlisted(api, call, id).await {
                Lookup::Present(server) => found.push(server),
                Lookup::Absent => {}
                Lookup::Unknown(why) => return Err(why),
            }
        }
        if lacking.len() > ASKED && (short.is_some() || !found.is_empty()) {
            let why = short.unwrap_or("some of them exist");
            let text = format!("the listing of servers lacks {} of the nodes' servers: {why}", lacking.len());
            return Err(Error::temporary(text));
        }
        Ok(found)
    }
}
