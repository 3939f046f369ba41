//! The authorities that are trusted to sign certificates of clients and front proxies.

use std::collections::BTreeMap;

use http::HeaderMap;
use rustls::pki_types::{CertificateDer, UnixTime};

use super::{
    headers::ProxyHeaders,
    identity::{AuthResult, from_certificate},
};
use crate::tls::clients::Pool;

/// The authority of front proxies, and the headers in which they name the user.
#[derive(Clone, Debug)]
pub(crate) struct Proxies {
    pub(crate) pool: Pool,
    pub(crate) headers: ProxyHeaders,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    pub(crate) clients: Option<Pool>,
    pub(crate) proxies: Option<Proxies>,
}

impl Trust {
    /// Authenticates the user that a front proxy names.
    pub(crate) fn front_proxy(
        &self,
        chain: &[CertificateDer<'_>],
        headers: &HeaderMap,
        now: UnixTime,
    ) -> AuthResult {
        let Some(proxies) = self.proxies.as_ref().filter(|_| !chain.is_empty()) else {
            return AuthResult::NotPresented;
        };
        match proxies.pool.verify(chain, now) {
            Err(why) => AuthResult::Rejected(format!("as a front proxy: {why}")),
            Ok(client) if !proxies.headers.allows(&client.subject.common_name) => {
                AuthResult::Rejected(format!("{:?} is no allowed front proxy", client.subject.common_name))
            }
            Ok(_) => proxies.headers.user(headers).map_or(AuthResult::NotPresented, AuthResult::Accepted),
        }
    }

    pub(crate) fn certificate(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> AuthResult {
        let Some(pool) = self.clients.as_ref().filter(|_| !chain.is_empty()) else {
            return AuthResult::NotPresented;
        };
        from_certificate(pool.verify(chain, now))
    }
}

/// The authorities in the cluster's `ConfigMap`, each read by itself.
#[derive(Debug)]
pub(crate) struct ClusterTrust {
    /// The authority for clients; none if the key is missing, an error if it cannot be read.
    pub(crate) clients: Option<Result<Pool, String>>,
    pub(crate) proxies: Option<Result<Proxies, String>>,
}

impl ClusterTrust {
    pub(crate) fn read(data: &BTreeMap<String, String>) -> Self {
        let pool = |key: &str| {
            let pem = data.get(key).filter(|pem| !pem.trim().is_empty())?;
            Some(Pool::from_pem(pem.as_bytes()).map_err(|why| format!("{key}: {why}")))
        };
        let proxies = pool("requestheader-client-ca-file")
            .map(|pool| Ok(Proxies { pool: pool?, headers: headers(data)? }));
        Self { clients: pool("client-ca-file"), proxies }
    }
}

fn headers(data: &BTreeMap<String, String>) -> Result<ProxyHeaders, String> {
    let list = |key: &str| -> Result<Vec<String>, String> {
        let Some(text) = data.get(key).filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
        serde_json::from_str(text).map_err(|error| format!("{key} is no JSON list of texts: {error}"))
    };
    Ok(ProxyHeaders {
        allowed_names: list("requestheader-allowed-names")?,
        username: list("requestheader-username-headers")?,
        uid: list("requestheader-uid-headers")?,
        group: list("requestheader-group-headers")?,
        extra_prefix: list("requestheader-extra-headers-prefix")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::selfsigned;

    fn authority() -> String {
        let made = selfsigned::make([127, 0, 0, 1].into(), "2031-05-06T12:00:00Z".parse().unwrap()).unwrap();
        let second = made.chain.rfind("-----BEGIN").unwrap();
        made.chain[second..].to_owned()
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_cluster_announces_whom_it_trusts() {
        let ca = authority();
        let all = ClusterTrust::read(&map(&[
            ("client-ca-file", &ca),
            ("requestheader-client-ca-file", &ca),
            ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
            ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
        ]));
        assert!(matches!(all.clients, Some(Ok(_))));
        let proxies = all.proxies.unwrap().unwrap();
        let one = |text: &str| vec![text.to_owned()];
        let want = ProxyHeaders {
            allowed_names: one("front-proxy-client"),
            username: one("X-Remote-User"),
            uid: vec![],
            group: one("X-Remote-Group"),
            extra_prefix: one("X-Remote-Extra-"),
        };
        assert_eq!(proxies.headers, want);
        let none = ClusterTrust::read(&map(&[("client-ca-file", " \n")]));
        assert!(none.clients.is_none() && none.proxies.is_none());
    }

    #[test]
    fn each_part_can_be_wrong_by_itself() {
        let ca = authority();
        let table = [
            (
                "no PEM",
                map(&[("client-ca-file", &ca), ("requestheader-client-ca-file", "x")]),
                "there is no usable certificate",
            ),
            (
                "no list",
                map(&[
                    ("client-ca-file", &ca),
                    ("requestheader-client-ca-file", &ca),
                    ("requestheader-group-headers", "X-Remote-Group"),
                ]),
                "requestheader-group-headers is no JSON list",
            ),
        ];
        for (case, data, want) in table {
            let read = ClusterTrust::read(&data);
            assert!(matches!(read.clients, Some(Ok(_))), "{case}");
            let why = read.proxies.unwrap().unwrap_err();
            assert!(why.contains(want), "{case}: {why}");
        }
    }
}
