//! Elections in virtual time, against the embedded Kubernetes API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod fixture;

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use cloudberth_core::{Clock, Gate, decide::election::Config};
use embedded_kube::{Fault, Harm};
use fixture::{fixture, seconds, until};
use serde_json::json;

fn refuse_watches(fixture: &fixture::Fixture) {
    let forbidden = |action: &embedded_kube::Action| {
        action.resource == "leases" && matches!(action.verb.as_str(), "list" | "watch")
    };
    fixture.api.set_policy(Some(Arc::new(move |_, action| forbidden(action).then(|| "no".to_owned()))));
}

#[tokio::test(start_paused = true)]
async fn whoever_finds_no_lease_creates_it_and_renews_it_with_puts_only() {
    let fixture = fixture();
    let one = fixture.replica("one", 1);
    assert!(one.election.health().is_ok(), "FW-355 not started");
    let term = one.election.led().await;
    let spec = fixture.lease()["spec"].clone();
    assert_eq!(spec["holderIdentity"], "one", "FW-346");
    assert_eq!((&spec["leaseTransitions"], &spec["leaseDurationSeconds"]), (&json!(0), &json!(15)), "FW-346");
    seconds(60.0).await;
    assert!(one.claims() && one.election.leads() && one.election.tally().master);
    let asked = fixture.asked("one");
    assert_eq!(asked[..3], ["get", "create", "update"], "FW-346 FW-352");
    assert!(asked[2..].iter().all(|verb| verb == "update"), "FW-352 {asked:?}");
    assert!((29..=32).contains(&(asked.len() - 2)), "every 2 s, the first at once: {}", asked.len());
    assert_eq!(fixture.lease()["spec"]["leaseTransitions"], 0, "FW-351");
    assert_eq!((one.said(), one.election.tally().slow_paths), (vec!["one became leader".to_owned()], 0));
    let told = one.told.lock().unwrap()[0].clone();
    assert_eq!((told.reason.name(), told.component), ("LeaderElection", "cloud-controller-manager"));
    assert_eq!(
        (told.about.kind.as_str(), told.about.namespace.as_str(), told.about.uid.is_empty()),
        ("Lease", "kube-system", false)
    );
    assert!(tokio::time::timeout(Duration::from_secs(9), one.election.lost(term)).await.is_err());
}

cloudberth_core::reasons! {
    REASONS;

    LEADS = Normal, Other { component: "another-manager", kind: "Lease" }, "Leads",
        when: "A replica leads.", advice: "Nothing.";
}

#[tokio::test(start_paused = true)]
async fn another_program_has_its_own_lease_and_events_in_its_own_name() {
    let fixture = fixture();
    let (namespace, name) = ("default".to_owned(), "another-manager-lock".to_owned());
    let config = Config { namespace, name, ..Config::with_defaults("one") };
    let (election, _, told, _) = fixture.program(config, LEADS, "one", 1);
    let runs = Arc::clone(&election);
    let task = tokio::spawn(async move { runs.run().await });
    election.led().await;
    let meta = fixture.lease()["metadata"].clone();
    assert_eq!((&meta["namespace"], &meta["name"]), (&json!("default"), &json!("another-manager-lock")));
    let told = told.lock().unwrap()[0].clone();
    assert_eq!(REASONS, [told.reason]);
    assert_eq!((told.component, told.about.namespace.as_str()), ("another-manager", "default"));
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_meets_a_conflict_reads_first_and_goes_on() {
    let fixture = fixture();
    let one = fixture.replica("one", 1);
    one.election.led().await;
    seconds(5.0).await;
    fixture.api.add_fault(Fault::new(Harm::Conflict).on("update", "leases").times(1));
    seconds(5.0).await;
    assert_eq!((one.election.tally().slow_paths, one.election.leads()), (1, true), "FW-353");
    assert!(fixture.asked("one").join(" ").contains("update get update"), "FW-353");
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_the_api_stops_writing_and_stands_again() {
    let fixture = fixture();
    let one = fixture.replica("one", 1);
    let first = one.election.led().await;
    seconds(7.0).await;
    one.cut.store(true, Ordering::Relaxed);
    let lost = tokio::time::timeout(Duration::from_secs(15), one.election.lost(first)).await;
    assert!(lost.is_ok(), "L9-200 lost before others may lead");
    assert!(!one.claims() && !one.election.tally().master, "L9-201 nothing may be written");
    assert!(one.election.health().is_ok(), "FW-355 it knows that it does not lead");
    assert_eq!(fixture.holder(), "one", "nothing could be let go");
    seconds(30.0).await;
    one.cut.store(false, Ordering::Relaxed);
    let second = one.election.led().await;
    assert!(second > first, "L9-202 it stands again in the same process");
    assert_eq!(one.said(), ["one became leader", "one stopped leading", "one became leader"]);
    assert_eq!(fixture.lease()["spec"]["leaseTransitions"], 0, "FW-351 it was its own all the time");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_stuck_says_so() {
    let fixture = fixture();
    let (election, ..) = fixture.election("one", 1);
    {
        let mut run = pin!(election.run());
        tokio::select! {
            biased;
            _ = &mut run => panic!("it ends"),
            _ = election.led() => {}
        }
        // From here on nobody runs it.
        seconds(34.0).await;
        assert!(election.health().is_ok(), "FW-355 expired by less than 20 s");
        seconds(2.0).await;
        let why = election.health().unwrap_err().to_string();
        assert!(why.contains("cloud-controller-manager"), "FW-356 {why}");
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut run).await.is_err());
        assert!(election.health().is_ok(), "it found out");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_replaced_when_its_lease_is_over() {
    for polling in [false, true] {
        let fixture = fixture();
        if polling {
            refuse_watches(&fixture);
        }
        let one = fixture.replica("one", 1);
        one.election.led().await;
        let two = fixture.replica("two", 2);
        seconds(20.5).await;
        assert_eq!((two.claims(), two.election.leader().as_deref()), (false, Some("one")), "FW-350");
        let ends = one.election.claim_until().unwrap().since(one.clock.now());
        one.kill().await;
        let took = until(|| two.claims()).await;
        assert!(took >= ends.as_secs_f64() - 0.05, "L9-203 not before the claim is over: {took} {ends:?}");
        assert!(took < 15.0 + 4.4 + 0.1, "FW-348 {took}");
        assert_eq!(fixture.lease()["spec"]["leaseTransitions"], 1, "FW-349");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_let_go_is_taken_within_two_seconds() {
    for (polling, odd) in [false, true].into_iter().flat_map(|polling| (2..12).map(move |odd| (polling, odd)))
    {
        let fixture = fixture();
        if polling {
            refuse_watches(&fixture);
        }
        let one = fixture.replica("one", 1);
        let term = one.election.led().await;
        let two = fixture.replica("two", odd);
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        seconds(30.0 + odd as f64 / 7.0).await;
        one.election.stop();
        one.election.lost(term).await;
        assert!(!one.claims(), "L9-204 the claim ends before the lease is let go");
        let took = until(|| two.claims()).await;
        assert!(took < 2.0, "polling {polling}, {odd}: {took}");
        assert!(one.task.await.unwrap(), "it was let go");
        assert_eq!(fixture.lease()["spec"]["leaseTransitions"], 1, "FW-347 an empty holder");
        let (first, second) = (one.told.lock().unwrap().clone(), two.said());
        assert_eq!((first.last().unwrap().message.as_str(), second.len()), ("one stopped leading", 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_polls_nothing_where_watches_are_forbidden() {
    let fixture = fixture();
    refuse_watches(&fixture);
    let one = fixture.replica("one", 1);
    one.election.led().await;
    seconds(3.0).await;
    let gets = || fixture.asked("one").iter().filter(|verb| *verb == "get").count();
    let before = gets();
    seconds(100.0).await;
    assert_eq!(gets(), before);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_noticed_by_its_leader() {
    let fixture = fixture();
    let one = fixture.replica("one", 1);
    let term = one.election.led().await;
    seconds(4.5).await;
    let client = kube::Client::new(fixture.api.service(), "kube-system");
    let request = kube::api::Request::new("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        .delete("cloud-controller-manager", &kube::api::DeleteParams::default());
    client.request::<serde_json::Value>(request.unwrap()).await.unwrap();
    let lost = tokio::time::timeout(Duration::from_millis(100), one.election.lost(term)).await;
    assert!(lost.is_ok(), "L9-205 at once, by the watch");
    one.election.led().await;
    assert_eq!(fixture.lease()["spec"]["leaseTransitions"], 0, "FW-346 a new one");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_ends_its_claim() {
    let fixture = fixture();
    let one = fixture.replica("one", 1);
    let term = one.election.led().await;
    let election = one.election.clone();
    one.kill().await;
    election.lost(term).await;
    assert!(!election.leads() && election.claim_until().is_none(), "L9-206");
}

#[tokio::test(start_paused = true)]
async fn never_do_two_replicas_hold_a_claim() {
    let mut changes = 0;
    for odd in 0..8_u64 {
        let fixture = fixture();
        let replicas = [fixture.replica("one", odd + 1), fixture.replica("two", odd * 3 + 2)];
        let mut leader = String::new();
        for tenth in 0..2_000_u64 {
            seconds(0.1).await;
            let claims: Vec<_> = replicas.iter().filter(|r| r.claims()).map(|r| r.name).collect();
            assert!(claims.len() < 2, "L9-207 {odd} after {tenth} tenths");
            if let Some(name) = claims.first().filter(|name| **name != leader) {
                changes += 1;
                leader = (*name).to_owned();
            }
            // Each is cut off now and then, for longer or shorter than a lease lasts.
            for (at, replica) in replicas.iter().enumerate() {
                let phase = (tenth + odd * 31 + 370 * u64::try_from(at).unwrap()) % 700;
                replica.cut.store(phase < 60 + odd * 30, Ordering::Relaxed);
            }
        }
    }
    assert!(changes > 20, "too quiet to prove anything: {changes}");
}
