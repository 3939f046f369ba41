//! The client of the API: one function per kind of request, each with a name for the metrics.
//!
//! Everything is addressed by the base URL and an id in its one spelling. The `href` of an answer is never followed, so
//! no answer can lead the token to another server.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{Call, Category, Clock, Dice, Listing, Lookup, Result, lb::Outcome};
use cloudberth_http::{Answer, Array, Budget, Client, Dialect, Observer, Operation, Policy, Transport};
use serde::{Serialize, de::DeserializeOwned};

use crate::{ids::Uuid, settings::Settings, wire::Server};

/// The API documents no limit. These keep a burst of fifty Services from looking like an attack, and a 429 slows them
/// down further.
const GAP: Duration = Duration::from_millis(5);
const BURST: u32 = 200;

/// What the client is made of besides its settings.
#[derive(Clone)]
pub struct Surroundings {
    /// The way to the API.
    pub transport: Transport,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub dice: Arc<Dice>,
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
pub(crate) struct Api(Client);

impl Api {
    pub(crate) fn new(settings: &Settings, around: Surroundings) -> Self {
        let Surroundings { transport, clock, dice, observer } = around;
        let policy =
            Policy { read_attempt: settings.timeout, write_attempt: settings.timeout, ..Policy::default() };
        let budget = Budget::new(GAP, BURST, Arc::clone(&clock));
        let client = Client::builder(settings.base.clone(), transport, clock, dice)
            .authenticator(Arc::new(settings.token.clone()))
            .budget(budget)
            .policy(policy)
            .observer(observer)
            .build();
        Self(client)
    }

    pub(crate) async fn servers(&self, call: &Call) -> Result<Listing<Server>> {
        self.list(call, "list_servers", "servers", |server: &Server| server.uuid.clone()).await
    }

    pub(crate) async fn server(&self, call: &Call, id: &Uuid) -> Lookup<Server> {
        self.get(call, "get_server", "servers", id).await
    }

    /// A listing is one array that holds everything.
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
        self.0.list(call, Operation::get(name, path), &Array, id).await
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        call: &Call,
        name: &'static str,
        path: &str,
        id: &Uuid,
    ) -> Lookup<T> {
        self.0.lookup(call, Operation::get(name, path).segment(id.as_str())).await
    }

    /// Creates something; the answer is the whole of it.
    pub(crate) async fn create<T: DeserializeOwned>(
        &self,
        call: &Call,
        name: &'static str,
        path: &str,
        body: &impl Serialize,
    ) -> Outcome<T> {
        self.0.write(call, Operation::post(name, path).json(body)).await
    }

    /// Changes one attribute: the API refuses more at a time.
    pub(crate) async fn update(
        &self,
        call: &Call,
        name: &'static str,
        path: &str,
        id: &str,
        body: &impl Serialize,
    ) -> Outcome<()> {
        self.0.write_only(call, Operation::patch(name, path).segment(id).json(body)).await
    }

    /// Deletes something. What is not there any more is deleted.
    pub(crate) async fn delete(&self, call: &Call, name: &'static str, path: &str, id: &Uuid) -> Outcome<()> {
        let dialect = Dialect { category: unfinished, ..Dialect::default() };
        let operation = Operation::delete(name, path).segment(id.as_str()).repeatable().dialect(dialect);
        self.0.remove(call, operation).await
    }
}

/// A removal has nothing in it that a user could have written wrong: 400 says that the thing is still being built.
fn unfinished(answer: &Answer) -> Option<Category> {
    (answer.status() == 400).then_some(Category::Conflict)
}
