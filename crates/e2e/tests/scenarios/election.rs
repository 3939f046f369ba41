//! A Lease goes from hand to hand.

use std::time::Duration;

use cloudberth_e2e::{Contest, Elector, World, eventually, two_at_once};
use serde_json::json;

use crate::Outcome;

/// As short as a busy machine lets a leader be sure of its claim.
const LEASE: Duration = Duration::from_secs(4);
const SOON: Duration = Duration::from_secs(60);

fn contest() -> Contest {
    Contest {
        namespace: "kube-system".into(),
        name: "lead".into(),
        lease_duration: LEASE,
        renew_deadline: Duration::from_secs(3),
        retry_period: Duration::from_millis(500),
    }
}

/// The Lease says who holds it, and has counted so often.
async fn held(world: &World, by: &str, transitions: u64) -> Outcome {
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lead";
    eventually(SOON, &format!("{by} holds the Lease, number {transitions}"), async || {
        let lease = world.get(path).await.map_err(|why| why.to_string())?;
        let found = (lease.pointer("/spec/holderIdentity"), lease.pointer("/spec/leaseTransitions"));
        let want = (json!(by), json!(transitions));
        if found == (Some(&want.0), Some(&want.1)) { Ok(()) } else { Err(lease["spec"].to_string()) }
    })
    .await?;
    Ok(())
}

/// `leader` has begun to lead, and it and the Lease agree on how often that has happened.
async fn leads(world: &World, leader: &mut Elector, number: u64) -> Outcome {
    let started = leader.says("started", SOON).await?;
    assert_eq!(started.transitions, number, "{:?}", leader.history());
    held(world, leader.identity(), number).await
}

/// One who looks on sees the same. What it saw earlier may still be unread.
async fn sees(other: &mut Elector, leader: &str, number: u64) -> Outcome {
    loop {
        let seen = other.says("leader", SOON).await?;
        if (seen.leader.as_str(), seen.transitions) == (leader, number) {
            return Ok(());
        }
    }
}

pub(crate) async fn client_go_candidates_hand_a_lease_back_and_forth(world: &World) -> Outcome {
    let program = kube_assets::elector(&mut |line| eprintln!("{line}"))?;
    let stand = |identity: &str, kubeconfig: &std::path::Path| {
        Elector::start(&program, kubeconfig, &contest(), identity)
    };
    let mut one = stand("one", &world.gated_kubeconfig()?)?;
    leads(world, &mut one, 0).await?;
    let mut two = stand("two", &world.kubeconfig())?;
    sees(&mut two, "one", 0).await?;

    // By release, there and back.
    one.release().await?;
    leads(world, &mut two, 1).await?;
    one.says("released", SOON).await?;
    one.stand().await?;
    sees(&mut one, "two", 1).await?;
    two.release().await?;
    leads(world, &mut one, 2).await?;
    two.says("released", SOON).await?;
    two.stand().await?;
    sees(&mut two, "one", 2).await?;

    // By expiry: one cannot reach the server any more, gives up, and only then two takes over.
    world.close_gate();
    one.says("stopped", SOON).await?;
    leads(world, &mut two, 3).await?;
    world.open_gate();
    sees(&mut one, "two", 3).await?;

    // By death: nobody gives anything back.
    two.kill().await?;
    leads(world, &mut one, 4).await?;
    let mut three = stand("three", &world.kubeconfig())?;
    sees(&mut three, "one", 4).await?;
    one.quit(SOON).await?;
    leads(world, &mut three, 5).await?;
    three.quit(SOON).await?;
    held(world, "", 5).await?;

    let histories = [one.history(), two.history(), three.history()];
    assert_eq!(two_at_once(&histories), None);
    let waited = |by: &Elector, since: &Elector, end: &str| {
        let from = since.history().iter().rfind(|event| event.event == end).unwrap().at;
        by.history().iter().rfind(|event| event.event == "started").unwrap().at.duration_since(from)
    };
    let after_death = waited(&one, &two, "killed");
    // It renewed at most a retry period before it was killed.
    let least = LEASE.checked_sub(Duration::from_secs(1)).unwrap();
    assert!(after_death.unsigned_abs() >= least, "taken over {after_death:?} after the death of its holder");
    Ok(())
}
