//! What is printed when the program cannot start as it was called, and when it need not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "sim")]

mod fixture;

use std::{net::TcpListener, process::Output};

use cloudberth::CLOUDS;
use fixture::{Place, text};

/// The lines that begin with `Error: `, if the program ended with exit code 1, wrote nothing to stdout, and showed
/// nothing of its inside.
fn errors(case: &str, output: &Output) -> Vec<String> {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{case}: {stderr}");
    assert_eq!(stdout, "", "{case}");
    for inside in ["panicked", "backtrace", ".rs:"] {
        assert!(!stderr.contains(inside), "{case}: {stderr}");
    }
    stderr.lines().filter_map(|line| line.strip_prefix("Error: ")).map(str::to_owned).collect()
}

#[test]
fn every_mistake_is_named_once_and_all_are_named_at_once() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--secure-port={}", taken.local_addr().unwrap().port());
    let kubeconfig = format!("--kubeconfig={}", place.kubeconfig());
    let cloud = format!("--cloud-config={}", place.write("cloud", "instances: []"));
    let bad_cloud = format!("--cloud-config={}", place.write("bad-cloud", "instances: [\n"));
    let odd_cloud = format!("--cloud-config={}", place.write("odd-cloud", "tokn: s3cr3t-s3cr3t\n"));
    let refusing = format!("--cloud-config={}", place.write("refusing", "refuses: true\n"));
    let bad_kubeconfig = format!("--kubeconfig={}", place.write("bad", "clusters: {"));
    let good = ["--cloud-provider=fake", &kubeconfig, &cloud, "--bind-address=127.0.0.1", "--secure-port=0"];
    // Later flags win, so each row spoils a call that is good otherwise.
    let table: &[(&str, &[&str], &[&str])] = &[
        ("unknown flag", &["--nonsense=1"], &["unknown flag: --nonsense"]),
        ("wrong value", &["--leader-elect-retry-period=soon"], &["\"--leader-elect-retry-period\" flag"]),
        (
            "durations that do not fit",
            &["--leader-elect-lease-duration=9s"],
            &["--leader-elect-lease-duration"],
        ),
        ("positional argument", &["extra"], &["does not take any arguments, got [\"extra\"]"]),
        ("unknown provider", &["--cloud-provider=nope"], &["unknown cloud provider \"nope\""]),
        ("no provider", &["--cloud-provider="], &["--cloud-provider cannot be empty"]),
        ("kubeconfig not there", &["--kubeconfig=/nowhere/at-all"], &["--kubeconfig /nowhere/at-all: "]),
        ("kubeconfig not readable", &[&bad_kubeconfig], &["--kubeconfig "]),
        ("cloud config not there", &["--cloud-config=/nowhere"], &["fake: --cloud-config /nowhere: "]),
        ("cloud config not readable", &[&bad_cloud], &["bad-cloud: "]),
        (
            "cloud config of another",
            &[&odd_cloud],
            &["odd-cloud: line 1, field tokn: there is no such field"],
        ),
        (
            "cloud config of whom",
            &["--cloud-config=cloudscale=/nowhere"],
            &["none of --cloud-provider: fake"],
        ),
        ("a cloud that refuses", &[&refusing], &["fake: refuses is true"]),
        ("port in use", &[&port], &[taken_address(&port).leak()]),
        (
            "three at once",
            &["--nonsense=1", "--kubeconfig=/nowhere/at-all", "--cloud-config=/nowhere"],
            &["unknown flag: --nonsense", "--kubeconfig /nowhere/at-all: ", "--cloud-config /nowhere: "],
        ),
    ];
    for (case, spoil, want) in table {
        let args = [&["controller-manager"], &good[..], spoil].concat();
        let said = errors(case, &place.run(&args));
        assert_eq!(said.len(), want.len(), "{case}: {said:?}");
        for (said, want) in said.iter().zip(*want) {
            assert!(said.contains(want), "{case}: {said}");
            assert!(!said.contains("s3cr3t"), "L10-40 {case}: {said}");
        }
    }
}

fn taken_address(flag: &str) -> String {
    format!("127.0.0.1:{}", flag.trim_start_matches("--secure-port="))
}

#[test]
fn without_any_way_to_a_cluster_it_does_not_start() {
    let place = Place::new();
    let said =
        errors("FW-344", &place.run(&["controller-manager", "--cloud-provider=fake", "--secure-port=0"]));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("no way to a Kubernetes API is known") && said[0].contains("--kubeconfig"),
        "{said:?}"
    );
}

#[test]
fn help_and_version_need_nothing() {
    let place = Place::new();
    let table: &[(&[&str], &str)] = &[
        (&["controller-manager", "--help"], "--leader-elect-lease-duration duration"),
        (&["controller-manager", "--version"], "Kubernetes v"),
        (&["controller-manager", "--version=raw"], "GitVersion:"),
        (&["--help"], "controller-manager"),
        (&["--version"], "cloudberth "),
    ];
    for (args, want) in table {
        let output = place.run(args);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
        assert!(text(&output.stdout).contains(want), "{args:?}: {}", text(&output.stdout));
    }
}

#[test]
fn an_old_name_presets_its_cloud() {
    for factory in CLOUDS {
        for called in factory.replaces {
            let said = errors(called, &Place::new().run_as(called, &["--kubeconfig=/nowhere/at-all"]));
            let name = format!("{}: ", factory.name);
            // Cloudlycke on this computer needs no settings.
            let told = factory.name == "cloudlycke" || said.iter().any(|line| line.starts_with(&name));
            assert!(told, "its settings are missing: {said:?}");
            assert!(!said.iter().any(|line| line.contains("--cloud-provider")), "{said:?}");
            assert!(said.iter().any(|line| line.contains("--kubeconfig /nowhere/at-all: ")), "{said:?}");
        }
    }
    let place = Place::new();
    let help = text(&place.run_as("cloudscale-cloud-controller-manager", &["--help"]).stdout);
    assert!(help.contains("(default \"cloudscale\")"), "{help}");
}
