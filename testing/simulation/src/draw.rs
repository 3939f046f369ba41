//! Chance: which deed comes next.

use std::time::Duration;

use cloudberth_core::Category;
use cloudberth_fake::Fault;
use embedded_kube::Harm;
use fastrand::Rng;

use crate::schedule::Deed;

const ALGORITHMS: [&str; 3] = ["round-robin", "least-connections", "fastest"];
const PORTS: [i64; 4] = [53, 80, 443, 8080];
const POOLS: [&str; 2] = ["a", "b"];
const FLAVORS: [&str; 3] = ["small", "medium", "large"];
/// Most patches, because most writes are.
const VERBS: [&str; 8] = ["patch", "patch", "list", "watch", "update", "get", "create", "delete"];

/// During which requests a credential is swapped.
const SWAPPED: [&str; 5] =
    ["delete balancer", "get balancer", "list balancers", "list instances", "change routes"];

fn choose(rng: &mut Rng, from: &[&'static str]) -> &'static str {
    from.get(rng.usize(0..from.len())).copied().unwrap_or_default()
}

pub(crate) fn ports(rng: &mut Rng) -> Vec<i64> {
    let ports: Vec<_> = PORTS.into_iter().filter(|_| rng.bool()).collect();
    if ports.is_empty() { vec![80] } else { ports }
}

/// Draws one deed for a world with so many Services and nodes.
type Draw = fn(&mut Rng, u8, u8) -> Deed;

/// What can happen, and how often: a deed is drawn in proportion to its weight.
const WEIGHTS: [(u16, Draw); 18] = [
    (26, |rng, services, _| about_services(rng, services)),
    (26, |rng, _, nodes| about_nodes(rng, nodes)),
    (4, |rng, _, _| Deed::Crash { leader: rng.u8(0..4) > 0 }),
    (2, |rng, _, _| Deed::Ambush { cloud: rng.u8(0..2) }),
    (4, |_, _, _| Deed::Retire),
    (4, |rng, _, _| Deed::Partition {
        leader: rng.u8(0..4) > 0,
        silent: rng.bool(),
        seconds: rng.u64(1..=50),
    }),
    (6, |rng, _, _| about_clouds(rng)),
    (6, |rng, _, _| Deed::Kube { harm: harm(rng), verb: choose(rng, &VERBS), times: rng.u64(1..=6) }),
    (1, |_, _, _| Deed::RestartKube),
    (1, |_, _, _| Deed::Compact),
    (2, |rng, _, _| Deed::Interrupt { cloud: rng.u8(0..2), seconds: rng.u64(6..=12) }),
    (1, |rng, _, _| Deed::AddOddNode { cloud: rng.u8(0..2) }),
    (1, |rng, _, _| Deed::Restore { ago: rng.u64(1..=120), outage: rng.u64(70..=100) }),
    (2, |rng, _, _| {
        let (cloud, one_in) = (rng.u8(0..2), rng.u64(1..=2));
        Deed::Cloud { cloud, fault: Fault::PartsMissing, one_in, seconds: rng.u64(30..=180) }
    }),
    (2, |rng, services, _| {
        let service = rng.u8(0..services);
        // Of the same cloud.
        Deed::CreateCopy { service, of: rng.bool().then_some(service ^ 2) }
    }),
    (2, |rng, services, _| Deed::CreateNamed { service: rng.u8(0..services) }),
    (2, |rng, _, _| {
        let (cloud, operation) = (rng.u8(0..2), choose(rng, &SWAPPED));
        Deed::Swap { cloud, operation, seconds: rng.u64(5..=90) }
    }),
    (2, |rng, _, nodes| Deed::Recreate { node: rng.u8(0..nodes), knows_id: rng.bool() }),
];

pub(crate) fn deed(rng: &mut Rng, services: u8, nodes: u8) -> Deed {
    let mut left = rng.u16(0..WEIGHTS.iter().map(|(weight, _)| weight).sum());
    for (weight, draw) in WEIGHTS {
        if left < weight {
            return draw(rng, services, nodes);
        }
        left -= weight;
    }
    // The weights add up, so this is not reached.
    Deed::Compact
}

/// Something that people change about Services and that has one outcome, whoever sees to it.
pub(crate) fn change(rng: &mut Rng) -> Deed {
    loop {
        let deed = match rng.u8(0..6) {
            0 => Deed::SetPool { node: rng.u8(0..4), pool: choose(rng, &POOLS) },
            1 => Deed::Exclude { node: rng.u8(0..4), excluded: rng.bool() },
            _ => about_services(rng, 4),
        };
        if !matches!(deed, Deed::AddForeignService { .. }) {
            return deed;
        }
    }
}

fn about_services(rng: &mut Rng, services: u8) -> Deed {
    let service = rng.u8(0..services);
    match rng.u8(0..14) {
        0..=1 => Deed::Create { service, ports: ports(rng) },
        2..=3 => Deed::SetPorts { service, ports: ports(rng) },
        4..=5 => Deed::SetAlgorithm { service, algorithm: choose(rng, &ALGORITHMS) },
        6..=7 => {
            let pool = choose(rng, &POOLS);
            Deed::SetSelector { service, pool: rng.bool().then_some(pool) }
        }
        8..=9 => Deed::SetType { service, load_balancer: rng.bool() },
        10..=11 => Deed::Delete { service },
        12 => Deed::Demolish { service },
        _ => Deed::AddForeignService { number: rng.u8(0..2) },
    }
}

fn about_nodes(rng: &mut Rng, nodes: u8) -> Deed {
    let node = rng.u8(0..nodes);
    match rng.u8(0..16) {
        0..=1 => Deed::Join { node, knows_id: rng.bool() },
        2 => Deed::Remove { node },
        3..=6 => Deed::Power { node, on: rng.u8(0..3) == 0, lag: rng.u64(0..=40) },
        7..=9 => Deed::Destroy { node, lag: rng.u64(0..=40) },
        10 => Deed::Resize { node, flavor: choose(rng, &FLAVORS) },
        11..=12 => Deed::SetPool { node, pool: choose(rng, &POOLS) },
        13..=14 => Deed::Exclude { node, excluded: rng.bool() },
        _ => Deed::AddForeignNode { number: rng.u8(0..2), initialised: rng.bool() },
    }
}

fn about_clouds(rng: &mut Rng) -> Deed {
    let cloud = rng.u8(0..2);
    match rng.u8(0..6) {
        0 => Deed::Lie { cloud, operation: "list instances", seconds: rng.u64(30..=180) },
        1 => Deed::Lie { cloud, operation: "get instance", seconds: rng.u64(30..=180) },
        2 => {
            let fault = Fault::Refuse(Category::Unauthorised);
            Deed::Cloud { cloud, fault, one_in: 1, seconds: rng.u64(60..=180) }
        }
        _ => Deed::Cloud { cloud, fault: fault(rng), one_in: rng.u64(1..=4), seconds: rng.u64(5..=60) },
    }
}

fn fault(rng: &mut Rng) -> Fault {
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

fn harm(rng: &mut Rng) -> Harm {
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
