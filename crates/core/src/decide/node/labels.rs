//! Which labels a node gets from its instance, and which are the user's.
//!
//! Size, zone and region each have two labels, an old one (`beta`) and a current one. Labels beyond these are extra.
//!
//! # When the node is initialised
//! The six well-known labels take the instance's values. A fact that the instance does not have clears nothing. An extra
//! label is added unless the node has that key; keys in the domains of Kubernetes are refused.
//!
//! # Afterwards
//! An instance can be resized or moved, so labels are kept current, and the user is not fought over them:
//! - What we wrote is remembered in the node's [`Record`]. A label that still says what we wrote follows the instance;
//!   one that says something else, or is gone, was changed by somebody and stays as it is. An extra label that the
//!   instance no longer has is removed if it still says what we wrote.
//! - A fact without a record (the node was initialised by another program) is filled in where both its labels are
//!   missing, and otherwise left: then only the old rule holds, by which the current label copies the beta one.
//! - Labels that already agree with the instance are never touched for the record's sake (law 4). But when something
//!   is written anyway, well-known labels that agree enter the record, and from then on follow the instance.

use std::{collections::BTreeMap, fmt};

use super::record::Record;
use crate::{
    instance::Instance,
    label::{LabelKey, LabelValue, Region, Zone},
    view::NodeView,
};

/// The two labels of one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The old label, which is the source of truth between the two.
    pub beta: &'static str,
    /// The current label.
    pub current: &'static str,
}

/// The labels of the instance's size.
pub const INSTANCE_TYPE: Pair =
    Pair { beta: "beta.kubernetes.io/instance-type", current: "node.kubernetes.io/instance-type" };

/// The labels of the instance's zone.
pub const ZONE: Pair =
    Pair { beta: "failure-domain.beta.kubernetes.io/zone", current: "topology.kubernetes.io/zone" };

/// The labels of the instance's region.
pub const REGION: Pair =
    Pair { beta: "failure-domain.beta.kubernetes.io/region", current: "topology.kubernetes.io/region" };

/// All three.
pub const PAIRS: [Pair; 3] = [INSTANCE_TYPE, ZONE, REGION];

impl Pair {
    /// Both keys.
    #[must_use]
    pub const fn keys(self) -> [&'static str; 2] {
        [self.beta, self.current]
    }
}

/// Whether a key lies in a domain that belongs to Kubernetes: `kubernetes.io`, `k8s.io` or below.
#[must_use]
pub fn is_reserved(key: &LabelKey) -> bool {
    let domain = key.as_str().split_once('/').map_or("", |(domain, _)| domain);
    ["kubernetes.io", "k8s.io"].iter().any(|reserved| {
        domain.strip_suffix(reserved).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// Whether we ever write this label: a well-known one, or any outside the domains of Kubernetes.
#[must_use]
pub fn may_be_ours(key: &str) -> bool {
    is_well_known(key) || LabelKey::new(key).is_ok_and(|key| !is_reserved(&key))
}

fn is_well_known(key: &str) -> bool {
    PAIRS.iter().any(|pair| pair.keys().contains(&key))
}

/// Something about a label that its owner may wonder about; for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelNotice {
    /// The cloud gives a label in a domain that belongs to Kubernetes.
    Refused {
        /// The label's key.
        key: String,
    },
    /// The node has this label with another value that is not ours.
    Kept {
        /// The label's key.
        key: String,
        /// The node's value, which stays.
        node: String,
        /// The cloud's value.
        cloud: String,
    },
}

impl fmt::Display for LabelNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { key } => {
                write!(f, "label {key} from the cloud is left out: its domain belongs to Kubernetes")
            }
            Self::Kept { key, node, cloud } => {
                write!(f, "label {key} keeps the node's value {node:?}; the cloud says {cloud:?}")
            }
        }
    }
}

/// What to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelChanges {
    /// Labels and their new values; `None` removes one. Every entry differs from what the node has.
    pub labels: BTreeMap<String, Option<String>>,
    /// The new record, where it differs from the node's and is to be written along.
    pub record: Option<Record>,
    /// What was not done, and why.
    pub notices: Vec<LabelNotice>,
}

impl LabelChanges {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.record.is_none()
    }
}

/// The labels of a node that is being initialised.
#[must_use]
pub fn at_initialisation(node: &NodeView, instance: &Instance) -> LabelChanges {
    let mut work = Work::new(node);
    for (pair, value) in facts(instance) {
        match value {
            Some(value) => work.give_both(pair, value),
            None => work.copy_beta(pair),
        }
    }
    work.extras(instance);
    work.finish(instance, true)
}

/// The labels of a node in service.
#[must_use]
pub fn in_service(node: &NodeView, instance: &Instance) -> LabelChanges {
    let mut work = Work::new(node);
    for (pair, value) in facts(instance) {
        let missing = pair.keys().into_iter().all(|key| work.label(key).is_none());
        match value {
            Some(value) if work.is_recorded(pair) => work.follow(pair, value),
            Some(value) if missing => work.give_both(pair, value),
            _ if work.is_recorded(pair) => {}
            _ => work.copy_beta(pair),
        }
    }
    work.extras(instance);
    work.finish(instance, false)
}

/// The well-known facts of an instance; an empty one is none.
fn facts(instance: &Instance) -> [(Pair, Option<&str>); 3] {
    let size = instance.instance_type.as_ref().map(LabelValue::as_str);
    [
        (INSTANCE_TYPE, size.filter(|text| !text.is_empty())),
        (ZONE, instance.zone.as_ref().map(Zone::as_str)),
        (REGION, instance.region.as_ref().map(Region::as_str)),
    ]
}

/// A decision in the making.
struct Work<'a> {
    node: &'a NodeView,
    old: Record,
    new: Record,
    changes: LabelChanges,
    /// Something comes from the instance, not only from a sibling label.
    from_instance: bool,
}

impl<'a> Work<'a> {
    fn new(node: &'a NodeView) -> Self {
        let old = Record::of(node);
        Self { node, new: old.clone(), old, changes: LabelChanges::default(), from_instance: false }
    }

    /// The label as it will be after the changes so far.
    fn label(&self, key: &str) -> Option<&str> {
        match self.changes.labels.get(key) {
            Some(change) => change.as_deref(),
            None => self.node.labels.get(key),
        }
    }

    fn is_recorded(&self, pair: Pair) -> bool {
        pair.keys().into_iter().any(|key| self.old.get(key).is_some())
    }

    /// Gives a label the instance's value and remembers that we did.
    fn give(&mut self, key: &str, value: &str) {
        if self.label(key) != Some(value) {
            self.changes.labels.insert(key.to_owned(), Some(value.to_owned()));
            self.new.note(key, value);
            self.from_instance = true;
        }
    }

    fn give_both(&mut self, pair: Pair, value: &str) {
        for key in pair.keys() {
            self.give(key, value);
        }
    }

    /// Moves on those labels of a pair that still say what we wrote.
    fn follow(&mut self, pair: Pair, value: &str) {
        for key in pair.keys() {
            if self.label(key).is_some() && self.label(key) == self.old.get(key) {
                self.give(key, value);
            }
        }
    }

    fn copy_beta(&mut self, pair: Pair) {
        if let Some(beta) = self.label(pair.beta).map(str::to_owned)
            && self.label(pair.current) != Some(&beta)
        {
            self.changes.labels.insert(pair.current.to_owned(), Some(beta));
        }
    }

    fn extras(&mut self, instance: &Instance) {
        for (key, value) in &instance.labels {
            if is_reserved(key) {
                self.changes.notices.push(LabelNotice::Refused { key: key.as_str().to_owned() });
            } else {
                self.extra(key.as_str(), value.as_str());
            }
        }
        let wanted = |key: &str| instance.labels.keys().any(|wanted| wanted.as_str() == key);
        let gone: Vec<(String, String)> = self
            .old
            .iter()
            .filter(|(key, _)| !is_well_known(key) && !wanted(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for (key, value) in gone {
            if self.label(&key) == Some(&value) {
                self.changes.labels.insert(key.clone(), None);
                self.from_instance = true;
            }
            self.new.forget(&key);
        }
    }

    fn extra(&mut self, key: &str, value: &str) {
        match (self.label(key), self.old.get(key)) {
            (None, None) => self.give(key, value),
            (Some(now), Some(ours)) if now == ours => self.give(key, value),
            (Some(now), _) if now != value => {
                let notice = LabelNotice::Kept { key: key.into(), node: now.into(), cloud: value.into() };
                self.changes.notices.push(notice);
            }
            _ => {}
        }
    }

    /// Settles the record. `writing`: the node is written to in any case.
    fn finish(mut self, instance: &Instance, writing: bool) -> LabelChanges {
        for (pair, value) in facts(instance) {
            if let Some(value) = value
                && pair.keys().into_iter().all(|key| self.label(key) == Some(value))
            {
                pair.keys().into_iter().for_each(|key| self.new.note(key, value));
            }
        }
        if (writing || self.from_instance) && self.new != self.old {
            self.changes.record = Some(self.new);
        }
        self.changes
    }
}

#[cfg(test)]
mod tests;
