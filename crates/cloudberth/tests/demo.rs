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

/// What has to be printed in this order; the lines between two of them may come in any.
const LINES: &[&str] = &[
    "The manager starts and stands for election.",
    "became leader",
    "Three instances boot.",
    "node/node-1 is initialised: cloudlycke://n-1, 127.78.",
    "kubectl apply: Service web, type LoadBalancer.",
    "event Normal EnsuredLoadBalancer of service/web: Ensured load balancer; the cloud sends traffic to node-1, node-2, node-3",
    "Requests go through it, and are spread over the nodes.",
    "24 requests, all answered: ",
    "Somebody switches the instance of the second node off.",
    "by node-3",
    "Somebody destroys that instance.",
    "In production it is 10 s and 60 s",
    "A new instance boots",
    "by node-4",
    "kubectl apply: Service typo",
    "event Warning InvalidAnnotation of service/typo: service.beta.kubernetes.io/cloudlycke-load-balancer-policy",
    "The cloud's API breaks",
    "The cloud's API is well again.",
    "event Normal EnsuredLoadBalancer of service/web: Ensured load balancer; the cloud listens on 8",
    "kubectl delete service web typo.",
    "refuses connections",
    "The manager is told to stop (SIGTERM).",
    "lease/cloud-controller-manager has no holder",
    "All of it happened",
    "cloud calls",
    "Kubernetes writes",
    "requests",
    "    0  failed",
];

/// What has to be printed, wherever.
const ANYWHERE: &[&str] = &[
    "node/node-1 has taint node.cloudprovider.kubernetes.io/uninitialized:NoSchedule",
    "region virtualbox, zone virtualbox, vbox.vm.1g.2cpu",
    "service/web has EXTERNAL-IP 127.79.",
    "node/node-2 is NotReady",
    "node/node-2 has taint node.cloudprovider.kubernetes.io/shutdown:NoSchedule",
    "Deleting node node-2 because it does not exist in the cloud provider",
    "node/node-2 deleted",
    "the cloud sends traffic to node-1, node-3\n",
    "the cloud sends traffic to node-1, node-3, node-4",
    "event Warning SyncLoadBalancerFailed of service/web",
    "nothing is lost: 3 nodes, and service/web at 127.79.",
    "service/web deleted",
];

#[test]
fn all_of_it_is_seen_in_order() {
    let run = demo().output().unwrap();
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{out}{}", String::from_utf8_lossy(&run.stderr));
    let mut rest = out.as_str();
    for line in LINES {
        rest = rest.split_once(line).unwrap_or_else(|| panic!("{line:?} is not in its place:\n{out}")).1;
    }
    for line in ANYWHERE {
        assert!(out.contains(line), "{line:?} is missing:\n{out}");
    }
    assert!(!out.contains('\u{1b}'), "no colours where there is no terminal");
}

#[test]
fn it_is_told_on_a_simulated_cloud_without_traffic() {
    let run = demo().args(["--provider", "brightbox"]).output().unwrap();
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{out}{}", String::from_utf8_lossy(&run.stderr));
    assert!(out.contains("a simulated brightbox, without traffic"), "{out}");
    assert!(out.contains("service/web has EXTERNAL-IP ") && out.contains("All of it happened"), "{out}");
    assert!(!out.contains("24 requests") && !out.contains("  answered"), "no traffic is claimed: {out}");
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
    let run = demo().args(["--provider", "nimbus"]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&run.stderr).contains("cloudlycke, cloudscale"),
        "a mistake names the choices"
    );
}
