//! Machines as instances.

use std::{collections::BTreeMap, net::IpAddr};

use cloudberth_core::{
    AddressKind, Category, Error, Instance, InstanceState, LabelKey, LabelValue, Listing, NodeAddress,
    ProviderId, Region, Result, Zone, error::Context, instance::PrivateFacts,
};
use cloudberth_http::{Flawed, Item};

use crate::{
    id::provider_id,
    wire::{Machine, MachineIdentity},
};

/// What load balancers need to know of a machine. It is known too where nobody knows what the machine does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its id.
    pub machine: String,
    /// Where its node ports answer, as seen from the service.
    pub backend: IpAddr,
    /// Its addresses inside of its network.
    pub internal: Vec<IpAddr>,
}

/// What a machine is to this cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It exists.
    Here(Box<Instance>),
    /// It exists no more.
    Gone,
    /// It is a machine of the cluster with this key.
    Elsewhere(String),
}

impl Machine {
    fn facts(&self) -> Facts {
        Facts { machine: self.id.clone(), backend: self.backend, internal: self.internal.clone() }
    }

    /// The id by which nodes find it. A node that another program owns finds it by the id that it has from there, and only
    /// for load balancers: no listing shows it to the controllers of nodes under an id or a name of ours.
    fn node_id(&self) -> Result<(ProviderId, &str)> {
        match &self.node_provider_id {
            Some(foreign) => Ok((foreign.parse::<ProviderId>()?, "")),
            None => Ok((provider_id(&self.id)?, &self.name)),
        }
    }

    fn instance(&self) -> Result<Instance> {
        let (id, name) = self.node_id()?;
        let facts = Some(PrivateFacts::new(self.facts()));
        let state = match self.state.as_str() {
            "running" => InstanceState::Running,
            "stopped" | "suspended" => InstanceState::Stopped,
            _ => {
                let why = "the service does not know its state; see whether Vagrant answers";
                return Ok(Instance { facts, ..Instance::flawed(id, name, why) });
            }
        };
        let mut instance = Instance::new(id, name);
        instance.state = state;
        instance.instance_type = LabelValue::new(&self.machine_type).ok();
        instance.zone = Zone::new(&self.zone).ok();
        instance.region = Region::new(&self.region).ok();
        instance.addresses = self.addresses();
        instance.labels = self.labels();
        instance.facts = facts;
        Ok(instance)
    }

    /// An external address that is an internal one too is shown as both, as the program before this one did.
    fn addresses(&self) -> Vec<NodeAddress> {
        let of = |kind, list: &[IpAddr]| {
            let texts: Vec<_> = list.iter().map(ToString::to_string).collect();
            texts.into_iter().filter_map(move |text| NodeAddress::new(kind, &text).ok()).collect::<Vec<_>>()
        };
        let mut all = of(AddressKind::InternalIp, &self.internal);
        all.extend(of(AddressKind::ExternalIp, &self.external));
        all.extend(NodeAddress::new(AddressKind::Hostname, &self.name).ok());
        all
    }

    fn labels(&self) -> BTreeMap<LabelKey, LabelValue> {
        let pair =
            |(key, value): (&String, &String)| LabelKey::new(key).ok().zip(LabelValue::new(value).ok());
        self.labels.iter().filter_map(pair).collect()
    }
}

/// What a machine is to the cluster with this key.
pub(crate) fn read(machine: Item<Machine, MachineIdentity>, cluster: &str) -> Result<Known> {
    match machine {
        Item::Whole(machine) if machine.cluster != cluster => Ok(Known::Elsewhere(machine.cluster)),
        Item::Whole(machine) if machine.state == "gone" => Ok(Known::Gone),
        Item::Whole(machine) => machine.instance().map(|instance| Known::Here(Box::new(instance))),
        Item::Flawed(Flawed { identity, why: _ }) if identity.cluster != cluster => {
            Ok(Known::Elsewhere(identity.cluster))
        }
        Item::Flawed(Flawed { identity: MachineIdentity { id, name, .. }, why }) => {
            Ok(Known::Here(Box::new(Instance::flawed(provider_id(&id)?, &name, &why))))
        }
    }
}

/// The instances of the cluster. A machine that cannot be told apart makes the listing short.
pub(crate) fn instances(listed: Listing<Item<Machine, MachineIdentity>>, cluster: &str) -> Listing<Instance> {
    let mut items = Vec::with_capacity(listed.items.len());
    let mut short = listed.short;
    for machine in listed.items {
        match read(machine, cluster).context("a machine cannot be told apart") {
            Ok(Known::Here(instance)) => items.push(*instance),
            Ok(Known::Gone | Known::Elsewhere(_)) => {}
            Err(why) => drop(short.get_or_insert_with(|| why.message().to_owned())),
        }
    }
    Listing { items, short }
}

/// What the provider knows of an instance of its own.
pub(crate) fn facts(instance: &Instance) -> Option<&Facts> {
    instance.facts.as_ref().and_then(PrivateFacts::get::<Facts>)
}

/// Why a machine of another cluster is none of ours. No other error about a single machine has this category.
pub(crate) fn elsewhere(machine: &str, theirs: &str, ours: &str) -> Error {
    let text = format!(
        "machine {machine:?} is not of cluster {ours:?}: the inventory has it in cluster {theirs:?}; correct the \
         inventory, or CLOUDLYCKE_CLUSTER"
    );
    Error::new(Category::NotFound, text)
}

/// Whether a look-up has found the machine, in another cluster.
pub(crate) fn is_elsewhere(why: &Error) -> bool {
    why.category() == Category::NotFound
}

/// An error about a single machine that says nothing of where it is: a 404 that is not the service's own word, a page of
/// something in between, proves nothing (law 1).
pub(crate) fn proves_nothing(why: Error) -> Error {
    if is_elsewhere(&why) { Error::temporary(why.message()) } else { why }
}

#[cfg(test)]
mod tests;
