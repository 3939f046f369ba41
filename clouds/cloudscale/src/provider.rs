//! Which capabilities the cloud has.

use std::sync::Arc;

use cloudberth_core::{Instances, LoadBalancers, Provider, ProviderId, provider_id::Reading};

use crate::{
    api::{Api, Surroundings},
    find,
    settings::Settings,
    shell::Cloudscales,
    uuid::SCHEME,
};

/// One project at cloudscale.ch.
#[derive(Debug)]
pub struct CloudscaleProvider {
    pub(crate) api: Api,
    pub(crate) balancers: Cloudscales,
}

impl CloudscaleProvider {
    /// The project that the token of `settings` belongs to.
    pub fn new(settings: &Settings, around: Surroundings) -> Self {
        let clock = Arc::clone(&around.clock);
        let api = Api::new(settings, around);
        Self { balancers: Cloudscales::new(api.clone(), clock), api }
    }
}

impl Provider for CloudscaleProvider {
    fn name(&self) -> &str {
        SCHEME
    }

    fn scheme(&self) -> &str {
        SCHEME
    }

    fn owns(&self, id: &ProviderId) -> bool {
        matches!(self.read_id(&id.to_string()), Reading::Mine(_))
    }

    fn read_id(&self, text: &str) -> Reading {
        find::read_id(text)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&self.balancers)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}
