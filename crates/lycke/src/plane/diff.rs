//! What changes between two configurations of a load balancer: only that is touched.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use super::config::{Backend, BalancerConfig, Health, HealthKind, Listener, Protocol};

/// What a listening socket is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) protocol: Protocol,
    pub(crate) address: SocketAddr,
}

/// What is done to get from one configuration to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Listening sockets that are no longer wanted.
    pub(crate) close: Vec<Endpoint>,
    /// Those that are new.
    pub(crate) open: Vec<Endpoint>,
    /// Machines whose connections drain: gone from the list, or down.
    pub(crate) drain: Vec<String>,
    /// Machines that take connections: new, or no longer down.
    pub(crate) admit: Vec<String>,
    /// Counters start again.
    pub(crate) restart_counters: bool,
}

/// What a health check asks, for all listeners or for one node port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    Connect(u16),
    Get {
        port: u16,
        path: String,
    },
    /// kube-proxy's health port: it is well if nobody answers there.
    KubeProxy,
}

/// Which listeners a check speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckScope {
    All,
    NodePort(u16),
}

/// The sockets of a configuration: each listener at each address, in this order.
pub(crate) fn endpoints(config: &BalancerConfig) -> impl Iterator<Item = (Listener, IpAddr, Endpoint)> + '_ {
    config.listeners.iter().flat_map(|listener| {
        config.addresses.iter().map(|address| {
            let endpoint =
                Endpoint { protocol: listener.protocol, address: SocketAddr::new(*address, listener.port) };
            (*listener, *address, endpoint)
        })
    })
}

/// The checks of every backend.
pub(crate) fn probes(health: &Health, listeners: &[Listener]) -> BTreeMap<CheckScope, Probe> {
    let node_ports = || {
        let tcp = listeners.iter().filter(|listener| listener.protocol == Protocol::Tcp);
        tcp.map(|l| (CheckScope::NodePort(l.node_port), Probe::Connect(l.node_port)))
            .collect::<BTreeMap<_, _>>()
    };
    let for_all = |probe| BTreeMap::from([(CheckScope::All, probe)]);
    match &health.kind {
        HealthKind::None => BTreeMap::new(),
        HealthKind::Http { port, path } => for_all(Probe::Get { port: *port, path: path.clone() }),
        HealthKind::Tcp { port: Some(port) } => for_all(Probe::Connect(*port)),
        HealthKind::Tcp { port: None } => node_ports(),
        HealthKind::Auto if listeners.iter().any(|l| l.protocol == Protocol::Tcp) => node_ports(),
        HealthKind::Auto => for_all(Probe::KubeProxy),
    }
}

/// What to do to get from `old` to `new`; without an old one, everything is new.
pub(crate) fn changes(old: Option<&BalancerConfig>, new: &BalancerConfig) -> Changes {
    let sockets = |config: &BalancerConfig| endpoints(config).map(|(_, _, e)| e).collect::<BTreeSet<_>>();
    let (before, after) = (old.map(sockets).unwrap_or_default(), sockets(new));
    let backend = |machine: &str| old.and_then(|old| old.backends.iter().find(|b| b.machine == machine));
    let up = |backend: &Backend| backend.down.is_none();

    let mut changes = Changes {
        close: before.difference(&after).copied().collect(),
        open: after.difference(&before).copied().collect(),
        restart_counters: old.is_some_and(|old| old.uid != new.uid),
        ..Changes::default()
    };
    for now in &new.backends {
        let machine = || now.machine.clone();
        match backend(&now.machine) {
            None if up(now) => changes.admit.push(machine()),
            Some(was) if up(was) && !up(now) => changes.drain.push(machine()),
            Some(was) if !up(was) && up(now) => changes.admit.push(machine()),
            _ => {}
        }
    }
    for was in old.map_or(&[][..], |old| &old.backends) {
        if up(was) && !new.backends.iter().any(|now| now.machine == was.machine) {
            changes.drain.push(was.machine.clone());
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plane::config::{Limits, LowPorts, Policy, ProxyProtocol};

    fn listener(protocol: Protocol, port: u16, node_port: u16) -> Listener {
        Listener { protocol, port, node_port }
    }

    fn health(kind: HealthKind) -> Health {
        let (interval, timeout) = (Duration::from_secs(2), Duration::from_secs(1));
        Health { kind, interval, timeout, healthy_threshold: 1, unhealthy_threshold: 2 }
    }

    fn config(listeners: &[Listener], machines: &[(&str, bool)]) -> BalancerConfig {
        let backend = |(at, (machine, up)): (usize, &(&str, bool))| Backend {
            machine: (*machine).to_owned(),
            address: format!("127.0.0.{}", at + 1).parse().unwrap(),
            down: (!up).then(|| "machine stopped".to_owned()),
        };
        BalancerConfig {
            uid: "u".to_owned(),
            addresses: vec!["127.77.0.9".parse().unwrap()],
            listeners: listeners.to_vec(),
            backends: machines.iter().enumerate().map(backend).collect(),
            affinity: None,
            source_ranges: Vec::new(),
            health: health(HealthKind::Auto),
            proxy_protocol: ProxyProtocol::None,
            policy: Policy::RoundRobin,
            idle_timeout: None,
            limits: Limits {
                drain: Duration::from_secs(30),
                connections: 4096,
                udp_idle: Duration::from_secs(60),
                udp_flows: 4096,
                low_ports: LowPorts::Shift,
            },
        }
    }

    const WEB: Listener = Listener { protocol: Protocol::Tcp, port: 80, node_port: 30_080 };

    fn shown(endpoints: &[Endpoint]) -> Vec<String> {
        endpoints.iter().map(|e| format!("{:?} {}", e.protocol, e.address)).collect()
    }

    #[test]
    fn only_sockets_that_differ_are_touched() {
        let old = config(&[WEB, listener(Protocol::Tcp, 443, 30_443)], &[]);
        let mut new =
            config(&[Listener { node_port: 31_000, ..WEB }, listener(Protocol::Udp, 443, 30_443)], &[]);
        let both = changes(Some(&old), &new);
        assert_eq!(shown(&both.close), ["Tcp 127.77.0.9:443"], "CL-35 the port that is gone");
        assert_eq!(shown(&both.open), ["Udp 127.77.0.9:443"], "CL-58 another transport, the same number");
        assert_eq!(shown(&changes(None, &old).open).len(), 2, "CL-98 at first all are new");

        new.addresses.push("::1".parse().unwrap());
        let added = changes(Some(&old), &new);
        assert_eq!(
            shown(&added.open),
            ["Tcp [::1]:80", "Udp 127.77.0.9:443", "Udp [::1]:443"],
            "CL-68 each family"
        );
        assert_eq!(changes(Some(&new), &new), Changes::default(), "CL-33 nothing differs, nothing is done");
    }

    #[test]
    fn machines_drain_and_come_back() {
        type Machines = &'static [(&'static str, bool)];
        type Row = (&'static str, Machines, Machines, &'static [&'static str], &'static [&'static str]);
        let table: [Row; 6] = [
            ("CL-87 added", &[("a", true)], &[("a", true), ("b", true)], &[], &["b"]),
            ("CL-87 removed", &[("a", true), ("b", true)], &[("a", true)], &["b"], &[]),
            ("CL-82 stopped", &[("a", true)], &[("a", false)], &["a"], &[]),
            ("CL-82 running again", &[("a", false)], &[("a", true)], &[], &["a"]),
            ("CL-82 stopped, then removed: it drains already", &[("a", false)], &[], &[], &[]),
            ("CL-82 stopped from the beginning", &[], &[("a", false)], &[], &[]),
        ];
        for (case, before, after, drain, admit) in table {
            let found = changes(Some(&config(&[WEB], before)), &config(&[WEB], after));
            assert_eq!((found.drain, found.admit), (own(drain), own(admit)), "{case}");
        }
    }

    fn own(machines: &[&str]) -> Vec<String> {
        machines.iter().map(|machine| (*machine).to_owned()).collect()
    }

    #[test]
    fn another_uid_restarts_the_counters() {
        let old = config(&[WEB], &[]);
        let new = BalancerConfig { uid: "v".to_owned(), ..old.clone() };
        assert_eq!(
            changes(Some(&old), &new),
            Changes { restart_counters: true, ..Changes::default() },
            "CL-70 nothing else happens"
        );
    }

    #[test]
    fn the_kind_of_check_depends_on_the_listeners() {
        let tcp = [WEB, listener(Protocol::Tcp, 443, 30_443), listener(Protocol::Udp, 53, 30_053)];
        let udp = [listener(Protocol::Udp, 53, 30_053)];
        let ports = || [30_080, 30_443].map(|p| (CheckScope::NodePort(p), Probe::Connect(p))).to_vec();
        let all = |probe| vec![(CheckScope::All, probe)];
        let get = || Probe::Get { port: 32_000, path: "/healthz".to_owned() };
        let http = HealthKind::Http { port: 32_000, path: "/healthz".to_owned() };
        let table = [
            ("CL-97 each node port", HealthKind::Auto, &tcp[..], ports()),
            ("CL-97 each node port, asked for", HealthKind::Tcp { port: None }, &tcp[..], ports()),
            ("CL-97 one port", HealthKind::Tcp { port: Some(9) }, &tcp[..], all(Probe::Connect(9))),
            ("CL-61 HTTP", http, &tcp[..], all(get())),
            ("CL-95 UDP only", HealthKind::Auto, &udp[..], all(Probe::KubeProxy)),
            ("CL-95 no TCP port to ask", HealthKind::Tcp { port: None }, &udp[..], Vec::new()),
            ("CL-51 nothing is checked", HealthKind::None, &tcp[..], Vec::new()),
        ];
        for (case, kind, listeners, want) in table {
            assert_eq!(probes(&health(kind), listeners).into_iter().collect::<Vec<_>>(), want, "{case}");
        }
    }
}
