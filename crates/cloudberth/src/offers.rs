//! The clouds of this build.

use cloudberth_manager::registry::Offer;

/// Every cloud that `--cloud-provider` may name.
pub(crate) const ALL: &[Offer] = &[
    Offer { name: "cloudscale", open: cloudscale::open },
    #[cfg(feature = "fake")]
    Offer { name: "fake", open: fake::open },
];

mod cloudscale;

/// A cloud in the memory of the process, to try things out without an account. What it knows is lost at the end.
#[cfg(feature = "fake")]
mod fake {
    use std::{fs, sync::Arc, time::Duration};

    use cloudberth_core::{Error, Random};
    use cloudberth_fake::{Cloud, FakeProvider, SimSettings};
    use cloudberth_manager::registry::{Opened, Opening};
    use serde::Deserialize;

    /// `--cloud-config`.
    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Settings {
        /// The names of the instances that are there at the start.
        #[serde(default)]
        instances: Vec<String>,
        /// How many milliseconds an answer takes.
        #[serde(default)]
        latency: u64,
        /// How many milliseconds a load balancer takes to be built.
        #[serde(default)]
        build: u64,
    }

    pub(super) fn open(opening: &Opening<'_>) -> Opened {
        let config = config(opening).map_err(|why| vec![why])?;
        let settings = SimSettings {
            latency: Duration::from_millis(config.latency),
            build: Duration::from_millis(config.build),
            lag: Duration::ZERO,
            quota: 1_000,
        };
        let cloud = Cloud::new(Arc::clone(&opening.clock), Random::seeded(opening.random.bits()), settings);
        for instance in &config.instances {
            cloud.add_instance(instance, "north-1");
        }
        Ok(Arc::new(FakeProvider::new("fake", &cloud, "cloudberth", Arc::clone(&opening.clock))))
    }

    fn config(opening: &Opening<'_>) -> Result<Settings, Error> {
        let Some(path) = opening.config else { return Ok(Settings::default()) };
        let explain = |why: String| Error::user_input(format!("--cloud-config {}: {why}", path.display()));
        let text = fs::read_to_string(path).map_err(|why| explain(why.to_string()))?;
        // Without a piece of the file: it is one line of text, and a file like this may hold a token.
        serde_saphyr::from_str(&text).map_err(|why| explain(why.without_snippet().to_string()))
    }
}
