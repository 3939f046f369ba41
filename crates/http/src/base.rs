//! The address of an API; a token is never sent anywhere else.

use std::fmt;

use cloudberth_core::{Error, Result};
use http::{
    Uri,
    uri::{Authority, PathAndQuery, Scheme},
};
use percent_encoding::utf8_percent_encode;

use crate::auth::ENCODED;

/// The scheme, host and path prefix of all requests of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    scheme: Scheme,
    authority: Authority,
    prefix: String,
    /// Sent with every request.
    query: Vec<(String, String)>,
}

impl Base {
    /// Reads an absolute `http` or `https` URL. A query or a fragment is dropped; a user name is refused, because the URL
    /// is logged.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            // The URL may hold a password, so the error does not quote it.
            Error::user_input(format!("the API's URL {why}; it should look like https://api.example.org/v1"))
        };
        let (text, _fragment) = text.trim().split_once('#').unwrap_or((text.trim(), ""));
        let parts = text.parse::<Uri>().map_err(|_| wrong("cannot be read"))?.into_parts();
        let scheme = parts.scheme.ok_or_else(|| wrong("lacks a scheme"))?;
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong("is neither http nor https"));
        }
        let authority = parts.authority.ok_or_else(|| wrong("lacks a host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("holds a user name"));
        }
        let path = parts.path_and_query.as_ref().map_or("", PathAndQuery::path);
        if climbs(path) {
            return Err(wrong("holds a dot segment"));
        }
        Ok(Self { scheme, authority, prefix: path.trim_end_matches('/').to_owned(), query: Vec::new() })
    }

    /// The same address with a query parameter that every request carries.
    #[must_use]
    pub fn query(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((key.into(), value.into()));
        self
    }

    /// Whether what is sent there is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The address of `path`, already encoded, below this one.
    pub(crate) fn join(&self, path: &str, query: &[(String, String)]) -> Result<Uri> {
        let mut text = format!("{}/{}", self.prefix, path.trim_start_matches('/'));
        let pairs = self.query.iter().chain(query);
        for (i, (key, value)) in pairs.enumerate() {
            text.push(if i == 0 { '?' } else { '&' });
            text.extend(utf8_percent_encode(key, ENCODED));
            text.push('=');
            text.extend(utf8_percent_encode(value, ENCODED));
        }
        let path = text
            .parse::<PathAndQuery>()
            .map_err(|e| Error::permanent(format!("{} is not the path of a request: {e}", clip(path))))?;
        self.at(path)
    }

    /// The address of a link that a server gave; refused unless it stays below this one, because the token goes with it.
    ///
    /// `from` is where the link was found; relative links are taken from there.
    pub(crate) fn follow(&self, from: &Uri, link: &str) -> Result<Uri> {
        let refuse = |why: &str| Error::permanent(format!("the link to the next page {why}: {}", clip(link)));
        let (link, _fragment) = link.split_once('#').unwrap_or((link, ""));
        let whole = match link.as_bytes() {
            [] => return Err(refuse("is empty")),
            [b'/', b'/', ..] => format!("{}:{link}", self.scheme),
            [b'/', ..] => format!("{}://{}{link}", self.scheme, self.authority),
            [b'?', ..] => format!("{}://{}{}{link}", self.scheme, self.authority, from.path()),
            _ => link.to_owned(),
        };
        let parts = whole.parse::<Uri>().map_err(|_| refuse("cannot be read"))?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(refuse("is neither absolute nor from the root"));
        };
        if scheme != self.scheme || !same_host(&scheme, &authority, &self.authority) {
            return Err(refuse("leads to another server"));
        }
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        let below = path.path().strip_prefix(&self.prefix);
        if climbs(path.path()) || !below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Err(refuse("leads out of the API"));
        }
        self.at(path)
    }

    fn at(&self, path: PathAndQuery) -> Result<Uri> {
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .map_err(|e| Error::permanent(format!("the address of a request cannot be built: {e}")))
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

fn clip(text: &str) -> String {
    cloudberth_core::error::cut(text, 200)
}

/// Whether a path has `.` or `..` segments, which a server may resolve differently than we do.
fn climbs(path: &str) -> bool {
    path.split('/').any(|segment| {
        let plain = segment.replace("%2e", ".").replace("%2E", ".");
        plain == "." || plain == ".." || segment.contains('\\')
    })
}

fn same_host(scheme: &Scheme, a: &Authority, b: &Authority) -> bool {
    let usual = if *scheme == Scheme::HTTPS { 443 } else { 80 };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(usual);
    !a.as_str().contains('@') && a.host().eq_ignore_ascii_case(b.host()) && port(a) == port(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> Base {
        Base::parse(text).unwrap()
    }

    #[test]
    fn paths_are_joined_below_the_base() {
        let table = [
            ("https://h", "v1/servers", "https://h/v1/servers"),
            ("https://h/", "/v1/servers", "https://h/v1/servers"),
            ("https://h/v2/", "servers", "https://h/v2/servers"),
            ("http://127.0.0.1:80/a/b?x=1#y", "c", "http://127.0.0.1:80/a/b/c"),
        ];
        for (text, path, want) in table {
            assert_eq!(base(text).join(path, &[]).unwrap().to_string(), want, "{text} {path}");
        }
        let query = [("tag:k".to_owned(), "a b&c".to_owned())];
        let uri = base("https://h/1.0").query("account_id", "acc-1").join("servers", &query).unwrap();
        assert_eq!(uri.to_string(), "https://h/1.0/servers?account_id=acc-1&tag%3Ak=a%20b%26c");
        assert_eq!(base("https://h/v2/").to_string(), "https://h/v2");
    }

    #[test]
    fn a_wrong_base_is_refused_without_repeating_it() {
        let table = [
            ("", "cannot be read"),
            ("h/v1", "cannot be read"),
            ("api.example.org", "lacks a scheme"),
            ("/v1", "lacks a scheme"),
            ("ftp://h/", "neither http nor https"),
            ("https://user:pa55@h/", "holds a user name"),
            ("https://h/a/../b", "holds a dot segment"),
        ];
        for (text, want) in table {
            let error = Base::parse(text).unwrap_err();
            assert!(error.message().contains(want), "{text}: {error}");
            assert!(!error.message().contains("pa55"), "L10-307 {text}");
        }
    }

    #[test]
    fn a_link_may_not_carry_the_token_away() {
        let home = base("https://api.example.org/v2");
        let from = home.join("servers", &[]).unwrap();
        let table = [
            ("https://api.example.org/v2/servers?page=2", Some("https://api.example.org/v2/servers?page=2")),
            ("https://API.example.org:443/v2/x#top", Some("https://api.example.org/v2/x")),
            ("/v2/servers?page=2", Some("https://api.example.org/v2/servers?page=2")),
            ("?page=2", Some("https://api.example.org/v2/servers?page=2")),
            ("https://api.example.org/v2", Some("https://api.example.org/v2")),
            ("https://evil.example.org/v2/servers", None),
            ("http://api.example.org/v2/servers", None),
            ("https://api.example.org:8443/v2/servers", None),
            ("https://x@api.example.org/v2/servers", None),
            ("https://api.example.org@evil.org/v2/servers", None),
            ("//evil.example.org/v2/servers", None),
            ("https://api.example.org/v20/servers", None),
            ("https://api.example.org/v1/servers", None),
            ("https://api.example.org/v2/../admin", None),
            ("https://api.example.org/v2/%2e%2E/admin", None),
            ("https://api.example.org/v2/..\\admin", None),
            ("servers?page=2", None),
            ("ftp://api.example.org/v2", None),
            ("", None),
            ("\u{0}", None),
        ];
        for (link, want) in table {
            let got = home.follow(&from, link).map(|uri| uri.to_string()).ok();
            assert_eq!(got.as_deref(), want, "{link}");
        }
    }
}
