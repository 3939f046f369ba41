//! The block `loadBalancers` of the inventory.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use cloudberth_core::net::{parse_cidr, parse_ip};
use cloudberth_http::yaml::{Fields, Value};
use ipnet::{IpNet, Ipv4Net};

use super::duration;
use crate::plane::{Limits, LowPorts};

/// Where the addresses of load balancers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressMode {
    /// Each has its own address out of a block of 127.0.0.0/8.
    Loopback,
    /// All share one address.
    Shared,
    /// Each has its own address of a real interface.
    Pool,
}

impl AddressMode {
    /// The word in files and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Shared => "shared",
            Self::Pool => "pool",
        }
    }

    /// A mode. The error says which there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        [Self::Loopback, Self::Shared, Self::Pool]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a mode; there are loopback, shared and pool"))
    }

    /// The addresses of a mode that nobody has configured.
    pub(crate) fn default_pool(self) -> Vec<IpNet> {
        match self {
            Self::Loopback => {
                Ipv4Net::new(Ipv4Addr::new(127, 77, 0, 0), 16).map(IpNet::V4).into_iter().collect()
            }
            Self::Shared => {
                vec![IpAddr::V4(Ipv4Addr::LOCALHOST).into(), IpAddr::V6(Ipv6Addr::LOCALHOST).into()]
            }
            Self::Pool => Vec::new(),
        }
    }
}

/// How load balancers are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancerSettings {
    /// Where addresses come from if a load balancer does not say it.
    pub mode: AddressMode,
    /// The addresses of this mode.
    pub pool: Vec<IpNet>,
    /// What each load balancer may use up.
    pub limits: Limits,
    /// Open TCP connections of the process; 0 means as many as its files allow.
    pub connections_total: usize,
    /// Load balancers of a cluster whose manager has been silent for so long are deleted; `None` means never.
    pub reap_after: Option<Duration>,
}

impl Default for BalancerSettings {
    fn default() -> Self {
        Self {
            mode: AddressMode::Loopback,
            pool: AddressMode::Loopback.default_pool(),
            limits: Limits {
                drain: Duration::from_secs(30),
                connections: 4096,
                udp_idle: Duration::from_secs(60),
                udp_flows: 4096,
                low_ports: LowPorts::Shift,
            },
            connections_total: 0,
            reap_after: None,
        }
    }
}

const MOST: u32 = 10_000_000;

/// `pool_is_list`: the pool is a list, not one address or CIDR.
pub(super) fn read(fields: &mut Fields<'_>, pool_is_list: bool) -> BalancerSettings {
    let mut settings = BalancerSettings::default();
    let mode_given = fields.optional("mode");
    let pool_given = fields.optional("pool");
    let low_ports = fields.optional("lowPorts").parse(|text| match text {
        "shift" => Ok(LowPorts::Shift),
        "fail" => Ok(LowPorts::Fail),
        _ => Err(format!("{text:?} must be shift or fail")),
    });
    let limits = &mut settings.limits;
    limits.low_ports = low_ports.unwrap_or(limits.low_ports);
    limits.drain = fields.optional("drain").parse(duration::parse).unwrap_or(limits.drain);
    let udp_idle = fields.optional("udpIdle");
    limits.udp_idle = udp_idle.parse(above_zero).unwrap_or(limits.udp_idle);
    settings.reap_after = fields.optional("reapAfter").parse(five_minutes_or_more);
    let mut count = |name, from: u32| fields.optional(name).integer(from..=MOST).map(|n| n as usize);
    limits.connections = count("maxConnections", 1).unwrap_or(limits.connections);
    limits.udp_flows = count("udpFlows", 1).unwrap_or(limits.udp_flows);
    settings.connections_total = count("maxConnectionsTotal", 0).unwrap_or(settings.connections_total);
    settings.mode = mode_given.parse(AddressMode::parse).unwrap_or(settings.mode);
    settings.pool = read_pool(&pool_given, pool_is_list, settings.mode);
    settings
}

/// A duration that something is done every so often, or forgotten after.
pub(super) fn above_zero(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if duration.is_zero() { Err(format!("{text:?} must be more than nothing")) } else { Ok(duration) }
}

/// A manager asks about once a minute; what is shorter would delete load balancers that are in use.
fn five_minutes_or_more(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    let long_enough = duration >= Duration::from_secs(300);
    if long_enough { Ok(duration) } else { Err(format!("{text:?} must be 5m or more")) }
}

fn read_pool(given: &Value<'_>, is_list: bool, mode: AddressMode) -> Vec<IpNet> {
    let mut is_given = false;
    let mut read = |value: &Value<'_>| {
        value.parse(|text| {
            is_given = true;
            parse_net(text, mode)
        })
    };
    let pool = if is_list { given.items(|value| read(&value)) } else { read(given).into_iter().collect() };
    if is_given {
        return pool;
    }
    let pool = mode.default_pool();
    if pool.is_empty() {
        given.wrong(format!("it is missing; mode {} needs addresses, such as a CIDR", mode.as_str()));
    }
    pool
}

fn parse_net(text: &str, mode: AddressMode) -> Result<IpNet, String> {
    let net = parse_cidr(text).or_else(|| parse_ip(text).map(IpNet::from));
    let net = net.ok_or_else(|| format!("{text:?} is neither an IP address nor a CIDR"))?;
    let inside = match net {
        IpNet::V4(net) => net.network().is_loopback() && net.broadcast().is_loopback(),
        IpNet::V6(_) => false,
    };
    match mode {
        AddressMode::Loopback if !inside => {
            Err(format!("{text:?} is outside of 127.0.0.0/8, where mode loopback is"))
        }
        AddressMode::Shared if net.prefix_len() != net.max_prefix_len() => {
            Err(format!("{text:?} is more than one address, and mode shared has one"))
        }
        _ => Ok(net),
    }
}
