//! What `plan` says about the clusters: which balancer each gets by the rules, for every configuration, label and release
//! that is there. It only reads.

use cloudberth_e2e::shipped;
use cloudberth_rancher_fip::helm::ReleaseStatus;
use cloudberth_rancher_fip::helm::stand_in::{Planted, record};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::objects::{APP, MANAGEMENT, cluster, namespace, secret};
use crate::world::World;

/// What the label `rancher-fip-lbtype` says in one cluster each.
const LABELS: [Option<&str>; 4] = [None, Some("metallb"), Some("purelb"), Some("foo")];
const CONFLICT: &str = "LoadBalancerConflict";
const MISSING: &str = "LoadBalancerNotConfigured";
const ODD: &str = "LoadBalancerTypeUnknown";

/// The balancer that would be installed, and what is told, for each of [`LABELS`].
type Outcomes = [(&'static str, &'static str); 4];

/// A case, which balancers are configured, the namespace that tells which are installed, and what follows.
const RULES: [(&str, &[&str], &str, Outcomes); 6] = [
    (
        "RF-82 RF-83 RF-84 MetalLB only",
        &["metallb"],
        "lb-none",
        [("metallb", ""), ("metallb", ""), ("", MISSING), ("metallb", ODD)],
    ),
    ("PureLB only", &["purelb"], "lb-none", [("purelb", ""), ("", MISSING), ("purelb", ""), ("purelb", ODD)]),
    (
        "RF-79 RF-80 RF-81 both, and nothing is installed",
        &["purelb", "metallb"],
        "lb-none",
        [("purelb", ""), ("metallb", ""), ("purelb", ""), ("purelb", ODD)],
    ),
    (
        "RF-85 both, and PureLB is installed",
        &["purelb", "metallb"],
        "lb-purelb",
        [("", ""), ("", CONFLICT), ("", ""), ("", ODD)],
    ),
    (
        "RF-86 RF-87 both, and MetalLB is installed",
        &["purelb", "metallb"],
        "lb-metallb",
        [("", ""), ("", ""), ("", CONFLICT), ("", CONFLICT)],
    ),
    (
        "RF-214 both are configured and installed",
        &["purelb", "metallb"],
        "lb-both",
        [("", CONFLICT), ("", CONFLICT), ("", CONFLICT), ("", CONFLICT)],
    ),
];

/// One run of `plan`: its exit code, what it printed, and what it complained about.
pub(crate) async fn plan(world: &World, app_namespace: &str, output: &str) -> (i32, String, String) {
    let ran = Command::new(shipped().unwrap())
        .args(["rancher-fip-cluster-manager", "plan"])
        .arg(format!("--kubeconfig={}", world.previewer.kubeconfig.display()))
        .arg(format!("--helm={}", world.helm.display()))
        .arg(format!("--app-namespace={app_namespace}"))
        .arg(format!("--output={output}"))
        .env_clear()
        .env("HOME", world.local.dir())
        .env("SSL_CERT_FILE", world.local.dir().join("registry.crt"))
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code().unwrap_or(-1), text(&ran.stdout), text(&ran.stderr))
}

/// The rules about balancers, as a plan tells them before there is anything.
pub(crate) async fn the_rules_about_balancers_are_planned(world: &World) {
    let (code, said, _) = plan(world, APP, "text").await;
    assert_eq!(code, 1, "RF-9 without a configuration nothing can be told: {said}");
    assert!(said.contains("cannot tell: ") && said.contains("rancher-fip-config"), "{said}");

    let clusters = LABELS.map(|label| label.unwrap_or("none"));
    for (name, label) in clusters.iter().zip(LABELS) {
        let mut labels = json!({"rancher-fip": "enabled"});
        if let Some(label) = label {
            labels["rancher-fip-lbtype"] = json!(label);
        }
        let id = format!("c-m-{name}");
        world.local.create(&format!("{MANAGEMENT}/clusters"), &cluster(&id, name, &labels)).await.unwrap();
        let kubeconfig = secret(&format!("{id}-kubeconfig"), &[("value", &world.guest_kubeconfig)]);
        world.local.create("/api/v1/namespaces/fleet-default/secrets", &kubeconfig).await.unwrap();
        let provisioning = json!({"apiVersion": "provisioning.cattle.io/v1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {}});
        world.local.create(PROVISIONING, &provisioning).await.unwrap();
    }
    for (place, releases) in [
        ("lb-none", &[][..]),
        ("lb-purelb", &[("purelb", "1.0.0")][..]),
        ("lb-metallb", &[("metallb", "2.0.0")]),
        ("lb-both", &[("purelb", "1.0.0"), ("metallb", "2.0.0")]),
    ] {
        world.guest.create("/api/v1/namespaces", &namespace(place, &json!({}))).await.unwrap();
        for (release, version) in releases {
            let planted = Planted { version: (*version).to_owned(), ..Planted::default() };
            let body = record(place, release, 1, ReleaseStatus::Deployed, &planted);
            world.guest.create(&format!("/api/v1/namespaces/{place}/secrets"), &body).await.unwrap();
        }
    }
    // All rules at once: a plan mostly waits.
    let runs = RULES.iter().enumerate().map(|(number, (case, configured, place, want))| async move {
        let app = format!("preview-{number}");
        world.local.create("/api/v1/namespaces", &namespace(&app, &json!({}))).await.unwrap();
        world.preview(&app, configured, place).await;
        let (code, json, trouble) = plan(world, &app, "json").await;
        assert_eq!(code, 2, "{case}: {json} {trouble}");
        let plan: Value = serde_json::from_str(&json).unwrap();
        for (name, (balancer, reason)) in clusters.iter().zip(want) {
            let found = plan["clusters"].as_array().unwrap().iter().find(|one| one["displayName"] == *name);
            let found = found.unwrap_or_else(|| panic!("{case}: {name} is missing: {json}"));
            let lines = |key: &str| -> Vec<String> {
                let all = found[key].as_array().unwrap().iter();
                all.map(|line| line.as_str().unwrap().to_owned()).collect()
            };
            let installs = lines("steps").into_iter().filter(|step| step.contains(&format!(" as {place}/")));
            let want: Vec<_> = Some(*balancer).into_iter().filter(|name| !name.is_empty()).collect();
            let installs: Vec<_> = installs.collect();
            assert!(
                installs.len() == want.len() && want.iter().all(|name| installs[0].contains(*name)),
                "{case}, label {name}: {found}"
            );
            let told: Vec<_> =
                lines("problems").iter().map(|line| line.split(':').next().unwrap().to_owned()).collect();
            let want: Vec<_> = Some(*reason).into_iter().filter(|name| !name.is_empty()).collect();
            assert_eq!(told, want, "{case}, label {name}: {found}");
        }
    });
    futures_util::future::join_all(runs).await;

    world.local.create("/api/v1/namespaces", &namespace("preview-none", &json!({}))).await.unwrap();
    world.preview("preview-none", &[], "lb-none").await;
    let (code, said, _) = plan(world, "preview-none", "text").await;
    assert_eq!(code, 1, "no balancer is configured, so nothing is planned for any cluster: {said}");
    for words in [
        "cannot tell: ",
        "no load balancer is configured",
        "PureLBControllerChartName",
        "MetalLBControllerChartName",
    ] {
        assert!(said.contains(words), "{words:?} is not in\n{said}");
    }
    assert!(!said.contains("install the chart"), "{said}");

    let (code, said, _) = plan(world, "preview-2", "text").await;
    assert_eq!(code, 2, "{said}");
    for line in [
        "c-m-guest01 (guest01)\n",
        "\n  - create the namespace rancher-fip-manager\n",
        "\n  - create the Secret c-m-harv01/rancher-fip-config-p-abcde in the management cluster\n",
        "\n  - install the chart rancher-fip-lb-controller 0.1.0 as rancher-fip-manager/rancher-fip-lb-controller\n",
        "\n  ! LoadBalancerTypeUnknown: ",
    ] {
        assert!(said.contains(line), "{line:?} is not in\n{said}");
    }
    let here = world.local.settled_calls_of(&world.previewer.user).await.unwrap();
    let there = world.guest.settled_calls_of(&world.downstream.user).await.unwrap();
    assert!(!here.is_empty() && !there.is_empty(), "it looks");
    assert!(here.iter().chain(&there).all(|row| !row.is_write()), "a plan writes nothing");

    for name in clusters {
        let id = format!("c-m-{name}");
        world.local.delete(&format!("{MANAGEMENT}/clusters/{id}")).await.unwrap();
        world.local.delete(&format!("{PROVISIONING}/{name}")).await.unwrap();
        let kubeconfig = format!("/api/v1/namespaces/fleet-default/secrets/{id}-kubeconfig");
        world.local.delete(&kubeconfig).await.unwrap();
    }
}

const PROVISIONING: &str = "/apis/provisioning.cattle.io/v1/namespaces/fleet-default/clusters";

/// A cluster that is as it should be has nothing in its plan.
pub(crate) async fn there_is_nothing_to_plan(world: &World) {
    let (code, said, trouble) = plan(world, APP, "text").await;
    assert_eq!((code, said.as_str()), (0, "c-m-guest01 (guest01)\n  nothing to do\n"), "{trouble}");
    let (code, json, _) = plan(world, APP, "json").await;
    let want = json!({"clusters": [{"cluster": "c-m-guest01", "displayName": "guest01", "steps": [], "problems": [],
        "complete": true}], "trouble": []});
    assert_eq!((code, serde_json::from_str::<Value>(&json).unwrap()), (0, want), "{json}");
}
