//! A watch that never ends, in our words.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Dice, Error};
use futures_util::{Stream, StreamExt};
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

/// How long a broken watch rests before it is tried again: from the first, doubling up to the second.
const REST: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// How many objects are listed at once. A node has ten kilobytes or more, and what a listing takes while it is read is
/// not given back.
const PAGE: u32 = 100;

/// How long the beginning of an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an answer that has begun may be silent. A watch ends by itself before that.
const SILENCE: Duration = Duration::from_secs(320);

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

/// Every object of a kind, as it comes and goes. Never ends by itself.
///
/// `answered` is called when the API begins to answer: on a quiet day that is all that is heard of a watch which was
/// broken before.
pub(crate) fn watch<V: Watched>(
    client: Client,
    dice: Arc<Dice>,
    answered: impl Fn() + Clone + Send + Sync + 'static,
) -> impl Stream<Item = Told<V>> + Send {
    let api: Api<Object<V>> = Api::all(patient(client, answered));
    let mut broken = 0_u32;
    let events = watcher(api, watcher::Config::default().page_size(PAGE)).map(move |event| match event {
        Ok(event) => {
            // That a listing is going to be asked for is no answer yet.
            if !matches!(event, watcher::Event::Init) {
                broken = 0;
            }
            (tell(event), None)
        }
        Err(error) => {
            broken = broken.saturating_add(1);
            (Told::Broken(in_full(&error)), Some(rest(broken)))
        }
    });
    events.then(move |(told, rest)| {
        let dice = Arc::clone(&dice);
        async move {
            if let Some(rest) = rest {
                tokio::time::sleep(dice.jitter(rest, 1.0)).await;
            }
            told
        }
    })
}

/// A client that gives up on a server which does not begin to answer, or falls silent (law 12).
fn patient(client: Client, answered: impl Fn() + Clone + Send + Sync + 'static) -> Client {
    let send = move |request: Request<Body>| {
        let (client, answered) = (client.clone(), answered.clone());
        async move {
            let Ok(answer) = tokio::time::timeout(PATIENCE, client.send(request)).await else {
                return Err("the Kubernetes API did not answer in time".into());
            };
            if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                answered();
            }
            answer.map(|answer| answer.map(|body| TimeoutBody::new(SILENCE, body))).map_err(BoxError::from)
        }
    };
    Client::new(service_fn(send), "")
}

fn rest(broken: u32) -> Duration {
    let factor = 1_u32.checked_shl(broken.saturating_sub(1)).unwrap_or(u32::MAX);
    REST.0.saturating_mul(factor.max(1)).min(REST.1)
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
    use std::{
        convert::Infallible,
        pin::Pin,
        task::{Context, Poll},
    };

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

    #[tokio::test(start_paused = true)]
    async fn a_server_that_falls_silent_is_given_up() {
        let answers = async |_: Request<Body>| Ok::<_, Infallible>(http::Response::new(Stuck));
        let silent = patient(Client::new(service_fn(answers), ""), || ());
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
        let told = watch::<cloudberth_core::NodeView>(client, Arc::new(Dice::seeded(1)), || ());
        let all = told.for_each(|_| std::future::ready(()));
        assert!(tokio::time::timeout(Duration::from_secs(300), all).await.is_err());
        let asked = asked.lock().unwrap().clone();
        assert!((8..=17).contains(&asked.len()), "L12-32 {asked:?}");
        let last = asked.windows(2).next_back().map(|pair| pair[1].saturating_sub(pair[0])).unwrap();
        assert!(last >= REST.1, "L12-32 {asked:?}");
    }

    #[test]
    fn a_broken_watch_rests_longer_each_time_but_not_for_ever() {
        let rests = [1, 2, 3, 6, 7, 40, u32::MAX].map(|n| rest(n).as_millis());
        assert_eq!(rests, [500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000], "L12-20");
    }
}
