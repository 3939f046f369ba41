//! Which capabilities the cloud has.

use std::{fmt, sync::Arc};

use cloudberth_core::{
    Call, Error, Instances, LoadBalancers, Provider, ProviderId, Result,
    provider::{Boxed, Start},
    provider_id::Reading,
};

use crate::{
    api::{Api, Surroundings},
    id::{SCHEME, read_id},
    others::OtherNodes,
    settings::Settings,
    shell::Balancers,
};

/// A service that the provider runs by itself.
pub(crate) trait OwnService: fmt::Debug + Send + Sync {
    /// Starts it, unless it runs already.
    fn start(&self) -> Boxed<'_, Result<()>>;

    /// Ends it.
    fn stop(&self) -> Boxed<'_, ()>;
}

/// One cluster of a Cloudlycke service.
#[derive(Debug)]
pub struct CloudlyckeProvider {
    pub(crate) api: Api,
    pub(crate) others: Arc<OtherNodes>,
    settings: Settings,
    balancers: Balancers,
    own: Option<Box<dyn OwnService>>,
}

impl CloudlyckeProvider {
    /// The cluster that `settings` name.
    pub fn new(settings: Settings, around: Surroundings) -> Self {
        let clock = Arc::clone(&around.clock);
        let api = Api::new(&settings, around);
        let others = Arc::new(OtherNodes::default());
        let balancers = Balancers::new(api.clone(), Arc::clone(&others), clock);
        Self { api, others, settings, balancers, own: None }
    }

    /// The same with a service that it has to run.
    #[cfg(feature = "embedded")]
    pub(crate) fn running(mut self, own: impl OwnService + 'static) -> Self {
        self.own = Some(Box::new(own));
        self
    }

    /// The service answers, knows the cluster, and has told which nodes of other programs it stands under.
    async fn greet(&self, call: &Call) -> Result<()> {
        if let Some(own) = &self.own {
            own.start().await?;
        }
        let known = self.api.clusters(call).await.map_err(|why| self.not_reached(why))?;
        self.settings.cluster.choose(&known)?;
        self.listing(call).await.map(|_| ())
    }

    fn not_reached(&self, why: Error) -> Error {
        let what = format!(
            "no answer from Cloudlycke at {}; start it with: cloudberth lycke serve --inventory FILE; or set \
             CLOUDLYCKE_INVENTORY=FILE, and it runs in this process",
            self.settings.base
        );
        if why.category() == cloudberth_core::Category::Temporary { why.context(&what) } else { why }
    }
}

impl Provider for CloudlyckeProvider {
    fn name(&self) -> &str {
        SCHEME
    }

    fn scheme(&self) -> &str {
        SCHEME
    }

    fn owns(&self, id: &ProviderId) -> bool {
        matches!(read_id(&id.to_string()), Reading::Mine(_))
    }

    fn read_id(&self, text: &str) -> Reading {
        read_id(text)
    }

    fn start<'a>(&'a self, call: &'a Call) -> Boxed<'a, Start> {
        Box::pin(async move { Start::from(self.greet(call).await) })
    }

    fn stop<'a>(&'a self, _: &'a Call) -> Boxed<'a, ()> {
        Box::pin(async move {
            if let Some(own) = &self.own {
                own.stop().await;
            }
        })
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&self.balancers)
    }
}
