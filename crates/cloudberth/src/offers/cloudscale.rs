//! cloudscale.ch, from the environment variables that its program always had.

use std::{fs::File, sync::Arc};

use cloudberth_cloudscale::{CloudscaleProvider, Settings, Surroundings, TOKEN};
use cloudberth_core::Error;
use cloudberth_manager::registry::{Opened, Opening};

pub(super) fn open(opening: &Opening<'_>) -> Opened {
    let mut wrong: Vec<Error> = unused_config(opening).err().into_iter().collect();
    let settings = Settings::read(opening.token(TOKEN), |name| opening.env.get(name));
    let settings = settings.map_err(|mistakes| wrong.extend(mistakes)).ok();
    let transport = settings
        .as_ref()
        .and_then(|settings| opening.transport(&settings.base).map_err(|why| wrong.push(why)).ok());
    match (settings, transport) {
        (Some(settings), Some(transport)) if wrong.is_empty() => {
            opening.notes.inform(settings.to_string());
            settings.warnings.iter().for_each(|warning| opening.notes.warn(warning));
            let around = Surroundings {
                transport,
                clock: Arc::clone(&opening.clock),
                random: Arc::clone(&opening.random),
                observer: Arc::clone(&opening.observer),
            };
            Ok(Arc::new(CloudscaleProvider::new(&settings, around)))
        }
        _ => Err(wrong),
    }
}

/// There is no configuration file. One that is given must be there, as ever, and is not read.
fn unused_config(opening: &Opening<'_>) -> Result<(), Error> {
    let Some(path) = opening.config else { return Ok(()) };
    let path_text = path.display();
    File::open(path).map_err(|why| Error::user_input(format!("--cloud-config {path_text}: {why}")))?;
    let text =
        format!("--cloud-config {path_text} is not read: cloudscale.ch is set up by environment variables");
    opening.notes.warn(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{path::Path, path::PathBuf};

    use cloudberth_core::{Clock, Random};
    use cloudberth_http::{Unobserved, surroundings::SystemClock};
    use cloudberth_manager::{env::Env, registry::Notes};

    use super::*;

    const SET: (&str, &str) = (TOKEN, "abcdefghijklmnopqrstuvwxyz012345");
    /// Without TLS nothing of the instance's certificates matters.
    const PLAIN: (&str, &str) = ("CLOUDSCALE_API_URL", "http://127.0.0.1:1/");

    fn opened(variables: &[(&str, &str)], config: Option<&Path>) -> Result<String, Vec<String>> {
        let env: Env = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let notes = &Notes::default();
        let (observer, random) = (Arc::new(Unobserved), Arc::new(Random::seeded(1)));
        let provider =
            open(&Opening { env: &env, config, cluster_name: "kubernetes", observer, clock, random, notes });
        provider
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
    async fn all_mistakes_are_told_at_once() {
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
