//! Who may come in.
//!
//! A page on loopback is reachable for every program and every web page on this computer. Three things keep them out: a
//! name that an attacker's DNS points at 127.0.0.1 is not our `Host`; a web page of another origin, another port of
//! this computer among them, says so in `Origin` or `Sec-Fetch-Site`; everybody else lacks the cookie.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

use http::{
    HeaderMap, Method,
    header::{COOKIE, HOST, HeaderName, ORIGIN},
    request::Parts,
};

use super::secrets::Secrets;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is answered.
    Welcome,
    /// It came with the token, and gets the cookie.
    Exchange,
    /// It has the cookie already and came with a token, which is taken out of its address.
    Tidy,
    /// It is not answered, for this reason.
    Refused(&'static str),
}

pub(super) const FOREIGN_HOST: &str = "This is not a name of this server.";
pub(super) const FOREIGN_ORIGIN: &str = "Requests of other web pages are not answered.";
pub(super) const NO_COOKIE: &str = "This page is for the person who started the sandbox: open the link that it printed. \
     A link works once; start the sandbox again for a new one.";

/// Guards one port.
pub(super) struct Door {
    hosts: [String; 2],
    cookie: String,
    session: String,
    /// Until it is used.
    token: Mutex<Option<String>>,
}

impl Door {
    pub(super) fn new(address: SocketAddr, secrets: Secrets) -> Self {
        Self {
            hosts: [address.to_string(), format!("localhost:{}", address.port())],
            // Cookies know no ports: two sandboxes on one computer need two names.
            cookie: format!("cloudberth-{}", address.port()),
            session: secrets.session,
            token: Mutex::new(Some(secrets.token)),
        }
    }

    /// The header that sets the cookie. It goes with the browser's session, scripts cannot read it, and no request
    /// that another site causes carries it.
    pub(super) fn set_cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.session)
    }

    /// Decides about a request. The right token is used up by it.
    pub(super) fn admit(&self, request: &Parts) -> Verdict {
        let Some(host) =
            only(&request.headers, &HOST).filter(|host| self.hosts.iter().any(|ours| ours == host))
        else {
            return Verdict::Refused(FOREIGN_HOST);
        };
        if foreign(request, host) {
            return Verdict::Refused(FOREIGN_ORIGIN);
        }
        let token = request.uri.query().and_then(token).filter(|_| request.uri.path() == "/");
        match (self.has_cookie(&request.headers), token) {
            (true, None) => Verdict::Welcome,
            (true, Some(_)) => Verdict::Tidy,
            (false, Some(token)) if self.use_up(token) => Verdict::Exchange,
            (false, _) => Verdict::Refused(NO_COOKIE),
        }
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let all = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == self.cookie && same(value, &self.session))
    }

    fn use_up(&self, given: &str) -> bool {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        token.take_if(|token| same(token, given)).is_some()
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).into_iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// Whether another origin causes the request. A link in another page may lead here; what it finds is up to the cookie.
fn foreign(request: &Parts, host: &str) -> bool {
    let headers = &request.headers;
    let origins = headers.get_all(ORIGIN).into_iter();
    let elsewhere =
        |origin: &[u8]| origin.strip_prefix(b"http://").is_none_or(|name| name != host.as_bytes());
    if origins.into_iter().any(|origin| elsewhere(origin.as_bytes())) {
        return true;
    }
    let visits = request.method == Method::GET
        && request.uri.path() == "/"
        && headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate");
    let other = headers.get(FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none");
    other && !visits
}

fn token(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Compares without telling by the time it takes how much of it was right.
fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::{Verdict::*, *};

    const OURS: &[(&str, &str)] = &[("host", "127.0.0.1:8080"), ("cookie", "a=b; cloudberth-8080=s3ss10n")];

    fn door() -> Door {
        Door::new("127.0.0.1:8080".parse().unwrap(), Secrets::known("t0k3n", "s3ss10n"))
    }

    fn asked(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request = Request::builder().method(method).uri(uri);
        headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .body(())
            .unwrap()
            .into_parts()
            .0
    }

    #[test]
    fn only_our_own_page_with_the_cookie_is_answered() {
        let with = |more: &[(&'static str, &'static str)]| [OURS, more].concat();
        let host = |host| vec![("host", host), ("cookie", "cloudberth-8080=s3ss10n")];
        let table = [
            ("with the cookie", "GET", "/events", OURS.to_vec(), Welcome),
            ("by name", "GET", "/", host("localhost:8080"), Welcome),
            (
                "a command from our page",
                "POST",
                "/do",
                with(&[("origin", "http://127.0.0.1:8080"), ("sec-fetch-site", "same-origin")]),
                Welcome,
            ),
            (
                "a link in a mail",
                "GET",
                "/",
                with(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]),
                Welcome,
            ),
            ("another name for this computer", "GET", "/", host("evil.example:8080"), Refused(FOREIGN_HOST)),
            ("another port in the name", "GET", "/", host("127.0.0.1:80"), Refused(FOREIGN_HOST)),
            ("two names", "GET", "/", with(&[("host", "127.0.0.1:8080")]), Refused(FOREIGN_HOST)),
            ("no name", "GET", "/", vec![("cookie", "cloudberth-8080=s3ss10n")], Refused(FOREIGN_HOST)),
            (
                "another site",
                "POST",
                "/do",
                with(&[("origin", "https://evil.example")]),
                Refused(FOREIGN_ORIGIN),
            ),
            (
                "another port of this computer",
                "POST",
                "/do",
                with(&[("origin", "http://127.0.0.1:3000")]),
                Refused(FOREIGN_ORIGIN),
            ),
            ("a sandboxed frame", "POST", "/do", with(&[("origin", "null")]), Refused(FOREIGN_ORIGIN)),
            (
                "the other of our names",
                "POST",
                "/do",
                with(&[("origin", "http://localhost:8080")]),
                Refused(FOREIGN_ORIGIN),
            ),
            (
                "a script tag elsewhere",
                "GET",
                "/main.js",
                with(&[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")]),
                Refused(FOREIGN_ORIGIN),
            ),
            ("no cookie", "GET", "/", vec![("host", "127.0.0.1:8080")], Refused(NO_COOKIE)),
            (
                "a wrong cookie",
                "GET",
                "/",
                vec![("host", "127.0.0.1:8080"), ("cookie", "cloudberth-8080=s3ss10m")],
                Refused(NO_COOKIE),
            ),
            (
                "the cookie of another sandbox",
                "GET",
                "/",
                vec![("host", "127.0.0.1:8080"), ("cookie", "cloudberth-8081=s3ss10n")],
                Refused(NO_COOKIE),
            ),
            ("a wrong token", "GET", "/?token=t0k3m", vec![("host", "127.0.0.1:8080")], Refused(NO_COOKIE)),
            (
                "a token where none belongs",
                "GET",
                "/events?token=t0k3n",
                vec![("host", "127.0.0.1:8080")],
                Refused(NO_COOKIE),
            ),
        ];
        for (case, method, uri, headers, want) in table {
            assert_eq!(door().admit(&asked(method, uri, &headers)), want, "{case}");
        }
    }

    #[test]
    fn the_token_works_once() {
        let door = door();
        let visit = |headers: &[(&str, &str)]| door.admit(&asked("GET", "/?token=t0k3n", headers));
        assert_eq!(visit(&[("host", "evil.example")]), Refused(FOREIGN_HOST), "and is not used up by that");
        assert_eq!(visit(&[("host", "127.0.0.1:8080")]), Exchange);
        assert_eq!(visit(&[("host", "127.0.0.1:8080")]), Refused(NO_COOKIE));
        assert_eq!(visit(OURS), Tidy, "the link again, in the browser that used it");
        assert!(!format!("{door:?} {:?}", Secrets::known("t0k3n", "s3ss10n")).contains("s3ss10n"));
    }
}
