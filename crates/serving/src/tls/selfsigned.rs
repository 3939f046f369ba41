//! A self-signed certificate, for when none is given.

use std::{net::IpAddr, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

use crate::error::{Error, Result};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
const HEAD_START: Duration = Duration::from_secs(3600);

/// The age at which a certificate is replaced: a month before it expires.
pub(crate) const RENEW_AFTER: Duration = Duration::from_secs(335 * 24 * 3600);

pub(crate) struct PemPair {
    /// The server's certificate and the authority that signed it.
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// Makes a pair for `localhost`, the loopback addresses and the address if it is a specific one. The authority's key is
/// thrown away, so nothing else can ever be signed with it.
pub(crate) fn make(address: IpAddr, now: Timestamp) -> Result<PemPair> {
    attempt(address, now).map_err(|error| Error::new(format!("no certificate could be made: {error}")))
}

fn attempt(address: IpAddr, now: Timestamp) -> Result<PemPair, rcgen::Error> {
    let stamp = now.as_second();
    let authority_key = KeyPair::generate()?;
    let mut authority = dated(now, &format!("localhost-ca@{stamp}"))?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyCertSign,
    ];
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let key = KeyPair::generate()?;
    let mut server = dated(now, &format!("localhost@{stamp}"))?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let loopback = IpAddr::from([127, 0, 0, 1]);
    server.subject_alt_names = vec![SanType::DnsName("localhost".try_into()?), SanType::IpAddress(loopback)];
    if !address.is_unspecified() && address != loopback {
        server.subject_alt_names.push(SanType::IpAddress(address));
    }
    let certificate = server.signed_by(&key, &issuer)?;
    Ok(PemPair { chain: certificate.pem() + &authority_certificate.pem(), key: key.serialize_pem() })
}

fn dated(now: Timestamp, name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(HEAD_START);
    params.not_after = epoch + now.saturating_add(YEAR);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use rustls::{
        RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
    };

    use super::*;

    #[test]
    fn it_is_good_for_its_names_for_a_year() {
        let now: Timestamp = "2031-05-06T12:00:00Z".parse().unwrap();
        let verify = |address: IpAddr, name: &str, hours: i64| {
            let made = make(address, now).unwrap();
            let chain: Vec<_> =
                CertificateDer::pem_slice_iter(made.chain.as_bytes()).collect::<Result<_, _>>().unwrap();
            let mut roots = RootCertStore::empty();
            roots.add(chain[1].clone()).unwrap();
            let seconds = u64::try_from(now.as_second() + hours * 3600).unwrap();
            let leaf = webpki::EndEntityCert::try_from(&chain[0]).unwrap();
            let path = leaf.verify_for_usage(
                ring::default_provider().signature_verification_algorithms.all,
                &roots.roots,
                &[],
                UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
                webpki::KeyUsage::server_auth(),
                None,
                None,
            );
            path.is_ok()
                && leaf.verify_is_valid_for_subject_name(&ServerName::try_from(name).unwrap()).is_ok()
        };
        let (anywhere, here) = (IpAddr::from([0, 0, 0, 0]), IpAddr::from([192, 0, 2, 7]));
        let table = [
            ("by name", anywhere, "localhost", 0, true),
            ("on loopback", anywhere, "127.0.0.1", 0, true),
            ("an unspecific address is no name", anywhere, "0.0.0.0", 0, false),
            ("a specific one is", here, "192.0.2.7", 0, true),
            ("beside loopback", here, "127.0.0.1", 0, true),
            ("another name", here, "example.org", 0, false),
            ("clocks may differ by an hour", anywhere, "localhost", -1, true),
            ("but not by two", anywhere, "localhost", -2, false),
            ("the last day", anywhere, "localhost", 365 * 24, true),
            ("over", anywhere, "localhost", 365 * 24 + 1, false),
        ];
        for (case, address, name, hours, want) in table {
            assert_eq!(verify(address, name, hours), want, "{case}");
        }
    }
}
