//! One request from its arrival to its answer, with latency and faults.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cloudberth_core::Tick;
use http::{Method, Response, header, request::Parts};
use serde_json::Value;
use tokio::{sync::oneshot, time};

use super::{
    faults::Request,
    journal::Entry,
    refusal::Refusal,
    respond::{Form, respond},
    route::{Route, Verb},
    shared::{Shared, State},
    token::TokenRequest,
    world::{Moment, Reply},
};
use sim_kit::{Body, Decision, Disconnected, Harm, Outcome};

type Answer = Result<Response<Body>, Disconnected>;

/// A request that arrived.
pub(crate) struct Exchange {
    method: Method,
    path: String,
    query: Option<String>,
    authorization: Option<String>,
    /// Scheme, host and port as the client wrote them.
    base: String,
    who: String,
    body: Bytes,
    route: Result<Route, Refusal>,
    number: u64,
    sent: Tick,
}

impl Exchange {
    pub(crate) fn new(parts: &Parts, body: Bytes, who: Option<String>) -> Self {
        let text = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
        let path = parts.uri.path().to_owned();
        Self {
            route: Route::parse(&parts.method, &path),
            method: parts.method.clone(),
            path,
            query: parts.uri.query().map(str::to_owned),
            authorization: text("authorization"),
            base: base(parts),
            who: who.or_else(|| text("x-sim-client")).or_else(|| text("user-agent")).unwrap_or_default(),
            body,
            number: 0,
            sent: Tick::ZERO,
        }
    }

    /// Asking for a token changes nothing that anybody sees.
    fn mutates(&self) -> bool {
        !self.is_token() && !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    fn is_token(&self) -> bool {
        self.route == Ok(Route::Token)
    }

    fn operation(&self) -> String {
        self.route.as_ref().map_or_else(|_| "unknown".to_owned(), ToString::to_string)
    }

    /// Handles the request in a task of the cloud: a client that goes away loses only the answer.
    pub(crate) async fn run(mut self, shared: Arc<Shared>, answer: oneshot::Sender<Answer>) {
        self.sent = shared.moment().tick;
        let Decision { delay, harm } = self.arrive(&shared);
        let takes = shared.draw_latency();
        wait(delay).await;
        if let Some(Harm::Stall { millis }) = harm {
            wait(Duration::from_millis(millis)).await;
        }
        wait(takes / 2).await;
        let (reply, form) = self.apply(&shared, harm.as_ref());
        wait(takes / 2).await;
        match harm {
            Some(Harm::LostCall | Harm::LostAnswer) => drop(answer),
            Some(Harm::Stall { .. }) => {
                let mut answer = answer;
                // The connection stays open: the client has to give up by itself.
                answer.closed().await;
            }
            // The client may have gone away by now, which changes nothing.
            _ => drop(answer.send(Ok(respond(reply, harm.as_ref(), &form)))),
        }
    }

    fn arrive(&mut self, shared: &Shared) -> Decision {
        let mut state = shared.lock();
        self.number = state.journal.take_number();
        state.under_way += 1;
        state.decide_fault(&self.request())
    }

    fn request(&self) -> Request {
        Request {
            number: self.number,
            who: self.who.clone(),
            operation: self.operation(),
            method: self.method.to_string(),
            path: self.path.clone(),
            mutation: self.mutates(),
        }
    }

    /// Carries the request out and logs it in the same step.
    fn apply(&self, shared: &Shared, harm: Option<&Harm>) -> (Result<Reply, Refusal>, Form) {
        let at = shared.moment();
        let mut state = shared.lock();
        let state = &mut *state;
        state.under_way = state.under_way.saturating_sub(1);
        let reply = match harm {
            Some(Harm::Status { code, .. }) => Err(Refusal::injected(*code, self.is_token())),
            Some(Harm::NotFound) => Err(Refusal::not_found(&self.path)),
            Some(Harm::Conflict) => Err(Refusal::conflict("Somebody else was first")),
            Some(Harm::LostCall) => Err(Refusal::injected(0, false)),
            _ => self.carry_out(shared, state, harm, at),
        };
        let form = Form {
            number: self.number,
            token: self.is_token(),
            encoded: state.world.settings.tokens.as_forms,
        };
        self.log(state, harm, at, &reply);
        (reply, form)
    }

    fn carry_out(
        &self,
        shared: &Shared,
        state: &mut State,
        harm: Option<&Harm>,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        let authorization = self.authorization.as_deref();
        let mut reply = if let Ok(Route::Token) = &self.route {
            let request = TokenRequest::read(authorization, &self.body);
            let body = state.access.grant(&request, &state.world.settings, &shared.random, at.tick)?;
            Reply { status: 200, body }
        } else {
            if let Some(wait) = state.exceeds_rate(at.tick) {
                let refusal = Refusal::injected(429, false);
                return Err(refusal.with("Retry-After", &wait.as_secs().max(1).to_string()));
            }
            let open = state.world.settings.open;
            state.access.check(authorization, self.query.as_deref(), open, at.tick)?;
            let route = self.route.as_ref().map_err(Clone::clone)?;
            let mut reply = state.world.handle(route, &self.body, &self.base, at)?;
            if let (Route::Api(_, Verb::List), Some(harm), Value::Array(items)) =
                (route, harm, &mut reply.body)
            {
                harm.shorten(items);
            }
            reply
        };
        if let Some(editor) = &mut state.editor {
            editor(&self.request(), &mut reply.body);
        }
        Ok(reply)
    }

    fn log(&self, state: &mut State, harm: Option<&Harm>, at: Moment, reply: &Result<Reply, Refusal>) {
        let status = reply.as_ref().map_or_else(|refusal| refusal.status, |reply| reply.status);
        let query = self.query.as_ref().map_or_else(String::new, |query| format!("?{query}"));
        let body = if self.is_token() {
            Some(TokenRequest::read(None, &self.body).journal())
        } else {
            serde_json::from_slice(&self.body).ok()
        };
        state.journal.push(Entry {
            number: self.number,
            sent: self.sent,
            applied: at.tick,
            who: self.who.clone(),
            operation: self.operation(),
            method: self.method.to_string(),
            path: format!("{}{query}", self.path),
            body,
            outcome: Outcome::new(harm, status),
            mutation: self.mutates(),
        });
    }
}

async fn wait(how_long: Duration) {
    if !how_long.is_zero() {
        time::sleep(how_long).await;
    }
}

/// Scheme, host and port as the client wrote them.
pub(crate) fn base(parts: &Parts) -> String {
    let scheme = parts.uri.scheme_str().unwrap_or("http");
    let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = parts.uri.authority().map(http::uri::Authority::as_str).or(named);
    format!("{scheme}://{}", host.unwrap_or("localhost"))
}
