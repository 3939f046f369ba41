//! Clusters that go, and the floating IPs that they leave.

use embedded_kube::{Fault, Harm};
use serde_json::{Value, json};

use super::world::{GUEST, PROJECT_SECRET, World, calls_so_far, pass, simulate, writes};

const CLUSTERS: &str = "/apis/management.cattle.io/v3/clusters";

async fn world() -> World {
    let world = World::reference().await;
    for namespace in ["team-x", "team-y"] {
        world.namespace(namespace).await;
    }
    world.floating_ip("team-x", "one", GUEST).await;
    world.floating_ip("team-y", "two", GUEST).await;
    world.floating_ip("team-y", "other", "c-m-harv01").await;
    world
}

async fn floating_ip(world: &World, key: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    world
        .get(&format!("/apis/rancher.k8s.binbash.org/v1beta2/namespaces/{namespace}/floatingips/{name}"))
        .await
        .unwrap()
}

async fn used(world: &World, key: &str) -> bool {
    let labels = floating_ip(world, key).await["metadata"]["labels"].clone();
    let use_of = |label: &str| labels.get(format!("rancher.k8s.binbash.org/{label}")).is_some();
    assert_eq!(use_of("cluster-name"), use_of("service-0-name"), "RF-174 all or nothing: {labels}");
    assert!(use_of("project-name"), "RF-173");
    use_of("cluster-name")
}

#[test]
fn a_cluster_that_is_gone_gives_its_addresses_back() {
    simulate(async {
        let world = world().await;
        let _running = world.start();
        pass(180).await;
        assert!(
            used(&world, "team-x/one").await && used(&world, "team-y/two").await,
            "nothing is released for a living cluster"
        );
        // A finalizer holds the cluster first.
        world
            .send(
                "PATCH",
                &format!("{CLUSTERS}/{GUEST}"),
                Some(json!({"metadata": {"finalizers": ["x.example/y"]}})),
            )
            .await;
        world.send("DELETE", &format!("{CLUSTERS}/{GUEST}"), None).await;
        pass(700).await;
        assert!(used(&world, "team-x/one").await, "RF-182");
        world.helm.asked();
        world
            .send("PATCH", &format!("{CLUSTERS}/{GUEST}"), Some(json!({"metadata": {"finalizers": null}})))
            .await;
        pass(60).await;
        assert!(!used(&world, "team-x/one").await && !used(&world, "team-y/two").await, "RF-172 RF-174");
        assert!(used(&world, "team-y/other").await, "RF-172");
        let kept = floating_ip(&world, "team-x/one").await;
        assert_eq!(kept["spec"]["floatingIPPool"], "harv01--vlan10", "RF-173");
        assert_eq!(
            kept["status"]["assigned"]["services"][0]["serviceName"], "web",
            "RF-176 not pruned by us"
        );
        assert!(world.token().await.is_some(), "RF-184");
        assert_eq!(world.delivered("guest01", PROJECT_SECRET, "project").await, "p-abcde", "RF-184");
        assert_eq!(world.helm.asked(), [], "RF-34");
    });
}

#[test]
fn what_went_while_nobody_looked_is_found_by_the_sweep() {
    simulate(async {
        let world = world().await;
        world.floating_ip("team-x", "by-hand", "my-cluster").await;
        world.floating_ip("team-x", "never-enabled", "c-m-gone").await;
        world.send("DELETE", &format!("{CLUSTERS}/{GUEST}"), None).await;
        let _running = world.start();
        pass(60).await;
        assert!(!used(&world, "team-x/one").await && !used(&world, "team-y/two").await, "RF-179");
        assert!(!used(&world, "team-x/never-enabled").await, "RF-181 RF-217 RF-218");
        assert!(used(&world, "team-x/by-hand").await, "RF-217");
        let mark = calls_so_far(&world.local);
        pass(3_700).await;
        assert_eq!(writes(&world.local, mark), [""; 0], "law 4");
    });
}

#[test]
fn nothing_is_released_while_it_is_not_clear_that_the_cluster_is_gone() {
    simulate(async {
        let world = world().await;
        for code in [403, 500, 404] {
            world.local.add_fault(Fault::new(Harm::status(code)).on("get", "clusters").times(40));
        }
        world.send("DELETE", &format!("{CLUSTERS}/{GUEST}"), None).await;
        let _running = world.start();
        pass(300).await;
        assert!(used(&world, "team-x/one").await, "RF-180 unknown is not absent");
        world.local.clear_faults();
        pass(1_300).await;
        assert!(!used(&world, "team-x/one").await, "RF-180 and then it is");
    });
}

#[test]
fn one_address_that_cannot_be_released_does_not_hold_the_others() {
    simulate(async {
        let world = world().await;
        let _running = world.start();
        pass(180).await;
        let refused =
            Fault { name: "one".to_owned(), ..Fault::new(Harm::status(422)).on("update", "floatingips") };
        world.local.add_fault(refused);
        let conflict = Fault {
            name: "two".to_owned(),
            ..Fault::new(Harm::Conflict).on("update", "floatingips").times(2)
        };
        world.local.add_fault(conflict);
        world.send("DELETE", &format!("{CLUSTERS}/{GUEST}"), None).await;
        pass(120).await;
        assert!(
            used(&world, "team-x/one").await && !used(&world, "team-y/two").await,
            "RF-177 RF-183 RF-219"
        );
        let told = world.events().iter().filter(|reason| *reason == "ReleaseFailed").count();
        assert_eq!(told, 1, "RF-183 RF-196");
        world.local.clear_faults();
        pass(700).await;
        assert!(!used(&world, "team-x/one").await, "RF-183 tried again by itself");
    });
}

#[test]
fn a_cluster_that_came_back_under_its_name_keeps_its_addresses() {
    simulate(async {
        let world = world().await;
        let running = world.start();
        pass(180).await;
        drop(running);
        world.send("DELETE", &format!("{CLUSTERS}/{GUEST}"), None).await;
        let body = json!({"apiVersion": "management.cattle.io/v3", "kind": "Cluster",
            "metadata": {"name": GUEST, "labels": {"rancher-fip": "enabled"}}, "spec": {"displayName": "guest01"}});
        world.send("POST", CLUSTERS, Some(body)).await;
        world.helm.asked();
        let mark = calls_so_far(&world.api("guest01"));
        let _running = world.start();
        pass(120).await;
        assert!(used(&world, "team-x/one").await, "RF-185");
        assert!(calls_so_far(&world.api("guest01")) > mark, "RF-185 a full run");
    });
}

#[test]
fn an_address_that_is_deleted_meanwhile_is_no_failure() {
    simulate(async {
        let world = world().await;
        let _running = world.start();
        pass(180).await;
        let gone =
            Fault { name: "one".to_owned(), ..Fault::new(Harm::status(404)).on("update", "floatingips") };
        world.local.add_fault(gone);
        world.send("DELETE", &format!("{CLUSTERS}/{GUEST}"), None).await;
        pass(30).await;
        assert!(!used(&world, "team-y/two").await, "RF-178");
        assert!(!world.events().contains(&"ReleaseFailed".to_owned()), "RF-178");
    });
}

#[test]
fn a_cluster_that_comes_back_while_its_addresses_are_released_keeps_those_that_it_uses_again() {
    for verb in ["list", "update"] {
        simulate(async {
            let world = world().await;
            let running = world.start();
            pass(180).await;
            let slow = Fault::new(Harm::Latency { millis: 5_000 }).on(verb, "floatingips");
            world.local.add_fault(slow.times(1));
            world.send("DELETE", &format!("{CLUSTERS}/{GUEST}"), None).await;
            pass(2).await;
            // The call is under way. The cluster comes back, and asks for its addresses again.
            let body = json!({"apiVersion": "management.cattle.io/v3", "kind": "Cluster",
                "metadata": {"name": GUEST, "labels": {"rancher-fip": "enabled"}}, "spec": {"displayName": "guest01"}});
            world.send("POST", CLUSTERS, Some(body)).await;
            for key in ["team-x/floatingips/one", "team-y/floatingips/two"] {
                let path = format!("/apis/rancher.k8s.binbash.org/v1beta2/namespaces/{key}");
                let labels = json!({"rancher.k8s.binbash.org/cluster-name": GUEST, "rancher.k8s.binbash.org/service-0-name": "again"});
                world.send("PATCH", &path, Some(json!({"metadata": {"labels": labels}}))).await;
            }
            pass(60).await;
            for key in ["team-x/one", "team-y/two"] {
                assert!(used(&world, key).await, "RF-185 law 1: {key} after a slow {verb}");
            }
            drop(running);
        });
    }
}
