//! The flags beside a listing of what the programs replaced have, written down a second time on purpose: a flag that
//! is lost, renamed, moved or changed in the one table does not go unnoticed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{ffi::OsString, path::Path};

use cloudberth_manager::{
    command::{Call, CommandLine, Request},
    flags::{AnyFlag, Flags, Group, Note, markdown},
    options::Known,
    program::Build,
};

/// Group, then name, type and default, as the flag library shows the default.
const LISTING: &str = "
Debugging
  contention-profiling                          bool            false
  profiling                                     bool            true

Leader-migration
  enable-leader-migration                       bool            false
  leader-migration-config                       string

Generic
  allocate-node-cidrs                           bool            false
  allow-untagged-cloud                          bool            false
  cidr-allocator-type                           string          RangeAllocator
  cloud-config                                  string
  cloud-provider                                string
  cluster-cidr                                  string
  cluster-name                                  string          kubernetes
  configure-cloud-routes                        bool            true
  controller-start-interval                     duration        0s
  controllers                                   strings         [*]
  external-cloud-volume-plugin                  string
  feature-gates                                 mapStringBool
  kube-api-burst                                int32           30
  kube-api-content-type                         string          application/vnd.kubernetes.protobuf
  kube-api-qps                                  float32         20
  leader-elect                                  bool            true
  leader-elect-lease-duration                   duration        15s
  leader-elect-renew-deadline                   duration        10s
  leader-elect-resource-lock                    string          leases
  leader-elect-resource-name                    string          cloud-controller-manager
  leader-elect-resource-namespace               string          kube-system
  leader-elect-retry-period                     duration        2s
  min-resync-period                             duration        12h0m0s
  node-sync-period                              duration        0s
  route-reconciliation-period                   duration        10s
  use-service-account-credentials               bool            false

Cloud-node-controller
  concurrent-node-status-updates                int32           0
  concurrent-node-syncs                         int32           1

Cloud-node-lifecycle-controller
  concurrent-node-lifecycle-syncs               int32           1
  node-monitor-period                           duration        5s

Service-lb-controller
  concurrent-service-syncs                      int32           1

Webhook
  webhooks                                      strings         []

Webhook serving
  webhook-bind-address                          ip              0.0.0.0
  webhook-cert-dir                              string
  webhook-disable-http2-serving                 bool            false
  webhook-secure-port                           int             10260
  webhook-tls-cert-file                         string
  webhook-tls-cipher-suites                     strings         []
  webhook-tls-curve-preferences                 int32Slice      []
  webhook-tls-min-version                       string
  webhook-tls-private-key-file                  string
  webhook-tls-sni-cert-key                      namedCertKey    []

Secure serving
  address                                       ip              0.0.0.0
  bind-address                                  ip              0.0.0.0
  cert-dir                                      string
  disable-http2-serving                         bool            false
  http2-max-streams-per-connection              int             0
  permit-address-sharing                        bool            false
  permit-port-sharing                           bool            false
  secure-port                                   int             10258
  tls-cert-file                                 string
  tls-cipher-suites                             strings         []
  tls-curve-preferences                         int32Slice      []
  tls-min-version                               string
  tls-private-key-file                          string
  tls-sni-cert-key                              namedCertKey    []

Authentication
  authentication-kubeconfig                     string
  authentication-skip-lookup                    bool            false
  authentication-token-webhook-cache-ttl        duration        10s
  authentication-tolerate-lookup-failure        bool            false
  client-ca-file                                string
  requestheader-allowed-names                   strings         []
  requestheader-client-ca-file                  string
  requestheader-extra-headers-prefix            strings         [x-remote-extra-]
  requestheader-group-headers                   strings         [x-remote-group]
  requestheader-uid-headers                     strings         []
  requestheader-username-headers                strings         [x-remote-user]

Authorization
  authorization-always-allow-paths              strings         [/healthz,/readyz,/livez]
  authorization-kubeconfig                      string
  authorization-webhook-cache-authorized-ttl    duration        10s
  authorization-webhook-cache-unauthorized-ttl  duration        10s

Misc
  kubeconfig                                    string
  master                                        string
  node-status-update-frequency                  duration        5m0s

Global
  help                                          bool            false
  log-flush-frequency                           duration        5s
  log-json-info-buffer-size                     quantity        0
  log-json-split-stream                         bool            false
  log-text-info-buffer-size                     quantity        0
  log-text-split-stream                         bool            false
  logging-format                                string          text
  v                                             Level           0
  version                                       version         false
  vmodule                                       pattern=N,...

Cloudberth
  default-provider                              string
  dry-run                                       bool            false
  load-balancer-class                           strings         []
  max-node-deletions                            intOrPercent    10%
  output                                        string          text
";

/// Accepted, but not shown.
const HIDDEN: [&str; 3] = ["address", "allow-untagged-cloud", "node-sync-period"];

/// One flag: group, name, type, default.
type Row = [String; 4];

fn listed() -> Vec<Row> {
    let mut group = "";
    let mut rows = Vec::new();
    for line in LISTING.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("  ") {
            None => group = line,
            Some(flag) => {
                let words: Vec<_> = flag.split_whitespace().collect();
                let default = words.get(2).copied().unwrap_or_default();
                rows.push([group, words[0], words[1], default].map(str::to_owned));
            }
        }
    }
    rows
}

fn row(flag: &dyn AnyFlag) -> Row {
    let kind = if flag.type_name().is_empty() { "bool" } else { flag.type_name() };
    [flag.about().group.title(), flag.about().name, kind, &flag.default_text()].map(str::to_owned)
}

fn read(args: &[&str]) -> CommandLine {
    let call = Call {
        preset: None,
        program: "cloud-controller-manager",
        known: Known { providers: &["cloudscale"], webhooks: &[] },
        build: Build { commit: "", date: "", compiler: "", platform: "" },
        width: None,
        read: &|path: &Path| Err(format!("{} cannot be read", path.display())),
    };
    CommandLine::read(&call, args.iter().map(OsString::from))
}

#[test]
fn names_types_defaults_and_groups_are_the_known_ones() {
    let rows: Vec<Row> = Flags::default().all().into_iter().map(row).collect();
    for (got, want) in rows.iter().zip(listed()) {
        assert_eq!(*got, want, "FW-310");
    }
    assert_eq!(rows.len(), listed().len(), "FW-310");
}

#[test]
fn without_arguments_every_value_is_the_default() {
    let read = read(&[]);
    for (flag, [_, name, _, default]) in read.flags.all().into_iter().zip(listed()) {
        assert_eq!(flag.text(), default, "FW-310 {name}");
        assert!(!flag.is_given(), "FW-310 {name}");
    }
}

#[test]
fn help_shows_each_flag_under_its_group_and_hides_the_deprecated() {
    let Request::Print(help) = read(&["--help"]).request else { panic!("no help") };
    let mut group = String::new();
    let mut shown = Vec::new();
    for line in help.lines() {
        if let Some(title) = line.strip_suffix(" flags:") {
            title.clone_into(&mut group);
        } else if let Some((_, flag)) =
            line.get(..8).and_then(|start| start.ends_with("--").then(|| line.split_at(8)))
        {
            shown.push((group.clone(), flag.split_whitespace().next().unwrap().to_owned()));
        }
    }
    let want: Vec<_> = listed()
        .into_iter()
        .filter(|[_, name, ..]| !HIDDEN.contains(&name.as_str()))
        .map(|[group, name, ..]| (group, name))
        .collect();
    assert_eq!(shown, want);
    for flag in Flags::default().all() {
        let hidden = matches!(flag.about().note, Note::Deprecated(_));
        assert_eq!(hidden, HIDDEN.contains(&flag.about().name), "{}", flag.about().name);
    }
}

#[test]
fn every_flag_is_accepted_with_its_default_spelled_out() {
    // A certificate for host names has no empty spelling: it is given or left out.
    for [_, name, _, default] in listed().into_iter().filter(|[_, _, kind, _]| kind != "namedCertKey") {
        let value = default.trim_start_matches('[').trim_end_matches(']');
        let arg = format!("--{}={value}", name.replace('-', "_"));
        let read = read(&["--cloud-provider=cloudscale", &arg]);
        let flag = read.flags.all().into_iter().find(|flag| flag.about().name == name).unwrap();
        let allowed = (name == "cloud-provider").then_some("cannot be empty");
        match read.mistakes.as_slice() {
            [] => assert!(flag.is_given(), "{arg}"),
            [only] => assert!(allowed.is_some_and(|part| only.message().contains(part)), "{arg}: {only}"),
            more => panic!("{arg}: {more:?}"),
        }
        if name != "cloud-provider" {
            assert_eq!(flag.text(), default, "{arg}");
        }
    }
}

#[test]
fn only_limits_that_unset_mean_automatic_are_ceilings() {
    let ceilings: Vec<_> = Flags::default()
        .all()
        .iter()
        .filter(|flag| flag.about().note == Note::Ceiling)
        .map(|flag| flag.about().name)
        .collect();
    let want = [
        "kube-api-burst",
        "kube-api-qps",
        "concurrent-node-status-updates",
        "concurrent-node-syncs",
        "concurrent-node-lifecycle-syncs",
        "concurrent-service-syncs",
    ];
    assert_eq!(ceilings, want);
}

#[test]
fn the_reference_page_names_every_group_and_flag() {
    let page = markdown();
    for group in Group::ALL {
        assert!(page.contains(&format!("\n## {}\n", group.title())));
    }
    for [_, name, ..] in listed() {
        assert_eq!(page.matches(&format!("`--{name}` |")).count(), 1, "{name}");
    }
}
