//! `cloudberth plan` and `controller-manager --dry-run`, as a person or a script calls them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(all(feature = "sim", feature = "fake"))]

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cloudberth")).args(arguments).output().unwrap()
}

#[test]
fn an_empty_cluster_is_told_and_left_by_every_way_in() {
    let file = std::env::temp_dir().join(format!("cloudberth-plan-{}", std::process::id()));
    let mut server = Command::new(env!("CARGO_BIN_EXE_cloudberth"))
        .args(["sim", "kube", "--listen", "127.0.0.1:0", "--write-kubeconfig"])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kubeconfig = format!("--kubeconfig={}", file.display());
    let flags = [kubeconfig.as_str(), "--cloud-provider=fake", "--configure-cloud-routes=false"];
    let ways: [(&[&str], &str); 4] = [
        (&["plan"], "Nothing to do.\n"),
        (&["plan", "--dry-run=false"], "Nothing to do.\n"),
        (&["controller-manager", "--dry-run"], "Nothing to do.\n"),
        (&["plan", "--output", "json"], "{\n  \"services\": [],\n"),
    ];
    for (way, want) in ways {
        let output = run(&[way, &flags].concat());
        let (told, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(told.starts_with(want), "{way:?}: {told}{log}");
        assert_eq!(output.status.code(), Some(0), "{way:?}: {log}");
        assert!(!log.contains("--output has no effect"), "{log}");
    }
    // The routes that it would make cannot be told without the networks of the cluster.
    let unknown = run(&["plan", flags[0], flags[1]]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stdout).contains("--cluster-cidr"));
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn wrong_flags_are_named_together() {
    let wrong = run(&["plan", "--cloud-provider=nope", "--output=yaml", "--kubeconfig=/nowhere"]);
    let told = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(1));
    for flag in ["--cloud-provider", "--output", "/nowhere"] {
        assert!(told.contains(flag), "{told}");
    }
}
