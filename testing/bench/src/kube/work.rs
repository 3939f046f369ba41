//! What clients and watchers do.

use std::ops::AddAssign;
use std::sync::Arc;

use embedded_kube::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{BenchError, Client};
use super::mirror::{Mirror, WatchEvent};
use super::objects::{self, Kind};
use super::{Load, Until};

/// The mark on the object that is written last.
const LAST: &str = "/metadata/labels/last";

/// Writes made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) nodes: u64,
    pub(crate) services: u64,
}

impl Counts {
    pub(crate) fn of(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Node => self.nodes,
            Kind::Service => self.services,
        }
    }

    fn one(&mut self, kind: Kind) {
        match kind {
            Kind::Node => self.nodes += 1,
            Kind::Service => self.services += 1,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.services += other.services;
    }
}

/// Makes all objects.
pub(crate) async fn fill(client: &Client, load: &Load) -> Result<(), BenchError> {
    for (kind, count) in [(Kind::Node, load.nodes), (Kind::Service, load.services)] {
        for number in 0..count {
            client.post(kind.path(), &objects::object(kind, number)).await?;
        }
    }
    Ok(())
}

/// One client: patches any object, again and again, each time with something new.
pub(crate) async fn patches(client: Client, load: Arc<Load>, number: usize) -> Result<Counts, BenchError> {
    let mut random = fastrand::Rng::with_seed(u64::try_from(number).unwrap_or_default());
    let started = Instant::now();
    let (mut counts, mut turn) = (Counts::default(), 0u64);
    loop {
        let over = match load.until {
            Until::Elapsed(limit) => started.elapsed() >= limit,
            Until::Patches(limit) => turn >= limit,
        };
        let objects = load.nodes + load.services;
        if over || objects == 0 {
            return Ok(counts);
        }
        let any = random.usize(0..objects);
        let (kind, which) =
            if any < load.nodes { (Kind::Node, any) } else { (Kind::Service, any - load.nodes) };
        let labels = json!({"metadata": {"labels": {"turn": format!("{number}-{turn}")}}});
        client.patch(&kind.path_of(which), &labels).await?;
        counts.one(kind);
        turn += 1;
        // Calls in memory never wait, so let other tasks run, as a network would.
        tokio::task::yield_now().await;
    }
}

/// Writes what every watcher waits for.
pub(crate) async fn mark_the_end(client: &Client, load: &Load) -> Result<Counts, BenchError> {
    let mut counts = Counts::default();
    for (kind, count) in [(Kind::Node, load.nodes), (Kind::Service, load.services)] {
        if count > 0 {
            client.patch(&kind.path_of(0), &json!({"metadata": {"labels": {"last": "yes"}}})).await?;
            counts.one(kind);
        }
    }
    Ok(counts)
}

/// A watcher and the state that it has rebuilt.
#[derive(Debug)]
pub(crate) struct Watched {
    client: Client,
    pub(crate) kind: Kind,
    pub(crate) mirror: Mirror,
    /// How often it was too slow and had to list again.
    pub(crate) relists: u64,
    body: Body,
}

impl Watched {
    /// Lists, and watches from there on.
    pub(crate) async fn open(client: Client, kind: Kind) -> Result<Self, BenchError> {
        let mirror = Mirror::of_list(client.get_json(kind.path()).await?)?;
        let body = client.watch(kind.path(), mirror.version()).await?;
        Ok(Self { client, kind, mirror, relists: 0, body })
    }

    /// Reads until the mark of the end.
    pub(crate) async fn follow(mut self) -> Result<Self, BenchError> {
        let marked = |object: &Value| object.pointer(LAST).is_some();
        while let Some(frame) = self.body.frame().await {
            let Ok(line) = frame?.into_data() else { continue };
            match self.mirror.apply(serde_json::from_slice(&line)?)? {
                WatchEvent::Change(key) if self.mirror.get(&key).is_some_and(marked) => return Ok(self),
                WatchEvent::Change(_) | WatchEvent::Bookmark => {}
                WatchEvent::Expired => {
                    let again = Self::open(self.client.clone(), self.kind).await?;
                    self.mirror.renew(again.mirror);
                    self.body = again.body;
                    self.relists += 1;
                    if self.mirror.objects().any(marked) {
                        return Ok(self);
                    }
                }
            }
        }
        Err(BenchError::Watch("the watch ended before the last write".to_owned()))
    }
}
