//! Time: the world's own, which is true, and that of each replica, which is not.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random, Tick};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// True time, as it passes in this run only, beginning at a fixed date.
pub(crate) struct RunClock(pub(crate) Instant);

impl Clock for RunClock {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000)
            .ok()
            .and_then(|t| t.checked_add(self.0.elapsed()).ok())
            .unwrap_or_default()
    }
}

/// The clock of a replica's instance: it began at another time, runs a little faster or slower than true time, and its
/// time of day is minutes off.
pub(crate) struct SkewedClock {
    world: Arc<dyn Clock>,
    began: Duration,
    /// Millionths of true time by which it runs fast.
    fast: u32,
    /// How many seconds of true time make one of its own, that aside.
    slowness: u32,
    wall_ahead: SignedDuration,
}

impl SkewedClock {
    /// A clock as chance has it: up to 400 millionths fast, up to five minutes off.
    pub(crate) fn draw(world: &Arc<dyn Clock>, random: &Random) -> Self {
        let below = |limit: u32| u32::try_from(random.bits() % u64::from(limit)).unwrap_or_default();
        Self {
            world: Arc::clone(world),
            began: Duration::from_millis(below(10_000_000).into()),
            fast: below(400),
            slowness: 1,
            wall_ahead: SignedDuration::from_secs(i64::from(below(600)) - 300),
        }
    }

    /// The same, at half the speed. No program can keep law 9 with that.
    pub(crate) fn slow(self) -> Self {
        Self { slowness: 2, ..self }
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Tick {
        let passed = self.world.now().0 / self.slowness;
        Tick(self.began + passed + passed * self.fast / 1_000_000)
    }

    fn wall(&self) -> Timestamp {
        let now = self.world.wall();
        now.checked_add(self.wall_ahead).unwrap_or(now)
    }
}
