//! Client certificates.
//!
//! The handshake asks for one, does not require it and only checks that the client has its key. Whether a trusted
//! authority signed it is checked at each request, against the authorities in force then.

use std::{fmt::Write as _, sync::Arc};

use ring::digest::{SHA256, digest};
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{
        WebPkiSupportedAlgorithms, ring as ring_provider, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, UnixTime, pem::PemObject as _},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use super::subject::Subject;

/// Accepts any certificate, or none.
#[derive(Debug)]
pub(crate) struct AnyClient {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyClient {
    pub(crate) const fn new(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms }
    }
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<dyn ClientCertVerifier>);

/// A client whose certificate a trusted authority signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerifiedClient {
    pub(crate) subject: Subject,
    /// Identifies the certificate itself, for audit logs.
    pub(crate) fingerprint: String,
}

impl Pool {
    /// Reads a PEM bundle. Unusable certificates are left out; a bundle without a usable one is an error.
    pub(crate) fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("it is not PEM: {error}"))?;
            if let Err(error) = roots.add(certificate) {
                tracing::warn!(%error, "certificate authority skipped: it cannot be used");
            }
        }
        if roots.is_empty() {
            return Err("there is no usable certificate in it".to_owned());
        }
        let provider = Arc::new(ring_provider::default_provider());
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Verifies that the chain leads to one of the authorities, and reads whom it identifies.
    pub(crate) fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<VerifiedClient, String> {
        let (leaf, intermediates) = chain.split_first().ok_or("no certificate was presented")?;
        self.0
            .verify_client_cert(leaf, intermediates, now)
            .map_err(|error| format!("the client's certificate is not accepted: {error}"))?;
        let parsed = webpki::EndEntityCert::try_from(leaf).map_err(|error| error.to_string())?;
        let subject =
            Subject::read(parsed.subject()).ok_or("the subject of the client's certificate is unreadable")?;
        let mut fingerprint = "X509SHA256=".to_owned();
        for byte in digest(&SHA256, leaf).as_ref() {
            // Writing to a string does not fail.
            let _ = write!(fingerprint, "{byte:02x}");
        }
        Ok(VerifiedClient { subject, fingerprint })
    }
}
