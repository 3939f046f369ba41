//! Suggestions for mistyped names.

/// The name to suggest for `key`, if a spelling is close enough to be what was meant.
///
/// `spellings` are pairs of a spelling and the name to suggest for it; of equally close ones the first counts. Close
/// enough is two letters, or a quarter of what follows `prefix` in long keys.
pub fn nearest(key: &str, prefix: &str, spellings: &[(&'static str, &'static str)]) -> Option<&'static str> {
    let tail = key.strip_prefix(prefix).unwrap_or(key);
    let slip = (tail.chars().count() / 4).max(2);
    spellings
        .iter()
        .map(|(spelling, name)| (strsim::osa_distance(key, spelling), *name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= slip)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_small_and_suggests_the_name() {
        let keys = [
            ("x.io/zone", "x.io/zone"),
            ("x.io/node", "x.io/node"),
            ("x.io/healthcheck-path", "x.io/health-check-path"),
            ("x.io/health-check-path", "x.io/health-check-path"),
        ];
        let table = [
            ("x.io/zoen", Some("x.io/zone")),
            ("x.io/zo", Some("x.io/zone")),
            ("x.io/zo-me", Some("x.io/zone")),
            ("x.io/z", None),
            ("x.io/none", Some("x.io/zone")),
            ("x.io/heathcheck-path", Some("x.io/health-check-path")),
            ("x.io/helthcheckpth", Some("x.io/health-check-path")),
            ("x.io/helthchkpth", None),
            ("x.io/something-else", None),
        ];
        for (key, want) in table {
            assert_eq!(nearest(key, "x.io/", &keys), want, "{key}");
        }
        assert_eq!(nearest("x.io/zone", "x.io/", &[]), None);
    }
}
