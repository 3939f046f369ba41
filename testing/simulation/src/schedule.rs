//! What happens in a run, drawn from its seed before it begins. It is data, so that a failing one can be made smaller.

use std::{fmt, time::Duration};

use cloudberth_fake::Fault;
use embedded_kube::Harm;

use crate::draw;

/// How long people and faults are at work. Afterwards everything goes well, and the world must come to rest.
pub(crate) const TURMOIL: Duration = Duration::from_secs(300);

/// Something that happens. Even numbers belong to `alpha`, odd ones to `beta`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// A Service of type `LoadBalancer` is created, unless it is there.
    Create { service: u8, ports: Vec<i64> },
    /// A Service is created, unless it is there, from a manifest that carries the id of another load balancer: that of
    /// another Service, or of another cluster.
    CreateCopy { service: u8, of: Option<u8> },
    /// A Service is created, unless it is there, that asks by name for a load balancer which somebody built by hand.
    CreateNamed { service: u8 },
    /// Its ports change.
    SetPorts { service: u8, ports: Vec<i64> },
    /// It asks for another algorithm, or for one that does not exist.
    SetAlgorithm { service: u8, algorithm: &'static str },
    /// It wants only the nodes of one pool behind its load balancer, or all.
    SetSelector { service: u8, pool: Option<&'static str> },
    /// Its type changes.
    SetType { service: u8, load_balancer: bool },
    /// It is deleted.
    Delete { service: u8 },
    /// A Service of somebody else's class comes.
    AddForeignService { number: u8 },
    /// An instance is built and its node joins, uninitialised; with its id only where its kubelet knows it.
    Join { node: u8, knows_id: bool },
    /// A node is deleted and its instance is destroyed. The first two are left standing, so that each cloud keeps a
    /// instance that speaks for its listing.
    Remove { node: u8 },
    /// A node and its instance are replaced by others of the same name, and once more while the program's first write to
    /// the new node is on its way. The first two are left standing.
    Recreate { node: u8, knows_id: bool },
    /// An instance is switched off or on; its node follows after a while.
    Power { node: u8, on: bool, lag: u64 },
    /// An instance is destroyed; its node is `NotReady` after a while. The first two are left standing here too.
    Destroy { node: u8, lag: u64 },
    /// An instance gets another size.
    Resize { node: u8, flavor: &'static str },
    /// A node moves to another pool.
    SetPool { node: u8, pool: &'static str },
    /// A node is excluded from load balancers, or included again.
    Exclude { node: u8, excluded: bool },
    /// A node of somebody else's cloud comes, or one that somebody else has yet to initialise.
    AddForeignNode { number: u8, initialised: bool },
    /// A node comes whose id makes the provider of this cloud panic.
    AddOddNode { cloud: u8 },
    /// Somebody deletes the load balancer of a Service by hand.
    Demolish { service: u8 },
    /// The replica that leads, or the other one, dies and starts again.
    Crash { leader: bool },
    /// The replica that leads dies when it next asks a cloud for a load balancer, before it hears the answer.
    Ambush { cloud: u8 },
    /// The replica that leads is told to end, in order, and is followed by another one.
    Retire,
    /// The replica that leads is told to end just when it has sent a write to a cloud, which takes this long.
    Interrupt { cloud: u8, seconds: u64 },
    /// The replica that leads, or the other one, cannot reach the Kubernetes API: it hears so, or it hears nothing.
    /// The clouds it can reach.
    Partition { leader: bool, silent: bool, seconds: u64 },
    /// Requests to a cloud go wrong: this fault hits one in so many, for so long.
    Cloud { cloud: u8, fault: Fault, one_in: u64, seconds: u64 },
    /// The credential of a cloud becomes another account's while a request of this operation is under way, and its own
    /// again after a while.
    Swap { cloud: u8, operation: &'static str, seconds: u64 },
    /// A cloud lies about instances: this operation denies what exists. Nobody could tell if both did at once.
    Lie { cloud: u8, operation: &'static str, seconds: u64 },
    /// Requests to the Kubernetes API go wrong: the next so many of this verb.
    Kube { harm: Harm, verb: &'static str, times: u64 },
    /// etcd is backed up.
    Backup,
    /// The API server is away for a while, and comes back with the backup that was made so many seconds before.
    Restore { ago: u64, outage: u64 },
    /// The API server restarts: every watch breaks.
    RestartKube,
    /// The API server forgets old versions: watches must list again.
    Compact,
}

/// A run, before it begins.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Everything else is drawn from it.
    pub(crate) seed: u64,
    /// What happens, and when; sorted by time.
    pub(crate) deeds: Vec<(Duration, Deed)>,
}

impl Schedule {
    /// The schedule of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (services, nodes) = (rng.u8(1..=4), rng.u8(3..=7));
        let mut deeds: Vec<_> =
            (0..nodes).map(|node| (Duration::ZERO, Deed::Join { node, knows_id: rng.bool() })).collect();
        for _ in 0..rng.usize(10..=36) {
            let mut at = Duration::from_millis(rng.u64(0..300_000));
            let deed = draw::deed(&mut rng, services, nodes);
            if let Deed::Restore { ago, outage } = deed {
                // It has to be over before the turmoil is.
                at = at.min(TURMOIL.saturating_sub(Duration::from_secs(outage + 1)));
                deeds.push((at.saturating_sub(Duration::from_secs(ago)), Deed::Backup));
            }
            deeds.push((at, deed));
        }
        for service in 0..services {
            let at = Duration::from_millis(rng.u64(0..60_000));
            deeds.push((at, Deed::Create { service, ports: draw::ports(&mut rng) }));
        }
        deeds.sort_by_key(|(at, _)| *at);
        Self { seed, deeds }
    }

    /// How much happens.
    pub fn size(&self) -> usize {
        self.deeds.len()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, deed) in &self.deeds {
            writeln!(f, "  {:>8.3} s  {deed:?}", at.as_secs_f64())?;
        }
        Ok(())
    }
}
