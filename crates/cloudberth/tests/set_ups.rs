//! `cloudberth doctor` and `cloudberth lint` on set-ups that are broken in exactly one way: that is named, with its fix and
//! nothing beside it, and the exit code is the one that the reference gives for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(all(feature = "sim", feature = "fake", feature = "lycke"))]

mod fixture;

use std::{
    path::Path,
    process::{Output, Stdio},
    sync::Arc,
};

use cloudberth_core::{Clock, Random, Tick};
use cloudberth_http::surroundings::SystemClock;
use embedded_kube::{KubeApi, User};
use fixture::{PROGRAM, Place, ask, kubeconfig, text};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sim_kit::Surroundings;
use testing_kit::People;
use tokio::{io::AsyncWriteExt as _, net::TcpListener};

const REFERENCE: &str = include_str!("../../../docs/reference/commands.md");
const ACCOUNT: &str = "token-of-the-account-of-the-manager";
const RIGHT: &str = "a-token-of-this-project";
const ELSEWHERE: &str = "a-token-of-another-project";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const LEASE: &str = "cloud-controller-manager";
const NODES: &str = "/api/v1/nodes";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/kube-system/deployments";

/// The exit code of a command that the reference describes in these words.
fn documented(command: &str, means: &str) -> i32 {
    let table = REFERENCE.split("## Exit codes").nth(1).unwrap();
    let rows =
        table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    let column = rows[0].iter().position(|cell| *cell == format!("`{command}`")).unwrap();
    let fits = |row: &&Vec<&str>| row[column].split(", or ").chain([row[column]]).any(|cell| cell == means);
    let row = rows[2..].iter().find(fits).unwrap_or_else(|| panic!("{command} has no code for: {means}"));
    row[1].parse().unwrap()
}

/// A clock that is ahead of this computer's.
struct Ahead(SystemClock, SignedDuration);

impl Clock for Ahead {
    fn now(&self) -> Tick {
        self.0.now()
    }

    fn wall(&self) -> Timestamp {
        self.0.wall() + self.1
    }
}

/// One way to break a set-up.
enum Broken {
    /// Somebody made this.
    Made(&'static str, Value),
    /// The same, an hour ago.
    MadeBefore(&'static str, Value),
    /// Something is another way at the API server.
    Api(fn(&KubeApi)),
    /// The cloud's clock is so many seconds ahead.
    CloudAhead(i64),
    /// A variable of the deployment has another value, or none.
    Variable(&'static str, Option<&'static str>),
    /// Further flags.
    Flags(&'static [&'static str]),
    /// Whose token is in the kubeconfig.
    Account(&'static str),
    /// Nobody is at the address in the kubeconfig.
    NobodyThere,
    /// Who holds the Lease, and for how many seconds they have been silent.
    Leader(&'static str, i64),
}

use Broken::{Account, Api, CloudAhead, Flags, Leader, Made, MadeBefore, NobodyThere, Variable};

/// A cluster with two nodes and a leader, at cloudscale.ch: nothing is wrong with it but what `broken` does to it.
async fn doctor(broken: &[Broken], json: bool) -> Output {
    let api = KubeApi::new(Surroundings::of_this_machine());
    let clock = SystemClock::new();
    let ahead = broken.iter().find_map(|one| match one {
        CloudAhead(seconds) => Some(*seconds),
        _ => None,
    });
    let cloud_clock = Ahead(SystemClock::new(), SignedDuration::from_secs(ahead.unwrap_or_default()));
    let settings = cloudscale_sim::SimSettings { instances: 2, ..Default::default() };
    let cloud = cloudscale_sim::Cloud::new(Arc::new(cloud_clock), Random::seeded(1), settings);
    let access =
        [(RIGHT, cloudscale_sim::Access::ReadWrite), (ELSEWHERE, cloudscale_sim::Access::OtherProject)];
    cloud.set_tokens(access);

    let people = People::of(&api);
    api.set_clock_skew(SignedDuration::from_hours(-1));
    for server in cloud.servers() {
        people.register(&server.name, Some(&format!("cloudscale://{}", server.uuid))).await;
    }
    for one in broken {
        if let MadeBefore(path, object) = one {
            make(&people, path, object).await;
        }
    }
    api.set_clock_skew(SignedDuration::ZERO);
    let (mut holder, mut silent) = ("ccm-1_2f8e", 1);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let served = embedded_kube::serve(&api, listener, None, None).unwrap();
    let cloud_served = cloudscale_sim::serve_on_loopback(&cloud).await.unwrap();
    let mut address = format!("http://{}", served.address);
    let mut token = ACCOUNT;
    let place = Place::new();
    let mut command = place.command(Path::new(PROGRAM));
    command.args(["doctor", "--kubeconfig=admin", "--cloud-provider=cloudscale"]);
    command.env("CLOUDSCALE_API_URL", cloud_served.url()).env("CLOUDSCALE_ACCESS_TOKEN", RIGHT);
    if json {
        command.arg("--output=json");
    }
    for one in broken {
        match one {
            Made(path, object) => make(&people, path, object).await,
            Variable(name, Some(value)) => drop(command.env(name, value)),
            Variable(name, None) => drop(command.env_remove(name)),
            Flags(flags) => drop(command.args(*flags)),
            Account(other) => token = other,
            NobodyThere => "https://127.0.0.1:1".clone_into(&mut address),
            Leader(who, seconds) => (holder, silent) = (who, *seconds),
            MadeBefore(..) | CloudAhead(_) | Api(_) => {}
        }
    }
    let renewed = clock.wall() - SignedDuration::from_secs(silent);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": format!("{renewed:.6}")},
    });
    make(&people, LEASES, &lease).await;
    // From here on only those who have a token are let in.
    api.add_token(ACCOUNT, User::plain("manager"));
    for one in broken {
        if let Api(change) = one {
            change(&api);
        }
    }
    place.write("admin", &kubeconfig(&address, token));
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

async fn make(people: &People, path: &str, object: &Value) {
    let made = ask(people.client(), Method::POST, path, None, &object.to_string()).await.unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
}

fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn node(name: &str, spec: &Value) -> Broken {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec});
    MadeBefore(NODES, node)
}

fn runs(name: &str, image: &str) -> Broken {
    let labels = json!({"app": name});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "it", "image": image}]}}},
    });
    Made(DEPLOYMENTS, deployment)
}

/// A token such as service accounts have, with the claim that it ended in second 1,700,000,000: `{"exp":1700000000}`.
const ENDED: &str = "e30.eyJleHAiOjE3MDAwMDAwMDB9.e30";

/// What is broken, how; what the exit code means, which finding it is, parts of what is said and of the fix.
type Case = (&'static str, Vec<Broken>, &'static str, &'static str, &'static str, &'static str);

#[expect(clippy::too_many_lines, reason = "one table")]
fn doctors() -> Vec<Case> {
    let (wrong, fine, blind) = (
        "something is wrong, or will be",
        "nothing is wrong",
        "nothing wrong was seen, and something that matters could not be looked at",
    );
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    let uninitialised = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"});
    let k3s = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "k3s-cloud-controller-manager"},
        "spec": {"holderIdentity": "server-1", "leaseDurationSeconds": 15,
            "renewTime": format!("{:.6}", SystemClock::new().wall())},
    });
    vec![
        (
            "the cloud's token is refused",
            vec![Variable("CLOUDSCALE_ACCESS_TOKEN", Some("a-wr0ng-one"))],
            wrong,
            "problem token",
            "cloudscale refuses",
            "Give it a token that this cloud accepts",
        ),
        (
            "the token is one of another project",
            vec![Variable("CLOUDSCALE_ACCESS_TOKEN", Some(ELSEWHERE))],
            wrong,
            "problem token",
            "cloudscale shows none of the instances of its nodes: node-1, node-2",
            "use the one in which the instances are",
        ),
        (
            "a setting is missing",
            vec![Variable("CLOUDSCALE_ACCESS_TOKEN", None)],
            wrong,
            "problem cloud",
            "CLOUDSCALE_ACCESS_TOKEN is not set",
            "Correct the setting that is named",
        ),
        (
            "the cloud does not answer",
            vec![Variable("CLOUDSCALE_API_URL", Some("http://127.0.0.1:1/"))],
            blind,
            "unknown cloud",
            "cloudscale",
            "See whether the cloud works and can be reached from here",
        ),
        (
            "no cloud is named",
            vec![Flags(&["--cloud-provider="])],
            fine,
            "notice cloud",
            "no cloud was asked",
            "--cloud-provider first",
        ),
        (
            "the account lacks a right",
            vec![Api(|api| {
                let refuses = |_: &User, action: &embedded_kube::Action| {
                    (action.resource == "services" && action.subresource == "status")
                        .then(|| "no role has it".to_owned())
                };
                api.set_policy(Some(Arc::new(refuses)));
            })],
            wrong,
            "problem rights",
            "missing right: patch services/status",
            "Grant it in the program's role",
        ),
        (
            "the account lacks a right that is not needed",
            vec![Api(|api| {
                let refuses = |_: &User, action: &embedded_kube::Action| {
                    (action.resource == "tokenreviews").then(String::new)
                };
                api.set_policy(Some(Arc::new(refuses)));
            })],
            wrong,
            "warning rights",
            "create tokenreviews",
            "Grant it in the program's role",
        ),
        (
            "the account may not see who else is at work",
            vec![Api(|api| {
                let refuses = |_: &User, action: &embedded_kube::Action| {
                    (action.resource == "deployments").then(String::new)
                };
                api.set_policy(Some(Arc::new(refuses)));
            })],
            fine,
            "unknown workloads",
            "deployments.apps is forbidden",
            "such as an administrator's",
        ),
        (
            "the API server refuses the account",
            vec![Account("a-wr0ng-one")],
            wrong,
            "problem token",
            "the Kubernetes API refuses this account",
            "renew the token or certificate",
        ),
        (
            "the account's token has ended",
            vec![Account(ENDED), Api(|api| api.add_token(ENDED, User::plain("manager")))],
            wrong,
            "problem token",
            "the token for the Kubernetes API ended at 2023-11-14",
            "kubectl create token",
        ),
        (
            "nobody answers at the API server's address",
            vec![NobodyThere],
            blind,
            "unknown api",
            "",
            "See whether the API server runs",
        ),
        (
            "the cluster is too old",
            vec![Api(|api| api.set_version("v1.33.9"))],
            wrong,
            "warning versions",
            "v1.33.9 is older than 1.34",
            "Upgrade the cluster",
        ),
        (
            "the API server's clock is wrong",
            vec![Api(|api| api.set_clock_skew(SignedDuration::from_secs(-95)))],
            wrong,
            "warning clock",
            "the clock of the Kubernetes API is 9",
            "Set the clocks by NTP",
        ),
        (
            "the cloud's clock is wrong",
            vec![CloudAhead(600)],
            wrong,
            "warning clock",
            "the clock of cloudscale is ",
            "Set the clocks by NTP",
        ),
        (
            "a kubelet runs without its flag",
            vec![node("plain", &json!({}))],
            wrong,
            "problem kubelets",
            "run without --cloud-provider=external: plain",
            "Set the flag on their kubelets",
        ),
        (
            "a node waits in vain",
            vec![node("stranger", &json!({"taints": [uninitialised]}))],
            wrong,
            "problem nodes",
            "node stranger has waited for 60 minutes for its cloud",
            "its instance must have the name of the node",
        ),
        (
            "a provider id cannot be read",
            vec![node("odd", &json!({"providerID": "cloudscale://x"}))],
            wrong,
            "problem nodes",
            "the provider id of node odd cannot be read by cloudscale: cloudscale://x",
            "let it join anew",
        ),
        (
            "a provider id is that of k3s",
            vec![node("foreign", &json!({"providerID": "k3s://foreign"}))],
            fine,
            "notice nodes",
            "another program and are left alone: foreign",
            "otherwise name their cloud in --cloud-provider",
        ),
        (
            "an instance is gone",
            vec![node("lost", &json!({"providerID": "cloudscale://00000000-0000-4000-8000-000000000001"}))],
            wrong,
            "warning nodes",
            "cloudscale does not show the instances of these nodes: lost",
            "If the instances were deleted",
        ),
        (
            "the leader fell silent",
            vec![Leader("ccm-1_2f8e", 600)],
            wrong,
            "problem leader",
            "nobody leads: ccm-1_2f8e has been silent for 10 minutes",
            "its log says why",
        ),
        (
            "the replaced program still leads",
            vec![Leader("cloudscale-cloud-controller-manager-6d5f-x2x_91c0", 1)],
            wrong,
            "warning leader",
            "a replica of cloudscale-cloud-controller-manager",
            "Scale it down to nothing",
        ),
        (
            "the replaced program is still installed",
            vec![runs("ccm", "quay.io/x/cloudscale-cloud-controller-manager:1.2")],
            wrong,
            "warning others",
            "cloudscale-cloud-controller-manager, which cloudberth replaces",
            "Remove it",
        ),
        (
            "another controller manager is at work",
            vec![runs("hcloud-cloud-controller-manager", "x")],
            wrong,
            "warning others",
            "another cloud controller manager is installed: Deployment kube-system/hcloud",
            "otherwise remove it",
        ),
        (
            "the one inside of k3s is at work",
            vec![Made(LEASES, k3s)],
            wrong,
            "warning others",
            "the controller manager inside of k3s is at work",
            "--disable-cloud-controller",
        ),
        (
            "another load balancer is at work",
            vec![runs("controller", "quay.io/metallb/controller:v0.15")],
            wrong,
            "warning others",
            "MetalLB is at work beside cloudberth",
            "--lb-class",
        ),
        (
            "a Service waits, and nobody says why",
            vec![MadeBefore(SERVICES, service)],
            wrong,
            "problem services",
            "Service default/web has waited for 60 minutes for an address, and no event says why",
            "what its log says",
        ),
    ]
}

#[tokio::test]
async fn doctor_names_what_is_wrong_with_its_fix_and_nothing_else() {
    let healthy = doctor(&[], true).await;
    let report: Value =
        serde_json::from_slice(&healthy.stdout).unwrap_or_else(|_| panic!("{}", said(&healthy)));
    assert_eq!((&report["findings"], &report["unknown"]), (&json!([]), &json!([])), "{report:#}");
    assert_eq!(healthy.status.code(), Some(documented("doctor", "nothing is wrong")), "{report:#}");

    let cases = doctors();
    assert!(cases.len() >= 10);
    for (case, broken, means, finding, what, fix) in &cases {
        let output = doctor(broken, true).await;
        let all = said(&output);
        assert!(!all.contains("wr0ng"), "L10-2102 {case}: {all}");
        assert_eq!(output.status.code(), Some(documented("doctor", means)), "{case}: {all}");
        let report: Value = serde_json::from_str(&all).unwrap_or_else(|why| panic!("{case}: {why}: {all}"));
        let (kind, check) = finding.split_once(' ').unwrap();
        let list = |key: &str| report[key].as_array().unwrap().clone();
        let (findings, unknown) = (list("findings"), list("unknown"));
        let found = if kind == "unknown" {
            assert_eq!(findings, [Value::Null; 0], "{case}: {report:#}");
            &unknown[0]
        } else {
            assert_eq!((findings.len(), &findings[0]["severity"]), (1, &json!(kind)), "{case}: {report:#}");
            &findings[0]
        };
        let told = found["what"].as_str().or(found["why"].as_str()).unwrap();
        assert_eq!(found["check"], check, "{case}: {report:#}");
        assert!(told.contains(what), "{case}: {report:#}");
        assert!(found["fix"].as_str().unwrap().contains(fix), "{case}: {report:#}");

        let words = said(&doctor(broken, false).await);
        let fix = format!("\n  fix: {}\n", found["fix"].as_str().unwrap());
        assert!(words.contains(&format!("[{check}] ")) && words.contains(&fix), "{case}: {words}");
    }
}

/// Only Brightbox tells how much of a quota is used.
#[tokio::test]
async fn doctor_names_a_quota_that_is_used_up() {
    for (limit, means, finding) in [
        (2, "nothing is wrong", None),
        (
            1,
            "something is wrong, or will be",
            Some("1 of 1 load balancers of the account at brightbox are used"),
        ),
    ] {
        let limits = brightbox_sim::Limits { balancers: limit, ..Default::default() };
        let settings = brightbox_sim::SimSettings { limits, instances: 1, ..Default::default() };
        let cloud = brightbox_sim::Cloud::new(Arc::new(SystemClock::new()), Random::seeded(1), settings);
        let node = cloud.servers()[0].id.clone();
        let balancer = json!({
            "name": "web", "nodes": [{"node": node}], "listeners": [{"protocol": "tcp", "in": 80, "out": 30_080}],
            "healthcheck": {"type": "tcp", "port": 30_080, "request": "/"},
        });
        cloud.seed("load_balancers", &balancer).unwrap();
        let served = brightbox_sim::serve_on_loopback(&cloud).await.unwrap();
        let api = KubeApi::new(Surroundings::of_this_machine());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let kube = embedded_kube::serve(&api, listener, None, None).unwrap();
        let place = Place::new();
        place.write("admin", &kubeconfig(&format!("http://{}", kube.address), ACCOUNT));
        let own = cloud.credentials();
        let mut command = place.command(Path::new(PROGRAM));
        command.args(["doctor", "--kubeconfig=admin", "--cloud-provider=brightbox", "--output=json"]);
        command.env("BRIGHTBOX_CLIENT", own.client).env("BRIGHTBOX_CLIENT_SECRET", own.secret);
        command.env("BRIGHTBOX_API_URL", served.url());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
        assert_eq!(output.status.code(), Some(documented("doctor", means)), "{limit}: {report:#}");
        let quota = report["findings"].as_array().unwrap().iter().find(|one| one["check"] == "quota");
        assert_eq!(quota.map(|one| one["what"].as_str().unwrap()), finding, "{limit}: {report:#}");
        if let Some(quota) = quota {
            assert_eq!(quota["severity"], "problem", "{report:#}");
            assert!(quota["fix"].as_str().unwrap().contains("ask the cloud for more"), "{report:#}");
        }
    }
}

/// Case, flags, manifest; what the exit code means, level and reason (none: an error before anything is judged), and parts of
/// what is said and of the fix.
type Lint = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const REFUSED: &str = "something is refused";
const NOT_REFUSED: &str = "nothing is refused";
const CALL: &str = "the call is wrong";
const WHICH: &str = "nothing says which cloud is meant";
const UNREADABLE: &str = "a file or a setting cannot be read";
const CLOUDSCALE: &[&str] = &["--cloud-provider=cloudscale"];

#[rustfmt::skip]
const LINTS: &[Lint] = &[
    ("a mistyped annotation", CLOUDSCALE, "{k8s.cloudscale.ch/loadbalancer-flavour: lb-standard}|", NOT_REFUSED, "warning UnknownAnnotation",
        "did you mean k8s.cloudscale.ch/loadbalancer-flavor?", "typing mistake"),
    ("a value that is none", CLOUDSCALE, "{k8s.cloudscale.ch/loadbalancer-pool-algorithm: fastest}|", REFUSED, "refused InvalidAnnotation",
        "\"fastest\" is not one of round_robin", "Correct the annotation"),
    ("a number without quotes", CLOUDSCALE, "{k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s: 5}|", REFUSED, "refused ",
        "5 is not text", "in quotes"),
    ("a field that the cloud cannot carry out", &["--cloud-provider=brightbox"], "{}|sessionAffinity: ClientIP", REFUSED,
        "refused UnsupportedField", "ClientIP is not supported", "Change the field"),
    ("a protocol that nobody carries", CLOUDSCALE, "{}|ports: [{port: 80, protocol: SCTP}]", REFUSED, "refused UnsupportedField",
        "SCTP", "Change the field"),
    ("a port that the cloud does not have", &["--cloud-provider=binarylane"], "{}|ports: [{port: 53, protocol: UDP}]", REFUSED,
        "refused UnsupportedServicePort", "53/UDP", "Use port 80 or 443"),
    ("a network that is none", CLOUDSCALE, "{}|loadBalancerSourceRanges: [10.0.0.1/33]", REFUSED, "refused UnsupportedField",
        "10.0.0.1/33", "Change the field"),
    ("manifests that cannot be read", CLOUDSCALE, "a: [\n", UNREADABLE, "", "stdin: line 1: this is not YAML", "correct this first"),
    ("a file that is not there", &["-f", "/nowhere/at-all"], "{}|", UNREADABLE, "", "/nowhere/at-all: No such file",
        "give -f a file with manifests"),
    ("a cloud that there is not", &["--cloud-provider=nimbus"], "{}|", CALL, "", "unknown cloud provider \"nimbus\"",
        "there are binarylane, brightbox, cloudlycke, cloudscale"),
    ("a Service that names no cloud", &[], "{}|", WHICH, "", "default/web: nothing in it names a cloud", "with --cloud-provider"),
    ("a flag that there is not", &["--cloud-providr=cloudscale"], "{}|", CALL, "", "unexpected argument '--cloud-providr'", "try '--help'"),
];

async fn lint(manifest: &str, flags: &[&str]) -> Output {
    let place = Place::new();
    let mut command = tokio::process::Command::from(place.command(Path::new(PROGRAM)));
    command.args(["lint", "-f", "-"]).args(flags);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end before it has read anything.
    let _ = child.stdin.take().unwrap().write_all(manifest.as_bytes()).await;
    child.wait_with_output().await.unwrap()
}

#[tokio::test]
async fn lint_names_what_is_wrong_with_its_fix_and_nothing_else() {
    assert!(LINTS.len() >= 10);
    for (case, flags, manifest, means, finding, what, fix) in LINTS {
        let manifest = match manifest.split_once('|') {
            None => (*manifest).to_owned(),
            Some((annotations, spec)) => {
                let ports = if spec.contains("ports:") { "" } else { "ports: [{port: 80}], " };
                format!(
                    "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  annotations: {annotations}\nspec: \
                     {{type: LoadBalancer, {ports}{spec}}}\n"
                )
            }
        };
        let output = lint(&manifest, flags).await;
        let words = said(&output);
        assert_eq!(output.status.code(), Some(documented("lint", means)), "{case}: {words}");
        assert!(words.contains(what) && words.contains(fix), "{case}: {words}");
        if let Some((level, reason)) = finding.split_once(' ') {
            assert!(words.contains("\n  fix: "), "{case}: {words}");
            let output = lint(&manifest, &[flags, &["--output=json"][..]].concat()).await;
            assert_eq!(output.status.code(), Some(documented("lint", means)), "{case}: {words}");
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            let [one] = found["findings"].as_array().unwrap().as_slice() else { panic!("{case}: {found:#}") };
            assert_eq!(
                (&one["level"], one["reason"].as_str().unwrap_or_default()),
                (&json!(level), reason),
                "{case}: {found:#}"
            );
            assert!(one["message"].as_str().unwrap().contains(what), "{case}: {found:#}");
            assert!(one["fix"].as_str().unwrap().contains(fix), "{case}: {found:#}");
        }
    }
}
