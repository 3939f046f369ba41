//! The way from the manager to the cloud: every request is told, and the way can be broken.
//!
//! The cloud itself stays as it is: what breaks is what the manager hears of it.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use cloudberth_http::{AnswerBody, RequestBody, Transport, TransportError};
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tower::{Service, ServiceExt as _};

use super::{
    contract::{Breakage, Happening},
    journal::Journal,
};

/// How late answers are when the cloud is slow.
const LATE: Duration = Duration::from_secs(5);

/// The way to the cloud. Clones are the same way.
#[derive(Clone)]
pub(crate) struct Wire {
    journal: Arc<Journal>,
    breakage: Arc<Mutex<Option<Breakage>>>,
}

impl Wire {
    pub(crate) fn new(journal: Arc<Journal>) -> Self {
        Self { journal, breakage: Arc::default() }
    }

    pub(crate) fn set(&self, breakage: Option<Breakage>) {
        *self.breakage.lock().unwrap_or_else(PoisonError::into_inner) = breakage;
    }

    pub(crate) fn breakage(&self) -> Option<Breakage> {
        *self.breakage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transport to `cloud` that goes over this way.
    pub(crate) fn to<S, B>(&self, cloud: S) -> Transport
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: fmt::Display + Send,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: fmt::Display,
    {
        Transport::new(OverTheWire { wire: self.clone(), cloud })
    }

    async fn carry<S, B>(self, cloud: S, mut request: Request<RequestBody>) -> Heard
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Send,
        S::Error: fmt::Display,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: fmt::Display,
    {
        let breakage = self.breakage();
        let lie = breakage == Some(Breakage::Lying) && lists_instances(&request);
        if lie {
            request.headers_mut().remove(IF_NONE_MATCH);
        }
        match breakage {
            Some(Breakage::Errors) => return Ok(failure(StatusCode::INTERNAL_SERVER_ERROR, "it is broken")),
            Some(Breakage::Token) => return Ok(failure(StatusCode::UNAUTHORIZED, "the token is not valid")),
            Some(Breakage::Slow) => tokio::time::sleep(LATE).await,
            Some(Breakage::Lying) | None => {}
        }
        let lost = |why: &dyn fmt::Display| TransportError::lost(why.to_string());
        let answer = cloud.oneshot(request).await.map_err(|why| lost(&why))?;
        if lie && answer.status().is_success() {
            let (mut parts, body) = answer.into_parts();
            let whole = body.collect().await.map_err(|why| lost(&why))?.to_bytes();
            parts.headers.remove(CONTENT_LENGTH);
            parts.headers.remove(ETAG);
            return Ok(Response::from_parts(parts, whole_body(without_items(&whole))));
        }
        Ok(answer.map(|body| body.map_err(|why| TransportError::lost(why.to_string())).boxed_unsync()))
    }
}

type Heard = Result<Response<AnswerBody>, TransportError>;

/// A cloud at the end of the way.
#[derive(Clone)]
struct OverTheWire<S> {
    wire: Wire,
    cloud: S,
}

impl<S, B> Service<Request<RequestBody>> for OverTheWire<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: fmt::Display + Send,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display,
{
    type Response = Response<AnswerBody>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Heard> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let (wire, cloud) = (self.wire.clone(), self.cloud.clone());
        Box::pin(async move {
            let journal = Arc::clone(&wire.journal);
            let begun = journal.now();
            let method = request.method().as_str().to_owned();
            let path = request.uri().path().to_owned();
            // Asking for a token is no change, although it is a POST.
            let change = *request.method() != Method::GET && !path.ends_with("/token");
            let heard = wire.carry(cloud, request).await;
            let status = heard.as_ref().ok().map(|answer| answer.status().as_u16());
            let ms = u64::try_from(journal.now().since(begun).as_millis()).unwrap_or(u64::MAX);
            journal.count(|totals| {
                totals.cloud_calls += 1;
                totals.cloud_changes += u64::from(change);
            });
            journal.add(Happening::CloudCall { method, path, status, ms, change });
            heard
        })
    }
}

fn lists_instances(request: &Request<RequestBody>) -> bool {
    let path = request.uri().path().trim_end_matches('/');
    *request.method() == Method::GET && (path.ends_with("/servers") || path.ends_with("/machines"))
}

fn whole_body(bytes: impl Into<Bytes>) -> AnswerBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Clouds say what went wrong in different forms; this one has the words where any of them looks.
fn failure(status: StatusCode, message: &str) -> Response<AnswerBody> {
    let body = serde_json::json!({"code": "broken", "message": message, "detail": message});
    let mut answer = Response::new(whole_body(body.to_string()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// The same listing, complete and empty. What is not JSON stays as it is.
fn without_items(body: &[u8]) -> Vec<u8> {
    let Ok(mut listing) = serde_json::from_slice::<Value>(body) else { return body.to_vec() };
    match &mut listing {
        Value::Array(items) => items.clear(),
        Value::Object(fields) => {
            fields.values_mut().filter_map(Value::as_array_mut).for_each(Vec::clear);
            if let Some(total) = fields.get_mut("meta").and_then(|meta| meta.get_mut("total")) {
                *total = Value::from(0);
            }
        }
        _ => {}
    }
    listing.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use cloudberth_http::surroundings::SystemClock;
    use serde_json::json;

    use super::*;

    fn way() -> (Arc<Journal>, Wire) {
        let journal = Arc::new(Journal::new(Arc::new(SystemClock::new())));
        (Arc::clone(&journal), Wire::new(journal))
    }

    async fn ask(wire: &Wire, path: &str) -> (u16, Value) {
        let cloud = tower::service_fn(|_: Request<RequestBody>| async {
            let body = json!({"items": [{"id": "n-1"}], "meta": {"total": 1}}).to_string();
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
        });
        let request = Request::get(path).body(RequestBody::default()).unwrap();
        let answer = wire.clone().carry(cloud, request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn each_breakage_is_what_it_says() {
        let (_, wire) = way();
        let all = json!({"items": [{"id": "n-1"}], "meta": {"total": 1}});
        let none = json!({"items": [], "meta": {"total": 0}});
        assert_eq!(ask(&wire, "/v1/machines").await, (200, all.clone()));
        wire.set(Some(Breakage::Lying));
        assert_eq!(ask(&wire, "/v1/machines").await, (200, none), "complete and empty");
        assert_eq!(ask(&wire, "/v1/machines/n-1").await, (200, all.clone()), "only listings lie");
        assert_eq!(ask(&wire, "/v1/loadbalancers").await, (200, all.clone()), "and only of instances");
        wire.set(Some(Breakage::Errors));
        assert_eq!(ask(&wire, "/v1/machines").await.0, 500);
        wire.set(Some(Breakage::Token));
        assert_eq!(ask(&wire, "/v1/machines").await.0, 401);
        wire.set(Some(Breakage::Slow));
        let begun = tokio::time::Instant::now();
        assert_eq!(ask(&wire, "/v1/machines").await, (200, all.clone()));
        assert_eq!(begun.elapsed(), LATE);
        wire.set(None);
        assert_eq!(ask(&wire, "/v1/machines").await, (200, all));
    }

    #[test]
    fn a_bare_list_is_emptied_too() {
        assert_eq!(without_items(b"[{\"uuid\": 1}]"), b"[]");
        assert_eq!(without_items(b"no json"), b"no json");
    }
}
