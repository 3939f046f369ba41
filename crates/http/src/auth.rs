//! Credentials, and how they are kept out of what people see (law 10).

use std::{fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use cloudberth_core::{Call, Error, Result, Secret, provider::Boxed};
use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What has to be encoded in a URL or a form.
pub(crate) const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The source of credentials.
///
/// It is asked at every attempt, so a changed credential is used at once. If it has to fetch one first, a call waits for
/// that until its own deadline at most.
pub trait Authenticator: Send + Sync {
    /// The credential to send now.
    fn authorization<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Authorization>>;

    /// Whether `used` belongs to the account whose credential is in force at this moment. Asked after a 404, which
    /// counts only if it was said to that account.
    ///
    /// An implementation that caches reads its source again here.
    fn is_in_force<'a>(&'a self, used: &'a Authorization) -> Boxed<'a, bool>;

    /// `used` was refused with 401. Drops it, and says whether asking for another one is worth a second attempt.
    ///
    /// A request is repeated for this reason once only.
    fn refused<'a>(&'a self, used: &'a Authorization) -> Boxed<'a, bool>;
}

/// Sends no credential.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Authenticator for Anonymous {
    fn authorization<'a>(&'a self, _call: &'a Call) -> Boxed<'a, Result<Authorization>> {
        Box::pin(std::future::ready(Ok(Authorization::none())))
    }

    fn is_in_force<'a>(&'a self, _used: &'a Authorization) -> Boxed<'a, bool> {
        Box::pin(std::future::ready(true))
    }

    fn refused<'a>(&'a self, _used: &'a Authorization) -> Boxed<'a, bool> {
        Box::pin(std::future::ready(false))
    }
}

/// A value for the `Authorization` header, and the secrets in it. Its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization {
    header: Option<HeaderValue>,
    hidden: Vec<Secret>,
    /// Whose it is, where one account has many credentials, as with access tokens. Otherwise the credential is the
    /// account.
    account: Option<Arc<str>>,
}

impl Authorization {
    /// No `Authorization` header.
    pub const fn none() -> Self {
        Self { header: None, hidden: Vec::new(), account: None }
    }

    /// `Bearer <token>`.
    pub fn bearer(token: &Secret) -> Result<Self> {
        Self::with_scheme("Bearer", token)
    }

    /// `<scheme> <token>`.
    pub fn with_scheme(scheme: &str, token: &Secret) -> Result<Self> {
        Ok(Self {
            header: Some(header(&format!("{scheme} {}", token.expose()))?),
            hidden: vec![token.clone()],
            account: None,
        })
    }

    /// The credentials of an `OAuth2` client, in the form that token endpoints want: `Basic`, both parts URL-encoded.
    pub fn oauth_client(id: &str, secret: &Secret) -> Result<Self> {
        let pair =
            format!("{}:{}", utf8_percent_encode(id, ENCODED), utf8_percent_encode(secret.expose(), ENCODED));
        let encoded = Secret::new(&BASE64_STANDARD.encode(pair))?;
        let header = header(&format!("Basic {}", encoded.expose()))?;
        Ok(Self { header: Some(header), hidden: vec![secret.clone(), encoded], account: None }.of(id))
    }

    /// The same credential, as one of several that `account` may use.
    pub(crate) fn of(mut self, account: &str) -> Self {
        self.account = Some(account.into());
        self
    }

    pub(crate) fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// Whether a server shows the same things to both.
    pub(crate) fn has_account_of(&self, other: &Self) -> bool {
        match (&self.account, &other.account) {
            (Some(one), Some(two)) => one == two,
            _ => self == other,
        }
    }

    pub(crate) const fn header(&self) -> Option<&HeaderValue> {
        self.header.as_ref()
    }

    pub(crate) fn hidden(&self) -> &[Secret] {
        &self.hidden
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization([redacted])")
    }
}

fn header(text: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Error::user_input("the credential cannot be sent in an HTTP header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// `text` with all secrets redacted, also in their URL-encoded form.
pub(crate) fn redact(text: &str, hidden: &[Secret]) -> String {
    hidden.iter().fold(text.to_owned(), |text, secret| {
        let text = secret.redact(&text);
        match Secret::new(&utf8_percent_encode(secret.expose(), ENCODED).to_string()) {
            Ok(encoded) => encoded.redact(&text),
            Err(_) => text,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_travel_in_the_header_and_nowhere_else() {
        let token = Secret::new("t0k en/1").unwrap();
        let table = [
            ("bearer", Authorization::bearer(&token), "Bearer t0k en/1"),
            ("scheme", Authorization::with_scheme("OAuth", &token), "OAuth t0k en/1"),
            ("client", Authorization::oauth_client("app:1", &token), "Basic YXBwJTNBMTp0MGslMjBlbiUyRjE="),
        ];
        for (case, made, want) in table {
            let made = made.unwrap();
            assert_eq!(made.header().unwrap().to_str().unwrap(), want, "{case}");
            assert_eq!(format!("{made:?}"), "Authorization([redacted])", "L10-304 {case}");
            assert!(!format!("{:?}", made.header()).contains("t0k"), "L10-304 {case}");
        }
        assert_eq!(Authorization::none().header(), None);
    }

    #[test]
    fn every_spelling_of_a_secret_is_blacked_out() {
        let secrets = [Secret::new("p@ss word").unwrap(), Secret::new("tok").unwrap()];
        let shown = redact("a p@ss word b p%40ss%20word c tok d", &secrets);
        assert_eq!(shown, "a [redacted] b [redacted] c [redacted] d", "L10-305");
    }
}
