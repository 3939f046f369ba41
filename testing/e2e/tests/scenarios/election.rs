//! Handovers of a Lease between replicas of ours and client-go candidates.

use std::time::Duration;

use cloudberth_e2e::{Cluster, Contest, Elector, Event, Manager, Row, eventually, two_at_once};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::fixture::{Fixture, LEASE as OURS, SOON, text};
use crate::lease::Record;
use crate::{Fallible, Outcome};

/// Longer than any delay on a busy machine, and still short enough to wait for.
const LEASE: Duration = Duration::from_secs(8);

const LEAD: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lead";

fn contest() -> Contest {
    Contest {
        namespace: "kube-system".into(),
        name: "lead".into(),
        lease_duration: LEASE,
        renew_deadline: Duration::from_secs(5),
        retry_period: Duration::from_millis(500),
    }
}

/// Waits until the Lease has this holder and this number of transitions.
async fn held(cluster: &Cluster, by: &str, transitions: u64) -> Outcome {
    eventually(SOON, &format!("{by} holds the Lease, number {transitions}"), async || {
        let lease = cluster.get(LEAD).await.map_err(|why| why.to_string())?;
        let found = (lease.pointer("/spec/holderIdentity"), lease.pointer("/spec/leaseTransitions"));
        let want = (json!(by), json!(transitions));
        if found == (Some(&want.0), Some(&want.1)) { Ok(()) } else { Err(lease["spec"].to_string()) }
    })
    .await?;
    Ok(())
}

/// Waits until `leader` leads, and checks that it and the Lease agree on the number of transitions.
async fn leads(cluster: &Cluster, leader: &mut Elector, number: u64) -> Outcome {
    let started = leader.says("started", SOON).await?;
    assert_eq!(started.transitions, number, "{:?}", leader.history());
    held(cluster, leader.identity(), number).await
}

/// Waits until another candidate sees the same leader. Earlier events may still be unread.
async fn sees(other: &mut Elector, leader: &str, number: u64) -> Outcome {
    loop {
        let seen = other.says("leader", SOON).await?;
        if (seen.leader.as_str(), seen.transitions) == (leader, number) {
            return Ok(());
        }
    }
}

pub(crate) async fn client_go_candidates_hand_a_lease_back_and_forth(cluster: &Cluster) -> Outcome {
    let program = kube_assets::elector(&mut |line| eprintln!("{line}"))?;
    let stand = |identity: &str, kubeconfig: &std::path::Path| {
        Elector::start(&program, kubeconfig, &contest(), identity)
    };
    let mut one = stand("one", &cluster.proxied_kubeconfig()?)?;
    leads(cluster, &mut one, 0).await?;
    let mut two = stand("two", &cluster.kubeconfig())?;
    sees(&mut two, "one", 0).await?;

    // By release, in both directions.
    one.release().await?;
    leads(cluster, &mut two, 1).await?;
    one.says("released", SOON).await?;
    one.stand().await?;
    sees(&mut one, "two", 1).await?;
    two.release().await?;
    leads(cluster, &mut one, 2).await?;
    two.says("released", SOON).await?;
    two.stand().await?;
    sees(&mut two, "one", 2).await?;

    // By expiry: one cannot reach the server any more, gives up, and only then two takes over.
    cluster.close_proxy();
    one.says("stopped", SOON).await?;
    leads(cluster, &mut two, 3).await?;
    cluster.open_proxy();
    sees(&mut one, "two", 3).await?;

    // By a kill: nobody releases the Lease.
    two.kill().await?;
    let last_sign: Timestamp = text(&cluster.get(LEAD).await?, "/spec/renewTime").parse()?;
    leads(cluster, &mut one, 4).await?;
    let taken = one.history().iter().rfind(|event| event.event == "started").unwrap().at;
    let mut three = stand("three", &cluster.kubeconfig())?;
    sees(&mut three, "one", 4).await?;
    one.quit(SOON).await?;
    leads(cluster, &mut three, 5).await?;
    three.quit(SOON).await?;
    held(cluster, "", 5).await?;

    let histories = [one.history(), two.history(), three.history()];
    assert_eq!(two_at_once(&histories), None);
    let silent = taken.duration_since(last_sign);
    assert!(silent >= SignedDuration::try_from(LEASE)?, "taken over after a silence of {silent:?}");
    Ok(())
}

/// How a leader leaves.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// It releases the Lease.
    Releasing,
    /// It is suspended for a while.
    Frozen,
    /// It cannot reach the server for a while.
    CutOff,
    /// The server is silent for a while, and requests arrive late.
    Silenced,
    /// It is killed.
    Killed,
}

/// How our replica leaves, and then the other: twenty handovers.
const ROUNDS: [(Leaves, Leaves); 10] = [
    (Leaves::Releasing, Leaves::Releasing),
    (Leaves::Frozen, Leaves::Releasing),
    (Leaves::Releasing, Leaves::Killed),
    (Leaves::CutOff, Leaves::Releasing),
    (Leaves::Killed, Leaves::Releasing),
    (Leaves::Releasing, Leaves::Releasing),
    (Leaves::Silenced, Leaves::Killed),
    (Leaves::Killed, Leaves::Releasing),
    (Leaves::Releasing, Leaves::Releasing),
    (Leaves::Releasing, Leaves::Releasing),
];

/// The timing of the managers in a fixture.
fn contest_with_a_manager() -> Contest {
    Contest {
        name: "cloud-controller-manager".into(),
        lease_duration: Duration::from_secs(10),
        renew_deadline: Duration::from_secs(6),
        ..contest()
    }
}

/// Waits until somebody other than `other` holds the Lease with this number of transitions, and returns who.
async fn ours_holds(fixture: &Fixture<'_>, other: &str, number: u64) -> Fallible<String> {
    let what = format!("our replica holds the Lease, number {number}");
    let lease = fixture
        .until(&what, OURS, |lease| {
            let holder = text(lease, "/spec/holderIdentity");
            !holder.is_empty() && holder != other && lease["spec"]["leaseTransitions"] == json!(number)
        })
        .await?;
    Ok(text(&lease, "/spec/holderIdentity").to_owned())
}

async fn theirs_leads(fixture: &Fixture<'_>, theirs: &mut Elector, number: u64) -> Outcome {
    let started = theirs.says("started", SOON).await?;
    assert_eq!(started.transitions, number, "{:?}", theirs.history());
    let (what, holder) = (format!("{} holds the Lease", theirs.identity()), theirs.identity().to_owned());
    fixture.until(&what, OURS, |lease| text(lease, "/spec/holderIdentity") == holder).await?;
    Ok(())
}

/// Our replica leaves, the other takes over, and ours is a candidate again.
async fn ours_leaves(
    fixture: &Fixture<'_>,
    ours: &mut Manager,
    theirs: &mut Elector,
    way: Leaves,
    number: u64,
) -> Outcome {
    match way {
        Leaves::Releasing => assert_eq!(ours.stop(SOON).await?, 0),
        Leaves::Frozen => ours.freeze(),
        Leaves::CutOff => fixture.cluster.close_proxy(),
        Leaves::Silenced => fixture.cluster.hold_proxy(),
        Leaves::Killed => ours.kill(),
    }
    theirs_leads(fixture, theirs, number).await?;
    match way {
        Leaves::Releasing | Leaves::Killed => return Ok(ours.restart().await?),
        Leaves::Frozen => ours.thaw(),
        Leaves::CutOff | Leaves::Silenced => fixture.cluster.open_proxy(),
    }
    ours.program().says("this replica does not lead any more; it stays in the election", SOON).await?;
    Ok(())
}

/// While another holds the Lease, nothing is written but the Lease.
fn only_the_holder_writes(rows: &[Row], ours: &str) {
    let mut holder = "";
    for row in rows.iter().filter(|row| row.is_write() && (200..300).contains(&row.status)) {
        // A create has no name; the server has Leases of its own.
        let named = row.name == contest_with_a_manager().name || (row.name.is_empty() && row.user == ours);
        let of_the_lease = row.resource == "leases" && named;
        if of_the_lease {
            holder = &row.user;
        }
        assert!(of_the_lease || row.user != ours || holder == ours, "L9-43: while {holder} led: {row:?}");
    }
}

pub(crate) async fn our_replica_and_client_go_hand_a_lease_back_and_forth_20_times(
    cluster: &Cluster,
) -> Outcome {
    let program = kube_assets::elector(&mut |line| eprintln!("{line}"))?;
    let instances: Vec<String> = (0..ROUNDS.len()).map(|round| format!("node-{round}")).collect();
    let fixture = Fixture::new(cluster, &instances.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let stand =
        |identity: &str| Elector::start(&program, &cluster.kubeconfig(), &contest_with_a_manager(), identity);
    let record = Record::begin(cluster, OURS).await?;
    let mut ours = fixture.leader(&[]).await?;
    let mut theirs = stand("client-go-0")?;
    sees(&mut theirs, &ours.identity().unwrap(), 0).await?;

    let (mut number, mut gone): (u64, Vec<Vec<Event>>) = (0, Vec::new());
    for (round, (ours_way, theirs_way)) in ROUNDS.into_iter().enumerate() {
        number += 1;
        ours_leaves(&fixture, &mut ours, &mut theirs, ours_way, number).await?;
        number += 1;
        match theirs_way {
            Leaves::Killed => theirs.kill().await?,
            _ => theirs.release().await?,
        }
        let leader = ours_holds(&fixture, theirs.identity(), number).await?;
        match theirs_way {
            Leaves::Killed => {
                gone.push(theirs.history().to_vec());
                theirs = stand(&format!("client-go-{}", round + 1))?;
            }
            _ => theirs.stand().await?,
        }
        sees(&mut theirs, &leader, number).await?;
        // It leads in fact, and does not only say so.
        fixture.join(&instances[round], json!({})).await?;
        fixture.initialised(&instances[round]).await?;
    }
    theirs.quit(SOON).await?;
    gone.push(theirs.history().to_vec());
    fixture.close(std::slice::from_mut(&mut ours)).await?;

    assert_eq!(record.end().await?.handovers(contest_with_a_manager().lease_duration), 20);
    let history = ours.history();
    let histories: Vec<&[Event]> = gone.iter().map(Vec::as_slice).chain([history.as_slice()]).collect();
    assert_eq!(two_at_once(&histories), None, "L9-42");
    only_the_holder_writes(&cluster.calls(), &fixture.account.user.name);
    Ok(())
}
