//! A cloud whose provider has a bug: it panics on one odd provider id (law 11).

use std::sync::Arc;

use cloudberth_core::{Instances, LoadBalancers, Provider, Routes, Zones, provider_id::Reading};

/// What the panic says, so that it is told apart from those that nobody planned.
pub(crate) const ON_PURPOSE: &str = "an odd provider id, on purpose";

/// The id that the provider of a cloud does not survive.
pub(crate) fn odd_id(cloud: &str) -> String {
    format!("{cloud}://odd")
}

/// The cloud, otherwise as it is.
pub(crate) struct Touchy(pub(crate) Arc<dyn Provider>);

impl Provider for Touchy {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn scheme(&self) -> &str {
        self.0.scheme()
    }

    fn read_id(&self, text: &str) -> Reading {
        assert!(text != odd_id(self.name()), "{ON_PURPOSE}");
        self.0.read_id(text)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.0.instances()
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        self.0.load_balancers()
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.0.routes()
    }

    fn zones(&self) -> Option<&dyn Zones> {
        self.0.zones()
    }
}
