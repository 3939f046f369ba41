//! The listings that all Services of a pass share, each fetched when the first of them needs it.

use std::{fmt, sync::Arc};

use cloudberth_core::{Call, Result};
use cloudberth_http::{Flawed, Item, LazyListing};
use serde::de::DeserializeOwned;

use crate::{
    api::Api,
    wire::{CloudIp, LoadBalancer, Named, Policy, ServerGroup},
};

/// What was listed: what could be read whole, and what is only known to be there.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) whole: Vec<T>,
    pub(crate) flawed: Vec<Flawed<Named>>,
}

/// The listings of one pass.
#[derive(Default)]
pub(crate) struct Survey {
    balancers: LazyListing<Listed<LoadBalancer>>,
    cloud_ips: LazyListing<Listed<CloudIp>>,
    groups: LazyListing<Listed<ServerGroup>>,
    policies: LazyListing<Listed<Policy>>,
}

impl fmt::Debug for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Survey").finish_non_exhaustive()
    }
}

impl Survey {
    pub(crate) async fn balancers(&self, api: &Api, call: &Call) -> Result<Arc<Listed<LoadBalancer>>> {
        let from = ["list load balancers", "load_balancers"];
        self.balancers.get(all(api, call, from, |one: &LoadBalancer| &one.id)).await
    }

    pub(crate) async fn cloud_ips(&self, api: &Api, call: &Call) -> Result<Arc<Listed<CloudIp>>> {
        self.cloud_ips.get(all(api, call, ["list cloud ips", "cloud_ips"], |one: &CloudIp| &one.id)).await
    }

    pub(crate) async fn groups(&self, api: &Api, call: &Call) -> Result<Arc<Listed<ServerGroup>>> {
        let from = ["list server groups", "server_groups"];
        self.groups.get(all(api, call, from, |one: &ServerGroup| &one.id)).await
    }

    pub(crate) async fn policies(&self, api: &Api, call: &Call) -> Result<Arc<Listed<Policy>>> {
        let from = ["list firewall policies", "firewall_policies"];
        self.policies.get(all(api, call, from, |one: &Policy| &one.id)).await
    }
}

/// Lists all of one kind, by the name of the operation and the path. The listing must be complete: what it lacks would be
/// created twice.
async fn all<T: DeserializeOwned + Send>(
    api: &Api,
    call: &Call,
    [name, path]: [&'static str; 2],
    id: fn(&T) -> &String,
) -> Result<Listed<T>> {
    let key = move |item: &Item<T, Named>| item.key(id, |one| &one.id).clone();
    let (whole, flawed) = Item::sort(api.list(call, name, path, key).await?.all()?);
    Ok(Listed { whole, flawed })
}
