use serde_json::{Value, json};

use super::{HelmAction::*, HelmDecision::*, ReleaseStatus::*, *};

const NOW: &str = "2026-01-01T12:00:00Z";
const STALE: Duration = Duration::from_secs(900);

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn minutes_ago(minutes: i64) -> Option<Timestamp> {
    Timestamp::from_second(now().as_second() - minutes * 60).ok()
}

fn chart(version: &str, values: &str) -> ChartRef {
    ChartRef::new("lb", "https://charts.example", version, "fip", values)
}

/// A release whose newest revision is 3, an hour old, after one that was replaced and one that was in place.
fn release(status: ReleaseStatus) -> ReleaseState {
    ReleaseState {
        revision: 3,
        status,
        chart_version: "0.2.0".to_owned(),
        updated: minutes_ago(60),
        values_hash: None,
        config: Value::Null,
        history: vec![(3, status), (2, Deployed), (1, Superseded)],
        record: ObjectKey::new("fip", "sh.helm.release.v1.lb.v3"),
        uid: "u3".to_owned(),
        resource_version: "7".to_owned(),
    }
}

fn aged(status: ReleaseStatus, minutes: i64) -> ReleaseState {
    ReleaseState { updated: minutes_ago(minutes), ..release(status) }
}

fn at_version(version: &str) -> ReleaseState {
    ReleaseState { chart_version: version.to_owned(), ..release(Deployed) }
}

fn with_values(hash: Option<&str>, config: Value) -> ReleaseState {
    ReleaseState { values_hash: hash.map(values::hash), config, ..release(Deployed) }
}

fn wait(why: &'static str, seconds: u64) -> HelmDecision {
    Wait { why, after: Duration::from_secs(seconds) }
}

fn gone() -> HelmDecision {
    DeleteRecord {
        record: ObjectKey::new("fip", "sh.helm.release.v1.lb.v3"),
        uid: "u3".to_owned(),
        resource_version: "7".to_owned(),
    }
}

#[test]
fn a_deployed_release_is_changed_only_for_a_reason() {
    let same = || chart("0.2.0", "");
    let table = [
        ("RF-57 no release", same(), None, None, Run(Install)),
        ("RF-58 RF-59 same version, same values", same(), Some(release(Deployed)), None, Skip),
        ("RF-58 one leading v", chart("v0.2.0", ""), Some(release(Deployed)), None, Skip),
        ("RF-58 a registry's tag", chart("1.0.0+b", ""), Some(at_version("1.0.0_b")), None, Skip),
        ("RF-60 newer", chart("0.3.0", ""), Some(release(Deployed)), None, Run(Upgrade)),
        ("RF-60 older", chart("0.1.0", ""), Some(release(Deployed)), None, Run(Upgrade)),
        (
            "RF-61 values changed",
            chart("0.2.0", "a: 2"),
            Some(with_values(Some("a: 1"), json!({"a": 1}))),
            None,
            Run(Upgrade),
        ),
        (
            "the same text",
            chart("0.2.0", "a: 1"),
            Some(with_values(Some("a: 1"), json!({"a": 1}))),
            None,
            Skip,
        ),
        (
            "tuned by hand",
            chart("0.2.0", "a: 1"),
            Some(with_values(Some("a: 1"), json!({"a": 9}))),
            None,
            Skip,
        ),
        (
            "another program's, equal",
            chart("0.2.0", "a: 1"),
            Some(with_values(None, json!({"a": 1}))),
            None,
            Skip,
        ),
        (
            "another program's, different",
            chart("0.2.0", "a: 1"),
            Some(with_values(None, json!({"a": 2}))),
            None,
            Run(Upgrade),
        ),
        ("RF-205 no values configured", same(), Some(with_values(None, json!({"a": 1}))), None, Skip),
        ("RF-205 none any more", same(), Some(with_values(Some("a: 1"), json!({"a": 1}))), None, Skip),
        ("RF-63 no version: ask", chart("", ""), Some(release(Deployed)), None, Resolve),
        ("RF-63 already the newest", chart("", ""), Some(release(Deployed)), Some("0.2.0"), Skip),
        ("RF-63 a newer one", chart("", ""), Some(release(Deployed)), Some("0.3.0"), Run(Upgrade)),
        ("RF-64 a range: ask", chart("~0.15.0", ""), Some(at_version("0.15.3")), None, Resolve),
        ("RF-64 already the newest", chart("~0.15.0", ""), Some(at_version("0.15.3")), Some("0.15.3"), Skip),
        ("RF-204 two numbers are a range", chart("0.15", ""), Some(at_version("0.15.3")), None, Resolve),
        ("RF-204 already the newest", chart("0.15", ""), Some(at_version("0.15.3")), Some("0.15.3"), Skip),
        ("a build of it: ask", chart("1.0.0", ""), Some(at_version("1.0.0+b")), None, Resolve),
        (
            "a build of it, the only one",
            chart("1.0.0", ""),
            Some(at_version("1.0.0+b")),
            Some("1.0.0+b"),
            Skip,
        ),
        (
            "a file knows its version",
            ChartRef::new("lb", "./lb.tgz", "9.9.9", "fip", ""),
            Some(release(Deployed)),
            Some("0.2.0"),
            Skip,
        ),
        (
            "a file has to be asked",
            ChartRef::new("lb", "./lb.tgz", "0.2.0", "fip", ""),
            Some(release(Deployed)),
            None,
            Resolve,
        ),
    ];
    for (case, chart, state, resolved, want) in table {
        assert_eq!(decide(&chart, state.as_ref(), resolved, now(), false, STALE), want, "{case}");
    }
}

#[test]
fn a_release_that_is_not_deployed_is_healed_or_left_to_whoever_is_at_work() {
    let alone = |status, history| ReleaseState { history, ..release(status) };
    let busy = "somebody is upgrading the release";
    let table = [
        ("RF-65 failed, same version", release(Failed), false, Run(Upgrade)),
        ("superseded and nothing newer", release(Superseded), false, Run(Upgrade)),
        ("RF-69 RF-202 removed, history kept", release(Uninstalled), false, Run(InstallReplace)),
        ("RF-66 an install that is stale", aged(PendingInstall, 20), false, gone()),
        (
            "RF-67 an install that is young",
            aged(PendingInstall, 1),
            false,
            wait("somebody is installing the release", 60),
        ),
        ("RF-68 an upgrade that is stale", aged(PendingUpgrade, 20), false, Run(Rollback { to: 2 })),
        (
            "RF-68 with nothing to go back to",
            alone(PendingUpgrade, vec![(3, PendingUpgrade), (2, Failed)]),
            false,
            gone(),
        ),
        ("RF-68 a roll-back that is stale", aged(PendingRollback, 20), false, Run(Rollback { to: 2 })),
        (
            "the newest that was in place",
            alone(PendingUpgrade, vec![(3, PendingUpgrade), (2, Failed), (1, Superseded)]),
            false,
            Run(Rollback { to: 1 }),
        ),
        ("RF-203 an upgrade that is young", aged(PendingUpgrade, 1), false, wait(busy, 60)),
        (
            "RF-203 a removal that is young",
            aged(Uninstalling, 1),
            false,
            wait("somebody is uninstalling the release", 60),
        ),
        (
            "RF-203 unknown",
            release(Unknown),
            false,
            Report {
                why: "the release has a status that Helm itself never leaves behind",
                after: Duration::from_secs(600),
            },
        ),
        ("a removal that is stale", aged(Uninstalling, 16), false, Run(Uninstall)),
        ("a minute before it is stale", aged(PendingUpgrade, 14), false, wait(busy, 60)),
        ("exactly stale", aged(PendingUpgrade, 15), false, Run(Rollback { to: 2 })),
        ("from the future", aged(PendingUpgrade, -5), false, wait(busy, 60)),
        ("no time at all", ReleaseState { updated: None, ..release(PendingUpgrade) }, false, wait(busy, 60)),
        ("RF-75 our own child, which is dead", aged(PendingUpgrade, 0), true, Run(Rollback { to: 2 })),
        ("our own child was installing", aged(PendingInstall, 0), true, gone()),
        ("our own child was removing", aged(Uninstalling, 0), true, Run(Uninstall)),
    ];
    for (case, state, own, want) in table {
        assert_eq!(decide(&chart("0.2.0", ""), Some(&state), None, now(), own, STALE), want, "{case}");
    }
}

#[test]
fn a_wait_ends_when_the_operation_is_stale() {
    let state = ReleaseState {
        updated: Timestamp::from_second(now().as_second() - 12).ok(),
        ..release(PendingUpgrade)
    };
    let decision = decide(&chart("0.2.0", ""), Some(&state), None, now(), false, Duration::from_secs(15));
    assert_eq!(decision, wait("somebody is upgrading the release", 3));
}

/// Whatever state a release is in, doing what was decided leads to a deployed release, and then nothing is done.
#[test]
fn every_state_comes_to_rest() {
    for status in [
        Deployed,
        Uninstalled,
        Superseded,
        Failed,
        Uninstalling,
        PendingInstall,
        PendingUpgrade,
        PendingRollback,
    ] {
        let (chart, mut state) = (chart("0.3.0", "a: 1"), Some(release(status)));
        let mut steps = Vec::new();
        loop {
            let decision = decide(&chart, state.as_ref(), None, now(), false, STALE);
            if decision == Skip {
                break;
            }
            state = after(state, &chart, &decision);
            steps.push(decision);
            assert!(steps.len() <= 3, "{status:?}: {steps:?}");
        }
    }
}

/// What Helm makes of a decision.
fn after(state: Option<ReleaseState>, chart: &ChartRef, decision: &HelmDecision) -> Option<ReleaseState> {
    let done = |state: Option<ReleaseState>, version: &str, hash: Option<String>| {
        let revision = state.as_ref().map_or(0, |state| state.revision) + 1;
        let mut history = state.map(|state| state.history).unwrap_or_default();
        history.insert(0, (revision, Deployed));
        let chart_version = version.to_owned();
        Some(ReleaseState { revision, history, chart_version, values_hash: hash, ..release(Deployed) })
    };
    match decision {
        Run(Install | Upgrade | InstallReplace) => done(state, &chart.version, chart.values_hash()),
        Run(Rollback { .. }) => done(state, "0.2.0", None),
        Run(Uninstall) => None,
        DeleteRecord { .. } => {
            let state = state.unwrap();
            let history = state.history[1..].to_vec();
            let (revision, status) = history[0];
            Some(ReleaseState { revision, status, history, ..release(status) })
        }
        other => panic!("{other:?}"),
    }
}
