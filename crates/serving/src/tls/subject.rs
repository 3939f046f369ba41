//! The subject of a certificate: the common name is the user, the organisations are the groups.
//!
//! The rest of a certificate is read by webpki, which hands out the subject as bytes. What is left is too small to
//! carry a parser of all of X.509 for.

/// The parts of a subject that identify a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) common_name: String,
    pub(crate) organisations: Vec<String>,
}

pub(super) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

impl Subject {
    /// Reads the content of a `Name`, without its outer tag. `None` means that it is not one.
    pub(crate) fn read(mut name: &[u8]) -> Option<Self> {
        let mut subject = Self::default();
        while !name.is_empty() {
            let (set, rest) = take(name, SET)?;
            name = rest;
            let mut set = set;
            while !set.is_empty() {
                let (pair, rest) = take(set, SEQUENCE)?;
                set = rest;
                let (kind, value) = take(pair, OID)?;
                match kind {
                    // As elsewhere in this field, the last common name counts.
                    COMMON_NAME => subject.common_name = text(value)?,
                    ORGANISATION => subject.organisations.push(text(value)?),
                    _ => {}
                }
            }
        }
        Some(subject)
    }
}

/// One element: its tag, its content, and what follows it.
pub(super) fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.is_empty() || digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The content of an element that has to be of this kind, and what follows it.
pub(super) fn take(input: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(input)?;
    (tag == wanted).then_some((content, rest))
}

fn text(input: &[u8]) -> Option<String> {
    let (tag, content, rest) = element(input)?;
    if !rest.is_empty() {
        return None;
    }
    match tag {
        // UTF8String, PrintableString, IA5String
        0x0c | 0x13 | 0x16 => String::from_utf8(content.to_vec()).ok(),
        // TeletexString: in practice Latin-1
        0x14 => Some(content.iter().map(|byte| char::from(*byte)).collect()),
        // BMPString
        0x1e => {
            let (pairs, odd) = content.as_chunks::<2>();
            let units: Vec<_> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            odd.is_empty().then(|| String::from_utf16(&units).ok()).flatten()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    use super::*;

    fn made(entries: &[(DnType, DnValue)]) -> Subject {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in entries {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let cert = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let parsed = webpki::EndEntityCert::try_from(cert.der()).unwrap();
        Subject::read(parsed.subject()).unwrap()
    }

    fn attribute(kind: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).unwrap()], content].concat();
        wrap(SET, &wrap(SEQUENCE, &[wrap(OID, kind), wrap(tag, value)].concat()))
    }

    #[test]
    fn names_and_groups_are_read() {
        let utf8 = |text: &str| DnValue::Utf8String(text.to_owned());
        let printable = DnValue::PrintableString("ops".try_into().unwrap());
        let long = "x".repeat(300);
        let got = made(&[
            (DnType::CountryName, utf8("CH")),
            (DnType::OrganizationName, printable),
            (DnType::CommonName, utf8(&long)),
        ]);
        assert_eq!(got, Subject { common_name: long, organisations: vec!["ops".to_owned()] });
        let two = [
            attribute(ORGANISATION, 0x0c, b"a"),
            attribute(ORGANISATION, 0x14, &[0xe9]),
            attribute(COMMON_NAME, 0x1e, &[0, 98]),
        ]
        .concat();
        let want =
            Subject { common_name: "b".to_owned(), organisations: vec!["a".to_owned(), "é".to_owned()] };
        assert_eq!(Subject::read(&two), Some(want));
        assert_eq!(Subject::read(&[]), Some(Subject::default()), "nobody in particular");
    }

    #[test]
    fn what_is_no_name_is_nobody() {
        let good = attribute(COMMON_NAME, 0x0c, b"bob");
        for (case, bytes) in [
            ("cut short", &good[..good.len() - 1]),
            ("wrong outer tag", &good[2..]),
            ("no text", &attribute(COMMON_NAME, 0x02, b"1")),
            ("half a character", &attribute(COMMON_NAME, 0x1e, b"abc")),
            ("no UTF-8", &attribute(COMMON_NAME, 0x0c, &[0xff])),
            ("a length of lengths", &[SET, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ] {
            assert_eq!(Subject::read(bytes), None, "{case}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_fatal(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Subject::read(&bytes);
        }
    }
}
