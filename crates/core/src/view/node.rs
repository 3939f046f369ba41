//! A node, reduced to what decisions use.

#![allow(missing_docs, reason = "names are those of the Kubernetes API")]

use jiff::Timestamp;

use super::Pairs;
use crate::address::NodeAddress;

/// The status of the `Ready` condition; a missing condition is `Unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`, or no such condition.
    #[default]
    Unknown,
}

/// What a taint does to pods. Text that we do not know is kept, so that writing the list back loses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaintEffect {
    /// `NoSchedule`.
    NoSchedule,
    /// `PreferNoSchedule`.
    PreferNoSchedule,
    /// `NoExecute`.
    NoExecute,
    Other(String),
}

impl TaintEffect {
    pub fn as_str(&self) -> &str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
            Self::Other(text) => text,
        }
    }
}

impl From<&str> for TaintEffect {
    fn from(text: &str) -> Self {
        match text {
            "NoSchedule" => Self::NoSchedule,
            "PreferNoSchedule" => Self::PreferNoSchedule,
            "NoExecute" => Self::NoExecute,
            other => Self::Other(other.to_owned()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    /// The value; `None` when not set.
    pub value: Option<String>,
    pub effect: TaintEffect,
    /// When it was added, as Kubernetes wrote it; handed back untouched.
    pub time_added: Option<String>,
}

/// A condition of a node, as far as we compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `True`, `False` or `Unknown`, as written.
    pub status: String,
    /// The reason; empty when not set.
    pub reason: String,
}

/// A node, reduced to what decisions use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`: the precondition of every deletion.
    pub uid: String,
    /// `metadata.resourceVersion`, for patches that must not meet a newer object.
    pub resource_version: String,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.labels`.
    pub labels: Pairs,
    /// `metadata.annotations`, those of cloudberth and of the kubelet.
    pub annotations: Pairs,
    /// `spec.providerID` as written; `None` when empty.
    pub provider_id: Option<String>,
    /// `spec.podCIDRs`, in order and as written.
    pub pod_cidrs: Vec<String>,
    /// `spec.taints`, in order.
    pub taints: Vec<Taint>,
    /// `status.addresses`, in order.
    pub addresses: Vec<NodeAddress>,
    pub ready: Ready,
    pub network_unavailable: Option<Condition>,
}

impl NodeView {
    /// Whether any taint has this key, whatever its value and effect.
    pub fn has_taint(&self, key: &str) -> bool {
        self.taints.iter().any(|taint| taint.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_keep_their_text() {
        for text in ["NoSchedule", "PreferNoSchedule", "NoExecute", "Perhaps", ""] {
            assert_eq!(TaintEffect::from(text).as_str(), text);
        }
        assert_eq!(TaintEffect::from("NoSchedule"), TaintEffect::NoSchedule);
        assert_eq!(TaintEffect::from("PreferNoSchedule"), TaintEffect::PreferNoSchedule);
        assert_eq!(TaintEffect::from("NoExecute"), TaintEffect::NoExecute);
    }

    #[test]
    fn a_taint_is_known_by_its_key() {
        let effect = TaintEffect::NoSchedule;
        let taint = Taint { key: "a".into(), value: None, effect, time_added: None };
        let node = NodeView { taints: vec![taint], ..NodeView::default() };
        assert_eq!((node.has_taint("a"), node.has_taint("b")), (true, false));
    }
}
