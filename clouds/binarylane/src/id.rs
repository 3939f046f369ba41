//! Provider ids: `binarylane://123`, and `binarylane:///123`, which another controller writes.

use cloudberth_core::{ProviderId, Result, provider_id::Reading};

/// The scheme of provider ids, and what the cloud is called.
pub(crate) const SCHEME: &str = "binarylane";

/// The number of a server as ids hold it: decimal digits, no sign, no leading zero, at most what fits.
pub(crate) fn parse_number(text: &str) -> Option<i64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    digits.then(|| text.parse().ok())?
}

/// Reads a node's provider id. Both spellings are the same id; whatever else begins like one of ours is malformed.
pub fn read_id(text: &str) -> Reading {
    let ours = text.get(..=SCHEME.len()).is_some_and(|start| {
        start.strip_suffix(':').is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
    });
    if !ours {
        return Reading::Foreign;
    }
    let number = text.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("://"));
    let number = number.map(|rest| rest.strip_prefix('/').unwrap_or(rest)).and_then(parse_number);
    number.and_then(|number| provider_id(number).ok()).map_or(Reading::Malformed, Reading::Mine)
}

/// The id that nodes get.
pub(crate) fn provider_id(server: i64) -> Result<ProviderId> {
    ProviderId::new(SCHEME, &server.to_string())
}

/// The server that an id of ours names.
pub(crate) fn server_number(id: &ProviderId) -> Option<i64> {
    match read_id(&id.to_string()) {
        Reading::Mine(id) => parse_number(id.id()),
        Reading::Malformed | Reading::Foreign => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_ours_malformed_or_foreign() {
        let mine = |number: i64| Reading::Mine(provider_id(number).unwrap());
        let table = [
            ("BL-12", "binarylane://123", mine(123)),
            ("BL-13", "binarylane:///123", mine(123)),
            ("BL-12 the largest", "binarylane://9223372036854775807", mine(i64::MAX)),
            ("BL-14", "invalid://123", Reading::Foreign),
            ("BL-14", "hcloud://7", Reading::Foreign),
            ("BL-14", "k3s://node-1", Reading::Foreign),
            ("BL-14", "binarylanes://1", Reading::Foreign),
            ("BL-14", "binarylane", Reading::Foreign),
            ("BL-14", "", Reading::Foreign),
            ("BL-15", "binarylane://", Reading::Malformed),
            ("BL-15", "binarylane:///", Reading::Malformed),
            ("BL-15", "binarylane://abc", Reading::Malformed),
            ("BL-15", "binarylane://12x", Reading::Malformed),
            ("BL-15", "binarylane:// 12", Reading::Malformed),
            ("BL-16", "binarylane://-5", Reading::Malformed),
            ("BL-16", "binarylane://+5", Reading::Malformed),
            ("BL-16", "binarylane://0", Reading::Malformed),
            ("BL-16", "binarylane://9223372036854775808", Reading::Malformed),
            ("BL-16", "binarylane://12345678901234567890", Reading::Malformed),
            ("BL-143", "binarylane://0123", Reading::Malformed),
            ("BL-143", "binarylane:/123", Reading::Malformed),
            ("BL-143", "binarylane:123", Reading::Malformed),
            ("BL-143", "BinaryLane://123", Reading::Malformed),
            ("BL-143", "binarylane://syd/123", Reading::Malformed),
            ("BL-143", "binarylane:////123", Reading::Malformed),
        ];
        for (case, text, want) in table {
            assert_eq!(read_id(text), want, "{case} {text}");
        }
    }

    #[test]
    fn the_number_of_an_id_is_the_servers() {
        let id: ProviderId = "binarylane:///77".parse().unwrap();
        assert_eq!(server_number(&id), Some(77), "BL-13");
        assert_eq!(server_number(&"other://77".parse().unwrap()), None, "BL-14");
        assert_eq!(provider_id(77).unwrap().to_string(), "binarylane://77", "BL-17");
    }
}
