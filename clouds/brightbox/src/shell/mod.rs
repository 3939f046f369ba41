//! The load balancers of one account: what talks, and decides nothing.

mod look;
mod memory;
mod survey;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{
    Call, Clock, Listing, Lookup, Result, ServiceView,
    annotation::Table,
    lb::{Balancers, Decision, Desired, Fleet, Goal, Identity, LockKey, Marked, Name, Outcome},
};
use cloudberth_http::{Item, Resolver};

use crate::{
    Action, Answer,
    annotations::{APPLIED, BALANCER, TABLE},
    api::Api,
    observed::{Observed, trimmed},
    plan,
    settings::Switches,
    spec::{UNKNOWN, balancer_name, digest_of},
    wire::{LoadBalancer, Named},
};
use look::Look;
use memory::Memory;
pub(crate) use survey::Survey;

/// How long something whose creation was not answered may take to show up: longer than a request may take.
const SETTLE: Duration = Duration::from_secs(40);

/// The annotations that hold the id of a load balancer.
static MARKS: [&str; 1] = [BALANCER.name()];

/// The load balancers of one account.
pub(crate) struct Brightboxes {
    api: Api,
    clock: Arc<dyn Clock>,
    resolver: Arc<dyn Resolver>,
    switches: Switches,
    memory: Mutex<Memory>,
}

impl fmt::Debug for Brightboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brightboxes").field("api", &self.api).finish_non_exhaustive()
    }
}

impl Brightboxes {
    pub(crate) fn new(
        api: Api,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
        switches: Switches,
    ) -> Self {
        Self { api, clock, resolver, switches, memory: Mutex::default() }
    }

    /// Each change is complete before the lock is released, so a poisoned lock hides no half-done change.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look(&self, look: Look<'_>) -> Result<Option<Observed>> {
        let mut observed = look.ensemble().await?;
        let service = &look.want.service;
        if look.want.goal == Goal::Gone {
            self.memory().forget(&service.uid);
            observed.trace = plan::left_over(look.want, &observed).or(observed.trace);
            return Ok(Some(observed).filter(Observed::is_anything_left));
        }
        look.servers(&mut observed).await?;
        if let Some(id) = look.lacks_certificate(&observed) {
            self.certificate(look, &id, &mut observed).await?;
        }
        look.names(&mut observed).await;
        if !service.annotations.contains_key(APPLIED.name()) {
            let now = || digest_of(service).unwrap_or_else(|| UNKNOWN.to_owned());
            observed.first_digest = Some(self.memory().first(&service.uid, now));
        }
        Ok(Some(observed))
    }

    /// The certificate of a load balancer, asked for unless it was seen valid a while ago.
    async fn certificate(&self, look: Look<'_>, id: &str, observed: &mut Observed) -> Result<()> {
        let now = self.clock.now();
        let known = self.memory().certificate(id, now);
        if let Some(acme) = known {
            let live = observed.balancers.iter_mut().filter(|one| one.id == id);
            live.for_each(|one| one.acme = Some(acme.clone()));
            return Ok(());
        }
        look.detail(id, observed).await?;
        if let Some(acme) = observed.balancer(id).and_then(|one| one.acme.as_ref()) {
            self.memory().saw(id, acme, now);
        }
        Ok(())
    }
}

impl Balancers for Brightboxes {
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
        self.api.shows(call, id).await.map(|_| ())
    }

    async fn marked(&self, call: &Call, cluster: &str) -> Result<Listing<Marked>> {
        let id = |item: &Item<LoadBalancer, Named>| item.key(|one| &one.id, |one| &one.id).clone();
        let listing = self.api.list(call, "list load balancers", "load_balancers", id).await?;
        Ok(plan::marked(listing, cluster))
    }

    fn settle_time(&self) -> Duration {
        SETTLE
    }

    fn name_for(&self, service: &ServiceView, cluster: &str) -> Name {
        Name { text: balancer_name(service, cluster), generated: true }
    }

    /// What is left of one is as much this Service's as the whole: everything of the name is.
    fn identity(&self, observed: &Observed) -> Option<Identity> {
        let balancer =
            observed.live().or(observed.balancers.first()).map(|one| (&one.id, trimmed(&one.name)));
        let (id, name) = balancer
            .or_else(|| observed.groups.first().map(|one| (&one.id, one.name.as_str())))
            .or_else(|| observed.policies.first().map(|one| (&one.id, one.name.as_str())))
            .or_else(|| observed.trace.as_ref().map(|(id, name)| (id, name.as_str())))?;
        Some(Identity { id: id.clone(), name: name.to_owned(), made_for: None, addresses: Vec::new() })
    }

    fn lock_keys(&self, service: &ServiceView, cluster: &str) -> Vec<LockKey> {
        plan::lock_keys(service, cluster)
    }

    async fn observe(
        &self,
        call: &Call,
        fleet: &dyn Fleet,
        survey: &Survey,
        want: &Desired,
    ) -> Lookup<Observed> {
        self.memory().begin(fleet.term());
        let (api, resolver, switches) = (&self.api, &*self.resolver, self.switches);
        Lookup::from(self.look(Look { api, resolver, call, fleet, survey, want, switches }).await)
    }

    fn decide(&self, want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
        plan::decide(want, observed, self.switches)
    }

    /// A creation is answered with the whole of what was created. What takes effect later is only accepted.
    async fn execute(&self, call: &Call, act: &Action) -> Outcome<Answer> {
        let (client, operation) = (&self.api.client, act.operation());
        match act {
            Action::AllocateCloudIp { .. } => {
                Box::pin(client.write(call, operation)).await.map(Answer::CloudIp)
            }
            Action::CreateGroup { .. } => Box::pin(client.write(call, operation)).await.map(Answer::Group),
            Action::CreatePolicy(_) => Box::pin(client.write(call, operation)).await.map(Answer::Policy),
            Action::CreateRule(_) => Box::pin(client.write(call, operation)).await.map(Answer::Rule),
            Action::CreateBalancer(_) => Box::pin(client.write(call, operation)).await.map(Answer::Balancer),
            Action::UpdateBalancer { balancer, .. } => {
                self.memory().writes(balancer);
                Box::pin(client.write(call, operation)).await.map(Answer::Balancer)
            }
            Action::Map { balancer, .. } => {
                match Box::pin(client.write_only(call, operation)).await {
                    // The answer to a mapping shows the old state, so the load balancer itself is asked.
                    Outcome::Done(()) => {
                        let read = self.api.balancer(call, balancer).await.known().ok().flatten();
                        Outcome::Done(Answer::Accepted(read.map(Box::new)))
                    }
                    other => other.map(|()| Answer::Done),
                }
            }
            Action::Unmap { .. } => {
                Box::pin(client.write_only(call, operation)).await.map(|()| Answer::Accepted(None))
            }
            Action::AddServers { .. }
            | Action::RemoveServers { .. }
            | Action::AttachPolicy { .. }
            | Action::UpdateRule { .. } => {
                Box::pin(client.write_only(call, operation)).await.map(|()| Answer::Done)
            }
            Action::DeleteBalancer { .. } => {
                Box::pin(client.remove(call, operation)).await.map(|()| Answer::Accepted(None))
            }
            Action::DeleteCloudIp { .. }
            | Action::DeleteGroup { .. }
            | Action::DeletePolicy { .. }
            | Action::DeleteRule { .. } => {
                Box::pin(client.remove(call, operation)).await.map(|()| Answer::Done)
            }
        }
    }

    fn fold(&self, observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
        plan::fold(observed, act, answer)
    }

    fn assume(&self, act: &Action) -> Answer {
        plan::assume(act)
    }
}
