//! The account of the cloud with the tokens for it, as its front sees them.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{Random, Tick};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sim_kit::{Incoming, Moment, Reply, RestCloud};

use super::{
    access::Access,
    control,
    refusal::Refusal,
    route::{Route, Verb},
    settings::SimSettings,
    token::TokenRequest,
    world::{self, World, draw_id},
};

/// One account, and who is let in.
pub struct Account {
    pub(crate) world: World,
    pub(crate) access: Access,
    random: Arc<Random>,
    /// When the present period of the rate began, and how many requests there were in it.
    window: (Tick, u64),
}

/// Without the secrets.
impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("world", &self.world).finish_non_exhaustive()
    }
}

impl Account {
    pub(crate) fn new(settings: SimSettings, random: Arc<Random>, at: Moment) -> Self {
        let access = Access::new(draw_id(&random, "acc"), &random);
        let world = World::new(access.account().to_owned(), settings, Arc::clone(&random), at);
        Self { world, access, random, window: (at.tick, 0) }
    }

    /// Counts a request; the wait until the next period if there were too many in this one.
    fn exceeds_rate(&mut self, now: Tick) -> Option<Duration> {
        let rate = self.world.settings.rate?;
        if now.since(self.window.0) >= rate.period {
            self.window = (now, 0);
        }
        self.window.1 += 1;
        (self.window.1 > rate.requests).then(|| rate.period.saturating_sub(now.since(self.window.0)))
    }

    fn carry_out(&mut self, request: &Incoming, at: Moment) -> Result<world::Reply, Refusal> {
        let authorization = request.header("authorization");
        let route = route(request);
        if route == Ok(Route::Token) {
            let token = TokenRequest::read(authorization, &request.body);
            let body = self.access.grant(&token, &self.world.settings, &self.random, at.tick)?;
            return Ok(world::Reply { status: 200, body });
        }
        if let Some(wait) = self.exceeds_rate(at.tick) {
            let refusal = Refusal::injected(429, false);
            return Err(refusal.with("Retry-After", &wait.as_secs().max(1).to_string()));
        }
        self.access.check(authorization, request.query.as_deref(), self.world.settings.open, at.tick)?;
        self.world.handle(&route?, &request.body, &request.base, at)
    }
}

fn route(request: &Incoming) -> Result<Route, Refusal> {
    Route::parse(&request.method, &request.path)
}

fn is_token(request: &Incoming) -> bool {
    route(request) == Ok(Route::Token)
}

/// The headers that every answer has.
fn usual_headers(request: &Incoming) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let cache = if is_token(request) { "no-store" } else { "no-cache" };
    put(&mut headers, "x-request-id", &format!("req-{:08}", request.number));
    put(&mut headers, "cache-control", cache);
    headers
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}

fn refused(request: &Incoming, refusal: Refusal) -> Reply {
    let mut headers = usual_headers(request);
    for (name, value) in &refusal.headers {
        put(&mut headers, name, value);
    }
    Reply { status: refusal.status, body: Some(refusal.body), headers }
}

/// An object as a form.
fn form(body: &Value) -> String {
    let quote = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let fields = body.as_object().into_iter().flatten().map(|(key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={}", quote(key), quote(&text))
    });
    fields.collect::<Vec<_>>().join("&")
}

impl RestCloud for Account {
    fn operation(&self, request: &Incoming) -> String {
        route(request).map_or_else(|_| "unknown".to_owned(), |route| route.to_string())
    }

    /// Asking for a token changes nothing that anybody sees.
    fn mutates(&self, request: &Incoming) -> bool {
        !is_token(request) && !matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    fn latency(&self) -> (Duration, f64) {
        (self.world.settings.latency, self.world.settings.jitter)
    }

    fn handle(&mut self, request: &Incoming, at: Moment) -> Reply {
        match self.carry_out(request, at) {
            Ok(world::Reply { status, body }) => {
                Reply { status, body: Some(body), headers: usual_headers(request) }
            }
            Err(refusal) => refused(request, refusal),
        }
    }

    fn refuse(&self, request: &Incoming, status: u16) -> Reply {
        refused(request, Refusal::injected(status, is_token(request)))
    }

    fn items<'a>(&self, request: &Incoming, body: &'a mut Value) -> Option<&'a mut Vec<Value>> {
        if matches!(route(request), Ok(Route::Api(_, Verb::List))) { body.as_array_mut() } else { None }
    }

    /// Of a request for a token the fields, without the secrets.
    fn journalled(&self, request: &Incoming) -> Option<Value> {
        if is_token(request) {
            return Some(TokenRequest::read(None, &request.body).journal());
        }
        serde_json::from_slice(&request.body).ok()
    }

    fn write(&self, request: &Incoming, body: &Value) -> (&'static str, String) {
        if is_token(request) && self.world.settings.tokens.as_forms {
            return ("application/x-www-form-urlencoded", form(body));
        }
        ("application/json", body.to_string())
    }

    fn control(&mut self, order: &str, body: &[u8], at: Moment) -> Option<Result<Value, String>> {
        control::carry_out(self, order, body, at)
    }

    fn state(&mut self, base: &str, at: Moment) -> Value {
        control::state(&mut self.world, base, at)
    }

    /// Credentials, tokens and settings stay.
    fn reset(&mut self, at: Moment) {
        let settings = self.world.settings.clone();
        self.world = World::new(self.access.account().to_owned(), settings, Arc::clone(&self.random), at);
    }
}
