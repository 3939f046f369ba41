//! Load balancers: the part that talks to the service.

mod locate;
mod refused;

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Call, Clock, Error, Listing, Lookup, NodeView, Result, ServiceView,
    annotation::Table,
    lb::{Decision, Desired, Fleet, Identity, LockKey, Marked, Name, Outcome},
};
use cloudberth_http::{Item, LazyListing};

use crate::{
    action::{Action, Answer},
    annotations::{ID, TABLE},
    api::{Api, Key},
    id::provider_id,
    observed::Observed,
    others::OtherNodes,
    plan,
    wire::{BalancerIdentity, LoadBalancer},
};
use refused::Refusals;

/// A load balancer is there as soon as its creation is answered; one whose answer was lost shows up at once, or never.
const SETTLE: Duration = Duration::from_secs(2);

static MARKS: [&str; 1] = [ID.name()];

/// The load balancers of one cluster.
pub(crate) struct Balancers {
    api: Api,
    others: Arc<OtherNodes>,
    refused: Refusals,
}

impl std::fmt::Debug for Balancers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Balancers").field("api", &self.api).finish_non_exhaustive()
    }
}

type Listed = Listing<Item<LoadBalancer, BalancerIdentity>>;

/// The listings of one pass, fetched when the first Service needs them.
#[derive(Default)]
pub(crate) struct Survey {
    balancers: LazyListing<Listed>,
    /// The inventory has our cluster, as seen after the listing of machines.
    cluster: LazyListing<()>,
}

impl Balancers {
    pub(crate) fn new(api: Api, others: Arc<OtherNodes>, clock: Arc<dyn Clock>) -> Self {
        Self { api, others, refused: Refusals::new(clock) }
    }

    async fn cluster_is_there(&self, call: &Call, survey: &Survey) -> Result<()> {
        survey.cluster.get(self.api.cluster_is_there(call)).await.map(|_| ())
    }

    async fn look(
        &self,
        call: &Call,
        fleet: &dyn Fleet,
        survey: &Survey,
        want: &Desired,
    ) -> Result<Observed> {
        let key = Key::of(&want.service);
        let listed = survey.balancers.get(self.api.balancers(call)).await?;
        let existing = find(&listed, &key)?;
        let machines = locate::machines(
            fleet,
            call,
            &want.backends,
            existing.is_none(),
            self.cluster_is_there(call, survey),
        );
        let machines = machines.await?;
        let refused = self.refused.remembered(&key, existing.is_none());
        Ok(Observed { existing, machines, refused, mode_is_sent: false })
    }
}

/// The load balancer of this name. One that cannot be read is there all the same.
fn find(listed: &Listed, key: &Key) -> Result<Option<LoadBalancer>> {
    let found = listed.find(|item| match item {
        Item::Whole(one) => one.namespace == key.namespace && one.name == key.name,
        Item::Flawed(one) => one.identity.namespace == key.namespace && one.identity.name == key.name,
    });
    match found.known()? {
        None => Ok(None),
        Some(Item::Whole(one)) => Ok(Some(one.clone())),
        Some(Item::Flawed(one)) => {
            let text = format!("load balancer {}/{key} cannot be read: {}", one.identity.cluster, one.why);
            Err(Error::temporary(text))
        }
    }
}

impl cloudberth_core::lb::Balancers for Balancers {
    type Survey = Survey;
    type Observed = Observed;
    type Action = Action;
    type Answer = Answer;

    fn annotations(&self) -> &Table {
        &TABLE
    }

    fn marks(&self) -> &[&'static str] {
        &MARKS
    }

    async fn shows(&self, call: &Call, id: &str) -> Lookup<()> {
        let mut parts = id.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(cluster), Some(namespace), Some(name)) => {
                let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
                self.api.shows(call, cluster, &key).await
            }
            _ => Lookup::Unknown(Error::user_input(format!(
                "{}: {id:?} is not the id of a load balancer: CLUSTER/NAMESPACE/NAME",
                ID.name()
            ))),
        }
    }

    /// Everything that the service has for this cluster; a load balancer is called as its Service is.
    async fn marked(&self, call: &Call, _cluster: &str) -> Result<Listing<Marked>> {
        let Listing { items, mut short } = self.api.balancers(call).await?;
        let (whole, flawed) = Item::sort(items);
        if let Some(one) = flawed.first() {
            let BalancerIdentity { namespace, name, .. } = &one.identity;
            short.get_or_insert(format!("load balancer {namespace}/{name} cannot be read: {}", one.why));
        }
        let of = |LoadBalancer { cluster, namespace, name, spec, .. }: LoadBalancer| Marked {
            id: format!("{cluster}/{namespace}/{name}"),
            name: format!("{namespace}/{name}"),
            instances: spec.backends.iter().filter_map(|one| provider_id(&one.machine).ok()).collect(),
            made_for: Box::new(ServiceView { namespace, name, uid: spec.uid, ..ServiceView::default() }),
        };
        Ok(Listing { items: whole.into_iter().map(of).collect(), short })
    }

    fn settle_time(&self) -> Duration {
        SETTLE
    }

    /// Nodes of kind, k3d or minikube have ids of their own, and the inventory may name them.
    fn accepts(&self, node: &NodeView, own: bool) -> bool {
        own || node.provider_id.as_deref().is_some_and(|id| self.others.may_be(id))
    }

    fn name_for(&self, service: &ServiceView, _cluster: &str) -> Name {
        plan::name_for(service)
    }

    fn identity(&self, observed: &Observed) -> Option<Identity> {
        let existing = observed.existing.as_ref()?;
        let LoadBalancer { cluster, namespace, name, addresses, .. } = existing;
        Some(Identity {
            id: format!("{cluster}/{namespace}/{name}"),
            name: format!("{namespace}/{name}"),
            made_for: None,
            addresses: addresses.iter().map(ToString::to_string).collect(),
        })
    }

    fn lock_keys(&self, service: &ServiceView, _cluster: &str) -> Vec<LockKey> {
        plan::lock_keys(service)
    }

    async fn observe(
        &self,
        call: &Call,
        fleet: &dyn Fleet,
        survey: &Survey,
        want: &Desired,
    ) -> Lookup<Observed> {
        Lookup::from(self.look(call, fleet, survey, want).await.map(Some))
    }

    fn decide(&self, want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
        plan::decide(want, observed)
    }

    async fn execute(&self, call: &Call, act: &Action) -> Outcome<Answer> {
        match act {
            Action::Put { key, spec, creates } => {
                let sent = self.api.put(call, key, spec, *creates).await;
                if let Outcome::Refused { answer: Answer::Refused(refused), .. } = &sent {
                    self.refused.remember(key, refused);
                }
                sent
            }
            Action::Delete { key, uid } => self.api.delete(call, key, uid).await.map(|()| Answer::Gone),
        }
    }

    fn fold(&self, observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
        plan::fold(observed, act, answer)
    }

    fn assume(&self, act: &Action) -> Answer {
        plan::assume(act)
    }
}
