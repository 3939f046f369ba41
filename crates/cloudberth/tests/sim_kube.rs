//! `cloudberth sim kube`, as a person starts and stops it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "sim")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

#[test]
fn it_prints_its_address_writes_the_file_and_stops_when_told() {
    let file = std::env::temp_dir().join(format!("cloudberth-sim-kube-{}", std::process::id()));
    let mut server = Command::new(env!("CARGO_BIN_EXE_cloudberth"))
        .args(["sim", "kube", "--listen", "127.0.0.1:0", "--write-kubeconfig"])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("https://").nth(1).unwrap().split(',').next().unwrap();
    assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{line}");
    assert!(std::net::TcpStream::connect(address).is_ok());
    let config = std::fs::read_to_string(&file).unwrap();
    assert!(config.contains(&format!("server: https://{address}")) && config.contains("token: "), "{config}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let told = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(told.success() && server.wait().unwrap().success());
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn mistakes_are_explained() {
    let run =
        |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_cloudberth")).args(arguments).output().unwrap();
    let missing = run(&["sim", "kube"]);
    assert!(!missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("--listen"));
    let taken = run(&["sim", "kube", "--listen", "192.0.2.1:1", "--write-kubeconfig", "/nowhere/x"]);
    assert!(
        !taken.status.success() && String::from_utf8_lossy(&taken.stderr).contains("cloudberth sim kube:")
    );
}
