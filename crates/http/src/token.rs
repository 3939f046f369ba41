//! A token that may be replaced while the program runs.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{Call, Clock, Error, Result, Secret, Tick, provider::Boxed};
use tracing::{info, warn};

use crate::{
    auth::{Authenticator, Authorization},
    file::read_text,
};

/// How long a token from a file is used before the file is read again. A mounted Kubernetes Secret takes longer than this
/// to change anyway.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// No token is longer; a longer file was named by mistake.
const MAX_TOKEN: u64 = 64 * 1024;

/// Where the bearer token of a credential comes from. Clones share what was read.
#[derive(Clone, Debug)]
pub struct TokenSource(Arc<Inner>);

enum Inner {
    Fixed(Secret),
    File(FileToken),
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(_) => f.write_str("fixed"),
            Self::File(file) => write!(f, "file {}", file.path.display()),
        }
    }
}

struct FileToken {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    token: Secret,
    looked: Tick,
    /// The last read failed; logged once, not every few seconds.
    complained: bool,
}

impl TokenSource {
    /// A token that never changes.
    pub fn fixed(token: Secret) -> Self {
        Self(Arc::new(Inner::Fixed(token)))
    }

    /// A token in a file, read now and again while in use. There is no background task.
    ///
    /// If the file becomes empty, unreadable or wrong, the last good token stays in use.
    pub fn file(path: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Result<Self> {
        let path = path.into();
        let token = read(&path)?;
        let state = Mutex::new(State { token, looked: clock.now(), complained: false });
        Ok(Self(Arc::new(Inner::File(FileToken { path, clock, state }))))
    }

    /// The token to use now.
    pub fn current(&self) -> Secret {
        match self.0.as_ref() {
            Inner::Fixed(token) => token.clone(),
            Inner::File(file) => file.look(LOOK_AGAIN),
        }
    }

    /// The token to use now; a file is read again, however recently it was read.
    pub(crate) fn newest(&self) -> Secret {
        match self.0.as_ref() {
            Inner::Fixed(token) => token.clone(),
            Inner::File(file) => file.look(Duration::ZERO),
        }
    }

    /// As much of the token as a log may show: its first four characters if it has at least twice as many, and a star
    /// for each other byte. Of fewer than four not even the number is shown.
    pub fn masked(&self) -> String {
        mask(self.current().expose())
    }
}

fn mask(token: &str) -> String {
    let shown = if token.len() < 8 { "" } else { token.get(..4).unwrap_or_default() };
    if token.len() < 4 { String::new() } else { format!("{shown}{}", "*".repeat(token.len() - shown.len())) }
}

impl FileToken {
    /// The token; the file is read first if the last read is at least `age` ago.
    fn look(&self, age: Duration) -> Secret {
        let now = self.clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(state.looked) < age {
            return state.token.clone();
        }
        state.looked = now;
        match read(&self.path) {
            Ok(token) => {
                if token != state.token {
                    info!(path = %self.path.display(), "token file changed; using the new token");
                    state.token = token;
                }
                state.complained = false;
            }
            Err(error) => {
                if !state.complained {
                    warn!(%error, "token file unusable; keeping the last good token");
                }
                state.complained = true;
            }
        }
        state.token.clone()
    }
}

fn read(path: &Path) -> Result<Secret> {
    let text = read_text(path, MAX_TOKEN).and_then(|text| Secret::new(&text).map_err(|why| why.to_string()));
    text.map_err(|why| Error::user_input(format!("the token file {} cannot be read: {why}", path.display())))
}

impl Authenticator for TokenSource {
    fn authorization<'a>(&'a self, _call: &'a Call) -> Boxed<'a, Result<Authorization>> {
        Box::pin(std::future::ready(Authorization::bearer(&self.current())))
    }

    fn is_in_force<'a>(&'a self, used: &'a Authorization) -> Boxed<'a, bool> {
        let same = Authorization::bearer(&self.newest()).is_ok_and(|now| now == *used);
        Box::pin(std::future::ready(same))
    }

    fn refused<'a>(&'a self, used: &'a Authorization) -> Boxed<'a, bool> {
        let changed = match self.0.as_ref() {
            Inner::Fixed(_) => false,
            Inner::File(file) => {
                Authorization::bearer(&file.look(Duration::ZERO)).is_ok_and(|now| now != *used)
            }
        };
        Box::pin(std::future::ready(changed))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::surroundings::SystemClock;

    #[tokio::test(start_paused = true)]
    async fn a_token_file_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "first\n").unwrap();
        let source = TokenSource::file(&path, Arc::new(SystemClock::default())).unwrap();
        assert_eq!(source.current().expose(), "first");

        fs::write(&path, "second\n").unwrap();
        assert_eq!(source.current().expose(), "first", "not looked at yet");
        tokio::time::sleep(LOOK_AGAIN).await;
        assert_eq!(source.current().expose(), "second");

        for bad in ["", "  \n", "two\nlines"] {
            fs::write(&path, bad).unwrap();
            tokio::time::sleep(LOOK_AGAIN).await;
            assert_eq!(source.current().expose(), "second", "{bad:?} keeps the old one");
        }
        fs::remove_file(&path).unwrap();
        tokio::time::sleep(LOOK_AGAIN).await;
        assert_eq!(source.current().expose(), "second", "gone keeps the old one");

        fs::write(&path, "third").unwrap();
        tokio::time::sleep(LOOK_AGAIN).await;
        assert_eq!(source.current().expose(), "third");
        assert!(!format!("{source:?}").contains("third"), "L10-306");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_looks_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "first").unwrap();
        let source = TokenSource::file(&path, Arc::new(SystemClock::default())).unwrap();
        let used = Authorization::bearer(&source.current()).unwrap();
        assert!(!source.refused(&used).await, "the same token again would be refused again");
        fs::write(&path, "second").unwrap();
        assert!(source.refused(&used).await);
        assert_eq!(source.current().expose(), "second");
        assert!(!TokenSource::fixed(Secret::new("x").unwrap()).refused(&used).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_cannot_be_a_token_is_refused_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let long = dir.path().join("long");
        fs::write(&long, "x".repeat(65_536)).unwrap();
        assert!(TokenSource::file(&long, Arc::new(SystemClock::default())).is_ok(), "as long as it may be");
        fs::write(&long, "x".repeat(65_537)).unwrap();
        let table = [
            (dir.path().join("missing"), "cannot be read"),
            (dir.path().to_owned(), "not a regular file"),
            (long, "too long"),
        ];
        for (path, want) in table {
            let error = TokenSource::file(&path, Arc::new(SystemClock::default())).unwrap_err();
            assert!(error.message().contains(want), "{error}");
            assert!(error.message().contains(path.to_str().unwrap()), "{error}");
        }
    }

    #[test]
    fn a_token_is_never_shown_whole() {
        assert_eq!(mask(""), "", "CS-1");
        assert_eq!(mask("abcdefghijklmnopqrstuvwxyz012345"), format!("abcd{}", "*".repeat(28)), "CS-2");
        assert_eq!(mask("abc"), "", "CS-3");
        assert_eq!(mask("abcd"), "****", "CS-3 L10-802");
        assert_eq!(mask("abcdefg"), "*******", "L10-803");
        assert_eq!(mask("abcdefgh"), "abcd****");
    }
}
