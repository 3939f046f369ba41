//! Under which name the program was called, and which version it is.

use std::path::Path;

use cloudberth_http::ProviderFactory;
use cloudberth_runtime::metrics::BuildInfo;

/// The version of this program, as it is reported.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// The cloud that `--cloud-provider` means when it is not given, by the name under which the program was called (the
/// first argument, with or without folders). `None`: no cloud of this build replaces a program of that name.
pub fn preset_provider(factories: &[ProviderFactory], called: &str) -> Option<&'static str> {
    let name = Path::new(called).file_name()?.to_str()?;
    factories.iter().find(|factory| factory.replaces.contains(&name)).map(|factory| factory.name)
}

/// What is known about how this program was built. It is handed in by the binary, which alone knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build<'a> {
    /// The commit; empty if not known.
    pub commit: &'a str,
    /// When, in RFC 3339; empty if not known.
    pub date: &'a str,
    /// The compiler's version; empty if not known.
    pub compiler: &'a str,
    /// The system and the processor, such as `linux/amd64`.
    pub platform: &'a str,
}

/// The line that `--version` prints. Scripts that look at the programs replaced expect it in this form.
pub fn version_line() -> String {
    format!("Kubernetes {VERSION}")
}

/// The line that `--version=raw` prints.
pub fn raw_version_line(build: &Build<'_>) -> String {
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    format!(
        "version.Info{{Major:{major:?}, Minor:{minor:?}, GitVersion:{VERSION:?}, GitCommit:{:?}, BuildDate:{:?}, \
         Compiler:{:?}, Platform:{:?}}}",
        build.commit, build.date, build.compiler, build.platform
    )
}

/// The same for `kubernetes_build_info`. The labels are those that dashboards look for.
pub fn build_info(build: &Build<'_>) -> BuildInfo {
    BuildInfo {
        major: env!("CARGO_PKG_VERSION_MAJOR").to_owned(),
        minor: env!("CARGO_PKG_VERSION_MINOR").to_owned(),
        git_version: VERSION.to_owned(),
        git_commit: build.commit.to_owned(),
        git_tree_state: String::new(),
        build_date: build.date.to_owned(),
        go_version: build.compiler.to_owned(),
        compiler: "rustc".to_owned(),
        platform: build.platform.to_owned(),
    }
}

/// Refuses a version that `--version=v…` may not report: one that differs from ours in more than what follows the
/// three numbers.
pub(crate) fn check_version(text: &str) -> Result<(), String> {
    let numbers = |text: &str| {
        let core = text.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
        let parts: Option<Vec<u64>> = core.split('.').map(|part| part.parse().ok()).collect();
        parts.filter(|parts| parts.len() == 3)
    };
    match numbers(text) {
        Some(asked) if Some(&asked) == numbers(VERSION).as_ref() => Ok(()),
        Some(_) => Err(format!("its three numbers must be those of this program, which is {VERSION}")),
        None => Err(format!("it must be a version of three numbers, such as {VERSION}-mine")),
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::annotation::Table;

    use super::*;

    #[test]
    fn an_old_name_presets_its_cloud() {
        let factory = |name, replaces| ProviderFactory {
            name,
            replaces,
            annotations: &const { Table::new(&[]) },
            reasons: &[],
            rights: &[],
            offline: &[],
            open: |_| Err(vec![]),
        };
        let factories = [
            factory("alpha", &[]),
            factory("beta", &["beta-cloud-controller-manager"]),
            factory("gamma", &["gamma-cloud-controller-manager", "old-gamma"]),
        ];
        let table = [
            ("beta-cloud-controller-manager", Some("beta")),
            ("/usr/local/bin/gamma-cloud-controller-manager", Some("gamma")),
            ("./old-gamma", Some("gamma")),
            ("alpha-cloud-controller-manager", None),
            ("cloudberth", None),
            ("cloud-controller-manager", None),
            ("beta-cloud-controller-manager/cloudberth", None),
            ("my-beta-cloud-controller-manager", None),
            ("/", None),
            ("", None),
        ];
        for (called, want) in table {
            assert_eq!(preset_provider(&factories, called), want, "{called:?}");
        }
    }

    #[test]
    fn the_version_is_printed_in_the_known_form() {
        assert_eq!(version_line(), format!("Kubernetes v{}", env!("CARGO_PKG_VERSION")));
        let build = Build { commit: "abc", date: "", compiler: "rustc", platform: "linux/amd64" };
        let want = "version.Info{Major:\"MAJOR\", Minor:\"MINOR\", GitVersion:\"vALL\", GitCommit:\"abc\", BuildDate:\"\", \
                    Compiler:\"rustc\", Platform:\"linux/amd64\"}"
            .replace("MAJOR", env!("CARGO_PKG_VERSION_MAJOR"))
            .replace("MINOR", env!("CARGO_PKG_VERSION_MINOR"))
            .replace("ALL", env!("CARGO_PKG_VERSION"));
        assert_eq!(raw_version_line(&build), want);
    }

    #[test]
    fn the_metric_says_the_same_as_the_line() {
        let build = Build { commit: "abc", date: "today", compiler: "rustc 1.95", platform: "linux/amd64" };
        let info = build_info(&build);
        assert_eq!((info.git_version.as_str(), info.git_commit.as_str()), (VERSION, "abc"));
        assert_eq!((info.go_version.as_str(), info.platform.as_str()), ("rustc 1.95", "linux/amd64"));
    }

    #[test]
    fn only_the_tail_of_the_version_can_be_changed() {
        for good in [VERSION.to_owned(), format!("{VERSION}-rc.1"), format!("{VERSION}+mine.2")] {
            assert_eq!(check_version(&good), Ok(()), "{good}");
        }
        for (bad, why) in [("v99.0.0", "three numbers must be"), ("v1", "such as"), ("v1.x.0", "such as")] {
            assert!(check_version(bad).unwrap_err().contains(why), "{bad}");
        }
    }
}
