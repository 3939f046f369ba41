//! A write, from the check of the claim to its answer.

use std::{fmt, sync::Arc};

use super::Call;
use crate::{
    error::Result,
    time::{Clock, Tick},
};

/// A write in flight. One that is dropped without [`answered`](Self::answered) is in doubt: it may still reach the server
/// and take effect.
#[must_use = "a write that is dropped counts as one that may still take effect"]
pub struct Write {
    call: Call,
    until: Tick,
    claim: Tick,
    doubtful: bool,
}

impl Write {
    pub(super) fn begin(call: &Call, now: Tick) -> Result<Self> {
        let (until, claim) = (call.write_until(now)?, call.claim(now)?);
        call.gate.write_began();
        Ok(Self { call: call.clone(), until, claim, doubtful: true })
    }

    /// Its deadline: that of the work, or the end of the claim if that is earlier.
    #[must_use]
    pub const fn until(&self) -> Tick {
        self.until
    }

    /// Checks the claim again: after every wait, and when the claim that it began under has ended.
    pub fn ask(&mut self, now: Tick) -> Result<Tick> {
        self.until = self.call.write_until(now)?;
        self.claim = self.call.claim(now)?;
        Ok(self.until)
    }

    /// The check for the innermost layer of a client, to be made after every wait and right before the request is sent.
    #[must_use]
    pub fn leave(&self, clock: Arc<dyn Clock>) -> Leave {
        Leave { call: self.call.clone(), clock }
    }

    /// It cannot take effect any more: the server answered, or never got it.
    pub fn answered(mut self) {
        self.doubtful = false;
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        self.call.gate.write_ended(self.doubtful.then_some(self.claim));
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Write")
            .field("until", &self.until)
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}

/// The check of the claim that a request carries through the layers of a client.
#[derive(Clone)]
pub struct Leave {
    call: Call,
    clock: Arc<dyn Clock>,
}

impl Leave {
    /// Whether the request may be sent now.
    pub fn ask(&self) -> Result<()> {
        self.call.write_until(self.clock.now()).map(|_| ())
    }

    /// The deadline of the work that it belongs to: waiting longer is useless.
    #[must_use]
    pub const fn deadline(&self) -> Tick {
        self.call.deadline()
    }
}

impl fmt::Debug for Leave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leave").field("call", &self.call).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use jiff::Timestamp;

    use super::*;
    use crate::{call::Gate, error::Category};

    struct Until(u64);

    impl Gate for Until {
        fn claim_until(&self) -> Option<Tick> {
            Some(Tick::from_secs(self.0))
        }
    }

    struct At(u64);

    impl Clock for At {
        fn now(&self) -> Tick {
            Tick::from_secs(self.0)
        }

        fn wall(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    #[derive(Default)]
    struct Counting(Mutex<(i32, Option<Tick>)>);

    impl Gate for Counting {
        fn claim_until(&self) -> Option<Tick> {
            Some(Tick::from_secs(115))
        }

        fn write_began(&self) {
            self.0.lock().unwrap().0 += 1;
        }

        fn write_ended(&self, in_doubt_until: Option<Tick>) {
            let mut seen = self.0.lock().unwrap();
            seen.0 -= 1;
            seen.1 = seen.1.max(in_doubt_until);
        }
    }

    #[test]
    fn a_write_is_counted_while_it_is_under_way() {
        let gate = Arc::new(Counting::default());
        let call = Call::new(Tick::from_secs(110), gate.clone());
        let seen = || *gate.0.lock().unwrap();
        let write = call.write(Tick::from_secs(100)).unwrap();
        assert_eq!((write.until(), seen()), (Tick::from_secs(110), (1, None)), "L9-503 sent");
        write.answered();
        assert_eq!(seen(), (0, None), "L9-503 answered");
        drop(call.write(Tick::from_secs(100)).unwrap());
        assert_eq!(
            seen(),
            (0, Some(Tick::from_secs(115))),
            "L9-504 given up: in doubt for as long as the claim"
        );
        assert!(call.write(Tick::from_secs(113)).is_err());
        assert_eq!(seen().0, 0, "L9-504 what may not be sent is not under way");
    }

    #[test]
    fn a_request_asks_again_when_it_leaves() {
        let call = Call::new(Tick::from_secs(110), Arc::new(Until(108)));
        let write = call.write(Tick::from_secs(100)).unwrap();
        assert_eq!(write.leave(Arc::new(At(105))).ask(), Ok(()), "L9-505 the reserve is left");
        let late = write.leave(Arc::new(At(106))).ask().unwrap_err();
        assert_eq!(late.category(), Category::Temporary, "L9-505 it waited for too long");
    }
}
