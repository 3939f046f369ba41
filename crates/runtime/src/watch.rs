//! A watch that never ends, in our words.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use cloudberth_core::{Clock, Error, Random, rate::Backoff, time::Tick};
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
    trouble::in_full,
};

/// How long a broken watch waits before it is started again.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(30) };

/// How many objects are listed at once. A node has ten kilobytes or more, and what a listing takes while it is read is
/// not given back.
const PAGE: u32 = 100;

/// For how many seconds a watch is asked for. The server ends it then, and the next one goes on from where it was.
///
/// A connection that dies silently is noticed by that: over HTTP/1.1 nothing else goes back and forth on a quiet day but
/// a bookmark a minute, and what only the kernel sees (keep-alives) tells nothing about a proxy in between or a server
/// that hangs. The price is two small requests a minute for each kind.
const TERM: u32 = 30;
/// How long the beginning of an answer may take.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long an answer that has begun may be silent. A watch that is silent for five seconds longer than its term is given
/// up by the watcher itself.
const SILENCE: Duration = Duration::from_secs(40);
/// A watch that ends sooner than this, with nothing told, did not work.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// How long after the API server began to answer a watch it may still say that everything has to be listed again.
const TAKEN_UP: Duration = Duration::from_secs(1);
/// A watch that has lasted for this long works, although nothing may have been told.
const STEADY: Duration = Duration::from_secs(10);
/// Troubles that are further apart than this have nothing to do with each other.
const APART: Duration = Duration::from_secs(60);

/// What the watch said.
#[derive(Clone, Debug)]
pub(crate) enum Told<V: Watched> {
    /// A listing begins.
    Begin,
    /// It is there, in this version.
    There(V),
    /// It is there, and this is why it cannot be read.
    Unreadable(V::Key, Error),
    /// It is gone.
    Gone(V::Key),
    /// The listing is complete.
    Complete,
    /// The watch broke; it is taken up again after a rest.
    Broken(String),
}

/// Since when a watch has been failing.
///
/// That the server begins to answer is not enough to call it well: a watch can be answered and cut off each time. It is
/// well when it tells something, or has lasted for a while: on a quiet day that is all that is heard of it.
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

    /// The watch told something.
    pub(crate) const fn told(&mut self) {
        self.broken = None;
    }

    /// The watch broke.
    pub(crate) fn broke(&mut self, now: Tick) {
        self.broken = self.broken_since(now).or(Some(now));
        self.answered = None;
    }

    /// Whether what is known is as new as the API server can make it: the watch never broke, or was taken up again and has
    /// not been told since that it has to list.
    pub(crate) fn is_current(&self, now: Tick) -> bool {
        self.broken.is_none() || self.answered.is_some_and(|answered| now.since(answered) >= TAKEN_UP)
    }

    pub(crate) fn broken_since(&self, now: Tick) -> Option<Tick> {
        let lasts = self.answered.is_some_and(|answered| now.since(answered) >= STEADY);
        self.broken.filter(|_| !lasts)
    }
}

/// Every object of a kind, as it comes and goes. Never ends by itself.
///
/// `answered` is called when the API begins to answer a watch.
pub(crate) fn watch<V: Watched>(
    client: Client,
    random: Arc<Random>,
    clock: Arc<dyn Clock>,
    answered: impl Fn() + Clone + Send + Sync + 'static,
) -> impl Stream<Item = Told<V>> + Send {
    let api: Api<Object<V>> = Api::all(patient(client, Arc::clone(&clock), answered));
    let (mut broken, mut last) = (0_u32, Tick::ZERO);
    let config = watcher::Config::default().page_size(PAGE).timeout(TERM);
    let events = watcher(api, config).map(move |event| match event {
        Ok(event) => {
            // A listing that went well says nothing about the watch after it.
            if matches!(event, watcher::Event::Apply(_) | watcher::Event::Delete(_)) {
                broken = 0;
            }
            (tell(event), None)
        }
        Err(error) => {
            let now = clock.now();
            broken = if now.since(last) > APART { 1 } else { broken.saturating_add(1) };
            last = now;
            (Told::Broken(in_full(&error)), Some(BACKOFF.after(broken)))
        }
    });
    // That it broke is told at once; the rest comes before it is taken up again.
    stream::unfold((Box::pin(events), None), move |(mut events, rest): (_, Option<Duration>)| {
        let random = Arc::clone(&random);
        async move {
            if let Some(rest) = rest {
                tokio::time::sleep(random.jitter(rest, 1.0)).await;
            }
            let (told, rest) = events.next().await?;
            Some((told, (events, rest)))
        }
    })
}

/// A client that gives up on a server which does not begin to answer, or falls silent (law 12).
fn patient(
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
            let body = |body| Lasting { body: Box::pin(TimeoutBody::new(SILENCE, body)), clock, not_before };
            answer.map(|answer| answer.map(body)).map_err(BoxError::from)
        }
    };
    Client::new(service_fn(send), "")
}

/// The body of an answer. One of a watch that ends at once, with nothing said, is an error: otherwise the next watch
/// would begin at once too, without rest, and nobody would know.
struct Lasting<B> {
    body: B,
    clock: Arc<dyn Clock>,
    not_before: Option<Tick>,
}

impl<B> http_body::Body for Lasting<B>
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

fn tell<V: Watched>(event: watcher::Event<Object<V>>) -> Told<V> {
    match event {
        watcher::Event::Init => Told::Begin,
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
            let key = object.key();
            object.view.map_or_else(|why| Told::Unreadable(key, why), Told::There)
        }
        watcher::Event::Delete(object) => Told::Gone(object.key()),
        watcher::Event::InitDone => Told::Complete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_current_once_a_broken_watch_was_taken_up() {
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

    #[tokio::test(start_paused = true)]
    async fn a_server_that_falls_silent_is_given_up() {
        let answers = async |_: Request<Body>| Ok::<_, Infallible>(http::Response::new(Stuck));
        let silent = patient(Client::new(service_fn(answers), ""), clock(), || ());
        let begun = tokio::time::Instant::now();
        let listing =
            silent.request::<serde_json::Value>(Request::get("/api/v1/nodes").body(vec![]).unwrap());
        let ended = tokio::time::timeout(Duration::from_secs(1_000), listing).await;
        assert!(ended.is_ok_and(|answer| answer.is_err()), "L12-30");
        assert_eq!(begun.elapsed().as_secs(), SILENCE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_not_there_is_asked_less_and_less_often() {
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (noted, begun) = (Arc::clone(&asked), tokio::time::Instant::now());
        let gone = move |_: Request<Body>| {
            noted.lock().unwrap().push(begun.elapsed());
            std::future::ready(Err::<http::Response<Body>, BoxError>("nobody is there".into()))
        };
        let client = Client::new(service_fn(gone), "");
        let told = watch::<cloudberth_core::NodeView>(client, Arc::new(Random::seeded(1)), clock(), || ());
        let all = told.for_each(|_| std::future::ready(()));
        assert!(tokio::time::timeout(Duration::from_secs(300), all).await.is_err());
        let asked = asked.lock().unwrap().clone();
        assert!((8..=17).contains(&asked.len()), "L12-32 {asked:?}");
        let last = asked.windows(2).next_back().map(|pair| pair[1].saturating_sub(pair[0])).unwrap();
        assert!(last >= BACKOFF.longest, "L12-32 {asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_at_once_each_time_rests_in_between() {
        let watches = Arc::new(std::sync::Mutex::new(0));
        let counted = Arc::clone(&watches);
        let empty = move |request: Request<Body>| {
            let list =
                r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}"#;
            let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            *counted.lock().unwrap() += u32::from(watches);
            let body = if watches { Body::empty() } else { Body::from(list.as_bytes().to_vec()) };
            std::future::ready(Ok::<_, Infallible>(http::Response::new(body)))
        };
        let client = Client::new(service_fn(empty), "");
        let told = watch::<cloudberth_core::NodeView>(client, Arc::new(Random::seeded(1)), clock(), || ());
        let broken = std::sync::Mutex::new(0);
        let all = told.for_each(|told| {
            *broken.lock().unwrap() += u32::from(matches!(told, Told::Broken(_)));
            std::future::ready(())
        });
        assert!(tokio::time::timeout(Duration::from_secs(300), all).await.is_err());
        let (watches, broken) = (*watches.lock().unwrap(), *broken.lock().unwrap());
        assert!(
            (8..=20).contains(&watches) && broken + 1 >= watches,
            "L12-602 {watches} watches, {broken} broke"
        );
    }

    #[test]
    fn a_watch_is_well_when_it_tells_something_or_lasts() {
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
        health.told();
        assert_eq!(health.broken_since(at(32)), None);
    }
}
