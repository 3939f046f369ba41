//! What has to be done about a chart, given the newest revision of its release.
//!
//! One look, one decision: after each recovery step the release is read again and decided anew, so a step that fails or is
//! interrupted needs no memory.

use std::time::Duration;

use cloudberth_core::ObjectKey;
use jiff::Timestamp;

use super::{ChartRef, ReleaseState, ReleaseStatus, values, version};

/// How often a release that somebody else works on is looked at, at most.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How often a release is looked at that only a person can help.
const REPORT_AGAIN: Duration = Duration::from_secs(600);

/// What Helm is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelmAction {
    /// Install for the first time, and upgrade should it exist by then.
    Install,
    /// Change to the configured version and values.
    Upgrade,
    /// Install under a name whose history was kept.
    InstallReplace,
    /// Go back to this revision.
    Rollback {
        /// The revision.
        to: u32,
    },
    /// Remove it, with its history.
    Uninstall,
}

impl HelmAction {
    /// The word for people and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Install | Self::InstallReplace => "install",
            Self::Upgrade => "upgrade",
            Self::Rollback { .. } => "rollback",
            Self::Uninstall => "uninstall",
        }
    }
}

/// What follows from the state of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelmDecision {
    /// All is as configured.
    Skip,
    /// Ask the chart's source for the version first ([`Helm::resolve`](super::Helm::resolve)), and decide again with it.
    Resolve,
    /// Somebody else is at work.
    Wait {
        /// What is waited for.
        why: &'static str,
        /// When to look again.
        after: Duration,
    },
    /// Let Helm do this, then look again.
    Run(HelmAction),
    /// Delete this release record as it was read, then look again: whoever wrote it is gone.
    DeleteRecord {
        /// The Secret.
        record: ObjectKey,
        /// Its UID.
        uid: String,
        /// Its version.
        resource_version: String,
    },
    /// Nothing can be done about it here.
    Report {
        /// What a person should know.
        why: &'static str,
        /// When to look again.
        after: Duration,
    },
}

/// Decides about one chart.
///
/// `resolved` is the version that the chart's source gave for this configuration, if it was asked. `own_dead_child` says
/// that this process began the operation that the release still waits for, and that it is over: then nobody is at work,
/// however young it is. Otherwise an operation is given up once it is `stale_after` old.
///
/// It is never [`Resolve`](HelmDecision::Resolve) when `resolved` is given.
#[must_use]
pub fn decide(
    chart: &ChartRef,
    state: Option<&ReleaseState>,
    resolved: Option<&str>,
    now: Timestamp,
    own_dead_child: bool,
    stale_after: Duration,
) -> HelmDecision {
    let Some(state) = state else { return HelmDecision::Run(HelmAction::Install) };
    if state.status.is_under_way()
        && !own_dead_child
        && let Some(left) = time_left(state, now, stale_after)
    {
        return HelmDecision::Wait { why: under_way(state.status), after: left.min(LOOK_AGAIN) };
    }
    match state.status {
        ReleaseStatus::Deployed => deployed(chart, state, resolved),
        ReleaseStatus::Failed | ReleaseStatus::Superseded => HelmDecision::Run(HelmAction::Upgrade),
        ReleaseStatus::Uninstalled => HelmDecision::Run(HelmAction::InstallReplace),
        ReleaseStatus::Uninstalling => HelmDecision::Run(HelmAction::Uninstall),
        ReleaseStatus::PendingInstall => delete(state),
        ReleaseStatus::PendingUpgrade | ReleaseStatus::PendingRollback => match last_good(state) {
            Some(to) => HelmDecision::Run(HelmAction::Rollback { to }),
            None => delete(state),
        },
        ReleaseStatus::Unknown => HelmDecision::Report {
            why: "the release has a status that Helm itself never leaves behind",
            after: REPORT_AGAIN,
        },
    }
}

/// Whether the configuration asks for something else than what is deployed.
fn deployed(chart: &ChartRef, state: &ReleaseState, resolved: Option<&str>) -> HelmDecision {
    let want = match resolved {
        Some(resolved) => resolved,
        // The source of a file or a range decides, and it has to be asked.
        None if chart.brings_its_version() || !version::is_exact(&chart.version) => {
            return HelmDecision::Resolve;
        }
        None => &chart.version,
    };
    if !version::same(want, &state.chart_version) {
        // Helm takes `1.2.3+b` for `1.2.3`. Only the source knows whether there is another `1.2.3`.
        let in_doubt = resolved.is_none() && version::same_but_for_build(want, &state.chart_version);
        return if in_doubt { HelmDecision::Resolve } else { HelmDecision::Run(HelmAction::Upgrade) };
    }
    if values_changed(chart, state) { HelmDecision::Run(HelmAction::Upgrade) } else { HelmDecision::Skip }
}

/// Whether the configured values are others than those that were applied last. What people tuned by hand since is theirs.
fn values_changed(chart: &ChartRef, state: &ReleaseState) -> bool {
    match (chart.values_hash(), &state.values_hash) {
        (None, _) => false,
        (Some(want), Some(applied)) => want != *applied,
        // Another program made the release.
        (Some(_), None) => !values::says(&chart.values, &state.config),
    }
}

/// How long an operation still counts as somebody's work; `None` if it does not. Without a time it always does.
fn time_left(state: &ReleaseState, now: Timestamp, stale_after: Duration) -> Option<Duration> {
    let Some(updated) = state.updated else { return Some(LOOK_AGAIN) };
    // One from the future is new: clocks differ.
    let age = Duration::try_from(now.duration_since(updated)).unwrap_or_default();
    stale_after.checked_sub(age).filter(|left| !left.is_zero())
}

/// The newest revision before this one that was once in place.
fn last_good(state: &ReleaseState) -> Option<u32> {
    let older = state.history.iter().filter(|(revision, _)| *revision < state.revision);
    let mut good =
        older.filter(|(_, status)| matches!(status, ReleaseStatus::Deployed | ReleaseStatus::Superseded));
    good.next().map(|(revision, _)| *revision)
}

fn delete(state: &ReleaseState) -> HelmDecision {
    HelmDecision::DeleteRecord {
        record: state.record.clone(),
        uid: state.uid.clone(),
        resource_version: state.resource_version.clone(),
    }
}

const fn under_way(status: ReleaseStatus) -> &'static str {
    match status {
        ReleaseStatus::PendingInstall => "somebody is installing the release",
        ReleaseStatus::PendingRollback => "somebody is rolling the release back",
        ReleaseStatus::Uninstalling => "somebody is uninstalling the release",
        _ => "somebody is upgrading the release",
    }
}

#[cfg(test)]
mod tests;
