//! The state that all handles and requests of one cloud share.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{Clock, Random, Tick};
use serde_json::Value;
use sim_kit::{CallLog, Decision, Harm, Planner, Rules};

use super::{
    access::Access,
    faults::{Fault, Request},
    journal::Entry,
    settings::SimSettings,
    world::{Moment, World, draw_id},
};

/// Changes the body of an answer before it is sent.
pub(crate) type Editor = Box<dyn FnMut(&Request, &mut Value) + Send>;

pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) access: Access,
    pub(crate) planner: Planner<Request, Harm>,
    pub(crate) rules: Rules<Fault>,
    pub(crate) editor: Option<Editor>,
    pub(crate) journal: CallLog<Entry>,
    /// Requests that were sent and have not taken effect yet.
    pub(crate) under_way: usize,
    /// When the present period of the rate began, and how many requests there were in it.
    window: (Tick, u64),
}

impl State {
    /// What goes wrong with a request: what was planned for it or else what the rules say.
    pub(crate) fn decide_fault(&mut self, request: &Request) -> Decision {
        self.planner.decide(request).map_or_else(|| self.rules.decide(request), Decision::from)
    }

    /// Lets everything go well from now on.
    pub(crate) fn stop_faults(&mut self) {
        self.planner.clear();
        self.editor = None;
        self.rules.clear();
    }

    /// Counts a request; the wait until the next period if there were too many in this one.
    pub(crate) fn exceeds_rate(&mut self, now: Tick) -> Option<Duration> {
        let rate = self.world.settings.rate?;
        if now.since(self.window.0) >= rate.period {
            self.window = (now, 0);
        }
        self.window.1 += 1;
        (self.window.1 > rate.requests).then(|| rate.period.saturating_sub(now.since(self.window.0)))
    }
}

pub(crate) struct Shared {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    pub(crate) random: Arc<Random>,
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
        let access = Access::new(draw_id(&random, "acc"), &random);
        let world = World::new(access.account().to_owned(), settings, Arc::clone(&random), at);
        let state = State {
            world,
            access,
            planner: Planner::default(),
            rules: Rules::default(),
            editor: None,
            journal: CallLog::default(),
            under_way: 0,
            window: (at.tick, 0),
        };
        Self { state: Mutex::new(state), clock, random }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves plain state behind that can still be read.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { tick: self.clock.now(), wall: self.clock.wall() }
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

    /// Back to the initial state, without faults and with an empty journal. Credentials, tokens and settings stay.
    pub(crate) fn reset(&self) {
        let at = self.moment();
        let mut state = self.lock();
        let settings = state.world.settings.clone();
        let account = state.access.account().to_owned();
        state.world = World::new(account, settings, Arc::clone(&self.random), at);
        state.stop_faults();
        state.journal = CallLog::default();
    }
}
