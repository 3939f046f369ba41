//! The real network: hyper over rustls.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Error, Result, call::CONNECT_LIMIT, error::with_causes};
use http::{Request, header::PROXY_AUTHORIZATION};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tower::{BoxError, ServiceExt};

use crate::{
    proxy::{Connector, Proxies},
    surroundings::system_roots,
    transport::{RequestBody, Transport, TransportError},
};

/// How long an idle connection is kept. Shorter than the minute after which common gateways close theirs, so that a
/// request rarely meets a closing one.
const IDLE: Duration = Duration::from_secs(50);

/// Whose certificates are trusted.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The system's, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    System,
    /// These and no others.
    These(RootCertStore),
    /// None: for an API over plain HTTP, on a host without trusted authorities.
    None,
}

/// A transport over the network: HTTP/1.1 with pooled connections, TLS where the URL says `https`.
///
/// It reports a request as not sent only if no connection came about. Redirects are not followed.
pub fn connect(roots: Roots, proxies: Proxies) -> Result<Transport> {
    let roots = match roots {
        Roots::System => system_roots()?,
        Roots::These(roots) => roots,
        Roots::None => RootCertStore::empty(),
    };
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::permanent(format!("TLS cannot be set up: {e}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut direct = HttpConnector::new();
    direct.enforce_http(false);
    direct.set_nodelay(true);
    // The connector divides it among the addresses of a name, so that a dead one does not use it up.
    direct.set_connect_timeout(Some(CONNECT_LIMIT));
    direct.set_keepalive(Some(Duration::from_secs(30)));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(Connector::new(direct, proxies.clone()))
        // The limit covers name resolution, all addresses, the proxy and the handshake.
        .map_future(|connecting| Box::pin(in_time(connecting)));
    let client = Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .build(connector);
    Ok(Transport::new(
        client
            .map_err(|error| {
                let what = with_causes(&error);
                if error.is_connect() { TransportError::not_sent(what) } else { TransportError::lost(what) }
            })
            .map_request(move |mut request: Request<RequestBody>| {
                if let Some(header) = proxies.authorization(request.uri()) {
                    request.headers_mut().insert(PROXY_AUTHORIZATION, header);
                }
                request
            }),
    ))
}

/// Limits the time to connect: a write is sent as soon as there is a connection, and its claim was checked before.
pub async fn in_time<T>(
    connecting: impl Future<Output = std::result::Result<T, BoxError>>,
) -> std::result::Result<T, BoxError> {
    match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(format!("no connection within {CONNECT_LIMIT:?}").into()),
    }
}
