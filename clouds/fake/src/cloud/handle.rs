//! The handle with which a test or a demo changes and inspects the cloud.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Clock, Random};

use super::{
    network::{CallRecord, Fault, Network, Request, Shared, lock},
    world::{Balancer, FakeInstance, PowerState, RouteRecord, World},
};

/// How the cloud behaves.
#[derive(Clone, Copy, Debug)]
pub struct SimSettings {
    /// The most that a request or an answer is on its way.
    pub latency: Duration,
    /// How far listings lag behind.
    pub lag: Duration,
    /// How long building a load balancer takes.
    pub build: Duration,
    /// How many load balancers there may be.
    pub quota: usize,
    /// Its load balancers send the traffic of a Service with policy Local only to nodes with a ready pod.
    pub local_endpoints: bool,
    /// Instances that are powered off are listed as running; only who asks about one learns the truth.
    pub hides_power: bool,
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            lag: Duration::ZERO,
            build: Duration::ZERO,
            quota: usize::MAX,
            local_endpoints: false,
            hides_power: false,
        }
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
    /// An empty cloud on this clock.
    pub fn new(clock: Arc<dyn Clock>, random: Random, settings: SimSettings) -> Self {
        let shared = Shared {
            world: Mutex::new(World::new(settings)),
            elsewhere: Mutex::new(World::elsewhere(settings)),
            log: Mutex::default(),
            planner: Mutex::default(),
            latency: Mutex::new(settings.latency),
            local_endpoints: settings.local_endpoints,
            hides_power: settings.hides_power,
            clock,
            random,
        };
        Self { shared: Arc::new(shared) }
    }

    /// A connection for the program called `who`, which has a clock of its own.
    pub(crate) fn connect(&self, who: &str, clock: Arc<dyn Clock>) -> Network {
        Network { shared: Arc::clone(&self.shared), who: who.to_owned(), clock }
    }

    /// Decides for each request what goes wrong with it; replaces what was set before.
    pub fn plan_faults(&self, plan: impl FnMut(&Request) -> Option<Fault> + Send + 'static) {
        lock(&self.shared.planner).set(plan);
    }

    /// Lets everything go well from now on.
    pub fn stop_faults(&self) {
        lock(&self.shared.planner).clear();
    }

    /// Sets how long a request or an answer takes at most, how far listings lag and how long building a load balancer
    /// takes, from now on.
    pub fn set_pace(&self, latency: Duration, lag: Duration, build: Duration) {
        *lock(&self.shared.latency) = latency;
        for world in [&self.shared.world, &self.shared.elsewhere] {
            let mut world = lock(world);
            world.pace = SimSettings { latency, lag, build, ..world.pace };
        }
    }

    /// Builds an instance.
    pub fn add_instance(&self, name: &str, zone: &str) -> FakeInstance {
        let now = self.shared.clock.now();
        lock(&self.shared.world).add_instance(name, zone, now)
    }

    /// Switches an instance on or off.
    pub fn set_state(&self, id: &str, state: PowerState) {
        lock(&self.shared.world).change_instance(id, |instance| instance.state = state);
    }

    /// Gives an instance another size.
    pub fn resize(&self, id: &str, flavor: &str) {
        lock(&self.shared.world).change_instance(id, |instance| flavor.clone_into(&mut instance.flavor));
    }

    /// Destroys an instance.
    pub fn delete_instance(&self, id: &str) {
        let now = self.shared.clock.now();
        lock(&self.shared.world).delete_instance(id, now);
    }

    /// Replaces an instance by another one of the same name, at once and in every listing; `None` where there is no such
    /// instance.
    pub fn replace_instance(&self, id: &str) -> Option<FakeInstance> {
        let now = self.shared.clock.now();
        lock(&self.shared.world).replace_instance(id, now)
    }

    /// Makes a floating address available.
    pub fn add_floating(&self, address: &str) {
        lock(&self.shared.world).add_floating(address);
    }

    /// Builds a load balancer without a request and returns its id; `None` where the quota is used up.
    pub fn add_balancer(&self, name: &str) -> Option<String> {
        let now = self.shared.clock.now();
        lock(&self.shared.world).create_balancer(name, "", now).ok().map(|balancer| balancer.id)
    }

    /// Adds an old load balancer: it is ready, and every listing shows it. `None` where the quota is used up.
    pub fn inherit_balancer(&self, name: &str) -> Option<Balancer> {
        let now = self.shared.clock.now();
        lock(&self.shared.world).inherit_balancer(name, now).ok()
    }

    /// Deletes a load balancer without a request.
    pub fn delete_balancer(&self, id: &str) {
        let now = self.shared.clock.now();
        // One that does not exist is deleted already.
        let _ = lock(&self.shared.world).delete_balancer(id, now);
    }

    /// The instances that really exist, whatever listings show.
    pub fn instances(&self) -> Vec<FakeInstance> {
        lock(&self.shared.world).true_instances()
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
        lock(&self.shared.log).iter().cloned().collect()
    }
}
