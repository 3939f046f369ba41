//! Why Helm did not do it, read from what it said.

use cloudberth_core::{Category, Error, error::cut};

/// How much of what Helm said is shown.
const SHOWN: usize = 600;

/// What went wrong, in a closed set: from it follow the retry and the label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelmFailure {
    /// There is no such program, or it cannot be started.
    Missing,
    /// The downstream cluster does not answer.
    Unreachable,
    /// The downstream cluster refuses the kubeconfig.
    Unauthorised,
    /// The chart could not be fetched.
    Fetch,
    /// What was installed did not become ready in time.
    TimedOut,
    /// Another operation on the release is under way.
    Busy,
    /// The chart and its values do not fit: only another configuration helps.
    Rejected,
    /// This program told Helm to stop, because it ends or no longer leads.
    Stopped,
    /// Private files could not be written.
    Local,
    /// Anything else.
    Other,
}

impl HelmFailure {
    /// Its label in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreachable => "unreachable",
            Self::Unauthorised => "unauthorised",
            Self::Fetch => "fetch",
            Self::TimedOut => "timeout",
            Self::Busy => "busy",
            Self::Rejected => "rejected",
            Self::Stopped => "stopped",
            Self::Local => "local",
            Self::Other => "other",
        }
    }
}

/// Helm did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HelmError {
    /// What went wrong.
    pub failure: HelmFailure,
    /// The same for people, without secrets.
    pub message: String,
}

impl HelmError {
    /// An error with this message.
    pub fn new(failure: HelmFailure, message: impl Into<String>) -> Self {
        Self { failure, message: message.into() }
    }

    /// What Helm said before it failed at `doing`.
    pub(super) fn said(doing: &str, stderr: &str) -> Self {
        let text = message_in(stderr);
        let failure = classify(&text);
        let text = if text.is_empty() { "it did not say why" } else { text.as_str() };
        Self::new(failure, format!("helm {doing} failed: {}", cut(text, SHOWN)))
    }
}

impl From<HelmError> for Error {
    fn from(error: HelmError) -> Self {
        let category = match error.failure {
            HelmFailure::Unauthorised => Category::Unauthorised,
            HelmFailure::Rejected => Category::UserInput,
            HelmFailure::Busy => Category::Conflict,
            HelmFailure::Stopped => Category::Cancelled,
            HelmFailure::Missing
            | HelmFailure::Unreachable
            | HelmFailure::Fetch
            | HelmFailure::TimedOut
            | HelmFailure::Local
            | HelmFailure::Other => Category::Temporary,
        };
        Self::new(category, error.message)
    }
}

/// The message proper, on one line: Helm prints warnings before it, and `Error:` in front.
fn message_in(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().skip_while(|line| !line.starts_with("Error:"));
    let mut words: Vec<&str> = error.collect();
    if words.is_empty() {
        words = lines().filter(|line| !line.starts_with("WARNING:")).collect();
    }
    let text = words.join(" ");
    text.strip_prefix("Error: ").unwrap_or(&text).to_owned()
}

/// Marks in what Helm says, from the most telling to the least. All are compared in small letters.
const MARKS: &[(HelmFailure, &[&str])] = &[
    (HelmFailure::Busy, &["another operation (install/upgrade/rollback) is in progress"]),
    (
        HelmFailure::Fetch,
        &[
            "looks like",
            "failed to fetch",
            "failed to download",
            "failed to perform",
            "failed to do request",
            "failed to authorize",
            "failed to resolve",
            "not found in repository",
            "not found in http",
            "no cached repo found",
            "repo \"",
            "repo not found",
            "repository name",
            "unable to locate any tags",
            "could not locate a version matching",
            "no chart version found",
            "improper constraint",
            "response status code",
            "unexpected status from",
            "chart.yaml file is missing",
            "does not appear to be a gzipped archive",
            ": not found",
            "no such file or directory",
        ],
    ),
    (
        HelmFailure::Unauthorised,
        &[
            "the server has asked for the client to provide credentials",
            "unauthorized",
            "is forbidden:",
            "forbidden: user",
        ],
    ),
    (
        HelmFailure::Unreachable,
        &[
            "kubernetes cluster unreachable",
            "connection refused",
            "no such host",
            "i/o timeout",
            "tls handshake timeout",
            "connection reset by peer",
            "network is unreachable",
            "x509:",
            "the server is currently unable to handle the request",
            "unexpected eof",
            "client rate limiter wait returned an error",
        ],
    ),
    (
        HelmFailure::TimedOut,
        &[
            "timed out waiting for the condition",
            "context deadline exceeded",
            "would exceed context deadline",
        ],
    ),
    (
        HelmFailure::Rejected,
        &[
            "values don't meet the specifications of the schema",
            "execution error at",
            "parse error at",
            "yaml parse error",
            "template:",
            "error validating data",
            "unable to build kubernetes objects",
            "is invalid:",
            "failed to parse",
            "cannot load values",
            "invalid ownership metadata",
            "chart requires kubeversion",
            "release name",
        ],
    ),
];

/// What Helm's message means.
fn classify(message: &str) -> HelmFailure {
    let message = message.to_ascii_lowercase();
    // It comes first in a message about anything that happens before the chart is looked at.
    if message.contains("kubernetes cluster unreachable") {
        let refused = message.contains("credentials")
            || message.contains("unauthorized")
            || message.contains("forbidden");
        return if refused { HelmFailure::Unauthorised } else { HelmFailure::Unreachable };
    }
    if message.contains("release: not found") {
        return HelmFailure::Other;
    }
    let found = MARKS.iter().find(|(_, marks)| marks.iter().any(|mark| message.contains(mark)));
    found.map_or(HelmFailure::Other, |(failure, _)| *failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helm_says_is_understood() {
        let table = [
            (
                "RF-72",
                "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
                HelmFailure::Busy,
            ),
            (
                "RF-48",
                "Error: Kubernetes cluster unreachable: Get \"https://127.0.0.1:1/version\": dial tcp 127.0.0.1:1: connect: connection refused",
                HelmFailure::Unreachable,
            ),
            (
                "RF-47",
                "Error: Kubernetes cluster unreachable: the server has asked for the client to provide credentials",
                HelmFailure::Unauthorised,
            ),
            (
                "RF-46",
                "Error: query: failed to query with labels: secrets is forbidden: User \"u\" cannot list resource \"secrets\"",
                HelmFailure::Unauthorised,
            ),
            (
                "no repository",
                "Error: looks like \"http://127.0.0.1:1\" is not a valid chart repository or cannot be reached: Get \"http://127.0.0.1:1/index.yaml\": dial tcp 127.0.0.1:1: connect: connection refused",
                HelmFailure::Fetch,
            ),
            (
                "no such version",
                "Error: chart \"lb\" version \"9.9.9\" not found in http://127.0.0.1:1 repository",
                HelmFailure::Fetch,
            ),
            (
                "no such tag",
                "Error: failed to perform \"FetchReference\" on source: 127.0.0.1:5000/p/lb:9.9.9: not found",
                HelmFailure::Fetch,
            ),
            ("not ready", "Error: UPGRADE FAILED: context deadline exceeded", HelmFailure::TimedOut),
            ("not ready, an older Helm", "Error: timed out waiting for the condition", HelmFailure::TimedOut),
            (
                "the schema",
                "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nlb:\n- at '/replicas': got string, want integer",
                HelmFailure::Rejected,
            ),
            (
                "a template",
                "Error: execution error at (lb/templates/a.yaml:1:4): must be set",
                HelmFailure::Rejected,
            ),
            (
                "no release",
                "Error: uninstall: Release not loaded: lb: release: not found",
                HelmFailure::Other,
            ),
            ("something else", "Error: it is Tuesday", HelmFailure::Other),
            ("nothing", "", HelmFailure::Other),
        ];
        for (case, stderr, want) in table {
            let error =
                HelmError::said("upgrade", &format!("WARNING: both files are group-readable\n{stderr}\n"));
            assert_eq!(error.failure, want, "{case}: {error}");
            assert!(
                error.message.starts_with("helm upgrade failed: ") && !error.message.contains("WARNING"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_failure_is_retried_as_its_category_says() {
        let category = |failure| Error::from(HelmError::new(failure, "m")).category();
        assert_eq!(
            category(HelmFailure::Rejected),
            Category::UserInput,
            "retried when the configuration changes"
        );
        assert_eq!(category(HelmFailure::Unreachable), Category::Temporary);
        assert_eq!(category(HelmFailure::Busy), Category::Conflict);
        assert_eq!(category(HelmFailure::Stopped), Category::Cancelled);
    }
}
