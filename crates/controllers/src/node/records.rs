//! What is kept about a node while it exists: since when it is known, which listing did not help, and which warnings
//! were published. It saves calls and repeated events; nothing breaks when it is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use cloudberth_core::{NodeView, Reason, time::Tick};

use crate::lock;

/// The shortest time there is: what was begun this much later was begun after.
const AFTER: Duration = Duration::from_nanos(1);

#[derive(Clone, Debug)]
pub(super) struct NodeRecord {
    uid: String,
    /// When the node was first seen. An instance of its name in an older listing may be one before it.
    pub(super) since: Tick,
    /// Only a listing that was begun at this time or later can help.
    pub(super) not_before: Tick,
    /// The reasons of the warnings that were published and still hold.
    pub(super) warned: BTreeSet<Reason>,
}

#[derive(Debug, Default)]
pub(super) struct NodeRecords(Mutex<BTreeMap<String, NodeRecord>>);

impl NodeRecords {
    /// The record of the node, begun now if there is none. That of an earlier node of the same name is dropped.
    pub(super) fn get(&self, node: &NodeView, now: Tick) -> NodeRecord {
        let new = || NodeRecord {
            uid: node.uid.clone(),
            since: now,
            not_before: Tick::ZERO,
            warned: BTreeSet::new(),
        };
        let mut nodes = lock(&self.0);
        let record = nodes.entry(node.name.clone()).or_insert_with(new);
        if record.uid != node.uid {
            *record = new();
        }
        record.clone()
    }

    pub(super) fn remove(&self, name: &str) {
        lock(&self.0).remove(name);
    }

    /// A listing that was begun at `begun` did not help. The next one serves all nodes that it did not help.
    pub(super) fn needs_listing_after(&self, node: &NodeView, begun: Tick) {
        self.with(node, |record| record.not_before = begun + AFTER);
    }

    /// Whether a warning was not published yet; from now on it was.
    pub(super) fn is_new_warning(&self, node: &NodeView, reason: Reason) -> bool {
        self.with(node, |record| record.warned.insert(reason)).unwrap_or(false)
    }

    /// Of the warnings only `reasons` still hold: any other is new when it comes again.
    pub(super) fn keep_warned(&self, node: &NodeView, reasons: &[Reason]) {
        self.with(node, |record| record.warned.retain(|reason| reasons.contains(reason)));
    }

    fn with<T>(&self, node: &NodeView, change: impl FnOnce(&mut NodeRecord) -> T) -> Option<T> {
        lock(&self.0).get_mut(&node.name).filter(|record| record.uid == node.uid).map(change)
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::reason::SYNCED;

    use super::*;

    fn node(uid: &str) -> NodeView {
        NodeView { name: "n".into(), uid: uid.into(), ..NodeView::default() }
    }

    #[test]
    fn a_node_of_the_same_name_is_another_node() {
        let records = NodeRecords::default();
        assert!(
            !records.is_new_warning(&node("1"), SYNCED),
            "nobody is warned about a node that is not there"
        );
        assert_eq!(records.get(&node("1"), Tick::from_secs(5)).since, Tick::from_secs(5));
        assert_eq!(records.get(&node("1"), Tick::from_secs(9)).since, Tick::from_secs(5));
        records.needs_listing_after(&node("1"), Tick::from_secs(7));
        assert!(records.get(&node("1"), Tick::from_secs(9)).not_before > Tick::from_secs(7));
        let next = records.get(&node("2"), Tick::from_secs(9));
        assert_eq!((next.since, next.not_before), (Tick::from_secs(9), Tick::ZERO));
        records.needs_listing_after(&node("1"), Tick::from_secs(7));
        assert_eq!(records.get(&node("2"), Tick::from_secs(9)).not_before, Tick::ZERO);
    }

    #[test]
    fn a_warning_is_new_again_only_after_it_was_over() {
        let records = NodeRecords::default();
        records.get(&node("1"), Tick::ZERO);
        assert!(records.is_new_warning(&node("1"), SYNCED));
        assert!(!records.is_new_warning(&node("1"), SYNCED), "L4-401");
        records.keep_warned(&node("1"), &[SYNCED]);
        assert!(!records.is_new_warning(&node("1"), SYNCED));
        records.keep_warned(&node("1"), &[]);
        assert!(records.is_new_warning(&node("1"), SYNCED));
    }
}
