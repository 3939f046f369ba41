//! TLS: protocol settings, server certificates and client certificates.

pub(crate) mod clients;
pub(crate) mod material;
pub(crate) mod selfsigned;
pub(crate) mod settings;
pub(crate) mod store;
pub(crate) mod subject;
mod validity;

use std::sync::Arc;

use cloudberth_core::Clock;
use rustls::{ServerConfig, pki_types::UnixTime, time_provider::TimeProvider};

use self::{clients::AnyClient, settings::Settled, store::CertificateStore};
use crate::error::{Error, Result};

pub(crate) fn unix_time(clock: &dyn Clock) -> UnixTime {
    let seconds = u64::try_from(clock.wall().as_second()).unwrap_or_default();
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}

struct HandedInTime(Arc<dyn Clock>);

impl std::fmt::Debug for HandedInTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HandedInTime")
    }
}

impl TimeProvider for HandedInTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix_time(&*self.0))
    }
}

/// The configuration of handshakes. Certificates are looked up at each one, so that new ones are used at once.
pub(crate) fn server_config(
    settled: &Settled,
    certificates: Arc<CertificateStore>,
    http2: bool,
    clock: Arc<dyn Clock>,
) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(settled.provider.clone());
    let mut config = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::new(HandedInTime(clock)))
        .with_protocol_versions(&settled.versions)
        .map_err(|error| {
            Error::new(format!("--tls-min-version and --tls-cipher-suites leave nothing to speak: {error}"))
        })?
        .with_client_cert_verifier(Arc::new(AnyClient::new(provider.signature_verification_algorithms)))
        .with_cert_resolver(certificates);
    config.alpn_protocols =
        if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(Arc::new(config))
}
