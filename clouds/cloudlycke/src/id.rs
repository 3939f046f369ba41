//! Provider ids: `cloudlycke://n-c2-1`.

use cloudberth_core::{ProviderId, Result, provider_id::Reading};

/// The scheme of provider ids, and what the cloud is called.
pub(crate) const SCHEME: &str = "cloudlycke";

/// Reads a node's provider id. What begins like one of ours and is not one is malformed, such as the scheme written
/// twice, which an earlier program did.
pub fn read_id(text: &str) -> Reading {
    let ours = text.get(..=SCHEME.len()).is_some_and(|start| {
        start.strip_suffix(':').is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
    });
    if !ours {
        return Reading::Foreign;
    }
    let id = text.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("://"));
    let id = id.filter(|id| is_machine_id(id)).and_then(|id| provider_id(id).ok());
    id.map_or(Reading::Malformed, Reading::Mine)
}

/// What an inventory takes as the id of a machine.
fn is_machine_id(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !text.is_empty() && text.bytes().all(plain) && !matches!(text, "." | "..")
}

/// The id that the node of a machine gets: with the scheme, once.
pub(crate) fn provider_id(machine: &str) -> Result<ProviderId> {
    ProviderId::new(SCHEME, machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_ours_malformed_or_foreign() {
        let mine = |id: &str| Reading::Mine(provider_id(id).unwrap());
        let table = [
            ("CL-1", "cloudlycke://n-c2-1", mine("n-c2-1")),
            ("CL-2", "cloudlycke://m-c2-1", mine("m-c2-1")),
            ("CL-7", "kind://x", Reading::Foreign),
            ("CL-7", "k3s://k3d-a-server-0", Reading::Foreign),
            ("CL-7", "", Reading::Foreign),
            ("", "cloudlyckes://x", Reading::Foreign),
            ("CL-4 twice", "cloudlycke://cloudlycke://n-c2-1", Reading::Malformed),
            ("", "cloudlycke://", Reading::Malformed),
            ("", "cloudlycke:///n-c2-1", Reading::Malformed),
            ("", "Cloudlycke://n-c2-1", Reading::Malformed),
            ("", "cloudlycke:n-c2-1", Reading::Malformed),
            ("", "cloudlycke://..", Reading::Malformed),
        ];
        for (case, text, want) in table {
            assert_eq!(read_id(text), want, "{case} {text}");
        }
        assert_eq!(provider_id("n-c2-1").unwrap().to_string(), "cloudlycke://n-c2-1", "CL-4");
    }
}
