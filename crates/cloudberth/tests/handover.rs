//! Two processes, one cluster: who leads, and how that changes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "sim")]

mod fixture;

use fixture::{Cluster, Process, until};
use jiff::{SignedDuration, Timestamp};

/// What managers here are told, unless they are told otherwise.
const LEASE: SignedDuration = SignedDuration::from_secs(6);
/// Longer than any test waits: whoever takes over meanwhile was given the Lease.
const ENDLESS: &str = "--leader-elect-lease-duration=1h";

/// A leader, its name, and a standby that knows about it.
async fn pair(cluster: &Cluster, flags: &[&str]) -> (Process, String, Process) {
    let mut leader = cluster.manager("leader", &[&["--secure-port=0"], flags].concat());
    leader.says(&["this replica leads"]).await;
    let name = cluster.holder().await.unwrap();
    assert!(leader.log().contains(&format!("{name} became leader")), "{name}:\n{}", leader.log());
    let standby = cluster.manager("standby", &[&["--secure-port=0", "--v=4"], flags].concat());
    // It stands as soon as it asks for the Lease; that it watches nodes too shows that it is warm.
    until("both replicas watch the nodes", async || {
        let calls = cluster.get("/_sim/faults").await?;
        (calls["watches"].as_u64()? >= 5).then_some(())
    })
    .await;
    (leader, name, standby)
}

async fn another_leads(cluster: &Cluster, than: &str) -> String {
    until("another leads", async || {
        cluster.holder().await.filter(|holder| !holder.is_empty() && holder != than)
    })
    .await
}

async fn time(cluster: &Cluster, field: &str) -> Timestamp {
    let lease = cluster.lease().await.unwrap();
    lease[field].as_str().unwrap_or_default().parse().unwrap_or_else(|why| panic!("{why}: {lease}"))
}

#[tokio::test]
async fn a_leader_that_is_killed_is_replaced_when_its_lease_ends() {
    let cluster = Cluster::start().await;
    let (mut leader, name, _standby) = pair(&cluster, &[]).await;
    cluster.sees_work("one").await;
    leader.signal("KILL");
    assert_eq!(leader.exit_code().await, None, "it died of the signal");
    let last_sign = time(&cluster, "renewTime").await;
    another_leads(&cluster, &name).await;
    let silent = time(&cluster, "acquireTime").await.duration_since(last_sign);
    assert!(silent >= LEASE, "L9-950: taken after a silence of {silent:?}");
    cluster.sees_work("two").await;
}

#[tokio::test]
async fn a_leader_that_is_told_to_stop_hands_over_at_once() {
    for (signal, nodes) in [("TERM", ["one", "two"]), ("INT", ["three", "four"])] {
        let cluster = Cluster::start().await;
        let (mut leader, name, _standby) = pair(&cluster, &[ENDLESS]).await;
        cluster.sees_work(nodes[0]).await;
        leader.signal(signal);
        another_leads(&cluster, &name).await;
        assert_eq!(leader.exit_code().await, Some(0), "{}", leader.log());
        assert!(!leader.log().contains("event not written"), "{}", leader.log());
        cluster.sees_work(nodes[1]).await;
    }
}

#[tokio::test]
async fn the_last_one_leaves_the_lease_free() {
    let cluster = Cluster::start().await;
    let mut only = cluster.manager("only", &["--secure-port=0"]);
    only.says(&["this replica leads"]).await;
    only.signal("TERM");
    assert_eq!(only.exit_code().await, Some(0), "{}", only.log());
    assert_eq!(cluster.holder().await.as_deref(), Some(""));
}

/// FW-357: a leader that slept through the end of its Lease stays alive, writes nothing, and leads again when it can.
#[tokio::test]
async fn a_leader_that_lost_its_lease_stands_again_in_the_same_process() {
    let cluster = Cluster::start().await;
    let (mut first, name, mut second) = pair(&cluster, &[]).await;
    first.signal("STOP");
    let other = another_leads(&cluster, &name).await;
    first.signal("CONT");
    first.says(&["this replica does not lead any more; it stays in the election"]).await;
    cluster.sees_work("one").await;
    assert_eq!(cluster.holder().await, Some(other.clone()));
    assert_eq!(first.ended(), None);
    second.signal("TERM");
    let again = another_leads(&cluster, &other).await;
    assert_eq!((again, second.exit_code().await), (name, Some(0)));
    cluster.sees_work("two").await;
}
