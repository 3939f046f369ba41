//! Chance picks what happens, what fails and when the program dies. In the end everything is as the newest Services say.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::Random;
use cloudscale_sim::{Harm, Target};
use serde_json::{Value, json};

use crate::fixture::{FINALIZER, Fixture, INTENT, PREFIX, annotated, merge};

/// How many lives are lived; `CLOUDBERTH_SEEDS=2000` asks for more.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("CLOUDBERTH_SEEDS").ok().and_then(|text| text.parse().ok());
    let first = std::env::var("CLOUDBERTH_SEED").ok().and_then(|text| text.parse().ok());
    first.map_or(0..asked.unwrap_or(usual), |seed: u64| seed..seed + 1)
}

/// Below `bound`.
fn pick(random: &Random, bound: u64) -> u64 {
    random.bits() % bound
}

/// What a request may meet: an honest API, a bad network.
fn misfortune(random: &Random) -> Harm {
    let millis = 10 + pick(random, 3_000);
    let busy = |code| Harm::Status { code, retry_after: u32::try_from(1 + pick(random, 5)).ok() };
    match pick(random, 10) {
        0 => Harm::status(500),
        1 => Harm::status(502),
        2 => busy(503),
        3 => busy(429),
        4 => Harm::status(401),
        5 => Harm::LostCall,
        6 | 7 => Harm::LostAnswer,
        8 => Harm::Truncated,
        _ => Harm::Latency { millis },
    }
}

/// What people want now.
struct Wishes {
    ports: BTreeMap<String, u16>,
    nodes: Vec<String>,
    floating: Option<String>,
    made: u64,
}

fn service(port: u16) -> Value {
    json!({"spec": {"ports": [{"name": "main", "port": port, "protocol": "TCP"}]}})
}

impl Wishes {
    /// Somebody does something.
    async fn happen(&mut self, fixture: &Fixture, random: &Random) {
        self.made += 1;
        let names: Vec<String> = self.ports.keys().cloned().collect();
        match (pick(random, 8), names.get(usize::try_from(pick(random, 8)).unwrap())) {
            (0 | 1, None) if self.ports.len() < 3 => {
                let name = format!("web-{}", self.made);
                let port = 80 + u16::try_from(pick(random, 50)).unwrap();
                let mut body = service(port);
                if self.floating.is_none() {
                    merge(&mut body, annotated(&[("floating-ips", json!("[\"192.0.2.7/32\"]"))]));
                    self.floating = Some(name.clone());
                }
                fixture.create(&name, body).await;
                self.ports.insert(name, port);
            }
            (2 | 3, Some(name)) => {
                let port = 200 + u16::try_from(pick(random, 50)).unwrap();
                fixture.edit(name, service(port)).await;
                self.ports.insert(name.clone(), port);
            }
            (4, Some(name)) => {
                fixture.delete(name).await;
                self.ports.remove(name);
                if self.floating.as_ref() == Some(name) {
                    self.floating = None;
                }
            }
            (5, _) => {
                let name = format!("joiner-{}", self.made);
                fixture.node(&name).await;
                self.nodes.push(name);
            }
            // One node always stays, so that a pool never has to be empty.
            (6, _) if self.nodes.len() > 1 => {
                let gone = self.nodes.remove(1);
                fixture.cluster.delete(&fixture.cluster.nodes(), &gone).await;
            }
            (7, Some(name)) => {
                let cidrs = format!("[\"10.{}.0.0/16\"]", pick(random, 200));
                fixture.annotate(name, &[("listener-allowed-cidrs", json!(cidrs))]).await;
            }
            _ => {}
        }
    }

    async fn assert_fulfilled(&self, fixture: &Fixture, case: &str) {
        let mut ids = Vec::new();
        for (name, port) in &self.ports {
            let service = fixture.get(name).await;
            let shape: Vec<_> =
                fixture.shape(name).await.into_iter().map(|(port, m)| (port, m.len())).collect();
            let events = || fixture.cluster.events(name);
            assert_eq!(shape, [(*port, self.nodes.len())], "{case} {name}: {:?}", events());
            assert_eq!(service.ingress.len(), 2, "{case} {name}");
            assert_eq!(service.annotations.get(INTENT), None, "{case} {name}");
            assert!(service.finalizers.contains(&FINALIZER.to_owned()), "{case} {name}");
            ids.push(service.annotations[&format!("{PREFIX}uuid")].clone());
        }
        ids.sort();
        let there: Vec<_> = fixture.cloud.balancers().into_iter().map(|balancer| balancer.uuid).collect();
        assert_eq!(there, ids, "L6-807 {case}: nothing leaked, nothing doubled");
        let count = self.ports.len();
        let parts = fixture.parts().map(|kind| kind.len());
        assert_eq!(
            parts,
            [count, count, count, count * self.nodes.len()],
            "L6-808 {case}: no part is too many"
        );
        let target = fixture.cloud.target_of("192.0.2.7".parse().unwrap());
        if let Some(name) = &self.floating {
            let id = fixture.balancer(name).await.uuid;
            assert_eq!(target, Some(Target::Balancer(id)), "L6-809 {case}: no floating IP is lost");
        }
        assert_eq!(fixture.cloud.emptied_pools(), [], "{case}: a pool with healthy members is never emptied");
    }
}

async fn live(seed: u64, faults: bool) {
    let random = Random::seeded(seed);
    // What a program that died had sent may arrive after its successor came to rest.
    let mut fixture = Fixture::looking_again(Some(Duration::from_secs(120)), |settings| {
        settings.build = Duration::from_millis(pick(&random, 3_000));
        settings.latency = Duration::from_millis(1 + pick(&random, 60));
        settings.unrest = Duration::from_millis(if pick(&random, 3) == 0 { 200 } else { 0 });
        settings.refuse_early_delete = pick(&random, 2) == 0;
        settings.errors_in_lists = pick(&random, 2) == 0;
    });
    fixture.cloud.add_floating_ip("192.0.2.7/32".parse().unwrap(), None);
    let mut wishes = Wishes { ports: BTreeMap::new(), nodes: Vec::new(), floating: None, made: 0 };
    for name in ["node-01", "node-02"] {
        fixture.node(name).await;
        wishes.nodes.push(name.to_owned());
    }
    if faults {
        let (chance, plan) = (20 + pick(&random, 80), Random::seeded(random.bits()));
        fixture.cloud.plan_faults(move |_| (pick(&plan, 1_000) < chance).then(|| misfortune(&plan)));
    }
    for _ in 0..12 {
        wishes.happen(&fixture, &random).await;
        tokio::time::sleep(Duration::from_millis(pick(&random, 4_000))).await;
        if faults && pick(&random, 4) == 0 {
            fixture.killer().abort();
            tokio::time::sleep(Duration::from_millis(pick(&random, 2_000))).await;
            fixture.restart();
        }
    }
    fixture.cloud.stop_faults();
    fixture.pass(900).await;
    wishes.assert_fulfilled(&fixture, &format!("seed {seed}")).await;
    fixture.assert_quiet(60, &format!("L4-805 seed {seed}")).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_fails_and_whenever_it_dies_it_ends_well() {
    let seeds = seeds(200);
    println!("seeds {seeds:?}");
    for seed in seeds {
        live(seed, true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ports_change_while_nodes_come_and_go() {
    for seed in seeds(500) {
        let random = Random::seeded(seed);
        let fixture = Fixture::with(|settings| settings.build = Duration::from_millis(200));
        fixture.nodes(2).await;
        fixture.create("web", service(80)).await;
        fixture.pass(pick(&random, 3)).await;
        let mut nodes = 2;
        let mut port = 80;
        for turn in 0..6 {
            match pick(&random, 3) {
                0 => {
                    port = 100 + turn;
                    fixture.edit("web", service(port)).await;
                }
                1 => {
                    fixture.node(&format!("late-{turn}")).await;
                    nodes += 1;
                }
                _ if nodes > 1 && fixture.cluster.node("node-02").await.is_some() => {
                    fixture.cluster.delete(&fixture.cluster.nodes(), "node-02").await;
                    nodes -= 1;
                }
                _ => {}
            }
            tokio::time::sleep(Duration::from_millis(pick(&random, 900))).await;
        }
        fixture.pass(60).await;
        let shape: Vec<_> = fixture.shape("web").await.into_iter().map(|(port, m)| (port, m.len())).collect();
        assert_eq!(shape, [(port, nodes)], "seed {seed}: the newest Service counts");
        assert_eq!(fixture.cloud.emptied_pools(), [], "seed {seed}");
        fixture.assert_quiet(60, &format!("seed {seed}: nobody undoes what another did")).await;
    }
}
