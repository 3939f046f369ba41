//! How the questions about instances are counted, in the labels that dashboards know.
//!
//! One listing answers for every node; it is counted as if each node that needed an answer had been asked about, so
//! that the numbers mean what they always meant.

use super::{facts::NodeFacts, verdict::at_once};
use crate::{error::Category, instance::InstanceState, lookup::Lookup};

/// The questions that one round put for one node, as the labels `operation` and `result`. A node that needs no cloud
/// puts none; an instance that is there is asked about twice, because its state matters too.
#[must_use]
pub fn questions(facts: &NodeFacts, answer: &Lookup<InstanceState>) -> Vec<(&'static str, &'static str)> {
    const EXISTS: &str = "instance_exists";
    if at_once(facts).is_some() {
        return Vec::new();
    }
    match answer {
        Lookup::Present(_) => vec![(EXISTS, "success"), ("instance_shutdown", "success")],
        Lookup::Absent => vec![(EXISTS, "instance_not_found")],
        Lookup::Unknown(why) => vec![(
            EXISTS,
            match why.category() {
                Category::NotFound => "instance_not_found",
                Category::Cancelled => "canceled",
                _ => "error",
            },
        )],
    }
}
