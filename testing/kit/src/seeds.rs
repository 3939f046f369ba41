//! Chance picks what people do, what fails and when the program dies. In the end everything is as the newest Services say.

use std::{ops::Range, time::Duration};

use cloudberth_core::Random;

use crate::{
    checks::CloudFixture,
    seeded::{SeededCloud, Wishes, pick},
};

/// The lives to live. `CLOUDBERTH_SEEDS=2000` asks for so many, `CLOUDBERTH_SEED=17` for one.
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let one = number("CLOUDBERTH_SEED").map(|seed: u64| seed..seed + 1);
    one.unwrap_or_else(|| 0..number("CLOUDBERTH_SEEDS").unwrap_or(usual))
}

/// Somebody does something; `turn` gives new things their names.
async fn happen<C: SeededCloud>(wishes: &mut Wishes, fixture: &CloudFixture<C>, random: &Random, turn: u64) {
    let names: Vec<String> = wishes.services.keys().cloned().collect();
    match (pick(random, 8), names.get(usize::try_from(pick(random, 8)).unwrap())) {
        (0 | 1, None) if names.len() < 3 => {
            let name = format!("web-{turn}");
            let body = fixture.cloud.new_service(random, &name, &wishes.services);
            wishes.create(fixture, &name, body).await;
        }
        (2 | 3, Some(name)) => wishes.edit(fixture, name, fixture.cloud.other_ports(random)).await,
        (4, Some(name)) => wishes.delete(fixture, name).await,
        (5, _) => wishes.join(fixture, &format!("joiner-{turn}")).await,
        // One node always stays, so that a load balancer never has to be empty.
        (6, _) if wishes.nodes.len() > 1 => {
            let names: Vec<_> = wishes.nodes.keys().cloned().collect();
            let gone = &names[usize::try_from(pick(random, names.len() as u64)).unwrap()];
            let instance = wishes.drain(fixture, gone).await;
            if pick(random, 2) == 0 {
                fixture.cloud.remove_instance(&instance);
            }
        }
        (7, Some(name)) => wishes.edit(fixture, name, fixture.cloud.other_setting(random)).await,
        _ => {}
    }
}

/// The kubelet of some node falls silent now and then, or speaks again: what is not Ready is looked at more closely.
async fn fall_silent<C: SeededCloud>(wishes: &Wishes, fixture: &CloudFixture<C>, random: &Random) {
    let names: Vec<_> = wishes.nodes.keys().collect();
    let name = names[usize::try_from(pick(random, names.len() as u64)).unwrap()];
    let speaks = pick(random, 2) == 0;
    assert!(fixture.cluster.node(name).await.is_some(), "L2-821 node {name} is lost");
    if pick(random, 3) == 0 {
        fixture.cluster.set_ready(name, speaks).await;
    }
}

/// One life of a cluster. With `faults`, requests fail and the program dies now and then.
pub async fn live<C: SeededCloud>(seed: u64, faults: bool) {
    let random = Random::seeded(seed);
    // What a program that died had sent may arrive after its successor came to rest: somebody has to look again.
    let mut fixture: CloudFixture<C> = CloudFixture::new();
    fixture.cloud.vary(&random);
    fixture.cloud.prepare();
    let mut wishes = Wishes::default();
    for name in ["node-1", "node-2"] {
        wishes.join(&fixture, name).await;
    }
    if faults {
        let (chance, plan) = (20 + pick(&random, 80), Random::seeded(random.bits()));
        let cloud = fixture.cloud.clone();
        let planned = move |_: &_| (pick(&plan, 1_000) < chance).then(|| cloud.misfortune(&plan));
        fixture.cloud.plan_faults(Box::new(planned));
    }
    let kubelets = Random::seeded(!seed);
    for turn in 0..12 {
        happen(&mut wishes, &fixture, &random, turn).await;
        fall_silent(&wishes, &fixture, &kubelets).await;
        if faults {
            fixture.cloud.draw_trouble(&kubelets);
        }
        tokio::time::sleep(fixture.cloud.pause(&random)).await;
        if faults && pick(&random, 4) == 0 {
            fixture.killer().abort();
            tokio::time::sleep(Duration::from_millis(pick(&random, 2_000))).await;
            fixture.restart();
        }
    }
    fixture.cloud.stop_faults();
    fixture.pass(900).await;
    wishes.assert_fulfilled(&fixture, &format!("seed {seed}")).await;
    fixture.assert_rest(60, &format!("L4-805 seed {seed}")).await;
}

/// Whatever fails and whenever the program dies, it ends well.
pub async fn whatever_fails_it_ends_well<C: SeededCloud>(usual: u64) {
    for seed in seeds(usual) {
        live::<C>(seed, true).await;
    }
}

/// Ports change while nodes come and go, faster than the cloud can follow: the newest Service counts, and nobody undoes
/// what another did.
pub async fn the_newest_service_counts<C: SeededCloud>(usual: u64) {
    for seed in seeds(usual) {
        let random = Random::seeded(seed);
        let fixture: CloudFixture<C> = CloudFixture::looking_again(None);
        fixture.cloud.set_build_time(Duration::from_millis(200));
        fixture.cloud.prepare();
        let mut wishes = Wishes::default();
        for name in ["node-1", "node-2"] {
            wishes.join(&fixture, name).await;
        }
        wishes.create(&fixture, "web", serde_json::json!({})).await;
        fixture.pass(pick(&random, 3)).await;
        for turn in 0..6 {
            match pick(&random, 3) {
                0 => wishes.edit(&fixture, "web", fixture.cloud.other_ports(&random)).await,
                1 => wishes.join(&fixture, &format!("late-{turn}")).await,
                _ if wishes.nodes.len() > 1 && wishes.nodes.contains_key("node-2") => {
                    wishes.drain(&fixture, "node-2").await;
                }
                _ => {}
            }
            tokio::time::sleep(Duration::from_millis(pick(&random, 900))).await;
        }
        fixture.pass(60).await;
        wishes.assert_fulfilled(&fixture, &format!("seed {seed}")).await;
        fixture.assert_rest(60, &format!("L4-806 seed {seed}")).await;
    }
}
