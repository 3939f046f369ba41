//! What a provider crate exports: one factory, from which everything that depends on the list of clouds is derived.

use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use cloudberth_core::{
    Clock, Random, Reason, annotation,
    error::{Context, Error, Result},
    provider::Provider,
    rights::Right,
};

use crate::{
    Base, Observer, Proxies, Resolver, Roots, TokenSource, Transport, connect,
    env::{Env, Token},
    file::read_text,
    yaml::{self, Fields},
};

/// A cloud that this build can serve. A provider crate exports one; the program lists them all in one place, and
/// `--cloud-provider`, presets by program name, the checks of rights and manifests and the references of annotations and events follow
/// from that list.
#[derive(Clone, Copy, Debug)]
pub struct ProviderFactory {
    /// What `--cloud-provider` calls it. Its folder, manifest and reference page have the same name.
    pub name: &'static str,
    /// The programs that it replaces. Called by one of these names, cloudberth serves this cloud by default.
    pub replaces: &'static [&'static str],
    /// The Service annotations that it reads and writes.
    pub annotations: &'static annotation::Table,
    /// The event reasons of its own, beside those of the framework.
    pub reasons: &'static [Reason],
    /// The rights in the cluster that it needs beyond those that every cloud needs.
    pub rights: &'static [Right],
    /// Variables to lay over the environment so that it opens without an account, for whoever only asks what is pure. An
    /// empty value takes a variable away. What is opened so must not be called.
    pub offline: &'static [(&'static str, &'static str)],
    /// Makes the provider, or reports every mistake in its settings at once.
    pub open: fn(&ProviderContext<'_>) -> OpenResult,
}

/// The address of an API that is never called, for [`ProviderFactory::offline`]. Without TLS no certificates are read.
pub const NOWHERE: &str = "http://127.0.0.1:1/";

/// A provider, or every mistake in its settings.
pub type OpenResult = Result<Arc<dyn Provider>, Vec<Error>>;

/// What a provider is made from. It takes nothing from anywhere else.
#[derive(Clone)]
pub struct ProviderContext<'a> {
    /// The environment variables.
    pub env: &'a Env,
    /// The file of `--cloud-config`.
    pub config: Option<&'a Path>,
    /// The flags that somebody gave.
    pub given: &'a GivenFlags,
    /// The cluster's name, as it appears in what is made in the cloud.
    pub cluster_name: &'a str,
    /// Sees every call to the cloud.
    pub observer: Arc<dyn Observer>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<Random>,
    /// The addresses of names, for what a provider looks up beside its cloud.
    pub resolver: Arc<dyn Resolver>,
    /// Remarks about the settings that are not mistakes.
    pub notes: &'a Notes,
}

/// The flags that somebody gave, with their values. A provider for which a flag's default is not enough to turn something
/// on asks here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenFlags(BTreeMap<&'static str, String>);

impl GivenFlags {
    /// The value of a flag, by its name without dashes and as `--help` shows values; `None` if nobody gave it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl FromIterator<(&'static str, String)> for GivenFlags {
    fn from_iter<T: IntoIterator<Item = (&'static str, String)>>(flags: T) -> Self {
        Self(flags.into_iter().collect())
    }
}

/// Log lines that wait until there is a log: settings are read before logging is set up.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Vec<(bool, String)>>);

impl Notes {
    /// Adds a line of level info.
    pub fn info(&self, text: impl Into<String>) {
        self.add(false, text.into());
    }

    /// Adds a line of level warning.
    pub fn warn(&self, text: impl Into<String>) {
        self.add(true, text.into());
    }

    fn add(&self, warning: bool, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((warning, text));
    }

    /// Logs every line once.
    pub fn log(&self) {
        for (warning, text) in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if warning {
                tracing::warn!("{text}");
            } else {
                tracing::info!("{text}");
            }
        }
    }
}

/// No file of settings is longer; a longer one was named by mistake.
const MAX_CONFIG: u64 = 1024 * 1024;

/// The variables that name proxies, in either case.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"];

impl ProviderContext<'_> {
    /// The token in the variable `name`, or in the file that `name` followed by `_FILE` names; a file is read again
    /// when it changes. `None`: neither is set.
    pub fn token(&self, name: &str) -> Result<Option<TokenSource>> {
        self.first_token(&[name]).map(|found| found.map(|(_, token)| token))
    }

    /// The token of the first of several variables that has one, each as in [`token`](Self::token), and the variable that
    /// it came from. That another one holds a different token is noted as a warning.
    pub fn first_token(&self, names: &[&str]) -> Result<Option<(String, TokenSource)>> {
        let (mut found, mut blank) = (Vec::new(), Vec::new());
        for name in names {
            match self.env.token(name) {
                Ok(None) => {}
                Ok(Some(Token::Text(secret))) => found.push(((*name).to_owned(), TokenSource::fixed(secret))),
                Ok(Some(Token::File(path))) => {
                    let name = format!("{name}_FILE");
                    let source = TokenSource::file(path, Arc::clone(&self.clock)).context(&name)?;
                    found.push((name, source));
                }
                Err(why) if self.env.is_blank(name) => blank.push(why.message().to_owned()),
                Err(why) => return Err(why),
            }
        }
        let mut found = found.into_iter();
        let Some((name, token)) = found.next() else {
            return if blank.is_empty() { Ok(None) } else { Err(Error::user_input(blank.join("; "))) };
        };
        for (other, _) in found.filter(|(_, other)| other.current() != token.current()) {
            self.notes.warn(format!("{name} and {other} hold different tokens; that of {name} is used"));
        }
        Ok(Some((name, token)))
    }

    /// The settings in the file of `--cloud-config`, read [strictly](crate::yaml); `None` if there is no file. Reports every
    /// mistake at once.
    pub fn read_config<T>(
        &self,
        read: impl for<'y> FnOnce(&mut Fields<'y>) -> Option<T>,
    ) -> Result<Option<T>, Vec<Error>> {
        let Some(path) = self.config else { return Ok(None) };
        let wrong =
            |why: &dyn fmt::Display| Error::user_input(format!("--cloud-config {}: {why}", path.display()));
        let text = read_text(path, MAX_CONFIG).map_err(|why| vec![wrong(&why)])?;
        let settings =
            yaml::read(&text, read).map_err(|mistakes| mistakes.iter().map(|why| wrong(why)).collect());
        settings.map(Some)
    }

    /// The transport to the API at `base`, through the proxies that the environment names.
    pub fn transport(&self, base: &Base) -> Result<Transport> {
        let spellings = PROXIES.iter().flat_map(|name| [(*name).to_owned(), name.to_ascii_lowercase()]);
        let named =
            spellings.filter_map(|name| self.env.get(&name).map(str::to_owned).map(|value| (name, value)));
        let roots = if base.is_encrypted() { Roots::System } else { Roots::None };
        connect(roots, Proxies::from_variables(&named.collect())?)
    }
}

impl fmt::Debug for ProviderContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderContext")
            .field("env", self.env)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::{NoResolver, Unobserved, surroundings::SystemClock};

    use super::*;

    fn with<T>(variables: &[(&str, &str)], look: impl FnOnce(&ProviderContext<'_>) -> T) -> T {
        let env = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        look(&ProviderContext {
            env: &env,
            config: None,
            given: &GivenFlags::default(),
            cluster_name: "test",
            observer: Arc::new(Unobserved),
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(Random::seeded(1)),
            resolver: Arc::new(NoResolver),
            notes: &Notes::default(),
        })
    }

    #[tokio::test]
    async fn a_token_comes_from_a_variable_or_a_file() {
        let path = std::env::temp_dir().join(format!("cloudberth-token-{}", std::process::id()));
        std::fs::write(&path, "from a file\n").unwrap();
        let token = |variables: &[(&str, &str)]| {
            let found = with(variables, |ctx| ctx.token("X_TOKEN"));
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

    type Variables<'a> = &'a [(&'a str, &'a str)];
    type Found<'a> = Result<Option<(&'a str, &'a str)>, &'a str>;

    #[tokio::test]
    async fn the_first_of_several_tokens_is_used_and_another_one_is_warned_about() {
        let (one, two) = (("A_TOKEN", "s3cr3t"), ("B_TOKEN", "0ther"));
        let warned = Some("A_TOKEN and B_TOKEN hold different tokens; that of A_TOKEN is used");
        let table: [(Variables<'_>, Found<'_>, Option<&str>); 8] = [
            (&[], Ok(None), None),
            (&[one], Ok(Some(one)), None),
            (&[two], Ok(Some(two)), None),
            (&[one, two], Ok(Some(one)), warned),
            (&[one, ("B_TOKEN", "s3cr3t\n")], Ok(Some(one)), None),
            (&[("A_TOKEN", " "), two], Ok(Some(two)), None),
            (
                &[("A_TOKEN", " "), ("B_TOKEN", "\n")],
                Err("A_TOKEN: the token is empty; B_TOKEN: the token is empty"),
                None,
            ),
            (
                &[("A_TOKEN", " "), ("A_TOKEN_FILE", "/run/token")],
                Err("A_TOKEN and A_TOKEN_FILE are both set; set one of them only"),
                None,
            ),
        ];
        for (variables, want, warning) in table {
            let (found, notes) = with(variables, |ctx| {
                let found = ctx.first_token(&["A_TOKEN", "B_TOKEN"]);
                (found, std::mem::take(&mut *ctx.notes.0.lock().unwrap()))
            });
            let found =
                found.map(|found| found.map(|(name, token)| (name, token.current().expose().to_owned())));
            let found = found.map_err(|why| why.message().to_owned());
            let want = want.map(|want| want.map(|(name, token)| (name.to_owned(), token.to_owned())));
            assert_eq!(found, want.map_err(str::to_owned), "{variables:?}");
            let notes: Vec<_> = notes.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(notes, warning.into_iter().collect::<Vec<_>>(), "L10-1508 {variables:?}");
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named() {
        let plain = Base::parse("http://127.0.0.1:1/v1").unwrap();
        for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
            let wrong = with(&[(name, "socks5://user:s3cr3t@h")], |ctx| ctx.transport(&plain)).unwrap_err();
            let text = wrong.message();
            assert!(text.contains("_PROXY") && !text.contains("s3cr3t"), "L10-806 {name}: {text}");
        }
        assert!(with(&[("HTTP_PROXY", "http://h:3128")], |ctx| ctx.transport(&plain)).is_ok());
    }
}
