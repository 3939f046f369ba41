//! client-go, which knows nothing of us, finds the same on a real server and on the embedded one.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// What a test prints, a person reads.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cloudberth_e2e::{ControlPlane, Embedded, Options};
use embedded_kube::{Fault, Harm};
use support::assets;
use tokio::process::Command;

/// Longer than the program's own deadlines.
const DEADLINE: Duration = Duration::from_mins(11);

/// Runs the program. What it printed, and what it complained about if it did.
async fn run(kubeconfig: &Path, streaming: bool) -> (Vec<String>, Option<String>) {
    let program =
        kube_assets::informers(&mut |line| eprintln!("{line}")).unwrap_or_else(|error| panic!("{error}"));
    let output = Command::new(&program)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .env_clear()
        .env("KUBE_FEATURE_WatchListClient", streaming.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(DEADLINE, output).await.expect("it did not end").unwrap();
    let said = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    (said, Some(complained).filter(|_| !output.status.success()))
}

/// With and without streaming lists; what it printed each time.
async fn informers(kubeconfig: &Path) -> [Vec<String>; 2] {
    let run = async |streaming| {
        let (said, complained) = run(kubeconfig, streaming).await;
        assert_eq!(complained, None, "streaming lists: {streaming}\n{}", said.join("\n"));
        said
    };
    [run(false).await, run(true).await]
}

#[tokio::test]
async fn client_go_sees_the_same_on_both() {
    let real = ControlPlane::start_with_a_past(&assets(), &Options::default()).await.unwrap();
    let embedded = Embedded::start().await.unwrap();
    let found = [informers(&real.kubeconfig()).await, informers(&embedded.kubeconfig()).await];
    assert_eq!(found[0], found[1], "real, then embedded");
    let [listed, streamed] = &found[0];
    for (lines, way) in [(listed, "list"), (streamed, "streaming list")] {
        assert!(lines.contains(&format!("ok nodes: by one {way}")), "{lines:?}");
        let passed = lines.iter().filter(|line| line.starts_with("ok ")).count();
        assert!(passed >= 40, "{lines:?}");
        assert_eq!(lines.last(), Some(&format!("{passed} checks passed")));
    }
    println!("{}", streamed.join("\n"));
}

#[tokio::test]
async fn a_server_that_goes_wrong_is_caught() {
    let table = [
        (
            Fault::new(Harm::Status { code: 500, retry_after: None }).on("patch", "nodes"),
            "FAILED nodes: JSON patch",
        ),
        (Fault::new(Harm::Conflict).on("create", "services"), "FAILED services: create"),
    ];
    for (fault, complaint) in table {
        let embedded = Embedded::start().await.unwrap();
        embedded.api().add_fault(fault);
        let (said, complained) = run(&embedded.kubeconfig(), true).await;
        let complained = complained.unwrap_or_default();
        assert!(complained.contains(complaint), "{complaint}: {complained}\n{said:?}");
        assert!(!said.iter().any(|line| line.contains("checks passed")), "{said:?}");
    }
}
