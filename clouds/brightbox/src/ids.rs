//! The cloud's ids, the provider ids made of them, and the regions in the names of zones.

use cloudberth_core::{ProviderId, provider_id::Reading};

/// The scheme of provider ids, and the name of the provider.
pub const SCHEME: &str = "brightbox";

/// The scheme under which k3s registers nodes by itself.
const K3S: &str = "k3s";

/// Reads a node's provider id. Without a scheme it is the id of a server, as the replaced program takes it; with a foreign
/// one it is somebody else's, and nothing is asked about it. `k3s` says whether ids that k3s wrote are ours.
pub fn read_id(text: &str, k3s: bool) -> Reading {
    let text = text.trim();
    let id = match text.split_once("://") {
        None => text,
        Some((SCHEME, id)) => id,
        Some((K3S, id)) if k3s => id.strip_prefix('/').unwrap_or(id),
        Some(_) => return Reading::Foreign,
    };
    server_id(id).map_or(Reading::Malformed, Reading::Mine)
}

/// The provider id of a server, if `id` can be an id at all: it becomes a part of a path.
pub fn server_id(id: &str) -> Option<ProviderId> {
    let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    ProviderId::new(SCHEME, id).ok().filter(|_| plain)
}

/// The region that a zone is in: its handle up to the last dash.
pub fn region(zone: &str) -> Option<&str> {
    zone.rsplit_once('-').map(|(region, _)| region).filter(|region| !region.is_empty())
}

/// Whether a text has the form of a Cloud IP's id.
pub fn is_cloud_ip_id(text: &str) -> bool {
    let good = |b: u8| b.is_ascii_digit() || b.is_ascii_lowercase();
    text.strip_prefix("cip-").is_some_and(|rest| rest.len() >= 5 && rest.bytes().all(good))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_ids_are_read_as_they_always_were_and_foreign_ones_never() {
        let mine = |id: &str| Reading::Mine(ProviderId::new(SCHEME, id).unwrap());
        let table = [
            ("BB-24 bare", "srv-testy", false, mine("srv-testy")),
            ("BB-24 with the prefix", "brightbox://srv-testy", false, mine("srv-testy")),
            ("BB-26", "brightbox://server789", false, mine("server789")),
            ("blanks around", " brightbox://srv-testy\n", false, mine("srv-testy")),
            ("BB-32 BB-166", "aws:///i-1", false, Reading::Foreign),
            ("BB-32", "openstack://srv-testy", true, Reading::Foreign),
            ("BB-166 nothing behind the prefix", "brightbox://", false, Reading::Malformed),
            ("no id", "", false, Reading::Malformed),
            ("a path", "brightbox://../accounts", false, Reading::Malformed),
            ("BB-167 without the switch", "k3s://server789", false, Reading::Foreign),
            ("BB-167 with it", "k3s://server789", true, mine("server789")),
            ("BB-167 a slash more", "k3s:///server789", true, mine("server789")),
        ];
        for (case, text, k3s, want) in table {
            assert_eq!(read_id(text, k3s), want, "{case}");
        }
        assert_eq!(server_id("srv-testy").unwrap().to_string(), "brightbox://srv-testy", "BB-25");
    }

    #[test]
    fn a_region_is_what_stands_before_the_last_dash() {
        let table = [
            ("BB-27", "gb1s-a", Some("gb1s")),
            ("BB-27", "gb1-b", Some("gb1")),
            ("BB-27", "fred", None),
            ("two dashes", "gb-1-b", Some("gb-1")),
            ("nothing before it", "-a", None),
        ];
        for (case, zone, want) in table {
            assert_eq!(region(zone), want, "{case} {zone}");
        }
    }

    #[test]
    fn ids_of_cloud_ips_have_a_form() {
        for (text, good) in [
            ("cip-q4t9z", true),
            ("cip-q4t9z0", true),
            ("cip-123-45", false),
            ("cip-q4t9", false),
            ("CIP-q4t9z", false),
            ("", false),
        ] {
            assert_eq!(is_cloud_ip_id(text), good, "BB-81 {text:?}");
        }
    }
}
