//! Machines change: by request, by file, by Vagrant.

use std::path::Path;

use super::Control;
use crate::{
    events::EventKind,
    inventory::{self, Fault, Faults, Inventory, MachineState, VagrantSettings},
    refusal::Refusal,
    state::{KnownMachine, State, StateChange},
    vagrant::{self, Vagrant},
};

impl Control {
    /// Changes the machines, and has events and traffic follow.
    async fn change_machines<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (made, changes) = {
            let mut state = self.state();
            let made = change(&mut state);
            (made, state.note_states(self.now()))
        };
        for StateChange { id, from, to } in changes {
            let shown = |state: Option<MachineState>| state.map_or("absent", MachineState::as_str);
            let message = format!("machine {id} is {}, was {}", shown(to), shown(from));
            tracing::info!(machine = id, "{message}");
            self.events().publish(EventKind::MachineState, id, message);
        }
        self.follow_all().await;
        made
    }

    /// One machine, as it is now.
    pub fn machine(&self, id: &str) -> Result<KnownMachine, Refusal> {
        self.with_state(|state, now| state.machine(id, now))
    }

    /// Sets the state of a machine until the next reload.
    pub async fn set_machine_state(&self, id: &str, to: MachineState) -> Result<KnownMachine, Refusal> {
        let now = self.now();
        self.change_machines(|state| state.set_machine_state(id, to, now)).await
    }

    /// Adds the machine in the body of a request until the next restart.
    pub async fn add_machine(&self, body: &str) -> Result<KnownMachine, Refusal> {
        let now = self.now();
        self.change_machines(|state| state.add_machine(body, now)).await
    }

    /// Deletes a machine; one of the file is back with the next reload. Says whether it was there.
    pub async fn remove_machine(&self, id: &str) -> bool {
        let now = self.now();
        self.change_machines(|state| state.remove_machine(id, now)).await
    }

    /// Reads the inventory file again. Faults leave the inventory as it is.
    pub async fn reload(&self) -> Result<(), Faults> {
        let file = self.state().file().to_owned();
        self.take_inventory(read_file(&file)).await
    }

    /// Takes a new version of the inventory.
    pub async fn take_inventory(&self, read: Result<Inventory, Faults>) -> Result<(), Faults> {
        let now = self.now();
        let old = self.with_state(|state, _| (state.inventory.vagrant.clone(), state.pools.clone()));
        let taken = self.change_machines(|state| state.reload(read, now)).await;
        let object = self.with_state(|state, _| state.file().display().to_string());
        match &taken {
            Ok(()) => {
                let count = self.with_state(|state, _| state.inventory.machines.len());
                tracing::info!(file = object, machines = count, "inventory loaded");
                self.events().publish(EventKind::InventoryLoaded, object, format!("{count} machines"));
                self.0.plane.limit_connections(self.connections_total());
                self.compare_settings(&old);
            }
            Err(faults) => {
                for fault in &faults.0 {
                    tracing::error!("{fault}");
                }
                self.events().publish(EventKind::InventoryInvalid, object, faults.to_string());
            }
        }
        taken
    }

    fn compare_settings(&self, (vagrant, pools): &(Option<VagrantSettings>, crate::addresses::Pools)) {
        let (new_vagrant, new_pools) = self.with_state(|state, _| {
            (state.inventory.vagrant.clone(), crate::addresses::Pools::new(&state.inventory.balancers))
        });
        if new_pools != *pools {
            tracing::warn!("a new mode or pool of load balancers waits for a restart");
        }
        if new_vagrant != *vagrant {
            self.0.vagrant_changed.notify_one();
        }
    }

    /// Asks Vagrant for states, as often as the inventory says; never ends.
    pub async fn follow_vagrant(&self, vagrant: &dyn Vagrant) {
        loop {
            let changed = self.0.vagrant_changed.notified();
            let settings = self.with_state(|state, _| state.inventory.vagrant.clone());
            let Some(settings) = settings else {
                changed.await;
                continue;
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = self.ask_vagrant(vagrant, &settings) => {}
            }
        }
    }

    async fn ask_vagrant(&self, vagrant: &dyn Vagrant, settings: &VagrantSettings) {
        let limit = vagrant::time_limit(settings);
        let asked = tokio::time::timeout(limit, vagrant.status(settings)).await;
        let answer = asked.unwrap_or_else(|_| Err(format!("no answer in {} s", limit.as_secs())));
        match answer.and_then(|output| vagrant::read_answer(&output)) {
            Ok(states) => {
                let now = self.now();
                self.change_machines(|state| state.vagrant.answered(now, states)).await;
            }
            Err(why) => {
                tracing::error!(directory = %settings.directory.display(), "Vagrant gave no states: {why}");
                // What is known may have become too old.
                self.change_machines(|_| ()).await;
            }
        }
        tokio::time::sleep(settings.refresh).await;
    }
}

/// Reads an inventory file. One that cannot be read at all has one fault.
pub(crate) fn read_file(file: &Path) -> Result<Inventory, Faults> {
    let text = std::fs::read(file)
        .map_err(|why| why.to_string())
        .and_then(|bytes| String::from_utf8(bytes).map_err(|why| format!("it is not UTF-8 text: {why}")));
    match text {
        Ok(text) => inventory::read(&text, file),
        Err(why) => Err(Faults(vec![Fault::of_file(&file.display().to_string(), why)])),
    }
}
