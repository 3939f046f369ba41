//! Happenings as lines.

use cloudberth::world::{Entry, Happening};

/// A happening as a line, with the seconds since the start.
pub(super) fn line(entry: &Entry) -> String {
    let seconds = format!("{}.{}", entry.at_ms / 1000, entry.at_ms % 1000 / 100);
    format!("{seconds:>7} s  {}", words(&entry.what))
}

fn words(what: &Happening) -> String {
    let status =
        |status: &Option<u16>| status.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
    match what {
        Happening::Event { object, reason, message, warning } => {
            let level = if *warning { "Warning" } else { "Normal" };
            format!("event   {level} {reason} of {object}: {message}")
        }
        Happening::CloudCall { method, path, status: code, ms, .. } => {
            format!("cloud   {method} {path}: {} in {ms} ms", status(code))
        }
        Happening::Decision { object, label, impact } if impact.is_empty() => {
            format!("decided {object}: {label}")
        }
        Happening::Decision { object, label, impact } => {
            format!("decided {object}: {label} (impact on traffic: {impact})")
        }
        Happening::KubeWrite { verb, object, status: code } => {
            format!("wrote   {verb} {object}: {}", status(code))
        }
        Happening::Deed { what } => format!("done    {what}"),
    }
}

/// Whether somebody who reads along wants to know: the cloud is asked every second, and that is only news when it fails.
pub(super) fn is_news(entry: &Entry) -> bool {
    match &entry.what {
        Happening::CloudCall { status, change, .. } => *change || status.is_none_or(|code| code >= 400),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(what: Happening) -> Entry {
        Entry { seq: 1, at_ms: 12_345, what }
    }

    fn call(status: Option<u16>, change: bool) -> Entry {
        let (method, path) = ("GET".to_owned(), "/v1/machines".to_owned());
        entry(Happening::CloudCall { method, path, status, ms: 3, change })
    }

    #[test]
    fn a_happening_is_a_line() {
        assert_eq!(line(&call(Some(200), false)), "   12.3 s  cloud   GET /v1/machines: 200 in 3 ms");
        assert_eq!(line(&call(None, false)), "   12.3 s  cloud   GET /v1/machines: no answer in 3 ms");
        let decided = |impact: &str| {
            let (object, label) = ("service/default/web".to_owned(), "create it".to_owned());
            line(&entry(Happening::Decision { object, label, impact: impact.to_owned() }))
        };
        assert!(decided("minimal").ends_with("service/default/web: create it (impact on traffic: minimal)"));
        assert!(decided("").ends_with("service/default/web: create it"));
    }

    #[test]
    fn what_happens_every_second_is_no_news() {
        let table = [
            (Some(200), false, false),
            (Some(200), true, true),
            (Some(500), false, true),
            (None, false, true),
        ];
        for (status, change, want) in table {
            assert_eq!(is_news(&call(status, change)), want, "{status:?} {change}");
        }
    }
}
