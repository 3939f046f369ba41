//! The client of the API: one function per kind of request, each with a name for the metrics.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{Call, Category, Clock, Error, Listing, Lookup, Random, Result};
use cloudberth_http::{
    Answer, Array, Authenticator, Budget, Client, Dialect, Item, OAuth, OAuthSettings, Observer, Operation,
    Policy, Resolver, Transport,
};
use serde::de::DeserializeOwned;

use crate::{
    servers::Listed,
    settings::Settings,
    wire::{Account, LoadBalancer, Named},
};

/// The API documents no limit. These keep a burst of Services from looking like an attack, and a 429 slows them down
/// further.
const GAP: Duration = Duration::from_millis(5);
const BURST: u32 = 100;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(20);

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
    /// The addresses of names.
    pub resolver: Arc<dyn Resolver>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// The API of one account. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) client: Client,
    tokens: OAuth,
}

impl Api {
    pub(crate) fn new(settings: &Settings, around: Surroundings) -> Self {
        let Surroundings { transport, clock, random, observer, resolver: _ } = around;
        let policy = Policy { read_attempt: PATIENCE, write_attempt: PATIENCE, ..Policy::default() };
        let budget = Budget::new(GAP, BURST, Arc::clone(&clock));
        let build = |base| {
            Client::builder(base, transport.clone(), Arc::clone(&clock), Arc::clone(&random))
                .budget(budget.clone())
                .policy(policy)
                .observer(Arc::clone(&observer))
        };
        let tokens = OAuth::new(
            build(settings.tokens.clone()),
            OAuthSettings {
                path: "token/",
                id: settings.client.clone(),
                secret: settings.secret.clone(),
                grant: settings.grant.clone(),
                scope: "infrastructure orbit",
                credentials: "BRIGHTBOX_CLIENT, BRIGHTBOX_CLIENT_SECRET and the user's name and password, if there are any",
            },
        );
        let client = build(settings.api.clone())
            .authenticator(Arc::new(tokens.clone()))
            .dialect(Dialect { category, ..Dialect::default() })
            .build();
        Self { client, tokens }
    }

    /// Fetches a token, unless there is one.
    pub(crate) async fn sign_in(&self, call: &Call) -> Result<()> {
        self.tokens.authorization(call).await.map(|_| ())
    }

    /// The accounts that the credential may use.
    pub(crate) async fn accounts(&self, call: &Call) -> Result<Vec<Account>> {
        self.list(call, "list accounts", "accounts", |one: &Account| one.id.clone()).await?.all()
    }

    pub(crate) async fn servers(&self, call: &Call) -> Result<Listing<Listed>> {
        let id = |server: &Listed| server.key(|one| &one.id, |one| &one.id).clone();
        self.list(call, "list servers", "servers", id).await
    }

    pub(crate) async fn server(&self, call: &Call, id: &str) -> Lookup<Listed> {
        Box::pin(self.client.lookup(call, Operation::get("get server", "servers").segment(id))).await
    }

    /// Whether it is there, and whole where it can be read.
    pub(crate) async fn shows(&self, call: &Call, id: &str) -> Lookup<Item<LoadBalancer, Named>> {
        let operation = Operation::get("get load balancer", "load_balancers").segment(id);
        Box::pin(self.client.lookup(call, operation)).await
    }

    /// The detail view, which has the certificate's domains.
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
        // Boxed, like every exchange: the state of one is large, and callers hold several.
        Box::pin(self.client.list(call, Operation::get(name, path), &Array, id)).await
    }
}

/// A 403 that speaks of a limit is not about the credential, and another one would not help. What users write is checked
/// before anything is sent, so what a 422 finds wrong is mostly what has changed since it was listed, such as a server that
/// is gone: nobody has to edit the Service for that.
fn category(answer: &Answer) -> Option<Category> {
    match answer.status().as_u16() {
        403 if String::from_utf8_lossy(answer.body()).contains("limit_reached") => Some(Category::Permanent),
        422 => Some(Category::Conflict),
        _ => None,
    }
}
