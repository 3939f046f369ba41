//! The instances of one cloud, listed once for everybody (law 7).
//!
//! Whoever needs to know asks for a listing that was begun no earlier than some time. The newest serves, or the one
//! under way, if it is young enough; otherwise one is begun for everybody who asks meanwhile.
//!
//! The listing also tells whether the cloud answers at all. After a failed call it is listed now and then until it
//! answers; everybody else waits meanwhile, and is woken then.

use std::{
    collections::BTreeMap,
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cloudberth_core::{
    Clock, Instance, ProviderId, Random, Result,
    call::{Call, ReadOnly},
    decide::outage::{Outage, is_silence},
    error::Error,
    instance::InstanceListing,
    lb::{Fleet, SharedInstances},
    lookup::Lookup,
    provider::{Boxed, Provider},
    time::Tick,
};
use cloudberth_runtime::single_flight::{Landed, SingleFlight};
use futures_util::future::FutureExt;
use tokio::sync::{Notify, OnceCell, watch};

use crate::lock;

/// How long a listing may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A failure that is reported sooner than this after a listing that succeeded waits: a cloud that fails now and then, or
/// one object that always does, costs a listing now and then.
const PROOF: Duration = Duration::from_secs(30);
/// How old a listing may be that shows the addresses of nodes that have not changed: as old as those that nodes show.
const RECENT: Duration = Duration::from_secs(300);
/// By how much the rests between questions to a cloud that is away are stretched at most.
const JITTER: f64 = 0.5;

/// The instances of a cloud at one time, or why they are not known.
pub type Snapshot = Landed<Result<InstanceListing>>;

/// The instances of one cloud.
pub struct Inventory {
    provider: Arc<dyn Provider>,
    clock: Arc<dyn Clock>,
    flights: SingleFlight<Result<InstanceListing>>,
    outage: Mutex<Outage>,
    landed: watch::Sender<Tick>,
    /// How often the cloud came back.
    returned: watch::Sender<u64>,
    failed: Notify,
    /// How often it was told to forget.
    term: AtomicU64,
}

impl Inventory {
    /// An inventory about which nothing is known yet.
    pub fn new(provider: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Self {
        let (landed, returned) = (watch::Sender::default(), watch::Sender::default());
        let (flights, outage) = (SingleFlight::new(Arc::clone(&clock)), Mutex::default());
        Self {
            provider,
            clock,
            flights,
            outage,
            landed,
            returned,
            failed: Notify::new(),
            term: AtomicU64::default(),
        }
    }

    /// A listing that was begun at `not_before` or later, or one that failed so recently that asking again is no use.
    ///
    /// It goes on although whoever asked for it stops waiting, as long as anybody else waits. Reading needs no claim, so
    /// a standby may ask too.
    pub async fn listing(&self, not_before: Tick) -> Arc<Snapshot> {
        let serves = |newest: &Snapshot| {
            let age = self.clock.now().since(newest.ended);
            newest.begun >= not_before || newest.answer.is_err() && age < lock(&self.outage).rest()
        };
        let ask = |now| list(Arc::clone(&self.provider), now);
        self.flights.get(serves, ask, |snapshot| self.land(snapshot)).await
    }

    /// The newest listing that is known, however old.
    pub fn newest(&self) -> Option<Arc<Snapshot>> {
        self.flights.newest()
    }

    /// Forgets what is known. A new term of leadership begins with it: whoever led meanwhile may have acted on newer
    /// listings, and an older one would undo that.
    pub fn forget(&self) {
        self.flights.forget();
        self.term.fetch_add(1, Ordering::Relaxed);
        *lock(&self.outage) = Outage::default();
    }

    /// Changes whenever a listing ends, whoever asked for it.
    pub fn landings(&self) -> watch::Receiver<Tick> {
        self.landed.subscribe()
    }

    /// Why nobody needs to ask the cloud anything, while it is away.
    pub fn away(&self) -> Option<Error> {
        let newest = self.newest()?;
        let why = newest.answer.as_ref().err()?;
        let text = format!("{} does not answer", self.provider.name());
        let bars = lock(&self.outage).bars(self.clock.now().since(newest.ended));
        bars.then(|| why.clone().context(text))
    }

    /// Changes whenever the cloud answers again after it was away.
    pub fn returns(&self) -> watch::Receiver<u64> {
        self.returned.subscribe()
    }

    /// A call to the cloud failed for this reason. If it may be away, it is asked until it answers.
    pub fn report(&self, why: &Error) {
        if is_silence(why) {
            self.failed.notify_one();
        }
    }

    /// Whenever a failure was reported, asks the cloud until it answers. Never ends.
    pub async fn watch_over(&self, random: &Random) {
        loop {
            self.failed.notified().await;
            let proof = self.newest().filter(|newest| newest.answer.is_ok());
            let believed = proof.map(|newest| (newest.begun + PROOF).since(self.clock.now()));
            tokio::time::sleep(believed.unwrap_or_default()).await;
            while self.listing(self.clock.now()).await.answer.as_ref().is_err_and(is_silence) {
                let rest = lock(&self.outage).rest();
                tokio::time::sleep(random.jitter(rest, JITTER)).await;
            }
            // Failures that were reported until now are over.
            let _ = self.failed.notified().now_or_never();
        }
    }

    /// Asks the source itself about one instance.
    pub async fn ask(&self, call: &Call, id: &ProviderId) -> Lookup<Instance> {
        match self.provider.instances() {
            Some(instances) => instances.get(call, id).await,
            None => Lookup::Unknown(no_instances(self.provider.name())),
        }
    }

    /// Asks the source itself for an instance of this name, where the cloud can do that.
    pub async fn find(&self, call: &Call, name: &str) -> Lookup<Instance> {
        match self.provider.instances() {
            Some(instances) => instances.find(call, name).await,
            None => Lookup::Unknown(no_instances(self.provider.name())),
        }
    }

    /// How many listings were begun.
    pub fn listings(&self) -> u64 {
        self.flights.begun()
    }

    fn land(&self, snapshot: &Snapshot) {
        self.landed.send_replace(snapshot.begun);
        if lock(&self.outage).heard(&snapshot.answer) {
            tracing::info!(cloud = self.provider.name(), "cloud answers again");
            self.returned.send_modify(|times| *times += 1);
        }
        if let Err(why) = &snapshot.answer {
            self.report(why);
        }
    }
}

/// The instances of a cloud for one survey of its load balancers.
#[derive(Debug)]
pub struct SurveyFleet {
    inventory: Arc<Inventory>,
    not_before: Tick,
    /// Answers about instances that a listing lacks. Whoever asks about the same one waits for its answer, and for no other.
    asked: Mutex<BTreeMap<ProviderId, Arc<OnceCell<Lookup<Instance>>>>>,
}

impl SurveyFleet {
    /// Listings that were begun at `not_before` or later serve.
    pub fn new(inventory: Arc<Inventory>, not_before: Tick) -> Self {
        Self { inventory, not_before, asked: Mutex::default() }
    }
}

impl Fleet for SurveyFleet {
    fn listing(&self) -> Boxed<'_, SharedInstances> {
        Box::pin(async {
            let listing: SharedInstances = self.inventory.listing(self.not_before).await;
            listing
        })
    }

    fn ask<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async {
            let answer = Arc::clone(lock(&self.asked).entry(id.clone()).or_default());
            answer.get_or_init(|| self.inventory.ask(call, id)).await.clone()
        })
    }

    fn recent(&self) -> Option<SharedInstances> {
        let newest = self.inventory.newest()?;
        let is_recent = newest.begun + RECENT >= self.inventory.clock.now();
        is_recent.then_some(newest as SharedInstances)
    }

    fn term(&self) -> u64 {
        self.inventory.term.load(Ordering::Relaxed)
    }
}

async fn list(provider: Arc<dyn Provider>, begun: Tick) -> Result<InstanceListing> {
    let instances = provider.instances().ok_or_else(|| no_instances(provider.name()))?;
    let call = Call::new(begun + PATIENCE, Arc::new(ReadOnly));
    let listing = AssertUnwindSafe(instances.list(&call)).catch_unwind().await;
    listing.unwrap_or_else(|_| Err(bug(provider.name()))).map(InstanceListing::from)
}

fn no_instances(provider: &str) -> Error {
    Error::permanent(format!("{provider} has no instances"))
}

/// A bug that one listing met must not end all others.
fn bug(provider: &str) -> Error {
    tracing::error!(cloud = provider, "internal error: the listing of instances panicked");
    Error::permanent("internal error: the listing of instances panicked")
}

impl fmt::Debug for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listings = self.listings();
        f.debug_struct("Inventory")
            .field("cloud", &self.provider.name())
            .field("listings", &listings)
            .finish_non_exhaustive()
    }
}
