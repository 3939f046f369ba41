//! What all handles of one cloud and all its requests share.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{Clock, Random};
use serde_json::Value;

use super::{
    faults::{Fault, Request, Rules},
    journal::Journal,
    settings::SimSettings,
    tokens::{Access, Tokens},
    world::{Moment, World},
};

pub(crate) type Plan = Box<dyn FnMut(&Request) -> Option<Fault> + Send>;
/// Changes the body of an answer before it is sent.
pub(crate) type Editor = Box<dyn FnMut(&Request, &mut Value) + Send>;

pub(crate) struct State {
    pub(crate) world: World,
    /// Another project, for those who come with a token of it.
    pub(crate) elsewhere: World,
    pub(crate) tokens: Tokens,
    pub(crate) plan: Option<Plan>,
    pub(crate) rules: Rules,
    pub(crate) editor: Option<Editor>,
    pub(crate) journal: Journal,
    pub(crate) requests: u64,
    /// Requests that were sent and did not take effect yet.
    pub(crate) under_way: usize,
}

impl State {
    pub(crate) fn project(&mut self, access: Access) -> &mut World {
        if access == Access::OtherProject { &mut self.elsewhere } else { &mut self.world }
    }

    pub(crate) fn fate(&mut self, request: &Request) -> Option<Fault> {
        self.plan.as_mut().and_then(|plan| plan(request)).or_else(|| self.rules.decide(request))
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
        let (world, elsewhere) = Self::projects(settings, &random, at);
        let state = State {
            world,
            elsewhere,
            tokens: Tokens::default(),
            plan: None,
            rules: Rules::default(),
            editor: None,
            journal: Journal::default(),
            requests: 0,
            under_way: 0,
        };
        Self { state: Mutex::new(state), clock, random }
    }

    fn projects(settings: SimSettings, random: &Arc<Random>, at: Moment) -> (World, World) {
        let other = SimSettings { instances: 0, ..settings.clone() };
        (World::new(settings, Arc::clone(random), at), World::new(other, Arc::clone(random), at))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves plain state behind that can still be looked at.
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

    /// Back to the beginning: what was made, set and written down is gone. Tokens stay.
    pub(crate) fn reset(&self) {
        let at = self.moment();
        let mut state = self.lock();
        let (world, elsewhere) = Self::projects(state.world.settings.clone(), &self.random, at);
        (state.world, state.elsewhere) = (world, elsewhere);
        state.plan = None;
        state.editor = None;
        state.rules.clear();
        state.journal.clear();
        state.requests = 0;
    }
}
