//! From the Go program to ours, and back.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    go_program::GoProgram,
    world::{GUEST, PROJECT_SECRET, TARGET, World, calls_so_far, pass, simulate, writes},
};
use crate::plan::data;

/// A guest on Harvester and a cluster on bare metal with a quota, with a CA for both.
async fn world() -> World {
    let world = World::reference().await;
    world.bare_metal("c-m-metal", "metal").await;
    world.project("c-m-metal", "p-metal").await;
    world.pool("metal--lan", "metal", "lan", "eth0", true).await;
    world.quota("p-metal").await;
    world.quota("p-abcde").await;
    world.secret(TARGET, "cacerts", json!({"ca.crt": data::encode("one")})).await;
    world
}

/// Every Secret and every map in every cluster, with its version: tokens, what was delivered, and the records of Helm.
fn precious(world: &World) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for host in ["local", "guest01", "metal"] {
        let api = if host == "local" { world.local.clone() } else { world.api(host) };
        for table in ["secrets", "configmaps"] {
            for object in api.objects(table) {
                let metadata = &object["metadata"];
                let name = format!("{host} {table} {}/{}", metadata["namespace"], metadata["name"]);
                all.insert(name, metadata["resourceVersion"].to_string());
            }
        }
    }
    all
}

#[test]
fn what_the_go_program_finished_is_taken_over_and_given_back_untouched() {
    simulate(async {
        let world = world().await;
        let built = GoProgram::run(&world).await;
        for what in
            ["helm install rancher-fip-lb-controller", "helm install purelb", "configmaps", "/secrets"]
        {
            assert!(built.iter().any(|line| line.contains(what)), "the model works: {what}: {built:?}");
        }
        assert_eq!(GoProgram::would_write(&world).await, [""; 0], "and comes to rest");
        world.helm.asked();
        let before = precious(&world);
        let restarted = world.restarted("guest01").await;
        let marks = ["guest01", "metal"].map(|host| calls_so_far(&world.api(host)));
        let here = calls_so_far(&world.local);

        let running = world.start();
        pass(4_000).await;
        for (host, mark) in ["guest01", "metal"].into_iter().zip(marks) {
            let record = format!("patch deployments {TARGET}/rancher-fip-lb-controller");
            assert_eq!(writes(&world.api(host), mark), [record], "RF-211 {host}: one record, once");
        }
        assert_eq!(writes(&world.local, here), [""; 0], "RF-211");
        assert_eq!((world.drawn(), world.helm.asked()), (0, vec![]), "RF-211 no token, no revision");
        assert_eq!(world.restarted("guest01").await, restarted, "RF-211 no rollout");
        assert_eq!(precious(&world), before, "RF-211 nothing is rewritten");

        running.stop().await;
        assert_eq!(GoProgram::run(&world).await, [""; 0], "and back: the Go program finds nothing to do");
        assert_eq!(precious(&world), before);
        let running = world.start();
        let marks = ["guest01", "metal"].map(|host| calls_so_far(&world.api(host)));
        pass(4_000).await;
        for (host, mark) in ["guest01", "metal"].into_iter().zip(marks) {
            assert_eq!(writes(&world.api(host), mark), [""; 0], "and there again: {host}");
        }
        drop(running);
    });
}

#[test]
fn what_we_built_and_changed_is_given_to_the_go_program_untouched() {
    simulate(async {
        let world = world().await;
        let running = world.start();
        pass(240).await;
        assert_eq!(GoProgram::would_write(&world).await, [""; 0], "built from nothing");

        let give_back = async |what: &str| {
            pass(700).await;
            let before = precious(&world);
            assert_eq!(GoProgram::run(&world).await, [""; 0], "{what}");
            assert_eq!(precious(&world), before, "{what}");
        };
        world
            .configure(&[
                ("RancherFipLBControllerChartVersion", "0.3.0"),
                ("RancherFipApiServerURL", "https://new.example.com/v1"),
            ])
            .await;
        give_back("another version and another address").await;
        world.send("DELETE", &format!("/api/v1/namespaces/c-m-harv01/secrets/{PROJECT_SECRET}"), None).await;
        give_back("another token").await;
        let ca = json!({"data": {"ca.crt": data::encode("two")}});
        world.send("PATCH", &format!("/api/v1/namespaces/{TARGET}/secrets/cacerts"), Some(ca)).await;
        give_back("another CA").await;
        world.pool("harv01--vlan20", "harv01", "vlan20", "eth2", false).await;
        give_back("another pool").await;
        world.label(GUEST, json!({"rancher-fip-lbtype": "metallb"})).await;
        give_back("a conflict, which stops the Go program too").await;
        drop(running);
    });
}

/// The model does see what differs; otherwise it would prove nothing.
#[test]
fn the_model_of_the_go_program_does_what_is_left_to_do() {
    simulate(async {
        let world = world().await;
        let running = world.start();
        pass(240).await;
        running.stop().await;
        let theirs = format!("/api/v1/namespaces/{TARGET}/secrets/{PROJECT_SECRET}");
        let release =
            format!("/api/v1/namespaces/{TARGET}/secrets/sh.helm.release.v1.rancher-fip-lb-controller.v1");
        let map = format!("/api/v1/namespaces/{TARGET}/configmaps/network-interface-mappings");
        let ours = format!("/api/v1/namespaces/c-m-harv01/secrets/{PROJECT_SECRET}");
        let snapshot = (world.local.snapshot(), world.api("guest01").snapshot());
        for (what, api, path) in [
            ("secrets rancher-fip-config-p-abcde", world.api("guest01"), &theirs),
            ("helm install rancher-fip-lb-controller", world.api("guest01"), &release),
            ("configmaps network-interface-mappings", world.api("guest01"), &map),
            ("local: POST /api/v1/namespaces/c-m-harv01/secrets", world.local.clone(), &ours),
        ] {
            super::world::send(&api, "DELETE", path, None).await;
            let left = GoProgram::would_write(&world).await;
            assert!(!left.is_empty() && left.iter().all(|line| line.contains(what)), "{what}: {left:?}");
            world.local.restore(&snapshot.0);
            world.api("guest01").restore(&snapshot.1);
        }
        world.configure(&[("PureLBControllerChartVersion", "0.14.0")]).await;
        let left = GoProgram::would_write(&world).await;
        let upgrades = ["guest01", "metal"].map(|host| format!("{host}: helm upgrade purelb 0.14.0"));
        assert_eq!(left, upgrades);
    });
}
