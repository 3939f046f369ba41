//! Lists what there is, and deletes what was named.

use std::{sync::Arc, time::Duration};

use cloudberth_controllers::inventory::{Inventory, SurveyFleet};
use cloudberth_core::{
    Call, Clock, Error, NodeView, Provider, Result, ServiceView,
    call::{Gate, ReadOnly, Unguarded},
    lb::{
        Claims, Desired, Effects, Fleet, Goal, IntentMark, LoadBalancers, LockKey, Marked, Permit, Publish,
        TurnEnd,
    },
    provider::Boxed,
    view::ObjectKey,
};
use futures_util::future::{join, join_all};
use kube::Client;

use super::{Listed, Orphans, Unknown, judge, may_delete};
use crate::reads::list;

/// How long the listings of one cloud may take.
const LISTING: Duration = Duration::from_secs(60);
/// How long one load balancer may take to be deleted.
const DELETION: Duration = Duration::from_secs(300);

/// A cloud that has load balancers.
pub(crate) struct CloudWithMarks {
    pub(crate) provider: Arc<dyn Provider>,
    /// Listed once for all; instances are needed only by some clouds.
    pub(crate) inventory: Arc<Inventory>,
}

/// Everything that is looked at.
pub(crate) struct Look<'a> {
    pub(crate) client: &'a Client,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) cluster: &'a str,
    pub(crate) clouds: Vec<CloudWithMarks>,
}

/// What was seen at one time.
struct Seen<'a> {
    services: Vec<Arc<ServiceView>>,
    nodes: Vec<NodeView>,
    listed: Vec<Listed<'a>>,
}

impl Look<'_> {
    /// What is left over now.
    pub(crate) async fn now(&self) -> Orphans {
        match self.see().await {
            Ok(seen) => self.judged(&seen),
            Err(why) => {
                let unknown = Unknown { what: "the cluster".to_owned(), why: why.message().to_owned() };
                Orphans { unknown: vec![unknown], ..Orphans::default() }
            }
        }
    }

    /// Looks again, and deletes the load balancer of this name if it is left over for certain.
    pub(crate) async fn delete(&self, name: &str) -> Result<String, String> {
        let seen = self.see().await.map_err(|why| format!("the cluster: {}", why.message()))?;
        let found = self.judged(&seen);
        let orphan = may_delete(&found, name)?;
        let cloud =
            self.clouds.iter().zip(&seen.listed).find(|(cloud, _)| cloud.provider.name() == orphan.cloud);
        let (cloud, listed) = cloud.ok_or("its cloud is not known")?;
        let all = listed.marked.as_ref().map_err(|why| why.message().to_owned())?;
        let marked = all.items.iter().find(|one| one.id == orphan.id).ok_or("it is not listed any more")?;
        self.remove(cloud, listed.balancers, &seen.services, marked).await?;
        Ok(orphan.name.clone())
    }

    fn judged(&self, seen: &Seen<'_>) -> Orphans {
        judge(&seen.services, &seen.nodes, self.cluster, &seen.listed)
    }

    fn call(&self, patience: Duration, gate: Arc<dyn Gate>) -> Call {
        Call::new(self.clock.now() + patience, gate)
    }

    /// The clouds are listed first: a Service that is made meanwhile is seen, and owns what it has.
    async fn see(&self) -> Result<Seen<'_>> {
        let with =
            self.clouds.iter().filter_map(|cloud| Some((&*cloud.provider, cloud.provider.load_balancers()?)));
        let listed = join_all(with.map(async |(provider, balancers)| {
            let call = self.call(LISTING, Arc::new(ReadOnly));
            Listed { provider, balancers, marked: balancers.marked(&call, self.cluster).await }
        }));
        let listed = listed.await;
        let (services, nodes) =
            join(list(self.client, "/api/v1/services"), list(self.client, "/api/v1/nodes")).await;
        let services =
            services?.iter().map(|json| ServiceView::from_json(json).map(Arc::new)).collect::<Result<_>>()?;
        let nodes = nodes?.iter().map(NodeView::from_json).collect::<Result<_>>()?;
        Ok(Seen { services, nodes, listed })
    }

    /// The turn that would have removed it when its Service went.
    async fn remove(
        &self,
        cloud: &CloudWithMarks,
        balancers: &dyn LoadBalancers,
        services: &[Arc<ServiceView>],
        marked: &Marked,
    ) -> Result<(), String> {
        let call = self.call(DELETION, Arc::new(Unguarded));
        let want = Desired {
            service: Arc::new((*marked.made_for).clone()),
            cluster: self.cluster.to_owned(),
            goal: Goal::Gone,
            backends: Vec::new(),
            nodes: Vec::new(),
            rivals: Vec::new(),
            claims: claims(balancers, services, self.cluster),
        };
        let plain = |why: &Error| why.message().to_owned();
        loop {
            let fleet: Arc<dyn Fleet> =
                Arc::new(SurveyFleet::new(Arc::clone(&cloud.inventory), self.clock.now()));
            let survey = balancers.survey(&fleet).map_err(|why| plain(&why))?;
            let turn = balancers.turn(&call, &survey, &want, Permit::NoCreate, &Quiet).await;
            if let Some(refused) = turn.refused.first() {
                return Err(refused.to_string());
            }
            match turn.end {
                TurnEnd::Converged => return self.is_gone(balancers, marked).await,
                TurnEnd::Wait { on, .. } if call.read_until(self.clock.now()).is_err() => {
                    return Err(format!("it still waits for {on}; run the command again"));
                }
                TurnEnd::Wait { poll, .. } => tokio::time::sleep(poll).await,
                TurnEnd::Failed(why) | TurnEnd::Unknown(why) => return Err(plain(&why)),
                TurnEnd::NeedsIntent | TurnEnd::Refused => {
                    return Err("it is not this cluster's to delete".to_owned());
                }
            }
        }
    }

    /// Nothing counts as deleted that is still listed.
    async fn is_gone(&self, balancers: &dyn LoadBalancers, marked: &Marked) -> Result<(), String> {
        let call = self.call(LISTING, Arc::new(ReadOnly));
        match balancers.marked(&call, self.cluster).await {
            Ok(listing) if listing.items.iter().any(|one| one.id == marked.id) => {
                Err("the cloud still shows it; look again later".to_owned())
            }
            Ok(_) => Ok(()),
            Err(why) => Err(format!("whether it is gone is not known: {}", why.message())),
        }
    }
}

/// What the Services of the cluster lay claim to.
fn claims(balancers: &dyn LoadBalancers, services: &[Arc<ServiceView>], cluster: &str) -> Claims {
    let keys = services.iter().flat_map(|service| {
        let keys = balancers.read(service, cluster).keys;
        keys.into_iter().map(|key| (key, service.key()))
    });
    let keys: Vec<(LockKey, ObjectKey)> = keys.collect();
    Claims::new(move |wanted| {
        keys.iter().filter(|(key, _)| key == wanted).map(|(_, who)| who.clone()).collect()
    })
}

/// There is no Service to write on.
struct Quiet;

impl Effects for Quiet {
    fn record<'a>(&'a self, _: &'a Publish, _: IntentMark) -> Boxed<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
