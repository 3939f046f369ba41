//! One report about what is wrong with an installation, and what to do about it. Nothing is written anywhere.
//!
//! ```text
//!   the cluster, the clouds ──► facts ──► judged: pure ──► findings, what could not be looked at, an exit code
//! ```

#![allow(missing_docs, reason = "plain data whose names say what it is")]

mod facts;
mod gather;
mod judge;
mod text;

use cloudberth_core::Category;
use serde::{Serialize, Serializer};

pub use facts::{
    ApiServer, CloudFacts, EventFacts, Facts, LeaseFacts, NodeFacts, Owner, ServiceFacts, Workload,
};
pub(crate) use gather::{CloudToLookAt, Gather, ServerTimes};
pub use judge::{NEWEST_MINOR, OLDEST_MINOR, judge};

/// The exit code when everything was looked at that matters, and nothing is wrong.
pub const EXIT_HEALTHY: u8 = 0;
/// The exit code when something is wrong, or will be.
pub const EXIT_PROBLEMS: u8 = 1;
/// The exit code when the call itself is wrong.
pub const EXIT_USAGE: u8 = 2;
/// The exit code when nothing wrong was seen, and something that matters could not be looked at.
pub const EXIT_BLIND: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work.
    Problem,
    /// Something works, and will not for long or not as people think.
    Warning,
    /// Good to know. It does not count for the exit code.
    Notice,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    Api,
    Clock,
    Cloud,
    Events,
    Kubelets,
    Leader,
    Leases,
    Nodes,
    Others,
    Quota,
    Rights,
    Services,
    Token,
    Versions,
    Workloads,
}

impl Check {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Clock => "clock",
            Self::Cloud => "cloud",
            Self::Events => "events",
            Self::Kubelets => "kubelets",
            Self::Leader => "leader",
            Self::Leases => "leases",
            Self::Nodes => "nodes",
            Self::Others => "others",
            Self::Quota => "quota",
            Self::Rights => "rights",
            Self::Services => "services",
            Self::Token => "token",
            Self::Versions => "versions",
            Self::Workloads => "workloads",
        }
    }
}

/// The same word in JSON as in the text.
impl Serialize for Check {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub check: Check,
    pub what: String,
    pub fix: String,
}

/// Something that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    pub check: Check,
    pub why: String,
    /// Whether the report says little without it.
    pub matters: bool,
    pub fix: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst first.
    pub findings: Vec<Finding>,
    pub unknown: Vec<Unknown>,
    /// What was looked at, in numbers and names.
    pub seen: Vec<String>,
}

impl Report {
    /// 1 where something is wrong, 3 where nothing is and something that matters could not be looked at, else 0.
    pub fn exit_code(&self) -> u8 {
        if self.findings.iter().any(|finding| finding.severity != Severity::Notice) {
            EXIT_PROBLEMS
        } else if self.unknown.iter().any(|unknown| unknown.matters) {
            EXIT_BLIND
        } else {
            EXIT_HEALTHY
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    fn add(&mut self, severity: Severity, check: Check, what: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding { severity, check, what: what.into(), fix: fix.into() });
    }

    fn blind(&mut self, check: Check, why: &cloudberth_core::Error, matters: bool) {
        let fix = remedy(check, why.category());
        self.unknown.push(Unknown { check, why: why.message().to_owned(), matters, fix });
    }
}

/// What lets it be looked at the next time.
const fn remedy(check: Check, why: Category) -> &'static str {
    match (why, check) {
        (Category::Unauthorised, Check::Api | Check::Cloud | Check::Quota) => {
            "Use a credential that may read this."
        }
        (Category::Unauthorised, _) => {
            "Run it with a kubeconfig whose account may list this, such as an administrator's."
        }
        (_, Check::Cloud | Check::Quota) => {
            "See whether the cloud works and can be reached from here: its status page, the address of its API in the \
             settings, proxies, firewalls. Then run it again."
        }
        _ => {
            "See whether the API server runs and can be reached from here: the address in the kubeconfig, proxies, \
             firewalls. Then run it again."
        }
    }
}
