//! The clouds that this build of the program knows.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use cloudberth_core::{
    Clock, Random,
    error::{Context, Error, Result},
    provider::Provider,
};
use cloudberth_http::{Attempt, Base, Observer, Proxies, Roots, TokenSource, Transport, connect};
use cloudberth_runtime::metrics::clouds::CloudMeter;

use crate::env::{Env, Token};

/// A cloud that can be chosen with `--cloud-provider`.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Its name.
    pub name: &'static str,
    /// Makes the provider. Tells everything that is wrong with its settings at once.
    pub open: fn(&Opening<'_>) -> Opened,
}

/// A provider, or everything that is wrong with its settings.
pub type Opened = Result<Arc<dyn Provider>, Vec<Error>>;

/// What a provider is made from.
#[derive(Clone)]
pub struct Opening<'a> {
    /// The environment variables.
    pub env: &'a Env,
    /// `--cloud-config`.
    pub config: Option<&'a Path>,
    /// The cluster's name.
    pub cluster_name: &'a str,
    /// Sees every call to the cloud.
    pub observer: Arc<dyn Observer>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<Random>,
    /// What there is to say about the settings, beside mistakes.
    pub notes: &'a Notes,
}

/// What is said about settings before there is a log to say it in.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Vec<(bool, String)>>);

impl Notes {
    /// Something that people should know.
    pub fn inform(&self, text: impl Into<String>) {
        self.add(false, text.into());
    }

    /// Something that somebody should look at.
    pub fn warn(&self, text: impl Into<String>) {
        self.add(true, text.into());
    }

    fn add(&self, warning: bool, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((warning, text));
    }

    /// Says it.
    pub(crate) fn tell(&self) {
        for (warning, text) in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if warning {
                tracing::warn!("{text}");
            } else {
                tracing::info!("{text}");
            }
        }
    }
}

/// The variables that name proxies, in either spelling.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"];

impl Opening<'_> {
    /// The token that the variable `name` holds, or that stands in the file which `name` followed by `_FILE` names; a
    /// file is followed when it changes. `None`: neither is set.
    pub fn token(&self, name: &str) -> Result<Option<TokenSource>> {
        match self.env.token(name)? {
            None => Ok(None),
            Some(Token::Text(secret)) => Ok(Some(TokenSource::fixed(secret))),
            Some(Token::File(path)) => {
                TokenSource::file(path, Arc::clone(&self.clock)).context(format!("{name}_FILE")).map(Some)
            }
        }
    }

    /// The way to the API at `base`, through the proxies that the environment names.
    pub fn transport(&self, base: &Base) -> Result<Transport> {
        let spellings = PROXIES.iter().flat_map(|name| [(*name).to_owned(), name.to_ascii_lowercase()]);
        let named =
            spellings.filter_map(|name| self.env.get(&name).map(str::to_owned).map(|value| (name, value)));
        let roots = if base.is_encrypted() { Roots::System } else { Roots::None };
        connect(roots, Proxies::from_variables(&named.collect())?)
    }
}

impl std::fmt::Debug for Opening<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening").field("env", self.env).field("config", &self.config).finish_non_exhaustive()
    }
}

/// Counts the calls to one cloud.
#[derive(Debug)]
pub struct Counting(pub CloudMeter);

impl Observer for Counting {
    fn attempted(&self, attempt: Attempt) {
        self.0.attempted(attempt.operation, attempt.status, attempt.outcome, attempt.took);
    }

    fn waited(&self, _operation: &'static str, wait: std::time::Duration) {
        self.0.waited(wait);
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_http::{Unobserved, surroundings::SystemClock};

    use super::*;

    fn with<T>(variables: &[(&str, &str)], look: impl FnOnce(&Opening<'_>) -> T) -> T {
        let env = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        look(&Opening {
            env: &env,
            config: None,
            cluster_name: "test",
            observer: Arc::new(Unobserved),
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(Random::seeded(1)),
            notes: &Notes::default(),
        })
    }

    #[tokio::test]
    async fn a_token_comes_from_a_variable_or_a_file() {
        let path = std::env::temp_dir().join(format!("cloudberth-token-{}", std::process::id()));
        std::fs::write(&path, "from a file\n").unwrap();
        let token = |variables: &[(&str, &str)]| {
            let found = with(variables, |opening| opening.token("X_TOKEN"));
            found.map(|source| source.map(|source| source.current().expose().to_owned()))
        };
        let text = path.to_str().unwrap();
        assert_eq!(token(&[]).unwrap(), None);
        assert_eq!(token(&[("X_TOKEN", "plain")]).unwrap().as_deref(), Some("plain"));
        assert_eq!(token(&[("X_TOKEN_FILE", text)]).unwrap().as_deref(), Some("from a file"));
        std::fs::remove_file(&path).unwrap();
        let gone = token(&[("X_TOKEN_FILE", text)]).unwrap_err();
        assert!(gone.message().starts_with("X_TOKEN_FILE: ") && gone.message().contains(text), "{gone}");
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named() {
        let plain = Base::parse("http://127.0.0.1:1/v1").unwrap();
        for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
            let wrong =
                with(&[(name, "socks5://user:s3cr3t@h")], |opening| opening.transport(&plain)).unwrap_err();
            let text = wrong.message();
            assert!(text.contains("_PROXY") && !text.contains("s3cr3t"), "L10-806 {name}: {text}");
        }
        assert!(with(&[("HTTP_PROXY", "http://h:3128")], |opening| opening.transport(&plain)).is_ok());
    }
}
