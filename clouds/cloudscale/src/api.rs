//! The client of the API: one function per kind of request, each with a name for the metrics.
//!
//! Everything is addressed by the base URL and an id in its one spelling. The `href` of an answer is never followed, so
//! no answer can lead the token to another server.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{Call, Category, Clock, Error, Listing, Lookup, Random, Result, rate::Backoff};
use cloudberth_http::{
    Answer as Raw, Array, Budget, Client, Dialect, Item, Observer, Operation, Policy, Transport, Write,
};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    Action, Method,
    settings::Settings,
    wire::{LoadBalancer, Member, Named, Server, Stub},
};

/// The API documents no limit. These keep a burst of fifty Services from looking like an attack, and a 429 slows them
/// down further.
const GAP: Duration = Duration::from_millis(5);
const BURST: u32 = 200;
/// A refusal now and then passes quickly, and a load balancer takes two dozen requests one after the other.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(8) };

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

/// The API of one project. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Api(pub(crate) Client);

/// How a listed server is kept, and its id.
#[derive(Deserialize)]
#[serde(from = "Item<Server, Named>", bound(deserialize = "T: From<Item<Server, Named>>"))]
struct Trimmed<T> {
    uuid: String,
    rest: T,
}

impl<T: From<Item<Server, Named>>> From<Item<Server, Named>> for Trimmed<T> {
    fn from(server: Item<Server, Named>) -> Self {
        let uuid = server.key(|one| &one.uuid, |one| &one.uuid).clone();
        Self { uuid, rest: server.into() }
    }
}

impl Api {
    pub(crate) fn new(settings: &Settings, around: Surroundings) -> Self {
        let Surroundings { transport, clock, random, observer } = around;
        let policy = Policy {
            backoff: BACKOFF,
            read_attempt: settings.timeout,
            write_attempt: settings.timeout,
            ..Policy::default()
        };
        let budget = Budget::new(GAP, BURST, Arc::clone(&clock));
        let client = Client::builder(settings.base.clone(), transport, clock, random)
            .authenticator(Arc::new(settings.token.clone()))
            .budget(budget)
            .policy(policy)
            .dialect(Dialect { undone: maintenance, ..Dialect::default() })
            .observer(observer)
            .build();
        Self(client)
    }

    /// Servers, each turned into what is wanted of it before the next is read: there may be thousands.
    pub(crate) async fn servers<T: From<Item<Server, Named>> + Send>(
        &self,
        call: &Call,
    ) -> Result<Listing<T>> {
        let operation = Operation::get("list servers", "servers");
        let id = |server: &Trimmed<T>| server.uuid.clone();
        let Listing { items, short } = Box::pin(self.0.list(call, operation, &Array, id)).await?;
        Ok(Listing { items: items.into_iter().map(|server| server.rest).collect(), short })
    }

    pub(crate) async fn server(&self, call: &Call, id: &str) -> Lookup<Item<Server, Named>> {
        Box::pin(self.0.lookup(call, Operation::get("get server", "servers").segment(id))).await
    }

    /// Whether it is there, and whole where it can be read.
    pub(crate) async fn shows(&self, call: &Call, id: &str) -> Lookup<Item<LoadBalancer, Named>> {
        Box::pin(self.0.lookup(call, Operation::get("get load balancer", "load-balancers").segment(id))).await
    }

    pub(crate) async fn balancer(&self, call: &Call, id: &str) -> Lookup<LoadBalancer> {
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

    /// There is no listing of the members of all pools.
    pub(crate) async fn members(&self, call: &Call, pool: &str) -> Result<Listing<Item<Member, Stub>>> {
        let operation =
            Operation::get("list members", "load-balancers/pools").segment(pool).segment("members");
        let id = |member: &Item<Member, Stub>| member.key(|one| &one.uuid, |one| &one.uuid).clone();
        Box::pin(self.0.list(call, operation, &Array, id)).await
    }

    /// A listing is one array, without pages.
    pub(crate) async fn list<T, K>(
        &self,
        call: &Call,
        name: &'static str,
        path: &str,
        id: impl Fn(&T) -> K + Send,
    ) -> Result<Listing<T>>
    where
        T: DeserializeOwned + Send,
        K: Ord + Send,
    {
        // Boxed, like every exchange below: the state of one is large, and callers hold several.
        Box::pin(self.0.list(call, Operation::get(name, path), &Array, id)).await
    }
}

impl Action {
    /// How it is sent.
    pub(crate) fn operation(&self) -> Operation<Write> {
        let request = self.request();
        let begin = match request.method {
            Method::Post => Operation::post,
            Method::Patch => Operation::patch,
            Method::Delete => Operation::delete,
        };
        let mut parts = request.path.iter();
        let root = begin(request.operation, parts.next().map_or("", String::as_str));
        let operation = parts.fold(root, |operation, part| operation.segment(part));
        match &request.body {
            Some(body) => operation.json(body),
            // Repeating a deletion is safe: ids are not used twice.
            None => operation.repeatable().dialect(Dialect {
                category: unfinished,
                undone: maintenance,
                ..Dialect::default()
            }),
        }
    }
}

/// A deletion carries nothing that a user could have written wrong: 400 means that the resource is still being built.
fn unfinished(answer: &Raw) -> Option<Category> {
    (answer.status() == 400).then_some(Category::Conflict)
}

/// The API says 503 during maintenance, and the vendor's own acceptance tests then send the same request again, whatever
/// it is. A page from something in front of the API proves nothing.
fn maintenance(answer: &Raw) -> bool {
    answer.status() == 503 && answer.is_json_object()
}

#[cfg(test)]
mod tests;
