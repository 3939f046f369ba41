//! Durations as the inventory spells them.

use std::time::Duration;

/// A number with `ms`, `s`, `m` or `h`.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration: a whole number with ms, s, m or h, such as 30s");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    // A year is longer than anything here, and far from where arithmetic on times overflows.
    let year = 365 * 24 * 3_600_000;
    let millis = number.checked_mul(millis).filter(|millis| *millis <= year);
    millis.map(Duration::from_millis).ok_or_else(|| format!("{text:?} is longer than a year"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        let table = [
            ("250ms", Some(250)),
            ("30s", Some(30_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("0s", Some(0)),
            ("30", None),
            ("s", None),
            ("", None),
            ("-3s", None),
            ("1.5s", None),
            ("3 s", None),
            ("3d", None),
            ("99999999999999999999s", None),
            ("8761h", None),
        ];
        for (text, want) in table {
            assert_eq!(parse(text).ok(), want.map(Duration::from_millis), "{text}");
        }
        assert!(parse("soon").unwrap_err().contains("\"soon\""));
    }
}
