//! `cargo xtask chart`: the plain manifests in `deploy/` and the snapshots beside its test values, which helm makes from the
//! chart. The rules of its roles come from the code's table of rights; `cargo xtask docs` writes them.

pub(crate) mod values;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use lexopt::prelude::*;
use serde_json::Value;

use crate::stages::Outcome;
use crate::workspace::Workspace;
use crate::{Result, Verdict};

const CHART: &str = "charts/cloudberth";
/// What is made must do for the oldest Kubernetes that is promised.
const VERSION: [&str; 2] = ["--kube-version", kube_assets::OLDEST];
/// Value files that must be refused. The first line says by which words.
const REFUSED: &str = "charts/cloudberth/ci/refused/";
const SAYS: &str = "# says: ";
/// The job that the alerting rules and the dashboard ask for.
const JOB: &str = "cloudberth";

/// A value file, and the file that has what the chart makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rendering {
    values: String,
    output: String,
    namespace: &'static str,
    /// The comment at the top of the values goes on top of the output: it is for people who apply it.
    titled: bool,
}

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut check = false;
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("check") => check = true,
            other => return Err(other.unexpected().to_string()),
        }
    }
    let helm = Helm::provide(workspace)?;
    if !check {
        for rendering in renderings(workspace)? {
            write(workspace, &rendering.output, &render(&helm, workspace, &rendering)?)?;
        }
    }
    let outcome = examine(&helm, workspace)?;
    for problem in &outcome.problems {
        println!("{problem}");
    }
    println!("{} checks, {} problems", outcome.tally.passed + outcome.tally.failed, outcome.problems.len());
    Ok(if outcome.problems.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// The stage of the suite. Every value file counts as a test.
pub(crate) fn stage(workspace: &Workspace) -> Result<Outcome> {
    examine(&Helm::provide(workspace)?, workspace)
}

fn examine(helm: &Helm, workspace: &Workspace) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut enter = |problem: Option<String>| match problem {
        None => outcome.tally.passed += 1,
        Some(problem) => {
            outcome.tally.failed += 1;
            outcome.problems.push(problem);
        }
    };
    enter(version_problem(&workspace.read(&format!("{CHART}/Chart.yaml"))?));
    for rendering in renderings(workspace)? {
        let made = render(helm, workspace, &rendering)?;
        enter(monitor_problem(&rendering.output, &made)?);
        enter(stale(workspace, &rendering.output, &made));
        enter(lint_problem(helm, &rendering.values)?);
    }
    for file in yaml_under(workspace, REFUSED)? {
        let text = workspace.read(&file)?;
        let made = helm.run(&["template", "cloudberth", CHART, VERSION[0], VERSION[1], "--values", &file])?;
        enter(refusal_problem(&file, &text, made.status.success(), &String::from_utf8_lossy(&made.stderr)));
    }
    Ok(outcome)
}

/// The chart is released with the program, under the same number.
fn version_problem(chart: &str) -> Option<String> {
    let here = env!("CARGO_PKG_VERSION");
    let field = |name: &str| {
        let line = chart.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    let wrong = ["version:", "appVersion:"].into_iter().find(|name| field(name).as_deref() != Some(here))?;
    Some(format!("{CHART}/Chart.yaml: {wrong} is not {here}, the version of the workspace"))
}

fn stale(workspace: &Workspace, file: &str, want: &str) -> Option<String> {
    let is = workspace.read(file).unwrap_or_default();
    (is != want).then(|| format!("{file}: out of date; run `cargo xtask chart`"))
}

/// A monitor whose metrics no rule and no panel would find: the Prometheus operator makes up a job name of its own.
fn monitor_problem(file: &str, rendered: &str) -> Result<Option<String>> {
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(rendered).map_err(|why| format!("{file}: {why}"))?;
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let monitors =
        objects.iter().filter(|one| one["kind"].as_str().is_some_and(|kind| kind.ends_with("Monitor")));
    let endpoints = monitors.flat_map(|one| {
        [list(&one["spec"], "endpoints"), list(&one["spec"], "podMetricsEndpoints")].concat()
    });
    // The cluster manager for Rancher has no TLS, and no rules.
    let ours = endpoints.filter(|endpoint| endpoint["port"] == "https");
    let job = |endpoint: &Value| {
        let rules = list(endpoint, "relabelings").into_iter();
        rules
            .filter(|rule| rule["targetLabel"] == "job")
            .filter_map(|rule| Some(rule.get("replacement")?.as_str()?.to_owned()))
            .next_back()
    };
    let wrong =
        |endpoint: &Value| (endpoint["path"] == "/metrics") != (job(endpoint).as_deref() == Some(JOB));
    let mut wrong = ours.filter(wrong);
    Ok(wrong.next().map(|one| {
        let path = one.get("path").and_then(Value::as_str).unwrap_or_default();
        format!("{file}: {path} has the job {:?}; the rules ask for {JOB}, once a pod", job(&one))
    }))
}

fn lint_problem(helm: &Helm, values: &str) -> Result<Option<String>> {
    let ran =
        helm.run(&["lint", "--strict", "--quiet", CHART, VERSION[0], VERSION[1], "--values", values])?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let failed = || format!("helm lint with {values}: {}\n{}", said(&ran.stdout), said(&ran.stderr));
    Ok((!ran.status.success()).then(failed))
}

/// What is wrong with how values were refused.
fn refusal_problem(file: &str, values: &str, accepted: bool, said: &str) -> Option<String> {
    let Some(words) = values.lines().next().and_then(|line| line.strip_prefix(SAYS)) else {
        return Some(format!(
            "{file}: its first line does not say the words of the refusal, as in `{SAYS}WORDS`"
        ));
    };
    if accepted {
        return Some(format!("{file}: was not refused"));
    }
    (!said.contains(words))
        .then(|| format!("{file}: was refused without the words {words:?}: {}", said.trim()))
}

/// Every value file that has an output: those of `deploy/`, and those that try out the rest of the chart.
fn renderings(workspace: &Workspace) -> Result<Vec<Rendering>> {
    Ok(workspace.files("yaml")?.iter().filter_map(|file| rendering(file)).collect())
}

fn rendering(file: &str) -> Option<Rendering> {
    let values = file.to_owned();
    if let Some(name) = file.strip_prefix("deploy/").and_then(|rest| rest.strip_suffix("/values.yaml")) {
        let output = format!("deploy/{name}/manifest.yaml");
        let namespace = if name == "rancher-fip" { "rancher-fip-manager" } else { "kube-system" };
        return Some(Rendering { values, output, namespace, titled: true });
    }
    let name = file.strip_prefix("charts/cloudberth/ci/")?.strip_suffix("-values.yaml")?;
    let output = format!("charts/cloudberth/ci/{name}-rendered.yaml");
    Some(Rendering { values, output, namespace: "cloudberth", titled: false })
}

fn yaml_under(workspace: &Workspace, folder: &str) -> Result<Vec<String>> {
    Ok(workspace.files("yaml")?.into_iter().filter(|file| file.starts_with(folder)).collect())
}

fn render(helm: &Helm, workspace: &Workspace, rendering: &Rendering) -> Result<String> {
    let Rendering { values, namespace, titled, .. } = rendering;
    let made = helm.run(&[
        "template",
        "cloudberth",
        CHART,
        VERSION[0],
        VERSION[1],
        "--namespace",
        namespace,
        "--values",
        values,
    ])?;
    if !made.status.success() {
        return Err(format!("helm template with {values}: {}", String::from_utf8_lossy(&made.stderr).trim()));
    }
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    let title = if *titled { title(&workspace.read(values)?) } else { String::new() };
    Ok(format!(
        "{title}# Written by `cargo xtask chart` from {values}; change the chart, not this file.\n{text}"
    ))
}

/// The comment at the top of a file.
fn title(values: &str) -> String {
    values.lines().take_while(|line| line.starts_with('#')).flat_map(|line| [line, "\n"]).collect()
}

fn write(workspace: &Workspace, file: &str, text: &str) -> Result<()> {
    if workspace.read(file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let path = workspace.path(file);
    fs::write(&path, text).map_err(|why| format!("{}: {why}", path.display()))?;
    println!("wrote {file}");
    Ok(())
}

/// helm, at the root of the workspace.
#[derive(Debug)]
struct Helm {
    program: PathBuf,
    root: PathBuf,
}

impl Helm {
    fn provide(workspace: &Workspace) -> Result<Self> {
        let program = kube_assets::helm(&mut |line| eprintln!("   {line}")).map_err(|why| why.to_string())?;
        Ok(Self { program, root: workspace.path("") })
    }

    fn run(&self, args: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.program);
        // Nothing but the chart and the values may change what it makes.
        command.args(args).current_dir(&self.root).env_clear().env("HOME", self.root.join("target"));
        command.output().map_err(|why| format!("{}: {why}", self.program.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_files_have_their_outputs() {
        let table = [
            ("deploy/cloudscale/values.yaml", Some(("deploy/cloudscale/manifest.yaml", "kube-system", true))),
            (
                "deploy/rancher-fip/values.yaml",
                Some(("deploy/rancher-fip/manifest.yaml", "rancher-fip-manager", true)),
            ),
            (
                "charts/cloudberth/ci/several-values.yaml",
                Some(("charts/cloudberth/ci/several-rendered.yaml", "cloudberth", false)),
            ),
            ("charts/cloudberth/values.yaml", None),
            ("deploy/cloudscale/kustomization.yaml", None),
            ("charts/cloudberth/ci/refused/no-cloud.yaml", None),
        ];
        for (file, want) in table {
            let found = rendering(file);
            let found = found.as_ref().map(|one| (one.output.as_str(), one.namespace, one.titled));
            assert_eq!(found, want, "{file}");
        }
    }

    #[test]
    fn a_monitor_has_the_job_that_the_rules_ask_for() {
        let monitor = |job: &str, path: &str| {
            format!(
                "kind: Service\n---\nkind: PodMonitor\nspec:\n  podMetricsEndpoints:\n  - port: https\n    path: {path}\n    \
                 relabelings: [{{targetLabel: job, replacement: {job}}}]\n  - port: http\n    path: /metrics\n"
            )
        };
        let table = [
            (monitor(JOB, "/metrics"), false),
            (monitor("other", "/metrics"), true),
            (monitor("other", "/metrics/slis"), false),
            (monitor(JOB, "/metrics/slis"), true),
            ("kind: ServiceMonitor\nspec: {endpoints: [{port: https, path: /metrics}]}\n".to_owned(), true),
            ("kind: Service\n".to_owned(), false),
        ];
        for (rendered, wrong) in table {
            let found = monitor_problem("a.yaml", &rendered).unwrap();
            assert_eq!(found.is_some(), wrong, "{found:?} {rendered}");
        }
        let rules = Workspace::find().unwrap().read("deploy/monitoring/rules.yaml").unwrap();
        assert!(rules.contains(&format!("job=\"{JOB}\"")), "{rules}");
    }

    #[test]
    fn a_refusal_must_say_why() {
        let values = "# says: replicaCount\nreplicaCount: 2\n";
        let table = [
            (values, false, "Error: additional properties 'replicaCount' not allowed", None),
            (values, false, "Error: no helm", Some("without the words")),
            (values, true, "", Some("was not refused")),
            ("replicaCount: 2\n", false, "replicaCount", Some("first line")),
        ];
        for (values, accepted, said, want) in table {
            let found = refusal_problem("a.yaml", values, accepted, said);
            assert_eq!(found.is_some(), want.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(want.unwrap_or_default()), "{said}");
        }
    }

    #[test]
    fn the_chart_has_the_version_of_the_workspace() {
        let here = env!("CARGO_PKG_VERSION");
        assert_eq!(version_problem(&format!("version: {here}\nappVersion: \"{here}\"\n")), None);
        for (version, app) in [("9.9.9", here), (here, "9.9.9")] {
            let chart = format!("version: {version}\nappVersion: \"{app}\"\n");
            assert!(version_problem(&chart).is_some(), "{chart}");
        }
    }

    #[test]
    fn the_title_is_the_first_comment() {
        assert_eq!(title("# One.\n# Two.\n\n# not this\na: b\n"), "# One.\n# Two.\n");
    }
}
