//! The two clouds of a run.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random};
use cloudberth_fake::{Cloud, FakeInstance, SimSettings};

/// One of the clouds.
#[derive(Clone)]
pub(crate) struct NamedCloud {
    /// Its name, which is also the scheme of its ids.
    pub(crate) name: &'static str,
    pub(crate) cloud: Cloud,
}

/// The clouds, the default one first.
#[derive(Clone)]
pub(crate) struct SimulatedClouds(pub(crate) [NamedCloud; 2]);

/// The name of the cloud that a numbered node or Service belongs to. Neither ever moves.
pub(crate) const NAMES: [&str; 2] = ["alpha", "beta"];

impl SimulatedClouds {
    /// Clouds as chance has them: slow to build, and slower to list what they built.
    pub(crate) fn draw(seed: u64, clock: &Arc<dyn Clock>, random: &Random) -> Self {
        let [alpha, beta] = NAMES;
        let named_cloud = |name, salt| {
            let settings = SimSettings {
                latency: Duration::from_millis(200),
                lag: Duration::from_secs(random.bits() % 30),
                build: Duration::from_secs(random.bits() % 20),
                quota: 100,
                ..SimSettings::default()
            };
            NamedCloud { name, cloud: Cloud::new(Arc::clone(clock), Random::seeded(seed ^ salt), settings) }
        };
        Self([named_cloud(alpha, 0xc10d), named_cloud(beta, 0xbe7a)])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &NamedCloud> {
        self.0.iter()
    }

    /// The cloud of a numbered thing.
    pub(crate) fn of(&self, number: u8) -> &NamedCloud {
        let [alpha, beta] = &self.0;
        if number.is_multiple_of(2) { alpha } else { beta }
    }

    /// The instance that a provider id names, if it really exists.
    pub(crate) fn instance(&self, provider_id: &str) -> Option<FakeInstance> {
        let (scheme, id) = provider_id.split_once("://")?;
        let named_cloud = self.iter().find(|named_cloud| named_cloud.name == scheme)?;
        named_cloud.cloud.instances().into_iter().find(|instance| instance.id == id)
    }

    /// The instance of this name, if it really exists, and its provider id.
    pub(crate) fn named(&self, name: &str) -> Option<(String, FakeInstance)> {
        self.iter().find_map(|named_cloud| {
            let instance =
                named_cloud.cloud.instances().into_iter().find(|instance| instance.name == name)?;
            Some((format!("{}://{}", named_cloud.name, instance.id), instance))
        })
    }
}
