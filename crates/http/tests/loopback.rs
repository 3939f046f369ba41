//! The real network, on this machine only: hyper, rustls, a proxy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Call, Category, Clock, Random, Secret,
    call::{CLAIM_RESERVE, Unguarded},
    lb::Outcome,
    rate::Backoff,
};
use cloudberth_http::{
    Base, Client, Operation, Policy, Proxies, Roots, TokenSource, Transport, connect,
    surroundings::{SystemClock, system_roots},
};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

/// What a server saw: the heads of the requests, and how many connections they came over.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<(Vec<String>, usize)>>);

impl Seen {
    fn heads(&self) -> Vec<String> {
        self.0.lock().unwrap().0.clone()
    }

    fn connections(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

/// Reads up to the end of a head, and the body that it announces.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .to_lowercase()
        .split("content-length: ")
        .nth(1)
        .map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(head)
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, seen: Seen) {
    seen.0.lock().unwrap().1 += 1;
    while let Some(head) = read_request(&mut stream).await {
        seen.0.lock().unwrap().0.push(head.clone());
        let reply = match head.split(' ').nth(1).unwrap().rsplit('/').next().unwrap() {
            "lost" => return,
            "half" => "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"id\"".to_owned(),
            _ => "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"id\":7}".to_owned(),
        };
        stream.write_all(reply.as_bytes()).await.unwrap();
        if reply.contains("99") {
            return;
        }
    }
}

async fn plain_server() -> (u16, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, seen) = (listener.local_addr().unwrap().port(), Seen::default());
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, log.clone()));
        }
    });
    (port, seen)
}

async fn tls_server() -> (u16, Seen, RootCertStore) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, seen) = (listener.local_addr().unwrap().port(), Seen::default());
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, log) = (acceptor.clone(), log.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, log).await;
                }
            });
        }
    });
    (port, seen, roots)
}

/// A proxy that tunnels and forwards, and remembers the heads that it saw.
async fn proxy_server() -> (u16, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, seen) = (listener.local_addr().unwrap().port(), Seen::default());
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let log = log.clone();
            tokio::spawn(async move {
                let head = read_request(&mut stream).await.unwrap();
                log.0.lock().unwrap().0.push(head.clone());
                let target = head.split(' ').nth(1).unwrap().to_owned();
                if head.starts_with("CONNECT ") {
                    let port = target.rsplit(':').next().unwrap();
                    let mut to = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
                    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
                    let _ = copy_bidirectional(&mut stream, &mut to).await;
                } else {
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"id\":9}")
                        .await
                        .unwrap();
                }
            });
        }
    });
    (port, seen)
}

struct Setting {
    clock: Arc<SystemClock>,
}

impl Setting {
    fn client(&self, base: &str, transport: Transport) -> Client {
        let random = Arc::new(Random::seeded(1));
        Client::builder(Base::parse(base).unwrap(), transport, self.clock.clone(), random)
            .authenticator(Arc::new(TokenSource::fixed(Secret::new("t0ken").unwrap())))
            .policy(Policy {
                backoff: Backoff { first: Duration::from_millis(1), longest: Duration::from_secs(8) },
                attempts: 2,
                ..Policy::default()
            })
            .build()
    }

    fn call(&self) -> Call {
        Call::new(self.clock.now() + Duration::from_secs(120), Arc::new(Unguarded))
    }
}

fn setting() -> Setting {
    Setting { clock: Arc::new(SystemClock::default()) }
}

fn variables(pairs: &[(&str, String)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect()
}

#[tokio::test]
async fn plain_http_keeps_its_connection() {
    let (port, seen) = plain_server().await;
    let transport = connect(Roots::These(RootCertStore::empty()), Proxies::none()).unwrap();
    let set = setting();
    let client = set.client(&format!("http://127.0.0.1:{port}/v1"), transport);
    for _ in 0..3 {
        let got: Value = client.read(&set.call(), Operation::get("x", "x").query("a", "b c")).await.unwrap();
        assert_eq!(got, json!({"id": 7}));
    }
    assert_eq!((seen.heads().len(), seen.connections()), (3, 1));
    let head = seen.heads()[0].to_lowercase();
    assert!(head.starts_with("get /v1/x?a=b%20c http/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: bearer t0ken\r\n"), "{head}");
}

#[tokio::test]
async fn accidents_on_the_wire_are_told_apart() {
    let (port, seen) = plain_server().await;
    let transport = connect(Roots::These(RootCertStore::empty()), Proxies::none()).unwrap();
    let set = setting();
    let client = set.client(&format!("http://127.0.0.1:{port}/"), transport.clone());
    for path in ["lost", "half"] {
        let before = seen.heads().len();
        let outcome = client.write::<Value>(&set.call(), Operation::post("x", path)).await;
        assert!(
            matches!(&outcome, Outcome::Unknown(e) if e.category() == Category::Temporary),
            "{outcome:?}"
        );
        assert_eq!(seen.heads().len(), before + 1, "{path}: sent exactly once");
    }
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let outcome =
        set.client(&base, transport.clone()).write::<Value>(&set.call(), Operation::post("x", "x")).await;
    assert!(matches!(&outcome, Outcome::Failed(e) if e.message().contains("no connection")), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_accepts_and_says_nothing_is_given_up_before_the_reserve_is_used_up() {
    // The kernel accepts for it, and nobody ever answers the handshake.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let set = setting();
    let base = format!("https://localhost:{}/v1", silent.local_addr().unwrap().port());
    let client = set.client(&base, connect(Roots::These(RootCertStore::empty()), Proxies::none()).unwrap());
    let outcome = client.write::<Value>(&set.call(), Operation::post("x", "x")).await;
    assert!(matches!(&outcome, Outcome::Failed(e) if e.message().contains("no connection")), "{outcome:?}");
    // Twice, because what was not sent may be sent again.
    let took = set.clock.now().0 / 2;
    assert!(took < CLAIM_RESERVE, "L9-521: sent {took:?} after the claim was asked");
}

#[tokio::test]
async fn tls_is_spoken_and_strangers_are_not_trusted() {
    let (port, seen, roots) = tls_server().await;
    let set = setting();
    let base = format!("https://localhost:{port}/v1");
    let client = set.client(&base, connect(Roots::These(roots), Proxies::none()).unwrap());
    assert_eq!(client.read::<Value>(&set.call(), Operation::get("x", "x")).await.unwrap(), json!({"id": 7}));
    assert_eq!(seen.heads().len(), 1);

    let stranger = connect(Roots::These(RootCertStore::empty()), Proxies::none()).unwrap();
    let outcome = set.client(&base, stranger).write::<Value>(&set.call(), Operation::post("x", "x")).await;
    assert!(matches!(&outcome, Outcome::Failed(e) if e.message().contains("certificate")), "{outcome:?}");
    assert_eq!(seen.heads().len(), 1, "nothing was sent to a server that could not prove itself");
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let (port, seen, roots) = tls_server().await;
    let (proxy, passed) = proxy_server().await;
    let set = setting();
    let variables = variables(&[("HTTPS_PROXY", format!("http://u:pa55@127.0.0.1:{proxy}"))]);
    let proxies = Proxies::from_variables(&variables).unwrap();
    let client =
        set.client(&format!("https://localhost:{port}"), connect(Roots::These(roots), proxies).unwrap());
    assert_eq!(client.read::<Value>(&set.call(), Operation::get("x", "x")).await.unwrap(), json!({"id": 7}));
    let passed = passed.heads();
    assert!(passed[0].starts_with(&format!("CONNECT localhost:{port} HTTP/1.1\r\n")), "{passed:?}");
    assert!(passed[0].contains("Proxy-Authorization: Basic dTpwYTU1\r\n"), "{passed:?}");
    assert!(!passed.concat().contains("t0ken"), "the token passes inside the tunnel only");
    assert!(seen.heads()[0].contains("t0ken"));
}

#[tokio::test]
async fn http_is_forwarded_unless_excepted() {
    let (port, seen) = plain_server().await;
    let (proxy, passed) = proxy_server().await;
    let set = setting();
    let base = format!("http://127.0.0.1:{port}/v1");
    let through = |pairs: &[(&str, String)]| {
        let proxies = Proxies::from_variables(&variables(pairs)).unwrap();
        set.client(&base, connect(Roots::These(RootCertStore::empty()), proxies).unwrap())
    };
    let at = ("http_proxy", format!("http://u:pa55@127.0.0.1:{proxy}"));
    let got: Value =
        through(std::slice::from_ref(&at)).read(&set.call(), Operation::get("x", "x")).await.unwrap();
    assert_eq!(got, json!({"id": 9}));
    let head = passed.heads()[0].to_lowercase();
    assert!(head.starts_with(&format!("get http://127.0.0.1:{port}/v1/x http/1.1\r\n")), "{head}");
    assert!(head.contains("proxy-authorization: basic dtpwytu1\r\n"), "{head}");
    assert_eq!(seen.heads().len(), 0);

    let got: Value = through(&[at, ("NO_PROXY", "127.0.0.0/8".to_owned())])
        .read(&set.call(), Operation::get("x", "x"))
        .await
        .unwrap();
    assert_eq!(got, json!({"id": 7}));
    assert_eq!((seen.heads().len(), passed.heads().len()), (1, 1));
}

#[test]
fn without_any_trusted_authority_the_fix_is_named() {
    match system_roots() {
        Ok(roots) => assert!(!roots.is_empty()),
        Err(error) => assert!(error.message().contains("SSL_CERT_FILE"), "{error}"),
    }
}
