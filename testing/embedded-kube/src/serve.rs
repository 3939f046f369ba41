//! The API on a port: TLS or not, for any client that speaks HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::KubeApi;

/// Why the API could not be put on a port.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port cannot be used.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificate cannot be used.
    #[error("cannot use the certificate: {0}")]
    Tls(#[from] rustls::Error),
}

/// A certificate authority and a server certificate for loopback, made on the spot. Clones are the same, for a server
/// that comes back on its port.
#[derive(Clone)]
pub struct Tls {
    authority: String,
    config: Arc<ServerConfig>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Makes both. The keys live in memory only.
    pub fn for_loopback() -> Result<Self, ServeError> {
        let authority_key = rcgen::KeyPair::generate()?;
        let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new())?;
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "cloudberth-sim");
        let authority = parameters.self_signed(&authority_key)?;
        let issuer = rcgen::Issuer::new(parameters, authority_key);
        let names =
            ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"];
        let key = rcgen::KeyPair::generate()?;
        let names = names.map(str::to_owned).to_vec();
        let certificate = rcgen::CertificateParams::new(names)?.signed_by(&key, &issuer)?;
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone(), authority.der().clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { authority: authority.pem(), config: Arc::new(config) })
    }
}

/// A server that is running. Dropping it stops it.
#[derive(Debug)]
pub struct Served {
    /// Where it listens.
    pub address: SocketAddr,
    path_prefix: String,
    authority: Option<String>,
    token: Option<String>,
    server: sim_kit::Served,
}

impl Served {
    /// The certificate authority that vouches for the server, in PEM; none without TLS.
    pub fn authority_pem(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// A kubeconfig file for clients.
    pub fn kubeconfig(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        let authority = self.authority.as_ref().map_or_else(String::new, |pem| {
            format!("\n    certificate-authority-data: {}", super::base64_encode(pem.as_bytes()))
        });
        let user = match &self.token {
            Some(token) => format!("\n    token: {}", serde_json::Value::from(token.as_str())),
            None => " {}".to_owned(),
        };
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: cloudberth-sim\nclusters:\n- name: cloudberth-sim\n  \
             cluster:\n    server: {scheme}://{}{}{authority}\nusers:\n- name: cloudberth-sim\n  user:{user}\n\
             contexts:\n- name: cloudberth-sim\n  context:\n    cluster: cloudberth-sim\n    user: cloudberth-sim\n    \
             namespace: default\n",
            self.address, self.path_prefix
        )
    }

    /// Serves for ever: the listener does not fail.
    pub async fn wait(self) {
        self.server.wait().await;
    }
}

/// Serves the API on a port until the result is dropped. The token, if given, is the administrator's; `None` lets
/// everyone in.
pub fn serve(
    api: &KubeApi,
    listener: TcpListener,
    tls: Option<Tls>,
    token: Option<String>,
) -> Result<Served, ServeError> {
    if let Some(token) = &token {
        api.add_token(token, super::User::admin("kubernetes-admin"));
    }
    let (authority, acceptor) = match tls {
        Some(tls) => (Some(tls.authority), Some(TlsAcceptor::from(tls.config))),
        None => (None, None),
    };
    let server = sim_kit::serve(api.service(), listener, acceptor)?;
    Ok(Served { address: server.address, path_prefix: api.path_prefix(), authority, token, server })
}
