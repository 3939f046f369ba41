//! The cloud from outside: what a test or a demo does to it, and what it may look at.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Clock, Dice};

use super::{
    network::{CallRecord, Fault, Network, Request, Shared, lock},
    world::{Balancer, Machine, MachineState, Pace, RouteRecord, World},
};

/// How the cloud behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// The most that one way of a request takes.
    pub latency: Duration,
    /// How far listings lag behind what is.
    pub lag: Duration,
    /// How long building a load balancer takes.
    pub build: Duration,
    /// How many load balancers there may be.
    pub quota: usize,
}

impl Default for Manners {
    fn default() -> Self {
        Self { latency: Duration::ZERO, lag: Duration::ZERO, build: Duration::ZERO, quota: usize::MAX }
    }
}

/// A cloud. Clones are handles to the same one.
#[derive(Clone)]
pub struct Cloud {
    shared: Arc<Shared>,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud").finish_non_exhaustive()
    }
}

impl Cloud {
    /// An empty cloud that goes by `clock`.
    pub fn new(clock: Arc<dyn Clock>, dice: Dice, manners: Manners) -> Self {
        let pace = Pace { lag: manners.lag, build: manners.build, quota: manners.quota };
        let shared = Shared {
            world: Mutex::new(World::new(pace)),
            elsewhere: Mutex::new(World::elsewhere(pace)),
            log: Mutex::default(),
            plan: Mutex::new(None),
            latency: Mutex::new(manners.latency),
            requests: Mutex::new(0),
            clock,
            dice,
        };
        Self { shared: Arc::new(shared) }
    }

    /// A connection for the program called `who`, which has a clock of its own.
    pub(crate) fn connect(&self, who: &str, clock: Arc<dyn Clock>) -> Network {
        Network { shared: Arc::clone(&self.shared), who: who.to_owned(), clock }
    }

    /// Decides for each request what goes wrong with it; replaces what was set before.
    pub fn plan_faults(&self, plan: impl FnMut(&Request) -> Option<Fault> + Send + 'static) {
        *lock(&self.shared.plan) = Some(Box::new(plan));
    }

    /// Lets everything go well from now on.
    pub fn stop_faults(&self) {
        *lock(&self.shared.plan) = None;
    }

    /// Builds a machine.
    pub fn add_machine(&self, name: &str, zone: &str) -> Machine {
        let now = self.shared.clock.now();
        lock(&self.shared.world).add_machine(name, zone, now)
    }

    /// Switches a machine on or off.
    pub fn set_state(&self, id: &str, state: MachineState) {
        lock(&self.shared.world).change_machine(id, |machine| machine.state = state);
    }

    /// Gives a machine another size.
    pub fn resize(&self, id: &str, flavor: &str) {
        lock(&self.shared.world).change_machine(id, |machine| flavor.clone_into(&mut machine.flavor));
    }

    /// Destroys a machine.
    pub fn delete_machine(&self, id: &str) {
        let now = self.shared.clock.now();
        lock(&self.shared.world).delete_machine(id, now);
    }

    /// Destroys a machine and builds another one of the same name, at once and for every listing; `None` where there is
    /// none to destroy.
    pub fn replace_machine(&self, id: &str) -> Option<Machine> {
        let now = self.shared.clock.now();
        lock(&self.shared.world).replace_machine(id, now)
    }

    /// Makes a floating address available.
    pub fn add_floating(&self, address: &str) {
        lock(&self.shared.world).add_floating(address);
    }

    /// Builds a load balancer behind everybody's back; `None` where the quota is used up. Returns its id.
    pub fn add_balancer(&self, name: &str) -> Option<String> {
        let now = self.shared.clock.now();
        lock(&self.shared.world).create_balancer(name, "", now).ok().map(|balancer| balancer.id)
    }

    /// A load balancer that somebody built long ago: it is ready, and every listing shows it. `None` where the quota is
    /// used up.
    pub fn inherit_balancer(&self, name: &str) -> Option<Balancer> {
        let now = self.shared.clock.now();
        lock(&self.shared.world).inherit_balancer(name, now).ok()
    }

    /// Deletes a load balancer behind everybody's back.
    pub fn delete_balancer(&self, id: &str) {
        let now = self.shared.clock.now();
        // Deleting what is not there is what was asked for.
        let _ = lock(&self.shared.world).delete_balancer(id, now);
    }

    /// The machines that really exist, whatever listings show.
    pub fn machines(&self) -> Vec<Machine> {
        lock(&self.shared.world).true_machines()
    }

    /// The load balancers that really exist, whatever listings show.
    pub fn balancers(&self) -> Vec<Balancer> {
        let now = self.shared.clock.now();
        lock(&self.shared.world).true_balancers(now)
    }

    /// The name of a load balancer that exists or once did.
    pub fn name_of_balancer(&self, id: &str) -> Option<String> {
        lock(&self.shared.world).name_of_balancer(id)
    }

    /// The routes that exist.
    pub fn routes(&self) -> Vec<RouteRecord> {
        lock(&self.shared.world).list_routes()
    }

    /// Every request that reached the cloud so far.
    pub fn calls(&self) -> Vec<CallRecord> {
        lock(&self.shared.log).clone()
    }
}
