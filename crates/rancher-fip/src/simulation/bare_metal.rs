//! Clusters without Harvester, and quotas.

use serde_json::{Value, json};

use super::world::{GUEST, TARGET, World, calls_so_far, get, pass, send, simulate, writes};
use crate::plan::data;

/// A bare-metal cluster with a pool.
async fn world() -> World {
    let world = World::new().await;
    world.define_floating(&["v1beta1", "v1beta2"]).await;
    world.configure(&[]).await;
    world.bare_metal("c-m-metal", "metal").await;
    world.pool("metal--lan", "metal", "lan", "eth0", false).await;
    world
}

async fn annotate_default(world: &World) {
    let body = json!({"metadata": {"annotations": {"rancher-fip-default-network": "true"}}});
    world.send("PATCH", "/apis/rancher.k8s.binbash.org/v1beta2/floatingippools/metal--lan", Some(body)).await;
}

async fn label(world: &World) -> Value {
    let namespace = get(&world.api("metal"), &format!("/api/v1/namespaces/{TARGET}")).await.unwrap();
    namespace["metadata"]["labels"]["rancher.k8s.binbash.org/project-name"].clone()
}

#[test]
fn a_cluster_without_quotas_gets_the_ca_and_the_map_before_its_chart() {
    simulate(async {
        let world = world().await;
        world.secret("rancher-fip-manager", "cacerts", json!({"ca.crt": data::encode("one")})).await;
        let _running = world.start();
        pass(120).await;
        let api = world.api("metal");
        let order = writes(&api, 0);
        let first = [
            "create namespaces /",
            "create secrets rancher-fip-manager/",
            "create configmaps rancher-fip-manager/",
        ];
        assert_eq!(order[..3], first, "RF-209 the CA and the map before any record of Helm: {order:?}");
        assert_eq!(world.delivered("metal", "cacerts", "ca.crt").await, "one", "RF-209");
        assert_eq!(
            (world.map("metal").await, label(&world).await),
            (json!({"metal--lan": "eth0"}), Value::Null),
            "RF-209 RF-122 RF-95"
        );
        assert_eq!(world.drawn(), 0, "RF-95 no project secret");
        assert!(!world.events().contains(&"ProjectNotResolved".to_owned()), "RF-95 success");
    });
}

#[test]
fn quotas_that_settle_together_cost_one_restart() {
    simulate(async {
        let world = world().await;
        annotate_default(&world).await;
        let _running = world.start();
        pass(120).await;
        assert_eq!(world.restarted("metal").await, Value::Null, "nothing to read yet");
        for project in ["p-1", "p-2", "p-3"] {
            world.project("c-m-metal", project).await;
            world.quota(project).await;
        }
        let mark = calls_so_far(&world.api("metal"));
        pass(120).await;
        let mut tokens = Vec::new();
        for project in ["p-1", "p-2", "p-3"] {
            let name = format!("rancher-fip-config-{project}");
            let local = world.get(&format!("/api/v1/namespaces/c-m-metal/secrets/{name}")).await.unwrap();
            let token = data::text(&local, "clientSecret");
            assert_eq!(world.delivered("metal", &name, "clientSecret").await, token, "RF-156 RF-170");
            assert_eq!(world.delivered("metal", &name, "floatingIPPool").await, "metal--lan", "RF-156");
            assert_eq!(world.delivered("metal", &name, "cluster").await, "c-m-metal", "RF-156");
            tokens.push(token);
        }
        tokens.dedup();
        assert_eq!(tokens.len(), 3, "RF-134");
        let restarts = writes(&world.api("metal"), mark)
            .into_iter()
            .filter(|line| line.contains("patch deployments"))
            .count();
        assert_eq!((restarts, label(&world).await), (1, Value::Null), "RF-210 RF-170 one restart, no label");

        // Limits change, and the quota goes: the Secrets stay as they are.
        let mark = (calls_so_far(&world.api("metal")), calls_so_far(&world.local));
        let path = "/apis/rancher.k8s.binbash.org/v1beta2/floatingipprojectquotas/p-1";
        world.send("PATCH", path, Some(json!({"spec": {"floatingIPQuota": {"metal--lan": 3}}}))).await;
        pass(60).await;
        world.send("DELETE", path, None).await;
        pass(1_300).await;
        assert_eq!(
            (writes(&world.api("metal"), mark.0), writes(&world.local, mark.1)),
            (vec![], vec![]),
            "RF-166 RF-167"
        );
        assert_eq!(
            world.delivered("metal", "rancher-fip-config-p-1", "clientSecret").await,
            tokens[0],
            "RF-167"
        );
    });
}

#[test]
fn whatever_a_quota_waits_for_is_enough_when_it_comes() {
    simulate(async {
        let world = World::new().await;
        world.define_floating(&["v1beta1", "v1beta2"]).await;
        world.configure(&[]).await;
        world.quota("p-1").await;
        let _running = world.start();
        pass(60).await;
        assert_eq!(writes(&world.local, 0), [""; 0], "RF-159");
        assert!(world.events().contains(&"ProjectMissing".to_owned()), "RF-158");
        world.management("c-m-metal", "metal", &json!({})).await;
        world.project("c-m-metal", "p-1").await;
        pass(30).await;
        assert_eq!(world.drawn(), 0, "RF-157 the cluster is not enabled");
        world.downstream("metal");
        world.provisioning("metal", json!({})).await;
        world.label("c-m-metal", json!({"rancher-fip": "enabled"})).await;
        pass(60).await;
        assert!(world.events().contains(&"NoDefaultPool".to_owned()), "RF-161 {:?}", world.events());
        assert!(world.events().contains(&"KubeconfigUnusable".to_owned()), "RF-160");
        world.pool("odd-name", "c-m-metal", "lan", "eth0", true).await;
        world.kubeconfig("metal-kubeconfig", "metal").await;
        pass(60).await;
        let name = "rancher-fip-config-p-1";
        assert_eq!(
            world.delivered("metal", name, "floatingIPPool").await,
            "odd-name",
            "RF-165 RF-161 RF-160 RF-164 RF-171"
        );
        assert_eq!(world.map("metal").await, json!({"odd-name": "eth0"}), "RF-164");
        world.pool("a-second", "metal", "lan", "eth1", true).await;
        pass(30).await;
        assert!(world.events().contains(&"SeveralDefaultPools".to_owned()), "RF-163");
        assert_eq!(
            world.delivered("metal", name, "floatingIPPool").await,
            "a-second",
            "RF-163 the smallest name"
        );
    });
}

#[test]
fn a_quota_of_harvester_gets_a_local_secret_only() {
    simulate(async {
        let world = World::reference().await;
        world.label(GUEST, json!({"rancher-fip": null})).await;
        world.quota("p-abcde").await;
        let _running = world.start();
        pass(60).await;
        assert!(world.token().await.is_some(), "RF-155");
        for host in ["harv01", "guest01"] {
            assert_eq!(writes(&world.api(host), 0), [""; 0], "RF-155 {host}");
        }
        assert_eq!(world.helm.asked(), [], "RF-155");
    });
}

#[test]
fn the_finalizer_of_a_later_release_goes_with_the_quota() {
    simulate(async {
        let world = World::reference().await;
        world.quota("p-abcde").await;
        let path = "/apis/rancher.k8s.binbash.org/v1beta2/floatingipprojectquotas/p-abcde";
        let finalizers =
            json!({"metadata": {"finalizers": ["rancher.k8s.binbash.org/clustermanager-secret-cleanup"]}});
        world.send("PATCH", path, Some(finalizers)).await;
        let _guest = world.unplug("guest01");
        let _running = world.start();
        pass(60).await;
        let token = world.token().await.unwrap();
        world.send("DELETE", path, None).await;
        pass(60).await;
        assert_eq!(world.get(path).await, None, "RF-223");
        assert_eq!(world.token().await, Some(token), "RF-167 D5");
        assert!(world.events().contains(&"SecretsKept".to_owned()), "RF-223");
        world.quota("p-abcde").await;
        pass(1_300).await;
        assert_eq!(world.get(path).await.unwrap()["metadata"].get("finalizers"), None, "RF-224");
    });
}

#[test]
fn the_management_cluster_itself_is_left_alone() {
    simulate(async {
        let world = world().await;
        world.management("local", "local", &json!({"rancher-fip": "enabled"})).await;
        world.project("local", "p-local").await;
        world.quota("p-local").await;
        let _running = world.start();
        pass(1_300).await;
        assert_eq!(
            world.get("/api/v1/namespaces/local/secrets/rancher-fip-config-p-local").await,
            None,
            "RF-168 RF-24"
        );
        assert!(!world.events().contains(&"QuotaFailed".to_owned()), "RF-168");
    });
}

#[test]
fn a_hand_made_map_is_left_alone_and_ours_is_emptied() {
    simulate(async {
        let world = world().await;
        let _running = world.start();
        pass(120).await;
        world.send("DELETE", "/apis/rancher.k8s.binbash.org/v1beta2/floatingippools/metal--lan", None).await;
        pass(30).await;
        assert_eq!(world.map("metal").await, Value::Null, "RF-126");
        let path = format!("/api/v1/namespaces/{TARGET}/configmaps/network-interface-mappings");
        assert!(get(&world.api("metal"), &path).await.is_some(), "RF-126 emptied, not deleted");
        send(&world.api("metal"), "DELETE", &path, None).await;
        let by_hand = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "network-interface-mappings"}, "data": {"x": "eth9"}});
        send(&world.api("metal"), "POST", &format!("/api/v1/namespaces/{TARGET}/configmaps"), Some(by_hand))
            .await;
        pass(7_000).await;
        assert_eq!(world.map("metal").await, json!({"x": "eth9"}), "RF-216");
        world.pool("metal--lan", "metal", "lan", "eth0", false).await;
        pass(30).await;
        assert_eq!(world.map("metal").await, json!({"metal--lan": "eth0"}), "RF-216");
    });
}
