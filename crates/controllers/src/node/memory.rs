//! What is remembered about a node while it is there: since when it is known, which listing did not help, and what
//! people were told. All of it is about saving calls and words; nothing breaks when it is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use cloudberth_core::{NodeView, time::Tick};

use crate::lock;

/// The shortest time there is: what was begun this much later was begun after.
const AFTER: Duration = Duration::from_nanos(1);

#[derive(Clone, Debug)]
pub(super) struct Known {
    uid: String,
    /// When the node was first seen. An instance of its name in an older listing may be one before it.
    pub(super) since: Tick,
    /// A listing that helps must be begun at this time or later.
    pub(super) fresh_from: Tick,
    /// The reasons of the warnings that people have been given and that still hold.
    pub(super) told: BTreeSet<&'static str>,
}

#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<String, Known>>);

impl Memory {
    /// What is known about the node, from now on if not before. One of the same name that came before it is forgotten.
    pub(super) fn meet(&self, node: &NodeView, now: Tick) -> Known {
        let new =
            || Known { uid: node.uid.clone(), since: now, fresh_from: Tick::ZERO, told: BTreeSet::new() };
        let mut nodes = lock(&self.0);
        let known = nodes.entry(node.name.clone()).or_insert_with(new);
        if known.uid != node.uid {
            *known = new();
        }
        known.clone()
    }

    pub(super) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }

    /// A listing that was begun at `begun` did not help. All nodes that it failed are served by the same next one.
    pub(super) fn not_helped_by(&self, node: &NodeView, begun: Tick) {
        self.with(node, |known| known.fresh_from = begun + AFTER);
    }

    /// Whether people have not been told yet; from now on they have.
    pub(super) fn is_news(&self, node: &NodeView, reason: &'static str) -> bool {
        self.with(node, |known| known.told.insert(reason)).unwrap_or(false)
    }

    /// Of what was told, only `reasons` still hold: anything else is news when it comes again.
    pub(super) fn still_holds(&self, node: &NodeView, reasons: &[&'static str]) {
        self.with(node, |known| known.told.retain(|reason| reasons.contains(reason)));
    }

    fn with<T>(&self, node: &NodeView, change: impl FnOnce(&mut Known) -> T) -> Option<T> {
        lock(&self.0).get_mut(&node.name).filter(|known| known.uid == node.uid).map(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(uid: &str) -> NodeView {
        NodeView { name: "n".into(), uid: uid.into(), ..NodeView::default() }
    }

    #[test]
    fn a_node_of_the_same_name_is_another_node() {
        let memory = Memory::default();
        assert!(!memory.is_news(&node("1"), "A"), "nobody tells about a node that is not there");
        assert_eq!(memory.meet(&node("1"), Tick::from_secs(5)).since, Tick::from_secs(5));
        assert_eq!(memory.meet(&node("1"), Tick::from_secs(9)).since, Tick::from_secs(5));
        memory.not_helped_by(&node("1"), Tick::from_secs(7));
        assert!(memory.meet(&node("1"), Tick::from_secs(9)).fresh_from > Tick::from_secs(7));
        let next = memory.meet(&node("2"), Tick::from_secs(9));
        assert_eq!((next.since, next.fresh_from), (Tick::from_secs(9), Tick::ZERO));
        memory.not_helped_by(&node("1"), Tick::from_secs(7));
        assert_eq!(memory.meet(&node("2"), Tick::from_secs(9)).fresh_from, Tick::ZERO);
    }

    #[test]
    fn what_was_told_is_news_again_only_after_it_was_over() {
        let memory = Memory::default();
        memory.meet(&node("1"), Tick::ZERO);
        assert!(memory.is_news(&node("1"), "A"));
        assert!(!memory.is_news(&node("1"), "A"), "L4-401");
        memory.still_holds(&node("1"), &["A"]);
        assert!(!memory.is_news(&node("1"), "A"));
        memory.still_holds(&node("1"), &[]);
        assert!(memory.is_news(&node("1"), "A"));
    }
}
