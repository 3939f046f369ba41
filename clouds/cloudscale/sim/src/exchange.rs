//! One request from its arrival to its answer, with latency and faults.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cloudberth_core::Tick;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use serde_json::Value;
use tokio::{sync::oneshot, time};

use super::{
    faults::Request,
    journal::Entry,
    refusal::Refusal,
    route::{Route, Verb},
    shared::Shared,
    world::Reply,
};
use sim_kit::{Body, Decision, Disconnected, Harm, Outcome};

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

    fn mutates(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
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
        let before = match harm {
            Some(Harm::LostCall | Harm::Status { .. }) => takes / 2,
            _ => self.queue(&shared, takes) + takes / 2,
        };
        wait(before).await;
        let reply = self.apply(&shared, harm.as_ref());
        wait(takes / 2).await;
        match harm {
            Some(Harm::LostCall | Harm::LostAnswer) => drop(answer),
            Some(Harm::Stall { .. }) => {
                let mut answer = answer;
                // The connection stays open: the client has to give up by itself.
                answer.closed().await;
            }
            // The client may have gone away by now, which changes nothing.
            _ => drop(answer.send(Ok(respond(reply, harm.as_ref())))),
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

    /// How long it waits for earlier changes to the same balancer.
    fn queue(&self, shared: &Shared, takes: Duration) -> Duration {
        let now = shared.moment().tick;
        let mut state = shared.lock();
        let (Ok(route), false) = (&self.route, takes.is_zero()) else { return Duration::ZERO };
        let Ok(access) = state.tokens.check(self.authorization.as_deref(), self.mutates()) else {
            return Duration::ZERO;
        };
        let world = state.project(access);
        match world.balancer_changed_by(route, &self.body) {
            None => Duration::ZERO,
            Some(balancer) => world.queue(&balancer, now, takes).since(now),
        }
    }

    /// Carries the request out and logs it in the same step.
    fn apply(&self, shared: &Shared, harm: Option<&Harm>) -> Result<Reply, Refusal> {
        let at = shared.moment();
        let mut state = shared.lock();
        state.under_way = state.under_way.saturating_sub(1);
        let reply = match harm {
            Some(Harm::Status { code, .. }) => {
                Err(Refusal::new(*code, "The cloud was told to fail this request."))
            }
            Some(Harm::NotFound) => Err(Refusal::not_found()),
            Some(Harm::LostCall) => Err(Refusal::new(0, "")),
            _ => state.tokens.check(self.authorization.as_deref(), self.mutates()).and_then(|access| {
                let route = self.route.as_ref().map_err(Clone::clone)?;
                let query = self.query.as_deref();
                let mut reply = state.project(access).handle(route, query, &self.body, &self.base, at)?;
                if let (Verb::List, Some(harm), Some(Value::Array(items))) =
                    (&route.verb, harm, &mut reply.body)
                {
                    harm.shorten(items);
                }
                if let (Some(editor), Some(body)) = (&mut state.editor, &mut reply.body) {
                    editor(&self.request(), body);
                }
                Ok(reply)
            }),
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
        reply
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

fn respond(reply: Result<Reply, Refusal>, harm: Option<&Harm>) -> Response<Body> {
    let Reply { status, body } =
        reply.unwrap_or_else(|refusal| Reply { status: refusal.status, body: Some(refusal.body) });
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut headers = HeaderMap::new();
    let content = match body {
        _ if matches!(harm, Some(Harm::Status { code: 502, .. })) => {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
            "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"
                .into()
        }
        Some(body) => {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            body.to_string()
        }
        None => String::new(),
    };
    if let Some(Harm::Status { retry_after: Some(seconds), .. }) = harm {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
    }
    let whole = Body::whole(Bytes::from(content));
    let mut response = Response::new(if harm == Some(&Harm::Truncated) { whole.cut() } else { whole });
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
