//! `cloudberth lint`, as a person or a script calls it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(all(feature = "fake", feature = "lycke"))]

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// Lints what comes through a pipe, in an environment that holds nothing.
fn lint(manifest: &str, args: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cloudberth"))
        .args(["lint", "-f", "-"])
        .args(args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn service(annotations: &str, spec: &str) -> String {
    let spec =
        if spec.contains("ports") { spec.to_owned() } else { format!("ports: [{{port: 80}}], {spec}") };
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  annotations: {{{annotations}}}\nspec: {{type: \
         LoadBalancer, {spec}}}\n"
    )
}

/// Case, cloud, annotations, spec; level, field, a part of what is said about it, a part of the fix.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const CASES: &[Case] = &[
    (
        "a value that is none",
        "cloudscale",
        "k8s.cloudscale.ch/loadbalancer-pool-algorithm: fastest",
        "",
        "refused",
        "k8s.cloudscale.ch/loadbalancer-pool-algorithm",
        "round_robin",
        "Correct the annotation",
    ),
    (
        "a typing mistake",
        "cloudscale",
        "k8s.cloudscale.ch/loadbalancer-flavour: lb-standard",
        "",
        "warning",
        "k8s.cloudscale.ch/loadbalancer-flavour",
        "did you mean k8s.cloudscale.ch/loadbalancer-flavor?",
        "typing mistake",
    ),
    (
        "a number without quotes",
        "cloudscale",
        "k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s: 5",
        "",
        "refused",
        "k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s",
        "5 is not text",
        "in quotes",
    ),
    (
        "a protocol that nobody carries",
        "cloudscale",
        "",
        "ports: [{port: 80, protocol: SCTP}]",
        "refused",
        "spec.ports[].protocol",
        "SCTP",
        "Change the field",
    ),
    (
        "no node ports",
        "brightbox",
        "",
        "allocateLoadBalancerNodePorts: false",
        "refused",
        "spec.ports[].nodePort",
        "allocateLoadBalancerNodePorts",
        "Change the field",
    ),
    (
        "a network that is none",
        "cloudscale",
        "",
        "loadBalancerSourceRanges: [10.0.0.1/33]",
        "refused",
        "spec.loadBalancerSourceRanges",
        "10.0.0.1/33",
        "Change the field",
    ),
    ("UDP", "binarylane", "", "ports: [{port: 53, protocol: UDP}]", "refused", "spec.ports", "53/UDP", "80"),
    (
        "an address that cannot be asked for",
        "binarylane",
        "",
        "loadBalancerIP: 192.0.2.7",
        "refused",
        "spec.loadBalancerIP",
        "192.0.2.7",
        "",
    ),
    (
        "sticky clients",
        "brightbox",
        "",
        "sessionAffinity: ClientIP",
        "refused",
        "spec.sessionAffinity",
        "ClientIP",
        "Change the field",
    ),
    (
        "a timeout beyond a day",
        "cloudlycke",
        "service.beta.kubernetes.io/cloudlycke-load-balancer-idle-timeout: \"999999\"",
        "",
        "refused",
        "service.beta.kubernetes.io/cloudlycke-load-balancer-idle-timeout",
        "999999",
        "Correct the annotation",
    ),
    (
        "both families where there is one",
        "binarylane",
        "",
        "ipFamilyPolicy: RequireDualStack",
        "refused",
        "spec.ipFamilyPolicy",
        "RequireDualStack",
        "",
    ),
];

#[test]
fn every_broken_service_is_named_with_its_field_and_its_fix() {
    for (case, cloud, annotations, spec, level, field, why, fix) in CASES {
        let manifest = service(annotations, spec);
        let output = lint(&manifest, &["--cloud-provider", cloud, "--output=json"]);
        let said = told(&output);
        let refused = *level == "refused";
        assert_eq!(output.status.code(), Some(i32::from(refused)), "{case}: {said}");
        let found: Value = serde_json::from_str(&said).unwrap_or_else(|why| panic!("{case}: {why}: {said}"));
        let findings = found["findings"].as_array().unwrap();
        let fits = |one: &&Value| one["level"] == *level && one["field"] == *field;
        let finding = findings.iter().find(fits).unwrap_or_else(|| panic!("{case}: {said}"));
        assert!(finding["message"].as_str().unwrap().contains(why), "{case}: {said}");
        assert!(finding["fix"].as_str().unwrap().contains(fix) && finding["fix"] != "", "{case}: {said}");
        assert_eq!(
            (finding["line"].as_u64() > Some(4), &finding["document"]),
            (true, &1.into()),
            "{case}: {said}"
        );
        let text = told(&lint(&manifest, &["--cloud-provider", cloud]));
        assert!(
            text.contains(&format!("stdin:{}: document 1, Service default/web", finding["line"])),
            "{case}: {text}"
        );
        assert!(text.contains(&format!("field: {field}")) && text.contains("\n  fix: "), "{case}: {text}");
    }
}

#[test]
fn the_answer_for_scripts_stays_as_it_is() {
    let output =
        lint(&service("k8s.cloudscale.ch/loadbalancer-listener-protocol: udp", ""), &["--output=json"]);
    let want = r#"{
  "services": 1,
  "clouds": [
    "cloudscale"
  ],
  "findings": [
    {
      "level": "refused",
      "file": "stdin",
      "document": 1,
      "line": 5,
      "service": "default/web",
      "cloud": "cloudscale",
      "reason": "InvalidAnnotation",
      "field": "k8s.cloudscale.ch/loadbalancer-listener-protocol",
      "value": "udp",
      "message": "\"udp\" is not one of tcp",
      "fix": "Correct the annotation that the message names."
    }
  ],
  "unassigned": []
}
"#;
    assert_eq!(told(&output), want);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn every_exit_code_is_the_documented_one() {
    let good = service("k8s.cloudscale.ch/loadbalancer-flavor: lb-standard", "");
    let table: &[(&str, &str, &[&str], i32, &str)] = &[
        ("nothing refused", &good, &[], 0, "Refused: 0."),
        ("nothing to look at", "kind: ConfigMap\napiVersion: v1\n", &[], 0, "LoadBalancer: 0"),
        ("nobody says which cloud", &service("", ""), &[], 2, "--cloud-provider"),
        (
            "a cloud that there is not",
            &good,
            &["--cloud-provider=nimbus"],
            2,
            "unknown cloud provider \"nimbus\"",
        ),
        (
            "a file of nobody's",
            &good,
            &["--cloud-config=x"],
            2,
            "--cloud-config needs exactly one --cloud-provider",
        ),
        ("no such flag", &good, &["--nonsense"], 2, "--nonsense"),
        ("no such output", &good, &["--output=yaml"], 2, "yaml"),
        ("not YAML", "a: [\n", &[], 3, "not YAML"),
        ("no such file", &good, &["-f", "/nowhere/at-all"], 3, "/nowhere/at-all: "),
        (
            "settings that are wrong",
            &good,
            &["--cloud-provider=binarylane", "--cloud-config=/nowhere"],
            3,
            "/nowhere",
        ),
    ];
    for (case, manifest, args, code, part) in table {
        let output = lint(manifest, args);
        assert_eq!(output.status.code(), Some(*code), "{case}: {}", told(&output));
        assert!(told(&output).contains(part), "{case}: {}", told(&output));
    }
    let bare = Command::new(env!("CARGO_BIN_EXE_cloudberth")).arg("lint").output().unwrap();
    assert_eq!(bare.status.code(), Some(2), "{}", told(&bare));
}

#[test]
fn no_example_of_ours_is_refused() {
    let clouds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clouds");
    for cloud in ["binarylane", "brightbox", "cloudlycke", "cloudscale"] {
        let folder = clouds.join(cloud).join("examples");
        let mut count = 0;
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let output = lint(&fs::read_to_string(&file).unwrap(), &["--cloud-provider", cloud]);
            let said = told(&output);
            assert_eq!(output.status.code(), Some(0), "{}: {said}", file.display());
            assert!(said.contains("Refused: 0. Warnings: 0."), "{}: {said}", file.display());
            count += 1;
        }
        assert!(count > 0, "{}", folder.display());
    }
}
