//! Trouble with the API server while a manager works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloudberth_e2e::{Cluster, Request, eventually};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Outcome;
use crate::clouds::cloudscale::CREATION;
use crate::fixture::{Fixture, LEASE, SOON, waits};
use crate::services::{SERVICES, WEB, web};
use crate::simulated_cloud::SimulatedCloud as _;

pub(crate) async fn a_manager_outlives_its_api_server(cluster: &Cluster) -> Outcome {
    let mut fixture = Fixture::new(cluster, &["one", "two"]).await?;
    let mut manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one"]).await?;
    fixture.forgetful = true;
    cluster.stop_api();
    manager.program().says("watch failed; restarting it", SOON).await?;
    cluster.start_api().await?;
    fixture.nodes_join(&["two"]).await?;
    cluster.create(SERVICES, &web(&[80])).await?;
    fixture.serves(&[80], &["one", "two"]).await?;
    assert!(manager.program().runs(), "it is the same process");
    fixture.close(&mut [manager]).await
}

pub(crate) async fn watches_that_are_cut_lose_nothing(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two", "three"]).await?;
    let manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one"]).await?;
    cluster.create(SERVICES, &web(&[80])).await?;
    fixture.serves(&[80], &["one"]).await?;
    for (node, port) in [("two", 81), ("three", 82)] {
        cluster.cut();
        // Written while no manager watches.
        fixture.join(node, json!({})).await?;
        let ports = json!({ "spec": { "ports": [{ "port": port }] } });
        cluster.patch(WEB, &ports).await?;
        fixture.initialised(node).await?;
        let all = if node == "two" { vec!["one", "two"] } else { vec!["one", "two", "three"] };
        fixture.serves(&[port], &all).await?;
    }
    assert_eq!(fixture.cloud.mutations().iter().filter(|one| *one == CREATION).count(), 1);
    fixture.close(&mut [manager]).await
}

/// Writers that write to an object until they are stopped, each to a field of its own. Each returns the path, its field,
/// and how often it wrote.
fn scribble(
    cluster: &Cluster,
    path: &str,
    busy: &Arc<AtomicBool>,
    writers: &mut JoinSet<(String, String, usize)>,
) {
    for line in ["left", "right"] {
        let (client, path, busy) = (cluster.admin().clone(), path.to_owned(), Arc::clone(busy));
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

/// How many conflicts the manager has to meet before the storm ends. An endless storm would let nobody through.
const DEFEATS: usize = 5;

pub(crate) async fn a_manager_gets_through_a_storm_of_conflicts(cluster: &Cluster) -> Outcome {
    let instances: Vec<String> = (0..12).map(|number| format!("node-{number}")).collect();
    let instances: Vec<&str> = instances.iter().map(String::as_str).collect();
    let fixture = Fixture::new(cluster, &instances).await?;
    let manager = fixture.leader(&[]).await?;
    let (busy, mut writers) = (Arc::new(AtomicBool::new(true)), JoinSet::new());
    cluster.create(SERVICES, &web(&[80])).await?;
    scribble(cluster, WEB, &busy, &mut writers);
    let mut joined = 0;
    eventually(SOON, "others were in the manager's way often enough", async || {
        let rows = cluster.calls_of(&fixture.account.user);
        let defeats = rows.iter().filter(|row| row.status == 409).count();
        if defeats >= DEFEATS {
            return Ok(());
        }
        // It got through, or had nothing to do: give it more.
        let last = instances.get(joined.max(1) - 1).copied().unwrap_or_default();
        let idle = joined == 0 || fixture.node(last).await.is_ok_and(|node| !waits(&node));
        if let (true, Some(next)) = (idle, instances.get(joined)) {
            fixture.join(next, json!({})).await.map_err(|why| why.to_string())?;
            scribble(cluster, &format!("/api/v1/nodes/{next}"), &busy, &mut writers);
            joined += 1;
        }
        Err(format!("{defeats} times, with {joined} nodes"))
    })
    .await?;
    busy.store(false, Ordering::Relaxed);
    for (path, line, written) in writers.join_all().await {
        let found = cluster.get(&path).await?;
        let kept = if written == 0 { Value::Null } else { json!(written.to_string()) };
        assert_eq!(found["metadata"]["annotations"][&line], kept, "lost: {found}");
    }
    let nodes = &instances[..joined];
    for node in nodes {
        fixture.initialised(node).await?;
        // Once, however often it was tried.
        fixture.has_events("Node", node, &["Synced: Node synced successfully"]).await?;
    }
    fixture.serves(&[80], nodes).await?;
    fixture.close(&mut [manager]).await
}

pub(crate) async fn a_standby_takes_over_from_a_leader_that_is_killed(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two"]).await?;
    let mut first = fixture.leader(&[]).await?;
    let mut second = fixture.manager("standby", &[]).await?;
    fixture.nodes_join(&["one"]).await?;
    fixture.cloud.never_answer_the_next_creation();
    cluster.create(SERVICES, &web(&[80])).await?;
    let built = eventually(SOON, "the cloud has built it", async || {
        fixture.cloud.balancers().pop().ok_or_else(|| "nothing yet".to_owned())
    })
    .await?;
    let leader = fixture.holder().await?;
    assert_eq!(Some(&leader), first.identity().as_ref());
    assert_eq!(second.identity(), None, "a standby does not lead");
    first.kill();
    let next = second.leads(SOON).await?;
    assert_ne!(next, leader);
    // The second manager finishes what the first began.
    assert_eq!(fixture.serves(&[80], &["one"]).await?.id, built.id, "L6-42");
    fixture.nodes_join(&["two"]).await?;
    fixture.serves(&[80], &["one", "two"]).await?;
    // And back, by an orderly stop.
    first.restart().await?;
    assert_eq!(second.stop(SOON).await?, 0);
    let again = first.leads(SOON).await?;
    assert_eq!(fixture.holder().await?, again);
    fixture.rests(&[("Service", "web", "EnsuredLoadBalancer", 1), ("Node", "two", "Synced", 1)]).await?;
    second.restart().await?;
    fixture.close(&mut [first, second]).await
}

pub(crate) async fn a_leader_told_to_stop_in_the_middle_of_a_call_hands_over(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one"]).await?;
    let mut first = fixture.leader(&[]).await?;
    let mut second = fixture.manager("standby", &[]).await?;
    fixture.nodes_join(&["one"]).await?;
    fixture.cloud.never_answer_the_next_creation();
    cluster.create(SERVICES, &web(&[80])).await?;
    let built = eventually(SOON, "the cloud has built it", async || {
        fixture.cloud.balancers().pop().ok_or_else(|| "nothing yet".to_owned())
    })
    .await?;
    // It waits for an answer that never comes, but not for ever.
    assert_eq!(first.stop(SOON).await?, 0);
    second.leads(SOON).await?;
    assert_eq!(fixture.serves(&[80], &["one"]).await?.id, built.id, "L6-43");
    fixture.rests(&[("Service", "web", "EnsuredLoadBalancer", 1)]).await?;
    // A deleted Lease is created again.
    cluster.delete(LEASE).await?;
    eventually(SOON, "there is a Lease again", async || {
        let holder = fixture.holder().await.map_err(|why| why.to_string())?;
        if holder.is_empty() { Err("free".to_owned()) } else { Ok(()) }
    })
    .await?;
    cluster.delete(WEB).await?;
    fixture.serves_nothing().await?;
    fixture.close(&mut [second]).await
}
