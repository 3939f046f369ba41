//! The real control plane comes up, keeps its servers apart, and leaves nothing behind.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// What a test prints, a person reads.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cloudberth_e2e::{ControlPlane, Credentials, Options, Request};
use serde_json::json;
use support::assets;

/// The processes that were started with `dir` on their command line.
fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().map_while(Result::ok) {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(dir) {
            found.push(line);
        }
    }
    found
}

#[tokio::test]
async fn it_answers_with_its_version_and_leaves_nothing_behind() {
    let plane = ControlPlane::start(&assets(), &Options { audit: true, ..Options::default() }).await.unwrap();
    let answer = plane.send(&Request::get("/version")).await.unwrap();
    assert_eq!((answer.status, &answer.json()["gitVersion"]), (200, &json!("v1.37.1")));

    let version = plane.kubectl(&["version", "-o", "json"]).await.unwrap();
    assert!(version.ok, "{}", version.stderr);
    let version: serde_json::Value = serde_json::from_str(&version.stdout).unwrap();
    assert_eq!(version["serverVersion"]["gitVersion"], "v1.37.1");
    assert_eq!(version["clientVersion"]["gitVersion"], "v1.37.1");
    let applied = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\n";
    let applied = plane.kubectl_command().run_with_input(&["apply", "-f", "-"], applied).await.unwrap();
    assert_eq!(applied.stdout, "configmap/hello created\n", "{}", applied.stderr);
    assert!(plane.audit_log().contains(r#""requestURI":"/api/v1/namespaces/default/configmaps"#));

    let dir = plane.dir().parent().unwrap().to_path_buf();
    assert!(processes_of(&dir).len() >= 2, "etcd and kube-apiserver");
    drop(plane);
    assert_eq!(processes_of(&dir), Vec::<String>::new());
    assert!(!dir.exists());
}

#[tokio::test]
async fn two_servers_on_one_etcd_do_not_see_each_other() {
    let first = ControlPlane::start(&assets(), &Options::default()).await.unwrap();
    let second = first.beside(&Options::default()).await.unwrap();
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "only-here" } });
    assert_eq!(first.send(&Request::post("/api/v1/nodes", &node)).await.unwrap().status, 201);
    assert_eq!(first.send(&Request::get("/api/v1/nodes/only-here")).await.unwrap().status, 200);
    assert_eq!(second.send(&Request::get("/api/v1/nodes/only-here")).await.unwrap().status, 404);

    // The store outlives the server that started it, for as long as another uses it.
    drop(first);
    assert_eq!(second.send(&Request::post("/api/v1/nodes", &node)).await.unwrap().status, 201);
}

#[tokio::test]
async fn a_service_account_has_only_the_rights_of_its_role() {
    let plane = ControlPlane::start(&assets(), &Options::default()).await.unwrap();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "guest" } });
    assert_eq!(plane.send(&Request::post(accounts, &account)).await.unwrap().status, 201);
    let ask = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let token = plane.send(&Request::post(format!("{accounts}/guest/token"), &ask)).await.unwrap().json();
    let token = Credentials::Token(token["status"]["token"].as_str().unwrap().to_owned());
    let guest = plane.client(&token).unwrap();

    let answer = guest.send(&Request::get("/api/v1/nodes")).await.unwrap();
    let said = answer.json()["message"].clone();
    assert_eq!(answer.status, 403, "{said}");
    assert!(
        said.as_str().unwrap().contains(r#"User "system:serviceaccount:default:guest" cannot list"#),
        "{said}"
    );

    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": "guest" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node" },
        "subjects": [{ "kind": "ServiceAccount", "name": "guest", "namespace": "default" }] });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(plane.send(&Request::post(bindings, &role)).await.unwrap().status, 201);
    // The authorizer learns of the binding from a watch.
    let allowed = async {
        while guest.send(&Request::get("/api/v1/nodes")).await.unwrap().status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), allowed).await.expect("the binding never counted");
    let stranger = plane.client(&Credentials::Token("made-up".into())).unwrap();
    assert_eq!(stranger.send(&Request::get("/api/v1/nodes")).await.unwrap().status, 401);
    let nobody = plane.client(&Credentials::Anonymous).unwrap();
    assert_eq!(nobody.send(&Request::get("/api/v1/nodes")).await.unwrap().status, 403);
}

#[test]
fn a_panic_stops_everything() {
    let assets = assets();
    let (tell, told) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let plane = ControlPlane::start(&assets, &Options::default()).await.unwrap();
            tell.send(plane.dir().parent().unwrap().to_path_buf()).unwrap();
            panic!("a failed test");
        });
    });
    let dir = told.recv().unwrap();
    assert!(test.join().is_err());
    assert_eq!(processes_of(&dir), Vec::<String>::new());
    assert!(!dir.exists());
}

/// Set for the process that holds a control plane until it is killed.
const HOLD: &str = "CLOUDBERTH_E2E_HOLD";

#[test]
fn killing_the_test_leaves_nothing_behind() {
    if std::env::var_os(HOLD).is_some() {
        hold();
    }
    let mut held = Command::new(std::env::current_exe().unwrap())
        .args(["killing_the_test_leaves_nothing_behind", "--exact", "--nocapture"])
        .env(HOLD, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(held.stdout.take().unwrap()).lines().map_while(Result::ok);
    let dir = lines.find_map(|line| line.strip_prefix("holding ").map(PathBuf::from)).unwrap();
    assert!(dir.exists() && processes_of(&dir).len() >= 2);
    held.kill().unwrap();
    held.wait().unwrap();
    let gone = || !dir.exists() && processes_of(&dir).is_empty();
    for _ in 0..600 {
        if gone() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("still there: {dir:?} {:?}", processes_of(&dir));
}

/// What [`killing_the_test_leaves_nothing_behind`] kills: itself, in another process.
fn hold() -> ! {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let plane = runtime.block_on(ControlPlane::start(&assets(), &Options::default())).unwrap();
    println!("\nholding {}", plane.dir().parent().unwrap().display());
    loop {
        std::thread::park();
    }
}
