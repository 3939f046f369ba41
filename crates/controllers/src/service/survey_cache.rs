//! The survey of the load balancers of one cloud, shared by all Services that need it (law 7).
//!
//! A survey is shared while it is young, with one exception: one that was begun before a load balancer's last mutation
//! may not show that mutation, so it never serves that load balancer.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use cloudberth_core::{
    Clock, Result,
    decide::outage::is_silence,
    lb::{Fleet, Freshness, Goal, LockKey, Stamp, Survey, Turn, TurnEnd},
    time::Tick,
};

use super::{input::SyncInput, worker::MAX_AGE};
use crate::{clouds::Cloud, inventory::SurveyFleet, lock};

/// A survey, since when there is one, and which mutations it shows.
struct Begun {
    at: Tick,
    stamp: Stamp,
    survey: Survey,
}

#[derive(Default)]
struct State {
    newest: Option<Begun>,
    freshness: Freshness,
    /// The goals towards which the last turn failed as those do whose cloud is away.
    silent: Vec<Goal>,
}

/// The newest survey of one cloud.
pub(crate) struct SurveyCache {
    pub(crate) cloud: Cloud,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl SurveyCache {
    pub(crate) fn new(cloud: Cloud, clock: Arc<dyn Clock>) -> Self {
        Self { cloud, clock, state: Mutex::default() }
    }

    /// The name of the cloud.
    pub(crate) fn name(&self) -> &str {
        self.cloud.name()
    }

    /// A survey that was begun at `not_before` or later and shows every mutation of what the Service lays claim to. Nothing
    /// is asked here: a turn fetches what it needs, for all.
    ///
    /// There is none while the cloud is away and the last turn towards the same goal failed because of it too. Both are
    /// looked at because a part of a cloud can be away alone.
    pub(super) fn survey(&self, input: &SyncInput<'_>, not_before: Tick) -> Result<Survey> {
        let mut state = lock(&self.state);
        let silent = input.task().is_some_and(|(_, goal)| state.silent.contains(&goal));
        if let Some(why) = silent.then(|| self.cloud.inventory.away()).flatten() {
            return Err(why);
        }
        let serves = |newest: &&Begun| {
            newest.at >= not_before && state.freshness.may_serve(newest.stamp, input.keys())
        };
        if let Some(newest) = state.newest.as_ref().filter(serves) {
            return Ok(newest.survey.clone());
        }
        let (at, stamp) = (self.clock.now(), state.freshness.begin());
        let fleet: Arc<dyn Fleet> =
            Arc::new(SurveyFleet::new(Arc::clone(&self.cloud.inventory), at - MAX_AGE));
        let survey = input.balancers.survey(&fleet)?;
        state.freshness.forget_before(stamp);
        state.newest = Some(Begun { at, stamp, survey: survey.clone() });
        Ok(survey)
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
}

impl fmt::Debug for SurveyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SurveyCache").field("cloud", &self.cloud.name()).finish_non_exhaustive()
    }
}
