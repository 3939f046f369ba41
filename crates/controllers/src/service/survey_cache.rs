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
    Clock, Error, Result,
    call::{Call, ReadOnly},
    decide::outage::is_silence,
    lb::{Fleet, Freshness, Goal, LockKey, Stamp, Survey, Turn, TurnEnd},
    time::Tick,
};
use cloudberth_runtime::single_flight::{Landed, SingleFlight};
use futures_util::future::FutureExt;

use super::worker::MAX_AGE;
use crate::{clouds::Cloud, inventory::SurveyFleet, lock};

/// How long a survey may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// After a survey failed none is tried for so long, whoever asks: what fails for one fails for all.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// A survey, and which mutations it shows.
type Surveyed = (Stamp, Result<Survey>);

#[derive(Default)]
struct State {
    freshness: Freshness,
    /// The goals towards which the last turn failed as those do whose cloud is away.
    silent: Vec<Goal>,
}

/// The newest survey of one cloud, and the one under way.
pub(crate) struct SurveyCache {
    pub(crate) cloud: Cloud,
    clock: Arc<dyn Clock>,
    flights: SingleFlight<Surveyed>,
    state: Mutex<State>,
}

impl SurveyCache {
    pub(crate) fn new(cloud: Cloud, clock: Arc<dyn Clock>) -> Self {
        let flights = SingleFlight::new(Arc::clone(&clock));
        Self { cloud, clock, flights, state: Mutex::default() }
    }

    /// The name of the cloud.
    pub(crate) fn name(&self) -> &str {
        self.cloud.name()
    }

    /// A survey that was begun at `not_before` or later and shows every mutation of `keys`.
    ///
    /// For a turn towards `goal` the cloud is not asked while it is away and the last such turn failed because of it too.
    /// Both are looked at because a part of a cloud can be away alone.
    pub(crate) async fn survey(
        &self,
        goal: Option<Goal>,
        keys: &[LockKey],
        not_before: Tick,
    ) -> Result<Survey> {
        let silent = goal.is_some_and(|goal| lock(&self.state).silent.contains(&goal));
        if let Some(why) = silent.then(|| self.cloud.inventory.away()).flatten() {
            return Err(why);
        }
        let serves = |newest: &Landed<Surveyed>| match &newest.answer {
            (stamp, Ok(_)) => {
                newest.begun >= not_before && lock(&self.state).freshness.may_serve(*stamp, keys)
            }
            (_, Err(_)) => self.clock.now().since(newest.ended) < PAUSE_AFTER_FAILURE,
        };
        let ask = |begun| look(self.cloud.clone(), lock(&self.state).freshness.begin(), begun);
        let landed = |newest: &Arc<Landed<Surveyed>>| {
            lock(&self.state).freshness.forget_before(newest.answer.0);
        };
        self.flights.get(serves, ask, landed).await.answer.1.clone()
    }

    /// Takes in how a turn towards `goal` ended.
    pub(crate) fn heard(&self, goal: Goal, turn: &Turn) {
        let why = match &turn.end {
            TurnEnd::Failed(why) | TurnEnd::Unknown(why) => Some(why).filter(|why| is_silence(why)),
            _ => None,
        };
        let silent = why.map(|_| goal);
        let mut state = lock(&self.state);
        state.silent.retain(|other| *other != goal);
        state.silent.extend(silent);
        drop(state);
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
        self.flights.begun()
    }
}

async fn look(cloud: Cloud, stamp: Stamp, begun: Tick) -> Surveyed {
    let call = Call::new(begun + TIMEOUT, Arc::new(ReadOnly));
    let fleet: Arc<dyn Fleet> = Arc::new(SurveyFleet::new(Arc::clone(&cloud.inventory), begun - MAX_AGE));
    let ask = async {
        match cloud.load_balancers() {
            Some(balancers) => balancers.survey(&call, &fleet).await,
            None => Err(Error::permanent(format!("{} has no load balancers", cloud.name()))),
        }
    };
    // A panic here would otherwise reach everybody who waits.
    let survey = AssertUnwindSafe(ask).catch_unwind().await.unwrap_or_else(|_| {
        Err(Error::permanent("internal error: looking at the load balancers panicked; see the log"))
    });
    (stamp, survey)
}

impl fmt::Debug for SurveyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SurveyCache").field("cloud", &self.cloud.name()).finish_non_exhaustive()
    }
}
