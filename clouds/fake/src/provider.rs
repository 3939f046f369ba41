//! Which capabilities the cloud has.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use cloudberth_core::{
    Call, Clock, Error, Instances, LoadBalancers, Provider, Region, Result, Routes, Zone, Zones,
    lookup::Listing,
    provider::{Boxed, Place, Start},
};

use crate::{balancers::Fakes, cloud::Cloud, cloud::Network};

/// The provider of one program: a connection to a [`Cloud`] under the program's name and by its clock.
#[derive(Debug)]
pub struct FakeProvider {
    pub(crate) name: String,
    pub(crate) network: Network,
    balancers: Fakes,
    starts: Starts,
}

/// How a cloud behaves when it is started.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// How many starts it leaves without an answer.
    pub(crate) unanswered: AtomicU64,
    /// It refuses for good when it answers.
    pub(crate) refuses: bool,
}

impl FakeProvider {
    /// Connects the program called `who` to `cloud`. `name` is the provider's name and the scheme of its ids, so that
    /// several can run side by side.
    pub fn new(name: &str, cloud: &Cloud, who: &str, clock: Arc<dyn Clock>) -> Self {
        let network = cloud.connect(who, clock);
        let balancers = Fakes::new(name, network.clone());
        Self { name: name.to_owned(), network, balancers, starts: Starts::default() }
    }

    /// The same with other starts.
    pub(crate) fn starting(self, starts: Starts) -> Self {
        Self { starts, ..self }
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

    fn start<'a>(&'a self, _call: &'a Call) -> Boxed<'a, Start> {
        let Starts { unanswered, refuses } = &self.starts;
        let is_left = |left: u64| left.checked_sub(1);
        let start = if unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_left).is_ok() {
            Start::Later(Error::temporary("unansweredStarts says that this start has no answer"))
        } else if *refuses {
            Start::Fatal(Error::user_input("refuses is true in the file of --cloud-config"))
        } else {
            Start::Ready
        };
        Box::pin(std::future::ready(start))
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
    fn list<'a>(&'a self, _call: &'a Call) -> Boxed<'a, Result<Listing<Place>>> {
        let place = |zone| {
            let region = Region::new("north")?;
            Zone::new(zone).map(|zone| Place { region, zone: Some(zone) })
        };
        let places = ["north-1", "north-2"].into_iter().map(place).collect::<Result<_>>();
        Box::pin(std::future::ready(places.map(Listing::complete)))
    }
}
