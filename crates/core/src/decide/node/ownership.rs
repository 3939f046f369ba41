//! Which cloud a node belongs to, when several are at work in one cluster.
//!
//! A node belongs to the cloud whose id it carries, for good. While it carries none, it belongs to the cloud that its
//! label names, or to the only one that has an instance of its name; the latter needs a complete answer from every
//! cloud, because the one that did not answer may have such an instance too (law 1). Everything else is somebody
//! else's and is never touched (law 3).

use super::{events::MESSAGE_LIMIT, instance};
use crate::{
    error::{Category, Error, Result, cut},
    instance::{Instance, InstanceListing},
    lookup::Lookup,
    provider_id::Reading,
    view::NodeView,
};

/// The label by which a person says to which cloud a node without an id belongs.
pub const PROVIDER_LABEL: &str = "cloudberth.dev/provider";

/// One cloud at work in the cluster, and what it says about a node.
#[derive(Clone, Debug)]
pub struct Cloud<'a> {
    /// Its name, as the label says it.
    pub name: &'a str,
    /// How it reads the node's provider id, where there is one.
    pub reading: Option<Reading>,
    /// Its newest listing, or why there is none.
    pub instances: &'a Result<InstanceListing>,
}

/// To whom a node belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOwner<'a> {
    /// To one of our clouds.
    Ours {
        /// The cloud's name.
        cloud: &'a str,
        /// Its instance. `Absent` may come from an old listing: before anything is made of it, ask the source and put
        /// its answer here.
        instance: Lookup<&'a Instance>,
    },
    /// To somebody else, and how we know; never touched.
    Foreign(String),
    /// It carries no id, and every cloud said completely that it has no instance of that name.
    Nowhere(Searched<'a>),
    /// It cannot be said yet, and why.
    Undecided(Error),
}

/// Where an instance was looked for in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched<'a>(Vec<(&'a str, &'a InstanceListing)>);

impl<'a> Searched<'a> {
    fn new(clouds: &[Cloud<'a>]) -> Self {
        Self(clouds.iter().filter_map(|cloud| Some((cloud.name, cloud.instances.as_ref().ok()?))).collect())
    }

    /// What was searched, which names come near, and how to mend it. Comparing the node's name with that of every
    /// instance takes a while: ask once.
    #[must_use]
    pub fn explain(&self, node: &NodeView) -> Error {
        let listed = self.0.iter();
        let searched =
            listed.clone().map(|(name, instances)| format!("the {} of {name}", instances.items.len()));
        let names =
            listed.flat_map(|(_, instances)| instances.items.iter().map(|instance| instance.name.as_str()));
        let near = instance::nearest(&node.name, names);
        let hint = if near.is_empty() {
            String::new()
        } else {
            format!("; the nearest names are {}", join(near.iter().map(|name| format!("{name:?}"))))
        };
        let message = format!(
            "no instance is called {:?} among {}{hint}; give the instance the node's name, or start the node's kubelet \
             with --provider-id",
            node.name,
            join(searched)
        );
        Error::new(Category::NotFound, cut(&message, MESSAGE_LIMIT))
    }
}

/// Says to whom `node` belongs.
#[must_use]
pub fn claim<'a>(node: &NodeView, clouds: &[Cloud<'a>]) -> NodeOwner<'a> {
    if let Some(id) = &node.provider_id {
        return by_id(node, id, clouds);
    }
    match node.labels.get(PROVIDER_LABEL) {
        None => by_name(node, clouds),
        Some(label) => match clouds.iter().find(|cloud| cloud.name == label) {
            Some(cloud) => by_name(node, std::slice::from_ref(cloud)),
            None => NodeOwner::Foreign(format!(
                "label {PROVIDER_LABEL} names {label:?}; the clouds at work here are {}",
                join(clouds.iter().map(|cloud| cloud.name.to_owned()))
            )),
        },
    }
}

fn by_id<'a>(node: &NodeView, id: &str, clouds: &[Cloud<'a>]) -> NodeOwner<'a> {
    let mut malformed = None;
    for cloud in clouds {
        match &cloud.reading {
            Some(Reading::Mine(id)) => {
                let instance = match cloud.instances {
                    Ok(instances) => instances.by_id(id),
                    Err(why) => Lookup::Unknown(why.clone().context(cloud.name)),
                };
                return NodeOwner::Ours { cloud: cloud.name, instance };
            }
            Some(Reading::Malformed) => malformed = malformed.or(Some(cloud)),
            Some(Reading::Foreign) | None => {}
        }
    }
    match malformed {
        None => NodeOwner::Foreign(format!("provider id {id:?} is of no cloud at work here")),
        // The name can show which instance was meant. That it shows none proves nothing.
        Some(cloud) => {
            let instance = match search(node, cloud) {
                Lookup::Absent => Lookup::Unknown(Error::user_input(format!(
                    "provider id {id:?} of node {:?} is not an id of {}, and no instance there has the node's name",
                    node.name, cloud.name
                ))),
                known => known,
            };
            NodeOwner::Ours { cloud: cloud.name, instance }
        }
    }
}

fn search<'a>(node: &NodeView, cloud: &Cloud<'a>) -> Lookup<&'a Instance> {
    let found = match cloud.instances {
        Ok(instances) => instance::by_name(node, instances),
        Err(why) => Lookup::Unknown(why.clone()),
    };
    match found {
        Lookup::Unknown(why) => Lookup::Unknown(why.context(cloud.name)),
        known => known,
    }
}

fn by_name<'a>(node: &NodeView, clouds: &[Cloud<'a>]) -> NodeOwner<'a> {
    let mut found = Vec::new();
    let mut unknown = None;
    for cloud in clouds {
        match search(node, cloud) {
            Lookup::Present(instance) => found.push((cloud.name, instance)),
            Lookup::Absent => {}
            Lookup::Unknown(why) => unknown = unknown.or(Some(why)),
        }
    }
    match (found.as_slice(), unknown) {
        ([_, _, ..], _) => {
            let why = instance::ambiguous(node, found.iter().map(|(_, instance)| instance.id.to_string()));
            let fix = format!("{}; or say which cloud with the label {PROVIDER_LABEL}", why.message());
            NodeOwner::Undecided(Error::new(why.category(), fix))
        }
        (_, Some(why)) => NodeOwner::Undecided(why),
        ([(cloud, instance)], None) => NodeOwner::Ours { cloud, instance: Lookup::Present(instance) },
        ([], None) => NodeOwner::Nowhere(Searched::new(clouds)),
    }
}

fn join(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::node::fixture::{instance, node};
    use crate::lookup::Listing;
    use crate::provider_id::ProviderId;

    fn alpha(text: &str) -> Reading {
        match text.strip_prefix("alpha:///").map(|id| ProviderId::new("alpha", id)) {
            Some(Ok(id)) => Reading::Mine(id),
            _ if text == "alpha:broken" => Reading::Malformed,
            _ => Reading::plain(text, |id| id.scheme() == "alpha"),
        }
    }

    fn beta(text: &str) -> Reading {
        Reading::plain(text, |id| id.scheme() == "beta")
    }

    type Instances = Result<InstanceListing>;

    fn two<'a>(node: &NodeView, a: &'a Instances, b: &'a Instances) -> [Cloud<'a>; 2] {
        let reading = |read: fn(&str) -> Reading| node.provider_id.as_deref().map(read);
        [
            Cloud { name: "alpha", reading: reading(alpha), instances: a },
            Cloud { name: "beta", reading: reading(beta), instances: b },
        ]
    }

    fn claimed<'a>(node: &NodeView, a: &'a Instances, b: &'a Instances) -> NodeOwner<'a> {
        claim(node, &two(node, a, b))
    }

    fn listed(instances: &[(&str, &str)]) -> Instances {
        let instance = |(id, name): &(&str, &str)| Ok(Instance::new(id.parse()?, name));
        instances.iter().map(instance).collect::<Result<_>>().map(|all| Listing::complete(all).into())
    }

    /// `cloud instance`, `foreign`, `nowhere` or `undecided`.
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
    fn an_id_says_it_all() {
        let a = listed(&[("alpha://1", "n"), ("alpha://2", "other")]);
        let b = listed(&[("beta://1", "n")]);
        let broken: Instances = Err(Error::temporary("503"));
        let partial: Instances =
            Ok(Listing::short(vec![instance("alpha://1", "n")], "page 2 is missing").into());
        let table = [
            ("FW-43 by id, whatever the name", node("n").id("alpha://2"), &a, &b, "alpha alpha://2"),
            ("the other cloud does not answer", node("n").id("alpha://2"), &a, &broken, "alpha alpha://2"),
            (
                "L1-215 its cloud does not answer, a namesake helps nobody",
                node("n").id("alpha://2"),
                &broken,
                &b,
                "alpha unknown",
            ),
            ("a short listing shows it", node("n").id("alpha://1"), &partial, &b, "alpha alpha://1"),
            ("L1-208 a short listing lacks it", node("n").id("alpha://2"), &partial, &b, "alpha unknown"),
            (
                "a complete one lacks it, a namesake helps nobody",
                node("n").id("beta://9"),
                &a,
                &b,
                "beta absent",
            ),
            ("another spelling", node("n").id("alpha:///2"), &a, &b, "alpha alpha://2"),
            (
                "the label has no say",
                node("n").id("beta://1").labelled("cloudberth.dev/provider=alpha"),
                &a,
                &b,
                "beta beta://1",
            ),
            ("L3-201 another cloud's", node("n").id("aws:///z/i-1"), &a, &b, "foreign"),
            ("L3-202 not an id at all", node("n").id("test-provider-id"), &a, &b, "foreign"),
            ("broken, found by name", node("n").id("alpha:broken"), &a, &b, "alpha alpha://1"),
            ("broken, not found by name", node("x").id("alpha:broken"), &a, &b, "alpha unknown"),
            ("broken, no answer", node("n").id("alpha:broken"), &broken, &b, "alpha unknown"),
        ];
        for (case, node, a, b, want) in table {
            assert_eq!(short(&claimed(&node, a, b)), want, "{case}");
        }
    }

    #[test]
    fn a_name_must_be_certain() {
        let empty = listed(&[]);
        let n1 = listed(&[("alpha://1", "n")]);
        let n2 = listed(&[("beta://1", "n")]);
        let twins = listed(&[("alpha://1", "n"), ("alpha://2", "n")]);
        let broken: Instances = Err(Error::temporary("503"));
        let partial: Instances =
            Ok(Listing::short(vec![instance("alpha://1", "n")], "page 2 is missing").into());
        let table = [
            ("in one", &n1, &empty, None, "alpha alpha://1"),
            ("in the other", &empty, &n2, None, "beta beta://1"),
            ("in none", &empty, &empty, None, "nowhere"),
            ("in both", &n1, &n2, None, "undecided"),
            ("L1-209 in one, the other does not answer", &n1, &broken, None, "undecided"),
            ("L1-210 in one, the other is short", &empty, &partial, None, "undecided"),
            ("L1-211 in its own short listing", &partial, &empty, None, "undecided"),
            ("in none, one does not answer", &empty, &broken, None, "undecided"),
            ("twice in one", &twins, &empty, None, "undecided"),
            ("in both, the label decides", &n1, &n2, Some("beta"), "beta beta://1"),
            ("the label makes the other's silence harmless", &n1, &broken, Some("alpha"), "alpha alpha://1"),
            ("the label looks nowhere else", &empty, &n2, Some("alpha"), "nowhere"),
            ("L3-203 the label names a stranger", &n1, &empty, Some("gamma"), "foreign"),
        ];
        for (case, a, b, label, want) in table {
            let mut node = node("n");
            if let Some(label) = label {
                node = node.labelled(&format!("{PROVIDER_LABEL}={label}"));
            }
            assert_eq!(short(&claimed(&node, a, b)), want, "{case}");
        }
    }

    fn explained(node: &NodeView, clouds: &[Cloud<'_>]) -> Error {
        let NodeOwner::Nowhere(searched) = claim(node, clouds) else { panic!() };
        searched.explain(node)
    }

    #[test]
    fn an_explanation_shows_what_was_searched_and_how_to_mend_it() {
        let a = listed(&[("alpha://1", "web-01"), ("alpha://2", "db")]);
        let b = listed(&[("beta://1", "web-2")]);
        let why = explained(&node("web-1"), &two(&node(""), &a, &b));
        assert_eq!(why.category(), Category::NotFound);
        assert_eq!(
            why.message(),
            "no instance is called \"web-1\" among the 2 of alpha, the 1 of beta; the nearest names are \"web-01\", \
             \"web-2\"; give the instance the node's name, or start the node's kubelet with --provider-id"
        );
        let why = explained(&node("zzzzzzzz"), &two(&node(""), &a, &b));
        assert!(!why.message().contains("nearest"), "{why}");
        let why = explained(&node("n"), &[]);
        assert!(why.message().contains("among none"), "{why}");
        let long = listed(&[("alpha://1", &"x".repeat(2_000))]);
        let why = explained(&node(&"x".repeat(2_000)[..1_999]), &two(&node(""), &long, &b));
        assert!(why.message().len() <= MESSAGE_LIMIT && why.message().ends_with('…'));

        let twin = listed(&[("beta://7", "web-01")]);
        let NodeOwner::Undecided(why) = claimed(&node("web-01"), &a, &twin) else { panic!() };
        assert_eq!(why.category(), Category::Conflict);
        for part in ["\"web-01\": alpha://1, beta://7;", "--provider-id", PROVIDER_LABEL] {
            assert!(why.message().contains(part), "{why}");
        }

        let broken: Instances = Err(Error::temporary("503"));
        let NodeOwner::Undecided(why) = claimed(&node("db"), &a, &broken) else { panic!() };
        assert_eq!((why.category(), why.message()), (Category::Temporary, "beta: 503"));
        assert_eq!(
            claimed(&node("db").id("beta://1"), &a, &broken),
            NodeOwner::Ours { cloud: "beta", instance: Lookup::Unknown(Error::temporary("beta: 503")) }
        );

        let NodeOwner::Foreign(why) = claimed(&node("n").id("k3s://n"), &a, &b) else { panic!() };
        assert_eq!(why, "provider id \"k3s://n\" is of no cloud at work here");
        let stranger = node("n").labelled("cloudberth.dev/provider=gamma");
        let NodeOwner::Foreign(why) = claimed(&stranger, &a, &b) else { panic!() };
        assert_eq!(
            why,
            "label cloudberth.dev/provider names \"gamma\"; the clouds at work here are alpha, beta"
        );
        let NodeOwner::Ours { instance: Lookup::Unknown(why), .. } =
            claimed(&node("x").id("alpha:broken"), &a, &b)
        else {
            panic!()
        };
        assert_eq!(why.category(), Category::UserInput);
        assert!(why.message().contains("\"alpha:broken\" of node \"x\" is not an id of alpha"), "{why}");
    }

    #[test]
    fn two_clouds_that_read_one_text_as_broken_leave_it_to_the_first() {
        let reading = || Some(Reading::Malformed);
        let (a, b) = (listed(&[("alpha://1", "n")]), listed(&[("beta://1", "n")]));
        let clouds = [
            Cloud { name: "alpha", reading: reading(), instances: &a },
            Cloud { name: "beta", reading: reading(), instances: &b },
        ];
        assert_eq!(short(&claim(&node("n").id("x"), &clouds)), "alpha alpha://1");
    }
}
