//! Who is let in: API clients, applications and users, and the tokens that they were given.

use std::{collections::BTreeMap, fmt, time::Duration};

use cloudberth_core::{Random, Tick};
use serde_json::{Value, json};

use super::{refusal::Refusal, settings::SimSettings, token::TokenRequest};

/// The id and the secret of an API client.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields say it")]
pub struct Credentials {
    pub client: String,
    pub secret: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("client", &self.client).finish_non_exhaustive()
    }
}

struct Client {
    secret: String,
    /// It acts for users, and not for itself.
    application: bool,
}

struct User {
    password: String,
    /// A second factor is asked for, which nobody here has.
    second_factor: bool,
}

/// Whom a token was given to.
#[derive(Clone, PartialEq, Eq)]
enum Holder {
    Client,
    User(String),
}

struct Token {
    holder: Holder,
    ends: Tick,
}

/// The clients and users, and their tokens.
pub(crate) struct Access {
    account: String,
    own: Credentials,
    clients: BTreeMap<String, Client>,
    users: BTreeMap<String, User>,
    tokens: BTreeMap<String, Token>,
    refresh_tokens: BTreeMap<String, Token>,
}

impl Access {
    /// Lets one API client of this account in.
    pub(crate) fn new(account: String, random: &Random) -> Self {
        let own = Credentials { client: "cli-sim00".to_owned(), secret: draw(random) };
        let clients =
            BTreeMap::from([(own.client.clone(), Client { secret: own.secret.clone(), application: false })]);
        let (users, tokens, refresh_tokens) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { account, own, clients, users, tokens, refresh_tokens }
    }

    pub(crate) fn account(&self) -> &str {
        &self.account
    }

    /// The API client that is let in.
    pub(crate) fn own(&self) -> &Credentials {
        &self.own
    }

    /// Replaces the API client that is let in. Tokens stay good.
    pub(crate) fn set_own(&mut self, own: Credentials) {
        self.clients.remove(&self.own.client);
        self.clients.insert(own.client.clone(), Client { secret: own.secret.clone(), application: false });
        self.own = own;
    }

    pub(crate) fn add_application(&mut self, id: &str, secret: &str) {
        self.clients.insert(id.to_owned(), Client { secret: secret.to_owned(), application: true });
    }

    pub(crate) fn add_user(&mut self, name: &str, password: &str, second_factor: bool) {
        self.users.insert(name.to_owned(), User { password: password.to_owned(), second_factor });
    }

    /// All access tokens have expired.
    pub(crate) fn expire(&mut self) {
        self.tokens.values_mut().for_each(|token| token.ends = Tick::ZERO);
    }

    /// All access tokens are forgotten.
    pub(crate) fn revoke(&mut self) {
        self.tokens.clear();
    }

    /// All refresh tokens are forgotten.
    pub(crate) fn revoke_refresh(&mut self) {
        self.refresh_tokens.clear();
    }

    /// Whether the bearer may call the API.
    pub(crate) fn check(
        &self,
        authorization: Option<&str>,
        query: Option<&str>,
        open: bool,
        now: Tick,
    ) -> Result<(), Refusal> {
        let header = authorization.unwrap_or_default();
        let token = header.strip_prefix("Bearer ").or_else(|| header.strip_prefix("OAuth "));
        let token = token.filter(|token| !token.is_empty());
        let known = token.and_then(|token| self.tokens.get(token));
        let holder = match known {
            None if open && token.is_some() => &Holder::Client,
            None => return Err(Refusal::unauthorised("invalid_token")),
            Some(token) if token.ends <= now => return Err(Refusal::unauthorised("expired_token")),
            Some(token) => &token.holder,
        };
        let account = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("account_id="));
        match (holder, account) {
            (_, Some(account)) if account != self.account => {
                Err(Refusal::forbidden("This account is not yours"))
            }
            (Holder::User(_), None) => Err(Refusal::forbidden("A user has to say which account is meant")),
            _ => Ok(()),
        }
    }

    /// Gives a token, or says why not.
    pub(crate) fn grant(
        &mut self,
        request: &TokenRequest,
        settings: &SimSettings,
        random: &Random,
        now: Tick,
    ) -> Result<Value, Refusal> {
        let application = self.authenticate(request, settings.open)?;
        let known = |word: &str| matches!(word, "infrastructure" | "orbit");
        if !request.field("scope").split_whitespace().all(known) {
            return Err(Refusal::token(400, "invalid_scope", "The scope is unknown"));
        }
        let not_allowed = || Refusal::token(400, "unauthorized_client", "This client may not use this grant");
        match request.field("grant_type") {
            "client_credentials" if application => Err(not_allowed()),
            "password" | "refresh_token" if !application => Err(not_allowed()),
            "client_credentials" => Ok(self.issue(Holder::Client, None, settings, random, now)),
            "password" => {
                let holder = Holder::User(self.log_in(request)?);
                let refresh = self.new_refresh(holder.clone(), settings, random, now);
                Ok(self.issue(holder, Some(refresh), settings, random, now))
            }
            "refresh_token" => self.renew(request.field("refresh_token"), settings, random, now),
            "" => Err(Refusal::token(400, "invalid_request", "The grant type is missing")),
            _ => Err(Refusal::token(400, "unsupported_grant_type", "The grant type is unknown")),
        }
    }

    /// Whether the client is an application.
    fn authenticate(&self, request: &TokenRequest, open: bool) -> Result<bool, Refusal> {
        let unknown = || Refusal::token(400, "invalid_client", "The client is unknown");
        let (id, secret) = request.client.as_ref().ok_or_else(unknown)?;
        match self.clients.get(id) {
            Some(client) if client.secret == *secret && !secret.is_empty() => Ok(client.application),
            _ if open && !secret.is_empty() => Ok(id.starts_with("app-")),
            Some(_) => Err(Refusal::token(401, "invalid_client", "The secret is wrong")),
            None => Err(unknown()),
        }
    }

    fn log_in(&self, request: &TokenRequest) -> Result<String, Refusal> {
        let (name, password) = (request.field("username"), request.field("password"));
        match self.users.get(name) {
            Some(user) if user.password == password && !password.is_empty() => {
                if user.second_factor {
                    let refusal = Refusal::token(401, "invalid_client", "A second factor is needed");
                    return Err(refusal.with("X-Brightbox-OTP", "required"));
                }
                Ok(name.to_owned())
            }
            _ => Err(Refusal::token(401, "invalid_client", "The user name or the password is wrong")),
        }
    }

    fn renew(
        &mut self,
        refresh: &str,
        settings: &SimSettings,
        random: &Random,
        now: Tick,
    ) -> Result<Value, Refusal> {
        let known = self.refresh_tokens.get(refresh).filter(|token| now < token.ends);
        let refused = || Refusal::token(400, "invalid_grant", "The refresh token expired or was revoked");
        let holder = known.ok_or_else(refused)?.holder.clone();
        let refresh = if settings.tokens.rotate_refresh {
            self.refresh_tokens.remove(refresh);
            self.new_refresh(holder.clone(), settings, random, now)
        } else {
            refresh.to_owned()
        };
        Ok(self.issue(holder, Some(refresh), settings, random, now))
    }

    fn new_refresh(&mut self, holder: Holder, settings: &SimSettings, random: &Random, now: Tick) -> String {
        let refresh = draw(random);
        self.refresh_tokens
            .insert(refresh.clone(), Token { holder, ends: now + settings.tokens.refresh_life });
        refresh
    }

    fn issue(
        &mut self,
        holder: Holder,
        refresh: Option<String>,
        settings: &SimSettings,
        random: &Random,
        now: Tick,
    ) -> Value {
        let token = draw(random);
        // Long forgotten ones would only fill the memory; the others still answer that they have expired.
        let day = Duration::from_secs(24 * 3_600);
        self.tokens.retain(|_, token| now < token.ends + day);
        self.tokens.insert(token.clone(), Token { holder, ends: now + settings.tokens.life });
        let mut answer = json!({
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": settings.tokens.life.as_secs(),
            "scope": "infrastructure orbit",
        });
        if let (Some(refresh), Some(fields)) = (refresh, answer.as_object_mut()) {
            fields.insert("refresh_token".to_owned(), Value::from(refresh));
        }
        answer
    }
}

fn draw(random: &Random) -> String {
    random.uuid().replace('-', "")
}
