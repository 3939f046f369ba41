//! A real Prometheus with the rules of `deploy/monitoring`, which scrapes a manager.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cloudberth_e2e::{
    Cluster, ClusterFactory, ClusterKind, Manager, Prometheus, Request, eventually, manifests_of, shipped,
};
use kube_assets::{Assets, PrometheusAssets};
use serde_json::{Value, json};

/// Nothing here takes longer, also on a busy machine. It ends a hang and measures nothing.
const SOON: Duration = Duration::from_secs(120);
const MONITORING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/monitoring");
/// What promtool may find fault with, one finding a line. The monitoring stage sees to it that all of them are still found;
/// here it is a page as a program shows it.
const ACCEPTED: &str = include_str!("../../../deploy/monitoring/tests/accepted-findings.txt");

/// An embedded cluster needs none of the programs.
async fn cluster() -> Cluster {
    let none = Assets { apiserver: PathBuf::new(), etcd: PathBuf::new(), kubectl: PathBuf::new() };
    ClusterFactory::start(ClusterKind::Embedded, &none, None).await.unwrap().cluster().await.unwrap()
}

/// A manager that leads, with a cloud in its memory and pages of metrics for everybody, and the token of its account.
async fn leader(cluster: &Cluster) -> (Manager, String) {
    let manifests = manifests_of(&["cloudscale"]).unwrap();
    let account = cluster.account("kube-system", "cloud-controller-manager", &manifests).await.unwrap();
    let config = cluster.dir().join("fake.yaml");
    fs::write(&config, json!({"instances": ["node-1"]}).to_string()).unwrap();
    let flags = [
        "--cloud-provider=fake".to_owned(),
        format!("--cloud-config={}", config.display()),
        "--configure-cloud-routes=false".to_owned(),
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics,/metrics/slis".to_owned(),
    ];
    let program = (shipped().unwrap(), vec!["controller-manager".to_owned()]);
    let mut manager = Manager::start(&account, "leader", program, &flags, &[]).await.unwrap();
    manager.leads(SOON).await.unwrap();
    (manager, account.token)
}

/// The rules as they are shipped, but an alert fires a second after its condition holds.
fn impatient_rules(dir: &Path) -> PathBuf {
    let rules = fs::read_to_string(format!("{MONITORING}/rules.yaml")).unwrap();
    let lines =
        rules.lines().map(|line| if line.starts_with("        for: ") { "        for: 1s" } else { line });
    let path = dir.join("rules.yaml");
    fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    path
}

/// What promtool says about a page, one finding a line.
fn findings(assets: &PrometheusAssets, page: &str) -> Vec<String> {
    let mut command = Command::new(&assets.promtool);
    let mut child =
        command.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect()
}

/// The expressions of all panels.
fn dashboard_queries() -> Vec<String> {
    let text = fs::read_to_string(format!("{MONITORING}/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let filled = |expr: &str| {
        expr.replace("$job", "cloudberth").replace("$__rate_interval", "1m").replace("$__range", "1h")
    };
    targets.map(|target| filled(target["expr"].as_str().unwrap())).collect()
}

async fn fires(prometheus: &Prometheus, alert: &str) {
    let what = format!("{alert} fires");
    let seen = eventually(SOON, &what, async || {
        let firing = prometheus.firing().await?;
        if firing.iter().any(|name| name == alert) { Ok(()) } else { Err(format!("{firing:?}")) }
    });
    seen.await.unwrap_or_else(|why| panic!("{why}\n{}", prometheus.log().join("\n")));
}

#[tokio::test]
async fn a_real_prometheus_sees_a_real_manager_and_its_alerts_fire() {
    let assets = kube_assets::prometheus(&mut |_| ()).unwrap();
    let cluster = cluster().await;
    let (mut manager, token) = leader(&cluster).await;
    let address = manager.pages().base().trim_start_matches("https://").to_owned();
    let rules = impatient_rules(cluster.dir());
    let prometheus = Prometheus::start(&assets, cluster.dir(), &rules, &address).await.unwrap();

    // Somebody who is known asks too, so that requests of users are counted.
    let mut as_a_user = Request::get("/healthz");
    as_a_user.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    assert_eq!(manager.pages().send(&as_a_user).await.unwrap().status, 200);
    for path in ["/metrics", "/metrics/slis"] {
        let page = manager.pages().send(&Request::get(path)).await.unwrap();
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(page.contains("\nprocess_start_time_seconds "), "{path}: {page}");
        let unexpected: Vec<_> = findings(&assets, &page)
            .into_iter()
            .filter(|finding| !ACCEPTED.lines().any(|line| line.replace("{cloud}", "fake") == *finding))
            .collect();
        assert_eq!(
            unexpected, [""; 0],
            "{path}: add to the accepted findings only what Kubernetes has named"
        );
        assert_eq!(path == "/metrics", page.contains("authenticated_user_requests{"), "{path}: {page}");
    }

    eventually(SOON, "the leader is scraped", async || {
        let leaders = prometheus.query("leader_election_master_status{job=\"cloudberth\"} == 1").await?;
        if leaders.len() == 1 { Ok(()) } else { Err(prometheus.targets().await?) }
    })
    .await
    .unwrap();
    // Before the first scrape nobody answers.
    eventually(SOON, "all is well", async || {
        let firing = prometheus.firing().await?;
        if firing.is_empty() { Ok(()) } else { Err(format!("{firing:?}")) }
    })
    .await
    .unwrap();

    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "odd", "annotations": {"fake.cloudberth.dev/algorithm": "fastest"}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    cluster.create("/api/v1/namespaces/default/services", &service).await.unwrap();
    fires(&prometheus, "CloudberthServicesRefused").await;
    assert_eq!(prometheus.firing().await.unwrap(), ["CloudberthServicesRefused"], "and nothing else");
    for query in dashboard_queries() {
        prometheus.query(&query).await.unwrap();
    }

    manager.kill();
    fires(&prometheus, "CloudberthDown").await;
}
