//! What is spoken, and with which certificates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod fixture;

use std::{path::Path, time::Duration};

use cloudberth_serving::{Authentication, Limits, ProxyHeaders, TlsSettings};
use fixture::{Authority, Caller, PATIENCE, Port, Wants, cluster, delegated, roots, start};
use rustls::version::{TLS12, TLS13};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// The first bytes of a client that speaks nothing newer than TLS 1.`minor - 1`, and is modern in all other respects.
fn hello(minor: u8) -> Vec<u8> {
    let extensions = [
        [0x00, 0x0d, 0, 4, 0, 2, 4, 3].to_vec(),  // signatures: ECDSA on P-256
        [0x00, 0x0a, 0, 4, 0, 2, 0, 29].to_vec(), // groups: X25519
        [0x00, 0x0b, 0, 2, 1, 0].to_vec(),        // points: uncompressed
        [0x00, 0x17, 0, 0].to_vec(),              // extended master secret
    ]
    .concat();
    let suites = [0, 4, 0xc0, 0x2b, 0xc0, 0x09];
    let body =
        [&[3, minor], &[7; 32][..], &[0], &suites, &[1, 0], &length(&extensions), &extensions].concat();
    let handshake = [&[1, 0], &length(&body)[..], &body].concat();
    [&[0x16, 3, 1], &length(&handshake)[..], &handshake].concat()
}

fn length(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).unwrap().to_be_bytes()
}

#[tokio::test]
async fn nothing_below_tls_1_2_is_spoken() {
    let port = start(Wants::default()).await;
    let table = [("1.0", 1, &[0x15, 2, 70][..]), ("1.1", 2, &[0x15, 2, 70]), ("1.2", 3, &[0x16, 2, 0])];
    for (version, minor, want) in table {
        let mut stream = TcpStream::connect(port.address).await.unwrap();
        stream.write_all(&hello(minor)).await.unwrap();
        let mut answer = [0; 7];
        timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        // A fatal alert about the version, or the beginning of a server's hello.
        assert_eq!([answer[0], answer[5], answer[6]], want, "{version}: {answer:?}");
    }
    let only_13 = Wants {
        tls: TlsSettings { min_version: "VersionTLS13".to_owned(), ..TlsSettings::default() },
        ..Wants::default()
    };
    let only_13 = start(only_13).await;
    let table =
        [(&port, &TLS12, true), (&port, &TLS13, true), (&only_13, &TLS12, false), (&only_13, &TLS13, true)];
    for (port, version, want) in table {
        let caller = Caller { versions: Some(version), ..Caller::default() };
        assert_eq!(port.try_get("/healthz", &caller).await.is_ok(), want, "{version:?}");
    }
}

#[tokio::test]
async fn http_2_is_offered_unless_it_is_switched_off() {
    for (http2, want) in [(true, Some(&b"h2"[..])), (false, Some(&b"http/1.1"[..]))] {
        let limits = Limits { http2, ..Limits::default() };
        let port = start(Wants { limits, ..Wants::default() }).await;
        let caller = Caller { http2: true, ..Caller::default() };
        let stream = port.tls(&caller, port.roots()).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), want);
        assert_eq!(port.get("/healthz", &caller).await.body, "ok");
    }
}

#[tokio::test]
async fn changed_files_are_shown_to_the_next_client() {
    let place = tempfile::tempdir().unwrap();
    let (certificate, key) = (place.path().join("tls.crt"), place.path().join("tls.key"));
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let put = |authority: &Authority| {
        let papers = authority.server();
        std::fs::write(&certificate, papers.certificate).unwrap();
        std::fs::write(&key, papers.private).unwrap();
    };
    put(&old);
    let port = start(Wants { files: Some((certificate.clone(), key.clone())), ..Wants::default() }).await;
    let trusts = async |authority: &Authority| {
        port.tls(&Caller::nobody(), roots(authority.pem.as_bytes())).await.is_ok()
    };
    assert_eq!((trusts(&old).await, trusts(&new).await), (true, false));
    put(&new);
    let change = async {
        while !trusts(&new).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, change).await.expect("the new certificate is never shown");
    assert!(!trusts(&old).await);
}

fn write(directory: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A server that trusts `clients` and the proxies of `proxies`, and nobody else decides.
async fn with_authorities(
    directory: &Path,
    clients: &Authority,
    proxies: &Authority,
    allowed: &[&str],
) -> Port {
    let allowed_names = allowed.iter().map(|name| (*name).to_owned()).collect();
    let authentication = Authentication {
        client_ca_file: Some(write(directory, "clients.pem", &clients.pem)),
        proxy_ca_file: Some(write(directory, "proxies.pem", &proxies.pem)),
        proxy_headers: ProxyHeaders { allowed_names, ..ProxyHeaders::usual() },
        ..Authentication::default()
    };
    start(Wants { authentication, ..Wants::default() }).await
}

#[tokio::test]
async fn certificates_of_clients_prove_who_they_are() {
    let place = tempfile::tempdir().unwrap();
    let (clients, proxies, strangers) =
        (Authority::new("clients"), Authority::new("proxies"), Authority::new("strangers"));
    let port = with_authorities(place.path(), &clients, &proxies, &["front"]).await;
    let masters = "system:masters";
    let admin = clients.client("admin", masters);
    let front = proxies.client("front", "");
    let passed_on =
        |papers| Caller::with(papers).header("x-remote-user", "boss").header("x-remote-group", masters);
    let table = [
        ("an administrator", Caller::with(&admin), 200),
        ("somebody else", Caller::with(&clients.client("bob", "staff")), 403),
        ("vouched for by strangers", Caller::with(&strangers.client("admin", masters)), 401),
        ("expired", Caller::with(&clients.expired("admin", masters)), 401),
        ("made for servers", Caller::with(&clients.for_servers_only("admin", masters)), 401),
        ("without a name", Caller::with(&clients.client("", masters)), 401),
        ("passed on by a proxy", passed_on(&front), 200),
        ("a proxy speaking for itself", Caller::with(&front), 401),
        ("a proxy by another name", passed_on(&proxies.client("rear", "")), 401),
        ("headers from a client are only headers", passed_on(&clients.client("bob", "staff")), 403),
        ("headers without a certificate too", Caller { papers: None, ..passed_on(&front) }, 403),
    ];
    for version in [&TLS12, &TLS13] {
        for (case, caller, want) in &table {
            let caller = Caller { versions: Some(version), ..caller.clone() };
            assert_eq!(port.status("/metrics", &caller).await, *want, "{case}, {version:?}");
        }
    }
    let refused = port.get("/metrics", &Caller::with(&clients.client("bob", "staff"))).await;
    assert!(refused.body.contains("User \\\"bob\\\" cannot get path"), "{}", refused.body);
}

#[tokio::test]
async fn a_changed_authority_counts_at_once() {
    let place = tempfile::tempdir().unwrap();
    let (clients, proxies, next) =
        (Authority::new("clients"), Authority::new("proxies"), Authority::new("next"));
    let port = with_authorities(place.path(), &clients, &proxies, &[]).await;
    let (old, new) = (
        Caller::with(&clients.client("a", "system:masters")),
        Caller::with(&next.client("a", "system:masters")),
    );
    let front = Caller::with(&next.client("f", ""))
        .header("x-remote-user", "b")
        .header("x-remote-group", "system:masters");
    assert_eq!((port.status("/metrics", &old).await, port.status("/metrics", &new).await), (200, 401));
    write(place.path(), "clients.pem", "rubbish");
    write(place.path(), "proxies.pem", &next.pem);
    port.until("/metrics", &front, 200).await;
    assert_eq!(port.status("/metrics", &old).await, 200, "rubbish leaves the old authority in force");
    write(place.path(), "clients.pem", &next.pem);
    port.until("/metrics", &new, 200).await;
    assert_eq!(port.status("/metrics", &old).await, 401);
}

#[tokio::test]
async fn a_good_token_outweighs_a_useless_certificate() {
    let place = tempfile::tempdir().unwrap();
    let (clients, strangers) = (Authority::new("clients"), Authority::new("strangers"));
    let (_, client) = cluster();
    let mut wants = delegated(&client);
    wants.authentication.client_ca_file = Some(write(place.path(), "clients.pem", &clients.pem));
    let port = start(wants).await;
    let papers = Some(strangers.client("admin", "system:masters"));
    let with = |caller: Caller| Caller { papers: papers.clone(), ..caller };
    assert_eq!(port.status("/metrics", &with(Caller::token("prometheus"))).await, 200);
    assert_eq!(port.status("/metrics", &with(Caller::token("x"))).await, 401);
    assert_eq!(port.status("/metrics", &with(Caller::nobody())).await, 401);
}
