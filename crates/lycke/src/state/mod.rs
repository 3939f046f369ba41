//! Everything that the service knows, and how it changes. Nothing here waits or writes.

mod balancers;
mod machines;
mod persisted;
mod silence;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use cloudberth_core::Tick;

pub use balancers::{Balancer, Balancers, Put};
pub use machines::{KnownMachine, Source, StateChange};
pub use persisted::{Persisted, Restored};
use silence::Silence;

use crate::{
    addresses::Pools,
    inventory::{self, Faults, Inventory, Machine, MachineState},
    plane::{BalancerConfig, BalancerKey},
    vagrant::VagrantStates,
};

/// Everything that the service knows.
#[derive(Clone, Debug)]
pub struct State {
    /// The inventory that is in force.
    pub(crate) inventory: Inventory,
    file: PathBuf,
    /// When it was read.
    pub(crate) loaded: Tick,
    /// What is wrong with the file that is there now.
    pub(crate) faults: Option<Faults>,
    /// Mode and pool of the start: new ones wait for a restart.
    pub(crate) pools: Pools,
    /// States that were set through the API.
    patched: BTreeMap<String, MachineState>,
    /// Machines that were added through the API.
    runtime: BTreeMap<String, Machine>,
    /// Machines of the file that were deleted through the API.
    removed: BTreeSet<String>,
    pub(crate) vagrant: VagrantStates,
    /// The states that were told last.
    told: BTreeMap<String, MachineState>,
    /// The states that were known last: an unknown one changes nothing for traffic.
    known: BTreeMap<String, MachineState>,
    /// The load balancers.
    pub(crate) balancers: Balancers,
    /// Which clusters nobody asks about.
    silence: Silence,
}

impl State {
    /// What is known at the start.
    pub fn new(inventory: Inventory, file: PathBuf, balancers: Balancers, pools: Pools, now: Tick) -> Self {
        let mut state = Self {
            inventory,
            file,
            loaded: now,
            faults: None,
            pools,
            patched: BTreeMap::new(),
            runtime: BTreeMap::new(),
            removed: BTreeSet::new(),
            vagrant: VagrantStates::default(),
            told: BTreeMap::new(),
            known: BTreeMap::new(),
            balancers,
            silence: Silence::new(now),
        };
        state.note_states(now);
        state
    }

    /// The inventory file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The file has changed to this. A version with faults, or one that empties a cluster, is not used.
    pub fn reload(&mut self, read: Result<Inventory, Faults>, now: Tick) -> Result<(), Faults> {
        let read = read.and_then(|new| {
            let emptied = inventory::emptied_clusters(&self.inventory, &new, &self.file);
            if emptied.is_empty() { Ok(new) } else { Err(Faults(emptied)) }
        });
        let new = read.inspect_err(|faults| self.faults = Some(faults.clone()))?;
        if new.vagrant != self.inventory.vagrant {
            self.vagrant = VagrantStates::default();
        }
        self.inventory = new;
        self.loaded = now;
        self.faults = None;
        self.patched.clear();
        self.removed.clear();
        self.runtime.retain(|id, _| !self.inventory.machines.contains_key(id));
        Ok(())
    }

    /// What the plane should make of a load balancer.
    pub fn config(&self, key: &BalancerKey) -> Option<BalancerConfig> {
        let balancer = self.balancers.get(key)?;
        let down = |machine: &str| match self.known.get(machine) {
            Some(MachineState::Running | MachineState::Unknown) | None => None,
            Some(state) => Some(format!("machine {state}")),
        };
        Some(balancer.spec.config(&balancer.addresses, self.inventory.balancers.limits, down))
    }

    /// Whether the inventory has this cluster.
    pub(crate) fn has_cluster(&self, key: &str) -> bool {
        self.inventory.clusters.contains_key(key)
    }
}

#[cfg(test)]
mod tests;
