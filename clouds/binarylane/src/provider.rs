//! Which capabilities the cloud has.

use std::sync::Arc;

use cloudberth_core::{Instances, LoadBalancers, Provider, ProviderId, Routes, Zones, provider_id::Reading};

use crate::{
    api::{Api, Surroundings},
    id::{SCHEME, read_id},
    plan::Planner,
    routes::VpcRoutes,
    settings::Settings,
    shell::Balancers,
};

/// One account at BinaryLane.
#[derive(Debug)]
pub struct BinaryLaneProvider {
    pub(crate) api: Api,
    pub(crate) settings: Settings,
    pub(crate) balancers: Balancers,
    pub(crate) routes: Option<VpcRoutes>,
}

impl BinaryLaneProvider {
    /// The account that the token of `settings` belongs to.
    pub fn new(settings: Settings, around: Surroundings) -> Self {
        let clock = Arc::clone(&around.clock);
        let api = Api::new(&settings, around);
        let balancers = Balancers::new(api.clone(), Planner::new(&settings), clock);
        let routes = VpcRoutes::new(&api, &settings);
        Self { api, settings, balancers, routes }
    }
}

impl Provider for BinaryLaneProvider {
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
        read_id(text)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&self.balancers)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.routes.as_ref().map(|routes| routes as &dyn Routes)
    }

    fn zones(&self) -> Option<&dyn Zones> {
        Some(self)
    }
}
