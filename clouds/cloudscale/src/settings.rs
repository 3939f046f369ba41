//! The settings, from environment variables.

use std::{fmt, time::Duration};

use cloudberth_core::{Error, Result};
use cloudberth_http::{Base, TokenSource};

/// The variable that holds the token. The same name followed by `_FILE` names a file that holds it.
pub const TOKEN: &str = "CLOUDSCALE_ACCESS_TOKEN";

const URL: &str = "CLOUDSCALE_API_URL";
const TIMEOUT: &str = "CLOUDSCALE_API_TIMEOUT";
const DEFAULT_URL: &str = "https://api.cloudscale.ch/";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);
/// The seconds of the longest time-out that there is: 292 years.
const LONGEST_TIMEOUT: i64 = i64::MAX / 1_000_000_000;

/// How the API is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where requests go; `/v1` is part of it.
    pub base: Base,
    /// The credential.
    pub token: TokenSource,
    /// How long one request may take.
    pub timeout: Duration,
    /// Values that are not carried out, and what is done instead.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads the variables; an empty one counts as not set. `token` is the one that [`TOKEN`] names. Reports every
    /// mistake at once.
    pub fn read<'a>(
        token: Result<Option<TokenSource>>,
        variable: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, Vec<Error>> {
        let mut wrong = Vec::new();
        let mut warnings = Vec::new();
        let token = token
            .and_then(|token| {
                let missing = || {
                    Error::user_input(format!("{TOKEN} is not set; set it, or {TOKEN}_FILE, to an API token"))
                };
                token.ok_or_else(missing)
            })
            .map_err(|why| wrong.push(why));
        let base = Base::parse(&root(variable(URL).unwrap_or(DEFAULT_URL)))
            .map_err(|why| wrong.push(why.context(URL)));
        let timeout = timeout(variable(TIMEOUT), &mut warnings).map_err(|why| wrong.push(why));
        match (token, base, timeout) {
            (Ok(token), Ok(base), Ok(timeout)) => Ok(Self { base, token, timeout, warnings }),
            _ => Err(wrong),
        }
    }
}

/// With as much of the token as may be shown.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, token, timeout, warnings: _ } = self;
        write!(f, "cloudscale.ch at {base}, token {}, {timeout:?} for a request", token.masked())
    }
}

/// The base URL. `v1` replaces what follows the last slash, as a relative link does, so `https://h/` and `https://h/v1`
/// mean the same; and so does `https://h/v1/`.
fn root(url: &str) -> String {
    let url = url.trim();
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let start = url.find("://").map_or(0, |at| at + 3);
    let (before, path) = match url.get(start..).and_then(|rest| rest.find('/')) {
        Some(slash) => url.split_at(start + slash),
        None => (url, "/"),
    };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = folder.strip_suffix("/v1").unwrap_or(folder);
    format!("{before}{folder}/v1")
}

/// Whole seconds. What is not a positive number means the default, as in the replaced program; one that is too large is
/// a mistake.
fn timeout(text: Option<&str>, warnings: &mut Vec<String>) -> Result<Duration> {
    let Some(text) = text else { return Ok(DEFAULT_TIMEOUT) };
    match text
        .parse::<i64>()
        .ok()
        .and_then(|seconds| u64::try_from(seconds).ok().filter(|s| *s > 0).zip(Some(seconds)))
    {
        Some((_, seconds)) if seconds > LONGEST_TIMEOUT => Err(Error::user_input(format!(
            "{TIMEOUT}: {seconds} seconds are too many; set at most {LONGEST_TIMEOUT}"
        ))),
        Some((seconds, _)) => Ok(Duration::from_secs(seconds)),
        None => {
            warnings
                .push(format!("{TIMEOUT} is not a positive number of seconds; {DEFAULT_TIMEOUT:?} apply"));
            Ok(DEFAULT_TIMEOUT)
        }
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::Secret;

    use super::*;

    fn token(text: &str) -> Result<Option<TokenSource>> {
        Secret::new(text).map(|secret| Some(TokenSource::fixed(secret)))
    }

    fn read<'a>(variables: &'a [(&'a str, &'a str)]) -> Result<Settings, Vec<Error>> {
        Settings::read(token("t0k3n"), |name| {
            variables.iter().find(|(key, value)| *key == name && !value.is_empty()).map(|(_, value)| *value)
        })
    }

    #[test]
    fn a_token_alone_suffices() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.base.to_string(), "https://api.cloudscale.ch/v1", "CS-5");
        assert_eq!(settings.timeout, Duration::from_secs(20), "CS-7");
        assert_eq!(settings.warnings, Vec::<String>::new(), "CS-7");
    }

    #[test]
    fn without_a_token_there_is_no_provider() {
        let wrong = Settings::read(Ok(None), |_| None).unwrap_err();
        assert_eq!(wrong.len(), 1, "CS-4");
        assert!(wrong[0].message().starts_with("CLOUDSCALE_ACCESS_TOKEN is not set"), "CS-4 {}", wrong[0]);
    }

    #[test]
    fn all_mistakes_are_told_at_once_and_none_shows_a_value() {
        let both = Err(Error::user_input("both are set"));
        let wrong = Settings::read(both, |name| match name {
            URL => Some("ftp://s3cr3t@h/"),
            _ => Some("9223372037"),
        })
        .unwrap_err();
        let text: Vec<_> = wrong.iter().map(|why| why.message().to_owned()).collect();
        assert_eq!(text.len(), 3, "{text:?}");
        assert_eq!(text[0], "both are set");
        assert!(
            text[1].starts_with("CLOUDSCALE_API_URL: ") && !text[1].contains("s3cr3t"),
            "L10-801 {text:?}"
        );
        assert!(text[2].starts_with("CLOUDSCALE_API_TIMEOUT: 9223372037 seconds are too many"), "{text:?}");
    }

    #[test]
    fn a_time_out_is_a_positive_number_of_seconds() {
        let table = [
            ("CS-8", "5", 5, false),
            ("a sign", "+5", 5, false),
            ("CS-9 no number", "abc", 20, true),
            ("CS-9 zero", "0", 20, true),
            ("CS-9 negative", "-3", 20, true),
            ("CS-9 a fraction", "1.5", 20, true),
            ("more than a number can be", "99999999999999999999", 20, true),
            ("the longest", "9223372036", 9_223_372_036, false),
            ("empty is not set", "", 20, false),
        ];
        for (case, text, want, warned) in table {
            let settings = read(&[(TIMEOUT, text)]).unwrap();
            assert_eq!(settings.timeout, Duration::from_secs(want), "{case}");
            assert_eq!(!settings.warnings.is_empty(), warned, "{case}");
        }
    }

    #[test]
    fn the_url_is_taken_as_it_always_was_and_forgives_a_slash() {
        let table = [
            ("https://h/", "https://h/v1"),
            ("https://h", "https://h/v1"),
            ("https://h/v1", "https://h/v1"),
            ("https://h/v1/", "https://h/v1"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
            ("https://h/sub", "https://h/v1"),
            ("https://h/sub/", "https://h/sub/v1"),
            ("https://h/sub/v1/", "https://h/sub/v1"),
            ("https://h/?q=/x#f", "https://h/v1"),
            ("  https://h/  ", "https://h/v1"),
        ];
        for (text, want) in table {
            assert_eq!(read(&[(URL, text)]).unwrap().base.to_string(), want, "{text}");
        }
    }

    #[test]
    fn a_token_is_never_shown_whole() {
        let long = "abcdefghijklmnopqrstuvwxyz012345";
        let settings = Settings::read(token(long), |_| None).unwrap();
        let shown = format!(
            "cloudscale.ch at https://api.cloudscale.ch/v1, token abcd{}, 20s for a request",
            "*".repeat(28)
        );
        assert_eq!(settings.to_string(), shown, "CS-2");
        assert!(!format!("{settings:?}").contains(long), "L10-804");
    }
}
