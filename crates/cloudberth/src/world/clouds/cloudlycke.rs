//! Cloudlycke in this process, with the data plane that carries real traffic. Its state is in memory only, so that
//! nothing is left of it, however it ends.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use cloudberth_cloudlycke::{CloudlyckeProvider, FileSettings, Settings, Sources, Surroundings};
use cloudberth_core::{Clock, Provider};
use cloudberth_http::{Env, Unobserved};
use cloudberth_lycke::{
    api::Api,
    control::{BalancerStatus, Control, Parts},
    events::EventLog,
    inventory::{self, MachineState},
    plane::{
        BalancerKey, PlaneObserver, Protocol,
        socket::{PlaneSettings, SocketPlane},
    },
    state::Balancers,
    store::NoStore,
};
use serde_json::json;

use super::{
    Around, BalancerView, CLUSTER, Health, InstanceView, Later, MemberView, WorldCloud, mistakes, no_instance,
};

/// The type of the workers of the original demonstration.
const TYPE: &str = "vbox.vm.1g.2cpu";
/// Each node has an address of its own in a block of 256.
pub(crate) const MOST_NODES: u8 = 250;

/// A part of the loopback network that only this world uses.
pub(crate) struct Block {
    number: u8,
    /// Whoever holds this port holds the block; the system takes it back even from a process that was killed.
    _guard: TcpListener,
}

impl Block {
    const GUARD_PORT: u16 = 7733;
    const LAST: u8 = 250;

    /// The first block that no other world holds.
    fn take() -> Result<Self, String> {
        for number in 1..=Self::LAST {
            match TcpListener::bind((Ipv4Addr::new(127, 76, number, 1), Self::GUARD_PORT)) {
                Ok(guard) => return Ok(Self { number, _guard: guard }),
                Err(why) if why.kind() == std::io::ErrorKind::AddrInUse => {}
                Err(why) => {
                    return Err(format!(
                        "127.76.{number}.1 cannot be used: {why}. Real traffic needs the whole network 127.0.0.0/8 on the \
                         loopback interface, which Linux has; --provider cloudscale does without"
                    ));
                }
            }
        }
        Err(format!("{} worlds with real traffic run on this computer already; end some", Self::LAST))
    }

    const fn node(&self, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 78, self.number, number)
    }

    const fn pool(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 79, self.number, 0)
    }

    fn inventory(&self) -> String {
        format!(
            "version: 1\ndefaults: {{ region: virtualbox, zone: virtualbox }}\nclusters:\n  {CLUSTER}: {{ kubernetesName: \
             {CLUSTER}, managed: true }}\ntypes:\n  {TYPE}: {{ cpus: 2, memoryMiB: 1024 }}\nmachines: []\nallowEmpty: \
             true\nloadBalancers: {{ mode: loopback, pool: {}/24, drain: 1s }}\n",
            self.pool()
        )
    }
}

/// The cloud on this computer.
pub(crate) struct Cloudlycke {
    control: Control,
    block: Block,
    machines: Mutex<BTreeMap<String, Machine>>,
    /// How many there were so far: an id is never used again.
    made: AtomicU32,
}

struct Machine {
    id: String,
    address: Ipv4Addr,
}

impl Cloudlycke {
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Result<Self, String> {
        let block = Block::take()?;
        let file = PathBuf::from("sandbox.yaml");
        let inventory = inventory::read(&block.inventory(), &file).map_err(|faults| faults.to_string())?;
        let events = EventLog::new(Arc::clone(clock));
        let observer: Arc<dyn PlaneObserver> = Arc::new(events.clone());
        let plane = SocketPlane::start(PlaneSettings::default(), observer, Arc::clone(clock))
            .map_err(|why| format!("the data plane does not start: {why}"))?;
        let parts = Parts {
            inventory,
            file,
            balancers: Balancers::default(),
            plane: Arc::new(plane),
            store: Arc::new(NoStore),
            events,
        };
        let control = Control::new(parts, Arc::clone(clock));
        Ok(Self { control, block, machines: Mutex::default(), made: AtomicU32::new(0) })
    }

    fn machines(&self) -> MutexGuard<'_, BTreeMap<String, Machine>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self, name: &str) -> Result<String, String> {
        self.machines().get(name).map(|machine| machine.id.clone()).ok_or_else(|| no_instance(name))
    }

    fn node_of(&self, id: &str) -> String {
        let machines = self.machines();
        let found = machines.iter().find(|(_, machine)| machine.id == id);
        found.map_or_else(|| id.to_owned(), |(name, _)| name.clone())
    }

    async fn boot(&self, name: &str) -> Result<String, String> {
        let (id, address) = {
            let machines = self.machines();
            let made = self.made.fetch_add(1, Ordering::Relaxed);
            // Addresses take turns, so that one that has just become free rests for a while.
            let turns =
                (0..u32::from(MOST_NODES)).map(|more| made.wrapping_add(more) % u32::from(MOST_NODES));
            let mut addresses =
                turns.filter_map(|turn| u8::try_from(turn + 1).ok()).map(|last| self.block.node(last));
            let free = addresses.find(|address| machines.values().all(|machine| machine.address != *address));
            let address =
                free.ok_or_else(|| format!("there is room for {MOST_NODES} instances with real traffic"))?;
            (format!("n-{}", made.wrapping_add(1)), address)
        };
        let body = json!({
            "id": id, "name": name, "cluster": CLUSTER, "type": TYPE, "internal": [address], "external": [address],
        });
        self.control.add_machine(&body.to_string()).await.map_err(|why| why.message)?;
        self.machines().insert(name.to_owned(), Machine { id, address });
        Ok(name.to_owned())
    }

    fn key(name: &str) -> Option<BalancerKey> {
        let (namespace, name) = name.split_once('/')?;
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Some(BalancerKey { cluster: CLUSTER.to_owned(), namespace, name })
    }

    fn view(&self, status: &BalancerStatus) -> BalancerView {
        let counters = self.control.counters(&status.key).map(|(_, counters)| counters).unwrap_or_default();
        let connections = |id: &str| {
            counters.backends.iter().find(|one| one.machine == id).map_or(0, |backend| backend.connections)
        };
        let report = status.report.as_ref();
        let members = report.into_iter().flat_map(|report| &report.backends).map(|backend| MemberView {
            instance: self.node_of(&backend.machine),
            health: match backend.healthy {
                Some(true) => Health::Up,
                Some(false) => Health::Down,
                None => Health::Unknown,
            },
            connections: connections(&backend.machine),
        });
        let bound = report.into_iter().flat_map(|report| &report.listeners);
        let reachable = bound.filter(|one| one.protocol == Protocol::Tcp).find_map(|listener| listener.bound);
        let bound = report.into_iter().flat_map(|report| &report.listeners).filter(|one| one.bound.is_some());
        let mut ports: Vec<_> = bound.map(|listener| listener.port).collect();
        ports.sort_unstable();
        BalancerView { members: members.collect(), ports, reachable }
    }
}

impl WorldCloud for Cloudlycke {
    fn name(&self) -> &'static str {
        "cloudlycke"
    }

    fn provider(&self, around: &Around) -> Result<Arc<dyn Provider>, String> {
        let (env, file) = (Env::default(), FileSettings::default());
        let settings = Settings::read(Sources { token: Ok(None), env: &env, file, cluster: CLUSTER });
        let around = Surroundings {
            transport: around.wire.to(Api::new(self.control.clone(), None)),
            clock: Arc::clone(&around.clock),
            random: Arc::clone(&around.random),
            observer: Arc::new(Unobserved),
        };
        let provider = CloudlyckeProvider::new(settings.map_err(|wrong| mistakes(&wrong))?, around);
        Ok(Arc::new(provider))
    }

    fn instances(&self) -> Vec<InstanceView> {
        let machines = self.machines();
        let known = machines.iter().filter_map(|(name, machine)| {
            let state = self.control.machine(&machine.id).ok()?.state;
            Some(InstanceView { name: name.clone(), running: state == MachineState::Running })
        });
        known.collect()
    }

    fn balancer(&self, name: &str) -> Option<BalancerView> {
        let status = self.control.balancer(&Self::key(name)?)?;
        Some(self.view(&status))
    }

    fn balancer_count(&self) -> usize {
        self.control.balancers(None).len()
    }

    fn add<'a>(&'a self, name: &'a str) -> Later<'a, Result<String, String>> {
        Box::pin(self.boot(name))
    }

    fn set_running<'a>(&'a self, name: &'a str, running: bool) -> Later<'a, Result<(), String>> {
        Box::pin(async move {
            let state = if running { MachineState::Running } else { MachineState::Stopped };
            let set = self.control.set_machine_state(&self.id(name)?, state).await;
            set.map(|_| ()).map_err(|why| why.message)
        })
    }

    fn destroy<'a>(&'a self, name: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async move {
            let id = self.id(name)?;
            self.control.remove_machine(&id).await;
            self.machines().remove(name);
            Ok(())
        })
    }

    fn node_address(&self, name: &str) -> Option<IpAddr> {
        self.machines().get(name).map(|machine| machine.address.into())
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(self.control.close())
    }
}

/// The first port from this one on that no program has on all addresses of this computer, so that a load balancer can have
/// it. If the next hundred are taken too, the first is as good as any.
pub fn free_port(from: u16) -> u16 {
    // Nobody has this address; a bind to it fails only if the port is taken everywhere.
    let free =
        |port: &u16| TcpListener::bind(SocketAddr::from((Ipv4Addr::new(127, 75, 0, 1), *port))).is_ok();
    (from..=from.saturating_add(100)).find(free).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_worlds_share_no_address() {
        let (one, two) = (Block::take().unwrap(), Block::take().unwrap());
        assert_ne!(one.number, two.number);
        assert_ne!(one.pool(), two.pool());
        assert_ne!(one.node(1), two.node(1));
        let number = one.number;
        drop(one);
        assert!(free_port(8080) >= 8080);
        assert!(Block::take().unwrap().number <= number, "a block that was given back is free again");
    }

    #[test]
    fn the_inventory_has_no_faults() {
        let block = Block::take().unwrap();
        let read = inventory::read(&block.inventory(), &PathBuf::from("sandbox.yaml"));
        assert!(read.unwrap().machines.is_empty());
    }
}
