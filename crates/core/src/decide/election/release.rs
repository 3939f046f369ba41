//! Whether the Lease may be released before it expires.
//!
//! After a release another replica may write a moment later. That is safe only if no write of ours can still take effect:
//! otherwise both would change the same things at once, in an unknown order. Waiting for the expiry costs the next leader
//! a few seconds and nothing else.

use crate::time::Tick;

/// The writes of a replica that may still take effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    under_way: u32,
    doubt_until: Option<Tick>,
}

impl Writes {
    /// A write was sent.
    pub const fn began(&mut self) {
        self.under_way = self.under_way.saturating_add(1);
    }

    /// A write ended. With `in_doubt_until` there was no answer, and it counts up to that time, the end of the claim that it
    /// was sent under: from then on others may write in any case.
    pub fn ended(&mut self, in_doubt_until: Option<Tick>) {
        self.under_way = self.under_way.saturating_sub(1);
        self.doubt_until = self.doubt_until.max(in_doubt_until);
    }

    /// Whether a write is in flight.
    pub const fn are_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// Whether no write can still take effect.
    pub fn are_over(&self, now: Tick) -> bool {
        self.under_way == 0 && self.doubt_until.is_none_or(|until| until <= now)
    }
}

/// Whether the Lease may be released at `now`, by a replica whose work `ended` by itself or was cut short.
pub fn may_release(ended: bool, writes: &Writes, now: Tick) -> bool {
    ended && writes.are_over(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_is_let_go_of_only_when_nothing_can_take_effect_any_more() {
        let now = Tick::from_secs(100);
        let writes =
            |under_way, doubt: Option<u64>| Writes { under_way, doubt_until: doubt.map(Tick::from_secs) };
        let table = [
            ("L9-506 nothing was ever sent", true, writes(0, None), true),
            ("L9-507 work was cut short", false, writes(0, None), false),
            ("L9-508 one is under way", true, writes(1, None), false),
            ("L9-509 one was not answered, and its claim still lasts", true, writes(0, Some(101)), false),
            ("L9-510 one was not answered, under a claim that is over", true, writes(0, Some(100)), true),
        ];
        for (case, ended, writes, want) in table {
            assert_eq!(may_release(ended, &writes, now), want, "{case}");
        }
    }

    #[test]
    fn doubt_lasts_as_long_as_the_longest_claim() {
        let mut writes = Writes::default();
        (0..3).for_each(|_| writes.began());
        writes.ended(Some(Tick::from_secs(20)));
        writes.ended(Some(Tick::from_secs(10)));
        writes.ended(None);
        assert!(!writes.are_over(Tick::from_secs(19)) && writes.are_over(Tick::from_secs(20)), "L9-511");
        writes.began();
        assert!(!writes.are_over(Tick::from_secs(30)), "L9-511");
    }
}
