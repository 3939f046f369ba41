use cloudberth_core::{
    Category, Error,
    lb::ServerVersion,
    provider::{Quota, Start},
    reason::REASONS,
};

use super::*;
use crate::{
    doctor::{ApiServer, CloudFacts, EventFacts, LeaseFacts, NodeFacts, Owner, ServiceFacts, Workload},
    rights::RIGHTS,
    selfcheck::Missing,
};

const NOW: &str = "2026-03-02T04:05:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn before(seconds: i64) -> Option<Timestamp> {
    at(NOW).checked_sub(SignedDuration::from_secs(seconds)).ok()
}

fn cloud() -> CloudFacts {
    CloudFacts {
        name: "alpha".to_owned(),
        mistakes: vec![],
        start: Some(Start::Ready),
        instances: Some(Ok(vec!["alpha://1".to_owned(), "alpha://2".to_owned()])),
        ahead: Some(SignedDuration::from_secs(1)),
        quotas: Ok(vec![Quota { what: "load balancers", used: 3, limit: 100 }]),
    }
}

fn node(name: &str, id: Option<&str>) -> NodeFacts {
    let owner = match id {
        None => Owner::Nobody,
        Some(id) if id.starts_with("alpha://") => Owner::Cloud("alpha".to_owned(), id.to_owned()),
        Some(_) => Owner::Foreign,
    };
    let provider_id = id.map(str::to_owned);
    NodeFacts { name: name.to_owned(), provider_id, owner, uninitialised: false, created: before(3_600) }
}

fn service(name: &str) -> ServiceFacts {
    ServiceFacts {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        created: before(3_600),
        deleting: None,
        has_address: true,
        foreign_class: false,
    }
}

fn lease(name: &str, holder: &str, silent: i64) -> LeaseFacts {
    LeaseFacts {
        namespace: "kube-system".to_owned(),
        name: name.to_owned(),
        holder: holder.to_owned(),
        renewed: before(silent),
        seconds: 15,
    }
}

fn workload(name: &str, image: &str) -> Workload {
    Workload {
        kind: "Deployment",
        namespace: "kube-system".to_owned(),
        name: name.to_owned(),
        runs: vec![image.to_owned()],
    }
}

/// A cluster with which nothing is wrong.
fn healthy() -> Facts {
    let version = Some(ServerVersion::new(1, NEWEST_MINOR));
    Facts {
        now: at(NOW),
        api: Ok(ApiServer {
            version,
            name: "v1.37.1".to_owned(),
            ahead: Some(SignedDuration::from_secs(-1)),
        }),
        token_ends: None,
        rights: vec![],
        rights_unknown: None,
        nodes: Ok(vec![node("a", Some("alpha://1")), node("b", Some("alpha://2"))]),
        services: Ok(vec![service("web")]),
        events: Ok(vec![]),
        leases: Ok(vec![lease("cloud-controller-manager", "host_1", 2), lease("kube-scheduler", "x", 1)]),
        leader_lease: Some("cloud-controller-manager".to_owned()),
        workloads: Ok(vec![
            workload("cloud-controller-manager", "registry.example/cloudberth:1"),
            workload("coredns", "coredns:1"),
        ]),
        clouds: vec![cloud()],
        replaced: vec!["alpha-cloud-controller-manager"],
        reasons: REASONS.to_vec(),
    }
}

fn broken(edit: impl FnOnce(&mut Facts)) -> Report {
    let mut facts = healthy();
    edit(&mut facts);
    judge(&facts)
}

fn edit_cloud(edit: impl FnOnce(&mut CloudFacts)) -> Report {
    broken(|facts| edit(&mut facts.clouds[0]))
}

fn edit_node(edit: impl FnOnce(&mut NodeFacts)) -> Report {
    broken(|facts| edit(&mut facts.nodes.as_mut().unwrap()[0]))
}

fn waiting(edit: impl FnOnce(&mut ServiceFacts), event: Option<(&str, &str)>) -> Report {
    broken(|facts| {
        let service = &mut facts.services.as_mut().unwrap()[0];
        service.has_address = false;
        edit(service);
        let event = event.map(|(reason, message)| EventFacts {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            seen: before(10),
        });
        facts.events = Ok(event.into_iter().collect());
    })
}

#[test]
fn a_healthy_cluster_has_nothing_to_say() {
    let report = judge(&healthy());
    assert_eq!((report.findings.clone(), report.unknown.clone()), (vec![], vec![]));
    assert_eq!(report.exit_code(), 0);
    assert!(report.seen.iter().any(|seen| seen == "host_1 leads"), "{:?}", report.seen);
    assert!(report.to_text().ends_with("Problems: 0. Warnings: 0. Notices: 0. Nothing was written.\n"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_broken_set_up_is_named_with_its_fix() {
    use Severity::{Notice, Problem, Warning};
    let refused = |why: &str| Error::new(Category::Unauthorised, why);
    let missing = Missing { right: RIGHTS[0], verbs: vec!["list"], namespace: String::new() };
    let optional = Missing { right: RIGHTS[7], verbs: vec!["watch"], namespace: "kube-system".to_owned() };
    let ready = |facts: &mut Facts, name: &str| {
        facts.workloads = Ok(vec![workload(name, "x")]);
    };
    let table: Vec<(&str, Report, Severity, &str, &str, &str)> = vec![
        (
            "refused account",
            broken(|f| f.api = Err(refused("Unauthorized"))),
            Problem,
            "token",
            "refuses this account",
            "--kubeconfig",
        ),
        (
            "ended token",
            broken(|f| f.token_ends = before(10)),
            Problem,
            "token",
            "ended at 2026",
            "kubectl create token",
        ),
        (
            "token ends soon",
            broken(|f| f.token_ends = before(-3 * 86_400)),
            Warning,
            "token",
            "in 72 hours",
            "kubectl create token",
        ),
        (
            "old cluster",
            broken(|f| f.api.as_mut().unwrap().version = Some(ServerVersion::new(1, 29))),
            Warning,
            "versions",
            "older than 1.34",
            "Upgrade",
        ),
        (
            "new cluster",
            broken(|f| f.api.as_mut().unwrap().version = Some(ServerVersion::new(1, 38))),
            Notice,
            "versions",
            "newer than 1.37",
            "newer cloudberth",
        ),
        (
            "API clock",
            broken(|f| f.api.as_mut().unwrap().ahead = Some(SignedDuration::from_secs(-95))),
            Warning,
            "clock",
            "95 seconds behind",
            "NTP",
        ),
        (
            "missing right",
            broken(|f| f.rights = vec![missing]),
            Problem,
            "rights",
            "missing right: list nodes",
            "role",
        ),
        ("optional right", broken(|f| f.rights = vec![optional]), Warning, "rights", "watch leases", "role"),
        (
            "no kubelet flag",
            edit_node(|n| (n.owner, n.provider_id) = (Owner::Nobody, None)),
            Problem,
            "kubelets",
            "--cloud-provider=external: a",
            "kubelets",
        ),
        (
            "waiting node",
            edit_node(|n| n.uninitialised = true),
            Problem,
            "nodes",
            "node a has waited for 60 minutes",
            "events of the node",
        ),
        (
            "malformed id",
            edit_node(|n| n.owner = Owner::Malformed("alpha".to_owned())),
            Problem,
            "nodes",
            "cannot be read by alpha",
            "join anew",
        ),
        (
            "foreign node",
            edit_node(|n| n.owner = Owner::Foreign),
            Notice,
            "nodes",
            "left alone: a",
            "--cloud-provider",
        ),
        ("no cloud", broken(|f| f.clouds.clear()), Notice, "cloud", "no cloud was asked", "--cloud-provider"),
        (
            "wrong settings",
            edit_cloud(|c| c.mistakes = vec![Error::user_input("ALPHA_TOKEN is not set")]),
            Problem,
            "cloud",
            "ALPHA_TOKEN is not set",
            "setting",
        ),
        (
            "refused token",
            edit_cloud(|c| c.start = Some(Start::Fatal(refused("401")))),
            Problem,
            "token",
            "alpha refuses",
            "token",
        ),
        (
            "token refused later",
            edit_cloud(|c| c.instances = Some(Err(refused("401")))),
            Problem,
            "token",
            "alpha refuses",
            "token",
        ),
        (
            "another account",
            edit_cloud(|c| c.instances = Some(Ok(vec!["alpha://9".to_owned()]))),
            Problem,
            "token",
            "none of the instances of its nodes: a, b",
            "another account",
        ),
        (
            "a lost instance",
            edit_cloud(|c| c.instances = Some(Ok(vec!["alpha://1".to_owned()]))),
            Warning,
            "nodes",
            "these nodes: b",
            "deleted",
        ),
        (
            "cloud clock",
            edit_cloud(|c| c.ahead = Some(SignedDuration::from_secs(40))),
            Warning,
            "clock",
            "alpha is 40 seconds ahead of",
            "NTP",
        ),
        (
            "no quota left",
            edit_cloud(|c| c.quotas = Ok(vec![Quota { what: "load balancers", used: 5, limit: 5 }])),
            Problem,
            "quota",
            "5 of 5 load balancers",
            "orphans",
        ),
        (
            "little quota left",
            edit_cloud(|c| c.quotas = Ok(vec![Quota { what: "load balancers", used: 91, limit: 100 }])),
            Warning,
            "quota",
            "91 of 100",
            "orphans",
        ),
        (
            "refused Service",
            waiting(|_| (), Some(("InvalidAnnotation", "x: wrong"))),
            Problem,
            "services",
            "for an address: InvalidAnnotation: x: wrong",
            "Correct the annotation",
        ),
        ("silent Service", waiting(|_| (), None), Problem, "services", "no event says why", "leads"),
        (
            "Service that cannot go",
            waiting(|s| s.deleting = before(900), Some(("Odd", "held"))),
            Problem,
            "services",
            "for 15 minutes to be deleted: Odd: held",
            "message",
        ),
        (
            "nobody leads",
            broken(|f| f.leases = Ok(vec![lease("cloud-controller-manager", "h", 300)])),
            Problem,
            "leader",
            "h has been silent for 5 minutes",
            "log",
        ),
        (
            "the program replaced leads",
            broken(|f| {
                f.leases =
                    Ok(vec![lease("cloud-controller-manager", "alpha-cloud-controller-manager-7d-x_1", 2)]);
            }),
            Warning,
            "leader",
            "held by alpha-cloud-controller-manager-7d-x_1",
            "Scale it down",
        ),
        (
            "given back",
            broken(|f| f.leases = Ok(vec![lease("cloud-controller-manager", "", 1)])),
            Problem,
            "leader",
            "given back",
            "log",
        ),
        (
            "nobody yet",
            broken(|f| f.leases = Ok(vec![])),
            Notice,
            "leader",
            "no controller manager has led here yet",
            "Start",
        ),
        (
            "k3s",
            broken(|f| f.leases.as_mut().unwrap().push(lease("k3s-cloud-controller-manager", "h", 1))),
            Warning,
            "others",
            "inside of k3s",
            "--disable-cloud-controller",
        ),
        (
            "servicelb",
            broken(|f| ready(f, "svclb-traefik-1")),
            Warning,
            "others",
            "load balancer inside of k3s",
            "--disable=servicelb",
        ),
        (
            "MetalLB",
            broken(|f| f.workloads = Ok(vec![workload("controller", "quay.io/metallb/controller")])),
            Warning,
            "others",
            "MetalLB",
            "--lb-class",
        ),
        (
            "the program replaced",
            broken(|f| ready(f, "alpha-cloud-controller-manager")),
            Warning,
            "others",
            "which cloudberth replaces",
            "Remove",
        ),
        (
            "another manager",
            broken(|f| ready(f, "hcloud-cloud-controller-manager")),
            Warning,
            "others",
            "another cloud controller manager",
            "another cloud",
        ),
    ];
    for (case, report, severity, check, what, fix) in table {
        let [finding] = report.findings.as_slice() else { panic!("{case}: {:?}", report.findings) };
        assert_eq!((finding.severity, finding.check.name()), (severity, check), "{case}: {finding:?}");
        assert!(finding.what.contains(what), "{case}: {finding:?}");
        assert!(finding.fix.contains(fix), "{case}: {finding:?}");
        assert_eq!(report.exit_code(), u8::from(severity != Notice), "{case}");
        let text = report.to_text();
        assert!(
            text.contains(&finding.what) && text.contains(&format!("\n  fix: {}\n", finding.fix)),
            "{text}"
        );
    }
}

#[test]
fn what_is_young_or_somebody_elses_is_not_worth_a_word() {
    let table = [
        ("a node that just joined", edit_node(|n| (n.uninitialised, n.created) = (true, before(30)))),
        ("a Service that was just made", waiting(|s| s.created = before(30), None)),
        ("of another class", waiting(|s| s.foreign_class = true, Some(("X", "y")))),
        (
            "an old Lease of k3s",
            broken(|f| f.leases.as_mut().unwrap().push(lease("k3s-cloud-controller-manager", "h", 600))),
        ),
        ("a pod's token, which the kubelet renews", broken(|f| f.token_ends = before(-3_600))),
    ];
    for (case, report) in table {
        assert_eq!(report.findings, [], "{case}");
        assert_eq!(report.exit_code(), 0, "{case}");
    }
}

#[test]
fn what_could_not_be_looked_at_is_told_and_is_no_finding() {
    let down = || Error::temporary("connection refused");
    let table = [
        ("L1-2101 the API", broken(|f| f.api = Err(down())), 3),
        ("L1-2102 nodes", broken(|f| f.nodes = Err(down())), 3),
        ("L1-2103 Services", broken(|f| f.services = Err(down())), 3),
        ("L1-2104 rights", broken(|f| f.rights_unknown = Some(down())), 3),
        ("L1-2105 a cloud at its start", edit_cloud(|c| c.start = Some(Start::Later(down()))), 3),
        ("L1-2106 instances", edit_cloud(|c| c.instances = Some(Err(down()))), 3),
        ("events", broken(|f| f.events = Err(down())), 0),
        ("Leases", broken(|f| f.leases = Err(down())), 0),
        ("workloads", broken(|f| f.workloads = Err(down())), 0),
        ("quotas", edit_cloud(|c| c.quotas = Err(down())), 0),
    ];
    for (case, report, want) in table {
        assert_eq!((report.findings.len(), report.unknown.len()), (0, 1), "{case}: {report:?}");
        assert_eq!(report.exit_code(), want, "{case}");
        let text = report.to_text();
        assert!(text.contains("connection refused\n  fix: See whether"), "{case}: {text}");
    }
}

#[test]
fn the_worst_comes_first() {
    let report = broken(|facts| {
        facts.clouds.clear();
        facts.token_ends = before(-3 * 86_400);
        facts.nodes.as_mut().unwrap()[0] = node("a", None);
    });
    let severities: Vec<_> = report.findings.iter().map(|finding| finding.severity).collect();
    assert!(severities.is_sorted() && severities.len() == 3, "{severities:?}");
    assert_eq!(report.exit_code(), 1);
}

#[test]
fn the_report_for_scripts_stays_as_it_is() {
    let report = broken(|facts| {
        facts.token_ends = before(10);
        facts.events = Err(Error::new(Category::Unauthorised, "events is forbidden"));
    });
    let want = r#"{
  "findings": [
    {
      "severity": "problem",
      "check": "token",
      "what": "the token for the Kubernetes API ended at 2026-03-02T04:04:50Z",
      "fix": "Make a new one, such as with kubectl create token, and put it into the kubeconfig."
    }
  ],
  "unknown": [
    {
      "check": "events",
      "why": "events is forbidden",
      "matters": false,
      "fix": "Run it with a kubeconfig whose account may list this, such as an administrator's."
    }
  ],
  "seen": [
    "Kubernetes v1.37.1",
    "2 instances in alpha",
    "3 of 100 load balancers in alpha",
    "2 nodes",
    "1 Services with a load balancer",
    "host_1 leads"
  ]
}
"#;
    assert_eq!(report.to_json(), want);
}
