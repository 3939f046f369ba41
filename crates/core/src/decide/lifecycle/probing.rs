//! When the instances are listed next.

use std::time::Duration;

use super::facts::NodeFacts;
use crate::{rate::Backoff, time::Tick};

/// The longest time between two listings: what a quiet cluster gets, twelve an hour.
pub const IDLE: Duration = Duration::from_secs(300);

/// The shortest time between two listings, whatever the flags say.
const BUSIEST: Duration = Duration::from_secs(1);

/// Whether a change of a node is a reason to look at the instances now: it turned `NotReady`, or somebody said about a node
/// that is `NotReady` that its instance goes. A node that has only just come is not: it turns Ready, or is safe for a while.
#[must_use]
pub fn alarming(before: &NodeFacts, after: &NodeFacts) -> bool {
    let expected = |node: &NodeFacts| node.is_expected_to_be_gone();
    before.uid == after.uid && !after.ready && (before.ready || expected(after) && !expected(before))
}

/// The schedule of listings of one cloud.
///
/// - Quiet: one every [`IDLE`].
/// - A node turns `NotReady`: one at once, then after `--node-monitor-period`, doubling up to [`IDLE`].
/// - However many nodes turn `NotReady`, two listings are never closer than `--node-monitor-period`, and one serves
///   all nodes.
/// - A listing made for another reason counts: tell [`listed`](Self::listed) about every one, failed ones included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probing {
    wait: Backoff,
    /// How often the wait was used since a node turned `NotReady`; quiet times need the longest.
    waits: u32,
    last: Option<Tick>,
    due: Tick,
}

impl Probing {
    /// A schedule whose first listing is due at once. `period` is `--node-monitor-period`.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        let period = period.max(BUSIEST);
        let wait = Backoff { first: period, longest: IDLE.max(period) };
        Self { wait, waits: u32::MAX, last: None, due: Tick::ZERO }
    }

    /// When the instances are to be listed next.
    #[must_use]
    pub const fn next(&self) -> Tick {
        self.due
    }

    /// A node turned `NotReady`.
    pub fn alarm(&mut self, now: Tick) {
        self.waits = 0;
        self.ask_by(now);
    }

    /// A verdict wants another round at `at`.
    pub fn ask_by(&mut self, at: Tick) {
        let earliest = self.last.map_or(Tick::ZERO, |last| last + self.wait.first);
        self.due = self.due.min(at.max(earliest));
    }

    /// A listing ended, well or badly. `doubts` says whether nodes of this cloud are `NotReady` still.
    pub fn listed(&mut self, ended: Tick, doubts: bool) {
        if !doubts {
            self.waits = u32::MAX;
        }
        self.waits = self.waits.saturating_add(1);
        self.last = Some(ended);
        self.due = ended + self.wait.after(self.waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);

    fn at(secs: u64) -> Tick {
        Tick::from_secs(secs)
    }

    fn quiet() -> Probing {
        let mut probing = Probing::new(PERIOD);
        probing.listed(at(1_000), false);
        probing
    }

    /// The listings of the next `secs`, each taking no time.
    fn run(probing: &mut Probing, from: u64, secs: u64, doubts: bool) -> Vec<u64> {
        let mut listings = Vec::new();
        while probing.next() <= at(from + secs) {
            let now = probing.next();
            listings.push(now.0.as_secs() - from);
            probing.listed(now, doubts);
        }
        listings
    }

    #[test]
    fn a_node_that_turns_not_ready_or_is_said_to_go_alarms() {
        let node = |ready, declared_gone| NodeFacts {
            name: "a".into(),
            uid: "u".into(),
            ready,
            uninitialised: false,
            deleting: false,
            marked_shut_down: false,
            autoscaler_removes: false,
            declared_gone,
            tie: super::super::Tie::NoId,
            first_seen: Tick::ZERO,
        };
        let reborn = NodeFacts { uid: "v".into(), ..node(false, true) };
        let table = [
            ("turns NotReady", node(true, false), node(false, false), true),
            ("is NotReady", node(false, false), node(false, false), false),
            ("turns Ready", node(false, false), node(true, false), false),
            ("is Ready", node(true, false), node(true, true), false),
            ("is said to go", node(false, false), node(false, true), true),
            ("is still said to go", node(false, true), node(false, true), false),
            ("another of that name", node(true, false), reborn, false),
        ];
        for (case, before, after, want) in table {
            assert_eq!(alarming(&before, &after), want, "{case}");
        }
    }

    #[test]
    fn the_first_listing_is_due_at_once() {
        assert_eq!(Probing::new(PERIOD).next(), Tick::ZERO);
    }

    #[test]
    fn a_quiet_hour_has_twelve_listings() {
        let listings = run(&mut quiet(), 1_000, 3_600, false);
        assert_eq!(listings.len(), 12, "L7-101");
        assert_eq!(listings[..2], [300, 600]);
    }

    #[test]
    fn a_node_turning_not_ready_is_looked_at_often_and_then_less() {
        let mut probing = quiet();
        probing.alarm(at(1_010));
        let listings = run(&mut probing, 1_010, 1_000, true);
        assert_eq!(listings, [0, 5, 15, 35, 75, 155, 315, 615, 915]);
    }

    #[test]
    fn long_doubts_cost_at_most_ten_listings_more() {
        let mut probing = quiet();
        for node in 0..200 {
            probing.alarm(at(1_010) + Duration::from_millis(node));
        }
        let listings = run(&mut probing, 1_010, 3_600, true);
        assert!(listings.len() <= 12 + 10, "L7-102 {}", listings.len());
    }

    #[test]
    fn alarms_are_answered_together() {
        let mut probing = quiet();
        probing.alarm(at(1_002));
        assert_eq!(probing.next(), at(1_005), "not closer than the period");
        probing.alarm(at(1_004));
        assert_eq!(probing.next(), at(1_005), "one listing for both");
        probing.listed(at(1_005), true);
        probing.listed(at(1_010), true);
        assert_eq!(probing.next(), at(1_020));
        probing.alarm(at(1_016));
        assert_eq!(probing.next(), at(1_016), "a new alarm starts over");
        probing.listed(at(1_016), true);
        assert_eq!(probing.next(), at(1_021));
    }

    #[test]
    fn the_end_of_all_doubts_ends_the_hurry() {
        let mut probing = quiet();
        probing.alarm(at(1_010));
        probing.listed(at(1_010), true);
        probing.listed(at(1_015), false);
        assert_eq!(probing.next(), at(1_315));
        probing.listed(at(1_315), true);
        assert_eq!(probing.next(), at(1_615), "an old doubt does not bring it back");
    }

    #[test]
    fn a_confirmation_can_be_asked_for() {
        let mut probing = quiet();
        probing.ask_by(at(1_100));
        assert_eq!(probing.next(), at(1_100));
        probing.ask_by(at(1_200));
        assert_eq!(probing.next(), at(1_100), "the earliest wish counts");
        probing.ask_by(at(1_001));
        assert_eq!(probing.next(), at(1_005), "not closer than the period");
        probing.listed(at(1_005), false);
        assert_eq!(probing.next(), at(1_305), "a wish is not an alarm");
    }

    #[test]
    fn odd_periods_are_bent_into_shape() {
        let mut slow = Probing::new(Duration::from_secs(1_000));
        slow.listed(at(0), false);
        assert_eq!(slow.next(), at(1_000), "never more often than asked for");
        slow.alarm(at(10));
        assert_eq!(slow.next(), at(1_000));
        let mut hasty = Probing::new(Duration::ZERO);
        hasty.listed(at(0), false);
        hasty.alarm(at(0));
        assert_eq!(run(&mut hasty, 0, 10, true), [1, 2, 4, 8], "never without a pause");
    }
}
