//! Versions, cipher suites and key exchange groups of the HTTPS server.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use super::checks::Checks;
use crate::flags::Flags;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub min_version: TlsVersion,
    /// The cipher suites for TLS 1.2, by their registered names; `None`: all that are sound. Those of TLS 1.3 are always
    /// on.
    pub cipher_suites: Option<Vec<&'static str>>,
    /// The key exchange groups, by their registered numbers; `None`: all.
    pub groups: Option<Vec<u16>>,
}

/// A TLS version. There is nothing older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

/// What becomes of a cipher suite that a flag names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is for TLS 1.3 and on in any case.
    AlwaysOn,
    /// It can be used, under this name.
    Usable(&'static str),
}

/// The suites that can be used. Of the rest of the flag's values it is only known that they exist.
fn sound(name: &str) -> Option<Fate> {
    const ALWAYS: [&str; 3] =
        ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
    const SOUND: [&str; 6] = [
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ];
    if ALWAYS.contains(&name) {
        return Some(Fate::AlwaysOn);
    }
    // Two suites have a short name too.
    let full = if name.ends_with("_CHACHA20_POLY1305") { format!("{name}_SHA256") } else { name.to_owned() };
    SOUND.into_iter().find(|known| *known == full).map(Fate::Usable)
}

/// Suites that other programs still know, and that are too weak to be offered.
const WEAK: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

pub(super) fn tls(flags: &Flags, checks: &mut Checks) -> Tls {
    Tls {
        min_version: min_version(flags, checks),
        cipher_suites: cipher_suites(flags, checks),
        groups: groups(flags, checks),
    }
}

fn min_version(flags: &Flags, checks: &mut Checks) -> TlsVersion {
    let flag = &flags.tls_min_version;
    match flag.get().as_str() {
        "" | "VersionTLS12" => {}
        "VersionTLS13" => return TlsVersion::Tls13,
        old @ ("VersionTLS10" | "VersionTLS11") => {
            checks.notice(flag, format!("is {old}, which is not offered; VersionTLS12 is the oldest"));
        }
        _ => checks.wrong(flag, "it must be VersionTLS12 or VersionTLS13"),
    }
    TlsVersion::Tls12
}

fn cipher_suites(flags: &Flags, checks: &mut Checks) -> Option<Vec<&'static str>> {
    let flag = &flags.tls_cipher_suites;
    if flag.get().0.is_empty() {
        return None;
    }
    let mut usable = Vec::new();
    for name in flag.get().0.iter().map(|name| name.trim()) {
        match sound(name) {
            Some(Fate::Usable(name)) if !usable.contains(&name) => usable.push(name),
            Some(_) => {}
            None if WEAK.contains(&name) => {
                checks.notice(flag, format!("names {name}, which is too weak and never offered"));
            }
            None => checks.wrong(flag, format_args!("there is no cipher suite {name:?}")),
        }
    }
    Some(usable)
}

fn groups(flags: &Flags, checks: &mut Checks) -> Option<Vec<u16>> {
    const USABLE: [i32; 3] = [23, 24, 29];
    /// P-521 and three hybrids of an elliptic curve and ML-KEM.
    const ELSEWHERE: [i32; 4] = [25, 4_587, 4_588, 4_589];
    let flag = &flags.tls_curve_preferences;
    let asked = &flag.get().0;
    if asked.is_empty() {
        return None;
    }
    for id in asked.iter().filter(|id| !USABLE.contains(id)) {
        if ELSEWHERE.contains(id) {
            checks.notice(flag, format!("names group {id}, which is not offered; 23, 24 and 29 are"));
        } else {
            checks.wrong(flag, format_args!("there is no key exchange group {id}; use 23, 24 or 29"));
        }
    }
    let usable: Vec<u16> =
        asked.iter().filter(|id| USABLE.contains(id)).filter_map(|id| u16::try_from(*id).ok()).collect();
    if usable.is_empty() && asked.iter().all(|id| ELSEWHERE.contains(id)) {
        checks.wrong(flag, "none of its groups is offered; add 23, 24 or 29");
    }
    Some(usable)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::options, *};

    fn read(args: &[&str]) -> (Tls, Vec<String>, Vec<String>) {
        let read = options(&[&["--cloud-provider=cloudscale"], args].concat());
        let texts = read.texts();
        let notices = read.notices.iter().map(ToString::to_string).collect();
        (read.options.serving.unwrap().tls, texts, notices)
    }

    #[test]
    fn nothing_older_than_tls_1_2_is_offered() {
        let table: [(&str, TlsVersion, &[&str], &[&str]); 5] = [
            ("", TlsVersion::Tls12, &[], &[]),
            ("VersionTLS12", TlsVersion::Tls12, &[], &[]),
            ("VersionTLS13", TlsVersion::Tls13, &[], &[]),
            (
                "VersionTLS10",
                TlsVersion::Tls12,
                &[],
                &["--tls-min-version is VersionTLS10, which is not offered; VersionTLS12 is the oldest"],
            ),
            (
                "1.3",
                TlsVersion::Tls12,
                &["--tls-min-version is \"1.3\"; it must be VersionTLS12 or VersionTLS13"],
                &[],
            ),
        ];
        for (value, want, wrong, said) in table {
            let (tls, mistakes, notices) = read(&[&format!("--tls-min-version={value}")]);
            assert_eq!(tls.min_version, want, "{value}");
            assert_eq!(
                (mistakes, notices),
                (
                    wrong.iter().map(ToString::to_string).collect(),
                    said.iter().map(ToString::to_string).collect()
                ),
                "{value}"
            );
        }
    }

    #[test]
    fn sound_suites_are_kept_weak_ones_named_and_others_refused() {
        let list = "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,\
                    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,TLS_RSA_WITH_RC4_128_SHA,\
                    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
        let (tls, mistakes, notices) = read(&[&format!("--tls-cipher-suites={list}")]);
        let want = ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"];
        assert_eq!(tls.cipher_suites.unwrap(), want);
        assert_eq!(mistakes, Vec::<String>::new());
        assert_eq!(
            notices,
            ["--tls-cipher-suites names TLS_RSA_WITH_RC4_128_SHA, which is too weak and never offered"]
        );
        let (_, mistakes, _) = read(&["--tls-cipher-suites=ROT13,TLS_AES_128_GCM_SHA256,CAESAR"]);
        let says = |name: &str| {
            format!(
                "--tls-cipher-suites is \"[ROT13,TLS_AES_128_GCM_SHA256,CAESAR]\"; there is no cipher suite {name:?}"
            )
        };
        assert_eq!(mistakes, [says("ROT13"), says("CAESAR")]);
        assert_eq!(read(&[]).0.cipher_suites, None);
    }

    #[test]
    fn groups_are_kept_if_they_are_offered() {
        let groups = |list: &str| read(&[&format!("--tls-curve-preferences={list}")]);
        assert_eq!(groups("29,23").0.groups, Some(vec![29, 23]));
        let (tls, mistakes, notices) = groups("25,29");
        assert_eq!((tls.groups, mistakes.len(), notices.len()), (Some(vec![29]), 0, 1));
        assert_eq!(
            groups("25").1,
            ["--tls-curve-preferences is \"[25]\"; none of its groups is offered; add 23, 24 or 29"]
        );
        assert_eq!(
            groups("7").1,
            ["--tls-curve-preferences is \"[7]\"; there is no key exchange group 7; use 23, 24 or 29"]
        );
        assert_eq!(read(&[]).0.groups, None);
    }
}
