//! An instance, as its cloud describes it.

use std::{any::Any, collections::BTreeMap, fmt, ops::Deref, sync::Arc};

use crate::{
    address::NodeAddress,
    label::{LabelKey, LabelValue, Region, Zone},
    lookup::{Listing, Lookup},
    provider_id::ProviderId,
};

/// What an instance is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceState {
    /// Being built, or starting: not to be judged yet.
    Pending,
    /// It exists and is powered on.
    Running,
    /// It exists and is powered off: the node gets the shutdown taint.
    Stopped,
    /// A state that we do not know. The instance exists; nothing else follows.
    Other,
}

/// An instance. Whatever the cloud did not say is `None` or empty, and then nothing is written for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its identity; a node that carries it belongs to this instance whatever the names say.
    pub id: ProviderId,
    /// The cloud's name for it, by which a node without an id finds its instance.
    pub name: String,
    /// What it is doing.
    pub state: InstanceState,
    /// Size or flavour, for the instance-type labels.
    pub instance_type: Option<LabelValue>,
    /// For the zone labels.
    pub zone: Option<Zone>,
    /// For the region labels.
    pub region: Option<Region>,
    /// In the cloud's order, which is kept.
    pub addresses: Vec<NodeAddress>,
    /// Addresses that it has and that no node shows, unless its kubelet was told to use one of them.
    pub withheld: Vec<NodeAddress>,
    /// Labels beyond the well-known ones.
    pub labels: BTreeMap<LabelKey, LabelValue>,
    /// Why the rest is unknown, if the cloud's answer lacks a field that it always has or cannot be read: `interfaces is
    /// missing`. The instance exists, so its node is not deleted, and nothing is written to its node either (law 1).
    pub flaw: Option<Box<str>>,
    /// What else the provider knows about it and needs for its load balancers and routes.
    pub facts: Option<PrivateFacts>,
}

/// What only the provider that described an instance can read: its networks, its VPC.
#[derive(Clone)]
pub struct PrivateFacts(Arc<dyn Any + Send + Sync>);

impl PrivateFacts {
    /// Facts of a type that the provider asks for later.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(facts: T) -> Self {
        Self(Arc::new(facts))
    }

    /// The facts, if they are of this type.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// Nobody but their provider can compare facts: they are equal if they are the same.
impl PartialEq for PrivateFacts {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PrivateFacts {}

impl fmt::Debug for PrivateFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateFacts")
    }
}

impl Instance {
    /// A running instance of which nothing else is known.
    #[must_use]
    pub fn new(id: ProviderId, name: &str) -> Self {
        Self {
            id,
            name: name.to_owned(),
            state: InstanceState::Running,
            instance_type: None,
            zone: None,
            region: None,
            addresses: Vec::new(),
            withheld: Vec::new(),
            labels: BTreeMap::new(),
            flaw: None,
            facts: None,
        }
    }

    /// An instance that exists and about which the cloud's answer is flawed.
    #[must_use]
    pub fn flawed(id: ProviderId, name: &str, why: &str) -> Self {
        Self { state: InstanceState::Other, flaw: Some(why.into()), ..Self::new(id, name) }
    }
}

/// A listing of instances in which one is found without looking at all of them: a burst of new nodes asks about each
/// several times, and must not cost the square of their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceListing {
    listing: Listing<Instance>,
    by_id: BTreeMap<ProviderId, usize>,
    by_name: BTreeMap<String, Vec<usize>>,
}

impl From<Listing<Instance>> for InstanceListing {
    fn from(listing: Listing<Instance>) -> Self {
        let (mut by_id, mut by_name) = (BTreeMap::new(), BTreeMap::<String, Vec<usize>>::new());
        for (place, instance) in listing.items.iter().enumerate() {
            by_id.entry(instance.id.clone()).or_insert(place);
            by_name.entry(instance.name.clone()).or_default().push(place);
        }
        Self { listing, by_id, by_name }
    }
}

impl InstanceListing {
    /// The first instance with this id. A short listing can show it, never deny it.
    pub fn by_id(&self, id: &ProviderId) -> Lookup<&Instance> {
        match self.by_id.get(id).and_then(|place| self.listing.items.get(*place)) {
            Some(instance) => Lookup::Present(instance),
            None => self.listing.find(|_| false),
        }
    }

    /// Every instance of this name that the listing shows, in its order.
    pub fn called(&self, name: &str) -> impl Iterator<Item = &Instance> {
        self.by_name.get(name).into_iter().flatten().filter_map(|place| self.listing.items.get(*place))
    }
}

impl Deref for InstanceListing {
    type Target = Listing<Instance>;

    fn deref(&self) -> &Listing<Instance> {
        &self.listing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_facts_are_read_by_their_type() {
        let facts = PrivateFacts::new(7_u32);
        assert_eq!((facts.get::<u32>(), facts.get::<String>()), (Some(&7), None));
        assert!(facts == facts.clone() && facts != PrivateFacts::new(7_u32));
    }

    #[test]
    fn an_instance_is_found_by_its_id_or_its_name() {
        let id = |text: &str| text.parse::<ProviderId>().unwrap();
        let all = ["a", "twin", "b", "twin"].iter().enumerate();
        let all: Vec<_> = all.map(|(n, name)| Instance::new(id(&format!("fake://{n}")), name)).collect();
        let complete = InstanceListing::from(Listing::complete(all.clone()));
        let short = InstanceListing::from(Listing::short(all.clone(), "page 2"));
        assert_eq!(complete.by_id(&id("fake://2")), Lookup::Present(&all[2]), "FW-44");
        assert_eq!(short.by_id(&id("fake://2")), Lookup::Present(&all[2]));
        assert_eq!(complete.by_id(&id("fake://9")), Lookup::Absent);
        assert!(matches!(short.by_id(&id("fake://9")), Lookup::Unknown(_)), "L1-206");
        assert_eq!(complete.called("twin").collect::<Vec<_>>(), [&all[1], &all[3]]);
        assert_eq!(complete.called("nobody").count(), 0);
        assert_eq!(complete.items, all);
    }

    #[test]
    fn a_flawed_instance_exists_in_a_state_that_decides_nothing() {
        let id: ProviderId = "fake://1".parse().unwrap();
        let flawed = Instance::flawed(id.clone(), "a", "no addresses");
        assert_eq!((flawed.state, flawed.flaw.as_deref()), (InstanceState::Other, Some("no addresses")));
        assert_eq!(Instance { state: InstanceState::Running, flaw: None, ..flawed }, Instance::new(id, "a"));
    }
}
