//! The id that ties a node to an instance of one cloud: `scheme://id`.

use std::{fmt, str::FromStr};

use crate::error::{Error, Result};

/// A provider id, parsed once and printed exactly as it was written.
///
/// The part after `://` is the cloud's own; it may contain anything, slashes included, and is never changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId {
    scheme: String,
    id: String,
}

impl ProviderId {
    /// Builds `scheme://id`.
    pub fn new(scheme: &str, id: &str) -> Result<Self> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if scheme.is_empty() || !scheme.chars().all(good) {
            return Err(Error::user_input(format!("provider id: {scheme:?} is not a scheme")));
        }
        if id.is_empty() {
            return Err(Error::user_input(format!("provider id: nothing follows {scheme}://")));
        }
        Ok(Self { scheme: scheme.to_owned(), id: id.to_owned() })
    }

    /// Which cloud it belongs to.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The cloud's own id of the instance.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl FromStr for ProviderId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once("://") {
            Some((scheme, id)) => Self::new(scheme, id),
            None => {
                Err(Error::user_input(format!("provider id {text:?} does not have the form scheme://id")))
            }
        }
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.id)
    }
}

/// How a cloud reads the text of a provider id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// One of its ids, in the form in which its listings show it.
    Mine(ProviderId),
    /// An id of this cloud in a wrong form.
    Malformed,
    /// Not of this cloud.
    Foreign,
}

impl Reading {
    /// Reads `text` for a cloud with one spelling, whose ids are those that `owns` accepts.
    pub fn plain(text: &str, owns: impl FnOnce(&ProviderId) -> bool) -> Self {
        text.parse().ok().filter(owns).map_or(Self::Foreign, Self::Mine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_printed_as_it_was_parsed() {
        let table = [
            (
                "cloudscale://2f0c2a4e-aaaa-4b3c-9d1e-0123456789ab",
                "cloudscale",
                "2f0c2a4e-aaaa-4b3c-9d1e-0123456789ab",
            ),
            ("binarylane://123", "binarylane", "123"),
            ("brightbox://srv-abcde", "brightbox", "srv-abcde"),
            ("aws:///us-east-1a/i-0abc", "aws", "/us-east-1a/i-0abc"),
            ("odd://a://b", "odd", "a://b"),
        ];
        for (text, scheme, id) in table {
            let parsed: ProviderId = text.parse().unwrap();
            assert_eq!((parsed.scheme(), parsed.id()), (scheme, id));
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn what_is_not_an_id_is_refused_by_name() {
        for bad in ["", "test-provider-id", "://1", "fake://", "two words://1", "cloudscale:1"] {
            let error = bad.parse::<ProviderId>().unwrap_err();
            assert!(error.message().starts_with("provider id"), "{bad}: {error}");
        }
    }
}
