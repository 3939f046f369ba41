//! What differs between two specs, and what a change of it does to traffic.

use cloudberth_core::lb::Impact;

use crate::wire::{BalancerSpec, Listener};

/// Something that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    what: &'static str,
    impact: Impact,
}

impl Change {
    /// The worst that the changes do to traffic; `None` where there are none.
    pub(super) fn worst(all: &[Self]) -> Option<Impact> {
        all.iter().map(|change| change.impact).max()
    }
}

/// The changes for a label: `ports, nodes`.
pub(super) fn in_words(all: &[Change]) -> String {
    all.iter().map(|change| change.what).collect::<Vec<_>>().join(", ")
}

/// What differs. A spec that leaves the address mode to the inventory differs from none, unless the mode was `withdrawn`:
/// the service shows the mode in force and not who chose it.
pub(super) fn changes(wanted: &BalancerSpec, is: &BalancerSpec, withdrawn: bool) -> Vec<Change> {
    let ports = |spec: &BalancerSpec| {
        let key = |one: &Listener| (one.protocol.clone(), one.port);
        spec.listeners.iter().map(key).collect::<std::collections::BTreeSet<_>>()
    };
    let closes = ports(is).difference(&ports(wanted)).next().is_some();
    let loses = is.backends.difference(&wanted.backends).next().is_some();
    let minimal = |lossy: bool| if lossy { Impact::Minimal } else { Impact::None };
    let mode = wanted.address_mode.is_some() && wanted.address_mode != is.address_mode;
    let moves = !wanted.requested_address.is_empty() && wanted.requested_address != is.requested_address;
    let table = [
        (wanted.uid != is.uid, "the Service", Impact::None),
        (
            wanted.requested_address != is.requested_address,
            "the address",
            if moves { Impact::Major } else { Impact::None },
        ),
        (wanted.families != is.families, "the IP families", Impact::Major),
        (wanted.listeners != is.listeners, "ports", minimal(closes)),
        (wanted.backends != is.backends, "nodes", minimal(loses)),
        (wanted.affinity != is.affinity, "the session affinity", Impact::None),
        (wanted.source_ranges != is.source_ranges, "source ranges", Impact::Minimal),
        (wanted.health != is.health, "health checks", Impact::None),
        (wanted.proxy_protocol != is.proxy_protocol, "the PROXY protocol", Impact::Minimal),
        (wanted.policy != is.policy, "the policy", Impact::None),
        (wanted.idle_timeout_seconds != is.idle_timeout_seconds, "the idle timeout", Impact::None),
        (mode || withdrawn, "the address mode", Impact::Major),
    ];
    let differing = table.into_iter().filter(|(differs, ..)| *differs);
    differing.map(|(_, what, impact)| Change { what, impact }).collect()
}
