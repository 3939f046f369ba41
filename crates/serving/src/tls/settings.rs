//! The TLS flags, checked against what rustls supports.

use rustls::{
    CipherSuite, NamedGroup, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{CryptoProvider, SupportedKxGroup, ring},
    version::{TLS12, TLS13},
};

/// The TLS flags as they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// `--tls-min-version`: `VersionTLS10` to `VersionTLS13`; empty is 1.2.
    pub min_version: String,
    /// `--tls-cipher-suites`: names for TLS 1.2. Those of 1.3 are always on, whether they are named or not.
    pub cipher_suites: Vec<String>,
    /// `--tls-curve-preferences`: numbers of groups for the key exchange, the best first.
    pub curves: Vec<i32>,
}

/// The versions, cipher suites and groups in use.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Remarks for the log, one sentence each.
    pub notices: Vec<String>,
    pub(crate) provider: CryptoProvider,
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
}

impl TlsSettings {
    /// Checks the flags; the error lists all mistakes.
    pub fn settle(&self) -> Result<Settled, Vec<String>> {
        let (mut mistakes, mut notices) = (Vec::new(), Vec::new());
        let versions = match self.min_version.as_str() {
            "" | "VersionTLS12" => vec![&TLS13, &TLS12],
            "VersionTLS13" => vec![&TLS13],
            old @ ("VersionTLS10" | "VersionTLS11") => {
                notices.push(format!(
                    "--tls-min-version={old} is raised to VersionTLS12: nothing older is spoken"
                ));
                vec![&TLS13, &TLS12]
            }
            other => {
                mistakes.push(format!(
                    "--tls-min-version: unknown TLS version {other:?}; use VersionTLS12 or VersionTLS13"
                ));
                Vec::new()
            }
        };
        let mut provider = ring::default_provider();
        let mut suites = Vec::new();
        for name in &self.cipher_suites {
            match suite(&provider, name) {
                Some(found) => suites.push(found),
                None => mistakes.push(format!(
                    "--tls-cipher-suites: {name} is not offered; choose from {}",
                    offered(&provider).join(", ")
                )),
            }
        }
        let mut groups = Vec::new();
        for number in &self.curves {
            match group(&provider, *number) {
                Some(found) => groups.push(found),
                None => mistakes.push(format!(
                    "--tls-curve-preferences: group {number} is not offered; choose from {}",
                    provider
                        .kx_groups
                        .iter()
                        .map(|g| u16::from(g.name()).to_string())
                        .collect::<Vec<_>>()
                        .join(", ")
                )),
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        if !suites.is_empty() {
            provider
                .cipher_suites
                .retain(|known| known.tls13().is_some() || suites.iter().any(|s| s.suite() == known.suite()));
        }
        if !groups.is_empty() {
            provider.kx_groups = groups;
        }
        Ok(Settled { notices, provider, versions })
    }
}

/// The name that the flag uses. Names of TLS 1.3 have no `13` in them, and two old ones lack the hash at their end.
fn flag_name(suite: CipherSuite) -> String {
    format!("{suite:?}").replacen("TLS13_", "TLS_", 1)
}

fn suite(provider: &CryptoProvider, name: &str) -> Option<SupportedCipherSuite> {
    let full = if name.ends_with("_CHACHA20_POLY1305") { format!("{name}_SHA256") } else { name.to_owned() };
    provider.cipher_suites.iter().find(|suite| flag_name(suite.suite()) == full).copied()
}

fn offered(provider: &CryptoProvider) -> Vec<String> {
    provider.cipher_suites.iter().map(|suite| flag_name(suite.suite())).collect()
}

fn group(provider: &CryptoProvider, number: i32) -> Option<&'static dyn SupportedKxGroup> {
    let wanted = NamedGroup::from(u16::try_from(number).ok()?);
    provider.kx_groups.iter().find(|group| group.name() == wanted).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(min_version: &str, suites: &[&str], curves: &[i32]) -> TlsSettings {
        TlsSettings {
            min_version: min_version.to_owned(),
            cipher_suites: suites.iter().map(|s| (*s).to_owned()).collect(),
            curves: curves.to_vec(),
        }
    }

    /// Case, settings, versions, suites beside those of 1.3 (none: all), groups, notices.
    type Row<'a> = (&'a str, TlsSettings, usize, Option<&'a [&'a str]>, &'a [u16], usize);

    #[test]
    fn flags_narrow_what_is_spoken() {
        let tls13 = ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
        let aes = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        let chacha = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
        let table: [Row<'_>; 8] = [
            ("nothing said", settings("", &[], &[]), 2, None, &[29, 23, 24], 0),
            ("1.0 is raised", settings("VersionTLS10", &[], &[]), 2, None, &[29, 23, 24], 1),
            ("1.1 is raised", settings("VersionTLS11", &[], &[]), 2, None, &[29, 23, 24], 1),
            ("1.2 as ever", settings("VersionTLS12", &[], &[]), 2, None, &[29, 23, 24], 0),
            ("1.3 only", settings("VersionTLS13", &[], &[]), 1, None, &[29, 23, 24], 0),
            ("one suite", settings("", &[aes], &[]), 2, Some(&[aes]), &[29, 23, 24], 0),
            (
                "an old short name, and one of 1.3",
                settings("", &["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_AES_128_GCM_SHA256"], &[]),
                2,
                Some(&[chacha]),
                &[29, 23, 24],
                0,
            ),
            ("groups in their order", settings("", &[], &[24, 29]), 2, None, &[24, 29], 0),
        ];
        for (case, given, versions, suites, groups, notices) in table {
            let got = given.settle().unwrap();
            assert_eq!(got.versions.len(), versions, "{case}");
            let names = offered(&got.provider);
            assert!(tls13.iter().all(|name| names.iter().any(|n| n == name)), "{case}: {names:?}");
            if let Some(suites) = suites {
                let rest: Vec<_> = names.iter().filter(|n| !tls13.contains(&n.as_str())).collect();
                assert_eq!(rest, suites, "{case}");
            }
            let got_groups: Vec<_> = got.provider.kx_groups.iter().map(|g| u16::from(g.name())).collect();
            assert_eq!(got_groups, groups, "{case}");
            assert_eq!(got.notices.len(), notices, "{case}");
        }
    }

    #[test]
    fn all_mistakes_are_named_at_once() {
        let mistakes =
            settings("VersionTLS9", &["TLS_RSA_WITH_AES_128_CBC_SHA", "X"], &[25, -1]).settle().unwrap_err();
        let named = ["VersionTLS9", "TLS_RSA_WITH_AES_128_CBC_SHA", "X is not", "group 25", "group -1"];
        assert_eq!(mistakes.len(), named.len(), "{mistakes:?}");
        for (mistake, name) in mistakes.iter().zip(named) {
            assert!(mistake.contains(name), "{mistake}");
        }
    }
}
