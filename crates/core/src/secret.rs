//! A token that cannot be printed (law 10).

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::error::{Error, Result};

/// A credential. Its `Debug` shows nothing of it, it has no `Display`, and its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// A credential from text; surrounding white space (the newline of a file) is dropped.
    ///
    /// An empty one, or one that cannot be sent in an HTTP header, is an error that does not show it.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::user_input("the token is empty"));
        }
        if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            return Err(Error::user_input(
                "the token contains characters that cannot be sent in an HTTP header",
            ));
        }
        Ok(Self(SecretString::from(text)))
    }

    /// The credential itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// `text` with every occurrence of the credential redacted.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        text.replace(self.expose(), "[redacted]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("s3cr3t\n").unwrap();
        assert_eq!(secret.expose(), "s3cr3t");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("s3cr3t").count(), 0, "L10-1");
        assert_eq!(format!("{secret:?}"), "Secret([redacted])", "L10-1 and that it is hidden is said");
        assert_eq!(secret.redact("Bearer s3cr3t, s3cr3t"), "Bearer [redacted], [redacted]", "L10-2");
        assert_eq!(secret, Secret::new("s3cr3t").unwrap());
        assert_ne!(secret, Secret::new("other").unwrap());
    }

    #[test]
    fn a_bad_secret_is_refused_without_showing_it() {
        for bad in ["", "  \n", "two\nlines", "na\u{ef}ve"] {
            let error = Secret::new(bad).unwrap_err();
            assert!(bad.trim().is_empty() || !error.message().contains(bad), "L10-3 {bad:?}");
        }
    }
}
