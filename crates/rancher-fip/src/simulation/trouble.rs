//! What fails, and that it heals by itself.

use std::{sync::Arc, time::Duration};

use embedded_kube::{Action, Fault, Harm, User};
use serde_json::{Value, json};

use super::world::{
    GUEST, PROJECT_SECRET, TARGET, World, calls_so_far, get, ours, pass, send, simulate, writes,
};
use crate::{
    helm::{
        HelmAction, HelmFailure, ReleaseStatus,
        stand_in::{Planted, record},
    },
    plan::data,
};

#[test]
fn a_cluster_that_does_not_answer_is_tried_again_in_two_minutes() {
    simulate(async {
        for code in [403, 401, 503] {
            let world = World::reference().await;
            world.api("guest01").add_fault(Fault::new(Harm::status(code)));
            let _running = world.start();
            pass(100).await;
            let first = ours(&world.api("guest01"), 0).len();
            assert!((1..=2).contains(&first), "RF-46 RF-47 RF-48 {code}: {first} calls");
            assert!(world.events().contains(&"ClusterUnreachable".to_owned()), "RF-46 {code}");
            world.api("guest01").clear_faults();
            pass(200).await;
            assert!(
                !world.delivered("guest01", PROJECT_SECRET, "clientSecret").await.is_empty(),
                "RF-46 RF-47 RF-48 {code}"
            );
        }
    });
}

#[test]
fn a_cluster_that_never_replies_costs_ten_seconds_and_nobody_else_anything() {
    simulate(async {
        let world = World::reference().await;
        world.guest("c-m-guest02", "guest02").await;
        world.api("guest01").add_fault(Fault::new(Harm::Latency { millis: 3_600_000 }));
        let _running = world.start();
        pass(100).await;
        assert!(!world.delivered("guest02", PROJECT_SECRET, "clientSecret").await.is_empty(), "RF-49");
        world.api("guest01").clear_faults();
        pass(300).await;
        assert!(!world.delivered("guest01", PROJECT_SECRET, "clientSecret").await.is_empty(), "RF-49");
    });
}

#[test]
fn a_kubeconfig_that_is_missing_or_wrong_is_used_when_it_is_right() {
    simulate(async {
        let world = World::reference().await;
        let path = "/api/v1/namespaces/fleet-default/secrets";
        world.send("DELETE", &format!("{path}/guest01-kubeconfig"), None).await;
        let _running = world.start();
        pass(60).await;
        assert_eq!(writes(&world.api("guest01"), 0), [""; 0], "RF-37");
        for wrong in [
            json!({"other": "eA=="}),
            json!({"value": data::encode("{")}),
            json!({"value": data::encode("current-context: x")}),
        ] {
            world.secret("fleet-default", "guest01-kubeconfig", wrong).await;
            pass(90).await;
            assert_eq!(writes(&world.api("guest01"), 0), [""; 0], "RF-42 RF-43");
            world.send("DELETE", &format!("{path}/guest01-kubeconfig"), None).await;
        }
        world.kubeconfig("guest01-kubeconfig", "guest01").await;
        pass(2).await;
        assert!(!writes(&world.api("guest01"), 0).is_empty(), "RF-37 at once when it appears");
        pass(120).await;
        // A new kubeconfig leads to another place from then on.
        world.downstream("moved");
        let new = json!({"data": {"value": data::encode(super::world::kubeconfig("moved"))}});
        world.send("PATCH", &format!("{path}/guest01-kubeconfig"), Some(new)).await;
        pass(120).await;
        assert!(!world.delivered("moved", PROJECT_SECRET, "clientSecret").await.is_empty(), "RF-50");
    });
}

#[test]
fn no_token_is_drawn_while_it_is_not_known_whether_there_is_one() {
    simulate(async {
        let world = World::reference().await;
        for code in [500, 403, 404] {
            let fault = Fault::new(Harm::status(code)).on("get", "secrets");
            world.local.add_fault(Fault { namespace: "c-m-harv01".to_owned(), ..fault.times(3) });
        }
        let _running = world.start();
        pass(30).await;
        assert_eq!((world.drawn(), world.token().await), (0, None), "RF-142");
        pass(1_000).await;
        assert_eq!(world.drawn(), 1, "RF-142 retried");
        assert_eq!(world.token().await.as_deref(), Some("00000000000000000000000000000001"));
    });
}

#[test]
fn an_empty_token_is_replaced_in_both_places() {
    simulate(async {
        let world = World::reference().await;
        world
            .secret(
                "c-m-harv01",
                PROJECT_SECRET,
                json!({"clientSecret": "", "project": data::encode("p-abcde"), "mine": "eA=="}),
            )
            .await;
        let _running = world.start();
        pass(180).await;
        let token = world.token().await.unwrap();
        assert_eq!((token.len(), world.drawn()), (32, 1), "RF-141 RF-227");
        assert_eq!(world.delivered("guest01", PROJECT_SECRET, "clientSecret").await, token, "RF-227");
        let local =
            world.get(&format!("/api/v1/namespaces/c-m-harv01/secrets/{PROJECT_SECRET}")).await.unwrap();
        assert_eq!(data::text(&local, "mine"), "x", "RF-147");
    });
}

#[test]
fn an_immutable_secret_is_reported_and_not_tried_hot() {
    simulate(async {
        let world = World::reference().await;
        let _running = world.start();
        pass(180).await;
        let guest = world.api("guest01");
        let path = format!("/api/v1/namespaces/{TARGET}/secrets/{PROJECT_SECRET}");
        send(&guest, "PATCH", &path, Some(json!({"immutable": true}))).await;
        world.configure(&[("RancherFipApiServerURL", "https://new.example.com/v1")]).await;
        let mark = calls_so_far(&guest);
        pass(1_700).await;
        let tries = ours(&guest, mark).into_iter().filter(|call| call.verb == "update").count();
        assert!((1..=4).contains(&tries), "RF-148 {tries}");
        assert!(world.events().contains(&"WriteFailed".to_owned()), "RF-148");
    });
}

#[test]
fn the_chain_heals_wherever_it_was_broken() {
    simulate(async {
        let world = World::reference().await;
        let config =
            "/apis/rke-machine-config.cattle.io/v1/namespaces/fleet-default/harvesterconfigs/nc-guest01-cp";
        let original = world.get(config).await.unwrap();
        let harvester = world.unplug("harv01");
        world.send("DELETE", config, None).await;
        let credential = "/api/v1/namespaces/cattle-global-data/secrets/cc-hv1";
        world.send("DELETE", credential, None).await;
        world
            .send("DELETE", "/apis/management.cattle.io/v3/namespaces/c-m-harv01/projects/p-abcde", None)
            .await;
        let _running = world.start();
        pass(120).await;
        assert_eq!(world.helm.asked().len(), 2, "RF-94 RF-99 RF-109 charts do not wait for the chain");
        assert_eq!(world.drawn(), 0);
        let create = |object: &Value| {
            let mut new = object.clone();
            new["metadata"] = json!({"name": "nc-guest01-cp"});
            new
        };
        let mut broken = create(&original);
        broken["networkInfo"] = json!("{}");
        let all = "/apis/rke-machine-config.cattle.io/v1/namespaces/fleet-default/harvesterconfigs";
        world.send("POST", all, Some(broken)).await;
        pass(90).await;
        assert!(world.events().contains(&"ProjectNotResolved".to_owned()), "RF-99 RF-100");
        world.send("PATCH", config, Some(json!({"networkInfo": original["networkInfo"]}))).await;
        let data = json!({"harvestercredentialConfig-clusterId": data::encode("c-m-harv01")});
        world.secret("cattle-global-data", "cc-hv1", data).await;
        pass(700).await;
        assert_eq!(world.drawn(), 0, "RF-109");
        world.plug("harv01", harvester.clone());
        pass(120).await;
        assert_eq!(world.drawn(), 0, "RF-114");
        world.project("c-m-harv01", "p-abcde").await;
        pass(90).await;
        assert!(
            !world.delivered("guest01", PROJECT_SECRET, "clientSecret").await.is_empty(),
            "RF-99 RF-100 RF-105 RF-107 RF-108 RF-110 RF-111 RF-114"
        );
        assert_eq!(world.map("guest01").await, json!({"harv01--vlan10": "eth1"}));
    });
}

#[test]
fn a_chart_that_fails_stops_neither_secrets_nor_other_clusters() {
    simulate(async {
        let world = World::reference().await;
        world.guest("c-m-guest02", "guest02").await;
        world.helm.fail([HelmFailure::Other]);
        world.helm.takes(Duration::from_secs(300), Duration::from_secs(720));
        let _running = world.start();
        pass(60).await;
        for host in ["guest01", "guest02"] {
            assert!(
                !world.delivered(host, PROJECT_SECRET, "clientSecret").await.is_empty(),
                "RF-70 RF-35 {host}"
            );
        }
        pass(1_500).await;
        let asked: Vec<_> = world.helm.asked().into_iter().map(|asked| asked.release).collect();
        assert_eq!(
            asked.iter().filter(|release| *release == "rancher-fip-lb-controller").count(),
            3,
            "RF-70 {asked:?}"
        );
        assert_eq!(asked.iter().filter(|release| *release == "purelb").count(), 2, "RF-70 RF-71 {asked:?}");
        assert!(world.events().contains(&"ChartFailed".to_owned()), "RF-71");
    });
}

#[test]
fn stale_releases_heal_and_young_ones_are_left_alone() {
    simulate(async {
        let world = World::reference().await;
        let guest = world.api("guest01");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TARGET}});
        send(&guest, "POST", "/api/v1/namespaces", Some(namespace)).await;
        let planted =
            Planted { version: "0.2.0".to_owned(), updated: Some(world.clock.wall()), ..Planted::default() };
        let pending = record(TARGET, "rancher-fip-lb-controller", 1, ReleaseStatus::PendingInstall, &planted);
        send(&guest, "POST", &format!("/api/v1/namespaces/{TARGET}/secrets"), Some(pending)).await;
        let _running = world.start();
        pass(600).await;
        assert_eq!(world.helm.asked(), [], "RF-67");
        assert!(!world.delivered("guest01", PROJECT_SECRET, "clientSecret").await.is_empty(), "RF-70");
        pass(500).await;
        let asked: Vec<_> = world.helm.asked().into_iter().filter_map(|asked| asked.action).collect();
        assert_eq!(asked, [HelmAction::Install, HelmAction::Install], "RF-66");
    });
}

#[test]
fn a_conflict_of_balancers_is_told_and_heals() {
    simulate(async {
        let world = World::reference().await;
        let guest = world.api("guest01");
        for name in [TARGET, "metallb"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            send(&guest, "POST", "/api/v1/namespaces", Some(namespace)).await;
        }
        let planted =
            Planted { version: "0.15.2".to_owned(), updated: Some(world.clock.wall()), ..Planted::default() };
        let metallb = record("metallb", "metallb", 1, ReleaseStatus::Deployed, &planted);
        send(&guest, "POST", "/api/v1/namespaces/metallb/secrets", Some(metallb)).await;
        world.label(GUEST, json!({"rancher-fip-lbtype": "purelb"})).await;
        let _running = world.start();
        pass(180).await;
        let asked: Vec<_> = world.helm.asked().into_iter().map(|asked| asked.release).collect();
        assert_eq!(asked, ["rancher-fip-lb-controller"], "RF-86");
        assert!(world.events().contains(&"LoadBalancerConflict".to_owned()), "RF-85");
        assert_eq!(world.delivered("guest01", PROJECT_SECRET, "loadBalancerType").await, "metallb", "RF-85");
        // Without the label it stays on what is there.
        world.label(GUEST, json!({"rancher-fip-lbtype": null})).await;
        pass(60).await;
        assert_eq!(world.helm.asked(), [], "RF-87 RF-32");
        world.label(GUEST, json!({"rancher-fip-lbtype": "purelb"})).await;
        pass(60).await;
        send(&guest, "DELETE", "/api/v1/namespaces/metallb/secrets/sh.helm.release.v1.metallb.v1", None)
            .await;
        pass(700).await;
        let asked: Vec<_> = world.helm.asked().into_iter().map(|asked| asked.release).collect();
        assert_eq!(asked, ["purelb"], "RF-88");
        assert_eq!(world.delivered("guest01", PROJECT_SECRET, "loadBalancerType").await, "purelb", "RF-88");
    });
}

#[test]
fn the_kinds_may_come_late_and_in_a_newer_version() {
    simulate(async {
        let world = World::new().await;
        world.configure(&[]).await;
        world.bare_metal("c-m-metal", "metal").await;
        let _running = world.start();
        pass(300).await;
        assert_eq!(world.helm.asked().len(), 2, "RF-36 charts do not wait");
        world.define_floating(&["v1beta1"]).await;
        let pool = json!({"apiVersion": "rancher.k8s.binbash.org/v1beta1", "kind": "FloatingIPPool", "metadata": {"name": "p"},
            "spec": {"targetCluster": "metal", "targetNetwork": "lan", "targetNetworkInterface": "eth0"}});
        world.send("POST", "/apis/rancher.k8s.binbash.org/v1beta1/floatingippools", Some(pool)).await;
        pass(150).await;
        assert_eq!(world.map("metal").await, json!({"p": "eth0"}), "RF-21 RF-22 RF-36");
        world.define_floating(&["v1beta1", "v1beta2"]).await;
        pass(150).await;
        let mark = calls_so_far(&world.local);
        world.pool("q", "metal", "lan", "eth1", false).await;
        pass(30).await;
        assert_eq!(world.map("metal").await, json!({"p": "eth0", "q": "eth1"}), "RF-22 RF-220");
        world.namespace("team-x").await;
        world.floating_ip("team-x", "one", "c-m-gone").await;
        pass(1_300).await;
        assert!(
            writes(&world.local, mark).contains(&"update floatingips team-x/one".to_owned()),
            "RF-220 {:?}",
            writes(&world.local, mark)
        );
        let kept = world
            .get("/apis/rancher.k8s.binbash.org/v1beta2/namespaces/team-x/floatingips/one")
            .await
            .unwrap();
        assert_eq!(
            kept["status"]["assigned"]["services"][0]["serviceName"], "web",
            "RF-176 RF-22 through the newer version"
        );
    });
}

/// What the role of the Go program allows in the management cluster.
fn shipped_role(_: &User, action: &Action) -> Option<String> {
    let Action { verb, group, resource, namespace, .. } = action;
    let read = matches!(verb.as_str(), "get" | "list" | "watch");
    let allowed = match (group.as_str(), resource.as_str()) {
        ("rancher.k8s.binbash.org", "floatingips") => read || verb == "update",
        ("rancher.k8s.binbash.org" | "provisioning.cattle.io" | "management.cattle.io", _) => read,
        ("rke-machine-config.cattle.io", "harvesterconfigs") => matches!(verb.as_str(), "get" | "list"),
        ("", "secrets") => read || verb == "create" || verb == "update",
        ("", "configmaps") => verb == "get" && namespace == "rancher-fip-manager",
        ("coordination.k8s.io", "leases") => namespace == "rancher-fip-manager" && verb != "patch",
        // Discovery is for everybody.
        (_, "") => true,
        _ => false,
    };
    (!allowed).then(|| "the role does not allow it".to_owned())
}

/// The role of the later Go line is wider.
fn later_role(user: &User, action: &Action) -> Option<String> {
    let fip = action.group == "rancher.k8s.binbash.org" && matches!(action.verb.as_str(), "patch" | "update");
    if fip { None } else { shipped_role(user, action) }
}

/// What our manifest grants in the management cluster.
fn our_role(_: &User, action: &Action) -> Option<String> {
    let documents = include_str!("../../../../deploy/rancher-fip/manifest.yaml").split("\n---\n").skip(1);
    let documents = documents.map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    let names = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let granted = documents.filter(|role| {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        role["kind"] == "ClusterRole" || (role["kind"] == "Role" && namespace == action.namespace)
    });
    let mut rules = granted.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default());
    let allowed = action.resource.is_empty()
        || rules.any(|rule| {
            let only = names(&rule["resourceNames"]);
            names(&rule["apiGroups"]).contains(&action.group)
                && names(&rule["resources"]).contains(&action.resource)
                && names(&rule["verbs"]).contains(&action.verb)
                && (only.is_empty() || only.contains(&action.name))
        });
    (!allowed).then(|| "the manifest does not grant it".to_owned())
}

#[test]
fn it_works_under_every_role_that_is_shipped() {
    type Role = fn(&User, &Action) -> Option<String>;
    let roles: [(&str, Role, bool); 3] =
        [("RF-192", shipped_role, false), ("RF-225", later_role, false), ("RF-193", our_role, true)];
    for (case, role, events) in roles {
        simulate(async {
            let world = World::reference().await;
            world.namespace("team-x").await;
            world.floating_ip("team-x", "one", "c-m-gone").await;
            world.local.set_policy(Some(Arc::new(role)));
            let _running = world.start();
            pass(240).await;
            let refused = ours(&world.local, 0).into_iter();
            let refused: Vec<_> =
                refused.filter(|call| format!("{:?}", call.outcome).contains("403")).collect();
            assert!(refused.is_empty(), "{case} {refused:?}");
            world.local.set_policy(None);
            assert!(!world.delivered("guest01", PROJECT_SECRET, "clientSecret").await.is_empty(), "{case}");
            let path = "/apis/rancher.k8s.binbash.org/v1beta2/namespaces/team-x/floatingips/one";
            let released = world.get(path).await.unwrap();
            assert_eq!(
                released["metadata"]["labels"].get("rancher.k8s.binbash.org/cluster-name"),
                None,
                "{case}"
            );
            assert_eq!(
                !world.events().is_empty(),
                events,
                "{case} events are refused, and nothing else suffers"
            );
        });
    }
}

#[test]
fn a_namespace_keeps_its_labels_and_a_missing_one_is_waited_for() {
    simulate(async {
        let world = World::reference().await;
        let guest = world.api("guest01");
        let metadata = json!({"name": TARGET, "annotations": {"note": "keep"},
            "labels": {"mine": "1", "rancher.k8s.binbash.org/project-name": "p-old"}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        send(&guest, "POST", "/api/v1/namespaces", Some(namespace)).await;
        let missing = Fault {
            namespace: "c-m-harv01".to_owned(),
            ..Fault::new(Harm::status(404)).on("create", "secrets")
        };
        world.local.add_fault(missing.times(1));
        let _running = world.start();
        pass(60).await;
        assert!(world.events().contains(&"WriteFailed".to_owned()), "RF-154 reported");
        assert_eq!(world.token().await, None, "RF-154");
        pass(200).await;
        assert!(world.token().await.is_some(), "RF-154 retried within a minute");
        let namespace = get(&guest, &format!("/api/v1/namespaces/{TARGET}")).await.unwrap();
        assert_eq!(
            namespace["metadata"]["labels"]["rancher.k8s.binbash.org/project-name"], "p-abcde",
            "RF-117"
        );
        assert_eq!(
            (&namespace["metadata"]["labels"]["mine"], &namespace["metadata"]["annotations"]["note"]),
            (&json!("1"), &json!("keep")),
            "RF-118"
        );
        assert_ne!(world.restarted("guest01").await, Value::Null, "RF-117");
    });
}

#[test]
fn a_terminating_namespace_and_a_namespace_made_by_others_are_lived_with() {
    simulate(async {
        let world = World::reference().await;
        let guest = world.api("guest01");
        guest.add_fault(Fault::new(Harm::Conflict).on("create", "namespaces").times(1));
        let refused =
            Fault { namespace: TARGET.to_owned(), ..Fault::new(Harm::status(403)).on("create", "secrets") };
        guest.add_fault(refused.times(2));
        let _running = world.start();
        pass(400).await;
        assert!(!world.delivered("guest01", PROJECT_SECRET, "clientSecret").await.is_empty(), "RF-52 RF-53");
        assert!(world.events().contains(&"WriteFailed".to_owned()), "RF-53");
        assert!(get(&guest, &format!("/api/v1/namespaces/{TARGET}")).await.is_some(), "RF-51");
    });
}

#[test]
fn a_restart_that_failed_is_made_up_for() {
    simulate(async {
        let world = World::reference().await;
        let _running = world.start();
        pass(180).await;
        let before = world.restarted("guest01").await;
        world.api("guest01").add_fault(Fault::new(Harm::status(500)).on("patch", "deployments").times(1));
        world.configure(&[("RancherFipApiServerURL", "https://new.example.com/v1")]).await;
        pass(120).await;
        assert_ne!(world.restarted("guest01").await, before, "RF-120");
    });
}

#[test]
fn a_watch_that_ends_and_versions_that_are_forgotten_lose_nothing() {
    simulate(async {
        let world = World::reference().await;
        let _running = world.start();
        pass(180).await;
        world.helm.asked();
        world.local.restart();
        world.local.compact();
        world.label(GUEST, json!({"rancher-fip-lbtype": "metallb"})).await;
        pass(120).await;
        assert!(
            world.events().contains(&"LoadBalancerConflict".to_owned()),
            "RF-198 RF-32 {:?}",
            world.events()
        );
        assert_eq!(world.helm.asked(), [], "RF-198 no second install");
    });
}
