//! Changes in the cloud, and failures of the cloud.

use std::time::Duration;

use cloudberth_core::decide::lifecycle::Timing;
use cloudberth_e2e::{Cluster, eventually, throughout};
use serde_json::{Value, json};

use crate::fixture::{Fixture, SOON, taints, waits};
use crate::services::{SERVICES, WEB, web};
use crate::simulated_cloud::{SimulatedCloud as _, Tokens as _};
use crate::{Fallible, Outcome};

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// A node is never deleted in its first minute, and then its instance has to be missing twice, seconds apart.
const GONE_WITHIN: Duration = Duration::from_mins(6);

pub(crate) async fn an_instance_is_stopped_started_and_deleted(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two", "three"]).await?;
    let manager = fixture.leader(&["--node-monitor-period=1s"]).await?;
    fixture.nodes_join(&["one", "two", "three"]).await?;
    for node in ["one", "two", "three"] {
        fixture.say_ready(node, true).await?;
    }
    let path = "/api/v1/nodes/one";
    let is_shut_down = |node: &Value| taints(node).contains(&SHUTDOWN);

    fixture.cloud.stop("one");
    fixture.say_ready("one", false).await?;
    fixture.until("the node of a stopped instance is tainted", path, is_shut_down).await?;
    fixture.cloud.start("one");
    fixture.say_ready("one", true).await?;
    fixture.until("the taint of a started instance is gone", path, |node| !is_shut_down(node)).await?;

    fixture.cloud.delete("one");
    fixture.say_ready("one", false).await?;
    // Not in its first minute, and not on a single look: nodes are hard to lose.
    eventually(GONE_WITHIN, "the node of a deleted instance is gone", async || {
        match fixture.node("one").await {
            Err(_) => Ok(()),
            Ok(node) => Err(node.to_string()),
        }
    })
    .await?;
    let told = [
        "Synced: Node synced successfully",
        "DeletingNode: Deleting node one because it does not exist in the cloud provider",
    ];
    fixture.has_events("Node", "one", &told).await?;
    for node in ["two", "three"] {
        assert!(!is_shut_down(&fixture.node(node).await?));
    }
    fixture.close(&mut [manager]).await
}

/// How many requests the cloud has refused so far.
fn refusals(fixture: &Fixture<'_>) -> usize {
    fixture.cloud.calls().iter().filter(|call| call.status == Some(503)).count()
}

async fn refused(fixture: &Fixture<'_>, more: usize) -> Fallible<()> {
    let before = refusals(fixture);
    eventually(SOON, &format!("{more} more questions are not answered"), async || {
        let now = refusals(fixture) - before;
        if now >= more { Ok(()) } else { Err(format!("{now}")) }
    })
    .await?;
    Ok(())
}

pub(crate) async fn a_cloud_that_does_not_answer_costs_no_node_and_no_load_balancer(
    cluster: &Cluster,
) -> Outcome {
    /// What failed for over a minute is tried again within about as long.
    const BACK_WITHIN: Duration = Duration::from_mins(6);
    // Longer than it takes to lose a node whose instance is really gone.
    let outage = Timing::LAW.start_up_grace + Timing::LAW.confirm_after + Duration::from_secs(10);
    let fixture = Fixture::new(cluster, &["one", "two", "three"]).await?;
    let manager = fixture.leader(&["--node-monitor-period=1s"]).await?;
    fixture.nodes_join(&["one", "two"]).await?;
    fixture.say_ready("one", true).await?;
    cluster.create(SERVICES, &web(&[80])).await?;
    let before = fixture.serves(&[80], &["one", "two"]).await?;

    fixture.cloud.go_down();
    // An instance that is gone, a change that waits, and a new node.
    fixture.say_ready("two", false).await?;
    cluster.patch(WEB, &json!({ "spec": { "ports": [{ "port": 443 }] } })).await?;
    fixture.join("three", json!({})).await?;
    refused(&fixture, 12).await?;
    let failed = eventually(SOON, "the failure is told", async || {
        let events = fixture.events("Service", "web").await.map_err(|why| why.to_string())?;
        let failed = events.iter().find(|event| event.starts_with("SyncLoadBalancerFailed: "));
        failed.cloned().ok_or_else(|| format!("{events:#?}"))
    })
    .await?;
    assert!(failed.contains("503"), "{failed}");
    throughout(outage, "the load balancer is as it was (L5-41)", async || {
        let now = fixture.cloud.balancers();
        if now == std::slice::from_ref(&before) { Ok(()) } else { Err(format!("{now:#?}")) }
    })
    .await?;
    refused(&fixture, 1).await?;
    for node in ["one", "two", "three"] {
        fixture.node(node).await?;
    }

    fixture.cloud.come_back();
    eventually(BACK_WITHIN, "what waited is taken up again", async || {
        let three = fixture.node("three").await.map_err(|why| why.to_string())?;
        let now = fixture.cloud.balancers();
        if waits(&three) || now == std::slice::from_ref(&before) { Err(format!("{now:#?}")) } else { Ok(()) }
    })
    .await?;
    let after = fixture.serves(&[443], &["one", "two", "three"]).await?;
    assert_eq!(after.id, before.id, "L5-41");
    assert!(fixture.node("two").await.is_ok(), "L1-41 its instance was there all along");
    fixture.close(&mut [manager]).await
}

pub(crate) async fn a_token_that_was_rotated_is_used_without_a_restart(cluster: &Cluster) -> Outcome {
    const SECOND_TOKEN: &str = "second-token-abcdefghij0123456789";
    const THIRD_TOKEN: &str = "third-token-0123456789abcdefghij";
    const NOTICED_WITHIN: Duration = Duration::from_mins(5);
    let fixture = Fixture::new(cluster, &["one", "two", "three"]).await?;
    let mut manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one"]).await?;
    // The usual order: the new one is known before the old one is revoked.
    fixture.cloud.hand_over(SECOND_TOKEN)?;
    fixture.cloud.revoke_all_tokens_but(SECOND_TOKEN);
    fixture.nodes_join(&["two"]).await?;
    // The other order: nothing works for a while.
    fixture.cloud.revoke_all_tokens_but(THIRD_TOKEN);
    fixture.join("three", json!({})).await?;
    eventually(SOON, "the cloud turns the manager away", async || {
        let last = fixture.cloud.calls().last().and_then(|call| call.status);
        if last == Some(401) { Ok(()) } else { Err(format!("{last:?}")) }
    })
    .await?;
    fixture.cloud.hand_over(THIRD_TOKEN)?;
    // A refused token is tried again once a minute, so as not to lock an account out.
    eventually(NOTICED_WITHIN, "the new token is used", async || match fixture.node("three").await {
        Ok(node) if !waits(&node) => Ok(()),
        instead => Err(format!("{instead:?}")),
    })
    .await?;
    assert!(manager.program().runs(), "it is the same process");
    for token in [SECOND_TOKEN, THIRD_TOKEN] {
        assert!(!manager.log().join("\n").contains(token), "L10-43");
    }
    fixture.close(&mut [manager]).await
}
