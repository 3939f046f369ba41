//! Trouble with the API server while a manager works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloudberth_e2e::{Request, World, eventually};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Outcome;
use crate::services::web;
use crate::stage::{LEASE, SOON, Stage, waits};

const SERVICES: &str = "/api/v1/namespaces/default/services";

pub(crate) async fn a_manager_outlives_its_api_server(world: &World) -> Outcome {
    let mut stage = Stage::set(world, &["one", "two"]).await?;
    let mut manager = stage.leader(&[]).await?;
    stage.nodes_join(&["one"]).await?;
    stage.forgetful = true;
    world.stop_api();
    manager.program().says("the watch broke; it is taken up again", SOON).await?;
    world.start_api().await?;
    stage.nodes_join(&["two"]).await?;
    world.create(SERVICES, &web(&[80])).await?;
    stage.serves(&[80], &["one", "two"]).await?;
    assert!(manager.program().runs(), "it is the same process");
    stage.close(&mut [manager]).await
}

pub(crate) async fn watches_that_are_cut_lose_nothing(world: &World) -> Outcome {
    let stage = Stage::set(world, &["one", "two", "three"]).await?;
    let manager = stage.leader(&[]).await?;
    stage.nodes_join(&["one"]).await?;
    world.create(SERVICES, &web(&[80])).await?;
    stage.serves(&[80], &["one"]).await?;
    for (node, port) in [("two", 81), ("three", 82)] {
        world.cut();
        // Said while nobody listens, or as good as nobody.
        stage.join(node, json!({})).await?;
        let ports = json!({ "spec": { "ports": [{ "port": port }] } });
        world.patch("/api/v1/namespaces/default/services/web", &ports).await?;
        stage.initialised(node).await?;
        let all = if node == "two" { vec!["one", "two"] } else { vec!["one", "two", "three"] };
        stage.serves(&[port], &all).await?;
    }
    assert_eq!(stage.cloud.mutations().iter().filter(|one| *one == "load-balancers.create").count(), 1);
    stage.close(&mut [manager]).await
}

/// Writers who never cease to write to an object until they are told, each a line of its own. Each brings back the path,
/// its line, and how often it wrote.
fn scribble(
    world: &World,
    path: &str,
    busy: &Arc<AtomicBool>,
    writers: &mut JoinSet<(String, String, usize)>,
) {
    for line in ["left", "right"] {
        let (client, path, busy) = (world.admin().clone(), path.to_owned(), Arc::clone(busy));
        writers.spawn(async move {
            let mut written = 0;
            while busy.load(Ordering::Relaxed) {
                let change = json!({ "metadata": { "annotations": { line: (written + 1).to_string() } } });
                let mut request = Request::new(Method::PATCH, &path).json(&change);
                request.content_type = "application/merge-patch+json".into();
                match client.send(&request).await.unwrap().status {
                    200 => written += 1,
                    409 => {}
                    status => panic!("PATCH {path} answered {status}"),
                }
            }
            (path, line.to_owned(), written)
        });
    }
}

/// How often the manager has to lose before the storm ends. One that never ends lets nobody through.
const DEFEATS: usize = 5;

pub(crate) async fn a_manager_gets_through_a_storm_of_conflicts(world: &World) -> Outcome {
    let instances: Vec<String> = (0..12).map(|number| format!("node-{number}")).collect();
    let instances: Vec<&str> = instances.iter().map(String::as_str).collect();
    let stage = Stage::set(world, &instances).await?;
    let manager = stage.leader(&[]).await?;
    let (busy, mut writers) = (Arc::new(AtomicBool::new(true)), JoinSet::new());
    world.create(SERVICES, &web(&[80])).await?;
    scribble(world, "/api/v1/namespaces/default/services/web", &busy, &mut writers);
    let mut joined = 0;
    eventually(SOON, "others were in the manager's way often enough", async || {
        let rows = world.calls_of(&stage.account.user);
        let defeats = rows.iter().filter(|row| row.status == 409).count();
        if defeats >= DEFEATS {
            return Ok(());
        }
        // It got through, or has nothing to do: there is more.
        let last = instances.get(joined.max(1) - 1).copied().unwrap_or_default();
        let idle = joined == 0 || stage.node(last).await.is_ok_and(|node| !waits(&node));
        if let (true, Some(next)) = (idle, instances.get(joined)) {
            stage.join(next, json!({})).await.map_err(|why| why.to_string())?;
            scribble(world, &format!("/api/v1/nodes/{next}"), &busy, &mut writers);
            joined += 1;
        }
        Err(format!("{defeats} times, with {joined} nodes"))
    })
    .await?;
    busy.store(false, Ordering::Relaxed);
    for (path, line, written) in writers.join_all().await {
        let found = world.get(&path).await?;
        let kept = if written == 0 { Value::Null } else { json!(written.to_string()) };
        assert_eq!(found["metadata"]["annotations"][&line], kept, "lost: {found}");
    }
    let nodes = &instances[..joined];
    for node in nodes {
        stage.initialised(node).await?;
        // Once, however often it was tried.
        stage.told("Node", node, &["Synced: Node synced successfully"]).await?;
    }
    stage.serves(&[80], nodes).await?;
    stage.close(&mut [manager]).await
}

pub(crate) async fn a_standby_takes_over_from_a_leader_that_is_killed(world: &World) -> Outcome {
    let stage = Stage::set(world, &["one", "two"]).await?;
    let mut first = stage.leader(&[]).await?;
    let mut second = stage.manager("standby", &[]).await?;
    stage.nodes_join(&["one"]).await?;
    stage.cloud.keep_quiet_about_the_next_balancer();
    world.create(SERVICES, &web(&[80])).await?;
    let built = eventually(SOON, "the cloud has built it", async || {
        stage.cloud.balancers().pop().ok_or_else(|| "nothing yet".to_owned())
    })
    .await?;
    let leader = stage.holder().await?;
    assert_eq!(Some(&leader), first.identity().as_ref());
    assert_eq!(second.identity(), None, "a standby does not lead");
    first.kill();
    let next = second.leads(SOON).await?;
    assert_ne!(next, leader);
    // What the first began, the second ends.
    assert_eq!(stage.serves(&[80], &["one"]).await?.id, built.id, "L6-42");
    stage.nodes_join(&["two"]).await?;
    stage.serves(&[80], &["one", "two"]).await?;
    // And back, in order this time.
    first.restart().await?;
    assert_eq!(second.stop(SOON).await?, 0);
    let again = first.leads(SOON).await?;
    assert_eq!(stage.holder().await?, again);
    stage.rests(&[("Service", "web", "EnsuredLoadBalancer", 1), ("Node", "two", "Synced", 1)]).await?;
    second.restart().await?;
    stage.close(&mut [first, second]).await
}

pub(crate) async fn a_leader_told_to_stop_in_the_middle_of_a_call_hands_over(world: &World) -> Outcome {
    let stage = Stage::set(world, &["one"]).await?;
    let mut first = stage.leader(&[]).await?;
    let mut second = stage.manager("standby", &[]).await?;
    stage.nodes_join(&["one"]).await?;
    stage.cloud.keep_quiet_about_the_next_balancer();
    world.create(SERVICES, &web(&[80])).await?;
    let built = eventually(SOON, "the cloud has built it", async || {
        stage.cloud.balancers().pop().ok_or_else(|| "nothing yet".to_owned())
    })
    .await?;
    // It waits for an answer that never comes; not for ever.
    assert_eq!(first.stop(SOON).await?, 0);
    second.leads(SOON).await?;
    assert_eq!(stage.serves(&[80], &["one"]).await?.id, built.id, "L6-43");
    stage.rests(&[("Service", "web", "EnsuredLoadBalancer", 1)]).await?;
    // A Lease that somebody deletes is made anew, and no harm done.
    world.delete(LEASE).await?;
    eventually(SOON, "there is a Lease again", async || {
        let holder = stage.holder().await.map_err(|why| why.to_string())?;
        if holder.is_empty() { Err("free".to_owned()) } else { Ok(()) }
    })
    .await?;
    world.delete("/api/v1/namespaces/default/services/web").await?;
    stage.serves_nothing().await?;
    stage.close(&mut [second]).await
}
