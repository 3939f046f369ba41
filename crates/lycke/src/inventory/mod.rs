//! The machines that exist: what the inventory file says.
//!
//! Reading is strict. Every fault of a file is reported at once, each with its line and field, and a file with a fault is
//! not used at all.

mod demo;
mod duration;
mod fault;
mod machine;
mod read;
mod reload;
mod settings;

use std::{collections::BTreeMap, fmt, net::IpAddr, path::PathBuf, time::Duration};

pub use demo::{Demo, MOST_CLUSTERS, MOST_WORKERS};
pub use fault::{Fault, Faults};
pub(crate) use machine::read_json as read_machine_json;
pub use read::read;
pub(crate) use reload::emptied_clusters;
pub use settings::{AddressMode, BalancerSettings};

/// What a valid inventory file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// By key.
    pub clusters: BTreeMap<String, Cluster>,
    /// By name.
    pub types: BTreeMap<String, MachineType>,
    /// Where machines are that do not say it.
    pub defaults: Place,
    /// By id.
    pub machines: BTreeMap<String, Machine>,
    /// Where live states come from, if they do.
    pub vagrant: Option<VagrantSettings>,
    /// How load balancers are made.
    pub balancers: BalancerSettings,
    /// A reload may take the last machine of a cluster away.
    pub allow_empty: bool,
}

/// A Kubernetes cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// What its manager calls it (`--cluster-name`).
    pub kubernetes_name: String,
    /// Whether a manager works on it.
    pub managed: bool,
    /// The line of the file that declares it.
    pub line: usize,
}

/// The size of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineType {
    /// How many processors it has.
    pub cpus: Option<u32>,
    /// How much memory it has.
    pub memory_mib: Option<u32>,
}

/// A region and a zone in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The region.
    pub region: String,
    /// The zone.
    pub zone: String,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its id, alone in the inventory.
    pub id: String,
    /// The name of its node, alone in its cluster.
    pub name: String,
    /// The key of its cluster.
    pub cluster: String,
    /// The name of its type.
    pub machine_type: String,
    /// Where it is.
    pub place: Place,
    /// Addresses inside of its network.
    pub internal: Vec<IpAddr>,
    /// Addresses for others.
    pub external: Vec<IpAddr>,
    /// Where its node ports answer, as seen from here.
    pub backend: IpAddr,
    /// Its state, as far as the file knows.
    pub state: MachineState,
    /// Labels for its node.
    pub labels: BTreeMap<String, String>,
    /// The provider id of its node where another program owns the node: it stands behind load balancers, and is neither
    /// labelled nor tainted nor deleted.
    pub node_provider_id: Option<String>,
}

/// What a machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineState {
    /// It runs.
    Running,
    /// It is switched off.
    Stopped,
    /// It sleeps.
    Suspended,
    /// It does not exist any more.
    Gone,
    /// Nobody knows. Nothing may be concluded from it.
    Unknown,
}

impl MachineState {
    /// The states that can be set.
    pub const SETTABLE: [Self; 4] = [Self::Running, Self::Stopped, Self::Suspended, Self::Gone];

    /// The word in files and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Suspended => "suspended",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }

    /// A state that can be set. The error says which there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::SETTABLE
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a state; there are running, stopped, suspended and gone"))
    }
}

impl fmt::Display for MachineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where Vagrant is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VagrantSettings {
    /// The directory of the Vagrantfile.
    pub directory: PathBuf,
    /// The time between two questions.
    pub refresh: Duration,
}

#[cfg(test)]
mod tests;
