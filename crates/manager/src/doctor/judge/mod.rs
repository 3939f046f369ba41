//! What the facts mean. Pure.

mod clouds;
mod cluster;
mod objects;
mod others;

use jiff::{SignedDuration, Timestamp};

use super::{Check, Facts, Report, Severity};

/// The oldest minor version of Kubernetes that the tests run on.
pub const OLDEST_MINOR: u32 = 34;
/// The newest one.
pub const NEWEST_MINOR: u32 = 37;

/// More than this between two clocks breaks tokens, certificates and Leases sooner or later.
const SKEW: SignedDuration = SignedDuration::from_secs(30);

/// Judges everything; the worst comes first.
pub fn judge(facts: &Facts) -> Report {
    let mut report = Report::default();
    cluster::judge(facts, &mut report);
    clouds::judge(facts, &mut report);
    objects::nodes(facts, &mut report);
    objects::services(facts, &mut report);
    others::judge(facts, &mut report);
    report.findings.sort_by_key(|finding| finding.severity);
    report
}

/// A clock that is too far from ours, of whoever it is.
fn skew(report: &mut Report, whose: &str, ahead: Option<SignedDuration>) {
    let Some(ahead) = ahead.filter(|ahead| ahead.abs() > SKEW) else { return };
    let (seconds, way) = (ahead.abs().as_secs(), if ahead.is_negative() { "behind" } else { "ahead of" });
    let what = format!("the clock of {whose} is {seconds} seconds {way} this computer's");
    let fix = "Set the clocks by NTP: tokens, certificates and Leases depend on them.";
    report.add(Severity::Warning, Check::Clock, what, fix);
}

/// How long ago it was, in words; "for an unknown time" where nobody knows.
fn age(now: Timestamp, then: Option<Timestamp>) -> String {
    let Some(then) = then else { return "for an unknown time".to_owned() };
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..120 => format!("for {seconds} seconds"),
        120..7_200 => format!("for {} minutes", seconds / 60),
        _ => format!("for {} hours", seconds / 3_600),
    }
}

/// At most ten, and how many more.
fn few(names: &[&str]) -> String {
    let more = names.len().saturating_sub(10);
    let shown: Vec<_> = names.iter().take(10).copied().collect();
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

#[cfg(test)]
mod tests;
