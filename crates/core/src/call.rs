//! What every cloud call carries: its deadline, and whether it may write.

mod write;

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    error::{Error, Result},
    time::Tick,
};

pub use write::{Leave, Write};

/// A write is not sent with less of the leader's claim left than this: it could still be in flight when another replica
/// begins to write.
pub const CLAIM_RESERVE: Duration = Duration::from_secs(3);

/// How long a connect may take. The claim is checked before a write is handed to the HTTP client, which may still have to
/// connect, so a connect has to fit into the reserve.
pub const CONNECT_LIMIT: Duration = Duration::from_millis(2_500);

const _: () = assert!(CONNECT_LIMIT.as_millis() < CLAIM_RESERVE.as_millis());

/// Says until when this replica may write. Checked when a call is sent, never cached (law 9).
pub trait Gate: Send + Sync {
    /// The end of the present claim; `None` when there is none.
    fn claim_until(&self) -> Option<Tick>;

    /// A write is about to be sent. A claim is not released early while one may take effect.
    fn write_began(&self) {}

    /// A write ended. With `in_doubt_until` there was no answer, and it may take effect up to that time.
    fn write_ended(&self, _in_doubt_until: Option<Tick>) {}
}

/// Allows no writes: dry runs and standbys.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnly;

impl Gate for ReadOnly {
    fn claim_until(&self) -> Option<Tick> {
        None
    }
}

/// Allows all writes: election is off, so there is only one replica.
#[derive(Clone, Copy, Debug)]
pub struct Unguarded;

impl Gate for Unguarded {
    fn claim_until(&self) -> Option<Tick> {
        Some(Tick(Duration::MAX))
    }
}

/// The deadline and the gate of a piece of work that may need several requests.
#[derive(Clone)]
pub struct Call {
    deadline: Tick,
    gate: Arc<dyn Gate>,
}

impl Call {
    /// Work that must end by `deadline` and writes only as far as `gate` allows.
    pub fn new(deadline: Tick, gate: Arc<dyn Gate>) -> Self {
        Self { deadline, gate }
    }

    /// When the whole piece of work must end.
    #[must_use]
    pub const fn deadline(&self) -> Tick {
        self.deadline
    }

    /// The deadline of a read that is sent at `now`.
    pub fn read_until(&self, now: Tick) -> Result<Tick> {
        if self.deadline <= now {
            // Temporary, because it may be quicker next time.
            return Err(Error::temporary("the time for this piece of work is over"));
        }
        Ok(self.deadline)
    }

    /// The deadline of a write that is sent at `now`, if it may be sent at all.
    ///
    /// It is never later than the end of the claim, so a write that is in flight then is given up.
    pub fn write_until(&self, now: Tick) -> Result<Tick> {
        let deadline = self.read_until(now)?;
        self.claim(now).map(|claim| deadline.min(claim))
    }

    /// The end of the claim, if a write may be sent at `now`.
    fn claim(&self, now: Tick) -> Result<Tick> {
        match self.gate.claim_until() {
            Some(until) if until.since(now) >= CLAIM_RESERVE => Ok(until),
            // Temporary, because the claim may be renewed in a moment.
            Some(_) => Err(Error::temporary("the leader's claim is about to end; nothing is written")),
            None => {
                Err(Error::cancelled("this replica does not lead, or is about to stop; nothing is written"))
            }
        }
    }

    /// Begins a write, if one may be sent at `now`. It counts as in flight until it is [`answered`](Write::answered) or
    /// dropped.
    pub fn write(&self, now: Tick) -> Result<Write> {
        Write::begin(self, now)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Category;

    struct Until(u64);

    impl Gate for Until {
        fn claim_until(&self) -> Option<Tick> {
            Some(Tick::from_secs(self.0))
        }
    }

    #[test]
    fn a_write_needs_a_claim_that_outlives_it() {
        let now = Tick::from_secs(100);
        let call = |deadline, gate: Arc<dyn Gate>| Call::new(Tick::from_secs(deadline), gate);
        let table = [
            ("L9-1 no election", call(110, Arc::new(Unguarded)), Some(110)),
            ("L9-2 not the leader", call(110, Arc::new(ReadOnly)), None),
            ("L9-3 the claim ends before the call", call(110, Arc::new(Until(105))), Some(105)),
            ("L9-4 exactly the reserve is left", call(110, Arc::new(Until(103))), Some(103)),
            ("L9-5 less than the reserve is left", call(110, Arc::new(Until(102))), None),
            ("L9-6 the claim is over", call(110, Arc::new(Until(99))), None),
            ("L12-1 the work's time is over", call(100, Arc::new(Unguarded)), None),
        ];
        for (case, call, want) in table {
            assert_eq!(call.write_until(now).ok(), want.map(Tick::from_secs), "{case}");
        }
    }

    #[test]
    fn only_who_does_not_lead_lets_go_of_the_work() {
        let now = Tick::from_secs(100);
        let refusal = |deadline, gate: Arc<dyn Gate>| {
            Call::new(Tick::from_secs(deadline), gate).write_until(now).unwrap_err().category()
        };
        assert_eq!(refusal(110, Arc::new(ReadOnly)), Category::Cancelled, "L9-9 whoever leads starts afresh");
        assert_eq!(refusal(110, Arc::new(Until(102))), Category::Temporary, "L9-10 the claim may be renewed");
        assert_eq!(
            refusal(100, Arc::new(Unguarded)),
            Category::Temporary,
            "L12-3 it may be quicker next time"
        );
    }

    #[test]
    fn reads_need_no_claim() {
        let call = Call::new(Tick::from_secs(10), Arc::new(ReadOnly));
        assert_eq!(call.read_until(Tick::from_secs(9)), Ok(Tick::from_secs(10)));
        assert!(call.read_until(Tick::from_secs(10)).is_err());
        assert_eq!(call.deadline(), Tick::from_secs(10));
        assert!(format!("{call:?}").contains("10s"));
    }
}
