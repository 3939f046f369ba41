//! Load balancers: the part that talks to the cloud.

mod look;
mod memory;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cloudberth_core::{
    Call, Category, Clock, Error, Listing, Lookup, Result, ServiceView,
    annotation::Table,
    lb::{Decision, Desired, Fleet, Identity, LockKey, Marked, Name, Outcome},
};
use cloudberth_http::{Item, LazyListing};

use crate::{
    action::{Action, Answer},
    annotations::{ID, TABLE},
    api::Api,
    find::{ListedBalancers, recorded_id},
    id::parse_number,
    observed::Observed,
    plan::{self, Planner},
    wire::{Changed, Named, Server},
};
use look::Look;
use memory::Memory;

/// How long a load balancer whose creation was not answered may take to show up: the gateway gives up after a minute,
/// and the work goes on behind it.
pub(crate) const SETTLE: Duration = Duration::from_secs(120);

/// The annotations that hold the id of a load balancer, that of another controller included.
static MARKS: [&str; 2] = [ID.name(), "binarylane.com.au/load-balancer-id"];

/// The load balancers of one account.
pub(crate) struct Balancers {
    api: Api,
    planner: Planner,
    memory: Memory,
}

impl std::fmt::Debug for Balancers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Balancers").field("api", &self.api).finish_non_exhaustive()
    }
}

/// The listings of one pass, fetched when the first Service needs them.
#[derive(Default)]
pub(crate) struct Survey {
    balancers: LazyListing<ListedBalancers>,
}

impl Survey {
    async fn balancers(&self, api: &Api, call: &Call) -> Result<Arc<ListedBalancers>> {
        let fetch = async {
            let listing = api.balancers(call).await?;
            let (whole, flawed) = Item::sort(listing.items);
            Ok(ListedBalancers { whole, flawed, short: listing.short })
        };
        self.balancers.get(fetch).await
    }
}

impl Balancers {
    pub(crate) fn new(api: Api, planner: Planner, clock: Arc<dyn Clock>) -> Self {
        Self { api, planner, memory: Memory::new(clock) }
    }

    /// Those of the servers that do not exist any more. The API refuses a pool that holds one without saying which.
    async fn vanished(&self, call: &Call, servers: &[i64]) -> Vec<i64> {
        struct Number(i64);
        impl From<Item<Server, Named>> for Number {
            fn from(server: Item<Server, Named>) -> Self {
                Self(*server.key(|one| &one.id, |one| &one.id))
            }
        }
        match self.api.servers::<Number>(call).await.and_then(Listing::all) {
            Ok(all) => {
                let all: BTreeSet<i64> = all.into_iter().map(|Number(id)| id).collect();
                servers.iter().copied().filter(|id| !all.contains(id)).collect()
            }
            Err(_) => Vec::new(),
        }
    }

    async fn send(&self, call: &Call, act: &Action) -> Outcome<Answer> {
        let (Api(client), operation) = (&self.api, act.operation());
        match act {
            Action::Create(_) | Action::Update { .. } => {
                let sent = Box::pin(client.write::<Changed>(call, operation)).await;
                sent.map(|changed| {
                    if matches!(act, Action::Create(_)) {
                        self.memory.created(changed.load_balancer.id, changed.job());
                    }
                    Answer::Balancer(Box::new(changed.load_balancer))
                })
            }
            Action::AddServers { .. } | Action::RemoveServers { .. } => {
                Box::pin(client.write_only(call, operation)).await.map(|()| Answer::Done)
            }
            Action::Delete { id } => {
                self.memory.removes(*id);
                Box::pin(client.remove(call, operation)).await.map(|()| Answer::Done)
            }
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
        match parse_number(id) {
            Some(id) => self.api.shows(call, id).await.map(|_| ()),
            None => {
                Lookup::Unknown(Error::user_input(format!("{}: {id:?} is not a positive number", ID.name())))
            }
        }
    }

    async fn marked(&self, call: &Call, cluster: &str) -> Result<Listing<Marked>> {
        Ok(self.planner.marked(self.api.balancers(call).await?, cluster))
    }

    fn may_own(&self, service: &ServiceView, cluster: &str, marked: &Marked) -> bool {
        let recorded = recorded_id(service).is_some_and(|id| id.to_string() == marked.id);
        recorded || self.planner.names(service, cluster).fit(&marked.name)
    }

    fn settle_time(&self) -> Duration {
        SETTLE
    }

    /// The health check has no port, so a node without ready pods has to be left out of the pool.
    fn needs_endpoints(&self) -> bool {
        true
    }

    fn name_for(&self, service: &ServiceView, cluster: &str) -> Name {
        self.planner.name_for(service, cluster)
    }

    fn identity(&self, observed: &Observed) -> Option<Identity> {
        let existing = observed.existing.as_ref()?;
        Some(Identity {
            id: existing.id.to_string(),
            name: observed.known_as.clone(),
            made_for: None,
            addresses: vec![existing.ip.clone()],
        })
    }

    fn lock_keys(&self, service: &ServiceView, cluster: &str) -> Vec<LockKey> {
        self.planner.lock_keys(service, cluster)
    }

    async fn observe(
        &self,
        call: &Call,
        fleet: &dyn Fleet,
        survey: &Survey,
        want: &Desired,
    ) -> Lookup<Observed> {
        let Self { api, planner, memory } = self;
        let look = Look { api, planner, memory, call, fleet, survey, want };
        Lookup::from(look.observe().await.map(Some))
    }

    fn decide(&self, want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
        self.planner.decide(want, observed)
    }

    /// Sends it. Where the API refuses because a server of the pool vanished meanwhile, the others are added without it;
    /// a creation or an update is decided on again.
    async fn execute(&self, call: &Call, act: &Action) -> Outcome<Answer> {
        let refused = match self.send(call, act).await {
            Outcome::Failed(why) if why.category() == Category::UserInput && !act.servers().is_empty() => why,
            outcome => return outcome,
        };
        let gone = self.vanished(call, act.servers()).await;
        match act {
            _ if gone.is_empty() => Outcome::Failed(refused),
            Action::AddServers { id, servers } => {
                let servers: Vec<i64> = servers.iter().copied().filter(|one| !gone.contains(one)).collect();
                if servers.is_empty() {
                    return Outcome::Done(Answer::WithoutServers(gone));
                }
                let rest = Action::AddServers { id: *id, servers };
                self.send(call, &rest).await.map(|_| Answer::WithoutServers(gone))
            }
            _ => Outcome::Failed(Error::new(Category::Conflict, refused.message())),
        }
    }

    fn fold(&self, observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
        plan::fold(observed, act, answer)
    }

    fn assume(&self, act: &Action) -> Answer {
        plan::assume(act)
    }
}
