//! A scripted cloud in memory, for the tests of this crate and of providers.
//!
//! Replies are queued per request line and given in order; every request is recorded with the virtual time of its
//! arrival. A request that nobody scripted is answered with 418, so that a test notices.

#![allow(missing_docs, reason = "the names say it, and only tests read them")]

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep, sleep};

use crate::transport::{AnswerBody, RequestBody, Transport, TransportError};

#[derive(Clone, Debug)]
pub struct Reply {
    delivery: Delivery,
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
    delay: Duration,
    body_delay: Duration,
    whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    Answered,
    Refused,
    Dropped,
}

impl Reply {
    /// This status, with this text as the body.
    pub fn text(status: u16, body: &str) -> Self {
        Self {
            delivery: Delivery::Answered,
            status,
            headers: Vec::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            delay: Duration::ZERO,
            body_delay: Duration::ZERO,
            whole: true,
        }
    }

    /// This status, with a JSON body.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::text(status, &body.to_string()).header("content-type", "application/json")
    }

    /// This status, with nothing else.
    pub fn empty(status: u16) -> Self {
        Self::text(status, "")
    }

    /// No connection: the request is not recorded as received.
    pub fn refused() -> Self {
        Self { delivery: Delivery::Refused, ..Self::empty(0) }
    }

    /// The request arrives, then the connection is lost without an answer.
    pub fn dropped() -> Self {
        Self { delivery: Delivery::Dropped, ..Self::empty(0) }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The answer's head, or the loss of the connection, comes after this time.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The second half of the body comes after this time.
    #[must_use]
    pub fn body_after(mut self, delay: Duration) -> Self {
        self.body_delay = delay;
        self
    }

    /// The connection is lost in the middle of the body.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.whole = false;
        self
    }
}

/// One request as the scripted cloud received it.
#[derive(Clone, Debug)]
pub struct Received {
    /// When, counted from the making of the cloud.
    pub at: Duration,
    /// Method, path and query: `GET /v1/servers?page=2`.
    pub line: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Received {
    /// A header's value as text; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }
}

/// The scripted cloud; clones share it.
#[derive(Clone, Debug)]
pub struct ScriptedCloud(Arc<Mutex<Script>>);

#[derive(Debug)]
struct Script {
    started: Instant,
    queued: BTreeMap<String, VecDeque<Reply>>,
    standing: BTreeMap<String, Reply>,
    received: Vec<Received>,
    refused: usize,
}

impl Default for ScriptedCloud {
    fn default() -> Self {
        Self::new()
    }
}

impl ScriptedCloud {
    /// A cloud with nothing scripted.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Script {
            started: Instant::now(),
            queued: BTreeMap::new(),
            standing: BTreeMap::new(),
            received: Vec::new(),
            refused: 0,
        })))
    }

    /// Answers the next requests with this line, with or without its query, by these replies, one each.
    pub fn on(&self, line: &str, replies: impl IntoIterator<Item = Reply>) -> &Self {
        self.script().queued.entry(line.to_owned()).or_default().extend(replies);
        self
    }

    /// Answers every request with this line by the same reply, when none is queued.
    pub fn always(&self, line: &str, reply: Reply) -> &Self {
        self.script().standing.insert(line.to_owned(), reply);
        self
    }

    /// What was received, in order.
    pub fn received(&self) -> Vec<Received> {
        self.script().received.clone()
    }

    /// The lines of what was received, in order.
    pub fn lines(&self) -> Vec<String> {
        self.script().received.iter().map(|r| r.line.clone()).collect()
    }

    /// When requests were received, in milliseconds.
    pub fn times(&self) -> Vec<u128> {
        self.script().received.iter().map(|r| r.at.as_millis()).collect()
    }

    /// How many connections were refused.
    pub fn refusals(&self) -> usize {
        self.script().refused
    }

    /// A transport to this cloud.
    pub fn transport(&self) -> Transport {
        let cloud = self.clone();
        Transport::new(tower::service_fn(move |request| cloud.clone().answer(request)))
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(self, request: Request<RequestBody>) -> Result<Response<SplitBody>, TransportError> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |p| p.as_str());
        let line = format!("{} {path}", head.method);
        let bare = format!("{} {}", head.method, head.uri.path());
        let body: Result<_, Infallible> = body.collect().await;
        let body = body.map(|b| String::from_utf8_lossy(&b.to_bytes()).into_owned()).unwrap_or_default();
        let reply = {
            let mut script = self.script();
            let reply = script.reply(&line, &bare);
            if reply.delivery == Delivery::Refused {
                script.refused += 1;
            } else {
                let at = script.started.elapsed();
                script.received.push(Received { at, line, headers: head.headers, body });
            }
            reply
        };
        sleep(reply.delay).await;
        match reply.delivery {
            Delivery::Refused => Err(TransportError::not_sent("connection refused")),
            Delivery::Dropped => Err(TransportError::lost("connection reset")),
            Delivery::Answered => Ok(reply.into_response()),
        }
    }
}

impl Script {
    fn reply(&mut self, line: &str, bare: &str) -> Reply {
        let lines = [line, bare];
        lines
            .iter()
            .find_map(|line| self.queued.get_mut(*line)?.pop_front())
            .or_else(|| lines.iter().find_map(|line| self.standing.get(*line).cloned()))
            .unwrap_or_else(|| Reply::text(418, &format!("nothing is scripted for {line}")))
    }
}

impl Reply {
    fn into_response(self) -> Response<SplitBody> {
        let half =
            if self.whole && self.body_delay.is_zero() { self.body.len() } else { self.body.len() / 2 };
        let mut rest = self.body;
        let first = rest.split_to(half.min(rest.len()));
        let body = SplitBody {
            first: Some(first).filter(|b| !b.is_empty()),
            delay: Box::pin(sleep(self.body_delay)),
            rest: if self.whole { Some(Ok(rest)) } else { Some(Err(TransportError::lost("reset"))) },
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::IM_A_TEAPOT);
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

/// A body in two pieces, with a wait or a lost connection between them.
struct SplitBody {
    first: Option<Bytes>,
    delay: Pin<Box<Sleep>>,
    rest: Option<Result<Bytes, TransportError>>,
}

impl http_body::Body for SplitBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.rest.is_some() && !self.delay.is_elapsed() && self.delay.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(self.rest.take().map(|rest| rest.map(Frame::data)))
    }
}

/// Refuses connections to a server while it is shut, and counts them.
#[derive(Clone, Debug, Default)]
pub struct Door(Arc<Mutex<(bool, usize)>>);

impl Door {
    fn state(&self) -> MutexGuard<'_, (bool, usize)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn shut(&self, shut: bool) {
        self.state().0 = shut;
    }

    /// How many connections were refused.
    pub fn refusals(&self) -> usize {
        self.state().1
    }

    /// The transport through it to `behind`.
    pub fn before(&self, behind: Transport) -> Transport {
        let door = self.clone();
        Transport::new(tower::service_fn(move |request| {
            let (door, behind) = (door.clone(), behind.clone());
            async move { door.pass(request, behind).await }
        }))
    }

    async fn pass(
        self,
        request: Request<RequestBody>,
        behind: Transport,
    ) -> Result<Response<AnswerBody>, TransportError> {
        let shut = {
            let mut state = self.state();
            state.1 += usize::from(state.0);
            state.0
        };
        if shut {
            return Err(TransportError::not_sent("connection refused"));
        }
        behind.ready().await?.send(request).await
    }
}
