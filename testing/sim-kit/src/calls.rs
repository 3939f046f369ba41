//! The log of calls, and what a server says about the outcome of each.

use std::collections::VecDeque;

use serde::Serialize;

use crate::faults::Harm;

/// What the client heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// An answer with this status code.
    Answered(u16),
    /// Nothing, not all of it, or another answer, although the request was carried out and had this status.
    Lost(u16),
    /// Nothing: the request never arrived.
    Dropped,
}

impl Outcome {
    /// The outcome of a request that was harmed in this way, or not at all, and had this status.
    pub const fn new(harm: Option<&Harm>, status: u16) -> Self {
        match harm {
            Some(Harm::LostCall) => Self::Dropped,
            Some(Harm::LostAnswer | Harm::Stall { .. } | Harm::Truncated | Harm::Masked { .. }) => {
                Self::Lost(status)
            }
            _ => Self::Answered(status),
        }
    }

    /// The status of the answer, whether it got through or not; `None` for a request that never arrived.
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Answered(status) | Self::Lost(status) => Some(status),
            Self::Dropped => None,
        }
    }

    /// Whether the request was carried out and did not fail.
    pub fn succeeded(self) -> bool {
        self.status().is_some_and(|status| status < 300)
    }
}

/// How many calls are remembered.
const CAPACITY: usize = 200_000;

/// The newest calls, in the order in which they took effect.
#[derive(Debug)]
pub struct CallLog<C> {
    calls: VecDeque<C>,
    next: u64,
}

impl<C> Default for CallLog<C> {
    fn default() -> Self {
        Self { calls: VecDeque::new(), next: 0 }
    }
}

impl<C> CallLog<C> {
    /// The number of the next call: 0, 1, 2 and so on, each only once.
    pub fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Remembers a call, in place of the oldest one when the log is full.
    pub fn push(&mut self, call: C) {
        if self.calls.len() == CAPACITY {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
    }

    /// The remembered calls, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.calls.iter()
    }

    /// Forgets the calls; numbers go on.
    pub fn clear(&mut self) {
        self.calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_follows_from_what_went_wrong() {
        let table = [
            (None, Outcome::Answered(201), Some(201)),
            (Some(Harm::status(503)), Outcome::Answered(201), Some(201)),
            (Some(Harm::LostAnswer), Outcome::Lost(201), Some(201)),
            (Some(Harm::Truncated), Outcome::Lost(201), Some(201)),
            (Some(Harm::Masked { code: 504, empty: false }), Outcome::Lost(201), Some(201)),
            (Some(Harm::LostCall), Outcome::Dropped, None),
        ];
        for (harm, want, status) in table {
            let outcome = Outcome::new(harm.as_ref(), 201);
            assert_eq!((outcome, outcome.status()), (want, status), "{harm:?}");
        }
    }

    #[test]
    fn a_full_log_forgets_the_oldest_call_and_numbers_go_on() {
        let mut log = CallLog::default();
        for _ in 0..=CAPACITY {
            let number = log.take_number();
            log.push(number);
        }
        assert_eq!((log.iter().count(), log.iter().next()), (CAPACITY, Some(&1)));
        log.clear();
        assert_eq!((log.iter().count(), log.take_number()), (0, CAPACITY as u64 + 1));
    }
}
