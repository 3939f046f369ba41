//! The front of a simulated cloud: everything between its clients and the rules of its API. Latency, faults, the journal,
//! the control port and the port to listen on are the same for every cloud that speaks REST.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use cloudberth_core::{Clock, Random, Tick};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    body::Body,
    calls::CallLog,
    control::{Control, read_order},
    exchange::Exchange,
    faults::{Decision, Harm, Planner, Rules},
    journal::{Entry, Tally},
    requests::{Fault, Request},
    service::{Disconnected, Handler, SimService},
};

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// On the clock that only goes forward.
    pub tick: Tick,
    /// On the wall.
    pub wall: Timestamp,
}

/// A request that has arrived whole.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The HTTP method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// What follows the question mark.
    pub query: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// Scheme, host and port as the client wrote them.
    pub base: String,
    /// The body.
    pub body: Bytes,
    /// How many requests came before it.
    pub number: u64,
}

impl Incoming {
    pub(crate) fn new(parts: &Parts, body: Bytes) -> Self {
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers.clone(),
            base: base(parts),
            body,
            number: 0,
        }
    }

    /// A header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Scheme, host and port as the client wrote them.
fn base(parts: &Parts) -> String {
    let scheme = parts.uri.scheme_str().unwrap_or("http");
    let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = parts.uri.authority().map(http::uri::Authority::as_str).or(named);
    format!("{scheme}://{}", host.unwrap_or("localhost"))
}

/// The answer to a request, as the rules of an API give it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body; nothing for an empty one.
    pub body: Option<Value>,
    /// Headers beside the usual ones.
    pub headers: HeaderMap,
}

impl Reply {
    /// An answer with this status and body.
    pub fn new(status: u16, body: Option<Value>) -> Self {
        Self { status, body, headers: HeaderMap::new() }
    }
}

/// A simulated cloud behind its [`Front`]: its resources and the rules of its API. It is synchronous and never waits.
pub trait RestCloud: Send + 'static {
    /// Which operation a request asks for, such as `members.create`; `unknown` where there is none.
    fn operation(&self, request: &Incoming) -> String;

    /// Whether a request would change something.
    fn mutates(&self, request: &Incoming) -> bool {
        !matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    /// How long a request takes, and which part of that is random, from 0 to 1.
    fn latency(&self) -> (Duration, f64);

    /// How long a request that takes so long waits for earlier ones. By default it does not.
    fn queue(&mut self, _request: &Incoming, _now: Tick, _takes: Duration) -> Duration {
        Duration::ZERO
    }

    /// Carries a request out, or refuses it.
    fn handle(&mut self, request: &Incoming, at: Moment) -> Reply;

    /// A refusal that was ordered, in the form of this cloud's errors.
    fn refuse(&self, request: &Incoming, status: u16) -> Reply;

    /// The items in the answer to a request for a list; `None` for other requests.
    fn items<'a>(&self, request: &Incoming, body: &'a mut Value) -> Option<&'a mut Vec<Value>>;

    /// A request's body for the journal. By default the body, if it is JSON.
    fn journalled(&self, request: &Incoming) -> Option<Value> {
        serde_json::from_slice(&request.body).ok()
    }

    /// The body of an answer that is no refusal, as it is sent, with its media type. By default JSON.
    fn write(&self, _request: &Incoming, body: &Value) -> (&'static str, String) {
        ("application/json", body.to_string())
    }

    /// The body of a refusal, as it is sent, with its media type. By default JSON.
    fn write_refusal(&self, _status: u16, body: &Value) -> (&'static str, String) {
        ("application/json", body.to_string())
    }

    /// Carries out what a person or a test asks of this cloud alone: `POST servers` for `POST /_sim/servers`. The error is
    /// for people; `None` where there is no such control.
    fn control(&mut self, _order: &str, _body: &[u8], _at: Moment) -> Option<Result<Value, String>> {
        None
    }

    /// All resources, for `GET /_sim/state`.
    fn state(&mut self, base: &str, at: Moment) -> Value;

    /// Back to the beginning.
    fn reset(&mut self, at: Moment);
}

/// Changes the body of an answer before it is sent.
type Editor = Box<dyn FnMut(&Request, &mut Value) + Send>;

pub(crate) struct State<C> {
    pub(crate) cloud: C,
    planner: Planner<Request, Harm>,
    rules: Rules<Fault>,
    pub(crate) editor: Option<Editor>,
    pub(crate) journal: CallLog<Entry>,
    /// Requests that were sent and have not taken effect yet.
    pub(crate) under_way: usize,
    /// How far the cloud's clocks are ahead of the one that was handed in.
    ahead: Duration,
}

impl<C> State<C> {
    /// What happens to a request: what was planned, or else what the rules say.
    pub(crate) fn decide_fault(&mut self, request: &Request) -> Decision {
        self.planner.decide(request).map_or_else(|| self.rules.decide(request), Decision::from)
    }

    fn stop_faults(&mut self) {
        self.planner.clear();
        self.editor = None;
        self.rules.clear();
    }
}

struct Shared<C> {
    state: Mutex<State<C>>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
}

/// The front of one cloud. Clones are the same one.
pub struct Front<C>(Arc<Shared<C>>);

impl<C> Clone for Front<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for Front<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}

impl<C: RestCloud> Front<C> {
    /// A front on this clock. Jitter is drawn from `random`.
    pub fn new(cloud: C, clock: Arc<dyn Clock>, random: Arc<Random>) -> Self {
        let state = State {
            cloud,
            planner: Planner::default(),
            rules: Rules::default(),
            editor: None,
            journal: CallLog::default(),
            under_way: 0,
            ahead: Duration::ZERO,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), clock, random }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<C>> {
        // A panic elsewhere leaves plain state behind that can still be read.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, on the cloud's clocks.
    pub fn moment(&self) -> Moment {
        let ahead = self.lock().ahead;
        let wall = self.0.clock.wall();
        Moment { tick: self.0.clock.now() + ahead, wall: wall.checked_add(ahead).unwrap_or(wall) }
    }

    /// Moves the cloud's clocks forward, against the one that was handed in.
    pub fn advance(&self, how_far: Duration) {
        let mut state = self.lock();
        state.ahead = state.ahead.saturating_add(how_far);
    }

    /// Works on the cloud itself, past latency, faults and journal.
    pub fn with<T>(&self, act: impl FnOnce(&mut C, Moment) -> T) -> T {
        let at = self.moment();
        act(&mut self.lock().cloud, at)
    }

    /// How long the next request takes.
    pub(crate) fn draw_latency(&self) -> Duration {
        let (latency, jitter) = self.lock().cloud.latency();
        let jitter = jitter.clamp(0.0, 1.0);
        if latency.is_zero() || jitter == 0.0 {
            return latency;
        }
        latency.mul_f64(1.0 - jitter * self.0.random.fraction())
    }

    /// A service for clients in the same process. They must run on a tokio runtime.
    pub fn service(&self) -> FrontService<C> {
        SimService::new(FrontHandler { front: self.clone(), who: None })
    }

    /// The same, for a client that is called `who` in the journal and in plans of faults.
    pub fn service_as(&self, who: &str) -> FrontService<C> {
        SimService::new(FrontHandler { front: self.clone(), who: Some(who.to_owned()) })
    }

    /// Decides for each request what goes wrong with it; replaces what was set before. Where it says nothing, the
    /// faults of [`Front::add_fault`] decide.
    pub fn plan_faults(&self, plan: impl FnMut(&Request) -> Option<Harm> + Send + 'static) {
        self.lock().planner.set(plan);
    }

    /// Adds a fault, behind those that are in force.
    pub fn add_fault(&self, fault: Fault) {
        self.lock().rules.add(fault);
    }

    /// Changes the bodies of successful answers before they are sent, to remove fields or make them unreadable. Replaces
    /// the editor that was set before. The resources themselves do not change.
    pub fn edit_answers(&self, editor: impl FnMut(&Request, &mut Value) + Send + 'static) {
        self.lock().editor = Some(Box::new(editor));
    }

    /// Lets everything go well from now on.
    pub fn stop_faults(&self) {
        self.lock().stop_faults();
    }

    /// The requests so far, in the order in which they took effect; of more than 200,000 the newest.
    pub fn journal(&self) -> Vec<Entry> {
        self.lock().journal.iter().cloned().collect()
    }

    /// How many requests there were for each operation.
    pub fn tally(&self) -> Tally {
        Tally::of(self.lock().journal.iter())
    }

    /// Forgets the requests so far; numbers go on.
    pub fn clear_journal(&self) {
        self.lock().journal.clear();
    }

    /// How many requests were sent and have not taken effect yet.
    pub fn under_way(&self) -> usize {
        self.lock().under_way
    }

    /// Back to the beginning: without faults, with an empty journal.
    pub fn reset(&self) {
        let at = self.moment();
        let mut state = self.lock();
        state.cloud.reset(at);
        state.stop_faults();
        state.journal = CallLog::default();
    }

    /// Answers `/_sim/…`. It needs no credential.
    fn control(&self, control: Control, parts: &Parts, body: &[u8]) -> (StatusCode, Value) {
        let bad_request = |why| (StatusCode::BAD_REQUEST, json!({"detail": why}));
        match control {
            Control::Calls => self.calls(parts.uri.query()),
            Control::Reset => {
                self.reset();
                (StatusCode::OK, json!({}))
            }
            Control::Faults => (StatusCode::OK, json!({"faults": self.lock().rules.list()})),
            Control::SetFaults => {
                let rules = &mut self.lock().rules;
                match read_order(body).and_then(|order| rules.apply(order)) {
                    Ok(()) => (StatusCode::OK, json!({"faults": rules.list()})),
                    Err(why) => bad_request(why),
                }
            }
            Control::Other if parts.method == Method::GET && parts.uri.path() == "/_sim/state" => {
                (StatusCode::OK, self.with(|cloud, at| cloud.state(&base(parts), at)))
            }
            Control::Other if parts.method == Method::DELETE && parts.uri.path() == "/_sim/calls" => {
                self.clear_journal();
                (StatusCode::OK, json!({}))
            }
            Control::Other if parts.method == Method::POST && parts.uri.path() == "/_sim/advance" => {
                let order: Value = serde_json::from_slice(body).unwrap_or_default();
                match order.get("millis").and_then(Value::as_u64) {
                    None => bad_request("how many millis?".to_owned()),
                    Some(millis) => {
                        self.advance(Duration::from_millis(millis));
                        (StatusCode::OK, json!({}))
                    }
                }
            }
            Control::Other => {
                let path = parts.uri.path();
                let order = format!("{} {}", parts.method, path.strip_prefix("/_sim/").unwrap_or(path));
                match self.with(|cloud, at| cloud.control(&order, body, at)) {
                    None => (StatusCode::NOT_FOUND, json!({"detail": "Not found."})),
                    Some(Ok(answer)) => (StatusCode::OK, answer),
                    Some(Err(why)) => bad_request(why),
                }
            }
        }
    }

    /// All calls, or those from a number on (`?since=N`), and how many there were of each kind.
    fn calls(&self, query: Option<&str>) -> (StatusCode, Value) {
        let since = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("since="));
        let Ok(since) = since.map_or(Ok(0), str::parse::<u64>) else {
            return (StatusCode::BAD_REQUEST, json!({"detail": "since must be a whole number"}));
        };
        let state = self.lock();
        let calls: Vec<_> = state.journal.iter().filter(|entry| entry.number >= since).collect();
        let Tally { calls: total, mutations, operations } = Tally::of(calls.iter().copied());
        let answer =
            json!({"total": total, "mutations": mutations, "operations": operations, "calls": calls});
        (StatusCode::OK, answer)
    }
}

/// The API of a cloud as a `tower` service. Clones are the same cloud.
pub type FrontService<C> = SimService<FrontHandler<C>>;

/// Answers the requests of one client.
pub struct FrontHandler<C> {
    front: Front<C>,
    /// The client's name, whatever its requests say.
    who: Option<String>,
}

impl<C> Clone for FrontHandler<C> {
    fn clone(&self) -> Self {
        Self { front: self.front.clone(), who: self.who.clone() }
    }
}

impl<C> fmt::Debug for FrontHandler<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontHandler").field("who", &self.who).finish_non_exhaustive()
    }
}

impl<C: RestCloud> Handler for FrontHandler<C> {
    type Body = Body;

    async fn answer(self, parts: Parts, body: Bytes) -> Result<Response<Body>, Disconnected> {
        if let Some(control) = Control::of(&parts.method, parts.uri.path()) {
            let (status, body) = self.front.control(control, &parts, &body);
            return Ok(json_response(status, body.to_string()));
        }
        let (sender, answer) = oneshot::channel();
        tokio::spawn(Exchange::new(&parts, body, self.who).run(self.front, sender));
        answer
            .await
            .unwrap_or_else(|_| Err(Disconnected::new("the connection broke before the answer arrived")))
    }

    fn too_large(&self) -> Response<Body> {
        json_response(StatusCode::PAYLOAD_TOO_LARGE, r#"{"detail":"The body is too large."}"#.to_owned())
    }

    fn time(&self) -> Timestamp {
        self.front.moment().wall
    }
}

fn json_response(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
