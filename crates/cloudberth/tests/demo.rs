//! `cloudberth demo`, as a newcomer runs it: in real time, once for all that is asserted about its end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "demo")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

fn demo() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloudberth"));
    command.arg("demo");
    command
}

#[test]
fn all_of_it_is_seen_in_order() {
    let run = demo().output().unwrap();
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{out}{}", String::from_utf8_lossy(&run.stderr));
    let lines = [
        "became leader",
        "node/worker-1 has taint node.cloudprovider.kubernetes.io/uninitialized:NoSchedule",
        "node/worker-1 is initialised: demo://m-0001, 10.0.0.1, region north, zone north-1, small",
        "node/worker-3 is NotReady",
        "event Warning InvalidAnnotation of service/web: fake.cloudberth.dev/algorithm",
        "service/web has EXTERNAL-IP 203.0.113.",
        "event Normal UpdatedLoadBalancer of service/web: Updated load balancer with new hosts",
        "node/worker-2 has taint node.cloudprovider.kubernetes.io/shutdown:NoSchedule",
        "node/worker-2 is Ready, no cloud taint",
        "event Warning SyncLoadBalancerFailed of service/web",
        "event Normal EnsuredLoadBalancer of service/web: Ensured load balancer; the cloud listens on 80, 443",
        "Now for worker-3",
        "node/worker-3 deleted",
        "service/web deleted",
        "event Normal DeletedLoadBalancer of service/web: Deleted load balancer; the cloud has no load balancer",
        "lease/cloud-controller-manager has no holder",
        "All of it happened.",
        "cloud, changing",
        "Kubernetes writes",
    ];
    let mut rest = out.as_str();
    for line in lines {
        rest = rest.split_once(line).unwrap_or_else(|| panic!("{line:?} is not in its place:\n{out}")).1;
    }
    // Told by a watch of its own, so before or after the node itself.
    assert!(out.contains("Deleting node worker-3 because it does not exist in the cloud provider"), "{out}");
    assert!(!out.contains('\u{1b}'), "no colours where there is no terminal");
}

#[test]
fn ctrl_c_ends_it() {
    let mut run = demo().stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(run.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("became leader") {
        assert_ne!(out.read_line(&mut text).unwrap(), 0, "{text}");
    }
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    out.read_to_string(&mut text).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{text}");
    assert!(text.contains("\nInterrupted.") && !text.contains("All of it happened"), "{text}");
}

#[test]
fn help_says_what_it_does() {
    let run = demo().arg("--help").output().unwrap();
    assert!(run.status.success());
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(out.contains("Usage: cloudberth demo") && out.contains("The exit code is 0"), "{out}");
}
