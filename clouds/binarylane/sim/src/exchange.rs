//! One request from its arrival to its answer, with latency and faults.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cloudberth_core::Tick;
use http::{Method, Response, header, request::Parts};
use serde_json::Value;
use sim_kit::{Body, Decision, Disconnected, Harm, Outcome};
use tokio::{sync::oneshot, time};

use crate::{
    answers::respond,
    faults::Request,
    journal::Entry,
    paging::Query,
    refusal::Refusal,
    route::Route,
    shared::{Shared, State},
    tokens::Access,
    world::{Call, Moment, Reply},
};

type Answer = Result<Response<Body>, Disconnected>;

/// A request that arrived.
#[derive(Debug)]
pub(crate) struct Exchange {
    method: Method,
    path: String,
    query: Option<String>,
    authorization: Option<String>,
    /// Scheme, host and port as the client wrote them.
    base: String,
    who: String,
    body: Bytes,
    route: Option<Route>,
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

    fn operation(&self) -> String {
        self.route.map_or_else(|| "unknown".to_owned(), |route| route.operation(&self.body))
    }

    /// Asking whether a server runs is a POST, and changes nothing.
    fn mutates(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
            && self.operation() != "servers.is_running"
    }

    /// Handles the request in a task of the cloud: a client that goes away loses only the answer.
    pub(crate) async fn run(mut self, shared: Arc<Shared>, answer: oneshot::Sender<Answer>) {
        self.sent = shared.moment().tick;
        let Decision { delay, harm } = self.arrive(&shared);
        let takes = shared.draw_latency();
        wait(delay + self.delay(&shared) + takes / 2).await;
        if let Some(Harm::Stall { millis }) = harm {
            wait(Duration::from_millis(millis)).await;
        }
        let (reply, version) = self.apply(&shared, harm.as_ref());
        wait(takes / 2).await;
        match harm {
            Some(Harm::LostCall | Harm::LostAnswer) => drop(answer),
            Some(Harm::Stall { .. }) => {
                let mut answer = answer;
                // The connection stays open: the client has to give up by itself.
                answer.closed().await;
            }
            // The client may have gone away by now, which changes nothing.
            _ => drop(answer.send(Ok(respond(reply, harm.as_ref(), &version)))),
        }
    }

    /// Decides what goes wrong: what was planned, else what the rate limit and the rules say.
    fn arrive(&mut self, shared: &Shared) -> Decision {
        let mut state = shared.lock();
        self.number = state.journal.take_number();
        state.under_way += 1;
        state.decide_fault(&self.request(), self.sent)
    }

    /// How much later a change of a VPC takes effect.
    fn delay(&self, shared: &Shared) -> Duration {
        let changes_vpc = self.route.is_some_and(Route::changes_vpc);
        if changes_vpc { shared.lock().world.settings.switches.vpc_delay } else { Duration::ZERO }
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

    /// Carries the request out and logs it in the same step. Also returns the version of the API.
    fn apply(&self, shared: &Shared, harm: Option<&Harm>) -> (Result<Reply, Refusal>, String) {
        let at = shared.moment();
        let mut state = shared.lock();
        state.under_way = state.under_way.saturating_sub(1);
        let reply = match harm {
            Some(Harm::Status { code, .. }) => Err(Refusal::empty(*code)),
            Some(Harm::NotFound) => Err(Refusal::not_found()),
            Some(Harm::LostCall) => Err(Refusal::empty(0)),
            _ => self.carry_out(&mut state, harm, at),
        };
        let status = reply.as_ref().map_or_else(|refusal| refusal.status, |reply| reply.status);
        let query = self.query.as_ref().map_or_else(String::new, |query| format!("?{query}"));
        state.journal.push(Entry {
            number: self.number,
            sent: self.sent,
            applied: at.tick,
            who: self.who.clone(),
            operation: self.operation(),
            method: self.method.to_string(),
            path: format!("{}{query}", self.path),
            body: serde_json::from_slice(&self.body).ok(),
            outcome: Outcome::new(harm, status),
            mutation: self.mutates(),
        });
        (reply, state.world.settings.version())
    }

    fn carry_out(&self, state: &mut State, harm: Option<&Harm>, at: Moment) -> Result<Reply, Refusal> {
        let open = self.route.is_some_and(Route::is_open);
        let access = state.tokens.check(self.authorization.as_deref()).or(open.then_some(Access::Own));
        let access = access.ok_or(Refusal::empty(401))?;
        let route = self.route.ok_or(Refusal::empty(404))?;
        let query = Query::parse(self.query.as_deref());
        let call = Call { route, query: &query, body: &self.body, base: &self.base, at };
        let mut reply = state.account(access).handle(call)?;
        if let (Some(harm), Some(body)) = (harm, &mut reply.body) {
            shorten(harm, body);
        }
        if let (Some(editor), Some(body)) = (&mut state.editor, &mut reply.body) {
            editor(&self.request(), body);
        }
        Ok(reply)
    }
}

/// Takes from a list what the client is not to see; the count of all items stays.
fn shorten(harm: &Harm, body: &mut Value) {
    let Some(body) = body.as_object_mut().filter(|body| body.contains_key("meta")) else { return };
    body.values_mut().filter_map(Value::as_array_mut).for_each(|items| harm.shorten(items));
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
