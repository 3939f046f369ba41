//! Load balancers: the part that talks to the cloud.

mod known;
mod look;
mod survey;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{
    Call, Clock, Error, Listing, Lookup, Result, ServiceView, Tick,
    annotation::Table,
    decide::nodeset::Selector,
    lb::{Balancers, Decision, Desired, Fleet, Goal, Identity, LockKey, Marked, Name, Outcome, locate},
};

use crate::{
    Action, Answer, Observed,
    annotations::{TABLE, UUID},
    api::Api,
    backend_instance, find, plan, read_id,
    uuid::parse_uuid,
    wire::{BalancerStatus, LoadBalancer, Named},
};
use cloudberth_http::Item;
use futures_util::future::{OptionFuture, join};
use known::KnownMonitors;
use look::Look;
pub(crate) use survey::Survey;

/// How long a load balancer whose creation was not answered may take to show up: longer than a request may take, and
/// than the API needs to list what it has accepted.
const SETTLE: Duration = Duration::from_secs(60);

/// The annotations that hold the id of a load balancer.
static MARKS: [&str; 1] = [UUID.name()];

/// The load balancers of one project.
pub(crate) struct Cloudscales {
    api: Api,
    clock: Arc<dyn Clock>,
    /// Since when each load balancer has been `changing` without a break. It only decides how soon to poll again.
    changing: Mutex<BTreeMap<String, Tick>>,
    known: Mutex<KnownMonitors>,
}

/// Each change is complete before the lock is released, so a poisoned lock hides no half-done change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Cloudscales {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cloudscales").field("api", &self.api).finish_non_exhaustive()
    }
}

impl Cloudscales {
    pub(crate) fn new(api: Api, clock: Arc<dyn Clock>) -> Self {
        Self { api, clock, changing: Mutex::default(), known: Mutex::default() }
    }

    /// For how long the load balancer has been seen changing.
    fn changing_for(&self, balancer: Option<&LoadBalancer>, recorded: Option<&str>) -> Duration {
        let mut changing = lock(&self.changing);
        match balancer {
            Some(balancer) if balancer.status == BalancerStatus::Changing => {
                let now = self.clock.now();
                now.since(*changing.entry(balancer.uuid.clone()).or_insert(now))
            }
            other => {
                if let Some(id) = other.map(|balancer| balancer.uuid.as_str()).or(recorded) {
                    changing.remove(id);
                }
                Duration::ZERO
            }
        }
    }
}

impl Balancers for Cloudscales {
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
        match parse_uuid(id) {
            Some(id) => self.api.shows(call, &id).await.map(|_| ()),
            None => Lookup::Unknown(Error::user_input(format!("{}: {id:?} is not a UUID", UUID.name()))),
        }
    }

    /// By the generated name, which carries the UID of a Service of any cluster. The members have addresses and no servers,
    /// so nothing shows which cluster it is.
    async fn marked(&self, call: &Call, _cluster: &str) -> Result<Listing<Marked>> {
        let id = |item: &Item<LoadBalancer, Named>| item.key(|one| &one.uuid, |one| &one.uuid).clone();
        let listing = self.api.list(call, "list load balancers", "load-balancers", id).await?;
        Ok(find::marked(listing))
    }

    fn settle_time(&self) -> Duration {
        SETTLE
    }

    fn selector(&self, service: &ServiceView) -> Result<Option<Selector>> {
        plan::selector(service)
    }

    fn name_for(&self, service: &ServiceView, _cluster: &str) -> Name {
        find::name_for(service)
    }

    fn identity(&self, observed: &Observed) -> Option<Identity> {
        observed.existing.as_ref().map(|existing| find::identity(&existing.balancer))
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
        lock(&self.known).begin(fleet.term());
        let observed = async {
            let trail = &find::trail_of(&want.service, want.goal)?;
            let (api, known, now) = (&self.api, &self.known, self.clock.now());
            let look = Look { api, call, fleet, survey, want, trail, known, now };
            // Where no load balancer is recorded, the servers will be needed, to create one or for the one that is found,
            // and their listing takes as long as that of the load balancers.
            let is_new = want.goal == Goal::Present && trail.id.is_none();
            let servers = || locate(fleet, call, &want.backends, read_id, backend_instance);
            let (balancer, listed) = join(look.balancer(), OptionFuture::from(is_new.then(servers))).await;
            let balancer = balancer?;
            let changing_for = self.changing_for(balancer.as_ref(), trail.id.as_deref());
            match (balancer, listed) {
                (Some(balancer), listed) => look.around(balancer, listed, changing_for).await,
                (None, _) if want.goal == Goal::Gone => Ok(Observed::default()),
                (None, Some(listed)) => Ok(Observed { existing: None, instances: listed? }),
                (None, None) => Ok(Observed { existing: None, instances: servers().await? }),
            }
        };
        Lookup::from(observed.await.map(Some))
    }

    fn decide(&self, want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
        plan::decide(want, observed)
    }

    /// A creation is answered with the whole of what was created.
    async fn execute(&self, call: &Call, act: &Action) -> Outcome<Answer> {
        let (Api(client), operation) = (&self.api, act.operation());
        let outcome = match act {
            Action::CreateBalancer(_) => Box::pin(client.write(call, operation)).await.map(Answer::Balancer),
            Action::CreatePool(_) => Box::pin(client.write(call, operation)).await.map(Answer::Pool),
            Action::CreateMember { .. } => Box::pin(client.write(call, operation)).await.map(Answer::Member),
            Action::CreateListener(_) => Box::pin(client.write(call, operation)).await.map(Answer::Listener),
            Action::CreateMonitor(_) => Box::pin(client.write(call, operation)).await.map(Answer::Monitor),
            Action::RenameBalancer { .. }
            | Action::UpdateListener { .. }
            | Action::UpdateMonitor { .. }
            | Action::AssignFloatingIp { .. } => {
                Box::pin(client.write_only(call, operation)).await.map(|()| Answer::Done)
            }
            Action::DeleteListener { .. }
            | Action::DeleteMember { .. }
            | Action::DeleteMonitor { .. }
            | Action::DeletePool { .. }
            | Action::DeleteBalancer { .. } => {
                Box::pin(client.remove(call, operation)).await.map(|()| Answer::Done)
            }
        };
        let now = self.clock.now();
        lock(&self.known).heard(act, &outcome, now);
        if let Outcome::Done(Answer::Balancer(made)) = &outcome {
            // From now on, not from the first look at it.
            self.changing_for(Some(made), None);
        }
        outcome
    }

    fn fold(&self, observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
        plan::fold(observed, act, answer)
    }

    fn assume(&self, act: &Action) -> Answer {
        plan::assume(act)
    }
}

#[cfg(test)]
mod tests;
