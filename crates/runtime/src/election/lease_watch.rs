//! Changes of the Lease, by a watch, or by polling where watching is forbidden.
//!
//! The election is correct without it: candidates try every few seconds. With it, a released Lease is taken over within
//! two seconds.

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

/// The interval of polling while there is no watch, and its jitter.
const POLL: (Duration, f64) = (Duration::from_millis(750), 0.6);
const PATIENCE: Duration = Duration::from_secs(5);
/// How many polls pass before a forbidden watch is tried again: about a minute.
const FORBIDDEN: u32 = 60;

type Events = BoxStream<'static, watcher::Result<Event<DynamicObject>>>;

struct LeaseWatch<P> {
    api: LeaseApi,
    random: Arc<Random>,
    idle: P,
    events: Events,
    /// Whether the listing in progress showed the Lease.
    shown: bool,
    /// How many polls are left before the watch is tried again.
    polls: u32,
}

/// The Lease, or `None` if there is none, whenever it may have changed. Never ends, and may repeat itself.
///
/// Nothing is polled while `idle` is true: the leader knows the Lease from its renewals.
pub(super) fn lease_changes<P>(
    api: LeaseApi,
    namespace: &str,
    random: Arc<Random>,
    idle: P,
) -> BoxStream<'static, Option<Lease>>
where
    P: Fn() -> bool + Send + Sync + 'static,
{
    let events = events(&api, namespace);
    let watch = LeaseWatch { api, random, idle, events, shown: false, polls: 0 };
    stream::unfold(watch, |mut watch| async move { Some((watch.next().await, watch)) }).boxed()
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

impl<P: Fn() -> bool> LeaseWatch<P> {
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
                    // One that cannot be decoded is ignored; the candidate's own tries meet it too.
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

    /// One poll after a pause; `None` if there is nothing to report.
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
