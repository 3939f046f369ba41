//! The instances of one cloud, listed once for everybody (law 7).
//!
//! Whoever needs to know asks for a listing that was begun no earlier than some moment. One that is known already or
//! under way serves if it is young enough; otherwise one is begun, and everybody who asks meanwhile waits for that one.
//! So the number of listings follows from time, never from the number of nodes.
//!
//! The listing also tells whether the cloud answers at all. When somebody met trouble there, one listing after the other is
//! asked for until one succeeds, rarely; everybody else waits meanwhile, and is woken then.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Clock, Instance, ProviderId, Random, Result,
    call::{Call, ReadOnly},
    decide::outage::{Outage, is_silence},
    error::Error,
    lookup::{Listing, Lookup},
    provider::Provider,
    time::Tick,
};
use futures_util::future::{BoxFuture, FutureExt, Shared};
use tokio::sync::{Notify, watch};

use crate::lock;

/// How long a listing may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A listing that succeeded is followed by another for the sake of a doubt no sooner than this: a cloud that fails now and
/// then, or one object that always does, costs a listing now and then.
const PROOF: Duration = Duration::from_secs(30);
/// By how much the rests between questions to a cloud that is away are stretched at most.
const JITTER: f64 = 0.5;

/// What a listing brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The instances, or why nothing was learnt.
    pub instances: Result<Listing<Instance>>,
    /// When the question was asked: nothing that happened later need show.
    pub begun: Tick,
    /// When the answer was there.
    pub ended: Tick,
}

type Flight = Shared<BoxFuture<'static, Arc<Snapshot>>>;

#[derive(Default)]
struct State {
    /// What was begun before counts no more.
    since: Tick,
    newest: Option<Arc<Snapshot>>,
    flight: Option<(Tick, Flight)>,
    listings: u64,
    outage: Outage,
}

/// The instances of one cloud.
pub struct Inventory {
    provider: Arc<dyn Provider>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    landed: watch::Sender<Tick>,
    /// How often the cloud came back.
    returned: watch::Sender<u64>,
    doubted: Notify,
}

enum Next {
    Have(Arc<Snapshot>),
    /// The listing to wait for, and whether it is young enough.
    Await(Flight, bool),
}

impl Inventory {
    /// An inventory about which nothing is known yet.
    pub fn new(provider: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Self {
        let (landed, returned) = (watch::Sender::default(), watch::Sender::default());
        Self { provider, clock, state: Mutex::default(), landed, returned, doubted: Notify::new() }
    }

    /// A listing that was begun at `not_before` or later.
    ///
    /// It ends although whoever asked for it stops waiting, as long as anybody else waits. Reading needs no claim, so a
    /// standby may ask too.
    pub async fn listing(&self, not_before: Tick) -> Arc<Snapshot> {
        loop {
            match self.next(not_before) {
                Next::Have(snapshot) => return snapshot,
                Next::Await(flight, serves) => {
                    let snapshot = flight.await;
                    self.land(&snapshot);
                    if serves {
                        return snapshot;
                    }
                }
            }
        }
    }

    /// The newest listing that is known, however old.
    pub fn newest(&self) -> Option<Arc<Snapshot>> {
        lock(&self.state).newest.clone()
    }

    /// Forgets what is known. A new term of leadership begins with it: whoever led meanwhile may have acted on newer
    /// listings, and an older one would undo that.
    pub fn forget(&self) {
        let mut state = lock(&self.state);
        *state = State { since: self.clock.now(), listings: state.listings, ..State::default() };
    }

    /// Changes whenever a listing ends, whoever asked for it.
    pub fn landings(&self) -> watch::Receiver<Tick> {
        self.landed.subscribe()
    }

    /// Why nobody needs to ask the cloud anything, while it is away.
    pub fn away(&self) -> Option<Error> {
        let state = lock(&self.state);
        let newest = state.newest.as_ref()?;
        let why = newest.instances.as_ref().err()?;
        let text = format!("{} does not answer", self.provider.name());
        state.outage.bars(self.clock.now().since(newest.ended)).then(|| why.clone().context(text))
    }

    /// Changes whenever the cloud answers again after it was away.
    pub fn returns(&self) -> watch::Receiver<u64> {
        self.returned.subscribe()
    }

    /// Somebody could not do what it wanted to do there, for this reason.
    pub fn doubt(&self, why: &Error) {
        if is_silence(why) {
            self.doubted.notify_one();
        }
    }

    /// Whenever the cloud is doubted, asks it until it answers. Never ends.
    pub async fn watch_over(&self, random: &Random) {
        loop {
            self.doubted.notified().await;
            let proof = self.newest().filter(|newest| newest.instances.is_ok());
            let believed = proof.map(|newest| (newest.begun + PROOF).since(self.clock.now()));
            tokio::time::sleep(believed.unwrap_or_default()).await;
            while self.listing(self.clock.now()).await.instances.as_ref().is_err_and(is_silence) {
                let rest = lock(&self.state).outage.rest();
                tokio::time::sleep(random.jitter(rest, JITTER)).await;
            }
            // Whoever doubted until now has its answer.
            let _ = self.doubted.notified().now_or_never();
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
        lock(&self.state).listings
    }

    fn next(&self, not_before: Tick) -> Next {
        let mut state = lock(&self.state);
        let not_before = not_before.max(state.since);
        let now = self.clock.now();
        if let Some(newest) = &state.newest {
            let rests = newest.instances.is_err() && now.since(newest.ended) < state.outage.rest();
            if newest.begun >= not_before || rests {
                return Next::Have(Arc::clone(newest));
            }
        }
        if let Some((begun, flight)) = &state.flight {
            return Next::Await(flight.clone(), *begun >= not_before);
        }
        state.listings += 1;
        let flight = self.begin(now);
        state.flight = Some((now, flight.clone()));
        // One that is begun now is as young as can be.
        Next::Await(flight, true)
    }

    fn begin(&self, begun: Tick) -> Flight {
        let (provider, clock) = (Arc::clone(&self.provider), Arc::clone(&self.clock));
        let listing = async move {
            let call = Call::new(begun + PATIENCE, Arc::new(ReadOnly));
            let instances = match provider.instances() {
                Some(instances) => {
                    let listing = AssertUnwindSafe(instances.list(&call)).catch_unwind().await;
                    listing.unwrap_or_else(|_| Err(bug(provider.name())))
                }
                None => Err(no_instances(provider.name())),
            };
            Arc::new(Snapshot { instances, begun, ended: clock.now() })
        };
        listing.boxed().shared()
    }

    fn land(&self, snapshot: &Arc<Snapshot>) {
        let mut state = lock(&self.state);
        let newer = state.newest.as_ref().is_none_or(|newest| newest.begun < snapshot.begun);
        if newer && snapshot.begun >= state.since {
            state.newest = Some(Arc::clone(snapshot));
            self.landed.send_replace(snapshot.begun);
            if state.outage.heard(&snapshot.instances) {
                tracing::info!(cloud = self.provider.name(), "a cloud that was away answers again");
                self.returned.send_modify(|times| *times += 1);
            }
            if let Err(why) = &snapshot.instances {
                self.doubt(why);
            }
        }
        if state.flight.as_ref().is_some_and(|(begun, _)| *begun == snapshot.begun) {
            state.flight = None;
        }
    }
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
