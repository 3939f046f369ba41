//! Which address a load balancer has.
//!
//! An address is stable: a key finds its old one again after a restart, and after it was deleted and made anew. A fixed hash
//! of the key says where the search begins, so that even without any memory most keys land where they were.

mod pool;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

use cloudberth_core::net::IpFamily;

pub use pool::{Pool, Pools};

use crate::{inventory::AddressMode, plane::BalancerKey};

/// Deleted load balancers whose addresses are remembered; the oldest is forgotten first.
const REMEMBERED: usize = 65_536;

/// An address that a deleted load balancer had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// Whose it was.
    pub key: BalancerKey,
    /// The address.
    pub address: IpAddr,
}

/// The addresses that deleted load balancers had, the one deleted longest ago first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleasedAddresses(VecDeque<Released>);

impl ReleasedAddresses {
    /// As they were written down.
    pub fn new(entries: impl IntoIterator<Item = Released>) -> Self {
        Self(entries.into_iter().collect())
    }

    /// In the order of their deletion.
    pub fn iter(&self) -> impl Iterator<Item = &Released> {
        self.0.iter()
    }

    /// A load balancer was deleted.
    pub(crate) fn release(&mut self, key: &BalancerKey, address: IpAddr) {
        self.forget(address);
        self.0.retain(|entry| entry.key != *key || IpFamily::of(entry.address) != IpFamily::of(address));
        self.0.push_back(Released { key: key.clone(), address });
        if self.0.len() > REMEMBERED {
            self.0.pop_front();
        }
    }

    /// Somebody has the address now.
    pub(crate) fn forget(&mut self, address: IpAddr) {
        self.0.retain(|entry| entry.address != address);
    }

    fn of(&self, key: &BalancerKey, family: IpFamily) -> Option<IpAddr> {
        let entry = self.0.iter().find(|entry| entry.key == *key && IpFamily::of(entry.address) == family);
        entry.map(|entry| entry.address)
    }
}

/// Why there is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAddress {
    /// The address that was asked for belongs to another load balancer.
    Taken(IpAddr, BalancerKey),
    /// The address that was asked for is not among those that are given out.
    NotInPool(IpAddr, String),
    /// All are taken.
    Exhausted(String),
    /// This mode has no address of this family at all.
    NoFamily(IpFamily, String),
}

/// What is asked of [`choose`].
#[derive(Debug)]
pub struct Request<'a> {
    /// For whom.
    pub key: &'a BalancerKey,
    /// Out of which pool.
    pub mode: AddressMode,
    /// One address for each of these, in this order.
    pub families: &'a [IpFamily],
    /// The address that the user asks for.
    pub requested: Option<IpAddr>,
    /// The addresses that it has.
    pub current: &'a [IpAddr],
}

/// The addresses of a load balancer: what it asks for, else what it has, else what it had, else a free one.
///
/// `taken` are the addresses of all existing load balancers that do not share theirs.
pub fn choose(
    request: &Request<'_>,
    pools: &Pools,
    taken: &BTreeMap<IpAddr, BalancerKey>,
    released: &ReleasedAddresses,
) -> Result<Vec<IpAddr>, NoAddress> {
    let pool = pools.of(request.mode);
    if let Some(wish) = request.requested
        && !(request.families.contains(&IpFamily::of(wish)) && pool.contains(wish))
    {
        return Err(NoAddress::NotInPool(wish, pool.to_string()));
    }
    request.families.iter().map(|family| choose_one(request, *family, pool, taken, released)).collect()
}

fn choose_one(
    request: &Request<'_>,
    family: IpFamily,
    pool: &Pool,
    taken: &BTreeMap<IpAddr, BalancerKey>,
    released: &ReleasedAddresses,
) -> Result<IpAddr, NoAddress> {
    let Request { key, mode, requested, current, .. } = *request;
    let size = pool.size(family);
    // There is one IPv6 loopback address only, and it is shared.
    let lacks = mode == AddressMode::Loopback && family == IpFamily::V6;
    if size == 0 || lacks {
        return Err(NoAddress::NoFamily(family, pool.to_string()));
    }
    let of_family = |address: &IpAddr| IpFamily::of(*address) == family;
    if mode == AddressMode::Shared {
        return pool.at(family, 0).ok_or_else(|| NoAddress::Exhausted(pool.to_string()));
    }
    let owner = |address: IpAddr| taken.get(&address).filter(|owner| *owner != key);
    if let Some(wish) = requested.filter(of_family) {
        return owner(wish).map_or(Ok(wish), |owner| Err(NoAddress::Taken(wish, owner.clone())));
    }
    let had = current.iter().copied().find(of_family).or_else(|| released.of(key, family));
    if let Some(had) = had.filter(|had| pool.contains(*had) && owner(*had).is_none()) {
        return Ok(had);
    }
    let kept: BTreeSet<IpAddr> = released.iter().map(|entry| entry.address).collect();
    let start = u128::from(position_hash(key)) % size;
    // Every slot that is passed over is taken, kept or no address at all, so this ends early in a large pool.
    let mut slots = (0..size).filter_map(|step| pool.at(family, (start + step) % size));
    if let Some(free) = slots.find(|slot| owner(*slot).is_none() && !kept.contains(slot)) {
        return Ok(free);
    }
    let oldest = released.iter().map(|entry| entry.address);
    let mut oldest = oldest.filter(|address| of_family(address) && pool.contains(*address));
    oldest.find(|address| owner(*address).is_none()).ok_or_else(|| NoAddress::Exhausted(pool.to_string()))
}

/// FNV-1a: where the search for a free address begins. It must never change, or addresses move when the state is lost.
fn position_hash(key: &BalancerKey) -> u64 {
    key.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
