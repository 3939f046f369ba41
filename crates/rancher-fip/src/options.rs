//! Flags and environment, as the Go program reads them.
//!
//! One or two dashes; `--flag=value`, or `--flag value` except for switches; the first word that is no flag ends the flags,
//! and what follows is ignored.

use std::{fmt::Write as _, net::SocketAddr, path::PathBuf, time::Duration};

use cloudberth_http::Env;
use tracing::level_filters::LevelFilter;

use crate::settings::{DELAY_FLAGS, Delays};

/// The exit code for a mistake in the flags, as the Go program has it.
pub const EXIT_USAGE: u8 = 2;

/// What the program was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To run with these options.
    Run(Box<Options>),
    /// To print this help and end with 0.
    Help(String),
    /// To print this to stderr and end with [`EXIT_USAGE`].
    Mistake(String),
}

/// How the plan is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// The options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the configuration and the CA are.
    pub app_namespace: String,
    /// Whether a Lease decides who works.
    pub leader_elect: bool,
    /// The name of the Lease.
    pub lease_name: String,
    /// Its namespace.
    pub lease_namespace: String,
    /// The context of the kubeconfig; empty for the current one.
    pub context: String,
    /// The kubeconfig; empty to look around.
    pub kubeconfig: String,
    /// The Helm program.
    pub helm: PathBuf,
    /// Where health and metrics are served; none to serve nothing.
    pub serve: Option<SocketAddr>,
    /// Whether the log is JSON.
    pub json_log: bool,
    /// How many clusters are worked on at once.
    pub workers: usize,
    /// How many Helm processes run at once.
    pub helm_processes: usize,
    /// The plan's form.
    pub output: Output,
    /// Every delay.
    pub delays: Delays,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            app_namespace: "rancher-fip-manager".to_owned(),
            leader_elect: true,
            lease_name: "rancher-fip-cluster-manager-lock".to_owned(),
            lease_namespace: "rancher-fip-manager".to_owned(),
            context: String::new(),
            kubeconfig: String::new(),
            helm: PathBuf::from("helm"),
            serve: Some(SocketAddr::from(([0, 0, 0, 0], 8080))),
            json_log: false,
            workers: 32,
            helm_processes: 4,
            output: Output::Text,
            delays: Delays::default(),
        }
    }
}

/// Name, value for the help, and what it is for.
const FLAGS: &[(&str, &str, &str)] = &[
    (
        "app-namespace",
        "string",
        "Namespace of the ConfigMap rancher-fip-config and the optional Secret cacerts.",
    ),
    ("leader-elect", "", "Use a Lease, so that one of several replicas works."),
    ("lease-lock-name", "string", "Name of the Lease."),
    ("lease-lock-namespace", "string", "Namespace of the Lease."),
    ("kubecontext", "string", "Context of the kubeconfig; the current one by default."),
    (
        "kubeconfig",
        "path",
        "Kubeconfig of the management cluster; before KUBECONFIG, the pod's account and ~/.kube/config.",
    ),
    ("helm", "path", "The helm program."),
    (
        "serve-address",
        "address",
        "Where /healthz, /readyz and /metrics are served over HTTP, such as :8080; 0 for nowhere.",
    ),
    ("log-format", "text|json", "The form of the log."),
    ("concurrent-clusters", "number", "How many clusters are worked on at once."),
    ("concurrent-helm", "number", "How many helm processes run at once."),
    ("output", "text|json", "The form of the plan; only for plan."),
];

/// Reads the arguments that follow the name `program`.
pub fn parse(program: &str, args: impl IntoIterator<Item = String>) -> Request {
    let mut options = Options::default();
    let mut args = args.into_iter();
    let mut mistakes = Vec::new();
    while let Some(arg) = args.next() {
        let Some(flag) = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-')).filter(|_| arg.len() > 1)
        else {
            break;
        };
        if flag.is_empty() {
            break;
        }
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        if matches!(name, "h" | "help") {
            return Request::Help(usage(program));
        }
        if name == "leader-elect" {
            match boolean(value.as_deref().unwrap_or("true")) {
                Some(value) => options.leader_elect = value,
                None => mistakes
                    .push(format!("invalid boolean value {:?} for -{name}", value.unwrap_or_default())),
            }
            continue;
        }
        let known =
            FLAGS.iter().any(|(flag, ..)| *flag == name) || DELAY_FLAGS.iter().any(|(flag, _)| *flag == name);
        if !known {
            mistakes.push(format!("flag provided but not defined: -{name}"));
            continue;
        }
        match value.or_else(|| args.next()) {
            Some(value) => mistakes.extend(set(&mut options, name, &value).err()),
            None => mistakes.push(format!("flag needs an argument: -{name}")),
        }
    }
    if mistakes.is_empty() {
        return Request::Run(Box::new(options));
    }
    Request::Mistake(format!("{}\n{}", mistakes.join("\n"), usage(program)))
}

fn set(options: &mut Options, name: &str, value: &str) -> Result<(), String> {
    let wrong = |why: &str| format!("invalid value {value:?} for flag -{name}: {why}");
    let count =
        || value.parse().ok().filter(|count| *count > 0).ok_or_else(|| wrong("it must be a number from 1"));
    match name {
        "app-namespace" => value.clone_into(&mut options.app_namespace),
        "lease-lock-name" => value.clone_into(&mut options.lease_name),
        "lease-lock-namespace" => value.clone_into(&mut options.lease_namespace),
        "kubecontext" => value.clone_into(&mut options.context),
        "kubeconfig" => value.clone_into(&mut options.kubeconfig),
        "helm" => options.helm = PathBuf::from(value),
        "serve-address" => {
            options.serve = address(value).map_err(|_| wrong("it must be an address such as :8080, or 0"))?;
        }
        "log-format" | "output" => {
            let json = match value {
                "text" => false,
                "json" => true,
                _ => return Err(wrong("it must be text or json")),
            };
            if name == "output" {
                options.output = if json { Output::Json } else { Output::Text };
            } else {
                options.json_log = json;
            }
        }
        "concurrent-clusters" => options.workers = count()?,
        "concurrent-helm" => options.helm_processes = count()?,
        delay => {
            let parsed = duration(value).ok_or_else(|| wrong("it must be a duration such as 90s or 10m"))?;
            if let Some(place) = options.delays.by_flag(delay) {
                *place = parsed;
            }
        }
    }
    Ok(())
}

/// The words that Go takes for a switch.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn duration(text: &str) -> Option<Duration> {
    let parsed: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(parsed).ok()
}

/// An address; none for `0`.
fn address(text: &str) -> Result<Option<SocketAddr>, std::net::AddrParseError> {
    if text == "0" {
        return Ok(None);
    }
    let full = text.strip_prefix(':').map_or_else(|| text.to_owned(), |port| format!("0.0.0.0:{port}"));
    full.parse().map(Some)
}

fn usage(program: &str) -> String {
    let mut text = format!("Usage of {program}:\n");
    let defaults = Options::default();
    let default = |name: &str| match name {
        "app-namespace" => defaults.app_namespace.clone(),
        "leader-elect" => defaults.leader_elect.to_string(),
        "lease-lock-name" => defaults.lease_name.clone(),
        "lease-lock-namespace" => defaults.lease_namespace.clone(),
        "helm" => defaults.helm.display().to_string(),
        "serve-address" => ":8080".to_owned(),
        "log-format" | "output" => "text".to_owned(),
        "concurrent-clusters" => defaults.workers.to_string(),
        "concurrent-helm" => defaults.helm_processes.to_string(),
        _ => String::new(),
    };
    for (name, value, about) in FLAGS {
        let default = default(name);
        let default = if default.is_empty() { default } else { format!(" (default {default})") };
        let _ = writeln!(text, "  -{name} {value}\n    \t{about}{default}");
    }
    let mut delays = defaults.delays;
    for (name, about) in DELAY_FLAGS {
        let default = delays.by_flag(name).map(|delay| format!("{delay:?}")).unwrap_or_default();
        let _ = writeln!(text, "  -{name} duration\n    \t{} (default {default})", about.trim());
    }
    text
}

/// The flags as a table for the reference.
pub fn markdown() -> String {
    let mut text = String::from("| flag | default | meaning |\n|---|---|---|\n");
    let help = usage("x");
    let mut lines = help.lines().skip(1);
    while let (Some(flag), Some(about)) = (lines.next(), lines.next()) {
        let name = flag.trim().trim_start_matches('-').split(' ').next().unwrap_or_default();
        let (about, default) = about.trim().rsplit_once(" (default ").unwrap_or((about.trim(), ")"));
        let default = default.trim_end_matches(')');
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        let _ = writeln!(text, "| `--{name}` | {default} | {} |", about.replace('|', "\\|"));
    }
    text
}

/// What `LOGLEVEL` asks for, and whether it is worth a warning. Only an unset variable is none.
pub fn log_level(value: Option<&str>) -> (LevelFilter, bool) {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("info") => (LevelFilter::INFO, false),
        Some("panic" | "fatal" | "error") => (LevelFilter::ERROR, false),
        Some("warn" | "warning") => (LevelFilter::WARN, false),
        Some("debug") => (LevelFilter::DEBUG, false),
        Some("trace") => (LevelFilter::TRACE, false),
        Some(_) => (LevelFilter::INFO, true),
    }
}

/// Where the kubeconfig of the management cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In these files, the first of which counts where several say something.
    Files(Vec<PathBuf>),
    /// The account of the pod.
    InCluster,
}

impl Source {
    /// What is odd about choosing this context there.
    pub fn odd(&self, context: &str) -> Option<&'static str> {
        let ignored = *self == Self::InCluster && !context.is_empty();
        ignored.then_some("--kubecontext has no effect: the account of the pod is used")
    }
}

/// Where to look: `--kubeconfig`, then `KUBECONFIG`, then the pod's account, then the home directory.
pub fn source(flag: &str, env: &Env, in_cluster: bool) -> Source {
    let files =
        |text: &str| text.split(':').filter(|part| !part.is_empty()).map(PathBuf::from).collect::<Vec<_>>();
    let from_env = files(env.get("KUBECONFIG").unwrap_or_default());
    if !flag.is_empty() {
        Source::Files(vec![PathBuf::from(flag)])
    } else if !from_env.is_empty() {
        Source::Files(from_env)
    } else if in_cluster {
        Source::InCluster
    } else {
        Source::Files(vec![PathBuf::from(env.get("HOME").unwrap_or_default()).join(".kube/config")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str]) -> Options {
        match parse("p", args.iter().map(|arg| (*arg).to_owned())) {
            Request::Run(options) => *options,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    #[test]
    fn without_flags_everything_has_its_default() {
        let options = run(&[]);
        let lease = (options.lease_namespace.as_str(), options.lease_name.as_str());
        assert_eq!(lease, ("rancher-fip-manager", "rancher-fip-cluster-manager-lock"), "RF-1");
        assert!(options.leader_elect && options.app_namespace == "rancher-fip-manager", "RF-1");
        assert_eq!(options.serve.unwrap().port(), 8080, "RF-194");
    }

    #[test]
    fn flags_are_read_as_go_reads_them() {
        for off in [
            &["-leader-elect=0"][..],
            &["--leader-elect=False"],
            &["--leader-elect=f"],
            &["-leader-elect=false"],
        ] {
            assert!(!run(off).leader_elect, "RF-2 RF-3 {off:?}");
        }
        for on in [
            &["--leader-elect", "false"][..],
            &["stray", "--leader-elect=false"],
            &["-", "--leader-elect=0"],
            &["--", "--leader-elect=0"],
        ] {
            assert!(run(on).leader_elect, "RF-199 {on:?}");
        }
        let options = run(&[
            "--app-namespace=foo",
            "-lease-lock-name",
            "lock",
            "--kubecontext",
            "x",
            "--kubeconfig=/k",
        ]);
        assert_eq!(
            (options.app_namespace.as_str(), options.lease_namespace.as_str()),
            ("foo", "rancher-fip-manager"),
            "RF-11"
        );
        assert_eq!(
            (options.lease_name.as_str(), options.context.as_str(), options.kubeconfig.as_str()),
            ("lock", "x", "/k"),
            "RF-6"
        );
        let chart = run(&[
            "--leader-elect=true",
            "--app-namespace=fip",
            "--lease-lock-namespace=fip",
            "--lease-lock-name=x-lock",
        ]);
        assert_eq!((chart.app_namespace.as_str(), chart.lease_namespace.as_str()), ("fip", "fip"), "RF-226");
        let ours = run(&[
            "--resync-period=90s",
            "--retry-soon",
            "500ms",
            "--serve-address=0",
            "--helm=/bin/helm",
            "--concurrent-helm=2",
        ]);
        assert_eq!((ours.delays.resync.as_secs(), ours.delays.soon.as_millis()), (90, 500));
        assert_eq!((ours.serve, ours.helm_processes), (None, 2));
    }

    #[test]
    fn mistakes_are_told_together_with_the_usage() {
        let args = [
            "--nope",
            "--leader-elect=maybe",
            "--resync-period=soon",
            "--serve-address=x",
            "--concurrent-helm=0",
            "--kubeconfig",
        ];
        let Request::Mistake(text) = parse("p", args.map(str::to_owned)) else { panic!() };
        for want in [
            "not defined: -nope",
            "boolean value \"maybe\"",
            "\"soon\" for flag -resync-period",
            "-serve-address",
            "-concurrent-helm",
            "needs an argument: -kubeconfig",
            "Usage of p:",
            "-app-namespace",
        ] {
            assert!(text.contains(want), "RF-4 {want}: {text}");
        }
        assert_eq!(EXIT_USAGE, 2, "RF-4");
        for help in ["-h", "--help", "-help"] {
            assert!(
                matches!(parse("p", [help.to_owned()]), Request::Help(text) if text.contains("-resync-period")),
                "{help}"
            );
        }
    }

    #[test]
    fn every_flag_is_in_the_reference() {
        let table = markdown();
        assert_eq!(table.lines().count(), 2 + FLAGS.len() + DELAY_FLAGS.len());
        assert!(
            table.contains(
                "| `--lease-lock-name` | `rancher-fip-cluster-manager-lock` | Name of the Lease. |"
            ),
            "{table}"
        );
    }

    #[test]
    fn the_level_of_the_log_is_a_word_in_any_case() {
        let table = [
            ("RF-8", Some("DEBUG"), (LevelFilter::DEBUG, false)),
            ("RF-8", Some("chatty"), (LevelFilter::INFO, true)),
            ("RF-8", Some(""), (LevelFilter::INFO, true)),
            ("RF-226", Some("Warning"), (LevelFilter::WARN, false)),
            ("not set", None, (LevelFilter::INFO, false)),
            ("panic", Some("panic"), (LevelFilter::ERROR, false)),
        ];
        for (case, value, want) in table {
            assert_eq!(log_level(value), want, "{case} {value:?}");
        }
    }

    #[test]
    fn the_flag_wins_over_the_variable_and_that_over_the_pod() {
        let env = |pairs: &[(&str, &str)]| {
            let owned = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            owned.collect::<Env>()
        };
        let files = |names: &[&str]| Source::Files(names.iter().map(PathBuf::from).collect());
        let both = env(&[("KUBECONFIG", "/a:/b"), ("HOME", "/home/x")]);
        let home = env(&[("HOME", "/home/x"), ("KUBECONFIG", "")]);
        let table = [
            ("RF-5", source("/flag", &both, true), files(&["/flag"])),
            ("RF-5", source("", &both, true), files(&["/a", "/b"])),
            ("RF-1", source("", &home, true), Source::InCluster),
            ("outside", source("", &home, false), files(&["/home/x/.kube/config"])),
        ];
        for (case, got, want) in table {
            assert_eq!(got, want, "{case}");
        }
        assert!(Source::InCluster.odd("x").unwrap().contains("--kubecontext"), "RF-200");
        assert_eq!((Source::InCluster.odd(""), files(&["/a"]).odd("x")), (None, None), "RF-6 RF-200");
    }
}
