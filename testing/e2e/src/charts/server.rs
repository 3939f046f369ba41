//! Charts on a port.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::Full;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use sim_kit::{Disconnected, Served, serve};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::Chart;
use super::registry::find;
use crate::Error;

#[derive(Debug, Default)]
struct Shelf {
    charts: Vec<Chart>,
    down: bool,
    /// The `Authorization` header that is asked for.
    password: Option<String>,
    asked: Vec<String>,
}

/// A repository and a registry of charts on loopback, read-only. It is served by the runtime that started it.
#[derive(Debug)]
pub struct ChartServer {
    served: Served,
    shelf: Arc<Mutex<Shelf>>,
    authority: Option<String>,
}

impl ChartServer {
    /// A server without TLS: what Helm takes for a repository.
    pub async fn plain() -> Result<Self, Error> {
        Self::start(None, None).await
    }

    /// A server with TLS: what Helm asks of a registry.
    pub async fn with_tls() -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )?;
        Self::start(Some(TlsAcceptor::from(Arc::new(config))), Some(certificate.pem())).await
    }

    async fn start(acceptor: Option<TlsAcceptor>, authority: Option<String>) -> Result<Self, Error> {
        let failed =
            |why: std::io::Error| Error::Transport { what: "a chart server".into(), why: why.to_string() };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let shelf = Arc::<Mutex<Shelf>>::default();
        let theirs = Arc::clone(&shelf);
        let service = tower::service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let answer = lock(&theirs).answer(request.method(), request.uri().path(), request.headers());
            std::future::ready(Ok::<_, Disconnected>(answer))
        });
        let served = serve(service, listener, acceptor).map_err(failed)?;
        Ok(Self { served, shelf, authority })
    }

    /// Adds a chart, or replaces it.
    pub fn publish(&self, chart: Chart) {
        let charts = &mut lock(&self.shelf).charts;
        charts.retain(|old| (old.name(), old.version()) != (chart.name(), chart.version()));
        charts.push(chart);
    }

    /// Answers everything with 503, or no longer.
    pub fn set_down(&self, down: bool) {
        lock(&self.shelf).down = down;
    }

    /// Lets in only who sends this `Authorization` header.
    pub fn ask_for(&self, authorization: &str) {
        lock(&self.shelf).password = Some(authorization.to_owned());
    }

    /// The paths that were asked for since the last time.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shelf).asked)
    }

    /// The address of the repository.
    pub fn repository(&self) -> String {
        format!("{}charts", self.served.url())
    }

    /// The reference of a chart in the registry.
    pub fn reference(&self, name: &str) -> String {
        format!("oci://{}/charts/{name}", self.served.address)
    }

    /// Host and port.
    pub fn address(&self) -> std::net::SocketAddr {
        self.served.address
    }

    /// The certificate that vouches for the server, in PEM; empty without TLS.
    pub fn authority_pem(&self) -> &str {
        self.authority.as_deref().unwrap_or_default()
    }
}

impl Shelf {
    fn answer(&mut self, method: &Method, path: &str, headers: &HeaderMap) -> Response<Full<Bytes>> {
        self.asked.push(path.to_owned());
        let status = |status: StatusCode| {
            let mut answer = Response::new(Full::default());
            *answer.status_mut() = status;
            answer
        };
        if self.down {
            return status(StatusCode::SERVICE_UNAVAILABLE);
        }
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if self.password.as_deref().is_some_and(|wanted| given != Some(wanted)) {
            let mut answer = status(StatusCode::UNAUTHORIZED);
            answer
                .headers_mut()
                .insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Basic realm=\"charts\""));
            return answer;
        }
        if *method != Method::GET && *method != Method::HEAD {
            return status(StatusCode::METHOD_NOT_ALLOWED);
        }
        let Some(found) = find(&self.charts, path) else { return status(StatusCode::NOT_FOUND) };
        let (length, digest) = (found.body.len(), found.digest());
        let body = if *method == Method::HEAD { Full::default() } else { Full::from(found.body) };
        let answer = Response::builder()
            .header(CONTENT_TYPE, found.kind)
            .header(CONTENT_LENGTH, length)
            .header("Docker-Content-Digest", digest)
            .body(body);
        answer.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}
