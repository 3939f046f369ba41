//! Durations as Go writes them: `5m0s`, `1h30m`, `-1.5s`.

use std::{fmt, time::Duration};

use super::value::Value;

/// A span of time, possibly negative, in whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(i64);

const SECOND: i64 = 1_000_000_000;

/// Longer spellings first where one begins with another.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
];

impl GoDuration {
    /// Whole seconds.
    pub const fn secs(seconds: i32) -> Self {
        Self(seconds as i64 * SECOND)
    }

    /// The same span as the standard library has it; `None` if it is negative.
    #[must_use]
    pub fn to_std(self) -> Option<Duration> {
        self.0.try_into().ok().map(Duration::from_nanos)
    }
}

impl From<Duration> for GoDuration {
    /// Spans of more than 292 years are shortened to that.
    fn from(span: Duration) -> Self {
        Self(span.as_nanos().try_into().unwrap_or(i64::MAX))
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        let second = SECOND.unsigned_abs();
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{sign}{nanos}ns"),
            1_000..1_000_000 => write!(f, "{sign}{}\u{b5}s", decimal(nanos, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{sign}{}ms", decimal(nanos, 1_000_000)),
            _ => {
                let (minutes, rest) = (nanos / (60 * second), nanos % (60 * second));
                f.write_str(sign)?;
                match (minutes / 60, minutes % 60) {
                    (0, 0) => {}
                    (0, minutes) => write!(f, "{minutes}m")?,
                    (hours, minutes) => write!(f, "{hours}h{minutes}m")?,
                }
                write!(f, "{}s", decimal(rest, second))
            }
        }
    }
}

/// `nanos` in units of `unit`, without trailing zeros.
fn decimal(nanos: u64, unit: u64) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", nanos / unit, nanos % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Value for GoDuration {
    const TYPE: &'static str = "duration";

    fn read(text: &str) -> Result<Self, String> {
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let wrong = || "it must be numbers with units, such as 90s, 5m or 1h30m".to_owned();
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(wrong());
        }
        let mut nanos: i128 = 0;
        while !rest.is_empty() {
            let (part, left) = part(rest).ok_or_else(wrong)?;
            nanos = nanos.checked_add(part).ok_or_else(wrong)?;
            rest = left;
        }
        i64::try_from(if negative { -nanos } else { nanos })
            .map(Self)
            .map_err(|_| "it is too long; the longest is 292 years".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// The nanoseconds of the first number with its unit, and what follows it.
fn part(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(end)?;
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let scale = i128::from(*scale);
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // More than 18 places are below a nanosecond of any unit.
    let fraction = fraction.get(..18).unwrap_or(fraction);
    let places = u32::try_from(fraction.len()).ok()?;
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let nanos = whole.checked_mul(scale)?.checked_add(part * scale / 10_i128.pow(places))?;
    Some((nanos, rest))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_shown_as_go_shows_it() {
        let table = [
            ("0", "0s"),
            ("0s", "0s"),
            ("5s", "5s"),
            ("90s", "1m30s"),
            ("5m", "5m0s"),
            ("12h", "12h0m0s"),
            ("1h30m", "1h30m0s"),
            ("1.5s", "1.5s"),
            (".5s", "500ms"),
            ("1.s", "1s"),
            ("0.1h", "6m0s"),
            ("100ms", "100ms"),
            ("1500us", "1.5ms"),
            ("7\u{b5}s", "7\u{b5}s"),
            ("7\u{3bc}s", "7\u{b5}s"),
            ("17ns", "17ns"),
            ("-1m", "-1m0s"),
            ("+2s", "2s"),
            ("1s1s", "2s"),
            ("2540400h10m10s", "2540400h10m10s"),
            ("0.100000000000000000000h", "6m0s"),
            ("9223372036854775807ns", "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
        ];
        for (text, want) in table {
            let got = GoDuration::read(text).unwrap();
            assert_eq!(got.show(), want, "{text}");
            assert_eq!(GoDuration::read(&got.show()), Ok(got), "{text}: what is shown can be read");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in
            ["", "5", "s", ".s", "-", "+", "5 s", "5d", "1m5", "1m 5s", "--5s", "5S", "\u{b5}s", "1e3s"]
        {
            assert_eq!(
                GoDuration::read(text).unwrap_err(),
                "it must be numbers with units, such as 90s, 5m or 1h30m",
                "{text:?}"
            );
        }
        for text in ["9223372036854775808ns", "3000000h", "-9223372036854775809ns"] {
            assert_eq!(GoDuration::read(text).unwrap_err(), "it is too long; the longest is 292 years");
        }
        let digits = "9".repeat(60);
        assert!(GoDuration::read(&format!("{digits}h")).is_err());
    }

    #[test]
    fn the_standard_library_knows_no_negative_span() {
        assert_eq!(GoDuration::secs(-1).to_std(), None);
        assert_eq!(GoDuration::secs(300).to_std(), Some(Duration::from_secs(300)));
        assert_eq!(GoDuration::from(Duration::from_millis(1_500)).show(), "1.5s");
        assert_eq!(GoDuration::from(Duration::MAX), GoDuration(i64::MAX));
    }
}
