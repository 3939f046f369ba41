//! The listings that all Services of a pass share, each fetched when the first of them needs it.
//!
//! A Service whose load balancer is known by its id needs no listing of load balancers, one whose load balancer is
//! still being built needs no parts, and one that is being deleted needs neither.

use std::{fmt, sync::Arc};

use cloudberth_core::{Call, Result};
use cloudberth_http::{Flawed, Item, LazyListing};
use serde::de::DeserializeOwned;

use crate::{
    FlawedPart,
    api::Api,
    wire::{FloatingIdentity, FloatingIp, HealthMonitor, Listener, LoadBalancer, Named, PartIdentity, Pool},
};

/// What was listed: what could be read whole, and what is only known to be there.
#[derive(Debug)]
pub(crate) struct Listed<T, I> {
    pub(crate) whole: Vec<T>,
    pub(crate) flawed: Vec<Flawed<I>>,
}

impl<T, I> Listed<T, I> {
    fn of(items: impl IntoIterator<Item = Item<T, I>>) -> Self {
        let (whole, flawed) = Item::sort(items);
        Self { whole, flawed }
    }
}

/// Parts of load balancers of one kind.
type Kind<T> = Listed<T, PartIdentity>;

impl<T: Clone> Kind<T> {
    /// Adds what there is to what is known of other kinds.
    pub(crate) fn add_to(&self, kind: &'static str, whole: &mut Vec<T>, flawed: &mut Vec<FlawedPart>) {
        whole.extend_from_slice(&self.whole);
        flawed.extend(self.flawed.iter().map(|part| FlawedPart { kind, part: part.clone() }));
    }
}

/// The listings of one pass.
#[derive(Default)]
pub(crate) struct Survey {
    balancers: LazyListing<Listed<LoadBalancer, Named>>,
    pools: LazyListing<Kind<Pool>>,
    listeners: LazyListing<Kind<Listener>>,
    monitors: LazyListing<Kind<HealthMonitor>>,
    floating_ips: LazyListing<Listed<FloatingIp, FloatingIdentity>>,
}

impl fmt::Debug for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Survey").finish_non_exhaustive()
    }
}

impl Survey {
    pub(crate) async fn balancers(&self, api: &Api, call: &Call) -> Result<Arc<Listed<LoadBalancer, Named>>> {
        let id = |item: &Item<LoadBalancer, Named>| item.key(|one| &one.uuid, |one| &one.uuid).clone();
        let fetch = api.list(call, "list load balancers", "load-balancers", id);
        self.balancers.get(async { Ok(Listed::of(fetch.await?.all()?)) }).await
    }

    pub(crate) async fn pools(&self, api: &Api, call: &Call) -> Result<Arc<Kind<Pool>>> {
        let fetch = parts(api, call, ["list pools", "load-balancers/pools"], |pool: &Pool| &pool.uuid);
        self.pools.get(fetch).await
    }

    pub(crate) async fn listeners(&self, api: &Api, call: &Call) -> Result<Arc<Kind<Listener>>> {
        let from = ["list listeners", "load-balancers/listeners"];
        self.listeners.get(parts(api, call, from, |listener: &Listener| &listener.uuid)).await
    }

    pub(crate) async fn monitors(&self, api: &Api, call: &Call) -> Result<Arc<Kind<HealthMonitor>>> {
        let from = ["list health monitors", "load-balancers/health-monitors"];
        self.monitors.get(parts(api, call, from, |monitor: &HealthMonitor| &monitor.uuid)).await
    }

    pub(crate) async fn floating_ips(
        &self,
        api: &Api,
        call: &Call,
    ) -> Result<Arc<Listed<FloatingIp, FloatingIdentity>>> {
        let id =
            |item: &Item<FloatingIp, FloatingIdentity>| item.key(|ip| &ip.network, |ip| &ip.network).clone();
        let fetch = api.list(call, "list floating IPs", "floating-ips", id);
        self.floating_ips.get(async { Ok(Listed::of(fetch.await?.all()?)) }).await
    }
}

/// Lists all parts of one kind, by the name of the operation and the path. The listing must be complete: a part that it
/// lacks would be created twice.
async fn parts<T: DeserializeOwned + Send>(
    api: &Api,
    call: &Call,
    [name, path]: [&'static str; 2],
    uuid: fn(&T) -> &String,
) -> Result<Kind<T>> {
    let id = move |item: &Item<T, PartIdentity>| item.key(uuid, |part| &part.uuid).clone();
    Ok(Listed::of(api.list(call, name, path, id).await?.all()?))
}
