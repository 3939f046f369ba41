//! The HTTPS server, and who may read what from it.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::{net::IpAddr, path::PathBuf, time::Duration};

use cloudberth_core::error::Error;

use super::{
    checks::{Checks, file},
    tls::{Tls, tls},
};
use crate::{
    flags::{Flags, NamedCertKey, Setting, Strings},
    gates::{Gate, Gates},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    pub address: IpAddr,
    /// The port to listen on; never 0.
    pub port: u16,
    pub certificate: Certificate,
    pub sni: Vec<NamedCertKey>,
    pub tls: Tls,
    /// How many requests an HTTP/2 connection may carry at once; `None`: HTTP/2 is not offered.
    pub http2_streams: Option<u32>,
    /// Open the port with `SO_REUSEADDR`.
    pub share_address: bool,
    /// Open the port with `SO_REUSEPORT`.
    pub share_port: bool,
    /// Serve `/debug/`.
    pub profiling: bool,
    pub authentication: Authentication,
    pub authorization: Authorization,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// These files, read again when they change.
    Files {
        cert: PathBuf,
        key: PathBuf,
    },
    /// `cloud-controller-manager.crt` and `.key` in this folder, made if they are not there.
    Folder(PathBuf),
    InMemory,
}

/// How the server finds out who a caller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// The kubeconfig for `TokenReview`s; `None`: the pod's own account, if there is one.
    pub kubeconfig: Option<PathBuf>,
    /// What is done about authorities that no flag names.
    pub lookup: CaLookup,
    /// How long the answer of a `TokenReview` is remembered.
    pub token_ttl: Duration,
    pub client_ca_file: Option<PathBuf>,
    /// Front proxies that say who a caller is.
    pub request_header: RequestHeader,
    /// Whether a client certificate may say a user's UID.
    pub uid_from_certificate: bool,
    /// Whether an anonymous or refused caller over HTTP/2 loses its connection.
    pub drop_unauthenticated_http2: bool,
}

/// What is done about certificate authorities that no flag names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaLookup {
    /// They are read from the cluster; a failure ends the program.
    Require,
    /// They are read from the cluster; after a failure the server goes without.
    Tolerate,
    Skip,
}

/// Which front proxies are believed, and in which headers they say who a caller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    pub client_ca_file: Option<PathBuf>,
    /// The names that they may have; empty: any.
    pub allowed_names: Vec<String>,
    pub username_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    pub group_headers: Vec<String>,
    /// How headers with more about the caller begin.
    pub extra_prefixes: Vec<String>,
}

/// How the server finds out what a caller may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    /// The kubeconfig for `SubjectAccessReview`s; `None`: the pod's own account, if there is one.
    pub kubeconfig: Option<PathBuf>,
    /// Paths that everybody may read; a `*` at the end stands for anything.
    pub always_allow_paths: Vec<String>,
    pub allowed_ttl: Duration,
    pub denied_ttl: Duration,
}

/// The server, or `None` if its port is 0. Its flags are checked in either case.
pub(super) fn serving(flags: &Flags, gates: &Gates, checks: &mut Checks) -> Option<Serving> {
    let port = checks.port(&flags.secure_port);
    let webhook_port = checks.port(&flags.webhook_secure_port);
    if port == webhook_port && port != 0 {
        let text =
            format!("--webhook-secure-port cannot be the same value as --secure-port, which is {port}");
        checks.mistakes.push(Error::user_input(text));
    }
    let serving = Serving {
        address: *flags.bind_address.get(),
        port,
        certificate: certificate(flags, checks),
        sni: flags.tls_sni_cert_key.get().0.clone(),
        tls: tls(flags, checks),
        http2_streams: Some(streams(&flags.http2_max_streams_per_connection, checks))
            .filter(|_| !flags.disable_http2_serving.get()),
        share_address: *flags.permit_address_sharing.get(),
        share_port: *flags.permit_port_sharing.get(),
        profiling: *flags.profiling.get(),
        authentication: authentication(flags, gates, checks),
        authorization: authorization(flags, checks),
    };
    (port != 0).then_some(serving)
}

fn certificate(flags: &Flags, checks: &mut Checks) -> Certificate {
    match (file(&flags.tls_cert_file), file(&flags.tls_private_key_file)) {
        (Some(cert), Some(key)) => return Certificate::Files { cert, key },
        (Some(_), None) => checks.wrong(&flags.tls_cert_file, "give its key as --tls-private-key-file too"),
        (None, Some(_)) => {
            checks.wrong(&flags.tls_private_key_file, "give its certificate as --tls-cert-file too");
        }
        (None, None) => {}
    }
    file(&flags.cert_dir).map_or(Certificate::InMemory, Certificate::Folder)
}

fn streams(flag: &Setting<i64>, checks: &mut Checks) -> u32 {
    const USUAL: u32 = 100;
    match u32::try_from(*flag.get()) {
        Ok(0) => USUAL,
        Ok(streams) => streams,
        Err(_) => {
            checks.wrong(flag, format_args!("it must be from 0 to {}", u32::MAX));
            USUAL
        }
    }
}

fn authentication(flags: &Flags, gates: &Gates, checks: &mut Checks) -> Authentication {
    let uid = &flags.requestheader_uid_headers;
    if !uid.get().0.is_empty() && !gates.enabled(Gate::RemoteRequestHeaderUid) {
        checks.wrong(uid, "it needs the feature gate RemoteRequestHeaderUID");
    } else if !uid.get().0.is_empty()
        && !uid.get().0.iter().any(|name| name.eq_ignore_ascii_case("X-Remote-Uid"))
    {
        checks.wrong(uid, "X-Remote-Uid must be among its headers");
    }
    Authentication {
        kubeconfig: file(&flags.authentication_kubeconfig),
        lookup: match (
            flags.authentication_skip_lookup.get(),
            flags.authentication_tolerate_lookup_failure.get(),
        ) {
            (true, _) => CaLookup::Skip,
            (false, true) => CaLookup::Tolerate,
            (false, false) => CaLookup::Require,
        },
        token_ttl: checks.duration(&flags.authentication_token_webhook_cache_ttl),
        client_ca_file: file(&flags.client_ca_file),
        request_header: RequestHeader {
            client_ca_file: file(&flags.requestheader_client_ca_file),
            allowed_names: without_blanks(&flags.requestheader_allowed_names, checks),
            username_headers: without_blanks(&flags.requestheader_username_headers, checks),
            uid_headers: without_blanks(uid, checks),
            group_headers: without_blanks(&flags.requestheader_group_headers, checks),
            extra_prefixes: without_blanks(&flags.requestheader_extra_headers_prefix, checks),
        },
        uid_from_certificate: gates.enabled(Gate::UserUidFromCertificate),
        drop_unauthenticated_http2: gates.enabled(Gate::UnauthenticatedHttp2DosMitigation),
    }
}

fn without_blanks(flag: &Setting<Strings>, checks: &mut Checks) -> Vec<String> {
    if flag.get().0.iter().any(|entry| entry.trim().is_empty()) {
        checks.wrong(flag, "one of its entries is blank");
    }
    flag.get().0.clone()
}

fn authorization(flags: &Flags, checks: &mut Checks) -> Authorization {
    let paths = &flags.authorization_always_allow_paths;
    for path in &paths.get().0 {
        if path.strip_suffix('*').unwrap_or(path).contains('*') {
            checks.wrong(paths, format_args!("{path} has a * that is not its last character"));
        }
    }
    Authorization {
        kubeconfig: file(&flags.authorization_kubeconfig),
        always_allow_paths: paths.get().0.clone(),
        allowed_ttl: checks.duration(&flags.authorization_webhook_cache_authorized_ttl),
        denied_ttl: checks.duration(&flags.authorization_webhook_cache_unauthorized_ttl),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::options, *};

    const CLOUD: &str = "--cloud-provider=cloudscale";

    fn read(args: &[&str]) -> (Option<Serving>, Vec<String>) {
        let read = options(&[&[CLOUD], args].concat());
        let texts = read.texts();
        (read.options.serving, texts)
    }

    #[test]
    fn no_port_no_server() {
        assert_eq!(read(&[]).0.unwrap().port, 10_258);
        assert_eq!(read(&["--secure-port=0"]), (None, vec![]));
        let off = ["--secure-port=0", "--webhook-secure-port=0"];
        assert_eq!(read(&off), (None, vec![]), "two servers that are off do not collide");
    }

    #[test]
    fn every_mistake_is_named() {
        let range = "it must be from 0 to 65535, where 0 means not to serve";
        let table: [(&str, &[&str], &[&str]); 12] = [
            (
                "FW-313",
                &["--webhook-secure-port=10258"],
                &["--webhook-secure-port cannot be the same value as --secure-port, which is 10258"],
            ),
            (
                "a port out of range",
                &["--secure-port=65536"],
                &[&format!("--secure-port is \"65536\"; {range}")],
            ),
            (
                "two ports out of range",
                &["--secure-port=-1", "--webhook-secure-port=99999"],
                &[
                    &format!("--secure-port is \"-1\"; {range}"),
                    &format!("--webhook-secure-port is \"99999\"; {range}"),
                ],
            ),
            (
                "no key",
                &["--tls-cert-file=a"],
                &["--tls-cert-file is \"a\"; give its key as --tls-private-key-file too"],
            ),
            (
                "no certificate",
                &["--tls-private-key-file=a"],
                &["--tls-private-key-file is \"a\"; give its certificate as --tls-cert-file too"],
            ),
            (
                "streams",
                &["--http2-max-streams-per-connection=-1"],
                &["--http2-max-streams-per-connection is \"-1\"; it must be from 0 to 4294967295"],
            ),
            (
                "a star in the middle",
                &["--authorization-always-allow-paths=/a*b,/c*,*"],
                &[
                    "--authorization-always-allow-paths is \"[/a*b,/c*,*]\"; /a*b has a * that is not its last \
                     character",
                ],
            ),
            (
                "blank entries",
                &[
                    "--requestheader-username-headers= ",
                    "--requestheader-group-headers=a,",
                    "--requestheader-extra-headers-prefix=,",
                    "--requestheader-allowed-names=\t",
                ],
                &[
                    "--requestheader-allowed-names is \"[\\\"\\t\\\"]\"; one of its entries is blank",
                    "--requestheader-username-headers is \"[\\\" \\\"]\"; one of its entries is blank",
                    "--requestheader-group-headers is \"[a,]\"; one of its entries is blank",
                    "--requestheader-extra-headers-prefix is \"[,]\"; one of its entries is blank",
                ],
            ),
            (
                "the standard UID header",
                &["--requestheader-uid-headers=x-uid"],
                &["--requestheader-uid-headers is \"[x-uid]\"; X-Remote-Uid must be among its headers"],
            ),
            ("the standard UID header is there", &["--requestheader-uid-headers=x-uid,x-remote-uid"], &[]),
            (
                "UID headers without their gate",
                &["--requestheader-uid-headers=x-remote-uid", "--feature-gates=RemoteRequestHeaderUID=false"],
                &["--requestheader-uid-headers is \"[x-remote-uid]\"; it needs the feature gate \
                   RemoteRequestHeaderUID"],
            ),
            (
                "a negative memory",
                &["--authentication-token-webhook-cache-ttl=-1s"],
                &["--authentication-token-webhook-cache-ttl is \"-1s\"; it must not be negative"],
            ),
        ];
        for (case, args, want) in table {
            assert_eq!(read(args).1, want, "{case}");
        }
    }

    #[test]
    fn always_allowed_paths_can_be_cleared() {
        let paths = |args: &[&str]| read(args).0.unwrap().authorization.always_allow_paths;
        assert_eq!(paths(&[]), ["/healthz", "/readyz", "/livez"]);
        assert_eq!(paths(&["--authorization-always-allow-paths="]), Vec::<String>::new(), "FW-311");
        assert_eq!(paths(&["--authorization-always-allow-paths=/metrics"]), ["/metrics"]);
    }

    #[test]
    fn a_certificate_comes_from_files_before_a_folder_before_memory() {
        let certificate = |args: &[&str]| read(args).0.unwrap().certificate;
        let (dir, cert, key) = ("--cert-dir=/c", "--tls-cert-file=/a", "--tls-private-key-file=/b");
        assert_eq!(certificate(&[]), Certificate::InMemory);
        assert_eq!(certificate(&[dir]), Certificate::Folder("/c".into()));
        assert_eq!(
            certificate(&[dir, cert, key]),
            Certificate::Files { cert: "/a".into(), key: "/b".into() }
        );
    }

    #[test]
    fn missing_authorities_are_looked_up_as_told() {
        let lookup = |args: &[&str]| read(args).0.unwrap().authentication.lookup;
        let (skip, tolerate) = ("--authentication-skip-lookup", "--authentication-tolerate-lookup-failure");
        assert_eq!(lookup(&[]), CaLookup::Require);
        assert_eq!(lookup(&[tolerate]), CaLookup::Tolerate);
        assert_eq!(lookup(&[skip, tolerate]), CaLookup::Skip);
    }

    #[test]
    fn what_is_asked_for_is_what_is_served() {
        let (serving, mistakes) = read(&[
            "--bind-address=::1",
            "--disable-http2-serving",
            "--http2-max-streams-per-connection=7",
            "--permit-port-sharing",
            "--profiling=false",
            "--feature-gates=UnauthenticatedHTTP2DOSMitigation=false",
            "--authorization-webhook-cache-unauthorized-ttl=0",
        ]);
        assert_eq!(mistakes, Vec::<String>::new());
        let serving = serving.unwrap();
        assert_eq!(serving.address.to_string(), "::1");
        assert_eq!(serving.http2_streams, None);
        assert_eq!((serving.share_address, serving.share_port, serving.profiling), (false, true, false));
        assert_eq!(
            (serving.authentication.drop_unauthenticated_http2, serving.authentication.uid_from_certificate),
            (false, true)
        );
        assert_eq!(serving.authorization.denied_ttl, Duration::ZERO);
        assert_eq!(serving.authorization.allowed_ttl, Duration::from_secs(10));
        for (streams, want) in [("0", 100), ("7", 7)] {
            let flag = format!("--http2-max-streams-per-connection={streams}");
            assert_eq!(read(&[&flag]).0.unwrap().http2_streams, Some(want));
        }
    }
}
