//! Which capabilities the cloud has.

use cloudberth_core::{Instances, Provider, ProviderId, provider_id::Reading};

use crate::{
    api::{Api, Surroundings},
    ids::{SCHEME, read_provider_id},
    settings::Settings,
};

/// One project at cloudscale.ch.
#[derive(Debug)]
pub struct CloudscaleProvider {
    pub(crate) api: Api,
}

impl CloudscaleProvider {
    /// The project that the token of `settings` belongs to.
    pub fn new(settings: &Settings, around: Surroundings) -> Self {
        let token = settings.masked_token();
        tracing::info!(url = %settings.base, token, timeout = ?settings.timeout, "cloudscale.ch");
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        Self { api: Api::new(settings, around) }
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
        read_provider_id(text)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}
