//! What the source itself says about an instance that a listing lacks.
//!
//! A listing may lag behind. Before anything is made of an absence, even if it is only an event, the cloud is asked
//! about that one instance, and its answer counts.

use super::{instance, ownership::NodeOwner};
use crate::{error::Category, instance::Instance, lookup::Lookup, view::NodeView};

/// What one cloud answered about the one instance that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The cloud's name.
    pub cloud: String,
    /// Its answer, past every listing.
    pub instance: Lookup<Instance>,
}

/// Whether a listing denied the node's instance, so that the source is to be asked.
#[must_use]
pub const fn is_denied(claim: &NodeOwner<'_>) -> bool {
    matches!(claim, NodeOwner::Ours { instance: Lookup::Absent, .. } | NodeOwner::Nowhere(_))
}

/// Puts what the source answered in the place of what a listing denied. Any other claim stays.
///
/// An instance that was denied by its id is what its cloud says it is. One that was denied by its name is found if exactly
/// one cloud has it and none failed to answer; a cloud that cannot look up names at all (its answer is
/// [`Category::Permanent`]) has said with its listing what it can say.
#[must_use]
pub fn settle<'a>(node: &NodeView, claim: NodeOwner<'a>, answers: &'a [Answer]) -> NodeOwner<'a> {
    match claim {
        NodeOwner::Ours { cloud, instance: Lookup::Absent } => {
            let answer = answers.iter().find(|answer| answer.cloud == cloud);
            NodeOwner::Ours {
                cloud,
                instance: answer.map_or(Lookup::Absent, |answer| answer.instance.as_ref()),
            }
        }
        NodeOwner::Nowhere(searched) => by_name(node, answers).unwrap_or(NodeOwner::Nowhere(searched)),
        other => other,
    }
}

fn by_name<'a>(node: &NodeView, answers: &'a [Answer]) -> Option<NodeOwner<'a>> {
    let mut found = Vec::new();
    let mut unknown = None;
    for answer in answers {
        match &answer.instance {
            Lookup::Present(instance) => found.push((answer.cloud.as_str(), instance)),
            Lookup::Unknown(why) if why.category() != Category::Permanent => {
                unknown = unknown.or_else(|| Some(why.clone().context(&answer.cloud)));
            }
            Lookup::Absent | Lookup::Unknown(_) => {}
        }
    }
    match (found.as_slice(), unknown) {
        ([_, _, ..], _) => {
            let ids = found.iter().map(|(_, instance)| instance.id.to_string());
            Some(NodeOwner::Undecided(instance::ambiguous(node, ids)))
        }
        (_, Some(why)) => Some(NodeOwner::Undecided(why)),
        ([(cloud, instance)], None) => Some(NodeOwner::Ours { cloud, instance: Lookup::Present(instance) }),
        ([], None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::node::{
            fixture::{instance, node},
            ownership::Searched,
        },
        error::Error,
    };

    fn there(id: &str) -> Lookup<Instance> {
        Lookup::Present(instance(id, "n"))
    }

    fn failed(category: Category) -> Lookup<Instance> {
        Lookup::Unknown(Error::new(category, "x"))
    }

    fn short(claim: &NodeOwner<'_>) -> String {
        match claim {
            NodeOwner::Ours { cloud, instance: Lookup::Present(instance) } => {
                format!("{cloud} {}", instance.id)
            }
            NodeOwner::Ours { cloud, instance: Lookup::Absent } => format!("{cloud} absent"),
            NodeOwner::Ours { cloud, instance: Lookup::Unknown(_) } => format!("{cloud} unknown"),
            NodeOwner::Foreign(_) => "foreign".into(),
            NodeOwner::Nowhere(_) => "nowhere".into(),
            NodeOwner::Undecided(_) => "undecided".into(),
        }
    }

    #[test]
    fn an_absence_is_what_the_source_says_it_is() {
        let absent = || NodeOwner::Ours { cloud: "alpha", instance: Lookup::Absent };
        let nowhere = || NodeOwner::Nowhere(Searched::default());
        let mute = || failed(Category::Permanent);
        let silent = || failed(Category::Temporary);
        let other = instance("alpha://9", "n");
        let shown = || NodeOwner::Ours { cloud: "alpha", instance: Lookup::Present(&other) };
        let table = [
            ("by id: not asked", absent(), vec![], "alpha absent"),
            ("by id: denied twice", absent(), vec![("alpha", Lookup::Absent)], "alpha absent"),
            ("by id: the listing lagged", absent(), vec![("alpha", there("alpha://1"))], "alpha alpha://1"),
            ("L1-216 by id: no answer", absent(), vec![("alpha", silent())], "alpha unknown"),
            ("L1-217 by id: not its to say", absent(), vec![("alpha", mute())], "alpha unknown"),
            ("by id: another cloud's answer", absent(), vec![("beta", there("beta://1"))], "alpha absent"),
            ("by name: not asked", nowhere(), vec![], "nowhere"),
            ("by name: denied", nowhere(), vec![("alpha", Lookup::Absent), ("beta", mute())], "nowhere"),
            (
                "by name: found",
                nowhere(),
                vec![("alpha", there("alpha://1")), ("beta", mute())],
                "alpha alpha://1",
            ),
            (
                "L1-218 by name: found, the other does not answer",
                nowhere(),
                vec![("alpha", there("alpha://1")), ("beta", silent())],
                "undecided",
            ),
            ("by name: no answer", nowhere(), vec![("alpha", silent()), ("beta", mute())], "undecided"),
            (
                "by name: in both",
                nowhere(),
                vec![("alpha", there("alpha://1")), ("beta", there("beta://1"))],
                "undecided",
            ),
            ("what a listing shows stays", shown(), vec![("alpha", Lookup::Absent)], "alpha alpha://9"),
            (
                "L3-206 foreign stays",
                NodeOwner::Foreign("x".into()),
                vec![("alpha", there("alpha://1"))],
                "foreign",
            ),
        ];
        for (case, claim, answers, want) in table {
            let answer =
                |(cloud, instance): (&str, Lookup<Instance>)| Answer { cloud: cloud.into(), instance };
            let answers: Vec<_> = answers.into_iter().map(answer).collect();
            assert_eq!(short(&settle(&node("n"), claim, &answers)), want, "{case}");
        }
        assert!(is_denied(&absent()) && is_denied(&nowhere()) && !is_denied(&shown()));
    }
}
