//! What happens in a run, drawn from its seed before it begins. It is data, so that a failing one can be made smaller.

use std::{fmt, time::Duration};

use cloudberth_core::Category;
use cloudberth_fake::Fault;
use cloudberth_sim::kube::Harm;

/// How long people and faults are at work. Afterwards everything goes well, and the world must come to rest.
pub(crate) const TURMOIL: Duration = Duration::from_secs(300);

/// Something that people do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// A Service of type `LoadBalancer` is created, unless it is there.
    Create { service: u8, ports: Vec<i64> },
    /// Its ports change.
    SetPorts { service: u8, ports: Vec<i64> },
    /// It asks for another algorithm, or for one that does not exist.
    SetAlgorithm { service: u8, algorithm: &'static str },
    /// Its type changes.
    SetType { service: u8, load_balancer: bool },
    /// It is deleted.
    Delete { service: u8 },
    /// A machine is built and its node joins.
    AddNode { node: u8 },
    /// A node leaves and its machine is destroyed.
    RemoveNode { node: u8 },
    /// A node is excluded from load balancers, or included again.
    Exclude { node: u8, excluded: bool },
    /// Somebody deletes the load balancer of a Service by hand.
    Demolish { service: u8 },
    /// The replica that leads, or the other one, dies and starts again.
    Crash { leader: bool },
    /// The replica that leads is told to end, in order, and is followed by another one.
    Retire,
    /// The replica that leads, or the other one, cannot reach the Kubernetes API: it hears so, or it hears nothing.
    /// The cloud it can reach.
    Partition { leader: bool, silent: bool, seconds: u64 },
    /// Requests to the cloud go wrong: this fault hits one in so many, for so long.
    Cloud { fault: Fault, one_in: u64, seconds: u64 },
    /// Requests to the Kubernetes API go wrong: the next so many of this verb.
    Kube { harm: Harm, verb: &'static str, times: u64 },
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

const ALGORITHMS: [&str; 3] = ["round-robin", "least-connections", "fastest"];
const PORTS: [i64; 4] = [53, 80, 443, 8080];

impl Schedule {
    /// The schedule of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (services, nodes) = (rng.u8(1..=4), rng.u8(2..=5));
        let start = (0..nodes).map(|node| (Duration::ZERO, Deed::AddNode { node }));
        let mut deeds: Vec<_> = start.collect();
        for _ in 0..rng.usize(8..=28) {
            let at = Duration::from_millis(rng.u64(0..300_000));
            deeds.push((at, draw_deed(&mut rng, services, nodes)));
        }
        for service in 0..services {
            let at = Duration::from_millis(rng.u64(0..60_000));
            deeds.push((at, Deed::Create { service, ports: draw_ports(&mut rng) }));
        }
        deeds.sort_by_key(|(at, _)| *at);
        Self { seed, deeds }
    }

    /// How much happens.
    pub fn size(&self) -> usize {
        self.deeds.len()
    }
}

fn choose(rng: &mut fastrand::Rng, from: &[&'static str]) -> &'static str {
    from.get(rng.usize(0..from.len())).copied().unwrap_or_default()
}

fn draw_ports(rng: &mut fastrand::Rng) -> Vec<i64> {
    let ports: Vec<_> = PORTS.into_iter().filter(|_| rng.bool()).collect();
    if ports.is_empty() { vec![80] } else { ports }
}

fn draw_deed(rng: &mut fastrand::Rng, services: u8, nodes: u8) -> Deed {
    let service = rng.u8(0..services);
    let node = rng.u8(0..nodes);
    match rng.u8(0..28) {
        0..=1 => Deed::Create { service, ports: draw_ports(rng) },
        2..=3 => Deed::SetPorts { service, ports: draw_ports(rng) },
        4 => Deed::SetAlgorithm { service, algorithm: choose(rng, &ALGORITHMS) },
        5 => Deed::SetType { service, load_balancer: rng.bool() },
        6..=7 => Deed::Delete { service },
        8 => Deed::AddNode { node },
        9 => Deed::RemoveNode { node },
        10 => Deed::Exclude { node, excluded: rng.bool() },
        11 => Deed::Demolish { service },
        12..=14 => Deed::Crash { leader: rng.u8(0..4) > 0 },
        15..=18 => Deed::Cloud { fault: draw_fault(rng), one_in: rng.u64(1..=4), seconds: rng.u64(5..=60) },
        19..=21 => Deed::Kube { harm: draw_harm(rng), verb: draw_verb(rng), times: rng.u64(1..=6) },
        22 => Deed::RestartKube,
        23..=24 => Deed::Retire,
        25..=26 => Deed::Partition { leader: rng.u8(0..4) > 0, silent: rng.bool(), seconds: rng.u64(1..=50) },
        _ => Deed::Compact,
    }
}

fn draw_fault(rng: &mut fastrand::Rng) -> Fault {
    match rng.u8(0..7) {
        0 => Fault::Refuse(Category::Temporary),
        1 => Fault::Refuse(Category::Unauthorised),
        2 => Fault::Refuse(Category::Throttled { retry_after: Some(Duration::from_secs(rng.u64(1..=20))) }),
        3 => Fault::RequestLost,
        4 => Fault::AnswerLost,
        5 => Fault::Stall(Duration::from_secs(rng.u64(0..=25))),
        _ => Fault::ShortPage,
    }
}

fn draw_harm(rng: &mut fastrand::Rng) -> Harm {
    match rng.u8(0..7) {
        0 => Harm::Latency { millis: rng.u64(100..=20_000) },
        1 => Harm::Status { code: 429, retry_after: Some(rng.u32(1..=10)) },
        2 => Harm::Status { code: if rng.bool() { 500 } else { 503 }, retry_after: None },
        3 => Harm::Conflict,
        4 => Harm::LostAnswer,
        5 => Harm::LostCall,
        _ => Harm::DropWatch { after_events: rng.u64(0..=3) },
    }
}

fn draw_verb(rng: &mut fastrand::Rng) -> &'static str {
    choose(rng, &["patch", "patch", "list", "watch", "update", "get"])
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, deed) in &self.deeds {
            writeln!(f, "  {:>8.3} s  {deed:?}", at.as_secs_f64())?;
        }
        Ok(())
    }
}
