//! What a manager asks of a load balancer: checked, complete and in one form, so that equal wishes are equal values.

pub(crate) mod json;
mod read;
mod view;

use std::{net::IpAddr, time::Duration};

use cloudberth_core::net::IpFamily;
use ipnet::IpNet;

pub use read::read;
pub(crate) use view::{SpecView, protocol as protocol_word};

use crate::{
    inventory::AddressMode,
    plane::{Backend, BalancerConfig, Health, HealthKind, Limits, Listener, Policy, ProxyProtocol},
};

/// What a load balancer should be. Lists whose order means nothing are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The UID of its Service.
    pub uid: String,
    /// The address that the user asks for.
    pub requested_address: Option<IpAddr>,
    /// The families of its addresses, in the order of the user.
    pub families: Vec<IpFamily>,
    /// Its ports, sorted.
    pub listeners: Vec<Listener>,
    /// Its backends, sorted by machine.
    pub backends: Vec<SpecBackend>,
    /// For how many seconds a client keeps its backend.
    pub affinity: Option<u32>,
    /// Who may connect, sorted; empty means everybody.
    pub source_ranges: Vec<IpNet>,
    /// How backends are checked.
    pub health: SpecHealth,
    /// The header before the bytes of a client.
    pub proxy_protocol: ProxyProtocol,
    /// How a backend is chosen.
    pub policy: Policy,
    /// Seconds without a byte after which a connection is closed; 0 means never.
    pub idle_timeout: u32,
    /// Where its address comes from; none follows the inventory.
    pub address_mode: Option<AddressMode>,
}

/// A machine that should take traffic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpecBackend {
    /// The id of the machine.
    pub machine: String,
    /// Where its node ports answer.
    pub address: IpAddr,
}

/// How backends are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecHealth {
    /// What is asked.
    pub kind: SpecHealthKind,
    /// The port that is asked.
    pub port: Option<u16>,
    /// The path, for HTTP.
    pub path: String,
    /// Seconds between two checks.
    pub interval: u32,
    /// Seconds that an answer may take.
    pub timeout: u32,
    /// So many good checks in a row bring a backend back.
    pub healthy_threshold: u32,
    /// So many bad checks in a row take it out.
    pub unhealthy_threshold: u32,
}

/// What a health check asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecHealthKind {
    /// What suits the listeners.
    Auto,
    /// A connection.
    Tcp,
    /// A page.
    Http,
    /// Nothing.
    None,
}

impl Default for SpecHealth {
    fn default() -> Self {
        Self {
            kind: SpecHealthKind::Auto,
            port: None,
            path: "/healthz".to_owned(),
            interval: 2,
            timeout: 1,
            healthy_threshold: 1,
            unhealthy_threshold: 2,
        }
    }
}

impl SpecHealth {
    fn config(&self) -> Health {
        let kind = match (self.kind, self.port) {
            (SpecHealthKind::None, _) => HealthKind::None,
            // HTTP without a port is not valid, and the reader refuses it.
            (SpecHealthKind::Auto | SpecHealthKind::Http, None) => HealthKind::Auto,
            // Whoever names a port wants to see it answer, whatever the listeners are.
            (SpecHealthKind::Tcp | SpecHealthKind::Auto, port) => HealthKind::Tcp { port },
            (SpecHealthKind::Http, Some(port)) => HealthKind::Http { port, path: self.path.clone() },
        };
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        Health {
            kind,
            interval: seconds(self.interval),
            timeout: seconds(self.timeout),
            healthy_threshold: self.healthy_threshold,
            unhealthy_threshold: self.unhealthy_threshold,
        }
    }
}

impl Spec {
    /// Where the address comes from, if `default` is the mode of the inventory.
    pub fn mode(&self, default: AddressMode) -> AddressMode {
        self.address_mode.unwrap_or(default)
    }

    /// Whether both ask for the same. A default that is spelt out changes nothing.
    pub fn is_same_as(&self, other: &Self, default: AddressMode) -> bool {
        self.mode(default) == other.mode(default)
            && *self == Self { address_mode: self.address_mode, ..other.clone() }
    }

    /// What the plane should make of it. `down` says why a machine cannot take traffic.
    pub fn config(
        &self,
        addresses: &[IpAddr],
        limits: Limits,
        down: impl Fn(&str) -> Option<String>,
    ) -> BalancerConfig {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        let backends = self.backends.iter().map(|backend| Backend {
            machine: backend.machine.clone(),
            address: backend.address,
            down: down(&backend.machine),
        });
        BalancerConfig {
            uid: self.uid.clone(),
            addresses: addresses.to_vec(),
            listeners: self.listeners.clone(),
            backends: backends.collect(),
            affinity: self.affinity.map(seconds),
            source_ranges: self.source_ranges.clone(),
            health: self.health.config(),
            proxy_protocol: self.proxy_protocol,
            policy: self.policy,
            idle_timeout: (self.idle_timeout > 0).then(|| seconds(self.idle_timeout)),
            limits,
        }
    }
}

#[cfg(test)]
mod tests;
