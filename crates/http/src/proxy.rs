//! The way through a proxy, where the environment names one.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use cloudberth_core::{Error, Result, provider::Boxed};
use http::{HeaderValue, Uri, uri::Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

/// Which servers are reached through which proxy. Its `Debug` shows no password.
#[derive(Clone, Debug)]
pub struct Proxies(Arc<Matcher>);

impl Proxies {
    /// No proxy at all.
    pub fn none() -> Self {
        Self(Arc::new(Matcher::builder().build()))
    }

    /// The proxies that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name, in either spelling; the
    /// upper-case one wins. Only `http://` proxies are supported, and any other is refused rather than ignored.
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Result<Self> {
        let value = |name: &str| {
            let both = [name.to_owned(), name.to_ascii_lowercase()];
            both.iter().filter_map(|name| variables.get(name)).map(|v| v.trim()).find(|v| !v.is_empty())
        };
        let proxy = |name: &str| {
            value(name).map_or(Ok(String::new()), |text| check(name, text).map(|()| text.to_owned()))
        };
        let matcher = Matcher::builder()
            .all(proxy("ALL_PROXY")?)
            .http(proxy("HTTP_PROXY")?)
            .https(proxy("HTTPS_PROXY")?)
            .no(value("NO_PROXY").unwrap_or_default().to_owned());
        Ok(Self(Arc::new(matcher.build())))
    }

    /// The header that a proxy wants with each plain request to `uri`; tunnels send it once, by themselves.
    pub(crate) fn authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        if uri.scheme() != Some(&Scheme::HTTP) {
            return None;
        }
        self.0.intercept(uri)?.basic_auth().cloned()
    }
}

/// The value may hold a password, so the error does not repeat it.
fn check(name: &str, text: &str) -> Result<()> {
    let wrong =
        |why| Error::user_input(format!("{name} {why}; it should look like http://proxy.example.org:3128"));
    let uri: Uri = text.parse().map_err(|_| wrong("is not a URL"))?;
    match uri.scheme_str() {
        None | Some("http") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(()),
        None | Some("http") => Err(wrong("lacks a host")),
        Some(_) => Err(wrong("names a kind of proxy that is not supported")),
    }
}

/// Connects directly, through a tunnel (https), or to a proxy that forwards (http).
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    direct: HttpConnector,
    proxies: Proxies,
}

impl Connector {
    pub(crate) fn new(direct: HttpConnector, proxies: Proxies) -> Self {
        Self { direct, proxies }
    }
}

impl Service<Uri> for Connector {
    type Response = Wire;
    type Error = BoxError;
    type Future = Boxed<'static, std::result::Result<Wire, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), BoxError>> {
        self.direct.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.0.intercept(&to) else {
            let connecting = self.direct.call(to);
            return Box::pin(async move { Ok(Wire { io: connecting.await?, forwarded: false }) });
        };
        let at = address(&proxy);
        if to.scheme() == Some(&Scheme::HTTPS) {
            let tunnel = Tunnel::new(at, self.direct.clone());
            let mut tunnel = match proxy.basic_auth() {
                Some(auth) => tunnel.with_auth(auth.clone()),
                None => tunnel,
            };
            let connecting = tunnel.call(to);
            return Box::pin(async move { Ok(Wire { io: connecting.await?, forwarded: false }) });
        }
        let connecting = self.direct.call(at);
        Box::pin(async move { Ok(Wire { io: connecting.await?, forwarded: true }) })
    }
}

fn address(proxy: &Intercept) -> Uri {
    proxy.uri().clone()
}

/// A connection that knows whether a proxy forwards what is sent over it: such a proxy wants whole URLs.
#[derive(Debug)]
pub(crate) struct Wire {
    io: TokioIo<TcpStream>,
    forwarded: bool,
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.forwarded)
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(pairs: &[(&str, &str)]) -> Result<Proxies> {
        let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Proxies::from_variables(&map)
    }

    #[test]
    fn the_variables_choose_the_proxy() {
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<&'a str>);
        let table: [Row<'_>; 9] = [
            (&[], "https://h/", None),
            (&[("HTTPS_PROXY", "http://p:1")], "https://h/", Some("http://p:1/")),
            (&[("HTTPS_PROXY", "http://p:1")], "http://h/", None),
            (&[("https_proxy", "p:1")], "https://h/", Some("http://p:1/")),
            (
                &[("HTTPS_PROXY", "http://up:1"), ("https_proxy", "http://low:1")],
                "https://h/",
                Some("http://up:1/"),
            ),
            (&[("HTTPS_PROXY", ""), ("https_proxy", "http://low:1")], "https://h/", Some("http://low:1/")),
            (&[("HTTP_PROXY", "http://p:1"), ("NO_PROXY", "other,.h")], "http://a.h/", None),
            (&[("ALL_PROXY", "http://p:1"), ("no_proxy", "10.0.0.0/8")], "http://10.1.2.3/", None),
            (
                &[("ALL_PROXY", "http://p:1"), ("no_proxy", "10.0.0.0/8")],
                "http://11.1.2.3/",
                Some("http://p:1/"),
            ),
        ];
        for (pairs, to, want) in table {
            let found = proxies(pairs).unwrap().0.intercept(&to.parse().unwrap());
            assert_eq!(found.map(|p| address(&p).to_string()).as_deref(), want, "{pairs:?} {to}");
        }
        assert!(Proxies::none().0.intercept(&Uri::from_static("https://h/")).is_none());
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_without_showing_it() {
        for (text, want) in [
            ("socks5://u:pa55@h:1", "not supported"),
            ("https://u:pa55@h:1", "not supported"),
            ("/pa55", "lacks a host"),
            ("http://u:pa55@h:1 ?", "not a URL"),
        ] {
            let error = proxies(&[("HTTPS_PROXY", text)]).unwrap_err();
            assert!(error.message().starts_with("HTTPS_PROXY "), "{error}");
            assert!(error.message().contains(want), "L8-301 {text}: {error}");
            assert!(!error.message().contains("pa55"), "L10-309 {text}: {error}");
        }
    }

    #[test]
    fn only_forwarding_proxies_get_the_header() {
        let proxies = proxies(&[("ALL_PROXY", "http://u:pa55@h:1")]).unwrap();
        let header = |uri| proxies.authorization(&Uri::from_static(uri));
        assert_eq!(header("http://x/").unwrap(), "Basic dTpwYTU1");
        assert_eq!(header("https://x/"), None);
        assert!(!format!("{proxies:?}").contains("pa55"), "L10-310");
        assert!(!format!("{proxies:?}").contains("dTpwYTU1"), "L10-310");
    }
}
