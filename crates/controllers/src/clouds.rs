//! The configured clouds of one cluster.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
};

use cloudberth_core::{
    Clock, NodeView, Result,
    decide::{
        lifecycle::Deletions,
        node::ownership::PROVIDER_LABEL,
        service::assignments::{Assignments, Candidate},
    },
    provider::{LoadBalancers, Provider},
    provider_id::Reading,
};
use cloudberth_runtime::{
    bug::caught,
    metrics::{Counter, QueueMetrics, queue::PoolLabels},
};

use crate::{inventory::Inventory, lock};

/// One cloud.
#[derive(Clone)]
pub struct Cloud {
    /// Its capabilities.
    pub provider: Arc<dyn Provider>,
    /// Its instances.
    pub inventory: Arc<Inventory>,
    /// The deletions of its nodes. A replica that loses the lead and leads again remembers its own (law 2).
    pub(crate) deletions: Arc<Mutex<Deletions>>,
}

/// All clouds, and who serves which Service.
#[derive(Clone, Debug)]
pub struct Clouds {
    all: Vec<Cloud>,
    /// Who serves which Service.
    pub assignments: Arc<Assignments>,
    odd: Arc<OddIds>,
}

/// More ids than these on which a provider panics are not remembered; then it is asked again each time.
const ODD_IDS: usize = 1_000;
/// Their queue label in the metrics.
const ODD_QUEUE: &str = "provider-ids";

/// Provider ids on which a cloud's own reading panics.
///
/// To whom a node belongs is asked in places that are about all nodes: in listeners, in rounds over a cloud's instances,
/// for the members of every load balancer. A bug that one node's id meets there would stall all others (law 11).
#[derive(Debug, Default)]
struct OddIds {
    known: Mutex<BTreeSet<(String, String)>>,
    panics: Mutex<Counter>,
}

/// A provider, and the load-balancer classes that it serves.
pub type Member = (Arc<dyn Provider>, BTreeSet<String>);

impl Clouds {
    /// These clouds. Services without a class go to `default`; with one cloud only, to that one.
    pub fn new(members: Vec<Member>, default: Option<String>, clock: &Arc<dyn Clock>) -> Result<Self> {
        let sole = match members.as_slice() {
            [(only, _)] if only.load_balancers().is_some() => Some(only.name().to_owned()),
            _ => None,
        };
        let candidates = members.iter().filter_map(|(provider, classes)| {
            let marks =
                provider.load_balancers()?.profile().marks.iter().map(|mark| (*mark).to_owned()).collect();
            Some(Candidate { name: provider.name().to_owned(), classes: classes.clone(), marks })
        });
        let assignments = Arc::new(Assignments::new(candidates.collect(), default.or(sole))?);
        let cloud = |(provider, _): Member| Cloud {
            inventory: Arc::new(Inventory::new(Arc::clone(&provider), Arc::clone(clock))),
            deletions: Arc::new(Mutex::new(Deletions::since(clock.now()))),
            provider,
        };
        Ok(Self { all: members.into_iter().map(cloud).collect(), assignments, odd: Arc::default() })
    }

    /// Counts the ids on which a provider panics in these metrics.
    #[must_use]
    pub fn metered(self, metrics: &QueueMetrics) -> Self {
        *lock(&self.odd.panics) = metrics.panics.with(&PoolLabels { queue: ODD_QUEUE });
        self
    }

    /// All of them, in the order in which they were configured.
    pub fn iter(&self) -> impl Iterator<Item = &Cloud> + Clone {
        self.all.iter()
    }

    /// The one of this name.
    pub fn named(&self, name: &str) -> Option<&Cloud> {
        self.iter().find(|cloud| cloud.provider.name() == name)
    }

    /// Those that have instances at all.
    pub fn with_instances(&self) -> impl Iterator<Item = &Cloud> + Clone {
        self.iter().filter(|cloud| cloud.provider.instances().is_some())
    }

    /// Whether one of them has to know on which nodes the pods of Services are.
    pub fn need_endpoints(&self) -> bool {
        self.iter().filter_map(Cloud::load_balancers).any(|balancers| balancers.profile().needs_endpoints)
    }

    /// The clouds whose instances say to whom a node belongs and which instance it is: the one whose id it carries; one
    /// that the id is meant for, though it cannot read it; without an id the one that its label names, otherwise all.
    /// None for a node that is certainly somebody else's.
    pub fn candidates(&self, node: &NodeView) -> Vec<&Cloud> {
        let Some(id) = &node.provider_id else {
            let label = node.labels.get(PROVIDER_LABEL);
            return self
                .with_instances()
                .filter(|cloud| label.is_none_or(|name| name == cloud.name()))
                .collect();
        };
        let reads = |wanted: fn(&Reading) -> bool| {
            self.with_instances().find(move |cloud| wanted(&cloud.provider.read_id(id)))
        };
        let mine = reads(|reading| matches!(reading, Reading::Mine(_)));
        mine.or_else(|| reads(|reading| *reading == Reading::Malformed)).into_iter().collect()
    }

    /// The cloud to which a node certainly belongs: whose id it carries, or, while it carries none, which its label
    /// names, or the only one at work. To whom any other node belongs takes a look at the instances.
    pub fn owner(&self, node: &NodeView) -> Option<&Cloud> {
        let Some(id) = &node.provider_id else {
            return match (node.labels.get(PROVIDER_LABEL), self.all.as_slice()) {
                (Some(name), _) => self.named(name),
                (None, [only]) => Some(only),
                (None, _) => None,
            };
        };
        self.iter().find(|cloud| self.is_mine(cloud, &node.name, id))
    }

    /// Whether a cloud reads an id as one of its own. An id on which it panics is nobody's for certain.
    fn is_mine(&self, cloud: &Cloud, node: &str, id: &str) -> bool {
        let OddIds { known, panics } = &*self.odd;
        let odd = || (cloud.name().to_owned(), id.to_owned());
        {
            let known = lock(known);
            if !known.is_empty() && known.contains(&odd()) {
                return false;
            }
        }
        caught(|| matches!(cloud.provider.read_id(id), Reading::Mine(_))).unwrap_or_else(|text| {
            tracing::error!(
                cloud = cloud.name(),
                node,
                id,
                text,
                "internal error: reading a provider id panicked"
            );
            lock(panics).inc();
            let mut known = lock(known);
            if known.len() < ODD_IDS {
                known.insert(odd());
            }
            false
        })
    }
}

impl Cloud {
    /// Its name.
    pub fn name(&self) -> &str {
        self.provider.name()
    }

    /// Its load balancers.
    pub fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        self.provider.load_balancers()
    }
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud")
            .field("name", &self.name())
            .field("inventory", &self.inventory)
            .finish_non_exhaustive()
    }
}
