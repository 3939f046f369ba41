//! The two clouds of a run.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Clock, Dice};
use cloudberth_fake::{Cloud, Machine, Manners};

/// One of the clouds.
#[derive(Clone)]
pub(crate) struct Patch {
    /// Its name, which is also the scheme of its ids.
    pub(crate) name: &'static str,
    pub(crate) cloud: Cloud,
}

/// The clouds, the default one first.
#[derive(Clone)]
pub(crate) struct Sky(pub(crate) [Patch; 2]);

/// The name of the cloud that a numbered node or Service belongs to. Neither ever moves.
pub(crate) const NAMES: [&str; 2] = ["alpha", "beta"];

impl Sky {
    /// Clouds as chance has them: slow to build, and slower to list what they built.
    pub(crate) fn draw(seed: u64, clock: &Arc<dyn Clock>, dice: &Dice) -> Self {
        let [alpha, beta] = NAMES;
        let patch = |name, salt| {
            let manners = Manners {
                latency: Duration::from_millis(200),
                lag: Duration::from_secs(dice.bits() % 30),
                build: Duration::from_secs(dice.bits() % 20),
                quota: 100,
            };
            Patch { name, cloud: Cloud::new(Arc::clone(clock), Dice::seeded(seed ^ salt), manners) }
        };
        Self([patch(alpha, 0xc10d), patch(beta, 0xbe7a)])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Patch> {
        self.0.iter()
    }

    /// The cloud of a numbered thing.
    pub(crate) fn of(&self, number: u8) -> &Patch {
        let [alpha, beta] = &self.0;
        if number.is_multiple_of(2) { alpha } else { beta }
    }

    /// The machine that a provider id names, if it really exists.
    pub(crate) fn machine(&self, provider_id: &str) -> Option<Machine> {
        let (scheme, id) = provider_id.split_once("://")?;
        let patch = self.iter().find(|patch| patch.name == scheme)?;
        patch.cloud.machines().into_iter().find(|machine| machine.id == id)
    }

    /// The machine of this name, if it really exists, and its provider id.
    pub(crate) fn named(&self, name: &str) -> Option<(String, Machine)> {
        self.iter().find_map(|patch| {
            let machine = patch.cloud.machines().into_iter().find(|machine| machine.name == name)?;
            Some((format!("{}://{}", patch.name, machine.id), machine))
        })
    }
}
