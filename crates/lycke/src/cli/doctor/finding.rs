//! What was found.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Skipped,
    Warning,
    Problem,
}

impl Level {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "-",
            Self::Warning => "warning",
            Self::Problem => "PROBLEM",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) found: String,
    pub(super) remedies: Vec<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, found: found.into(), remedies: Vec::new() }
    }

    pub(super) fn skipped(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Skipped, found: found.into(), remedies: Vec::new() }
    }

    pub(super) fn warning(check: &'static str, found: impl Into<String>, remedies: &[&str]) -> Self {
        let remedies = remedies.iter().map(|remedy| (*remedy).to_owned()).collect();
        Self { check, level: Level::Warning, found: found.into(), remedies }
    }

    pub(super) fn problem(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Problem, found: found.into(), remedies: vec![remedy.into()] }
    }
}
