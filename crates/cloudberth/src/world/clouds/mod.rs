//! The clouds that a world can have, each behind the same small trait.

mod binarylane;
mod brightbox;
mod cloudlycke;
mod cloudscale;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use cloudberth_core::{Clock, Error, Provider, Random};

use cloudlycke::Cloudlycke;
pub use cloudlycke::free_port;

use super::{
    contract::{Health, Later},
    wire::Wire,
};

/// How long a request to a simulated cloud takes.
const LATENCY: Duration = Duration::from_millis(40);
/// How long building a load balancer takes there.
const BUILD: Duration = Duration::from_secs(1);
/// The name of the cluster; load balancers in the clouds carry it.
pub(crate) const CLUSTER: &str = "sandbox";

/// What an instance is in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstanceView {
    /// The name of its node.
    pub(crate) name: String,
    pub(crate) running: bool,
}

/// What a load balancer is in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BalancerView {
    pub(crate) members: Vec<MemberView>,
    /// The ports on which it listens, in order.
    pub(crate) ports: Vec<u16>,
    /// Where a client on this computer finds it.
    pub(crate) reachable: Option<SocketAddr>,
}

/// What a member of a load balancer is in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberView {
    /// The name of its node.
    pub(crate) instance: String,
    pub(crate) health: Health,
    /// Connections that it has taken so far.
    pub(crate) connections: u64,
}

/// What providers are made of.
#[derive(Clone)]
pub(crate) struct Around {
    pub(crate) wire: Wire,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<Random>,
}

/// A cloud, as a person sees it who owns all of it.
pub(crate) trait WorldCloud: Send + Sync {
    /// What `--cloud-provider` calls it.
    fn name(&self) -> &'static str;

    /// The provider for one replica of the manager.
    fn provider(&self, around: &Around) -> Result<Arc<dyn Provider>, String>;

    /// The instances that exist.
    fn instances(&self) -> Vec<InstanceView>;

    /// The load balancer that a provider would call so.
    fn balancer(&self, name: &str) -> Option<BalancerView>;

    /// How many load balancers exist, whosever they are.
    fn balancer_count(&self) -> usize;

    /// An instance boots. The answer is the name of its node, which is not everywhere that of the instance.
    fn add<'a>(&'a self, name: &'a str) -> Later<'a, Result<String, String>>;

    /// An instance is switched on or off.
    fn set_running<'a>(&'a self, name: &'a str, running: bool) -> Later<'a, Result<(), String>>;

    /// An instance is destroyed.
    fn destroy<'a>(&'a self, name: &'a str) -> Later<'a, Result<(), String>>;

    /// Where the node ports of an instance are; `None` where no traffic flows.
    fn node_address(&self, _name: &str) -> Option<IpAddr> {
        None
    }

    /// Ends it: nothing listens any more.
    fn close(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The names of the clouds that a world can have; the first is the default.
pub const PROVIDERS: [&str; 4] = ["cloudlycke", "cloudscale", "binarylane", "brightbox"];

/// An annotation of a cloud, and a value for it that has a mistake in it.
pub fn mistake(provider: &str) -> (&'static str, &'static str) {
    match provider {
        "cloudscale" => ("k8s.cloudscale.ch/loadbalancer-pool-algorithm", "least_conections"),
        "binarylane" => ("service.beta.kubernetes.io/binarylane-loadbalancer-protocol", "htpp"),
        "brightbox" => ("service.beta.kubernetes.io/brightbox-load-balancer-policy", "least-conections"),
        _ => ("service.beta.kubernetes.io/cloudlycke-load-balancer-policy", "least-conections"),
    }
}

/// A cloud without instances.
pub(crate) fn open(name: &str, around: &Around) -> Result<Box<dyn WorldCloud>, String> {
    let clock = Arc::clone(&around.clock);
    let random = Random::seeded(around.random.bits());
    match name {
        "cloudlycke" => Ok(Box::new(Cloudlycke::new(&clock)?)),
        "cloudscale" => Ok(Box::new(cloudscale::Simulated::new(clock, random))),
        "binarylane" => Ok(Box::new(binarylane::Simulated::new(clock, random))),
        "brightbox" => Ok(Box::new(brightbox::Simulated::new(clock, random))),
        other => Err(format!("no cloud is called {other:?}; there are {}", PROVIDERS.join(", "))),
    }
}

fn no_instance(name: &str) -> String {
    format!("the cloud has no instance called {name}")
}

/// The zones of a cloud take turns.
fn zone_for<'a>(zones: &[&'a str], existing: usize) -> &'a str {
    zones.get(existing.checked_rem(zones.len()).unwrap_or_default()).copied().unwrap_or_default()
}

fn done<T: Send + 'static>(answer: T) -> Later<'static, T> {
    Box::pin(std::future::ready(answer))
}

/// All mistakes in one text. There are none, unless a provider has changed what it asks for.
fn mistakes(all: &[Error]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A member that is not asked about is as well as its instance.
const fn health_of(running: bool) -> Health {
    if running { Health::Up } else { Health::Down }
}
