//! Chance picks what fails and what people do. In the end everything is as it should be, and on the way no token was
//! replaced while there was one, and no address taken from a living cluster.

use cloudberth_core::Random;
use embedded_kube::{Fault, Harm, KubeApi};
use serde_json::json;

use super::world::{GUEST, PROJECT_SECRET, Running, World, calls_so_far, pass, request, simulate, writes};
use crate::plan::data;

/// `CLOUDBERTH_SEEDS=2000` asks for so many, `CLOUDBERTH_SEED=17` for one.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    number("CLOUDBERTH_SEED")
        .map_or_else(|| 0..number("CLOUDBERTH_SEEDS").unwrap_or(4), |seed| seed..seed + 1)
}

fn pick(random: &Random, of: u64) -> u64 {
    random.bits() % of
}

fn fail(random: &Random, api: &KubeApi) {
    let harm = match pick(random, 5) {
        0 => Harm::status(403),
        1 => Harm::status(500),
        2 => Harm::LostAnswer,
        3 => Harm::LostCall,
        _ => Harm::status(404),
    };
    let resource =
        ["", "secrets", "clusters", "namespaces", "floatingips"][usize::try_from(pick(random, 5)).unwrap()];
    api.add_fault(Fault::new(harm).on("", resource).times(1 + pick(random, 30)));
}

/// The token here, if it can be told.
fn token(world: &World) -> Option<String> {
    let local = world.local.objects("secrets");
    let found = local.iter().find(|secret| secret["metadata"]["name"] == PROJECT_SECRET)?;
    Some(data::text(found, "clientSecret"))
}

fn exists(world: &World, cluster: &str) -> bool {
    world.local.objects("clusters.management.cattle.io").iter().any(|one| one["metadata"]["name"] == cluster)
}

fn used(world: &World, name: &str) -> bool {
    let all = world.local.objects("floatingips.rancher.k8s.binbash.org");
    let found = all.iter().find(|one| one["metadata"]["name"] == name).unwrap();
    found["metadata"]["labels"].get("rancher.k8s.binbash.org/cluster-name").is_some()
}

async fn live(seed: u64) {
    let random = Random::seeded(seed);
    let world = World::reference().await;
    world.namespace("team-x").await;
    world.guest("c-m-guest02", "guest02").await;
    world.floating_ip("team-x", "living", GUEST).await;
    world.floating_ip("team-x", "dying", "c-m-guest02").await;
    let mut running: Option<Running> = Some(world.start());
    let mut known: Option<String> = None;
    let mut dead = false;
    for _ in 0..12 {
        match pick(&random, 9) {
            0 => fail(&random, &world.local),
            1 => fail(&random, &world.api("guest01")),
            2 => fail(&random, &world.api("harv01")),
            3 => running = None,
            4 => running = Some(world.start()),
            5 => {
                // Somebody deletes the Secret here. Only then may there be another token.
                let path = format!("/api/v1/namespaces/c-m-harv01/secrets/{PROJECT_SECRET}");
                // The answer may be lost.
                let _ = request(&world.local, "DELETE", &path, None).await;
                known = None;
            }
            6 => {
                let path = format!("/api/v1/namespaces/rancher-fip-manager/secrets/{PROJECT_SECRET}");
                let _ = request(&world.api("guest01"), "DELETE", &path, None).await;
            }
            7 => {
                let path = "/apis/management.cattle.io/v3/clusters/c-m-guest02";
                let _ = request(&world.local, "DELETE", path, None).await;
            }
            _ => {
                let path = format!("/apis/management.cattle.io/v3/clusters/{GUEST}");
                let value = ["metallb", "purelb", "x"][usize::try_from(pick(&random, 3)).unwrap()];
                let _ = request(
                    &world.local,
                    "PATCH",
                    &path,
                    Some(json!({"metadata": {"labels": {"rancher-fip-lbtype": value}}})),
                )
                .await;
            }
        }
        pass(pick(&random, 400)).await;
        dead = !exists(&world, "c-m-guest02");
        let now = token(&world);
        if let (Some(known), Some(now)) = (&known, &now) {
            assert_eq!(known, now, "seed {seed}: a token was replaced while there was one");
        }
        known = now.or(known);
        assert!(used(&world, "living"), "seed {seed}: an address was taken from a living cluster");
        assert!(dead || used(&world, "dying"), "seed {seed}: an address was taken from a living cluster");
        if running.as_ref().is_some_and(Running::is_over) {
            running = Some(world.start());
        }
    }
    for api in [&world.local, &world.api("guest01"), &world.api("guest02"), &world.api("harv01")] {
        api.clear_faults();
    }
    drop(running);
    let running = world.start();
    pass(1_500).await;
    let here = token(&world).unwrap_or_else(|| panic!("seed {seed}: no token"));
    assert_eq!(world.delivered("guest01", PROJECT_SECRET, "clientSecret").await, here, "seed {seed}");
    assert_eq!(world.map("guest01").await, json!({"harv01--vlan10": "eth1"}), "seed {seed}");
    assert!(world.deployment("guest01").await.is_some(), "seed {seed}");
    assert_eq!(used(&world, "dying"), !dead, "seed {seed}: leaked, or taken");
    assert!(used(&world, "living"), "seed {seed}");
    let marks = (calls_so_far(&world.api("guest01")), calls_so_far(&world.local));
    pass(1_300).await;
    assert_eq!(writes(&world.api("guest01"), marks.0), [""; 0], "seed {seed}: law 4");
    assert_eq!(writes(&world.local, marks.1), [""; 0], "seed {seed}: law 4");
    drop(running);
}

#[test]
fn chance_does_no_harm() {
    for seed in seeds() {
        simulate(live(seed));
    }
}
