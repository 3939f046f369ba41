//! The machines, from wherever they come.

use cloudberth_core::Tick;

use super::State;
use crate::{
    inventory::{Machine, MachineState, read_machine_json},
    refusal::Refusal,
};

/// Where a machine comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The inventory file.
    File,
    /// A request.
    Runtime,
}

impl Source {
    /// The word in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Runtime => "runtime",
        }
    }
}

/// A machine as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMachine {
    /// What it is.
    pub machine: Machine,
    /// What it does now.
    pub state: MachineState,
    /// Where it comes from.
    pub source: Source,
}

/// A machine does something else than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The id of the machine.
    pub id: String,
    /// What it did; none if it was not there.
    pub from: Option<MachineState>,
    /// What it does; none if it is not there any more.
    pub to: Option<MachineState>,
}

fn not_found(id: &str) -> Refusal {
    Refusal::new(404, "machine_not_found", format!("no machine has the id {id:?}"))
}

impl State {
    /// All machines, by id.
    pub fn machines(&self, now: Tick) -> Vec<KnownMachine> {
        let of_file = self.inventory.machines.values().filter(|machine| !self.removed.contains(&machine.id));
        let of_file = of_file.map(|machine| self.known_machine(machine, Source::File, now));
        let runtime = self.runtime.values().map(|machine| self.known_machine(machine, Source::Runtime, now));
        let mut all: Vec<_> = of_file.chain(runtime).collect();
        all.sort_unstable_by(|a, b| a.machine.id.cmp(&b.machine.id));
        all
    }

    /// One machine.
    pub fn machine(&self, id: &str, now: Tick) -> Result<KnownMachine, Refusal> {
        if let Some(machine) = self.runtime.get(id) {
            return Ok(self.known_machine(machine, Source::Runtime, now));
        }
        let machine = self.inventory.machines.get(id).filter(|_| !self.removed.contains(id));
        machine.map(|machine| self.known_machine(machine, Source::File, now)).ok_or_else(|| not_found(id))
    }

    fn known_machine(&self, machine: &Machine, source: Source, now: Tick) -> KnownMachine {
        let of_source = || match (&self.inventory.vagrant, source) {
            (Some(settings), Source::File) => self.vagrant.state(settings, &machine.name, machine.state, now),
            _ => machine.state,
        };
        let state = self.patched.get(&machine.id).copied().unwrap_or_else(of_source);
        KnownMachine { machine: machine.clone(), state, source }
    }

    /// Sets the state of a machine until the next reload.
    pub fn set_machine_state(
        &mut self,
        id: &str,
        state: MachineState,
        now: Tick,
    ) -> Result<KnownMachine, Refusal> {
        self.machine(id, now)?;
        self.patched.insert(id.to_owned(), state);
        self.machine(id, now)
    }

    /// Adds the machine in the body of a request until the next restart.
    pub fn add_machine(&mut self, body: &str, now: Tick) -> Result<KnownMachine, Refusal> {
        let machine = read_machine_json(body, &self.inventory).map_err(Refusal::invalid)?;
        if self.machine(&machine.id, now).is_ok() {
            return Err(Refusal::new(
                409,
                "machine_exists",
                format!("there is a machine {:?} already", machine.id),
            ));
        }
        self.check_room(&machine, now)?;
        self.patched.remove(&machine.id);
        let id = machine.id.clone();
        self.runtime.insert(id.clone(), machine);
        self.machine(&id, now)
    }

    /// Names and addresses are unique in a cluster.
    fn check_room(&self, new: &Machine, now: Tick) -> Result<(), Refusal> {
        let mut faults = Vec::new();
        for KnownMachine { machine: old, .. } in self.machines(now) {
            if old.cluster != new.cluster {
                continue;
            }
            if old.name == new.name {
                faults.push(format!("name: {:?} is that of machine {}", new.name, old.id));
            }
            let taken: Vec<_> = old.internal.iter().chain(&old.external).collect();
            let mut wanted: Vec<_> = new.internal.iter().chain(&new.external).collect();
            wanted.sort_unstable();
            wanted.dedup();
            for address in wanted.into_iter().filter(|address| taken.contains(address)) {
                faults.push(format!("internal, external: {address} is an address of machine {}", old.id));
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Refusal::invalid(faults.join("; "))) }
    }

    /// Deletes a machine; one of the file is back with the next reload. Says whether it was there.
    pub fn remove_machine(&mut self, id: &str, now: Tick) -> bool {
        let known = self.machine(id, now).is_ok();
        self.patched.remove(id);
        if self.runtime.remove(id).is_none() && known {
            self.removed.insert(id.to_owned());
        }
        known
    }

    /// What has changed since the last time this was asked.
    pub fn note_states(&mut self, now: Tick) -> Vec<StateChange> {
        let states: std::collections::BTreeMap<_, _> =
            self.machines(now).into_iter().map(|known| (known.machine.id, known.state)).collect();
        let mut changes = Vec::new();
        for (id, state) in &states {
            let before = self.told.get(id).copied();
            if before != Some(*state) {
                changes.push(StateChange { id: id.clone(), from: before, to: Some(*state) });
            }
            if *state != MachineState::Unknown {
                self.known.insert(id.clone(), *state);
            }
        }
        for (id, state) in &self.told {
            if !states.contains_key(id) {
                changes.push(StateChange { id: id.clone(), from: Some(*state), to: None });
            }
        }
        self.known.retain(|id, _| states.contains_key(id));
        self.told = states;
        changes
    }
}
