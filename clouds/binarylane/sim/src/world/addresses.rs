//! Addresses: who has which.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, Ipv6Addr},
};

use ipnet::Ipv4Net;

use super::World;
use crate::resources::Address;

/// The range of a VPC that is made without one.
pub(super) const VPC_RANGE: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 240, 0, 0), 16);
const SERVERS: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 16);
const BALANCERS: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 19, 0, 0), 16);
/// Private addresses that do not work.
const PHANTOMS: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 200, 0, 0), 16);
/// The provider's own.
const PROVIDERS: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(172, 21, 0, 0), 16);

/// The first addresses of a network are the gateway's and the provider's.
const RESERVED: u32 = 3;

impl World {
    /// The first free address of a network, counted on from a server's number so that few are tried. When all are taken
    /// it is the network's own.
    fn free(&self, net: Ipv4Net, from: usize) -> Ipv4Addr {
        let used: BTreeSet<_> = self.addresses_in(net).collect();
        let size = u32::MAX.checked_shr(u32::from(net.prefix_len())).unwrap_or_default();
        let from = u32::try_from(from).unwrap_or_default();
        let usable = size.saturating_sub(RESERVED).max(1);
        (0..usable)
            .map(|step| net.network().to_bits() + RESERVED + 1 + (from + step) % usable)
            .map(Ipv4Addr::from_bits)
            .find(|address| *address != net.broadcast() && !used.contains(address))
            .unwrap_or(net.network())
    }

    fn addresses_in(&self, net: Ipv4Net) -> impl Iterator<Item = Ipv4Addr> {
        let servers = self.resources.servers.values().flat_map(|server| &server.v4);
        let balancers = self.resources.balancers.values().filter_map(|balancer| balancer.ip);
        servers.map(|address| address.address).chain(balancers).filter(move |address| net.contains(address))
    }

    pub(super) fn is_used(&self, address: Ipv4Addr) -> bool {
        self.addresses_in(Ipv4Net::from(address)).next().is_some()
    }

    pub(super) fn free_balancer_address(&self) -> Ipv4Addr {
        self.free(BALANCERS, self.resources.balancers.len())
    }

    /// The addresses of a new server, in the order in which the API lists them.
    pub(super) fn addresses(&self, public: bool, vpc: Option<i64>, wanted: Option<Ipv4Addr>) -> Vec<Address> {
        let from = self.resources.servers.len();
        let one = |net: Ipv4Net, public: bool, address: Option<Ipv4Addr>| Address {
            address: address.unwrap_or_else(|| self.free(net, from)),
            public,
            prefix: net.prefix_len(),
            nat_target: None,
        };
        let switches = &self.settings.switches;
        let mut all = Vec::new();
        if public {
            all.push(one(SERVERS, true, None));
        }
        match vpc.and_then(|vpc| self.resources.vpcs.get(&vpc)) {
            Some(vpc) => {
                if switches.provider_private {
                    all.push(one(PROVIDERS, false, None));
                }
                all.push(one(vpc.ip_range, false, wanted));
            }
            None if switches.phantom_private => all.push(one(PHANTOMS, false, None)),
            None => {}
        }
        all
    }

    /// The public IPv6 address of a server.
    pub(super) fn v6_of(id: i64) -> Ipv6Addr {
        let [.., a, b, c, d] = id.to_be_bytes();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Ipv6Addr::new(0x2001, 0xdb8, high, low, 0, 0, 0, 0x24)
    }
}
