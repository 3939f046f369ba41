//! Sees the Lease change without asking for it: by a watch, and by polling where a watch is not allowed.
//!
//! A candidate is correct without it; its own tries come every few seconds. With it, a Lease that was let go is taken
//! up within two seconds.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Lookup, Random, decide::election::Lease};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event, watcher},
};

use super::requests::LeaseApi;

/// The pause between two looks while there is no watch, and how much chance adds to it.
const POLL: (Duration, f64) = (Duration::from_millis(750), 0.6);
/// How long one such look may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many looks pass before a watch that was forbidden is tried again: about a minute.
const FORBIDDEN: u32 = 60;

type Events = BoxStream<'static, watcher::Result<Event<DynamicObject>>>;

struct Lookout<P> {
    api: LeaseApi,
    random: Arc<Random>,
    idle: P,
    events: Events,
    /// Whether the listing that is under way showed the Lease.
    shown: bool,
    /// So many looks are left before the watch is tried again.
    polls: u32,
}

/// What the Lease says, or that there is none, whenever that may have changed. Never ends; it repeats itself.
///
/// While `idle` says so nothing is polled: whoever leads knows the Lease from its renewals.
pub(super) fn notices<P>(
    api: LeaseApi,
    namespace: &str,
    random: Arc<Random>,
    idle: P,
) -> BoxStream<'static, Option<Lease>>
where
    P: Fn() -> bool + Send + Sync + 'static,
{
    let events = events(&api, namespace);
    let lookout = Lookout { api, random, idle, events, shown: false, polls: 0 };
    stream::unfold(lookout, |mut lookout| async move { Some((lookout.next().await, lookout)) }).boxed()
}

fn events(api: &LeaseApi, namespace: &str) -> Events {
    let resource = ApiResource {
        group: "coordination.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "coordination.k8s.io/v1".to_owned(),
        kind: "Lease".to_owned(),
        plural: "leases".to_owned(),
    };
    let leases = Api::<DynamicObject>::namespaced_with(api.client.clone(), namespace, &resource);
    watcher(leases, watcher::Config::default().fields(&format!("metadata.name={}", api.name))).boxed()
}

impl<P: Fn() -> bool> Lookout<P> {
    async fn next(&mut self) -> Option<Lease> {
        loop {
            if self.polls > 0 {
                self.polls -= 1;
                if let Some(seen) = self.poll().await {
                    return seen;
                }
                continue;
            }
            match self.events.next().await {
                Some(Ok(Event::Init)) => self.shown = false,
                Some(Ok(Event::InitApply(object) | Event::Apply(object))) => {
                    self.shown = true;
                    // One that cannot be read says nothing; the candidate's own tries meet it too.
                    if let Some(lease) = decode(&object) {
                        return Some(lease);
                    }
                }
                Some(Ok(Event::InitDone)) if !self.shown => return None,
                Some(Ok(Event::InitDone)) => {}
                Some(Ok(Event::Delete(_))) => return None,
                Some(Err(why)) => self.polls = if is_forbidden(&why) { FORBIDDEN } else { 1 },
                None => self.polls = 1,
            }
        }
    }

    /// One look after a pause; `None` if there is nothing to tell.
    async fn poll(&mut self) -> Option<Option<Lease>> {
        tokio::time::sleep(self.random.jitter(POLL.0, POLL.1)).await;
        if (self.idle)() {
            return None;
        }
        match self.api.get(self.api.clock.now() + PATIENCE).await {
            Lookup::Present(lease) => Some(Some(lease)),
            Lookup::Absent => Some(None),
            Lookup::Unknown(_) => None,
        }
    }
}

fn decode(object: &DynamicObject) -> Option<Lease> {
    serde_json::to_value(object).ok().and_then(|json| Lease::decode(json).ok())
}

fn is_forbidden(why: &watcher::Error) -> bool {
    let code = match why {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => return false,
    };
    matches!(code, 401 | 403)
}
