//! A plain HTTPS client for anything that serves the Kubernetes API.
//!
//! It sends what it is told, byte for byte, and hands back what came. No retries, no types: a check of a
//! server must see what the server does.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::time::timeout;

use crate::Error;

/// The longest that one answer may take, on the busiest of machines.
const DEADLINE: Duration = Duration::from_secs(120);

/// Who the client says it is.
#[derive(Clone)]
pub enum Credentials {
    /// Nobody in particular.
    Anonymous,
    /// A bearer token.
    Token(String),
    /// A client certificate and its key.
    Certificate {
        /// The certificate, in PEM.
        cert_pem: String,
        /// Its private key, in PEM.
        key_pem: String,
    },
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Token(_) => "Token(…)",
            Self::Certificate { .. } => "Certificate(…)",
        })
    }
}

/// One request, before it is known where it goes.
#[derive(Clone, Debug)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The type of the body; not sent when empty.
    pub content_type: String,
    /// The body, exactly as sent.
    pub body: Bytes,
    /// Further headers.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// A request without a body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            content_type: String::new(),
            body: Bytes::new(),
            headers: Vec::new(),
        }
    }

    /// A GET.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// A POST of a JSON object.
    pub fn post(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::POST, path).json(body)
    }

    /// The same with a JSON body.
    #[must_use]
    pub fn json(mut self, body: &Value) -> Self {
        self.content_type = "application/json".into();
        self.body = body.to_string().into();
        self
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, complete.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; a body that is none, as a string.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&self.body).into_owned()))
    }

    /// A header's value, if it is there and readable.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A connection pool to one server, with one identity.
#[derive(Clone, Debug)]
pub struct Client {
    base: String,
    token: Option<String>,
    http: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Client {
    /// A client of the server at `base` (`https://127.0.0.1:6443`), which `ca_pem` vouches for.
    pub fn new(base: impl Into<String>, ca_pem: &str, credentials: &Credentials) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for cert in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
            roots.add(cert.map_err(|error| unreadable(&error))?)?;
        }
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let (config, token) = match credentials {
            Credentials::Anonymous => (config.with_no_client_auth(), None),
            Credentials::Token(token) => (config.with_no_client_auth(), Some(token.clone())),
            Credentials::Certificate { cert_pem, key_pem } => {
                let cert = CertificateDer::from_pem_slice(cert_pem.as_bytes()).map_err(|e| unreadable(&e))?;
                let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|e| unreadable(&e))?;
                (config.with_client_auth_cert(vec![cert], key)?, None)
            }
        };
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { base: base.into(), token, http })
    }

    /// Where the server is.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends one request and reads the whole answer.
    pub async fn send(&self, request: &Request) -> Result<Answer, Error> {
        let what = || format!("{} {}", request.method, request.path);
        let exchange = async {
            let (parts, body) = self.begin(request).await?.into_parts();
            let body = body.collect().await.map_err(|error| Error::transport(&what(), &error))?;
            Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes() })
        };
        timeout(DEADLINE, exchange).await.map_err(|_| Error::Deadline { what: what() })?
    }

    /// Sends a watch. A server that refuses it answers at once; then the answer is the error.
    pub async fn watch(&self, request: &Request) -> Result<Result<Watch, Answer>, Error> {
        let what = || format!("watch {}", request.path);
        let exchange = async {
            let (parts, body) = self.begin(request).await?.into_parts();
            if parts.status.is_success() {
                return Ok(Ok(Watch::new(body)));
            }
            let body = body.collect().await.map_err(|error| Error::transport(&what(), &error))?;
            Ok(Err(Answer { status: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes() }))
        };
        timeout(DEADLINE, exchange).await.map_err(|_| Error::Deadline { what: what() })?
    }

    async fn begin(&self, request: &Request) -> Result<http::Response<Incoming>, Error> {
        let uri: Uri = format!("{}{}", self.base, request.path).parse().map_err(http::Error::from)?;
        let mut builder = http::Request::builder().method(request.method.clone()).uri(uri);
        if !request.content_type.is_empty() {
            builder = builder.header(CONTENT_TYPE, &request.content_type);
        }
        if let Some(token) = &self.token {
            builder = builder.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let built = builder.body(Full::new(request.body.clone()))?;
        let what = format!("{} {}", request.method, request.path);
        self.http.request(built).await.map_err(|error| Error::transport(&what, &error))
    }
}

/// The events of a watch, one JSON object per line.
#[derive(Debug)]
pub struct Watch {
    body: UnsyncBoxBody<Bytes, Error>,
    pending: BytesMut,
}

impl Watch {
    /// Reads the events from the body of an answer.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error,
    {
        let body = body.map_err(|error| Error::transport("watch", &error)).boxed_unsync();
        Self { body, pending: BytesMut::new() }
    }

    /// The next event; `None` when the server has ended the watch.
    pub async fn next(&mut self, within: Duration) -> Result<Option<Value>, Error> {
        let event = self.line();
        let line =
            timeout(within, event).await.map_err(|_| Error::Deadline { what: "watch event".into() })??;
        line.map(|line| serde_json::from_slice(&line)).transpose().map_err(Error::from)
    }

    async fn line(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line = self.pending.split_to(end).freeze();
                self.pending.advance(1);
                return Ok(Some(line));
            }
            match self.body.frame().await {
                None if self.pending.is_empty() => return Ok(None),
                // What was cut off in the middle of a line shows as a line that is not JSON.
                None => return Ok(Some(self.pending.split().freeze())),
                Some(frame) => {
                    if let Some(data) = frame?.data_ref() {
                        self.pending.extend_from_slice(data);
                    }
                }
            }
        }
    }
}

fn unreadable(error: &rustls::pki_types::pem::Error) -> Error {
    Error::Tls(rustls::Error::General(format!("unreadable PEM: {error}")))
}
