//! Versions of charts, as far as it matters whether two are the same.

/// Three numbers, perhaps with `v` in front and something behind: all else is a range to Helm, or nothing.
pub(super) fn is_exact(version: &str) -> bool {
    let version = plain(version);
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let tail = version.get(numbers.len()..).unwrap_or_default();
    let parts: Vec<_> = numbers.split('.').collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let word = |b: u8| b.is_ascii_alphanumeric() || b"-+.".contains(&b);
    parts.len() == 3 && parts.iter().all(digits) && tail.len() != 1 && tail.bytes().all(word)
}

/// Whether two versions are one, ignoring a leading `v`, and `_` for `+` as registries have it in tags.
pub(super) fn same(a: &str, b: &str) -> bool {
    plain(a) == plain(b)
}

/// Whether two versions differ at most in what comes after `+`, which Helm ignores when it looks for a version.
pub(super) fn same_but_for_build(a: &str, b: &str) -> bool {
    let without = |version: &str| plain(version).split('+').next().map(str::to_owned);
    without(a) == without(b)
}

fn plain(version: &str) -> String {
    let version = version.trim();
    version.strip_prefix('v').unwrap_or(version).replace('_', "+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_numbers_are_exact() {
        let exact = ["0.15.2", "v0.15.2", "1.2.3-rc.1", "1.2.3+build.5", "1.2.3_build", " 1.2.3 "];
        let ranges = [
            "",
            "0.15",
            "1",
            "~0.15.0",
            "^1.2.3",
            ">=1.0.0",
            "1.2.x",
            "*",
            "1.2.3 - 2.0.0",
            "1.2.3.4",
            "1.2.3-",
            "1..3",
        ];
        for version in exact {
            assert!(is_exact(version), "RF-58 {version}");
        }
        for version in ranges {
            assert!(!is_exact(version), "RF-204 {version}");
        }
    }

    #[test]
    fn one_version_in_several_spellings() {
        for (a, b, want) in [
            ("0.2.0", "v0.2.0", true),
            ("1.2.3+b", "1.2.3_b", true),
            ("1.2.3", "1.2.3+b", false),
            ("1.2.3", "1.2.30", false),
        ] {
            assert_eq!(same(a, b), want, "{a} {b}");
        }
        assert!(same_but_for_build("1.2.3", "v1.2.3+b") && !same_but_for_build("1.2.3", "1.2.4+b"));
    }
}
