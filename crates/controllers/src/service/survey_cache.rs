//! The listings of load balancers of one cloud, fetched once for all Services that need them (law 7).
//!
//! A survey is shared while it is young, with one exception: one that was begun before a load balancer's last mutation
//! may not show that mutation, so it never serves that load balancer.

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
const TIMEOUT: Duration = Duration::from_secs(60);
/// After a survey failed none is tried for so long, whoever asks: what fails for one fails for all.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);

struct Finished {
    survey: Result<Survey>,
    number: u64,
    stamp: Stamp,
    begun: Tick,
    ended: Tick,
}

type InFlight = Shared<BoxFuture<'static, Arc<Finished>>>;

#[derive(Default)]
struct State {
    freshness: Freshness,
    newest: Option<Arc<Finished>>,
    in_flight: Option<InFlight>,
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

/// The newest survey of one cloud, and the one under way.
pub(crate) struct SurveyCache {
    cloud: Cloud,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

enum Next {
    Have(Result<Survey>),
    Await(InFlight),
}

impl SurveyCache {
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
                Next::Await(in_flight) => {
                    let finished = in_flight.await;
                    self.finish(&finished);
                }
            }
        }
    }

    /// Why a turn towards `goal` need not be tried: the cloud is away, and the last such turn failed because of it too.
    /// Both are asked because a part of a cloud can be away alone.
    pub(crate) fn away(&self, goal: Goal) -> Option<Error> {
        let silent = lock(&self.state).silent.get(place(goal)).is_some_and(|silent| *silent);
        if silent { self.cloud.inventory.away() } else { None }
    }

    /// Takes in how a turn towards `goal` ended.
    pub(crate) fn heard(&self, goal: Goal, turn: &Turn) {
        let why = match &turn.end {
            TurnEnd::Failed(why) | TurnEnd::Unknown(why) => Some(why).filter(|why| is_silence(why)),
            _ => None,
        };
        if let Some(silent) = lock(&self.state).silent.get_mut(place(goal)) {
            *silent = why.is_some();
        }
        if let Some(why) = why {
            self.cloud.inventory.report(why);
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
            let pauses = newest.survey.is_err() && now.since(newest.ended) < PAUSE_AFTER_FAILURE;
            if pauses || (fits && newest.survey.is_ok()) {
                return Next::Have(newest.survey.clone());
            }
        }
        if let Some(in_flight) = &state.in_flight {
            return Next::Await(in_flight.clone());
        }
        state.begun += 1;
        let in_flight = self.begin(state.begun, state.freshness.begin(), now);
        state.in_flight = Some(in_flight.clone());
        Next::Await(in_flight)
    }

    fn begin(&self, number: u64, stamp: Stamp, begun: Tick) -> InFlight {
        let (cloud, clock) = (self.cloud.clone(), Arc::clone(&self.clock));
        let in_flight = async move {
            let call = Call::new(begun + TIMEOUT, Arc::new(ReadOnly));
            let ask = async {
                match cloud.load_balancers() {
                    Some(balancers) => balancers.survey(&call).await,
                    None => Err(Error::permanent(format!("{} has no load balancers", cloud.name()))),
                }
            };
            // A panic here would otherwise reach everybody who waits.
            let survey = AssertUnwindSafe(ask).catch_unwind().await.unwrap_or_else(|_| {
                Err(Error::permanent("internal error: looking at the load balancers panicked; see the log"))
            });
            Arc::new(Finished { survey, number, stamp, begun, ended: clock.now() })
        };
        in_flight.boxed().shared()
    }

    fn finish(&self, finished: &Arc<Finished>) {
        let mut state = lock(&self.state);
        if state.newest.as_ref().is_none_or(|newest| newest.number < finished.number) {
            state.freshness.forget_before(finished.stamp);
            state.newest = Some(Arc::clone(finished));
            state.in_flight = None;
        }
    }
}

impl fmt::Debug for SurveyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SurveyCache").field("cloud", &self.cloud.name()).finish_non_exhaustive()
    }
}
