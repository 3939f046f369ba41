//! Which capabilities the cloud has.

use std::sync::Arc;

use cloudberth_core::{
    Clock, Instances, LoadBalancers, Provider, Region, Routes, Zone, Zones,
    lookup::Listing,
    provider::{Boxed, Place},
};

use crate::{balancers::Fakes, cloud::Cloud, cloud::Network};

/// The provider of one program: a connection to a [`Cloud`] under the program's name and by its clock.
#[derive(Debug)]
pub struct FakeProvider {
    pub(crate) name: String,
    pub(crate) network: Network,
    balancers: Fakes,
}

impl FakeProvider {
    /// Connects the program called `who` to `cloud`. `name` is the provider's name and the scheme of its ids, so that
    /// several can run side by side.
    pub fn new(name: &str, cloud: &Cloud, who: &str, clock: Arc<dyn Clock>) -> Self {
        let network = cloud.connect(who, clock);
        let balancers = Fakes::new(name, network.clone());
        Self { name: name.to_owned(), network, balancers }
    }

    /// Its load balancers, which it always has.
    pub fn balancers(&self) -> &dyn LoadBalancers {
        &self.balancers
    }
}

impl Provider for FakeProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn scheme(&self) -> &str {
        &self.name
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&self.balancers)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }

    fn zones(&self) -> Option<&dyn Zones> {
        Some(self)
    }
}

impl Zones for FakeProvider {
    fn list<'a>(
        &'a self,
        _call: &'a cloudberth_core::Call,
    ) -> Boxed<'a, cloudberth_core::Result<Listing<Place>>> {
        let place = |zone| {
            let region = Region::new("north")?;
            Zone::new(zone).map(|zone| Place { region, zone: Some(zone) })
        };
        let places = ["north-1", "north-2"].into_iter().map(place).collect::<cloudberth_core::Result<_>>();
        Box::pin(std::future::ready(places.map(Listing::complete)))
    }
}
