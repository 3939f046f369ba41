//! `cloudberth doctor` on set-ups that are broken, each in its own way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(all(feature = "sim", feature = "fake"))]

mod fixture;

use std::{path::Path, process::Command};

use cloudberth_core::Clock;
use cloudberth_http::surroundings::SystemClock;
use fixture::{Cluster, PROGRAM, Place, Process, kubeconfig, text};
use serde_json::{Value, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Exit code and report.
async fn doctor(cluster: &Cluster, args: &[&str], env: &[(&str, &str)]) -> (Option<i32>, Value) {
    let mut command = cluster.place.command(Path::new(PROGRAM));
    command.args(["doctor", "--kubeconfig=admin", "--output=json"]).args(args).envs(env.iter().copied());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = text(&output.stdout);
    let report =
        serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}{}", text(&output.stderr)));
    (output.status.code(), report)
}

/// The finding of this check; its text holds the parts.
fn finds(report: &Value, severity: &str, check: &str, what: &str, fix: &str) {
    let findings = report["findings"].as_array().unwrap();
    let holds = |one: &Value, key: &str, part: &str| one[key].as_str().unwrap().contains(part);
    let fits = |one: &&Value| {
        one["severity"] == severity
            && one["check"] == check
            && holds(one, "what", what)
            && holds(one, "fix", fix)
    };
    assert!(findings.iter().any(|one| fits(&one)), "{severity} {check} {what:?} {fix:?}: {report:#}");
}

async fn cloud(cluster: &Cluster, provider: &str) -> (Process, String) {
    let mut command = cluster.place.command(Path::new(PROGRAM));
    command.args(["sim", "cloud", "--provider", provider, "--listen", "127.0.0.1:0", "--instances", "2"]);
    command.args(["--token", "the-right-one"]);
    let mut cloud = Process::start(&mut command, cluster.place.path(&format!("{provider}.log")));
    let line = cloud.says(&["http://"]).await;
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().trim().to_owned();
    (cloud, format!("http://{address}/"))
}

fn lease(name: &str, renewed: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15, "renewTime": renewed},
    })
}

fn now() -> String {
    let mut text = SystemClock::new().wall().to_string();
    text.truncate(19);
    format!("{text}.000000Z")
}

#[tokio::test]
async fn every_broken_set_up_is_named_with_its_fix() {
    let cluster = Cluster::start().await;
    let (_cloud, url) = cloud(&cluster, "cloudscale").await;
    let right = [("CLOUDSCALE_ACCESS_TOKEN", "the-right-one"), ("CLOUDSCALE_API_URL", url.as_str())];
    let scale = ["--cloud-provider=cloudscale"];

    // Nothing is wrong with an empty cluster, and nobody leads it yet.
    let (code, report) = doctor(&cluster, &scale, &right).await;
    assert_eq!(code, Some(0), "{report:#}");
    finds(&report, "notice", "leader", "no controller manager has led here yet", "Start");
    assert!(report["seen"].to_string().contains("2 instances in cloudscale"), "{report:#}");

    // 1. No cloud is named.
    let (code, report) = doctor(&cluster, &[], &[]).await;
    assert_eq!(code, Some(0), "{report:#}");
    finds(&report, "notice", "cloud", "no cloud was asked", "--cloud-provider");
    // 2. A token is missing.
    let (code, report) = doctor(&cluster, &scale, &[]).await;
    assert_eq!(code, Some(1), "{report:#}");
    finds(&report, "problem", "cloud", "CLOUDSCALE_ACCESS_TOKEN is not set", "setting");
    // 3. A token is refused.
    let wrong = [("CLOUDSCALE_ACCESS_TOKEN", "a-wr0ng-one-a-wr0ng-one"), right[1]];
    let (code, report) = doctor(&cluster, &scale, &wrong).await;
    assert_eq!(code, Some(1), "{report:#}");
    finds(&report, "problem", "token", "cloudscale refuses", "token");
    assert!(!report.to_string().contains("wr0ng"), "L10-2101 {report:#}");
    // 4. A cloud is away: nothing is known, and nothing is claimed.
    let away = [right[0], ("CLOUDSCALE_API_URL", "http://127.0.0.1:1/")];
    let (code, report) = doctor(&cluster, &scale, &away).await;
    assert_eq!(code, Some(3), "L1-2108 {report:#}");
    assert_eq!(report["unknown"][0]["check"], "cloud", "{report:#}");

    // 5. A kubelet without its flag. 6. An id of another account. 7. An id that cannot be read.
    cluster.join("plain", true).await;
    let node = |name: &str, id: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": id},
        })
    };
    cluster.post("/api/v1/nodes", &node("lost", "cloudscale://00000000-0000-4000-8000-000000000001")).await;
    cluster.post("/api/v1/nodes", &node("odd", "cloudscale://x")).await;
    cluster.post("/api/v1/nodes", &node("foreign", "k3s://foreign")).await;
    let (code, report) = doctor(&cluster, &scale, &right).await;
    assert_eq!(code, Some(1), "{report:#}");
    finds(&report, "problem", "kubelets", "--cloud-provider=external: plain", "kubelets");
    finds(&report, "problem", "token", "none of the instances of its nodes: lost", "another account");
    finds(&report, "problem", "nodes", "node odd cannot be read by cloudscale: cloudscale://x", "join anew");
    finds(&report, "notice", "nodes", "left alone: foreign", "--cloud-provider");

    // 8. A leader that fell silent, beside 9. another controller manager. 10. A Service that waits, and why.
    cluster.post(LEASES, &lease("cloud-controller-manager", "2026-01-01T00:00:00.000000Z")).await;
    cluster.post(LEASES, &lease("k3s-cloud-controller-manager", &now())).await;
    let web = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    let web = cluster.post(SERVICES, &web).await;
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": "default", "uid": web["metadata"]["uid"]},
        "type": "Warning", "reason": "InvalidAnnotation", "message": "x.io/y: it must be z",
        "firstTimestamp": now(), "lastTimestamp": now(), "count": 1,
    });
    cluster.post("/api/v1/namespaces/default/events", &event).await;
    let (code, report) = doctor(&cluster, &scale, &right).await;
    assert_eq!(code, Some(1), "{report:#}");
    finds(&report, "problem", "leader", "somebody has been silent", "log");
    finds(&report, "warning", "others", "the controller manager inside of k3s", "--disable-cloud-controller");
    finds(&report, "problem", "services", "default/web has waited", "Correct the annotation");
    finds(&report, "problem", "services", "InvalidAnnotation: x.io/y: it must be z", "annotation");
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_told_where_the_cloud_tells() {
    let cluster = Cluster::start().await;
    let (_cloud, url) = cloud(&cluster, "brightbox").await;
    let env = [
        ("BRIGHTBOX_CLIENT", "cli-sim00"),
        ("BRIGHTBOX_CLIENT_SECRET", "the-right-one"),
        ("BRIGHTBOX_API_URL", url.as_str()),
    ];
    let (code, report) = doctor(&cluster, &["--cloud-provider=brightbox"], &env).await;
    assert_eq!(code, Some(0), "{report:#}");
    assert!(report["seen"].to_string().contains("load balancers in brightbox"), "{report:#}");
}

#[test]
fn a_wrong_call_and_a_cluster_that_is_away_have_codes_of_their_own() {
    let place = Place::new();
    let away = format!("--kubeconfig={}", place.write("away", &kubeconfig("https://127.0.0.1:1", "t")));
    let table: &[(&str, &[&str], i32, &str)] = &[
        ("no such flag", &["--nonsense", &away], 2, "unknown flag: --nonsense"),
        ("no such cloud", &["--cloud-provider=nope", &away], 2, "unknown cloud provider"),
        ("no such file", &["--kubeconfig=/nowhere/at-all"], 2, "/nowhere/at-all"),
        ("nobody answers", &[&away], 3, "not looked at [api]"),
    ];
    for (case, args, code, part) in table {
        let output = place.run(&[&["doctor"], *args].concat());
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(*code), "{case}: {said}");
        assert!(said.contains(part), "{case}: {said}");
    }
    let help = Command::new(PROGRAM).args(["doctor", "--help"]).output().unwrap();
    assert!(text(&help.stdout).contains("cloudberth doctor [flags]"), "{}", text(&help.stdout));
}
