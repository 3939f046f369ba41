//! Timestamps in the forms of the API.

use jiff::Timestamp;

/// `metav1.Time`: whole seconds, UTC.
pub(crate) fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `metav1.MicroTime`: microseconds, UTC.
pub(crate) fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Any RFC 3339 time.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// A time with exactly six digits of a second; the error is Go's.
pub(crate) fn parse_micros(text: &str) -> Result<Timestamp, String> {
    let layout = "2006-01-02T15:04:05.000000Z07:00";
    let refuse = |rest: &str, wanted: &str| {
        Err(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {wanted:?}"))
    };
    let Some(at) = parse(text) else { return refuse(text, "2006") };
    let rest = text.get(19..).unwrap_or_default();
    let digits = rest.strip_prefix('.').map_or(0, |d| d.bytes().take_while(u8::is_ascii_digit).count());
    match digits {
        6 => Ok(at),
        7.. => refuse(rest.get(7..).unwrap_or_default(), "Z07:00"),
        _ => refuse(rest, ".000000"),
    }
}

/// How long ago, as `kubectl get` shows it: two units at most, coarser with age.
pub(crate) fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(at.as_second());
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    if seconds < 0 {
        return "0s".to_owned();
    }
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_people_know_them() {
        let table = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (7_200, "120m"),
            (10_800, "3h"),
            (11_400, "3h10m"),
            (90_000, "25h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (64_022_400, "2y11d"),
            (315_360_000, "10y"),
            (-1, "0s"),
            (-5, "<invalid>"),
        ];
        for (seconds, want) in table {
            let now = Timestamp::from_second(1_700_000_000).unwrap();
            let at = Timestamp::from_second(1_700_000_000 - seconds).unwrap();
            assert_eq!(age(at, now), want, "{seconds}");
        }
    }

    #[test]
    fn micro_times_have_six_digits() {
        let table = [
            ("2026-01-01T00:00:00.000000Z", ""),
            ("2026-01-01T01:00:00.123456+01:00", ""),
            ("2026-01-01T00:00:00Z", "cannot parse \"Z\" as \".000000\""),
            ("2026-01-01T00:00:00.5Z", "cannot parse \".5Z\" as \".000000\""),
            ("2026-01-01T00:00:00.1234567Z", "cannot parse \"7Z\" as \"Z07:00\""),
            ("soon", "cannot parse \"soon\" as \"2006\""),
        ];
        for (text, want) in table {
            let found = parse_micros(text).err().unwrap_or_default();
            assert!(
                if want.is_empty() { found.is_empty() } else { found.ends_with(want) },
                "{text}: {found}"
            );
        }
    }

    #[test]
    fn the_two_printed_forms() {
        let at = parse("2024-05-06T07:08:09.123456789+02:00").unwrap();
        assert_eq!(seconds(at), "2024-05-06T05:08:09Z");
        assert_eq!(micros(at), "2024-05-06T05:08:09.123456Z");
    }
}
