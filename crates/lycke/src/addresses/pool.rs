//! The addresses that can be given out.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use cloudberth_core::net::IpFamily;
use ipnet::IpNet;

use crate::inventory::{AddressMode, BalancerSettings};

/// Networks and single addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool(Vec<IpNet>);

impl Pool {
    /// These networks, searched in this order.
    pub fn new(nets: Vec<IpNet>) -> Self {
        Self(nets)
    }

    /// Whether the address can be given out.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|net| net.contains(&address) && is_usable(net, address))
    }

    /// The first address that can be given out.
    pub fn first(&self) -> Option<IpAddr> {
        let family = IpFamily::of(self.0.first()?.addr());
        // Of each network, only the first slot is skipped.
        (0..2).find_map(|slot| self.at(family, slot))
    }

    fn of_family(&self, family: IpFamily) -> impl Iterator<Item = &IpNet> {
        self.0.iter().filter(move |net| IpFamily::of(net.addr()) == family)
    }

    /// How many slots there are, those that are skipped included.
    pub(super) fn size(&self, family: IpFamily) -> u128 {
        self.of_family(family).fold(0, |sum: u128, net| sum.saturating_add(size(net)))
    }

    /// The address in a slot; none if the slot is skipped.
    pub(super) fn at(&self, family: IpFamily, mut slot: u128) -> Option<IpAddr> {
        for net in self.of_family(family) {
            if slot < size(net) {
                let address = nth(net, slot)?;
                return is_usable(net, address).then_some(address);
            }
            slot -= size(net);
        }
        None
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, net) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { ", " };
            if is_single(net) { write!(f, "{gap}{}", net.addr())? } else { write!(f, "{gap}{net}")? }
        }
        Ok(())
    }
}

fn is_single(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}

fn size(net: &IpNet) -> u128 {
    1_u128.checked_shl(u32::from(net.max_prefix_len() - net.prefix_len())).unwrap_or(u128::MAX)
}

fn nth(net: &IpNet, slot: u128) -> Option<IpAddr> {
    match net.network() {
        IpAddr::V4(first) => {
            let bits = u32::from(first).checked_add(u32::try_from(slot).ok()?)?;
            Some(IpAddr::V4(Ipv4Addr::from(bits)))
        }
        IpAddr::V6(first) => Some(IpAddr::V6(Ipv6Addr::from(u128::from(first).checked_add(slot)?))),
    }
}

/// The first and the last address of a network have a meaning of their own, and `.0` and `.255` look as if they had. An
/// address that somebody named by itself is meant as it is.
fn is_usable(net: &IpNet, address: IpAddr) -> bool {
    if net.max_prefix_len() - net.prefix_len() <= 1 {
        return true;
    }
    match address {
        IpAddr::V4(v4) => {
            let [.., last] = v4.octets();
            !matches!(last, 0 | 255) && address != net.network() && address != net.broadcast()
        }
        IpAddr::V6(_) => address != net.network(),
    }
}

/// The pool of each mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pools {
    /// The mode of load balancers that do not name one.
    pub default_mode: AddressMode,
    loopback: Pool,
    shared: Pool,
    pool: Pool,
}

impl Pools {
    /// The configured pool is that of the configured mode; the others have their defaults.
    pub fn new(settings: &BalancerSettings) -> Self {
        let of = |mode: AddressMode| {
            let configured = settings.mode == mode;
            Pool::new(if configured { settings.pool.clone() } else { mode.default_pool() })
        };
        let (loopback, shared, pool) =
            (of(AddressMode::Loopback), of(AddressMode::Shared), of(AddressMode::Pool));
        // The first address of each family is the one that is shared.
        let first = |family| shared.of_family(family).next().copied();
        let shared = Pool([first(IpFamily::V4), first(IpFamily::V6)].into_iter().flatten().collect());
        Self { default_mode: settings.mode, loopback, shared, pool }
    }

    /// The pool of a mode.
    pub fn of(&self, mode: AddressMode) -> &Pool {
        match mode {
            AddressMode::Loopback => &self.loopback,
            AddressMode::Shared => &self.shared,
            AddressMode::Pool => &self.pool,
        }
    }
}
