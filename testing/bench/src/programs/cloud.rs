//! The simulated clouds that managers are measured on, each served by this process.

use std::ops::Deref;
use std::sync::Arc;

use cloudberth_http::surroundings::{SystemClock, random_from_os};
use sim_kit::{Served, Tally};

use super::BenchError;

/// A simulated cloud on a port.
pub(crate) trait SimulatedCloud {
    /// The name of its provider.
    const PROVIDER: &'static str;

    /// The variables that lead a manager to it.
    fn variables(&self) -> Vec<(&'static str, String)>;

    /// How many requests there were for each operation.
    fn tally(&self) -> Tally;
}

/// The simulated cloudscale.ch.
pub(crate) struct Cloudscale {
    cloud: cloudscale_sim::Cloud,
    served: Served,
}

impl Cloudscale {
    pub(crate) async fn serve(settings: cloudscale_sim::SimSettings) -> Result<Self, BenchError> {
        let cloud = cloudscale_sim::Cloud::new(Arc::new(SystemClock::new()), random_from_os(), settings);
        let served = cloudscale_sim::serve_on_loopback(&cloud).await?;
        Ok(Self { cloud, served })
    }
}

impl Deref for Cloudscale {
    type Target = cloudscale_sim::Cloud;

    fn deref(&self) -> &Self::Target {
        &self.cloud
    }
}

impl SimulatedCloud for Cloudscale {
    const PROVIDER: &'static str = "cloudscale";

    fn variables(&self) -> Vec<(&'static str, String)> {
        vec![("CLOUDSCALE_API_URL", self.served.url()), ("CLOUDSCALE_ACCESS_TOKEN", "any".to_owned())]
    }

    fn tally(&self) -> Tally {
        self.cloud.tally()
    }
}

/// The simulated Brightbox.
pub(crate) struct Brightbox {
    cloud: brightbox_sim::Cloud,
    served: Served,
}

impl Brightbox {
    pub(crate) async fn serve(settings: brightbox_sim::SimSettings) -> Result<Self, BenchError> {
        let cloud = brightbox_sim::Cloud::new(Arc::new(SystemClock::new()), random_from_os(), settings);
        let served = brightbox_sim::serve_on_loopback(&cloud).await?;
        Ok(Self { cloud, served })
    }
}

impl Deref for Brightbox {
    type Target = brightbox_sim::Cloud;

    fn deref(&self) -> &Self::Target {
        &self.cloud
    }
}

impl SimulatedCloud for Brightbox {
    const PROVIDER: &'static str = "brightbox";

    fn variables(&self) -> Vec<(&'static str, String)> {
        let credentials = self.cloud.credentials();
        vec![
            ("BRIGHTBOX_API_URL", self.served.url()),
            ("BRIGHTBOX_CLIENT", credentials.client),
            ("BRIGHTBOX_CLIENT_SECRET", credentials.secret),
            ("BRIGHTBOX_ACCOUNT", self.cloud.account()),
        ]
    }

    fn tally(&self) -> Tally {
        self.cloud.tally()
    }
}
