//! Instances: one listing and one look-up by id.

use std::time::Duration;

use cloudberth_core::{
    AddressKind, Call, Error, Instance, InstanceState, Instances, LabelValue, Listing, Lookup, NodeAddress,
    ProviderId, Region, Result, Zone, provider::Boxed,
};

use crate::{
    cloud::{FakeInstance, Fault, Kind, PowerState},
    provider::FakeProvider,
};

const fn state(fake: &FakeInstance) -> InstanceState {
    match fake.state {
        PowerState::Running => InstanceState::Running,
        PowerState::Stopped => InstanceState::Stopped,
    }
}

impl FakeProvider {
    /// An instance in the framework's words. What the cloud says wrongly is left out rather than passed on.
    fn instance(&self, fake: &FakeInstance) -> Result<Instance> {
        let mut instance = Instance::new(ProviderId::new(&self.name, &fake.id)?, &fake.name);
        instance.state = if self.network.shared.hides_power { InstanceState::Running } else { state(fake) };
        instance.instance_type = LabelValue::new(&fake.flavor).ok();
        instance.zone = Zone::new(&fake.zone).ok();
        instance.region = fake.zone.split_once('-').and_then(|(region, _)| Region::new(region).ok());
        let private = NodeAddress::new(AddressKind::InternalIp, &fake.private_ip).ok();
        let hostname = NodeAddress::new(AddressKind::Hostname, &fake.name).ok();
        instance.addresses = [private, hostname].into_iter().flatten().collect();
        Ok(instance)
    }
}

impl Instances for FakeProvider {
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
        Box::pin(async move {
            let page = self.network.request(call, Kind::Read, "list instances", "", |world, now, fault| {
                let mut all = world.list_instances(now);
                let short = match fault {
                    Some(Fault::Deny) => {
                        all.clear();
                        None
                    }
                    Some(Fault::PartsMissing) => {
                        for instance in &mut all {
                            instance.private_ip.clear();
                        }
                        None
                    }
                    Some(Fault::ShortPage) => {
                        all.truncate(all.len() / 2);
                        Some("the second page is missing".to_owned())
                    }
                    _ => None,
                };
                Ok(Listing { items: all, short })
            });
            let page = page.await.map_err(crate::cloud::Trouble::error)?;
            let items = page.items.iter().map(|m| self.instance(m)).collect::<Result<_>>()?;
            Ok(Listing { items, short: page.short })
        })
    }

    fn get<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            if id.scheme() != self.name {
                return Lookup::Unknown(Error::permanent(format!(
                    "{id} is not an instance of {}",
                    self.name
                )));
            }
            let key = id.id().to_owned();
            let found = self
                .network
                .request(call, Kind::Read, "get instance", id.id(), move |world, _, fault| {
                    let mut instance = world.instance(&key).filter(|_| fault != Some(Fault::Deny));
                    if let (Some(instance), Some(Fault::PartsMissing)) = (&mut instance, fault) {
                        instance.private_ip.clear();
                    }
                    Ok(instance)
                })
                .await
                .map_err(crate::cloud::Trouble::error);
            found.and_then(|instance| instance.map(|m| self.instance(&m)).transpose()).into()
        })
    }

    fn ask_every(&self) -> Option<Duration> {
        self.network.shared.hides_power.then_some(Duration::from_secs(300))
    }

    fn runs<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<InstanceState>> {
        Box::pin(async move {
            let key = id.id().to_owned();
            let found = self.network.request(call, Kind::Read, "is running", id.id(), move |world, _, _| {
                Ok(world.instance(&key).as_ref().map(state))
            });
            found.await.map_err(crate::cloud::Trouble::error).into()
        })
    }
}
