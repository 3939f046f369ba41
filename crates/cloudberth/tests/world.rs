//! The world of the demo and the sandbox, through the contract that its views are built on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "demo")]

use std::{sync::Arc, time::Duration};

use cloudberth::world::{
    Breakage, Cluster, Command, Happening, Health, NodeCard, PROVIDERS, Snapshot, Watched as _, World,
    WorldSettings,
};
use cloudberth_core::Random;
use cloudberth_http::surroundings::SystemClock;

/// It ends a hang and measures nothing.
const PATIENCE: Duration = Duration::from_secs(120);

const WEB: &str = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, \
                   selector: {app: web}, ports: [{name: http, port: 80}]}}";

async fn world(provider: &str, nodes: u32) -> Arc<World> {
    let settings = WorldSettings {
        provider: provider.to_owned(),
        cluster: Cluster::Embedded,
        managers: 2,
        nodes,
        requests_per_second: 20,
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(Random::seeded(7)),
    };
    World::start(settings).await.unwrap()
}

async fn until(world: &World, what: &str, seen: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let mut changes = world.changes();
    let wait = async {
        loop {
            let snapshot = world.snapshot();
            if seen(&snapshot) {
                return snapshot;
            }
            changes.changed().await.unwrap();
        }
    };
    let late = |_| panic!("not in time: {what}\n{:#?}\n{:#?}", world.snapshot(), world.happenings(0));
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(late)
}

fn initialised(node: &NodeCard) -> bool {
    node.instance.is_some() && node.taints.is_empty() && node.ready
}

async fn run(world: &World, command: Command) -> String {
    world.run(command).await.unwrap()
}

/// The same life on every cloud: what people do, and what a view is shown of it.
async fn life(provider: &str) {
    let world = world(provider, 3).await;
    let shown =
        until(&world, "three nodes", |s| s.nodes.iter().filter(|n| initialised(n)).count() == 3).await;
    assert_eq!(shown.provider, provider);
    assert!(shown.leader.as_deref().is_some_and(|leader| leader.starts_with("manager-")), "{shown:?}");
    assert!(
        shown.nodes.iter().all(|node| node.instance_state == "running" && node.zone.is_some()),
        "{shown:?}"
    );

    run(&world, Command::CreateService { yaml: WEB.to_owned() }).await;
    let shown = until(&world, "a load balancer with three members", |s| {
        s.balancers.iter().any(|one| one.state == "active" && one.members.len() == 3)
    });
    let shown = shown.await;
    assert_eq!(
        (shown.balancers[0].service.as_str(), &shown.balancers[0].ports),
        ("default/web", &vec!["80/TCP".to_owned()])
    );

    let name = shown.nodes[1].name.clone();
    let of = |s: &Snapshot, name: &str| s.nodes.iter().find(|node| node.name == name).cloned();
    run(&world, Command::StopInstance { name: name.clone() }).await;
    let stopped = until(&world, "the shutdown taint", |s| {
        of(s, &name).is_some_and(|node| node.taints.iter().any(|taint| taint.contains("/shutdown:")))
    });
    assert_eq!(of(&stopped.await, &name).unwrap().instance_state, "stopped");
    run(&world, Command::DestroyInstance { name: name.clone() }).await;
    until(&world, "the node gone, and the member", |s| {
        of(s, &name).is_none() && s.balancers.iter().all(|one| one.members.len() == 2)
    })
    .await;

    run(&world, Command::BreakCloud { how: Breakage::Errors }).await;
    assert!(world.snapshot().fault.is_some_and(|fault| fault.contains("500")));
    run(&world, Command::MendCloud).await;
    assert_eq!(world.snapshot().fault, None);

    run(&world, Command::DeleteService { namespace: "default".to_owned(), name: "web".to_owned() }).await;
    until(&world, "no Service", |s| s.balancers.is_empty()).await;
    assert_eq!(world.balancer_count(), 0, "nothing is left in the cloud");

    let totals = world.snapshot().totals;
    assert!(totals.cloud_calls > totals.cloud_changes && totals.cloud_changes >= 2, "{totals:?}");
    assert!(totals.kube_writes > 5 && totals.lease_writes > 0, "{totals:?}");
    let told = world.happenings(0);
    let decided = told.iter().any(|entry| match &entry.what {
        Happening::Decision { object, impact, .. } => object == "service/default/web" && !impact.is_empty(),
        _ => false,
    });
    assert!(decided, "the steps of the manager are told: {told:#?}");
    world.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_simulated_clouds_live() {
    for provider in &PROVIDERS[1..] {
        life(provider).await;
    }
}

#[tokio::test]
async fn cloudlycke_lives_and_carries_traffic() {
    life(PROVIDERS[0]).await;
    let world = world(PROVIDERS[0], 2).await;
    run(&world, Command::CreateService { yaml: WEB.replace("80", "8080") }).await;
    let shown = until(&world, "both members are up and answer", |s| {
        let up =
            |one: &cloudberth::world::MemberCard| one.health == Health::Up && one.requests_per_second > 0.0;
        s.balancers.iter().any(|one| one.members.len() == 2 && one.members.iter().all(up))
    })
    .await;
    assert!(shown.traffic && shown.balancers[0].url.is_some(), "{shown:?}");
    assert!(shown.totals.requests > 0 && shown.totals.errors == 0, "{shown:?}");
    run(&world, Command::StopInstance { name: "node-1".to_owned() }).await;
    until(&world, "a member is down", |s| {
        s.balancers
            .iter()
            .flat_map(|one| &one.members)
            .any(|one| one.node == "node-1" && one.health == Health::Down)
    })
    .await;
    let mark = world.newest_visit();
    // Visits that were under way when the member went down may still end there.
    until(&world, "traffic has moved: twenty visits in a row to the other node", |_| {
        let newest = world.newest_visit();
        let last = cloudberth::world::answers(&world.visits(newest.saturating_sub(20)));
        newest >= mark + 20 && last.keys().eq(["node-2"])
    })
    .await;
    assert_eq!(world.snapshot().totals.errors, 0, "and nobody noticed");
    world.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_lying_cloud_loses_no_node_and_a_dead_leader_is_replaced() {
    let world = world("cloudscale", 3).await;
    let shown =
        until(&world, "three nodes", |s| s.nodes.iter().filter(|n| initialised(n)).count() == 3).await;
    let leader = shown.leader.unwrap();
    run(&world, Command::BreakCloud { how: Breakage::Lying }).await;
    let name = shown.nodes[0].name.clone();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.snapshot().nodes.len(), 3, "law 1: an empty listing is not believed");
    let said = run(&world, Command::KillLeader).await;
    assert!(said.contains(&leader) && said.contains("manager-3"), "{said}");
    until(&world, "another leader", |s| s.leader.as_ref().is_some_and(|now| *now != leader)).await;
    run(&world, Command::MendCloud).await;
    run(&world, Command::DestroyInstance { name: name.clone() }).await;
    until(&world, "the node of a destroyed instance is gone", |s| s.nodes.iter().all(|n| n.name != name))
        .await;
    world.close().await;
    assert_eq!(world.snapshot().leader, None, "the Lease was released");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_is_said_in_plain_words() {
    let world = world("cloudscale", 1).await;
    let nowhere = || "nowhere".to_owned();
    let yaml = |text: &str| Command::CreateService { yaml: text.to_owned() };
    let table = [
        (Command::StopInstance { name: nowhere() }, "the cloud has no instance called nowhere"),
        (Command::DestroyInstance { name: nowhere() }, "the cloud has no instance called nowhere"),
        (yaml("a: [b"), "this is not YAML"),
        (yaml("{apiVersion: v1, kind: Pod}"), "this is not a Service"),
        (yaml(&WEB.replace("80", "80000")), "spec.ports[0].port"),
        (Command::DeleteService { namespace: nowhere(), name: nowhere() }, "\"nowhere\" not found"),
        (Command::Traffic { per_second: 5 }, "is simulated"),
    ];
    for (command, want) in table {
        let why = world.run(command.clone()).await.unwrap_err();
        assert!(why.contains(want), "{command:?}: {why}");
    }
    world.close().await;
}
