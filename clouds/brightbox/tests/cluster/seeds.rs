//! Chance picks what happens, what fails and when the program dies. In the end everything is as the newest Services say.

use std::{collections::BTreeMap, time::Duration};

use brightbox_sim::{Destination, Harm};
use cloudberth_core::Random;
use serde_json::{Value, json};

use crate::under_test::{Fixture, PREFIX, annotated};

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

/// What people want now: the port of each Service, and which of them has asked for the Cloud IP that people own.
struct Wishes {
    ports: BTreeMap<String, u16>,
    nodes: Vec<String>,
    given: Option<String>,
    made: u64,
}

fn service(port: u16) -> Value {
    json!({"spec": {"ports": [{"name": "main", "port": port, "protocol": "TCP"}]}})
}

impl Wishes {
    /// Somebody does something.
    async fn happen(&mut self, fixture: &Fixture, random: &Random, cloud_ip: &str) {
        self.made += 1;
        let names: Vec<String> = self.ports.keys().cloned().collect();
        match (pick(random, 8), names.get(usize::try_from(pick(random, 8)).unwrap())) {
            (0 | 1, None) if self.ports.len() < 3 => {
                let name = format!("web-{}", self.made);
                let port = 80 + u16::try_from(pick(random, 50)).unwrap();
                let mut body = service(port);
                if self.given.is_none() {
                    body["metadata"] = annotated(&[("cloudip-allocations", cloud_ip)])["metadata"].clone();
                    self.given = Some(name.clone());
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
            }
            (5, _) => {
                let name = format!("joiner-{}", self.made);
                fixture.node(&name).await;
                self.nodes.push(name);
            }
            (6, _) if self.nodes.len() > 1 => {
                let gone = self.nodes.remove(1);
                fixture.cluster.delete(&fixture.cluster.nodes(), &gone).await;
            }
            (7, Some(name)) => {
                let policy = ["round-robin", "source-address"][usize::from(pick(random, 2) == 0)];
                fixture.annotate(name, &format!("{PREFIX}policy"), json!(policy)).await;
            }
            _ => {}
        }
    }

    async fn assert_fulfilled(&self, fixture: &Fixture, cloud_ip: &str, case: &str) {
        let all = fixture.cloud.cloud.resources();
        for (name, port) in &self.ports {
            let own = Some(format!("{name}.default.test"));
            let service = fixture.service(name).await.unwrap();
            let events = || fixture.cluster.events(name);
            let mut balancers =
                all.balancers.values().filter(|one| one.status != "deleted" && one.name == own);
            let balancer = balancers.next().unwrap_or_else(|| panic!("{case} {name}: {:?}", events()));
            assert!(balancers.next().is_none(), "L6-1607 {case} {name}: nothing doubled");
            let ports: Vec<_> = balancer.listeners.iter().map(|one| one.in_port).collect();
            assert_eq!(ports, [*port], "{case} {name}: {:?}", events());
            assert_eq!(balancer.nodes.len(), self.nodes.len(), "{case} {name}: {:?}", events());
            let group = all.groups.values().find(|one| one.name == own).unwrap();
            assert_eq!(group.servers.len(), self.nodes.len(), "{case} {name}");
            assert!(!service.ingress.is_empty(), "{case} {name}: {:?}", events());
            assert!(!service.annotations.contains_key("cloudberth.dev/intent"), "{case} {name}");
            let mapped = all.cloud_ips_of(&Destination::Balancer(balancer.id.clone()));
            assert_eq!(mapped.len(), 1, "{case} {name}");
            assert_eq!(mapped[0].id == cloud_ip, self.given.as_ref() == Some(name), "{case} {name}");
        }
        let count = self.ports.len();
        let given = self.given.as_ref().is_some_and(|name| self.ports.contains_key(name));
        let cloud_ips = count + usize::from(!given);
        assert_eq!(
            fixture.cloud.counts(),
            [count, cloud_ips, count, count],
            "L6-1607 {case}: nothing leaked"
        );
        assert!(all.cloud_ips.contains_key(cloud_ip), "L5-1605 {case}: what people own is never deleted");
    }
}

async fn live(seed: u64) {
    let random = Random::seeded(seed);
    let mut fixture = Fixture::new();
    fixture.cloud.cloud.change_settings(|settings| {
        settings.latency = Duration::from_millis(1 + pick(&random, 60));
        settings.delays.build = Duration::from_millis(pick(&random, 3_000));
        settings.delays.removal = Duration::from_millis(pick(&random, 8_000));
        settings.delays.map = Duration::from_millis(pick(&random, 2) * pick(&random, 2_000));
        settings.delays.unmap = Duration::from_millis(pick(&random, 2_000));
    });
    let cloud_ip = fixture.cloud.cloud.seed("cloud_ips", &json!({"name": "theirs"})).unwrap();
    let mut wishes = Wishes { ports: BTreeMap::new(), nodes: Vec::new(), given: None, made: 0 };
    for name in ["node-01", "node-02"] {
        fixture.node(name).await;
        wishes.nodes.push(name.to_owned());
    }
    let (chance, plan) = (20 + pick(&random, 80), Random::seeded(random.bits()));
    fixture.cloud.cloud.plan_faults(move |_| (pick(&plan, 1_000) < chance).then(|| misfortune(&plan)));
    for _ in 0..12 {
        wishes.happen(&fixture, &random, &cloud_ip).await;
        tokio::time::sleep(Duration::from_millis(pick(&random, 4_000))).await;
        if pick(&random, 4) == 0 {
            fixture.killer().abort();
            tokio::time::sleep(Duration::from_millis(pick(&random, 2_000))).await;
            fixture.restart();
        }
    }
    fixture.cloud.cloud.stop_faults();
    fixture.pass(900).await;
    wishes.assert_fulfilled(&fixture, &cloud_ip, &format!("seed {seed}")).await;
    fixture.assert_quiet(60, &format!("L4-1607 seed {seed}")).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_fails_and_whenever_it_dies_it_ends_well() {
    let seeds = seeds(200);
    println!("seeds {seeds:?}");
    for seed in seeds {
        live(seed).await;
    }
}
