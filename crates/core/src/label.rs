//! Label keys and values that Kubernetes accepts, and the places that become labels.

use std::fmt;

use crate::error::{Error, Result};

const NAME_LIMIT: usize = 63;
const PREFIX_LIMIT: usize = 253;

/// Letters, digits, `-`, `_`, `.`, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.len() <= NAME_LIMIT
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Lower-case DNS labels joined by dots.
fn is_dns_subdomain(text: &str) -> bool {
    let label = |part: &str| {
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        edge(part.as_bytes().first())
            && edge(part.as_bytes().last())
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= PREFIX_LIMIT && text.split('.').all(label)
}

/// A label key: an optional DNS prefix and `/`, then a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelKey(String);

impl LabelKey {
    /// Takes a key if Kubernetes would.
    pub fn new(text: &str) -> Result<Self> {
        let good = match text.split_once('/') {
            Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
            None => is_name(text),
        };
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::user_input(format!("{text:?} is not a label key")))
        }
    }

    /// The key as Kubernetes writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A label value: empty, or at most 63 characters of letters, digits, `-`, `_`, `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelValue(String);

impl LabelValue {
    /// Takes a value if Kubernetes would.
    pub fn new(text: &str) -> Result<Self> {
        if text.is_empty() || is_name(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::user_input(format!("{text:?} is not a label value")))
        }
    }

    /// The value as Kubernetes writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Defines a place name that is a non-empty label value.
macro_rules! place {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes a name that can stand in a label.
            pub fn new(text: &str) -> Result<Self> {
                if is_name(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(Error::user_input(format!(concat!("{:?} is not the name of a ", $what), text)))
                }
            }

            /// The name, a valid label value.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

place!(
    /// A failure domain inside a region.
    Zone,
    "zone"
);
place!(
    /// A region of a cloud.
    Region,
    "region"
);

impl fmt::Display for LabelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for LabelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_follow_the_rules_of_kubernetes() {
        let long = "a".repeat(63);
        let too_long = "a".repeat(64);
        let wide_prefix = format!("{}/x", ["a"; 127].join("."));
        let too_wide_prefix = format!("{}/x", ["a"; 128].join("."));
        let keys = [
            ("zone", true),
            ("topology.kubernetes.io/zone", true),
            ("k8s.io/A_b.c-1", true),
            (long.as_str(), true),
            (wide_prefix.as_str(), true),
            (too_wide_prefix.as_str(), false),
            (too_long.as_str(), false),
            ("", false),
            ("/zone", false),
            ("Upper.io/zone", false),
            ("my-domain.io/zone", true),
            ("my_domain.io/zone", false),
            ("a..b/zone", false),
            ("-a.io/zone", false),
            ("a-.io/zone", false),
            ("a/b/c", false),
            ("_zone", false),
            ("zone.", false),
            ("zo ne", false),
        ];
        for (text, good) in keys {
            assert_eq!(LabelKey::new(text).is_ok(), good, "key {text:?}");
        }
        let values = [("", true), ("lpg1", true), ("Flex-4_2.x", true), (long.as_str(), true)];
        let bad =
            [(too_long.as_str(), false), ("a b", false), ("-a", false), ("a/b", false), ("\u{e4}", false)];
        for (text, good) in values.into_iter().chain(bad) {
            assert_eq!(LabelValue::new(text).is_ok(), good, "value {text:?}");
            assert_eq!(Zone::new(text).is_ok(), good && !text.is_empty(), "zone {text:?}");
            assert_eq!(Region::new(text).is_ok(), good && !text.is_empty(), "region {text:?}");
        }
    }

    #[test]
    fn what_was_taken_is_what_is_printed() {
        assert_eq!(LabelKey::new("a.io/b").unwrap().to_string(), "a.io/b");
        assert_eq!(LabelKey::new("a.io/b").unwrap().as_str(), "a.io/b");
        assert_eq!(LabelValue::new("v").unwrap().to_string(), "v");
        assert_eq!(LabelValue::new("v").unwrap().as_str(), "v");
        assert_eq!(
            (Zone::new("z").unwrap().to_string(), Zone::new("z").unwrap().as_str()),
            ("z".into(), "z")
        );
        assert_eq!(
            (Region::new("r").unwrap().to_string(), Region::new("r").unwrap().as_str()),
            ("r".into(), "r")
        );
        assert!(Zone::new("a b").unwrap_err().message().contains("zone"));
    }
}
