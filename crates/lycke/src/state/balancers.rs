//! The load balancers: what each should be and which addresses it has.

use std::{collections::BTreeMap, net::IpAddr};

use crate::{
    addresses::{self, NoAddress, Pools, ReleasedAddresses, Request},
    inventory::AddressMode,
    plane::BalancerKey,
    refusal::Refusal,
    spec::Spec,
};

/// A load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    /// What it should be.
    pub spec: Spec,
    /// How often that was changed.
    pub generation: u64,
    /// Its addresses, in the order of its families.
    pub addresses: Vec<IpAddr>,
}

/// All load balancers, and where deleted ones were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balancers {
    pub(super) entries: BTreeMap<BalancerKey, Balancer>,
    pub(super) released: ReleasedAddresses,
}

/// What became of a spec that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// There was no such load balancer.
    Created,
    /// It should be something else than before.
    Changed,
    /// It should be what it was.
    Unchanged,
}

impl Balancers {
    /// One of them.
    pub fn get(&self, key: &BalancerKey) -> Option<&Balancer> {
        self.entries.get(key)
    }

    /// All of them, by cluster, namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = (&BalancerKey, &Balancer)> {
        self.entries.iter()
    }

    /// Makes a load balancer, or makes it be like `spec`.
    pub fn put(&mut self, key: &BalancerKey, spec: Spec, pools: &Pools) -> Result<Put, Refusal> {
        let default = pools.default_mode;
        let existing = self.entries.get(key);
        if existing.is_some_and(|balancer| balancer.spec.is_same_as(&spec, default)) {
            return Ok(Put::Unchanged);
        }
        let current = existing.map(|balancer| balancer.addresses.clone()).unwrap_or_default();
        let addresses = self.choose(key, &spec, &current, pools)?;
        let generation = existing.map_or(0, |balancer| balancer.generation) + 1;
        let put = if existing.is_some() { Put::Changed } else { Put::Created };
        self.insert(key, Balancer { spec, generation, addresses }, default);
        Ok(put)
    }

    fn choose(
        &self,
        key: &BalancerKey,
        spec: &Spec,
        current: &[IpAddr],
        pools: &Pools,
    ) -> Result<Vec<IpAddr>, NoAddress> {
        let default = pools.default_mode;
        let own =
            self.entries.iter().filter(|(_, balancer)| balancer.spec.mode(default) != AddressMode::Shared);
        let taken =
            own.flat_map(|(key, balancer)| balancer.addresses.iter().map(|address| (*address, key.clone())));
        let request = Request {
            key,
            mode: spec.mode(default),
            families: &spec.families,
            requested: spec.requested_address,
            current,
        };
        addresses::choose(&request, pools, &taken.collect(), &self.released)
    }

    fn insert(&mut self, key: &BalancerKey, balancer: Balancer, default: AddressMode) {
        if balancer.spec.mode(default) != AddressMode::Shared {
            balancer.addresses.iter().for_each(|address| self.released.forget(*address));
        }
        self.entries.insert(key.clone(), balancer);
    }

    /// Deletes a load balancer, if it still is the one with this uid. Says whether it was there.
    pub fn delete(&mut self, key: &BalancerKey, uid: Option<&str>, pools: &Pools) -> Result<bool, Refusal> {
        let Some(balancer) = self.entries.get(key) else { return Ok(false) };
        if let Some(uid) = uid
            && uid != balancer.spec.uid
        {
            let message = format!("{key} belongs to uid {:?} now, not to {uid:?}", balancer.spec.uid);
            return Err(Refusal::new(409, "uid_conflict", message));
        }
        if let Some(balancer) = self.entries.remove(key)
            && balancer.spec.mode(pools.default_mode) != AddressMode::Shared
        {
            balancer.addresses.iter().for_each(|address| self.released.release(key, *address));
        }
        Ok(true)
    }

    /// A load balancer as it was written down. Its address is kept unless mode or pool are others now. Gives back why it
    /// cannot be.
    pub(super) fn restore(
        &mut self,
        key: &BalancerKey,
        mut balancer: Balancer,
        pools: &Pools,
    ) -> Result<(), Refusal> {
        let chosen = self.choose(key, &balancer.spec, &balancer.addresses, pools);
        balancer.addresses = match chosen {
            // What it asked for is not to be had any more, which is no reason to take it down.
            Err(NoAddress::NotInPool(..) | NoAddress::Taken(..)) => {
                let spec = Spec { requested_address: None, ..balancer.spec.clone() };
                self.choose(key, &spec, &balancer.addresses, pools)?
            }
            chosen => chosen?,
        };
        self.insert(key, balancer, pools.default_mode);
        Ok(())
    }
}
