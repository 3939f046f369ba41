//! What is written down: enough to serve again after a restart, without any manager.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Balancer, Balancers};
use crate::{
    addresses::{Pools, Released, ReleasedAddresses},
    inventory::AddressMode,
    plane::BalancerKey,
    spec::{self, SpecView},
};

const VERSION: u32 = 1;

/// The content of the state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Persisted {
    version: u32,
    balancers: Vec<Entry>,
    released: Vec<ReleasedEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    cluster: String,
    namespace: String,
    name: String,
    generation: u64,
    addresses: Vec<IpAddr>,
    spec: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleasedEntry {
    cluster: String,
    namespace: String,
    name: String,
    address: IpAddr,
}

/// What was read, and what could not be kept of it.
#[derive(Debug)]
pub struct Restored {
    /// The load balancers.
    pub balancers: Balancers,
    /// Those that the new settings have no room for, and why.
    pub lost: Vec<(BalancerKey, String)>,
}

impl Persisted {
    /// What has to be written down.
    pub fn new(balancers: &Balancers) -> Self {
        let entries = balancers.entries.iter().map(|(key, balancer)| Entry {
            cluster: key.cluster.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            generation: balancer.generation,
            addresses: balancer.addresses.clone(),
            spec: serde_json::to_value(SpecView::new(&balancer.spec, balancer.spec.address_mode))
                .unwrap_or_default(),
        });
        let released = balancers.released.iter().map(|released| ReleasedEntry {
            cluster: released.key.cluster.clone(),
            namespace: released.key.namespace.clone(),
            name: released.key.name.clone(),
            address: released.address,
        });
        Self { version: VERSION, balancers: entries.collect(), released: released.collect() }
    }

    /// The text of the state file.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Reads a state file. The error says why it cannot be used at all.
    pub fn restore(text: &str, pools: &Pools) -> Result<Restored, String> {
        let read: Self = serde_json::from_str(text).map_err(|why| why.to_string())?;
        if read.version != VERSION {
            return Err(format!("its version is {}, not {VERSION}", read.version));
        }
        let released = read.released.into_iter().map(|entry| {
            let ReleasedEntry { cluster, namespace, name, address } = entry;
            Released { key: BalancerKey { cluster, namespace, name }, address }
        });
        let mut balancers = Balancers { released: ReleasedAddresses::new(released), ..Balancers::default() };
        let mut lost = Vec::new();
        let mut entries = Vec::new();
        for entry in read.balancers {
            let Entry { cluster, namespace, name, generation, addresses, spec } = entry;
            let key = BalancerKey { cluster, namespace, name };
            // Which families there are in which mode is seen when the address is chosen.
            let spec = spec::read(&spec, AddressMode::Shared).map_err(|why| format!("{key}: {why}"))?;
            entries.push((key, Balancer { spec, generation, addresses }));
        }
        // Those who can keep their addresses go first, so that nobody who has to move takes one of them.
        let keeps = |balancer: &Balancer| {
            let pool = pools.of(balancer.spec.mode(pools.default_mode));
            balancer.addresses.iter().all(|address| pool.contains(*address))
        };
        entries.sort_by_key(|(_, balancer)| !keeps(balancer));
        for (key, balancer) in entries {
            if let Err(why) = balancers.restore(&key, balancer, pools) {
                lost.push((key, why.message));
            }
        }
        Ok(Restored { balancers, lost })
    }
}
