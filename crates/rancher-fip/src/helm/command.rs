//! How Helm is called: arguments and environment, as pure functions.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{ChartRef, HelmAction};

/// Environment variables.
pub(super) type Variables = BTreeMap<OsString, OsString>;

/// Where Helm finds a chart: what goes in front of all other arguments about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Located {
    /// The chart argument.
    pub(super) chart: OsString,
    /// The repository to find it in.
    pub(super) repo: Option<String>,
    /// The repository whose index has to be fetched first.
    pub(super) update: Option<String>,
}

/// What is the same for every call of a run.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) timeout: Duration,
    pub(super) history: u32,
    pub(super) kubeconfig: PathBuf,
    /// The values file, if there are values.
    pub(super) values: Option<PathBuf>,
}

/// The arguments that carry out `action`.
pub(super) fn arguments(
    chart: &ChartRef,
    located: &Located,
    action: HelmAction,
    common: &Common,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = match action {
        HelmAction::Install | HelmAction::Upgrade => vec!["upgrade".into(), (&chart.release).into()],
        HelmAction::InstallReplace => vec!["install".into(), (&chart.release).into()],
        HelmAction::Rollback { to } => {
            vec!["rollback".into(), (&chart.release).into(), to.to_string().into()]
        }
        HelmAction::Uninstall => vec!["uninstall".into(), (&chart.release).into()],
    };
    match action {
        HelmAction::Install | HelmAction::Upgrade => {
            args.extend(located.arguments(chart));
            args.push("--install".into());
        }
        HelmAction::InstallReplace => {
            args.extend(located.arguments(chart));
            args.push("--replace".into());
        }
        HelmAction::Rollback { .. } | HelmAction::Uninstall => {}
    }
    if matches!(action, HelmAction::Install | HelmAction::Upgrade | HelmAction::InstallReplace) {
        if let Some(values) = &common.values {
            args.push(flag("--values", values));
        }
        if let Some(hash) = chart.values_hash() {
            args.push(flag("--description", super::values::description(&hash)));
        }
    }
    if matches!(action, HelmAction::Install | HelmAction::Upgrade | HelmAction::Rollback { .. }) {
        args.push(format!("--history-max={}", common.history).into());
    }
    args.push("--wait".into());
    args.push(format!("--timeout={}", go_duration(common.timeout)).into());
    args.push(flag("--namespace", &chart.namespace));
    args.push(flag("--kubeconfig", &common.kubeconfig));
    args
}

/// The arguments that ask a chart's source for its version.
pub(super) fn resolve(chart: &ChartRef, located: &Located) -> Vec<OsString> {
    let mut args = vec![OsString::from("show"), "chart".into()];
    args.extend(located.arguments(chart));
    args
}

impl Located {
    fn arguments(&self, chart: &ChartRef) -> Vec<OsString> {
        let mut args = vec![self.chart.clone()];
        args.extend(self.repo.as_ref().map(|repo| flag("--repo", repo)));
        args.extend((!chart.version.is_empty()).then(|| flag("--version", &chart.version)));
        args
    }
}

/// In one word, so that no value is ever taken for a flag.
fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
}

/// As Go reads it.
fn go_duration(time: Duration) -> String {
    if time.subsec_millis() == 0 { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }
}

/// The files of an operator that private directories would hide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OperatorFiles {
    /// Registry logins.
    pub(super) registry: Option<PathBuf>,
    /// Named repositories.
    pub(super) repositories: Option<PathBuf>,
}

impl OperatorFiles {
    /// Those that the environment names, or that `exists` in Helm's usual place. Relative ones are relative to `directory`.
    pub(super) fn find(ours: &Variables, directory: &Path, exists: impl Fn(&Path) -> bool) -> Self {
        let set = |name: &str| ours.get(OsStr::new(name)).filter(|value| !value.is_empty());
        let home = set("HELM_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CONFIG_HOME").map(|dir| Path::new(dir).join("helm")))
            .or_else(|| set("HOME").map(|home| Path::new(home).join(".config/helm")));
        let find = |variable: &str, usual: &str| match set(variable) {
            Some(path) => Some(directory.join(path)),
            None => home.as_ref().map(|home| directory.join(home).join(usual)).filter(|path| exists(path)),
        };
        Self {
            registry: find("HELM_REGISTRY_CONFIG", "registry/config.json"),
            repositories: find("HELM_REPOSITORY_CONFIG", "repositories.yaml"),
        }
    }
}

/// The environment of Helm: ours, without everything that would lead it to another cluster, another namespace or another
/// program's files. Certificates, proxies and Docker's logins stay.
pub(super) fn environment(ours: &Variables, home: &Path, files: &OperatorFiles) -> Variables {
    let kept = |name: &OsStr| {
        let name = name.to_string_lossy();
        !(name.starts_with("HELM_") || name == "KUBECONFIG" || name.starts_with("KUBERNETES_SERVICE_"))
    };
    let mut theirs: Variables = ours
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, dir) in
        [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
    {
        theirs.insert(name.into(), home.join(dir).into());
    }
    theirs.insert("HELM_DRIVER".into(), "secret".into());
    for (name, file) in
        [("HELM_REGISTRY_CONFIG", &files.registry), ("HELM_REPOSITORY_CONFIG", &files.repositories)]
    {
        if let Some(file) = file {
            theirs.insert(name.into(), file.into());
        }
    }
    theirs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(values: bool) -> Common {
        Common {
            timeout: Duration::from_secs(600),
            history: 10,
            kubeconfig: "/p/kubeconfig".into(),
            values: values.then(|| "/p/values.yaml".into()),
        }
    }

    fn words(args: &[OsString]) -> String {
        args.iter().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    const TAIL: &str = "--wait --timeout=600s --namespace=fip --kubeconfig=/p/kubeconfig";

    #[test]
    fn every_action_is_one_call() {
        let chart = |reference: &str, version: &str, values: &str| {
            ChartRef::new("lb", reference, version, "fip", values)
        };
        let oci = Located { chart: "oci://r/p/lb".into(), repo: None, update: None };
        let http = Located { chart: "lb".into(), repo: Some("https://r/c".into()), update: None };
        let hash = super::super::values::hash("a: 1");
        let table = [
            (
                "RF-54 RF-57",
                arguments(&chart("oci://r/p/lb", "0.2.0", ""), &oci, HelmAction::Install, &common(false)),
                format!("upgrade lb oci://r/p/lb --version=0.2.0 --install --history-max=10 {TAIL}"),
            ),
            (
                "RF-55 RF-61",
                arguments(&chart("https://r/c", "~0.2.0", "a: 1"), &http, HelmAction::Upgrade, &common(true)),
                format!(
                    "upgrade lb lb --repo=https://r/c --version=~0.2.0 --install --values=/p/values.yaml \
                     --description=cloudberth, values sha256:{hash} --history-max=10 {TAIL}"
                ),
            ),
            (
                "RF-63 no version, RF-62 no values",
                arguments(&chart("https://r/c", "", " \n"), &http, HelmAction::Upgrade, &common(false)),
                format!("upgrade lb lb --repo=https://r/c --install --history-max=10 {TAIL}"),
            ),
            (
                "RF-202",
                arguments(
                    &chart("https://r/c", "1.0.0", ""),
                    &http,
                    HelmAction::InstallReplace,
                    &common(false),
                ),
                format!("install lb lb --repo=https://r/c --version=1.0.0 --replace {TAIL}"),
            ),
            (
                "RF-68",
                arguments(
                    &chart("https://r/c", "1.0.0", "a: 1"),
                    &http,
                    HelmAction::Rollback { to: 4 },
                    &common(true),
                ),
                format!("rollback lb 4 --history-max=10 {TAIL}"),
            ),
            (
                "RF-66",
                arguments(
                    &chart("https://r/c", "1.0.0", "a: 1"),
                    &http,
                    HelmAction::Uninstall,
                    &common(true),
                ),
                format!("uninstall lb {TAIL}"),
            ),
            (
                "RF-204",
                resolve(&chart("https://r/c", "0.15", ""), &http),
                "show chart lb --repo=https://r/c --version=0.15".to_owned(),
            ),
        ];
        for (case, args, want) in table {
            assert_eq!(words(&args), want, "{case}");
        }
        assert_eq!(go_duration(Duration::from_millis(1_500)), "1500ms");
    }

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn the_environment_leads_helm_nowhere_else() {
        let ours = variables(&[
            ("PATH", "/bin"),
            ("SSL_CERT_FILE", "/ca.pem"),
            ("SSL_CERT_DIR", "/ca"),
            ("https_proxy", "http://p"),
            ("DOCKER_CONFIG", "/d"),
            ("KUBECONFIG", "/ours"),
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
            ("HELM_NAMESPACE", "x"),
            ("HELM_KUBETOKEN", "s3cr3t"),
            ("HELM_DRIVER", "sql"),
            ("HELM_PLUGINS", "/p"),
        ]);
        let files = OperatorFiles { registry: Some("/r.json".into()), repositories: None };
        let want = variables(&[
            ("PATH", "/bin"),
            ("SSL_CERT_FILE", "/ca.pem"),
            ("SSL_CERT_DIR", "/ca"),
            ("https_proxy", "http://p"),
            ("DOCKER_CONFIG", "/d"),
            ("HELM_CACHE_HOME", "/h/cache"),
            ("HELM_CONFIG_HOME", "/h/config"),
            ("HELM_DATA_HOME", "/h/data"),
            ("HELM_DRIVER", "secret"),
            ("HELM_REGISTRY_CONFIG", "/r.json"),
        ]);
        assert_eq!(environment(&ours, Path::new("/h"), &files), want);
    }

    #[test]
    fn an_operators_files_are_found_despite_private_directories() {
        let usual = "/home/a/.config/helm";
        let found = |ours: &[(&str, &str)], there: &str| {
            let files =
                OperatorFiles::find(&variables(ours), Path::new("/w"), |path| path.starts_with(there));
            [files.registry, files.repositories].map(|path| path.map(|path| path.display().to_string()))
        };
        let some = |text: &str| Some(text.to_owned());
        let table = [
            (
                "RF-207 the variable",
                &[("HELM_REGISTRY_CONFIG", "r.json")][..],
                "/none",
                [some("/w/r.json"), None],
            ),
            (
                "RF-207 Helm's usual place",
                &[("HOME", "/home/a")],
                usual,
                [
                    some("/home/a/.config/helm/registry/config.json"),
                    some("/home/a/.config/helm/repositories.yaml"),
                ],
            ),
            ("RF-207 nothing there", &[("HOME", "/home/a")], "/none", [None, None]),
            (
                "RF-207 an inherited config home",
                &[("HOME", "/home/a"), ("HELM_CONFIG_HOME", "/c")],
                "/c",
                [some("/c/registry/config.json"), some("/c/repositories.yaml")],
            ),
            (
                "RF-207 the desktop's",
                &[("XDG_CONFIG_HOME", "/x")],
                "/x",
                [some("/x/helm/registry/config.json"), some("/x/helm/repositories.yaml")],
            ),
            ("empty is not set", &[("HELM_REPOSITORY_CONFIG", "")], "/none", [None, None]),
        ];
        for (case, ours, there, want) in table {
            assert_eq!(found(ours, there), want, "{case}");
        }
    }
}
