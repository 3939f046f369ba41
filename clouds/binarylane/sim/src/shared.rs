//! The state that all handles and requests of one cloud share.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{Clock, Random, Tick};
use serde_json::Value;
use sim_kit::{CallLog, Decision, Harm, Planner, Rules};

use crate::{
    faults::{Fault, Request},
    journal::Entry,
    settings::SimSettings,
    tokens::{Access, Tokens},
    world::{Moment, World},
};

/// Changes the body of an answer before it is sent.
pub(crate) type Editor = Box<dyn FnMut(&Request, &mut Value) + Send>;

pub(crate) struct State {
    pub(crate) world: World,
    /// Another account, for requests with a token of it.
    pub(crate) elsewhere: World,
    pub(crate) tokens: Tokens,
    pub(crate) planner: Planner<Request, Harm>,
    pub(crate) rules: Rules<Fault>,
    pub(crate) editor: Option<Editor>,
    pub(crate) journal: CallLog<Entry>,
    /// Requests that were sent and have not taken effect yet.
    pub(crate) under_way: usize,
    /// The latest requests, as far as the rate limit looks back.
    recent: VecDeque<Tick>,
    /// How far this cloud's clock is ahead of the one that was handed in.
    ahead: Duration,
}

impl State {
    pub(crate) fn account(&mut self, access: Access) -> &mut World {
        if access == Access::OtherAccount { &mut self.elsewhere } else { &mut self.world }
    }

    /// What goes wrong with a request: what was planned for it, else the rate limit, else what the rules say.
    pub(crate) fn decide_fault(&mut self, request: &Request, now: Tick) -> Decision {
        let planned = self.planner.decide(request).or_else(|| self.exceeds_rate(now));
        planned.map_or_else(|| self.rules.decide(request), Decision::from)
    }

    fn exceeds_rate(&mut self, now: Tick) -> Option<Harm> {
        let limit = self.world.settings.rate_limit?;
        self.recent.retain(|at| now.since(*at) < limit.within);
        if self.recent.len() < limit.requests {
            self.recent.push_back(now);
            return None;
        }
        let free =
            self.recent.front().map_or(limit.within, |first| limit.within.saturating_sub(now.since(*first)));
        let seconds = u32::try_from(free.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        Some(Harm::Status { code: 429, retry_after: Some(seconds) })
    }

    /// Lets everything go well from now on.
    pub(crate) fn stop_faults(&mut self) {
        self.planner.clear();
        self.editor = None;
        self.rules.clear();
    }
}

pub(crate) struct Shared {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(clock: Arc<dyn Clock>, random: Random, settings: SimSettings) -> Self {
        let random = Arc::new(random);
        let at = Moment { tick: clock.now(), wall: clock.wall() };
        let (world, elsewhere) = Self::accounts(settings, &random, at);
        let state = State {
            world,
            elsewhere,
            tokens: Tokens::default(),
            planner: Planner::default(),
            rules: Rules::default(),
            editor: None,
            journal: CallLog::default(),
            under_way: 0,
            recent: VecDeque::new(),
            ahead: Duration::ZERO,
        };
        Self { state: Mutex::new(state), clock, random }
    }

    fn accounts(settings: SimSettings, random: &Arc<Random>, at: Moment) -> (World, World) {
        let other = SimSettings { instances: 0, ..settings.clone() };
        (World::new(settings, Arc::clone(random), 0, at), World::new(other, Arc::clone(random), 1, at))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves plain state behind that can still be read.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn moment(&self) -> Moment {
        let ahead = self.lock().ahead;
        let wall = self.clock.wall();
        Moment { tick: self.clock.now() + ahead, wall: wall.checked_add(ahead).unwrap_or(wall) }
    }

    /// Moves the cloud's clock forward.
    pub(crate) fn advance(&self, how_far: Duration) {
        let mut state = self.lock();
        state.ahead = state.ahead.saturating_add(how_far);
    }

    /// How long a request takes.
    pub(crate) fn draw_latency(&self) -> Duration {
        let (latency, jitter) = {
            let state = self.lock();
            (state.world.settings.latency, state.world.settings.jitter.clamp(0.0, 1.0))
        };
        if latency.is_zero() || jitter == 0.0 {
            return latency;
        }
        latency.mul_f64(1.0 - jitter * self.random.fraction())
    }

    /// Back to the initial state, without faults and with an empty journal. Tokens and settings stay.
    pub(crate) fn reset(&self) {
        let at = self.moment();
        let mut state = self.lock();
        let (world, elsewhere) = Self::accounts(state.world.settings.clone(), &self.random, at);
        (state.world, state.elsewhere) = (world, elsewhere);
        state.stop_faults();
        state.journal = CallLog::default();
        state.recent.clear();
    }
}
