//! Reading certificates and keys.

use std::{path::Path, sync::Arc};

use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use crate::error::{Error, Result};

/// A certificate with its key, and the server names that it is used for.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) names: Vec<String>,
    pub(crate) key: Arc<CertifiedKey>,
}

/// Reads a file; the error names the flag in `what`.
pub(crate) fn read(what: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| Error::new(format!("{what}: cannot read {}: {error}", path.display())))
}

/// A chain and its key; errors name the flag in `what`.
pub(crate) fn pair(what: &str, chain: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>> {
    let wrong = |why: String| Error::new(format!("{what}: {why}"));
    let chain = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(format!("the certificate is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(wrong("there is no certificate in the file".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| wrong(format!("no private key in PEM: {error}")))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map(Arc::new)
        .map_err(|error| wrong(format!("certificate and key do not make a pair: {error}")))
}

/// The DNS names in a certificate, in lower case.
pub(crate) fn names(key: &CertifiedKey) -> Vec<String> {
    let Ok(leaf) = key.end_entity_cert() else { return Vec::new() };
    let Ok(parsed) = webpki::EndEntityCert::try_from(leaf) else { return Vec::new() };
    parsed.valid_dns_names().map(str::to_ascii_lowercase).collect()
}

/// The first pair whose names match the server name that the client asked for; a wildcard matches one label.
pub(crate) fn choose<'a>(pairs: &'a [Named], asked: Option<&str>) -> Option<&'a Named> {
    let asked = asked?.to_ascii_lowercase();
    let covers = |name: &String| match name.strip_prefix("*.") {
        Some(domain) => {
            asked.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == domain)
        }
        None => *name == asked,
    };
    // An exact name wins over a wildcard, whatever the order.
    let exact = pairs.iter().find(|pair| pair.names.contains(&asked));
    exact.or_else(|| pairs.iter().find(|pair| pair.names.iter().any(covers)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::selfsigned;

    fn made() -> selfsigned::PemPair {
        selfsigned::make([192, 0, 2, 7].into(), "2031-05-06T12:00:00Z".parse().unwrap()).unwrap()
    }

    #[test]
    fn names_choose_the_pair() {
        let made = made();
        let key = pair("x", made.chain.as_bytes(), made.key.as_bytes()).unwrap();
        assert_eq!(names(&key), ["localhost"]);
        let named = |names: &[&str]| Named {
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            key: Arc::clone(&key),
        };
        let pairs = [
            named(&["*.example.org"]),
            named(&["a.example.org", "b.example.net"]),
            named(&["b.example.net"]),
        ];
        let table = [
            ("no name", None, None),
            ("another name", Some("example.org"), None),
            ("wildcard", Some("x.example.org"), Some(0)),
            ("wildcards are one label deep", Some("x.y.example.org"), None),
            ("the full name is stronger", Some("A.example.org"), Some(1)),
            ("the first of two", Some("b.example.net"), Some(1)),
        ];
        for (case, asked, want) in table {
            let got =
                choose(&pairs, asked).map(|found| pairs.iter().position(|p| std::ptr::eq(p, found)).unwrap());
            assert_eq!(got, want, "{case}");
        }
    }

    #[test]
    fn wrong_material_is_named() {
        let (other, made) = (made(), made());
        let table = [
            ("no certificate", pair("--tls-cert-file", b"", made.key.as_bytes()), "no certificate"),
            ("no key", pair("--tls-cert-file", made.chain.as_bytes(), b"x"), "no private key"),
            (
                "another's key",
                pair("--tls-cert-file", made.chain.as_bytes(), other.key.as_bytes()),
                "do not make a pair",
            ),
        ];
        for (case, got, want) in table {
            let error = got.unwrap_err().to_string();
            assert!(error.starts_with("--tls-cert-file: ") && error.contains(want), "{case}: {error}");
        }
        let error = read("--client-ca-file", Path::new("/nonexistent/ca.pem")).unwrap_err().to_string();
        assert!(error.contains("--client-ca-file: cannot read /nonexistent/ca.pem"), "{error}");
    }
}
