//! One request to a simulated cloud from its arrival to its answer, with latency and faults.

use std::time::Duration;

use bytes::Bytes;
use cloudberth_core::Tick;
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use tokio::{sync::oneshot, time};

use crate::{
    body::Body,
    calls::Outcome,
    faults::{Decision, Harm},
    front::{Front, Incoming, Reply, RestCloud},
    journal::Entry,
    requests::Request,
    service::Disconnected,
};

type Answer = Result<Response<Body>, Disconnected>;

/// A request that arrived.
#[derive(Debug)]
pub(crate) struct Exchange {
    incoming: Incoming,
    who: String,
    sent: Tick,
    /// What plans of faults see of it.
    request: Request,
}

impl Exchange {
    pub(crate) fn new(parts: &Parts, body: Bytes, who: Option<String>) -> Self {
        let incoming = Incoming::new(parts, body);
        let text = |name: &str| incoming.header(name).map(str::to_owned);
        let who = who.or_else(|| text("x-sim-client")).or_else(|| text("user-agent")).unwrap_or_default();
        let request = Request {
            number: 0,
            who: who.clone(),
            operation: String::new(),
            method: incoming.method.to_string(),
            path: incoming.path.clone(),
            mutation: false,
        };
        Self { incoming, who, sent: Tick::ZERO, request }
    }

    /// Handles the request in a task of the cloud: a client that goes away loses only the answer.
    pub(crate) async fn run<C: RestCloud>(mut self, front: Front<C>, answer: oneshot::Sender<Answer>) {
        self.sent = front.moment().tick;
        let Decision { delay, harm } = self.arrive(&front);
        let takes = front.draw_latency();
        wait(delay).await;
        if let Some(Harm::Stall { millis }) = harm {
            wait(Duration::from_millis(millis)).await;
        }
        let before = match harm {
            Some(Harm::LostCall | Harm::Status { .. }) => takes / 2,
            _ => self.queue(&front, takes) + takes / 2,
        };
        wait(before).await;
        let reply = self.apply(&front, harm.as_ref());
        let written = self.write(&front, &reply);
        wait(takes / 2).await;
        match harm {
            Some(Harm::LostCall | Harm::LostAnswer) => drop(answer),
            Some(Harm::Stall { .. }) => {
                let mut answer = answer;
                // The connection stays open: the client has to give up by itself.
                answer.closed().await;
            }
            // The client may have gone away by now, which changes nothing.
            _ => drop(answer.send(Ok(respond(reply, written, harm.as_ref())))),
        }
    }

    fn arrive<C: RestCloud>(&mut self, front: &Front<C>) -> Decision {
        let mut state = front.lock();
        self.request.number = state.journal.take_number();
        self.incoming.number = self.request.number;
        self.request.operation = state.cloud.operation(&self.incoming);
        self.request.mutation = state.cloud.mutates(&self.incoming);
        state.under_way += 1;
        state.decide_fault(&self.request)
    }

    /// How long it waits for earlier requests.
    fn queue<C: RestCloud>(&self, front: &Front<C>, takes: Duration) -> Duration {
        front.with(|cloud, at| cloud.queue(&self.incoming, at.tick, takes))
    }

    /// Carries the request out and logs it in the same step.
    fn apply<C: RestCloud>(&self, front: &Front<C>, harm: Option<&Harm>) -> Reply {
        let at = front.moment();
        let mut state = front.lock();
        let state = &mut *state;
        state.under_way = state.under_way.saturating_sub(1);
        let reply = match harm {
            Some(Harm::Status { code, .. }) => state.cloud.refuse(&self.incoming, *code),
            Some(Harm::NotFound) => state.cloud.refuse(&self.incoming, 404),
            Some(Harm::Conflict) => state.cloud.refuse(&self.incoming, 409),
            Some(Harm::LostCall) => Reply::default(),
            _ => {
                let mut reply = state.cloud.handle(&self.incoming, at);
                if let (true, Some(body)) = (reply.status < 300, &mut reply.body) {
                    if let (Some(harm), Some(items)) = (harm, state.cloud.items(&self.incoming, body)) {
                        harm.shorten(items);
                    }
                    if let Some(editor) = &mut state.editor {
                        editor(&self.request, body);
                    }
                }
                reply
            }
        };
        let query = self.incoming.query.as_ref().map_or_else(String::new, |query| format!("?{query}"));
        let Request { number, operation, method, mutation, .. } = self.request.clone();
        state.journal.push(Entry {
            number,
            sent: self.sent,
            applied: at.tick,
            who: self.who.clone(),
            operation,
            method,
            path: format!("{}{query}", self.incoming.path),
            body: state.cloud.journalled(&self.incoming),
            outcome: Outcome::new(harm, reply.status),
            mutation,
        });
        reply
    }

    /// The body as it is sent, with its media type.
    fn write<C: RestCloud>(&self, front: &Front<C>, reply: &Reply) -> Option<(&'static str, String)> {
        let body = reply.body.as_ref()?;
        if reply.status < 300 {
            return Some(front.with(|cloud, _| cloud.write(&self.incoming, body)));
        }
        Some(front.with(|cloud, _| cloud.write_refusal(reply.status, body)))
    }
}

async fn wait(how_long: Duration) {
    if !how_long.is_zero() {
        time::sleep(how_long).await;
    }
}

/// What a gateway says.
fn page(status: StatusCode) -> String {
    let text = format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or_default());
    format!("<html><head><title>{text}</title></head><body><h1>{text}</h1></body></html>\n")
}

fn respond(reply: Reply, written: Option<(&'static str, String)>, harm: Option<&Harm>) -> Response<Body> {
    let Reply { status, mut headers, .. } = reply;
    let code = if let Some(Harm::Masked { code, .. }) = harm { *code } else { status };
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (kind, content) = match (harm, written) {
        (Some(Harm::Masked { empty: true, .. }), _) => (None, String::new()),
        (Some(Harm::Masked { .. } | Harm::Status { code: 502, .. }), _) => (Some("text/html"), page(status)),
        (_, Some((kind, text))) => (Some(kind), text),
        (_, None) => (None, String::new()),
    };
    if let Some(kind) = kind {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if let Some(Harm::Status { retry_after: Some(seconds), .. }) = harm {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
    }
    let whole = Body::whole(Bytes::from(content));
    let mut response = Response::new(if harm == Some(&Harm::Truncated) { whole.cut() } else { whole });
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
