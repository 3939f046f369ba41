//! The ids of this cloud: UUIDs, in every spelling that was ever accepted.

use std::fmt;

use cloudberth_core::{Error, ProviderId, Result, provider_id::Reading};

/// The scheme of provider ids, and the name of the cloud.
pub(crate) const SCHEME: &str = "cloudscale";

/// A UUID in its one canonical spelling: lower case, with hyphens. Nothing else ever becomes part of a URL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Uuid(String);

impl Uuid {
    /// Reads 32 hex digits of any case: plain, with hyphens, with hyphens behind `urn:uuid:`, or with hyphens between
    /// two further characters, which are meant to be braces.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = match text.len() {
            32 => text.to_owned(),
            36 => without_hyphens(text)?,
            38 => without_hyphens(text.get(1..37)?)?,
            45 => {
                let (urn, rest) = text.split_at_checked(9)?;
                without_hyphens(rest).filter(|_| urn.eq_ignore_ascii_case("urn:uuid:"))?
            }
            _ => return None,
        };
        if !plain.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let plain = plain.to_ascii_lowercase();
        let parts =
            [plain.get(..8)?, plain.get(8..12)?, plain.get(12..16)?, plain.get(16..20)?, plain.get(20..)?];
        Some(Self(parts.join("-")))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The provider id of the machine with this UUID.
    pub(crate) fn provider_id(&self) -> Result<ProviderId> {
        ProviderId::new(SCHEME, &self.0)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The digits of `8-4-4-4-12`.
fn without_hyphens(text: &str) -> Option<String> {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    (lengths == [8, 4, 4, 4, 12]).then(|| text.replace('-', ""))
}

/// Reads the provider id of a node. Spaces around both halves are let through.
pub(crate) fn read_provider_id(text: &str) -> Reading {
    let Some((scheme, id)) = text.split_once("://") else { return Reading::Foreign };
    if scheme.trim_matches(' ') != SCHEME {
        return Reading::Foreign;
    }
    Uuid::parse(id.trim_matches(' '))
        .and_then(|uuid| uuid.provider_id().ok())
        .map_or(Reading::Malformed, Reading::Mine)
}

/// The UUID in a provider id.
pub(crate) fn uuid_of(id: &ProviderId) -> Result<Uuid> {
    match read_provider_id(&id.to_string()) {
        Reading::Mine(_) => Uuid::parse(id.id().trim_matches(' ')),
        Reading::Malformed | Reading::Foreign => None,
    }
    .ok_or_else(|| {
        Error::permanent(format!("{id} is not a machine of cloudscale.ch; it should be {SCHEME}://UUID"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "08d56bfe-40d0-4c68-a915-54f846c28c9e";
    const PLAIN: &str = "08d56bfe40d04c68a91554f846c28c9e";
    const UPPER: &str = "08D56BFE40D04C68A91554F846C28C9E";

    fn mine() -> Reading {
        Reading::Mine(format!("cloudscale://{UUID}").parse().unwrap())
    }

    #[test]
    fn an_id_is_written_in_one_spelling() {
        for (case, text) in [("CS-10", UUID), ("CS-11", UPPER)] {
            let id = Uuid::parse(text).unwrap().provider_id().unwrap();
            assert_eq!(id.to_string(), format!("cloudscale://{UUID}"), "{case}");
            assert_eq!(uuid_of(&id).unwrap().as_str(), UUID, "{case}");
        }
    }

    #[test]
    fn every_spelling_of_an_id_is_read() {
        let table = [
            ("CS-12 with hyphens", format!("cloudscale://{UUID}")),
            ("CS-12 without", format!("cloudscale://{PLAIN}")),
            ("CS-12 upper case without", format!("cloudscale://{UPPER}")),
            ("upper case with", format!("cloudscale://{}", UUID.to_uppercase())),
            ("CS-15 spaces", format!("  cloudscale  ://  {UUID}  ")),
            ("a URN", format!("cloudscale://urn:uuid:{UUID}")),
            ("braces", format!("cloudscale://{{{UUID}}}")),
        ];
        for (case, text) in table {
            assert_eq!(read_provider_id(&text), mine(), "{case}");
        }
    }

    #[test]
    fn what_is_not_an_id_is_malformed_or_foreign() {
        use Reading::{Foreign, Malformed};
        let table = [
            ("CS-13 no separator", "cloudscale".to_owned(), Foreign),
            ("CS-13 nothing", String::new(), Foreign),
            ("CS-13 one slash", format!("cloudscale:/{UUID}"), Foreign),
            ("CS-13 no provider", format!("://{UUID}"), Foreign),
            ("CS-13 no id", "cloudscale://".to_owned(), Malformed),
            ("CS-13 no UUID", "cloudscale://foo".to_owned(), Malformed),
            ("CS-14 another provider", format!("bigcorp://{UUID}"), Foreign),
            ("CS-14 misspelt", format!("cloud-scale://{UUID}"), Foreign),
            ("another case", format!("Cloudscale://{UUID}"), Foreign),
            ("a tab", format!("cloudscale://\t{UUID}"), Malformed),
            ("a hyphen too late", "cloudscale://08d56bfe4-0d0-4c68-a915-54f846c28c9e".to_owned(), Malformed),
            ("no hex", format!("cloudscale://{}", UUID.replace('0', "g")), Malformed),
            (
                "hyphens between hyphens",
                "cloudscale://--------------------------------".to_owned(),
                Malformed,
            ),
            ("not a URN", format!("cloudscale://urn:uvid:{UUID}"), Malformed),
            ("text in several bytes", format!("cloudscale://é{UUID}"), Malformed),
            ("a path", format!("cloudscale://{UUID}/x"), Malformed),
        ];
        for (case, text, want) in table {
            assert_eq!(read_provider_id(&text), want, "{case}");
        }
    }

    #[test]
    fn an_id_that_is_not_ours_has_no_uuid() {
        for text in ["cloudscale://foo", "bigcorp://08d56bfe-40d0-4c68-a915-54f846c28c9e"] {
            assert!(uuid_of(&text.parse().unwrap()).unwrap_err().message().contains(text), "CS-34 {text}");
        }
    }
}
