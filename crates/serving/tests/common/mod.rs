//! A server on loopback, a client that speaks TLS to it, and the papers for both.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use cloudberth_core::{Clock, Random};
use cloudberth_http::surroundings::SystemClock;
use cloudberth_serving::{
    Authentication, Authorization, CertificateSource, CertificateStore, CheckFn, Checks, Guard, Limits,
    Metrics, Pages, Server, TlsSettings, Verbosity,
};
use embedded_kube::{Action, KubeApi, User};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prometheus_client::registry::Registry;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use sim_kit::Surroundings;
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower::ServiceExt as _;

/// How long anything may take on the busiest of machines: it ends a hang and measures nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Quiet;

impl Verbosity for Quiet {
    fn set(&self, _: i32) -> Result<(), String> {
        Ok(())
    }
}

/// What a test wants of its server.
pub(crate) struct Wants {
    pub(crate) authentication: Authentication,
    pub(crate) authorization: Authorization,
    pub(crate) tls: TlsSettings,
    pub(crate) limits: Limits,
    pub(crate) files: Option<(PathBuf, PathBuf)>,
    /// The page `/metrics`.
    pub(crate) metrics: String,
}

impl Default for Wants {
    fn default() -> Self {
        Self {
            authentication: Authentication::default(),
            authorization: Authorization::default(),
            tls: TlsSettings::default(),
            limits: Limits { look: Duration::from_millis(20), ..Limits::default() },
            files: None,
            metrics: "up 1\n".to_owned(),
        }
    }
}

/// A server that runs.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    pub(crate) healthz: Checks,
    /// Where the server keeps its own certificate.
    pub(crate) directory: TempDir,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<()>,
    pub(crate) registry: Arc<Registry>,
}

pub(crate) async fn guard(
    wants: &Wants,
    clock: &Arc<dyn Clock>,
    registry: &mut Registry,
) -> cloudberth_serving::Result<Guard> {
    let metrics = Metrics::register(registry);
    let random = Arc::new(Random::seeded(1));
    Guard::open(&wants.authentication, &wants.authorization, Arc::clone(clock), random, metrics).await
}

pub(crate) async fn start(wants: Wants) -> Port {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let directory = tempfile::tempdir().unwrap();
    let source = CertificateSource {
        files: wants.files.clone(),
        directory: Some(directory.path().to_owned()),
        pair_name: "cloud-controller-manager".to_owned(),
        sni: Vec::new(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let certificates = Arc::new(CertificateStore::open(&source, address.ip(), Arc::clone(&clock)).unwrap());
    let mut registry = Registry::default();
    let guard = guard(&wants, &clock, &mut registry).await.unwrap();
    let healthz = Checks::default();
    healthz.add([Arc::new(CheckFn::new("leaderElection", |_| Ok(()))) as Arc<dyn cloudberth_serving::Check>]);
    let pages = Pages {
        healthz: healthz.clone(),
        livez: Checks::default(),
        readyz: Checks::default(),
        metrics: Arc::new(move || wants.metrics.clone()),
        configz: Arc::new(|| serde_json::json!({})),
        verbosity: Arc::new(Quiet),
        profiling: true,
    };
    let tls = wants.tls.settle().unwrap();
    let server = Server::new(listener, &tls, certificates, guard, pages, wants.limits, clock).unwrap();
    assert_eq!(server.local_addr().unwrap(), address);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(server.run(async { drop(stopped.await) }));
    Port { address, healthz, directory, stop: Some(stop), task, registry: Arc::new(registry) }
}

/// Somebody who asks.
#[derive(Clone, Default)]
pub(crate) struct Caller {
    pub(crate) headers: HeaderMap,
    pub(crate) papers: Option<Papers>,
    pub(crate) versions: Option<&'static SupportedProtocolVersion>,
    pub(crate) http2: bool,
    /// Where the connection comes from, if that matters.
    pub(crate) from: Option<IpAddr>,
}

impl Caller {
    pub(crate) fn nobody() -> Self {
        Self::default()
    }

    pub(crate) fn token(token: &str) -> Self {
        Self::nobody().header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn with(papers: &Papers) -> Self {
        Self { papers: Some(papers.clone()), ..Self::default() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(name, HeaderValue::from_str(value).unwrap());
        self
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Port {
    /// The authority of the server's own certificate.
    pub(crate) fn roots(&self) -> RootCertStore {
        let pem = std::fs::read(self.directory.path().join("cloud-controller-manager.crt")).unwrap();
        roots(&pem)
    }

    pub(crate) async fn connect(&self, from: Option<IpAddr>) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if let Some(from) = from {
            socket.bind(SocketAddr::new(from, 0))?;
        }
        socket.connect(self.address).await
    }

    pub(crate) async fn tls(
        &self,
        caller: &Caller,
        roots: RootCertStore,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let versions: Vec<_> =
            caller.versions.map_or_else(|| rustls::ALL_VERSIONS.to_vec(), |version| vec![version]);
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &caller.papers {
            Some(papers) => builder.with_client_auth_cert(papers.chain(), papers.key()).unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if caller.http2 {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        let stream = self.connect(caller.from).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::from(self.address.ip()), stream).await
    }

    pub(crate) async fn try_get(&self, path: &str, caller: &Caller) -> Result<Got, String> {
        let stream = self.tls(caller, self.roots()).await.map_err(|error| error.to_string())?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let mut request =
            Request::get(format!("https://{}{path}", self.address)).body(Full::<Bytes>::default()).unwrap();
        if !http2 {
            *request.uri_mut() = path.parse().unwrap();
        }
        request.headers_mut().insert("host", HeaderValue::from_static("localhost"));
        request.headers_mut().extend(caller.headers.clone());
        let io = TokioIo::new(stream);
        let response = if http2 {
            let (mut send, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
                .await
                .map_err(|e| e.to_string())?;
            tokio::spawn(connection);
            send.send_request(request).await
        } else {
            let (mut send, connection) =
                hyper::client::conn::http1::handshake(io).await.map_err(|e| e.to_string())?;
            tokio::spawn(connection);
            send.send_request(request).await
        }
        .map_err(|error| error.to_string())?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        Ok(Got { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    pub(crate) async fn get(&self, path: &str, caller: &Caller) -> Got {
        self.try_get(path, caller).await.unwrap()
    }

    pub(crate) async fn status(&self, path: &str, caller: &Caller) -> u16 {
        self.get(path, caller).await.status
    }

    /// Asks again until the answer is as expected.
    pub(crate) async fn until(&self, path: &str, caller: &Caller, status: u16) {
        let asking = async {
            while self.status(path, caller).await != status {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asking).await.expect("the answer never changed");
    }
}

pub(crate) fn roots(pem: &[u8]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let last = CertificateDer::pem_slice_iter(pem).last().unwrap().unwrap();
    roots.add(last).unwrap();
    roots
}

/// A certificate authority.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
#[derive(Clone)]
pub(crate) struct Papers {
    pub(crate) certificate: String,
    pub(crate) private: String,
}

impl Papers {
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(self.certificate.as_bytes()).map(Result::unwrap).collect()
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.private.as_bytes()).unwrap()
    }
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, params: &CertificateParams) -> Papers {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Papers { certificate: certificate.pem() + &self.pem, private: key.serialize_pem() }
    }

    pub(crate) fn server(&self) -> Papers {
        self.issue(&CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap())
    }

    pub(crate) fn client(&self, name: &str, group: &str) -> Papers {
        self.issue(&Self::client_params(name, group))
    }

    pub(crate) fn expired(&self, name: &str, group: &str) -> Papers {
        let mut params = Self::client_params(name, group);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        self.issue(&params)
    }

    pub(crate) fn for_servers_only(&self, name: &str, group: &str) -> Papers {
        let mut params = Self::client_params(name, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(&params)
    }

    fn client_params(name: &str, group: &str) -> CertificateParams {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params
    }
}

/// A cluster that knows the program, `prometheus`, and `eve`, who may see nothing.
pub(crate) fn cluster() -> (KubeApi, kube::Client) {
    let world = Surroundings::new(42, || jiff::Timestamp::from_second(1_704_067_200).unwrap());
    let api = KubeApi::new(world);
    api.add_token("own", User::admin("ccm"));
    api.add_token("prometheus", User::plain("prometheus"));
    api.add_token("eve", User::plain("eve"));
    api.set_policy(Some(Arc::new(|user: &User, action: &Action| {
        (user.name == "eve" && !action.path.is_empty()).then(|| "not for eve".to_owned())
    })));
    let client = client_of(&api, |_| {});
    (api, client)
}

/// The program's client, with somebody who watches what it sends.
pub(crate) fn client_of(api: &KubeApi, sent: impl Fn(&str) + Clone + Send + Sync + 'static) -> kube::Client {
    let service = api.service().map_request(move |mut request: Request<kube::client::Body>| {
        sent(request.uri().path());
        request.headers_mut().insert("authorization", HeaderValue::from_static("Bearer own"));
        request
    });
    kube::Client::new(service, "default")
}

/// Both delegations to one cluster.
pub(crate) fn delegated(client: &kube::Client) -> Wants {
    Wants {
        authentication: Authentication { client: Some(client.clone()), ..Authentication::default() },
        authorization: Authorization { client: Some(client.clone()), ..Authorization::default() },
        ..Wants::default()
    }
}

/// A client behind which nobody listens.
pub(crate) fn unusable() -> kube::Client {
    let refuse = tower::service_fn(|_: Request<kube::client::Body>| async {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        Err::<http::Response<kube::client::Body>, tower::BoxError>(Box::new(refused))
    });
    kube::Client::new(refuse, "default")
}
