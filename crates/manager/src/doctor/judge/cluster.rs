//! The API server, the token and the rights.

use cloudberth_core::{Category, lb::ServerVersion};
use jiff::SignedDuration;

use super::{NEWEST_MINOR, OLDEST_MINOR, skew};
use crate::doctor::{Check, Facts, Report, Severity};

/// A token that ends sooner than this is worth a word.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A token that is shorter-lived than this is renewed by whoever gave it.
const ROTATED: SignedDuration = SignedDuration::from_hours(25);

pub(super) fn judge(facts: &Facts, report: &mut Report) {
    match &facts.api {
        Err(why) if why.category() == Category::Unauthorised => {
            let what = format!("the Kubernetes API refuses this account: {}", why.message());
            let fix =
                "Use another kubeconfig with --kubeconfig, or renew the token or certificate in this one.";
            report.add(Severity::Problem, Check::Token, what, fix);
        }
        Err(why) => report.blind(Check::Api, why, true),
        Ok(api) => {
            report.seen.push(format!("Kubernetes {}", api.name));
            version(api.version, &api.name, report);
            skew(report, "the Kubernetes API", api.ahead);
        }
    }
    token(facts, report);
    for missing in &facts.rights {
        let text = missing.to_string();
        let (what, _) = text.rsplit_once("; ").unwrap_or((&text, ""));
        let severity = if missing.right.needed { Severity::Problem } else { Severity::Warning };
        let fix = "Grant it in the program's role; the role in the manifest of the cloud has it.";
        report.add(severity, Check::Rights, what, fix);
    }
    if let Some(why) = &facts.rights_unknown {
        report.blind(Check::Rights, why, true);
    }
}

fn version(version: Option<ServerVersion>, name: &str, report: &mut Report) {
    let Some(version) = version else { return };
    let (oldest, newest) = (ServerVersion::new(1, OLDEST_MINOR), ServerVersion::new(1, NEWEST_MINOR));
    if version < oldest {
        let what =
            format!("Kubernetes {name} is older than 1.{OLDEST_MINOR}, the oldest version that is tested");
        report.add(
            Severity::Warning,
            Check::Versions,
            what,
            format!("Upgrade the cluster to 1.{OLDEST_MINOR} or newer."),
        );
    } else if version > newest {
        let what =
            format!("Kubernetes {name} is newer than 1.{NEWEST_MINOR}, the newest version that is tested");
        let fix = "Look for a newer cloudberth; this one most likely works all the same.";
        report.add(Severity::Notice, Check::Versions, what, fix);
    }
}

/// A token of a pod is short-lived and renewed by the kubelet; only one that nobody renews is worth a word.
fn token(facts: &Facts, report: &mut Report) {
    let Some(ends) = facts.token_ends else { return };
    let left = ends.duration_since(facts.now);
    let fix = "Make a new one, such as with kubectl create token, and put it into the kubeconfig.";
    if left.is_negative() || left.is_zero() {
        let what = format!("the token for the Kubernetes API ended at {ends}");
        report.add(Severity::Problem, Check::Token, what, fix);
    } else if left < SOON && left > ROTATED {
        let what = format!("the token for the Kubernetes API ends at {ends}, in {} hours", left.as_hours());
        report.add(Severity::Warning, Check::Token, what, fix);
    }
}
