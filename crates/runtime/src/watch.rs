//! A watch that never ends.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use cloudberth_core::{Clock, Error, Random, error::with_causes, rate::Backoff, time::Tick};
use futures_util::{Stream, StreamExt, stream};
use http::Request;
use kube::{
    Api, Client,
    client::Body,
    runtime::watcher::{self, watcher},
};
use tower::{BoxError, service_fn};
use tower_http::timeout::TimeoutBody;

use crate::{
    object::{Object, Watched},
    scope::WatchScope,
};

/// How long a broken watch waits before it is started again, up to twice as long. When the API server answers again after
/// an outage, everything waits for the watches.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(10) };

/// How many objects are listed at once. A node has ten kilobytes or more, and the memory that a page needs is not given
/// back.
const PAGE: u32 = 100;

/// How many seconds a watch lasts. The server then ends it, and the next one continues where it was.
///
/// This is how we notice a connection that died silently: on a quiet day an HTTP/1.1 watch carries nothing but a bookmark
/// a minute, and TCP keep-alives say nothing about a proxy in between or a server that hangs. The price is two small
/// requests a minute for each kind.
const TERM: u32 = 30;
/// How long the head of an answer may take.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long an answer may be silent. The watcher itself gives up a watch that is silent for five seconds longer than its
/// term.
const SILENCE: Duration = Duration::from_secs(40);
/// A watch that ends sooner than this without an event did not work.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// How long after the API server began to answer a watch it may still demand a new listing.
const RESUMED: Duration = Duration::from_secs(1);
/// A watch that has lasted for this long works, even without an event.
const STEADY: Duration = Duration::from_secs(10);
/// Failures that are further apart than this are unrelated.
const APART: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(crate) enum WatchEvent<V: Watched> {
    Init,
    Applied(V),
    /// The object exists and cannot be decoded, for this reason.
    Unreadable(V::Key, Error),
    Deleted(V::Key),
    InitDone,
    /// The watch failed, for this reason; it is started again after a wait.
    Failed(String),
}

/// Since when a watch has been failing.
///
/// It is healthy once it delivered an event, or has lasted for a while, which is all that happens on a quiet day. That
/// the server begins to answer is not enough: each watch may be answered and then cut off.
#[derive(Debug, Default)]
pub(crate) struct Health {
    broken: Option<Tick>,
    answered: Option<Tick>,
}

impl Health {
    /// The server has begun to answer a watch.
    pub(crate) fn answered(&mut self, now: Tick) {
        self.answered.get_or_insert(now);
    }

    pub(crate) const fn delivered(&mut self) {
        self.broken = None;
    }

    pub(crate) fn broke(&mut self, now: Tick) {
        self.broken = self.broken_since(now).or(Some(now));
        self.answered = None;
    }

    /// Whether the store is as new as the API server can make it: the watch never failed, or was resumed without a demand
    /// for a new listing.
    pub(crate) fn is_current(&self, now: Tick) -> bool {
        self.broken.is_none() || self.answered.is_some_and(|answered| now.since(answered) >= RESUMED)
    }

    pub(crate) fn broken_since(&self, now: Tick) -> Option<Tick> {
        let lasts = self.answered.is_some_and(|answered| now.since(answered) >= STEADY);
        self.broken.filter(|_| !lasts)
    }
}

/// The events of all objects in a scope; never ends.
///
/// `answered` is called when the API server begins to answer a watch.
pub(crate) fn watch<V: Watched, F: Fn() + Clone + Send + Sync + 'static>(
    client: Client,
    scope: &WatchScope,
    random: Arc<Random>,
    clock: Arc<dyn Clock>,
    answered: F,
) -> impl Stream<Item = WatchEvent<V>> + Send + use<V, F> {
    let client = with_timeouts(client, Arc::clone(&clock), answered);
    let api: Api<Object<V>> = match &scope.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &scope.resource),
        None => Api::all_with(client, &scope.resource),
    };
    let (mut broken, mut last, mut expired) = (0_u32, Tick::ZERO, false);
    let mut config = watcher::Config::default().page_size(PAGE).timeout(TERM);
    config.label_selector = Some(scope.labels.clone()).filter(|text| !text.is_empty());
    config.field_selector = Some(scope.fields.clone()).filter(|text| !text.is_empty());
    let events = watcher(api, config).map(move |event| match event {
        Ok(event) => {
            // A listing that succeeds says nothing about the watch after it.
            if matches!(event, watcher::Event::Apply(_) | watcher::Event::Delete(_)) {
                broken = 0;
            }
            (translate(event), None)
        }
        Err(error) => {
            let now = clock.now();
            // A server that demands a new listing works, whatever was before. That it always does is another trouble.
            let was_expired = std::mem::replace(&mut expired, demands_listing(&error));
            let unrelated = now.since(last) > APART || expired && !was_expired;
            broken = if unrelated { 1 } else { broken.saturating_add(1) };
            last = now;
            (WatchEvent::Failed(with_causes(&error)), Some(BACKOFF.after(broken)))
        }
    });
    // The failure is reported at once; the wait comes before the next attempt.
    stream::unfold((Box::pin(events), None), move |(mut events, wait): (_, Option<Duration>)| {
        let random = Arc::clone(&random);
        async move {
            if let Some(wait) = wait {
                tokio::time::sleep(random.jitter(wait, 1.0)).await;
            }
            let (event, wait) = events.next().await?;
            Some((event, (events, wait)))
        }
    })
}

/// A client with time limits for the head of an answer and for silence in its body (law 12).
fn with_timeouts(
    client: Client,
    clock: Arc<dyn Clock>,
    answered: impl Fn() + Clone + Send + Sync + 'static,
) -> Client {
    let send = move |request: Request<Body>| {
        let (client, clock, answered) = (client.clone(), Arc::clone(&clock), answered.clone());
        let query = request.uri().query().unwrap_or_default();
        let watches = query.split('&').any(|part| part == "watch=true");
        async move {
            let Ok(answer) = tokio::time::timeout(PATIENCE, client.send(request)).await else {
                return Err("the Kubernetes API did not answer in time".into());
            };
            let begun = answer.as_ref().is_ok_and(|answer| answer.status().is_success()) && watches;
            if begun {
                answered();
            }
            let not_before = begun.then(|| clock.now() + TOO_SHORT);
            let body =
                |body| WatchBody { body: Box::pin(TimeoutBody::new(SILENCE, body)), clock, not_before };
            answer.map(|answer| answer.map(body)).map_err(BoxError::from)
        }
    };
    Client::new(service_fn(send), "")
}

/// The body of an answer. If a watch ends at once without an event, that is an error: otherwise the next watch would
/// begin at once too, without a wait and without a trace.
struct WatchBody<B> {
    body: B,
    clock: Arc<dyn Clock>,
    not_before: Option<Tick>,
}

impl<B> http_body::Body for WatchBody<B>
where
    B: http_body::Body<Error = BoxError> + Unpin,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let too_short = self.not_before.take().is_some_and(|at| self.clock.now() < at);
        Poll::Ready(match frame {
            None if too_short => Some(Err("the watch ended at once".into())),
            frame => frame,
        })
    }
}

/// Whether the API server no longer has the version from which the watch should go on: after a compaction, or because
/// etcd was restored.
fn demands_listing(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchError(status) if status.code == 410)
}

fn translate<V: Watched>(event: watcher::Event<Object<V>>) -> WatchEvent<V> {
    match event {
        watcher::Event::Init => WatchEvent::Init,
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
            let key = object.key();
            object.view.map_or_else(|why| WatchEvent::Unreadable(key, why), WatchEvent::Applied)
        }
        watcher::Event::Delete(object) => WatchEvent::Deleted(object.key()),
        watcher::Event::InitDone => WatchEvent::InitDone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_current_once_a_failed_watch_was_resumed() {
        let at = Tick::from_secs;
        let mut health = Health::default();
        assert!(health.is_current(at(0)), "one that never broke");
        health.broke(at(10));
        assert!(!health.is_current(at(1_000)), "L5-1000 nobody knows what happened since");
        health.answered(at(1_000));
        assert!(!health.is_current(at(1_000)), "L5-1000 it may have to list again");
        assert!(health.is_current(at(1_001)));
        health.broke(at(1_001));
        assert!(!health.is_current(at(1_002)), "L5-1000 it had to");
    }
    use std::convert::Infallible;

    /// A body of which nothing ever comes.
    struct Stuck;

    impl http_body::Body for Stuck {
        type Data = bytes::Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Infallible>>> {
            Poll::Pending
        }
    }

    struct Paused(tokio::time::Instant);

    impl Clock for Paused {
        fn now(&self) -> Tick {
            Tick(self.0.elapsed())
        }

        fn wall(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }
    }

    fn clock() -> Arc<dyn Clock> {
        Arc::new(Paused(tokio::time::Instant::now()))
    }

    fn nodes(client: Client) -> impl Stream<Item = WatchEvent<cloudberth_core::NodeView>> {
        watch(client, &WatchScope::nodes(), Arc::new(Random::seeded(1)), clock(), || ())
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_given_up() {
        let answers = async |_: Request<Body>| Ok::<_, Infallible>(http::Response::new(Stuck));
        let silent = with_timeouts(Client::new(service_fn(answers), ""), clock(), || ());
        let begun = tokio::time::Instant::now();
        let listing =
            silent.request::<serde_json::Value>(Request::get("/api/v1/nodes").body(vec![]).unwrap());
        let ended = tokio::time::timeout(Duration::from_secs(1_000), listing).await;
        assert!(ended.is_ok_and(|answer| answer.is_err()), "L12-30");
        assert_eq!(begun.elapsed().as_secs(), SILENCE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_server_is_asked_less_and_less_often() {
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (noted, begun) = (Arc::clone(&asked), tokio::time::Instant::now());
        let gone = move |_: Request<Body>| {
            noted.lock().unwrap().push(begun.elapsed());
            std::future::ready(Err::<http::Response<Body>, BoxError>("nobody is there".into()))
        };
        let client = Client::new(service_fn(gone), "");
        let told = nodes(client);
        let all = told.for_each(|_| std::future::ready(()));
        assert!(tokio::time::timeout(Duration::from_secs(300), all).await.is_err());
        let asked = asked.lock().unwrap().clone();
        assert!((15..=35).contains(&asked.len()), "L12-32 {asked:?}");
        let last = asked.windows(2).next_back().map(|pair| pair[1].saturating_sub(pair[0])).unwrap();
        assert!(last >= BACKOFF.longest, "L12-32 {asked:?}");
    }

    /// A body with this text, which then ends or not.
    struct Text {
        text: Option<&'static str>,
        ends: bool,
    }

    impl http_body::Body for Text {
        type Data = bytes::Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Infallible>>> {
            match self.text.take() {
                Some(text) => Poll::Ready(Some(Ok(http_body::Frame::data(text.into())))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    const LIST: &str =
        r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}"#;
    const GONE: &str = concat!(
        r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","#,
        r#""code":410,"reason":"Expired","message":"too old resource version"}}"#,
    );

    /// The API server is away for two minutes, and has lost its history when it is back.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_back_is_listed_soon() {
        let (begun, back) = (tokio::time::Instant::now(), Duration::from_secs(120));
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let answers = move |request: Request<Body>| {
            let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let now = begun.elapsed();
            if now > Duration::from_secs(1) && now < back {
                return std::future::ready(Err::<_, BoxError>("nobody is there".into()));
            }
            let mut noted = noted.lock().unwrap();
            let listed = noted.iter().any(|(at, watches)| *at >= back && !watches);
            noted.push((now, watches));
            let body = match (watches, now < back) {
                (false, _) => Text { text: Some(LIST), ends: true },
                (true, true) => Text { text: None, ends: true },
                (true, false) if listed => Text { text: None, ends: false },
                (true, false) => Text { text: Some(GONE), ends: true },
            };
            std::future::ready(Ok(http::Response::new(body)))
        };
        let client = Client::new(service_fn(answers), "");
        let told = nodes(client);
        let all = told.for_each(|_| std::future::ready(()));
        assert!(tokio::time::timeout(Duration::from_secs(150), all).await.is_err());
        let asked = asked.lock().unwrap().clone();
        let after: Vec<_> = asked.iter().filter(|(at, _)| *at >= back).collect();
        let ((first, true), (listed, false)) = (*after[0], *after[1]) else { panic!("{after:?}") };
        assert!(first <= back + 2 * BACKOFF.longest, "L12-610 {after:?}");
        assert!(
            listed <= first + 2 * BACKOFF.first,
            "L12-610 a demand for a new listing is no failure: {after:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_at_once_each_time_waits_in_between() {
        let watches = Arc::new(std::sync::Mutex::new(0));
        let counted = Arc::clone(&watches);
        let empty = move |request: Request<Body>| {
            let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            *counted.lock().unwrap() += u32::from(watches);
            let body = if watches { Body::empty() } else { Body::from(LIST.as_bytes().to_vec()) };
            std::future::ready(Ok::<_, Infallible>(http::Response::new(body)))
        };
        let client = Client::new(service_fn(empty), "");
        let told = nodes(client);
        let broken = std::sync::Mutex::new(0);
        let all = told.for_each(|told| {
            *broken.lock().unwrap() += u32::from(matches!(told, WatchEvent::Failed(_)));
            std::future::ready(())
        });
        assert!(tokio::time::timeout(Duration::from_secs(300), all).await.is_err());
        let (watches, broken) = (*watches.lock().unwrap(), *broken.lock().unwrap());
        assert!(
            (15..=35).contains(&watches) && broken + 1 >= watches,
            "L12-602 {watches} watches, {broken} broke"
        );
    }

    #[test]
    fn a_watch_is_healthy_when_it_delivers_something_or_lasts() {
        let at = Tick::from_secs;
        let mut health = Health::default();
        assert_eq!(health.broken_since(at(0)), None);
        for second in [1, 3, 8, 13] {
            health.broke(at(second));
            health.answered(at(second + 1));
            assert_eq!(
                health.broken_since(at(second + 2)),
                Some(at(1)),
                "L12-601 answered and cut off each time"
            );
        }
        assert_eq!(health.broken_since(at(24)), None, "it has lasted");
        health.broke(at(30));
        assert_eq!(health.broken_since(at(31)), Some(at(30)), "that was another trouble");
        health.delivered();
        assert_eq!(health.broken_since(at(32)), None);
    }
}
