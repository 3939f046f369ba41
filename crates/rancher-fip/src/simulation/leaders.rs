//! Several replicas, and the end of one.

use std::time::Duration;

use embedded_kube::{Fault, Harm};
use serde_json::Value;

use super::world::{PROJECT_SECRET, World, get, ours, pass, simulate, writes};
use crate::{
    helm::{ReleaseStatus, stand_in::Asked},
    options::Options,
    shell::Ended,
};

const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/rancher-fip-manager/leases/rancher-fip-cluster-manager-lock";

async fn holder(world: &World) -> String {
    let lease = world.get(LEASE).await.unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn one_replica_works_and_the_other_takes_over() {
    simulate(async {
        let world = World::reference().await;
        let first = world.start();
        pass(5).await;
        let second = world.start();
        pass(180).await;
        assert_eq!(holder(&world).await, "replica-1", "RF-186 RF-188");
        assert_eq!((world.drawn(), world.helm.asked().len()), (1, 2), "RF-186 exactly one works");
        assert_eq!(second.replica.not_ready(), Ok(()), "RF-194 a standby is ready");
        drop(first);
        pass(25).await;
        assert_eq!(holder(&world).await, "replica-2", "RF-186");
        // A graceful end gives the Lease back.
        assert_eq!(second.stop().await, Ended::Stopped, "RF-187 RF-191");
        assert_eq!(holder(&world).await, "", "RF-187");
        let third = world.start();
        pass(10).await;
        assert_eq!(holder(&world).await, "replica-3", "RF-187 RF-190");
        pass(120).await;
        assert_eq!(
            (world.drawn(), world.helm.asked().len()),
            (1, 0),
            "no token and no revision with a new leader"
        );
        drop(third);
    });
}

#[test]
fn whoever_has_no_configuration_does_not_hold_the_lease() {
    simulate(async {
        let world = World::reference().await;
        world
            .send("DELETE", "/api/v1/namespaces/rancher-fip-manager/configmaps/rancher-fip-config", None)
            .await;
        let running = world.start();
        pass(120).await;
        assert_eq!(world.get(LEASE).await, None, "RF-9 D1");
        assert!(running.replica.not_ready().unwrap_err().contains("does not exist"), "RF-9 RF-194");
        world.configure(&[]).await;
        pass(240).await;
        assert!(
            !world.delivered("guest01", PROJECT_SECRET, "clientSecret").await.is_empty(),
            "RF-9 it proceeds"
        );
    });
}

#[test]
fn without_election_there_is_no_lease() {
    simulate(async {
        let world = World::reference().await;
        let running = world.start_with(Options { leader_elect: false, ..Options::default() });
        pass(180).await;
        assert_eq!(world.get(LEASE).await, None, "RF-2");
        assert!(!world.delivered("guest01", PROJECT_SECRET, "clientSecret").await.is_empty(), "RF-2");
        assert_eq!(running.stop().await, Ended::Stopped);
    });
}

#[test]
fn a_leader_without_its_api_server_stops_writing_and_ends() {
    simulate(async {
        let world = World::reference().await;
        let running = world.start();
        pass(180).await;
        world.local.add_fault(Fault::new(Harm::LostCall));
        let mark = (ours(&world.local, 0).len(), writes(&world.api("guest01"), 0).len());
        assert_eq!(running.ended().await, Ended::LostLease, "RF-189");
        pass(60).await;
        assert_eq!(writes(&world.api("guest01"), 0).len(), mark.1, "RF-189");
        assert!(ours(&world.local, 0).len() < mark.0 + 60, "it gives up");
    });
}

async fn release(world: &World, name: &str, revision: u32) -> Value {
    let path =
        format!("/api/v1/namespaces/rancher-fip-manager/secrets/sh.helm.release.v1.{name}.v{revision}");
    get(&world.api("guest01"), &path).await.unwrap_or_default()["metadata"]["labels"]["status"].clone()
}

#[test]
fn the_end_in_the_middle_of_helm_leaves_nothing_pending() {
    simulate(async {
        let world = World::reference().await;
        world.helm.takes(Duration::from_secs(300), Duration::from_secs(720));
        let running = world.start();
        pass(60).await;
        assert_eq!(
            release(&world, "rancher-fip-lb-controller", 1).await,
            ReleaseStatus::PendingInstall.name()
        );
        let began = world.clock.now();
        assert_eq!(running.stop().await, Ended::Stopped, "RF-191");
        assert!(world.clock.now().since(began) < Duration::from_secs(30), "RF-191");
        assert_eq!(holder(&world).await, "", "RF-191 released after the workers stopped");
        assert_eq!(release(&world, "rancher-fip-lb-controller", 1).await, "failed", "RF-75");
        // A kill leaves it pending; that heals after the stale age.
        world.helm.asked();
        let running = world.start();
        pass(60).await;
        drop(running);
        world.helm.takes(Duration::from_secs(20), Duration::from_secs(720));
        let _running = world.start();
        pass(1_500).await;
        let asked: Vec<Asked> = world.helm.asked();
        assert!(asked.len() >= 2, "RF-66 RF-68 {asked:?}");
        let releases = world.api("guest01").objects("secrets");
        let newest = releases
            .iter()
            .rfind(|secret| secret["metadata"]["labels"]["name"] == "rancher-fip-lb-controller")
            .cloned();
        assert_eq!(newest.unwrap()["metadata"]["labels"]["status"], "deployed", "RF-68 RF-65");
    });
}
