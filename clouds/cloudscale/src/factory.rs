//! The provider from the environment variables of the program that it replaces.

use std::{fs::File, sync::Arc};

use cloudberth_core::{Error, Result};
use cloudberth_http::{NOWHERE, OpenResult, ProviderContext, ProviderFactory};

use crate::{CloudscaleProvider, Settings, Surroundings, TOKEN, annotations, reasons::REASONS, uuid::SCHEME};

/// cloudscale.ch, as the program lists it.
pub const FACTORY: ProviderFactory = ProviderFactory {
    name: SCHEME,
    replaces: &["cloudscale-cloud-controller-manager"],
    annotations: &annotations::TABLE,
    reasons: REASONS,
    rights: &[],
    offline: &[(TOKEN, "offline"), ("CLOUDSCALE_API_URL", NOWHERE)],
    open,
};

fn open(ctx: &ProviderContext<'_>) -> OpenResult {
    let mut wrong: Vec<Error> = unused_config(ctx).err().into_iter().collect();
    let settings = Settings::read(ctx.token(TOKEN), |name| ctx.env.get(name));
    let settings = settings.map_err(|mistakes| wrong.extend(mistakes)).ok();
    let transport = settings
        .as_ref()
        .and_then(|settings| ctx.transport(&settings.base).map_err(|why| wrong.push(why)).ok());
    match (settings, transport) {
        (Some(settings), Some(transport)) if wrong.is_empty() => {
            ctx.notes.info(settings.to_string());
            settings.warnings.iter().for_each(|warning| ctx.notes.warn(warning));
            let around = Surroundings {
                transport,
                clock: Arc::clone(&ctx.clock),
                random: Arc::clone(&ctx.random),
                observer: Arc::clone(&ctx.observer),
            };
            Ok(Arc::new(CloudscaleProvider::new(&settings, around)))
        }
        _ => Err(wrong),
    }
}

/// There is no configuration file. The replaced program fails on one that cannot be opened, and so do we; its content
/// is not read.
fn unused_config(ctx: &ProviderContext<'_>) -> Result<()> {
    let Some(path) = ctx.config else { return Ok(()) };
    let shown = path.display();
    File::open(path).map_err(|why| Error::user_input(format!("--cloud-config {shown}: {why}")))?;
    ctx.notes.warn(format!(
        "--cloud-config {shown} is not read: cloudscale.ch is set up by environment variables"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use cloudberth_core::{Clock, Random};
    use cloudberth_http::{Env, GivenFlags, NoResolver, Notes, Unobserved, surroundings::SystemClock};

    use super::*;

    const SET: (&str, &str) = (TOKEN, "abcdefghijklmnopqrstuvwxyz012345");
    /// Without TLS the test does not depend on the certificates of the host.
    const PLAIN: (&str, &str) = ("CLOUDSCALE_API_URL", "http://127.0.0.1:1/");

    fn opened(variables: &[(&str, &str)], config: Option<&Path>) -> Result<String, Vec<String>> {
        let env: Env = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let notes = &Notes::default();
        let (observer, random) = (Arc::new(Unobserved), Arc::new(Random::seeded(1)));
        let (cluster_name, resolver) = ("kubernetes", Arc::new(NoResolver));
        let (env, given) = (&env, &GivenFlags::default());
        let ctx =
            ProviderContext { env, config, given, cluster_name, observer, clock, random, resolver, notes };
        (FACTORY.open)(&ctx)
            .map(|provider| provider.name().to_owned())
            .map_err(|wrong| wrong.iter().map(|why| why.message().to_owned()).collect())
    }

    #[tokio::test]
    async fn a_token_is_all_that_it_needs() {
        assert_eq!(opened(&[SET, PLAIN], None).as_deref(), Ok("cloudscale"), "CS-5");
        let wrong = opened(&[PLAIN], None).unwrap_err();
        assert!(
            wrong.len() == 1 && wrong[0].starts_with("CLOUDSCALE_ACCESS_TOKEN is not set"),
            "CS-4 {wrong:?}"
        );
    }

    #[tokio::test]
    async fn a_configuration_must_be_there_and_is_not_read() {
        let folder = std::env::temp_dir();
        assert_eq!(
            opened(&[SET, PLAIN], Some(&folder)).as_deref(),
            Ok("cloudscale"),
            "CS-6 a folder cannot be read"
        );
        let nowhere = PathBuf::from("/nowhere/at-all");
        let wrong = opened(&[SET, PLAIN], Some(&nowhere)).unwrap_err();
        assert!(
            wrong.len() == 1 && wrong[0].starts_with("--cloud-config /nowhere/at-all: "),
            "CS-6 {wrong:?}"
        );
    }

    #[tokio::test]
    async fn all_mistakes_are_reported_at_once() {
        let nowhere = PathBuf::from("/nowhere/at-all");
        let both = ("CLOUDSCALE_ACCESS_TOKEN_FILE", "/run/token");
        let variables =
            [SET, both, ("CLOUDSCALE_API_URL", "s3cr3t"), ("CLOUDSCALE_API_TIMEOUT", "9999999999999")];
        let wrong = opened(&variables, Some(&nowhere)).unwrap_err();
        let starts =
            ["--cloud-config", "CLOUDSCALE_ACCESS_TOKEN", "CLOUDSCALE_API_URL", "CLOUDSCALE_API_TIMEOUT"];
        assert_eq!(wrong.len(), 4, "{wrong:?}");
        for (said, start) in wrong.iter().zip(starts) {
            assert!(
                said.starts_with(start) && !said.contains("s3cr3t") && !said.contains(SET.1),
                "L10-807 {said}"
            );
        }
    }
}
