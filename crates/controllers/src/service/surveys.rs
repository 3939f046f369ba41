//! The listings of load balancers of one cloud, taken once for all Services that need a look (law 7).
//!
//! A survey is shared while it is young, with one exception: one that was begun before a load balancer's last mutation
//! need not show that mutation, so it never serves that load balancer.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Clock, Error, LoadBalancers, Result,
    call::{Call, ReadOnly},
    decide::outage::is_silence,
    lb::{Freshness, Goal, LockKey, Stamp, Survey, Turn, TurnEnd},
    time::Tick,
};
use futures_util::future::{BoxFuture, FutureExt, Shared};

use crate::{clouds::Cloud, lock};

/// How long a survey may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A survey that failed is not tried again before this time, whoever asks: what fails for one fails for all.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(2);

struct Landed {
    survey: Result<Survey>,
    number: u64,
    stamp: Stamp,
    begun: Tick,
    ended: Tick,
}

type Flight = Shared<BoxFuture<'static, Arc<Landed>>>;

#[derive(Default)]
struct State {
    freshness: Freshness,
    newest: Option<Arc<Landed>>,
    flight: Option<Flight>,
    begun: u64,
    /// The last turn towards presence, and the last towards absence, failed as those do whose cloud is away.
    silent: [bool; 2],
}

const fn place(goal: Goal) -> usize {
    match goal {
        Goal::Present => 0,
        Goal::Gone => 1,
    }
}

/// The surveys of one cloud.
pub(crate) struct Surveys {
    cloud: Cloud,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

enum Next {
    Have(Result<Survey>),
    Await(Flight),
}

impl Surveys {
    pub(crate) fn new(cloud: Cloud, clock: Arc<dyn Clock>) -> Self {
        Self { cloud, clock, state: Mutex::default() }
    }

    /// The name of the cloud.
    pub(crate) fn name(&self) -> &str {
        self.cloud.name()
    }

    /// The cloud.
    pub(crate) const fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// The load balancers that are looked at.
    pub(crate) fn balancers(&self) -> Option<&dyn LoadBalancers> {
        self.cloud.load_balancers()
    }

    /// A survey that was begun at `not_before` or later and shows every mutation of `keys`.
    pub(crate) async fn survey(&self, keys: &[LockKey], not_before: Tick) -> Result<Survey> {
        loop {
            match self.next(keys, not_before) {
                Next::Have(survey) => return survey,
                Next::Await(flight) => {
                    let landed = flight.await;
                    self.land(&landed);
                }
            }
        }
    }

    /// Why a turn towards `goal` need not be tried: the cloud is away, and the last such turn found it so too. The one
    /// does not follow from the other, because a part of a cloud can be away alone.
    pub(crate) fn away(&self, goal: Goal) -> Option<Error> {
        let silent = lock(&self.state).silent.get(place(goal)).is_some_and(|silent| *silent);
        if silent { self.cloud.inventory.away() } else { None }
    }

    /// A turn towards `goal` ended so.
    pub(crate) fn heard(&self, goal: Goal, turn: &Turn) {
        let why = match &turn.end {
            TurnEnd::Failed(why) | TurnEnd::Unknown(why) => Some(why).filter(|why| is_silence(why)),
            _ => None,
        };
        if let Some(silent) = lock(&self.state).silent.get_mut(place(goal)) {
            *silent = why.is_some();
        }
        if let Some(why) = why {
            self.cloud.inventory.doubt(why);
        }
    }

    /// A mutation of the claimed things was answered, or given up.
    pub(crate) fn mutated(&self, keys: &[LockKey]) {
        lock(&self.state).freshness.mutated(keys);
    }

    /// How many were begun.
    pub(crate) fn count(&self) -> u64 {
        lock(&self.state).begun
    }

    fn next(&self, keys: &[LockKey], not_before: Tick) -> Next {
        let mut state = lock(&self.state);
        let now = self.clock.now();
        if let Some(newest) = &state.newest {
            let fits = newest.begun >= not_before && state.freshness.may_serve(newest.stamp, keys);
            let rests = newest.survey.is_err() && now.since(newest.ended) < REST_AFTER_FAILURE;
            if rests || (fits && newest.survey.is_ok()) {
                return Next::Have(newest.survey.clone());
            }
        }
        if let Some(flight) = &state.flight {
            return Next::Await(flight.clone());
        }
        state.begun += 1;
        let flight = self.begin(state.begun, state.freshness.begin(), now);
        state.flight = Some(flight.clone());
        Next::Await(flight)
    }

    fn begin(&self, number: u64, stamp: Stamp, begun: Tick) -> Flight {
        let (cloud, clock) = (self.cloud.clone(), Arc::clone(&self.clock));
        let flight = async move {
            let call = Call::new(begun + PATIENCE, Arc::new(ReadOnly));
            let ask = async {
                match cloud.load_balancers() {
                    Some(balancers) => balancers.survey(&call).await,
                    None => Err(Error::permanent(format!("{} has no load balancers", cloud.name()))),
                }
            };
            // A bug here would otherwise be met by everybody who waits, and by all who come after.
            let survey = AssertUnwindSafe(ask).catch_unwind().await.unwrap_or_else(|_| {
                Err(Error::permanent("internal error: looking at the load balancers panicked; see the log"))
            });
            Arc::new(Landed { survey, number, stamp, begun, ended: clock.now() })
        };
        flight.boxed().shared()
    }

    fn land(&self, landed: &Arc<Landed>) {
        let mut state = lock(&self.state);
        if state.newest.as_ref().is_none_or(|newest| newest.number < landed.number) {
            state.freshness.forget_before(landed.stamp);
            state.newest = Some(Arc::clone(landed));
            state.flight = None;
        }
    }
}

impl fmt::Debug for Surveys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surveys").field("cloud", &self.cloud.name()).finish_non_exhaustive()
    }
}
