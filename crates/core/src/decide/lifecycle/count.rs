//! How the questions about instances are counted, in the labels that dashboards know.
//!
//! One listing answers for every node; it is counted as if each node that needed an answer had been asked about, so
//! that the numbers mean what they always meant.

use super::{facts::NodeFacts, verdict::at_once};
use crate::{error::Category, instance::InstanceState, lookup::Lookup};

/// What was asked: the label `operation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Whether the instance is there.
    InstanceExists,
    /// Whether it is stopped.
    InstanceShutdown,
}

impl Operation {
    /// The label value.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::InstanceExists => "instance_exists",
            Self::InstanceShutdown => "instance_shutdown",
        }
    }
}

/// What came of it: the label `result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// An answer.
    Success,
    /// The instance is not there.
    InstanceNotFound,
    /// We stopped ourselves.
    Canceled,
    /// Anything else.
    Error,
}

impl Outcome {
    /// The label value.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::InstanceNotFound => "instance_not_found",
            Self::Canceled => "canceled",
            Self::Error => "error",
        }
    }

    fn of_existence(answer: &Lookup<InstanceState>) -> Self {
        match answer {
            Lookup::Present(_) => Self::Success,
            Lookup::Absent => Self::InstanceNotFound,
            Lookup::Unknown(why) => match why.category() {
                Category::NotFound => Self::InstanceNotFound,
                Category::Cancelled => Self::Canceled,
                _ => Self::Error,
            },
        }
    }
}

/// The questions that one round put for one node. A node that needs no cloud puts none; an instance that is there is
/// asked about twice, because its state matters too.
#[must_use]
pub fn questions(facts: &NodeFacts, answer: &Lookup<InstanceState>) -> Vec<(Operation, Outcome)> {
    if at_once(facts).is_some() {
        return Vec::new();
    }
    let mut asked = vec![(Operation::InstanceExists, Outcome::of_existence(answer))];
    if answer.is_present() {
        asked.push((Operation::InstanceShutdown, Outcome::Success));
    }
    asked
}
