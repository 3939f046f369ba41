//! Whether a backend is well, from what its checks and its clients have met.

use std::{collections::BTreeMap, net::IpAddr};

use super::{
    config::{Health, Listener, Protocol},
    diff::{CheckScope, Probe},
};

/// What is known of one check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Check {
    /// `None` before the first result.
    passes: Option<bool>,
    /// Results in a row that say otherwise.
    against: u32,
    /// Marked down by a client's connection: one good check is enough to come back.
    passive: bool,
    /// Why the last check failed.
    failure: String,
}

impl Check {
    fn result(&mut self, result: Result<(), String>, health: &Health) {
        let good = result.is_ok();
        if let Err(failure) = result {
            self.failure = failure;
        }
        if self.passes == Some(good) {
            self.against = 0;
            return;
        }
        self.against += 1;
        let enough = match self.passes {
            None => 1,
            Some(true) => health.unhealthy_threshold,
            Some(false) if self.passive => 1,
            Some(false) => health.healthy_threshold,
        };
        if self.against >= enough {
            *self =
                Self { passes: Some(good), failure: std::mem::take(&mut self.failure), ..Self::default() };
        }
    }

    fn connect_failed(&mut self, failure: String) {
        if self.passes != Some(false) {
            *self = Self { passes: Some(false), against: 0, passive: true, failure };
        }
    }
}

/// What is known of a backend.
#[derive(Clone, Debug)]
pub(crate) struct BackendHealth {
    address: IpAddr,
    /// Why its machine cannot take traffic.
    down: Option<String>,
    checks: BTreeMap<CheckScope, (Probe, Check)>,
}

impl BackendHealth {
    pub(crate) fn new(address: IpAddr) -> Self {
        Self { address, down: None, checks: BTreeMap::new() }
    }

    /// Makes it be checked by `probes`. What is checked as before keeps its verdict; all else starts unknown, and so does
    /// everything at a machine that was down.
    pub(crate) fn configure(
        &mut self,
        address: IpAddr,
        down: Option<String>,
        probes: BTreeMap<CheckScope, Probe>,
    ) {
        let known = address == self.address && self.down.is_none();
        let mut before = std::mem::take(&mut self.checks);
        self.checks = probes
            .into_iter()
            .map(|(scope, probe)| match before.remove(&scope) {
                Some((was, check)) if known && was == probe => (scope, (probe, check)),
                _ => (scope, (probe, Check::default())),
            })
            .collect();
        (self.address, self.down) = (address, down);
    }

    /// Takes in the result of a check; one that is no longer made is ignored.
    pub(crate) fn result(&mut self, scope: CheckScope, result: Result<(), String>, health: &Health) {
        if let Some((_, check)) = self.checks.get_mut(&scope) {
            check.result(result, health);
        }
    }

    /// A client could not be connected at this node port: the check that speaks for it fails at once. Without checks, nothing
    /// could bring the backend back, so nothing happens.
    pub(crate) fn connect_failed(&mut self, node_port: u16, failure: &str) {
        for scope in [CheckScope::NodePort(node_port), CheckScope::All] {
            if let Some((_, check)) = self.checks.get_mut(&scope) {
                check.connect_failed(failure.to_owned());
            }
        }
    }

    /// Whether a listener may use it. What is unknown is used.
    pub(crate) fn serves(&self, listener: Listener) -> bool {
        if self.down.is_some() {
            return false;
        }
        let usable = |check: &Check| check.passes != Some(false);
        match listener.protocol {
            Protocol::Tcp => [CheckScope::All, CheckScope::NodePort(listener.node_port)]
                .iter()
                .filter_map(|scope| self.checks.get(scope))
                .all(|(_, check)| usable(check)),
            // A node that serves any port runs, and nothing more can be known of its UDP ports.
            Protocol::Udp => self.checks.is_empty() || self.checks.values().any(|(_, check)| usable(check)),
        }
    }

    /// Whether all checks pass, and if not, why.
    pub(crate) fn summary(&self) -> (Option<bool>, Option<String>) {
        if let Some(reason) = &self.down {
            return (Some(false), Some(reason.clone()));
        }
        let failing: Vec<_> =
            self.checks.iter().filter(|(_, (_, check))| check.passes == Some(false)).collect();
        if let Some((scope, (_, first))) = failing.first() {
            let ports = failing.iter().filter_map(|(scope, _)| match scope {
                CheckScope::NodePort(port) => Some(port.to_string()),
                CheckScope::All => None,
            });
            let reason = match scope {
                CheckScope::All => first.failure.clone(),
                CheckScope::NodePort(_) => {
                    let noun = if failing.len() == 1 { "node port" } else { "node ports" };
                    format!("{noun} {}: {}", ports.collect::<Vec<_>>().join(", "), first.failure)
                }
            };
            return (Some(false), Some(reason));
        }
        let all_known = self.checks.values().all(|(_, check)| check.passes.is_some());
        (all_known.then_some(true), None)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use super::*;
    use crate::plane::config::HealthKind;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const WEB: Listener = Listener { protocol: Protocol::Tcp, port: 80, node_port: 30_080 };
    const TLS: Listener = Listener { protocol: Protocol::Tcp, port: 443, node_port: 30_443 };
    const DNS: Listener = Listener { protocol: Protocol::Udp, port: 53, node_port: 30_053 };

    fn health(healthy_threshold: u32, unhealthy_threshold: u32) -> Health {
        let (interval, timeout) = (Duration::from_secs(2), Duration::from_secs(1));
        Health { kind: HealthKind::Auto, interval, timeout, healthy_threshold, unhealthy_threshold }
    }

    fn checked(ports: &[u16]) -> BackendHealth {
        let mut backend = BackendHealth::new(HERE);
        backend.configure(HERE, None, probes(ports));
        backend
    }

    fn probes(ports: &[u16]) -> BTreeMap<CheckScope, Probe> {
        ports.iter().map(|p| (CheckScope::NodePort(*p), Probe::Connect(*p))).collect()
    }

    fn bad() -> Result<(), String> {
        Err("connection refused".to_owned())
    }

    /// `+` is a good check, `-` a bad one, `!` a client that could not be connected.
    fn after(story: &str, thresholds: (u32, u32)) -> Option<bool> {
        let (health, scope) = (health(thresholds.0, thresholds.1), CheckScope::NodePort(30_080));
        let mut backend = checked(&[30_080]);
        for sign in story.chars() {
            match sign {
                '+' => backend.result(scope, Ok(()), &health),
                '-' => backend.result(scope, bad(), &health),
                _ => backend.connect_failed(30_080, "connection refused"),
            }
        }
        backend.summary().0
    }

    #[test]
    fn thresholds_count_after_the_first_result() {
        let table = [
            ("CL-51 nothing is known", "", (1, 2), None),
            ("CL-51 the first result decides alone: good", "+", (3, 3), Some(true)),
            ("CL-51 the first result decides alone: bad", "-", (3, 3), Some(false)),
            ("CL-51 one bad check is not enough", "+-", (1, 2), Some(true)),
            ("CL-51 two in a row are", "+--", (1, 2), Some(false)),
            ("CL-51 not in a row", "+-+-", (1, 2), Some(true)),
            ("CL-52 one good check brings it back", "+--+", (1, 2), Some(true)),
            ("CL-52 too few good ones", "-++", (3, 2), Some(false)),
            ("CL-52 not in a row", "-++-++", (3, 2), Some(false)),
            ("CL-52 enough", "-+++", (3, 2), Some(true)),
            ("CL-96 a failed connection marks down at once", "+!", (1, 2), Some(false)),
            ("CL-96 even before the first check", "!", (1, 2), Some(false)),
            ("CL-96 the next good check brings it back", "+!+", (3, 2), Some(true)),
            ("CL-96 a bad check keeps it down", "+!-", (1, 2), Some(false)),
            ("CL-52 one that was down already keeps its threshold", "-!+", (2, 2), Some(false)),
        ];
        for (case, story, thresholds, want) in table {
            assert_eq!(after(story, thresholds), want, "{case}: {story:?}");
        }
    }

    #[test]
    fn a_dead_node_port_takes_the_backend_out_of_its_listener_only() {
        let mut backend = checked(&[30_080, 30_443]);
        backend.result(CheckScope::NodePort(30_080), Ok(()), &health(1, 2));
        assert_eq!(backend.summary(), (None, None), "CL-97 one result is missing");
        backend.result(CheckScope::NodePort(30_443), bad(), &health(1, 2));
        let serves = |backend: &BackendHealth| [WEB, TLS, DNS].map(|listener| backend.serves(listener));
        assert_eq!(serves(&backend), [true, false, true], "CL-97 only the one listener");
        let reason = "node port 30443: connection refused".to_owned();
        assert_eq!(backend.summary(), (Some(false), Some(reason)), "CL-97 the reason names the port");
        backend.connect_failed(30_080, "connection refused");
        assert_eq!(serves(&backend), [false, false, false], "CL-97 no check passes");
        let reason = "node ports 30080, 30443: connection refused".to_owned();
        assert_eq!(backend.summary().1, Some(reason), "CL-97 the reason names both");
    }

    #[test]
    fn a_machine_that_is_down_starts_anew() {
        let mut backend = checked(&[30_080]);
        backend.result(CheckScope::NodePort(30_080), Ok(()), &health(1, 2));
        backend.configure(HERE, Some("machine stopped".to_owned()), probes(&[30_080]));
        assert!(!backend.serves(WEB) && !backend.serves(DNS), "CL-82 nobody uses it");
        assert_eq!(backend.summary(), (Some(false), Some("machine stopped".to_owned())), "CL-82");
        backend.configure(HERE, None, probes(&[30_080]));
        assert_eq!((backend.summary().0, backend.serves(WEB)), (None, true), "CL-82 unknown, and used");
    }

    #[test]
    fn verdicts_are_kept_as_long_as_the_same_is_checked() {
        let mut backend = checked(&[30_080, 30_443]);
        for port in [30_080, 30_443] {
            backend.result(CheckScope::NodePort(port), bad(), &health(1, 2));
        }
        backend.configure(HERE, None, probes(&[30_080, 31_443]));
        assert!(!backend.serves(WEB), "CL-36 the port that is still checked keeps its verdict");
        assert!(backend.serves(Listener { node_port: 31_443, ..TLS }), "CL-36 the new one is unknown");
        backend.configure(Ipv4Addr::new(127, 0, 0, 2).into(), None, probes(&[30_080]));
        assert!(backend.serves(WEB), "CL-36 nothing is known of another address");
    }

    #[test]
    fn without_checks_every_backend_is_well() {
        let mut backend = checked(&[]);
        backend.connect_failed(30_080, "connection refused");
        backend.result(CheckScope::All, bad(), &health(1, 2));
        assert_eq!(backend.summary(), (Some(true), None), "CL-51 kind none");
        assert!(backend.serves(WEB) && backend.serves(DNS), "CL-51 kind none");
    }
}
