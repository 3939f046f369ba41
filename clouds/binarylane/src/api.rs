//! The client of the API: one function per kind of request, each with a name for the metrics.

use std::{fmt, sync::Arc};

use cloudberth_core::{Call, Clock, Error, Listing, Lookup, Random, Result, rate::Backoff};
use cloudberth_http::{Client, Envelope, Item, Observer, Operation, Policy, Read, Transport};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    settings::Settings,
    wire::{Job, LoadBalancer, Named, Server, Slug, Vpc},
};

/// The most that the API gives at once; its default is 20.
const PER_PAGE: u32 = 200;

const fn pages(key: &'static str) -> Envelope {
    Envelope { key, next: Some("/links/pages/next"), total: Some("/meta/total") }
}

/// What the client is made of besides its settings.
#[derive(Clone)]
pub struct Surroundings {
    /// What requests are sent through.
    pub transport: Transport,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<Random>,
    /// Sees every call.
    pub observer: Arc<dyn Observer>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// The API of one account. Clones share everything, the limit of ten requests a second included.
#[derive(Clone, Debug)]
pub(crate) struct Api(pub(crate) Client);

/// How a listed server is kept, and its id.
#[derive(Deserialize)]
#[serde(from = "Item<Server, Named>", bound(deserialize = "T: From<Item<Server, Named>>"))]
struct Trimmed<T> {
    id: i64,
    rest: T,
}

impl<T: From<Item<Server, Named>>> From<Item<Server, Named>> for Trimmed<T> {
    fn from(server: Item<Server, Named>) -> Self {
        Self { id: *server.key(|one| &one.id, |one| &one.id), rest: server.into() }
    }
}

#[derive(Deserialize)]
struct OneServer {
    server: Item<Server, Named>,
}

#[derive(Deserialize)]
struct OneBalancer {
    load_balancer: Item<LoadBalancer, Named>,
}

#[derive(Deserialize)]
struct OneJob {
    action: Job,
}

#[derive(Deserialize)]
pub(crate) struct OneVpc {
    pub(crate) vpc: Vpc,
}

impl Api {
    pub(crate) fn new(settings: &Settings, around: Surroundings) -> Self {
        let Surroundings { transport, clock, random, observer } = around;
        let backoff = Backoff {
            first: std::time::Duration::from_millis(500),
            longest: std::time::Duration::from_secs(2),
        };
        let client = Client::builder(settings.base.clone(), transport, clock, random)
            .authenticator(Arc::new(settings.token.clone()))
            .policy(Policy { backoff, ..Policy::default() })
            .observer(observer)
            .build();
        Self(client)
    }

    /// Servers, each turned into what is wanted of it before the next is read: there may be thousands.
    pub(crate) async fn servers<T: From<Item<Server, Named>> + Send>(
        &self,
        call: &Call,
    ) -> Result<Listing<T>> {
        self.servers_of(call, Operation::get("list servers", "servers")).await
    }

    /// The servers of one host name, as far as the API filters: whoever asks has to compare the names.
    pub(crate) async fn servers_named<T: From<Item<Server, Named>> + Send>(
        &self,
        call: &Call,
        name: &str,
    ) -> Result<Listing<T>> {
        self.servers_of(call, Operation::get("find server", "servers").query("hostname", name)).await
    }

    async fn servers_of<T: From<Item<Server, Named>> + Send>(
        &self,
        call: &Call,
        operation: Operation<Read>,
    ) -> Result<Listing<T>> {
        let list = self.list(call, operation, "servers", |server: &Trimmed<T>| server.id);
        let Listing { items, short } = list.await?;
        Ok(Listing { items: items.into_iter().map(|server| server.rest).collect(), short })
    }

    pub(crate) async fn server(&self, call: &Call, id: i64) -> Lookup<Item<Server, Named>> {
        let operation = Operation::get("get server", "servers").segment(&id.to_string());
        let found: Lookup<OneServer> = Box::pin(self.0.lookup(call, operation)).await;
        found.map(|one| one.server)
    }

    pub(crate) async fn balancers(&self, call: &Call) -> Result<Listing<Item<LoadBalancer, Named>>> {
        let id = |one: &Item<LoadBalancer, Named>| *one.key(|one| &one.id, |one| &one.id);
        self.list(call, Operation::get("list load balancers", "load_balancers"), "load_balancers", id).await
    }

    /// Whether it is there, and whole where it can be read.
    pub(crate) async fn shows(&self, call: &Call, id: i64) -> Lookup<Item<LoadBalancer, Named>> {
        let operation = Operation::get("get load balancer", "load_balancers").segment(&id.to_string());
        let found: Lookup<OneBalancer> = Box::pin(self.0.lookup(call, operation)).await;
        found.map(|one| one.load_balancer)
    }

    pub(crate) async fn balancer(&self, call: &Call, id: i64) -> Lookup<LoadBalancer> {
        match self.shows(call, id).await {
            Lookup::Present(Item::Whole(balancer)) => Lookup::Present(balancer),
            Lookup::Present(Item::Flawed(flawed)) => {
                let text = format!("load balancer {id} cannot be read: {}", flawed.why);
                Lookup::Unknown(Error::temporary(text))
            }
            Lookup::Absent => Lookup::Absent,
            Lookup::Unknown(why) => Lookup::Unknown(why),
        }
    }

    pub(crate) async fn job(&self, call: &Call, id: i64) -> Lookup<Job> {
        let operation = Operation::get("get action", "actions").segment(&id.to_string());
        let found: Lookup<OneJob> = Box::pin(self.0.lookup(call, operation)).await;
        found.map(|one| one.action)
    }

    /// Begins to ask a server whether it runs. An answer without a body has nothing to follow, and is an error.
    pub(crate) async fn is_running(&self, call: &Call, id: i64) -> Result<Job> {
        let operation = Operation::question("ask whether a server runs", "servers")
            .segment(&id.to_string())
            .segment("actions")
            .json(&json!({"type": "is_running"}));
        let begun: OneJob = Box::pin(self.0.read(call, operation)).await?;
        Ok(begun.action)
    }

    pub(crate) async fn vpc(&self, call: &Call, id: i64) -> Lookup<Vpc> {
        let operation = Operation::get("get VPC", "vpcs").segment(&id.to_string());
        let found: Lookup<OneVpc> = Box::pin(self.0.lookup(call, operation)).await;
        found.map(|one| one.vpc)
    }

    pub(crate) async fn regions(&self, call: &Call) -> Result<Listing<Slug>> {
        let operation = Operation::get("list regions", "regions");
        self.list(call, operation, "regions", |region: &Slug| region.slug.clone()).await
    }

    async fn list<T, K>(
        &self,
        call: &Call,
        operation: Operation<Read>,
        key: &'static str,
        id: impl Fn(&T) -> K + Send,
    ) -> Result<Listing<T>>
    where
        T: DeserializeOwned + Send,
        K: Ord + Send,
    {
        // Boxed, like every exchange: the state of one is large, and callers hold several.
        let operation = operation.query("per_page", PER_PAGE);
        Box::pin(self.0.list(call, operation, &pages(key), id)).await
    }
}
