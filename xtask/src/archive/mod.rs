//! Archives that are the same bytes for the same content: images, charts and releases are written through here.
//!
//! Nothing of the surroundings gets in: no time, no owner, no order of a directory.

mod tar;

use std::fmt;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::Result;
pub(crate) use tar::{Content, Entry, Tree, pack, unpack};

/// The SHA-256 of some bytes, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Sha256(String);

impl Sha256 {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut hex = String::with_capacity(64);
        for byte in digest(&SHA256, bytes).as_ref() {
            let _ = fmt::Write::write_fmt(&mut hex, format_args!("{byte:02x}"));
        }
        Self(hex)
    }

    pub(crate) fn of_file(path: &Path) -> Result<Self> {
        Ok(Self::of(&read(path)?))
    }

    pub(crate) fn hex(&self) -> &str {
        &self.0
    }

    /// Takes what is written as `sha256:…`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let good = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        good.then(|| Self(hex.to_owned()))
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// Without a time and without a name in its header.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|why| format!("cannot compress: {why}"))
}

pub(crate) fn gunzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).map_err(|why| format!("cannot decompress: {why}"))?;
    Ok(plain)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|why| format!("{}: {why}", path.display()))
}

/// Writes a file, and the directories above it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |why| format!("{}: {why}", path.display());
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, bytes).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_one_that_everybody_computes() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256::of(b"").to_string(), empty);
        assert_eq!(Sha256::parse(empty), Some(Sha256::of(b"")));
        for bad in ["", "sha256:", "sha512:00", "sha256:E3B0", &empty.to_uppercase(), &format!("{empty}0")] {
            assert_eq!(Sha256::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn gzip_holds_no_time_and_comes_back() {
        let packed = gzip(b"text text text").unwrap();
        assert_eq!(packed.get(4..8), Some(&[0; 4][..]), "the time in the header");
        assert_eq!(gunzip(&packed).unwrap(), b"text text text");
        assert!(gunzip(b"no gzip").is_err());
    }
}
