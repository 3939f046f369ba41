//! The HTTPS port of a running manager, and what its log shows and does not show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "sim")]

mod fixture;

use cloudberth_core::metric::Metric;
use fixture::{Answer, Cluster, Process, TOKEN, ask, free_port, kubeconfig, pages, until};
use http::Method;
use kube::Client;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A manager that leads, and its port. One that finds its port taken meanwhile gets another.
async fn manager(cluster: &Cluster, flags: &[&str]) -> (Process, u16, Client) {
    for attempt in 1.. {
        let port = free_port();
        let (secure, client) = (format!("--secure-port={port}"), pages(port));
        let usual = [
            "--bind-address=127.0.0.1",
            "--authentication-kubeconfig=admin",
            "--authorization-kubeconfig=admin",
            &secure,
        ];
        let mut manager = cluster.manager("manager", &[&usual, flags].concat());
        match manager.says_or_ends(&["this replica leads"]).await {
            Ok(_) => {
                until("the port answers", async || ask(&client, Method::GET, "/healthz", None, "").await)
                    .await;
                return (manager, port, client);
            }
            Err(log) => assert!(attempt < 5 && log.contains("in use"), "{log}"),
        }
    }
    unreachable!("five times are enough")
}

async fn get(client: &Client, path: &str, token: Option<&str>) -> Answer {
    ask(client, Method::GET, path, token, "").await.unwrap()
}

#[tokio::test]
async fn the_pages_are_shown_to_whom_the_cluster_allows() {
    let cluster = Cluster::start().await;
    let (_manager, _, client) = manager(&cluster, &["--node-monitor-period=7s"]).await;
    let (nobody, admin, wrong) = (None, Some(TOKEN), Some("wrong"));
    let table = [
        ("/healthz", nobody, 200, "ok"),
        ("/healthz?verbose", admin, 200, "[+]leaderElection ok"),
        ("/livez", nobody, 200, "ok"),
        ("/livez?verbose", admin, 200, "[+]watch-nodes ok"),
        ("/livez?verbose", admin, 200, "[+]main-loop ok"),
        ("/readyz", nobody, 200, "ok"),
        ("/readyz?verbose", admin, 200, "[+]fake ok"),
        ("/metrics", nobody, 403, "User \\\"system:anonymous\\\" cannot get path \\\"/metrics\\\""),
        ("/metrics", wrong, 401, "Unauthorized"),
        ("/metrics", admin, 200, "running_managed_controllers"),
        ("/configz", nobody, 403, "cannot get path"),
        ("/configz", admin, 200, "CloudControllerManagerConfiguration"),
        ("/nothing", nobody, 403, "cannot get path"),
        ("/nothing", admin, 404, "404 page not found"),
    ];
    for (path, token, status, part) in table {
        let answer = get(&client, path, token).await;
        assert_eq!(answer.status, status, "{path} {token:?}: {}", answer.body);
        assert!(answer.body.contains(part), "{path} {token:?}: {}", answer.body);
    }
    let metrics = get(&client, "/metrics", admin).await.body;
    for series in [
        "leader_election_master_status{name=\"cloud-controller-manager\"} 1",
        "rest_client_requests_total{",
        "kubernetes_build_info{",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(series)), "{series}:\n{metrics}");
    }
    check_page(&metrics, &[cloudberth_runtime::metrics::TABLE, cloudberth_serving::TABLE]);
    check_page(&get(&client, "/metrics/slis", admin).await.body, &[cloudberth_serving::SLIS]);
    let config = get(&client, "/configz", admin).await.json()["cloudcontrollermanager.config.k8s.io"].clone();
    let effective = [
        ("/NodeLifecycleController/NodeMonitorPeriod", "7s"),
        ("/Generic/LeaderElection/leaseDuration", "6s"),
        ("/Generic/LeaderElection/retryPeriod", "1s"),
        ("/KubeCloudShared/CloudProvider/Name", "fake"),
    ];
    for (path, want) in effective {
        assert_eq!(config.pointer(path).and_then(|value| value.as_str()), Some(want), "{path}: {config:#}");
    }
}

/// Checks that everything on a page is in the tables from which the reference is written, with its type and its labels.
fn check_page(page: &str, tables: &[&[Metric]]) {
    let find = |name: &str| {
        let mut all = tables.iter().copied().flatten();
        all.find(|metric| metric.name.replace("{cloud}", "fake") == name)
    };
    let mut metric: Option<&Metric> = None;
    for line in page.lines().filter(|line| !line.starts_with("# HELP") && *line != "# EOF") {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let found = find(name).unwrap_or_else(|| panic!("{name} is not in the tables"));
            assert_eq!(kind, found.kind.name(), "{line}");
            metric = Some(found);
        } else {
            // A label's name is what stands between a comma or a brace and the next quotation mark.
            let names = line.split('"').step_by(2).filter_map(|part| part.strip_suffix('='));
            let labels =
                names.filter_map(|part| part.rsplit(['{', ',']).next()).filter(|label| *label != "le");
            assert_eq!(labels.collect::<Vec<_>>(), metric.expect("a type").labels, "{line}");
        }
    }
    assert!(metric.is_some(), "an empty page");
}

#[tokio::test]
async fn the_log_gets_louder_and_quieter_while_it_runs() {
    let cluster = Cluster::start().await;
    let (mut manager, _, client) = manager(&cluster, &["--v=0"]).await;
    assert!(!manager.log().contains("TRACE") && !manager.log().contains("DEBUG"), "{}", manager.log());
    let set =
        async |level: &str, token| ask(&client, Method::PUT, "/debug/flags/v", token, level).await.unwrap();
    assert_eq!(set("9", None).await.status, 403);
    let changed = set("9", Some(TOKEN)).await;
    assert_eq!((changed.status, changed.body.trim()), (200, "successfully set klog.logging.verbosity to 9"));
    manager.says(&["TRACE"]).await;
    assert_eq!(set("0", Some(TOKEN)).await.status, 200);
    // What was under way may still be written; from then on it is quiet while renewals go on every second.
    cluster.sees_work("one").await;
    let before = manager.log().matches("TRACE").count();
    cluster.sees_work("two").await;
    assert_eq!(manager.log().matches("TRACE").count(), before);
}

#[tokio::test]
async fn no_secret_is_in_the_loudest_log() {
    let cluster = Cluster::start().await;
    let (mut manager, _, client) = manager(&cluster, &["--v=9"]).await;
    cluster.sees_work("one").await;
    assert_eq!(get(&client, "/metrics", Some(TOKEN)).await.status, 200);
    assert_eq!(get(&client, "/metrics", Some("caller-3e1a-secret")).await.status, 401);
    manager.signal("TERM");
    assert_eq!(manager.exit_code().await, Some(0));
    let log = manager.log();
    assert!(log.contains("TRACE") && log.contains("FLAG: --kubeconfig"), "{log}");
    for secret in [TOKEN, "caller-3e1a-secret"] {
        let shown: Vec<_> = log.lines().filter(|line| line.contains(secret)).collect();
        assert!(shown.is_empty(), "L10-41: {shown:#?}");
    }
}

#[tokio::test]
async fn what_is_odd_about_the_installation_is_told_once_it_runs() {
    let cluster = Cluster::start().await;
    cluster.join("old-hand", true).await;
    let (mut manager, _, _) = manager(&cluster, &[]).await;
    let line = manager.says(&["WARN", "--cloud-provider=external", "old-hand"]).await;
    assert!(line.contains("joined without"), "{line}");
    assert!(!manager.log().contains("missing right"), "{}", manager.log());
}

#[tokio::test]
async fn an_account_that_the_cluster_does_not_know_is_told_about() {
    let cluster = Cluster::start().await;
    let admin = std::fs::read_to_string(cluster.place.path("admin")).unwrap();
    let server = admin.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap().to_owned();
    cluster.place.write("stranger", &kubeconfig(&server, "a-token-that-nobody-knows"));
    let mut manager = cluster.manager("stranger.log", &["--kubeconfig=stranger", "--secure-port=0"]);
    let line = manager.says(&["WARN", "cannot check the program's rights"]).await;
    assert!(line.contains("Unauthorized") && !line.contains("a-token-that-nobody-knows"), "{line}");
    assert_eq!(cluster.holder().await, None, "who may not write the Lease does not lead");
    manager.signal("TERM");
    assert_eq!(manager.exit_code().await, Some(0), "{}", manager.log());
}

/// The first bytes of a client that speaks nothing newer than TLS 1.`minor - 1`.
fn hello(minor: u8) -> Vec<u8> {
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap().to_be_bytes();
    let extensions = [
        &[0x00, 0x0d, 0, 6, 0, 4, 4, 3, 8, 4][..], // signatures: ECDSA on P-256, RSA-PSS
        &[0x00, 0x0a, 0, 4, 0, 2, 0, 29],          // groups: X25519
        &[0x00, 0x0b, 0, 2, 1, 0],                 // points: uncompressed
        &[0x00, 0x17, 0, 0],                       // extended master secret
    ]
    .concat();
    let suites = [0, 8, 0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x09, 0xc0, 0x13];
    let body =
        [&[3, minor], &[7; 32][..], &[0], &suites, &[1, 0], &length(&extensions), &extensions].concat();
    let handshake = [&[1, 0], &length(&body)[..], &body].concat();
    [&[0x16, 3, 1], &length(&handshake)[..], &handshake].concat()
}

#[tokio::test]
async fn nothing_below_tls_1_2_is_spoken() {
    let cluster = Cluster::start().await;
    let (_manager, port, _) = manager(&cluster, &[]).await;
    // A fatal alert about the version, or the beginning of a server's hello.
    for (version, minor, want) in
        [("1.0", 1, [0x15, 2, 70]), ("1.1", 2, [0x15, 2, 70]), ("1.2", 3, [0x16, 2, 0])]
    {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(&hello(minor)).await.unwrap();
        let mut answer = [0; 7];
        until("an answer", async || stream.read_exact(&mut answer).await.ok()).await;
        assert_eq!([answer[0], answer[5], answer[6]], want, "{version}: {answer:?}");
    }
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_yet_is_not_ready_and_then_it_is() {
    let cluster = Cluster::start().await;
    cluster.place.write("away", "instances: [one]\nunansweredStarts: 1000\n");
    let (mut process, _, client) = manager(&cluster, &["--cloud-config=away"]).await;
    process.says(&["cloud not ready", "cloud=\"fake\""]).await;
    cluster.join("one", false).await;
    let answer = get(&client, "/readyz?verbose", Some(TOKEN)).await;
    assert!(answer.status == 500 && answer.body.contains("[-]fake"), "L1-1536 {answer:?}");
    let healthy = get(&client, "/healthz", None).await;
    assert_eq!(healthy.status, 200, "no reason to start the program anew");
    let node = cluster.get("/api/v1/nodes/one").await.unwrap();
    assert!(node["spec"]["providerID"].is_null(), "L1-1537 {node}");

    let cluster = Cluster::start().await;
    cluster.place.write("late", "instances: [one]\nunansweredStarts: 1\n");
    let (mut process, _, client) = manager(&cluster, &["--cloud-config=late"]).await;
    process.says(&["cloud ready"]).await;
    cluster.sees_work("one").await;
    until("it is ready", async || {
        let answer = ask(&client, Method::GET, "/readyz?verbose", Some(TOKEN), "").await?;
        (answer.status == 200 && answer.body.contains("[+]fake ok")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_late_cloud_that_refuses_for_good_ends_the_program() {
    let cluster = Cluster::start().await;
    cluster.place.write("refusing", "unansweredStarts: 1\nrefuses: true\n");
    let mut process = cluster.manager("manager", &["--cloud-config=refusing", "--secure-port=0"]);
    process.says(&["Error: fake: refuses is true"]).await;
    assert_eq!(process.exit_code().await, Some(1));
    assert_eq!(cluster.holder().await.unwrap_or_default(), "", "L9-1504: the next leader need not wait");
}
