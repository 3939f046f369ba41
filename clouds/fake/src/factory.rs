//! The provider from its settings, as the program opens it: a cloud of its own that is gone when the process ends.

use std::{fs, sync::Arc, time::Duration};

use cloudberth_core::{Error, Random, Result};
use cloudberth_http::{OpenResult, ProviderContext, ProviderFactory};
use serde::Deserialize;

use crate::{Cloud, FakeProvider, SimSettings, TABLE};

/// The fake cloud, as the program lists it. It replaces no program, so no name presets it.
pub const FACTORY: ProviderFactory =
    ProviderFactory { name: "fake", replaces: &[], annotations: &TABLE, reasons: &[], rights: &[], open };

/// The file of `--cloud-config`, in YAML.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Settings {
    /// The names of the instances that exist at the start.
    instances: Vec<String>,
    /// How many milliseconds an answer takes.
    latency: u64,
    /// How many milliseconds a load balancer takes to be built.
    build: u64,
}

fn open(ctx: &ProviderContext<'_>) -> OpenResult {
    let settings = read(ctx).map_err(|why| vec![why])?;
    let simulated = SimSettings {
        latency: Duration::from_millis(settings.latency),
        build: Duration::from_millis(settings.build),
        quota: 1_000,
        ..SimSettings::default()
    };
    let cloud = Cloud::new(Arc::clone(&ctx.clock), Random::seeded(ctx.random.bits()), simulated);
    for instance in &settings.instances {
        cloud.add_instance(instance, "north-1");
    }
    Ok(Arc::new(FakeProvider::new(FACTORY.name, &cloud, "cloudberth", Arc::clone(&ctx.clock))))
}

fn read(ctx: &ProviderContext<'_>) -> Result<Settings> {
    let Some(path) = ctx.config else { return Ok(Settings::default()) };
    let wrong = |why: String| Error::user_input(format!("--cloud-config {}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|why| wrong(why.to_string()))?;
    // A cloud's file may hold a token, so errors must not quote the file.
    serde_saphyr::from_str(&text).map_err(|why| wrong(why.without_snippet().to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cloudberth_http::{Env, NoResolver, Notes, Unobserved, surroundings::SystemClock};

    use super::*;

    fn opened(config: Option<&Path>) -> OpenResult {
        (FACTORY.open)(&ProviderContext {
            env: &Env::default(),
            config,
            cluster_name: "kubernetes",
            observer: Arc::new(Unobserved),
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(Random::seeded(1)),
            resolver: Arc::new(NoResolver),
            notes: &Notes::default(),
        })
    }

    #[tokio::test]
    async fn the_provider_is_called_as_the_flag_calls_it() {
        assert_eq!(opened(None).unwrap().name(), FACTORY.name);
    }

    #[tokio::test]
    async fn a_mistake_in_the_file_is_reported_without_quoting_the_file() {
        let path = std::env::temp_dir().join(format!("cloudberth-fake-{}", std::process::id()));
        for (text, good) in [("instances: [a]\nlatency: 5\n", true), ("token: s3cr3t\n", false)] {
            fs::write(&path, text).unwrap();
            let opened = opened(Some(&path));
            fs::remove_file(&path).unwrap();
            let wrong: Vec<_> =
                opened.err().unwrap_or_default().iter().map(|why| why.message().to_owned()).collect();
            assert_eq!(wrong.is_empty(), good, "{wrong:?}");
            let named = |why: &String| why.starts_with("--cloud-config /") && !why.contains("s3cr3t");
            assert!(wrong.iter().all(named), "{wrong:?}");
        }
        let gone = opened(Some(Path::new("/nowhere/at-all"))).err().unwrap_or_default();
        assert!(gone.len() == 1 && gone[0].message().starts_with("--cloud-config /nowhere/at-all: "));
    }
}
