//! A client of a scripted cloud on virtual time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Call, Clock, Gate, Random, Secret, Tick,
    call::{ReadOnly, Unguarded},
};
use cloudberth_http::{Base, Builder, Client, TokenSource, surroundings::SystemClock, testing::Cloud};

pub const TOKEN: &str = "t0psecret-4711";

pub struct Stage {
    pub cloud: Cloud,
    pub clock: Arc<SystemClock>,
}

impl Stage {
    pub fn new() -> Self {
        let noon = "2031-05-06T12:00:00Z".parse().unwrap();
        Self { cloud: Cloud::new(), clock: Arc::new(SystemClock::starting_at(noon)) }
    }

    pub fn builder(&self, seed: u64) -> Builder {
        Client::builder(
            Base::parse("https://api.example.org/v1").unwrap(),
            self.cloud.transport(),
            self.clock.clone(),
            Arc::new(Random::seeded(seed)),
        )
        .authenticator(Arc::new(TokenSource::fixed(Secret::new(TOKEN).unwrap())))
    }

    pub fn client(&self) -> Client {
        self.builder(1).build()
    }

    /// Work that may write and has this long.
    pub fn call(&self, seconds: u64) -> Call {
        self.guarded(seconds, Arc::new(Unguarded))
    }

    /// Work of a replica that does not lead.
    pub fn standby(&self, seconds: u64) -> Call {
        self.guarded(seconds, Arc::new(ReadOnly))
    }

    pub fn guarded(&self, seconds: u64, gate: Arc<dyn Gate>) -> Call {
        Call::new(self.clock.now() + Duration::from_secs(seconds), gate)
    }

    pub fn millis(&self) -> u128 {
        self.clock.now().0.as_millis()
    }
}

/// A claim that a test moves, and what was written under it.
#[derive(Default)]
pub struct LeaderClaim {
    until: Mutex<Option<Tick>>,
    writes: Mutex<(i32, Option<Tick>)>,
}

impl LeaderClaim {
    pub fn until(seconds: u64) -> Arc<Self> {
        let claim = Self::default();
        claim.set(Some(Tick::from_secs(seconds)));
        Arc::new(claim)
    }

    pub fn set(&self, until: Option<Tick>) {
        *self.until.lock().unwrap() = until;
    }

    /// How many writes are under way, and until when one may still take effect.
    pub fn writes(&self) -> (i32, Option<Tick>) {
        *self.writes.lock().unwrap()
    }
}

impl Gate for LeaderClaim {
    fn claim_until(&self) -> Option<Tick> {
        *self.until.lock().unwrap()
    }

    fn write_began(&self) {
        self.writes.lock().unwrap().0 += 1;
    }

    fn write_ended(&self, in_doubt_until: Option<Tick>) {
        let mut writes = self.writes.lock().unwrap();
        *writes = (writes.0 - 1, writes.1.max(in_doubt_until));
    }
}
