//! Which change of a node asks for a pass, and when it may begin.

use std::{collections::BTreeMap, time::Duration};

use crate::{time::Tick, view::NodeView};

/// The least time between the beginnings of two passes with the same trigger.
pub const PASS_GAP: Duration = Duration::from_secs(10);

/// The time between two passes that no change asks for, given `--route-reconciliation-period`. Changes of nodes are acted
/// on when they happen, so a pass is there to find what was edited by hand, and is never needed more often than
/// [`FULL_PASS`]. Add jitter.
#[must_use]
pub fn full_pass(period: Duration) -> Duration {
    period.max(FULL_PASS)
}

/// The least time between two passes that no change asks for.
pub const FULL_PASS: Duration = Duration::from_secs(300);

/// Why a pass runs: the key of the queue and the label of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// A node came, went, or changed in a way that routes depend on.
    NodeChange,
    /// Nothing happened; it was time to look.
    Periodic,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::NodeChange, Self::Periodic];

    /// The label value in metrics, and the key in the queue.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodeChange => "node_change",
            Self::Periodic => "periodic",
        }
    }
}

/// What a node event asks for. `None` before is a node that came, `None` after is one that went.
///
/// The same version twice is a resync. A node that was replaced under its name between two looks counts as changed:
/// the new one has no condition yet.
#[must_use]
pub fn trigger(before: Option<&NodeView>, after: Option<&NodeView>) -> Option<Trigger> {
    match (before, after) {
        (None, None) => None,
        (Some(old), Some(new)) => {
            let same = old.uid == new.uid && old.pod_cidrs == new.pod_cidrs && old.addresses == new.addresses;
            if same {
                (old.resource_version == new.resource_version).then_some(Trigger::Periodic)
            } else {
                Some(Trigger::NodeChange)
            }
        }
        _ => Some(Trigger::NodeChange),
    }
}

/// Keeps passes apart: the first begins at once, later ones [`PASS_GAP`] after the last one with the same trigger
/// began.
///
/// It remembers beginnings, not wishes, so a burst of events leaves no debt behind: however many there were, the next
/// pass is at most one gap away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    began: BTreeMap<Trigger, Tick>,
}

impl Pace {
    /// When a pass asked for at `now`, or again after a failed one, may begin.
    #[must_use]
    pub fn due(&self, trigger: Trigger, now: Tick) -> Tick {
        self.began.get(&trigger).map_or(now, |began| now.max(*began + PASS_GAP))
    }

    /// A pass begins now.
    pub fn begin(&mut self, trigger: Trigger, now: Tick) {
        self.began.insert(trigger, now);
    }
}

#[cfg(test)]
mod tests {
    use super::{Trigger::*, *};
    use crate::address::{AddressKind, NodeAddress};

    fn node() -> NodeView {
        NodeView {
            name: "n1".into(),
            uid: "u1".into(),
            resource_version: "7".into(),
            pod_cidrs: vec!["10.244.0.0/24".into()],
            addresses: vec![NodeAddress::recorded(AddressKind::InternalIp, "10.0.0.1")],
            ..NodeView::default()
        }
    }

    #[test]
    fn only_what_routes_depend_on_asks_for_a_pass() {
        let newer = || NodeView { resource_version: "8".into(), ..node() };
        let table = [
            ("a node comes", None, Some(node()), Some(NodeChange)),
            ("a node goes", Some(node()), None, Some(NodeChange)),
            (
                "FW-301 podCIDRs change",
                Some(node()),
                Some(NodeView { pod_cidrs: vec![], ..newer() }),
                Some(NodeChange),
            ),
            (
                "FW-301 addresses change",
                Some(node()),
                Some(NodeView { addresses: vec![], ..newer() }),
                Some(NodeChange),
            ),
            ("replaced", Some(node()), Some(NodeView { uid: "u2".into(), ..newer() }), Some(NodeChange)),
            ("FW-302 the same version", Some(node()), Some(node()), Some(Periodic)),
            ("FW-303 something else", Some(node()), Some(NodeView { deleting: true, ..newer() }), None),
            ("nothing at all", None, None, None),
        ];
        for (case, before, after, want) in table {
            assert_eq!(trigger(before.as_ref(), after.as_ref()), want, "{case}");
        }
        assert_eq!((NodeChange.as_str(), Periodic.as_str()), ("node_change", "periodic"));
    }

    #[test]
    fn full_passes_are_rare_whatever_the_flag_says() {
        for (flag, want) in [(0, 300), (10, 300), (300, 300), (3_600, 3_600)] {
            assert_eq!(full_pass(Duration::from_secs(flag)), Duration::from_secs(want), "{flag}");
        }
    }

    #[test]
    fn the_first_pass_begins_at_once_and_the_next_one_gap_later() {
        let at = Tick::from_secs;
        let mut pace = Pace::default();
        assert_eq!(pace.due(NodeChange, at(100)), at(100), "FW-304 the first at once");
        pace.begin(NodeChange, at(100));
        let table = [
            ("FW-304 right after", NodeChange, 100, 110),
            ("FW-304 a burst adds up to nothing", NodeChange, 101, 110),
            ("FW-304 just before the gap ends", NodeChange, 109, 110),
            ("FW-304 the gap is over", NodeChange, 110, 110),
            ("FW-304 long after", NodeChange, 500, 500),
            ("FW-304 the other key does not wait", Periodic, 101, 101),
            ("FW-305 a failed pass comes back with the same key", NodeChange, 103, 110),
        ];
        for (case, trigger, now, due) in table {
            assert_eq!(pace.due(trigger, at(now)), at(due), "{case}");
        }
        pace.begin(NodeChange, at(110));
        pace.begin(Periodic, at(112));
        assert_eq!(
            (pace.due(NodeChange, at(113)), pace.due(Periodic, at(113))),
            (at(120), at(122)),
            "FW-304"
        );
    }
}
