//! The provider from its settings.

use std::sync::Arc;

use cloudberth_core::{Error, Result, error::Context, rights::ENDPOINT_SLICES};
use cloudberth_http::{NOWHERE, OpenResult, ProviderContext, ProviderFactory, TokenSource};

use crate::{
    BinaryLaneProvider, FileSettings, Settings, Sources, Surroundings, TOKENS, annotations, id::SCHEME,
    reasons::REASONS,
};

/// BinaryLane, as the program lists it.
pub const FACTORY: ProviderFactory = ProviderFactory {
    name: SCHEME,
    replaces: &["binarylane-cloud-controller-manager"],
    annotations: &annotations::TABLE,
    reasons: REASONS,
    rights: &[ENDPOINT_SLICES],
    offline: &[
        ("BINARYLANE_ACCESS_TOKEN", "offline"),
        ("BINARYLANE_API_TOKEN", ""),
        ("BL_API_TOKEN", ""),
        ("BINARYLANE_API_URL", NOWHERE),
    ],
    open,
};

fn open(ctx: &ProviderContext<'_>) -> OpenResult {
    let mut wrong: Vec<Error> = Vec::new();
    let file = ctx.read_config(FileSettings::read).map_err(|mistakes| wrong.extend(mistakes));
    let file = file.ok().flatten().unwrap_or_default();
    let token = token(ctx, &file);
    let sources = Sources { token, env: ctx.env, file, given: ctx.given, cluster: ctx.cluster_name };
    let settings = Settings::read(sources).map_err(|mistakes| wrong.extend(mistakes)).ok();
    let transport = settings
        .as_ref()
        .and_then(|settings| ctx.transport(&settings.base).map_err(|why| wrong.push(why)).ok());
    match (settings, transport) {
        (Some(settings), Some(transport)) if wrong.is_empty() => {
            ctx.notes.info(settings.to_string());
            let around = Surroundings {
                transport,
                clock: Arc::clone(&ctx.clock),
                random: Arc::clone(&ctx.random),
                observer: Arc::clone(&ctx.observer),
            };
            Ok(Arc::new(BinaryLaneProvider::new(settings, around)))
        }
        _ => Err(wrong),
    }
}

/// The token: that of a variable, else that of the file.
fn token(ctx: &ProviderContext<'_>, file: &FileSettings) -> Result<Option<TokenSource>> {
    if let Some((_, token)) = ctx.first_token(&TOKENS)? {
        return Ok(Some(token));
    }
    if let Some(path) = &file.api_token_file {
        return TokenSource::file(path, Arc::clone(&ctx.clock)).context("apiTokenFile").map(Some);
    }
    Ok(file.api_token.clone().map(TokenSource::fixed))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use cloudberth_core::{Clock, Random};
    use cloudberth_http::{Env, GivenFlags, NoResolver, Notes, Unobserved, surroundings::SystemClock};

    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    const SET: (&str, &str) = ("BINARYLANE_ACCESS_TOKEN", "abcdefghijklmnopqrstuvwxyz012345");
    /// Without TLS the test does not depend on the certificates of the host.
    const PLAIN: (&str, &str) = ("BINARYLANE_API_URL", "http://127.0.0.1:1/");

    /// What came of it, and the notes.
    fn opened(variables: Pairs<'_>, config: Option<&Path>) -> (Result<String, Vec<String>>, String) {
        let env: Env = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let notes = &Notes::default();
        let (observer, random) = (Arc::new(Unobserved), Arc::new(Random::seeded(1)));
        let (cluster_name, resolver) = ("prod", Arc::new(NoResolver));
        let (env, given) = (&env, &GivenFlags::default());
        let ctx =
            ProviderContext { env, config, given, cluster_name, observer, clock, random, resolver, notes };
        let made = (FACTORY.open)(&ctx)
            .map(|provider| provider.name().to_owned())
            .map_err(|wrong| wrong.iter().map(|why| why.message().to_owned()).collect());
        (made, format!("{notes:?}"))
    }

    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("cloudberth-bl-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    }

    #[tokio::test]
    async fn one_of_the_tokens_is_all_that_it_needs() {
        let ok = Ok("binarylane".to_owned());
        for (case, name) in ["BL-1", "BL-2", "the third"].iter().zip(TOKENS) {
            let (made, notes) = opened(&[(name, "t0k3n-t0k3n\n"), PLAIN], None);
            assert_eq!(made, ok, "{case} BL-5");
            assert!(!notes.contains("different") && !notes.contains("t0k3n-t0k3n"), "{case} BL-132 {notes}");
        }
        let same = [SET, ("BINARYLANE_API_TOKEN", SET.1), PLAIN];
        assert!(!opened(&same, None).1.contains("different"), "BL-3");
        let (made, notes) = opened(&[SET, ("BINARYLANE_API_TOKEN", "an0ther"), PLAIN], None);
        assert_eq!(made, ok, "BL-3");
        let warned = "BINARYLANE_ACCESS_TOKEN and BINARYLANE_API_TOKEN hold different tokens";
        assert_eq!(notes.matches(warned).count(), 1, "BL-3 {notes}");
        assert!(!notes.contains("an0ther") && !notes.contains(SET.1), "BL-3 {notes}");
    }

    #[tokio::test]
    async fn without_a_token_it_does_not_start() {
        for variables in [&[PLAIN][..], &[("BINARYLANE_ACCESS_TOKEN", " \n"), PLAIN]] {
            let wrong = opened(variables, None).0.unwrap_err();
            assert!(wrong.len() == 1 && wrong[0].contains("BINARYLANE_ACCESS_TOKEN"), "BL-4 {wrong:?}");
        }
        let wrong = opened(&[PLAIN], None).0.unwrap_err();
        assert!(wrong[0].contains("BINARYLANE_API_TOKEN"), "BL-4 {wrong:?}");
    }

    #[tokio::test]
    async fn a_configuration_is_read_strictly() {
        let ok = Ok("binarylane".to_owned());
        let empty = file("empty", "");
        assert_eq!(opened(&[SET, PLAIN], Some(&empty)).0, ok, "BL-153");
        let missing = PathBuf::from("/nowhere/at-all");
        let wrong = opened(&[SET, PLAIN], Some(&missing)).0.unwrap_err();
        assert!(
            wrong.len() == 1 && wrong[0].starts_with("--cloud-config /nowhere/at-all: "),
            "BL-9 {wrong:?}"
        );
        let unknown = file("unknown", "reigon: syd\n");
        let wrong = opened(&[SET, PLAIN], Some(&unknown)).0.unwrap_err();
        assert!(wrong.len() == 1 && wrong[0].contains("did you mean region?"), "BL-9 {wrong:?}");
        let given = file("token", "apiToken: t0k3n-t0k3n\n");
        let (made, notes) = opened(&[PLAIN], Some(&given));
        assert_eq!(made, ok);
        assert!(!notes.contains("t0k3n-t0k3n"), "L10-1603 {notes}");
        let held = file("held", "t0k3n-t0k3n");
        let named = file("named", &format!("apiTokenFile: {}\n", held.display()));
        assert_eq!(opened(&[PLAIN], Some(&named)).0, ok);
        std::fs::remove_file(&held).unwrap();
        let wrong = opened(&[PLAIN], Some(&named)).0.unwrap_err();
        assert!(wrong[0].starts_with("apiTokenFile: "), "{wrong:?}");
        for path in [empty, unknown, given, named] {
            std::fs::remove_file(path).unwrap();
        }
    }
}
