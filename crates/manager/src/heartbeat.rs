//! Whether the thread that does the work still turns.
//!
//! The port has a thread of its own and would go on to answer probes if the other one hung. A leader that hangs does not
//! renew its Lease, which the election's check notices; a standby, or a program without an election, needs this.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cloudberth_core::{Clock, Tick};

const EVERY: Duration = Duration::from_secs(1);
/// Far more than any turn takes, on any instance.
const TOLERANCE: Duration = Duration::from_secs(60);

/// Beats on one thread and can be felt on another. Clones are one and the same.
#[derive(Clone)]
pub struct Heartbeat {
    clock: Arc<dyn Clock>,
    last: Arc<AtomicU64>,
}

impl Heartbeat {
    /// One that has just beaten.
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        let new = Self { clock: Arc::clone(clock), last: Arc::default() };
        new.beat();
        new
    }

    /// Beats for as long as its runtime turns.
    pub async fn run(&self) {
        loop {
            self.beat();
            tokio::time::sleep(EVERY).await;
        }
    }

    /// The check for `/livez`.
    pub fn check(&self, now: Tick) -> Result<(), String> {
        let last = Tick(Duration::from_millis(self.last.load(Ordering::Relaxed)));
        match now.since(last) {
            age if age > TOLERANCE => Err(format!("nothing has been done for {} s", age.as_secs())),
            _ => Ok(()),
        }
    }

    fn beat(&self) {
        let now = u64::try_from(self.clock.now().0.as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Heartbeat").field(&self.last).finish()
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_http::surroundings::SystemClock;
    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_hangs_is_noticed() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let heart = Heartbeat::new(&clock);
        advance(TOLERANCE).await;
        assert_eq!(heart.check(clock.now()), Ok(()));
        advance(EVERY).await;
        assert_eq!(heart.check(clock.now()), Err("nothing has been done for 61 s".to_owned()), "L11-907");
        let _ = timeout(TOLERANCE * 3, heart.run()).await;
        assert_eq!(heart.check(clock.now()), Ok(()), "it turns again");
    }
}
