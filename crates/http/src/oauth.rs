//! Access tokens by `OAuth2`: fetched when one is needed, shared while it lasts, renewed when it is refused.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{Call, Category, Error, Result, Secret, Tick, call::ReadOnly, provider::Boxed};
use tokio::sync::watch;
use tracing::debug;

use crate::{
    answer::Answer,
    attempt::RequestContext,
    auth::{Authenticator, Authorization},
    classify::Dialect,
    client::{Builder, Client},
    grant::Granted,
    operation::{Operation, Read},
    token::TokenSource,
};

/// A token is not used in its last seconds: a request that carries it may take that long to arrive.
const MARGIN: Duration = Duration::from_secs(10);

/// How long fetching a token may take, retries included.
const FETCH_LIMIT: Duration = Duration::from_secs(60);

/// How access tokens are asked for.
#[derive(Clone, Debug)]
pub struct OAuthSettings {
    /// The token endpoint's path below the base of the token client.
    pub path: &'static str,
    /// The client's id. If it is replaced by another, that is another account (law 1).
    pub id: TokenSource,
    /// The client's secret.
    pub secret: TokenSource,
    /// What tokens are asked for.
    pub grant: Grant,
    /// What tokens are to be good for, separated by spaces.
    pub scope: &'static str,
    /// Where the credentials come from, for the error that says that they were refused: `X_CLIENT and X_CLIENT_SECRET`.
    pub credentials: &'static str,
}

/// What an access token is asked for.
#[derive(Clone, Debug)]
pub enum Grant {
    /// The credentials of the client itself.
    ClientCredentials,
    /// A user's password. Later tokens are asked for with the refresh token, if the endpoint gave one, and with the
    /// password again if that is refused.
    Password {
        /// The user's name.
        user: String,
        /// The user's password.
        password: Secret,
    },
}

/// Access tokens from a token endpoint, for the [`Client`] of an API. Clones share them.
///
/// Everybody who needs a token while one is being fetched gets the result of that fetch, an error included. A fetch
/// goes on when whoever needed it has given up, because its answer may be the only one that holds the refresh token.
#[derive(Clone)]
pub struct OAuth(Arc<Inner>);

struct Inner {
    client: Client,
    settings: OAuthSettings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    fetch: Option<Fetch>,
}

/// Has the result of a fetch as soon as there is one.
type Fetch = watch::Receiver<Option<Result<Authorization>>>;

#[derive(Clone)]
struct Token {
    authorization: Authorization,
    /// When it must not be used any more; `None` if it does not expire.
    ends: Option<Tick>,
    refresh: Option<Secret>,
}

impl Token {
    fn serves(&self, account: &str, now: Tick) -> bool {
        self.is_of(account) && self.ends.is_none_or(|ends| now < ends)
    }

    fn is_of(&self, account: &str) -> bool {
        self.authorization.account() == Some(account)
    }
}

impl OAuth {
    /// Tokens from the endpoint that `client` is built for. Its authenticator and dialect are set here.
    pub fn new(client: Builder, settings: OAuthSettings) -> Self {
        let header = ClientHeader { id: settings.id.clone(), secret: settings.secret.clone() };
        let client = client.authenticator(Arc::new(header)).dialect(DIALECT).build();
        Self(Arc::new(Inner { client, settings, state: Mutex::default() }))
    }

    /// The token to use, or the fetch that will bring one.
    fn token_or_fetch(&self) -> Result<Authorization, Fetch> {
        let account = self.0.account(self.0.settings.id.current().expose());
        let now = self.0.client.0.clock.now();
        let mut state = self.0.state();
        if let Some(token) = state.token.as_ref().filter(|token| token.serves(&account, now)) {
            return Ok(token.authorization.clone());
        }
        // One that is closed without a result was lost to a bug, which must not stop the cloud for good (law 11).
        if let Some(fetch) = state.fetch.as_ref().filter(|fetch| fetch.has_changed().is_ok()) {
            return Err(fetch.clone());
        }
        let refresh =
            state.token.as_ref().filter(|token| token.is_of(&account)).and_then(|t| t.refresh.clone());
        let (done, fetch) = watch::channel(None);
        state.fetch = Some(fetch.clone());
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let token = inner.fetch(refresh).await;
            let result = token.as_ref().map(|token| token.authorization.clone()).map_err(Clone::clone);
            {
                let mut state = inner.state();
                state.fetch = None;
                if let Ok(token) = token {
                    state.token = Some(token);
                }
            }
            done.send_replace(Some(result));
        });
        Err(fetch)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose token the client with this id gets. All tokens of one account see the same things, so a renewed one is the
    /// same credential as far as law 1 goes.
    fn account(&self, id: &str) -> String {
        match &self.settings.grant {
            Grant::ClientCredentials => id.to_owned(),
            Grant::Password { user, .. } => format!("{id} {user}"),
        }
    }

    /// A refresh token that is refused means that the session was ended: the user signs in again, once.
    async fn fetch(&self, refresh: Option<Secret>) -> Result<Token> {
        let session = refresh.is_some() && matches!(self.settings.grant, Grant::Password { .. });
        let ended = refresh.clone();
        match self.ask_once(refresh, None).await {
            Err(why) if session && why.category() == Category::Unauthorised => {
                self.ask_once(None, ended.as_ref()).await
            }
            result => result,
        }
    }

    /// `ended` was refused just before; the endpoint may still quote it.
    async fn ask_once(&self, refresh: Option<Secret>, ended: Option<&Secret>) -> Result<Token> {
        let asked = self.client.0.clock.now();
        let call = Call::new(asked + FETCH_LIMIT, Arc::new(ReadOnly));
        let (kind, ask) = self.ask(refresh.as_ref());
        let ask = ended.into_iter().fold(ask, Operation::hide);
        let success = match self.client.exchange(&call, &ask.plan).await {
            Ok(success) => success,
            Err(failure) => return Err(self.explain(failure.error)),
        };
        let granted = Granted::read(&success.answer).map_err(|error| success.context.error(&error))?;
        let expires_in = granted.expires_in;
        debug!(grant = kind, expires_in_s = expires_in.map(|time| time.as_secs()), "access token fetched");
        Ok(self.token(granted, asked, refresh, &success.context))
    }

    fn token(
        &self,
        granted: Granted,
        asked: Tick,
        before: Option<Secret>,
        context: &RequestContext,
    ) -> Token {
        let account = self.account(context.account().unwrap_or_default());
        Token {
            authorization: granted.authorization.of(&account),
            ends: granted.expires_in.map(|time| asked + time.saturating_sub(MARGIN)),
            // An endpoint that sends no new refresh token means that the old one stays good.
            refresh: granted.refresh_token.or(before),
        }
    }

    /// The token request, and the kind of its grant.
    fn ask(&self, refresh: Option<&Secret>) -> (&'static str, Operation<Read>) {
        let OAuthSettings { path, scope, grant, .. } = &self.settings;
        let ask = Operation::question("get access token", path).secret_answer().harmless();
        match (grant, refresh) {
            (Grant::ClientCredentials, _) => {
                let kind = "client_credentials";
                (kind, ask.form(&[("grant_type", kind), ("scope", scope)]))
            }
            (Grant::Password { .. }, Some(token)) => {
                let kind = "refresh_token";
                (kind, ask.form(&[("grant_type", kind), ("refresh_token", token.expose())]).hide(token))
            }
            (Grant::Password { user, password }, None) => {
                let kind = "password";
                let form = [
                    ("grant_type", kind),
                    ("username", user),
                    ("password", password.expose()),
                    ("scope", scope),
                ];
                (kind, ask.form(&form).hide(password))
            }
        }
    }

    /// A refusal says first what to do about it, so that a long answer of the server does not cut that off.
    fn explain(&self, error: Error) -> Error {
        let credentials = self.settings.credentials;
        match error.category() {
            Category::Unauthorised => {
                error.context(format!("the token endpoint refused {credentials}; check them"))
            }
            _ => error,
        }
    }
}

impl Authenticator for OAuth {
    fn authorization<'a>(&'a self, _call: &'a Call) -> Boxed<'a, Result<Authorization>> {
        Box::pin(async move {
            let mut fetch = match self.token_or_fetch() {
                Ok(authorization) => return Ok(authorization),
                Err(fetch) => fetch,
            };
            let result = fetch.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
            result.unwrap_or_else(|| Err(Error::temporary("the request for an access token was lost")))
        })
    }

    fn is_in_force<'a>(&'a self, used: &'a Authorization) -> Boxed<'a, bool> {
        let account = self.0.account(self.0.settings.id.newest().expose());
        Box::pin(std::future::ready(used.account() == Some(account.as_str())))
    }

    fn refused<'a>(&'a self, used: &'a Authorization) -> Boxed<'a, bool> {
        let mut state = self.0.state();
        // Of all who were refused with one token, only the first drops it; the others would drop its successor.
        if let Some(token) = state.token.as_mut().filter(|token| token.authorization == *used) {
            token.ends = Some(Tick::ZERO);
        }
        Box::pin(std::future::ready(true))
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OAuth").field(&self.0.client).field(&self.0.settings.path).finish()
    }
}

/// The client's own credential, which only the token endpoint gets.
struct ClientHeader {
    id: TokenSource,
    secret: TokenSource,
}

impl ClientHeader {
    fn newest(&self) -> Result<Authorization> {
        Authorization::oauth_client(self.id.newest().expose(), &self.secret.newest())
    }
}

impl Authenticator for ClientHeader {
    fn authorization<'a>(&'a self, _call: &'a Call) -> Boxed<'a, Result<Authorization>> {
        let header = Authorization::oauth_client(self.id.current().expose(), &self.secret.current());
        Box::pin(std::future::ready(header))
    }

    fn is_in_force<'a>(&'a self, used: &'a Authorization) -> Boxed<'a, bool> {
        Box::pin(std::future::ready(self.newest().is_ok_and(|now| now.has_account_of(used))))
    }

    fn refused<'a>(&'a self, used: &'a Authorization) -> Boxed<'a, bool> {
        Box::pin(std::future::ready(self.newest().is_ok_and(|now| now != *used)))
    }
}

/// What a token endpoint says is about the credentials and the endpoint, never about the object of the call that needs
/// the token: nothing is absent or in conflict for it, and no user's input is wrong.
const DIALECT: Dialect = Dialect { absent: |_| false, category, undone: |_| false };

fn category(answer: &Answer) -> Option<Category> {
    match answer.status().as_u16() {
        400 | 422 if answer.is_json_object() => Some(Category::Unauthorised),
        400 | 404 | 409 | 410 | 422 => Some(Category::Permanent),
        _ => None,
    }
}
