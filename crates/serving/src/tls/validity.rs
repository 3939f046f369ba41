//! When a certificate ends. The library that checks certificates does not say.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use super::subject::{SEQUENCE, element, take};

const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The `notAfter` of a certificate in DER. `None` means that it cannot be read.
pub(super) fn ends(certificate: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = take(certificate, SEQUENCE)?;
    let (signed, _) = take(certificate, SEQUENCE)?;
    let rest = match element(signed)? {
        (VERSION, _, rest) => rest,
        _ => signed,
    };
    // Serial number, algorithm, issuer.
    let (.., rest) = element(rest)?;
    let (.., rest) = element(rest)?;
    let (.., rest) = element(rest)?;
    let (validity, _) = take(rest, SEQUENCE)?;
    let (.., rest) = element(validity)?;
    let (kind, text, _) = element(rest)?;
    moment(kind, std::str::from_utf8(text).ok()?)
}

/// A time in one of the two forms that RFC 5280 allows. Two digits of a year stand for 1950 to 2049.
fn moment(kind: u8, text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let full = match (kind, digits.len()) {
        (UTC_TIME, 12) if digits < "5" => format!("20{digits}"),
        (UTC_TIME, 12) => format!("19{digits}"),
        (GENERALIZED_TIME, 14) => digits.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", &full).ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_both_forms() {
        let table = [
            (UTC_TIME, "310506120000Z", Some("2031-05-06T12:00:00Z")),
            (UTC_TIME, "491231235959Z", Some("2049-12-31T23:59:59Z")),
            (UTC_TIME, "500101000000Z", Some("1950-01-01T00:00:00Z")),
            (GENERALIZED_TIME, "20500101000000Z", Some("2050-01-01T00:00:00Z")),
            (GENERALIZED_TIME, "99991231235959Z", Some("9999-12-31T23:59:59Z")),
            (GENERALIZED_TIME, "310506120000Z", None),
            (UTC_TIME, "3105061200Z", None),
            (UTC_TIME, "310506120000+0100", None),
            (UTC_TIME, "311306120000Z", None),
            (UTC_TIME, "+10506120000Z", None),
            (0x13, "310506120000Z", None),
        ];
        for (kind, text, want) in table {
            // The last day of the calendar is beyond what a timestamp holds in some time zones.
            let want = want.and_then(|want| want.parse().ok());
            assert_eq!(moment(kind, text), want, "{text}");
        }
    }

    #[test]
    fn no_bytes_bring_it_down() {
        use rustls::pki_types::{CertificateDer, pem::PemObject as _};
        let made =
            super::super::selfsigned::make([127, 0, 0, 1].into(), "2031-05-06T12:00:00Z".parse().unwrap());
        let der = CertificateDer::from_pem_slice(made.unwrap().chain.as_bytes()).unwrap();
        let end = ends(&der);
        assert_eq!(end, Some("2032-05-05T12:00:00Z".parse().unwrap()), "law 11");
        for length in 0..der.len() {
            let cut = ends(der.get(..length).unwrap());
            assert!(cut.is_none() || cut == end, "{length}");
        }
    }
}
