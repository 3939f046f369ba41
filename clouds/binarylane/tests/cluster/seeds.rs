//! Chance picks what happens, what fails and when the program dies. In the end everything is as the newest Services say.

use std::{collections::BTreeMap, time::Duration};

use binarylane_sim::{Harm, RouteEntry, Shift};
use cloudberth_core::Random;
use serde_json::json;

use crate::fixture::{FINALIZER, Fixture, INTENT, Setup, ports};

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

/// What a request may meet: an honest API, a gateway that gives up, a bad network.
fn misfortune(random: &Random) -> Harm {
    let millis = 10 + pick(random, 3_000);
    let busy = |code| Harm::Status { code, retry_after: u32::try_from(1 + pick(random, 5)).ok() };
    match pick(random, 12) {
        0 => Harm::status(500),
        1 => Harm::status(502),
        2 => busy(503),
        3 => busy(429),
        4 => Harm::status(401),
        5 => Harm::LostCall,
        6 => Harm::LostAnswer,
        7 | 8 => Harm::Masked { code: 504, empty: false },
        9 => Harm::Truncated,
        10 => Harm::ShortList,
        _ => Harm::Latency { millis },
    }
}

/// What people want now.
#[derive(Default)]
struct Wishes {
    ports: BTreeMap<String, Vec<u16>>,
    nodes: Vec<(String, String)>,
    made: u64,
}

impl Wishes {
    async fn join(&mut self, fixture: &Fixture) {
        self.made += 1;
        let (name, cidr) = (format!("node-{}", self.made), format!("10.244.{}.0/24", self.made));
        let id = fixture.cloud.add_server(&name, "bne").id;
        let spec = json!({"providerID": format!("binarylane://{id}"), "podCIDR": cidr, "podCIDRs": [cidr]});
        fixture.cluster.create(&fixture.cluster.nodes(), "Node", &name, json!({"spec": spec})).await;
        fixture.cluster.set_ready(&name, true).await;
        self.nodes.push((name, cidr));
    }

    /// Somebody does something.
    async fn happen(&mut self, fixture: &Fixture, random: &Random) {
        let some = |random: &Random| -> Vec<u16> {
            [&[80][..], &[443], &[80, 443]][usize::try_from(pick(random, 3)).unwrap()].to_vec()
        };
        let names: Vec<String> = self.ports.keys().cloned().collect();
        match (pick(random, 7), names.get(usize::try_from(pick(random, 6)).unwrap())) {
            (0 | 1, None) if self.ports.len() < 3 => {
                self.made += 1;
                let (name, numbers) = (format!("web-{}", self.made), some(random));
                fixture.create(&name, ports(&numbers)).await;
                self.ports.insert(name, numbers);
            }
            (2 | 3, Some(name)) => {
                let numbers = some(random);
                fixture.edit(name, ports(&numbers)).await;
                self.ports.insert(name.clone(), numbers);
            }
            (4, Some(name)) => {
                fixture.delete(name).await;
                self.ports.remove(name);
            }
            (5, _) => self.join(fixture).await,
            // One node always stays, so that a pool never has to be empty.
            (6, _) if self.nodes.len() > 1 => {
                let (gone, _) = self.nodes.remove(1);
                fixture.cluster.delete(&fixture.cluster.nodes(), &gone).await;
            }
            _ => {}
        }
    }

    async fn assert_fulfilled(&self, fixture: &Fixture, foreign: &[RouteEntry], case: &str) {
        let mut ids = Vec::new();
        for (name, numbers) in &self.ports {
            let service = fixture.get(name).await;
            let balancer = fixture.balancer(name).await;
            let mut rules: Vec<_> =
                balancer.rules.iter().map(|word| if word == "http" { 80 } else { 443 }).collect();
            rules.sort_unstable();
            assert_eq!(&rules, numbers, "{case} {name}");
            assert_eq!(
                balancer.server_ids.len(),
                self.nodes.len(),
                "{case} {name}: {:?}",
                fixture.cluster.events(name)
            );
            assert_eq!(service.ingress.len(), 1, "{case} {name}");
            assert_eq!(service.annotations.get(INTENT), None, "{case} {name}");
            assert_eq!(service.finalizers, [FINALIZER], "{case} {name}");
            ids.push(balancer.id);
        }
        ids.sort_unstable();
        let there: Vec<_> = fixture.cloud.balancers().into_iter().map(|balancer| balancer.id).collect();
        assert_eq!(there, ids, "L6-1604 {case}: nothing leaked, nothing doubled");
        let routes = fixture.routes();
        let (theirs, ours): (Vec<_>, Vec<_>) = routes.into_iter().partition(|entry| foreign.contains(entry));
        assert_eq!(theirs, foreign, "L3-1601 {case}: no foreign entry is touched");
        let mut wanted: Vec<_> = self.nodes.iter().map(|(_, cidr)| cidr.clone()).collect();
        let mut have: Vec<_> = ours.into_iter().map(|entry| entry.destination).collect();
        wanted.sort();
        have.sort();
        assert_eq!(have, wanted, "{case}");
        for (node, _) in &self.nodes {
            assert!(fixture.cluster.node(node).await.is_some(), "L2-1600 {case}: no node is lost");
        }
        assert_eq!(fixture.cloud.emptied_pools(), [], "{case}: a pool is never emptied");
    }
}

async fn live(seed: u64) {
    let random = Random::seeded(seed);
    let setup = Setup { routes: true, drift: Some(Duration::from_secs(120)), ..Setup::default() };
    let mut fixture = Fixture::with(setup, |settings| {
        settings.build = Duration::from_millis(pick(&random, 8_000));
        settings.latency = Duration::from_millis(1 + pick(&random, 60));
        let switches = &mut settings.switches;
        switches.ip_when_active = pick(&random, 2) == 0;
        switches.no_update_link = pick(&random, 2) == 0;
        switches.strict_members = pick(&random, 4) == 0;
        switches.visible_after =
            Duration::from_secs(if pick(&random, 4) == 0 { pick(&random, 60) } else { 0 });
        switches.listed_after_delete =
            Duration::from_secs(if pick(&random, 4) == 0 { pick(&random, 10) } else { 0 });
    });
    let description = |text: &str| Some(text.to_owned());
    let foreign = vec![
        RouteEntry {
            router: "10.240.9.9".to_owned(),
            destination: "10.50.0.0/16".to_owned(),
            description: description("office"),
        },
        RouteEntry {
            router: "10.240.9.9".to_owned(),
            destination: "10.244.250.0/24".to_owned(),
            description: None,
        },
    ];
    let vpc = fixture.cloud.first_vpc();
    fixture.cloud.edit(|all| all.vpcs.get_mut(&vpc).unwrap().route_entries.clone_from(&foreign));
    let mut wishes = Wishes::default();
    for _ in 0..2 {
        wishes.join(&fixture).await;
    }
    let (chance, plan) = (20 + pick(&random, 80), Random::seeded(random.bits()));
    fixture.cloud.plan_faults(move |_| (pick(&plan, 1_000) < chance).then(|| misfortune(&plan)));
    for _ in 0..12 {
        wishes.happen(&fixture, &random).await;
        let shift =
            [Shift::Never, Shift::Inserted, Shift::Removed][usize::try_from(pick(&random, 3)).unwrap()];
        let cap = (pick(&random, 2) == 0).then_some(2);
        fixture.cloud.switch(|switches| (switches.shift, switches.page_cap) = (shift, cap));
        tokio::time::sleep(Duration::from_millis(pick(&random, 4_000))).await;
        if pick(&random, 4) == 0 {
            fixture.killer().abort();
            tokio::time::sleep(Duration::from_millis(pick(&random, 2_000))).await;
            fixture.restart();
        }
    }
    fixture.cloud.stop_faults();
    fixture.cloud.switch(|switches| (switches.shift, switches.page_cap) = (Shift::Never, None));
    fixture.pass(1_500).await;
    wishes.assert_fulfilled(&fixture, &foreign, &format!("seed {seed}")).await;
    fixture.assert_quiet(60, &format!("L4-1606 seed {seed}")).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_fails_and_whenever_it_dies_it_ends_well() {
    let seeds = seeds(200);
    println!("seeds {seeds:?}");
    for seed in seeds {
        live(seed).await;
    }
}
