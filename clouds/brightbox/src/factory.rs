//! The provider from the environment variables of the program that it replaces.

use std::{fs::File, sync::Arc};

use cloudberth_core::{Error, Result};
use cloudberth_http::{NOWHERE, OpenResult, ProviderContext, ProviderFactory};

use crate::{
    BrightboxProvider, Settings, Surroundings, annotations,
    ids::SCHEME,
    reasons::REASONS,
    settings::{CLIENT, SECRET},
};

/// Brightbox, as the program lists it.
pub const FACTORY: ProviderFactory = ProviderFactory {
    name: SCHEME,
    replaces: &["brightbox-cloud-controller-manager"],
    annotations: &annotations::TABLE,
    reasons: REASONS,
    rights: &[],
    offline: &[
        (CLIENT, "cli-offline"),
        (SECRET, "offline"),
        ("BRIGHTBOX_API_URL", NOWHERE),
        ("BRIGHTBOX_USER_NAME", ""),
        ("BRIGHTBOX_PASSWORD", ""),
    ],
    open,
};

fn open(ctx: &ProviderContext<'_>) -> OpenResult {
    let mut wrong: Vec<Error> = unused_config(ctx).err().into_iter().collect();
    let settings = Settings::read(ctx.token(CLIENT), ctx.token(SECRET), |name| ctx.env.get(name));
    let settings = settings.map_err(|mistakes| wrong.extend(mistakes)).ok();
    let transport = settings
        .as_ref()
        .and_then(|settings| ctx.transport(&settings.api).map_err(|why| wrong.push(why)).ok());
    match (settings, transport) {
        (Some(settings), Some(transport)) if wrong.is_empty() => {
            ctx.notes.info(settings.to_string());
            let around = Surroundings {
                transport,
                clock: Arc::clone(&ctx.clock),
                random: Arc::clone(&ctx.random),
                observer: Arc::clone(&ctx.observer),
                resolver: Arc::clone(&ctx.resolver),
            };
            Ok(Arc::new(BrightboxProvider::new(&settings, around)))
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
    ctx.notes
        .warn(format!("--cloud-config {shown} is not read: Brightbox is set up by environment variables"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use cloudberth_core::{Clock, Random};
    use cloudberth_http::{Env, GivenFlags, NoResolver, Notes, Unobserved, surroundings::SystemClock};

    use super::*;

    const SET: [(&str, &str); 3] =
        [(CLIENT, "cli-xxxxx"), (SECRET, "s3cr3t"), ("BRIGHTBOX_API_URL", "http://127.0.0.1:1/")];

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
    async fn a_client_and_its_secret_are_all_that_it_needs() {
        assert_eq!(opened(&SET, None).as_deref(), Ok("brightbox"), "BB-18 and no call is made for it, BB-9");
        let wrong = opened(&[], None).unwrap_err();
        assert_eq!(wrong.len(), 2, "BB-8 {wrong:?}");
        assert!(wrong[0].starts_with("BRIGHTBOX_CLIENT is not set"), "BB-8 {wrong:?}");
    }

    #[tokio::test]
    async fn a_configuration_must_be_there_and_is_not_read() {
        let folder = std::env::temp_dir();
        assert_eq!(opened(&SET, Some(&folder)).as_deref(), Ok("brightbox"), "BB-7 a folder cannot be read");
        let nowhere = PathBuf::from("/nowhere/at-all");
        let wrong = opened(&SET, Some(&nowhere)).unwrap_err();
        assert!(
            wrong.len() == 1 && wrong[0].starts_with("--cloud-config /nowhere/at-all: "),
            "BB-7 {wrong:?}"
        );
    }
}
