//! The listings that all Services of a pass share, each fetched when the first of them needs it.
//!
//! A Service whose load balancer is known by its id needs no listing of load balancers, one whose load balancer is
//! still being built needs no parts, and one that goes needs neither. Fetching late makes a listing only newer, so what
//! holds for a survey that was begun at some time holds for all of it.

use std::{collections::BTreeMap, sync::Arc};

use cloudberth_core::{Call, Error, Listing, Lookup, Result};
use tokio::sync::{Mutex, OnceCell};

use crate::{
    api::Api,
    servers::Reachable,
    wire::{FloatingIp, HealthMonitor, Listener, LoadBalancer, Pool, Server},
};

/// One listing, fetched at most once. What fails for one fails for all who share it.
#[derive(Debug)]
struct Once<T>(OnceCell<Result<Arc<T>>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T> Once<T> {
    async fn get(&self, fetch: impl Future<Output = Result<T>>) -> Result<Arc<T>> {
        self.0.get_or_init(|| async { fetch.await.map(Arc::new) }).await.clone()
    }
}

/// The listings of one pass.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    balancers: Once<Vec<LoadBalancer>>,
    servers: Once<Listing<Server>>,
    pools: Once<Vec<Pool>>,
    listeners: Once<Vec<Listener>>,
    monitors: Once<Vec<HealthMonitor>>,
    floating_ips: Once<Vec<FloatingIp>>,
    /// What the source said about servers that the listing lacks.
    unlisted: Mutex<BTreeMap<String, Lookup<Server>>>,
}

impl Survey {
    pub(crate) async fn balancers(&self, api: &Api, call: &Call) -> Result<Arc<Vec<LoadBalancer>>> {
        self.balancers
            .get(whole(
                api.list(call, "list load balancers", "load-balancers", |b: &LoadBalancer| b.uuid.clone()),
            ))
            .await
    }

    pub(crate) async fn servers(&self, api: &Api, call: &Call) -> Result<Arc<Listing<Server>>> {
        let trimmed = async {
            let Listing { items, short } = api.servers::<Reachable>(call).await?;
            Ok(Listing { items: items.into_iter().map(Server::from).collect(), short })
        };
        self.servers.get(trimmed).await
    }

    pub(crate) async fn pools(&self, api: &Api, call: &Call) -> Result<Arc<Vec<Pool>>> {
        self.pools
            .get(whole(api.list(call, "list pools", "load-balancers/pools", |p: &Pool| p.uuid.clone())))
            .await
    }

    pub(crate) async fn listeners(&self, api: &Api, call: &Call) -> Result<Arc<Vec<Listener>>> {
        self.listeners
            .get(whole(
                api.list(call, "list listeners", "load-balancers/listeners", |l: &Listener| l.uuid.clone()),
            ))
            .await
    }

    pub(crate) async fn monitors(&self, api: &Api, call: &Call) -> Result<Arc<Vec<HealthMonitor>>> {
        let fetch =
            api.list(call, "list health monitors", "load-balancers/health-monitors", |m: &HealthMonitor| {
                m.uuid.clone()
            });
        self.monitors.get(whole(fetch)).await
    }

    pub(crate) async fn floating_ips(&self, api: &Api, call: &Call) -> Result<Arc<Vec<FloatingIp>>> {
        self.floating_ips
            .get(whole(
                api.list(call, "list floating IPs", "floating-ips", |f: &FloatingIp| f.network.clone()),
            ))
            .await
    }

    /// Asks the source about a server that the listing lacks, once for all Services.
    pub(crate) async fn unlisted(&self, api: &Api, call: &Call, id: &str) -> Lookup<Server> {
        let mut asked = self.unlisted.lock().await;
        if let Some(answer) = asked.get(id) {
            return answer.clone();
        }
        let answer = api.server(call, id).await;
        asked.insert(id.to_owned(), answer.clone());
        answer
    }
}

/// A listing that may lack something proves nothing about load balancers and their parts: a part that is missing from
/// it would be created twice.
pub(crate) async fn whole<T>(fetch: impl Future<Output = Result<Listing<T>>>) -> Result<Vec<T>> {
    let Listing { items, short } = fetch.await?;
    match short {
        None => Ok(items),
        Some(why) => Err(Error::temporary(format!("the listing is incomplete: {why}"))),
    }
}
