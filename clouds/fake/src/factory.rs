//! The provider from its settings, as the program opens it: a cloud of its own that is gone when the process ends.

use std::{sync::Arc, time::Duration};

use cloudberth_core::Random;
use cloudberth_http::{OpenResult, ProviderContext, ProviderFactory, yaml::Fields};

use crate::{Cloud, FakeProvider, SimSettings, TABLE, provider::Starts};

/// The fake cloud, as the program lists it. It replaces no program, so no name presets it.
pub const FACTORY: ProviderFactory = ProviderFactory {
    name: "fake",
    replaces: &[],
    annotations: &TABLE,
    reasons: &[],
    rights: &[],
    offline: &[],
    open,
};

/// The most milliseconds that something may take: an hour.
const LONGEST: u64 = 3_600_000;

/// The file of `--cloud-config`.
#[derive(Debug, Default)]
struct Settings {
    /// The names of the instances that exist at the start.
    instances: Vec<String>,
    /// How long an answer takes.
    latency: Duration,
    /// How long a load balancer takes to be built.
    build: Duration,
    starts: Starts,
}

impl Settings {
    fn read(file: &mut Fields<'_>) -> Self {
        let mut millis =
            |name| Duration::from_millis(file.optional(name).integer(0..=LONGEST).unwrap_or_default());
        let (latency, build) = (millis("latency"), millis("build"));
        let unanswered = file.optional("unansweredStarts").integer(0..=u64::MAX).unwrap_or_default().into();
        let starts = Starts { unanswered, refuses: file.optional("refuses").boolean().unwrap_or_default() };
        Self { instances: file.optional("instances").items(|name| name.text()), latency, build, starts }
    }
}

fn open(ctx: &ProviderContext<'_>) -> OpenResult {
    let settings = ctx.read_config(|file| Some(Settings::read(file)))?.unwrap_or_default();
    let simulated = SimSettings {
        latency: settings.latency,
        build: settings.build,
        quota: 1_000,
        ..SimSettings::default()
    };
    let cloud = Cloud::new(Arc::clone(&ctx.clock), Random::seeded(ctx.random.bits()), simulated);
    for instance in &settings.instances {
        cloud.add_instance(instance, "north-1");
    }
    let provider = FakeProvider::new(FACTORY.name, &cloud, "cloudberth", Arc::clone(&ctx.clock));
    Ok(Arc::new(provider.starting(settings.starts)))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use cloudberth_http::{Env, GivenFlags, NoResolver, Notes, Unobserved, surroundings::SystemClock};

    use super::*;

    fn opened(config: Option<&Path>) -> OpenResult {
        (FACTORY.open)(&ProviderContext {
            env: &Env::default(),
            config,
            given: &GivenFlags::default(),
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
    async fn all_mistakes_in_the_file_are_reported_without_quoting_a_secret() {
        let path = std::env::temp_dir().join(format!("cloudberth-fake-{}", std::process::id()));
        let table: [(&str, &[&str]); 3] = [
            ("", &[]),
            ("instances: [a]\nlatency: 5\n", &[]),
            (
                "token: s3cr3t\nlatncy: 5\nbuild: soon\n",
                &[
                    "line 1, field token: there is no such field",
                    "line 2, field latncy: there is no such field; did you mean latency?",
                    "line 3, field build: it must be a whole number from 0 to 3600000, not soon",
                ],
            ),
        ];
        for (text, want) in table {
            fs::write(&path, text).unwrap();
            let opened = opened(Some(&path));
            fs::remove_file(&path).unwrap();
            let wrong = opened.err().unwrap_or_default();
            let wrong: Vec<_> = wrong.iter().map(|why| why.message().to_owned()).collect();
            let shown = path.display();
            let want: Vec<_> = want.iter().map(|why| format!("--cloud-config {shown}: {why}")).collect();
            assert_eq!(wrong, want, "{text}");
        }
        let gone = opened(Some(Path::new("/nowhere/at-all"))).err().unwrap_or_default();
        assert!(gone.len() == 1 && gone[0].message().starts_with("--cloud-config /nowhere/at-all: "));
    }
}
