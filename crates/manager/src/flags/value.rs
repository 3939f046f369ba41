//! What the text of a flag is read as, and how it is shown again.

use std::net::IpAddr;

/// A type that a flag can have.
///
/// Reading and showing follow Go's conventions, because manifests, dashboards and habits do.
pub trait Value: Sized + Clone {
    /// The name of the type in `--help`; nothing for a switch, which needs no value.
    const TYPE: &'static str;

    /// What the flag means when it stands alone. `None`: a value has to follow.
    const ALONE: Option<&'static str> = None;

    /// Reads one value. The error says what is expected instead.
    fn read(text: &str) -> Result<Self, String>;

    /// Takes a further value of a flag that was given before. Most flags keep the last one only.
    fn again(&mut self, next: Self) {
        *self = next;
    }

    /// The value as Go's flag library shows it.
    fn show(&self) -> String;

    /// The value as `--help` shows a default; nothing where the default says nothing.
    fn show_default(&self) -> Option<String> {
        let text = self.show();
        (!matches!(text.as_str(), "" | "0" | "0s" | "false" | "[]")).then_some(text)
    }
}

pub(crate) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

impl Value for bool {
    const TYPE: &'static str = "";
    const ALONE: Option<&'static str> = Some("true");

    fn read(text: &str) -> Result<Self, String> {
        truth(text).ok_or_else(|| "it must be true or false".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    const TYPE: &'static str = "string";

    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }

    fn show_default(&self) -> Option<String> {
        (!self.is_empty()).then(|| format!("{self:?}"))
    }
}

impl Value for i32 {
    const TYPE: &'static str = "int32";

    fn read(text: &str) -> Result<Self, String> {
        integer(text)
            .and_then(|number| number.try_into().ok())
            .ok_or_else(|| format!("it must be a whole number from {} to {}", Self::MIN, Self::MAX))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for i64 {
    const TYPE: &'static str = "int";

    fn read(text: &str) -> Result<Self, String> {
        integer(text)
            .and_then(|number| number.try_into().ok())
            .ok_or_else(|| "it must be a whole number".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// A whole number as Go writes it in source: decimal, `0x`, `0o` or `0`, `0b`, with `_` between digits.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    let after_prefix = radix != 10;
    let misplaced =
        digits.ends_with('_') || digits.contains("__") || (!after_prefix && digits.starts_with('_'));
    if misplaced || digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -number } else { number })
}

impl Value for f32 {
    const TYPE: &'static str = "float32";

    fn read(text: &str) -> Result<Self, String> {
        let number: Option<Self> = text.parse().ok();
        number
            .filter(|number| !number.is_nan())
            .ok_or_else(|| "it must be a number, such as 20 or 7.5".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for IpAddr {
    const TYPE: &'static str = "ip";

    fn read(text: &str) -> Result<Self, String> {
        text.trim().parse().map_err(|_| "it must be an IP address, such as 0.0.0.0 or ::".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_is_spelled_as_in_go() {
        for yes in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(bool::read(yes), Ok(true), "{yes}");
        }
        for no in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(bool::read(no), Ok(false), "{no}");
        }
        for neither in ["", "yes", "no", "tRUE", "2", " true"] {
            assert_eq!(bool::read(neither), Err("it must be true or false".to_owned()), "{neither}");
        }
    }

    #[test]
    fn whole_numbers_are_written_as_in_go() {
        let table = [
            ("0", Some(0)),
            ("10", Some(10)),
            ("+7", Some(7)),
            ("-5", Some(-5)),
            ("0x1F", Some(31)),
            ("0b101", Some(5)),
            ("0o17", Some(15)),
            ("017", Some(15)),
            ("1_000", Some(1_000)),
            ("0x_ff", Some(255)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("-2147483648", Some(i32::MIN)),
            ("_1", None),
            ("1_", None),
            ("1__0", None),
            ("08", None),
            ("--5", None),
            ("0x-5", None),
            ("0x", None),
            ("", None),
            ("ten", None),
            ("1.0", None),
            ("99999999999999999999999999999999999999999999", None),
        ];
        for (text, want) in table {
            assert_eq!(i32::read(text).ok(), want, "{text:?}");
        }
        assert_eq!(i64::read("2147483648"), Ok(2_147_483_648));
        assert_eq!(i64::read("9223372036854775808").ok(), None);
        assert_eq!(i32::read("x").unwrap_err(), "it must be a whole number from -2147483648 to 2147483647");
    }

    #[test]
    fn other_numbers_and_addresses() {
        assert_eq!(f32::read("20").map(|n| n.show()), Ok("20".to_owned()));
        assert_eq!(f32::read("7.5e1").map(|n| n.show()), Ok("75".to_owned()));
        assert!(f32::read("NaN").is_err() && f32::read("").is_err() && f32::read("much").is_err());
        assert_eq!(IpAddr::read(" ::1 ").map(|ip| ip.show()), Ok("::1".to_owned()));
        assert!(IpAddr::read("localhost").is_err() && IpAddr::read("").is_err());
    }

    #[test]
    fn a_default_that_says_nothing_is_not_shown() {
        assert_eq!(false.show_default(), None);
        assert_eq!(true.show_default().as_deref(), Some("true"));
        assert_eq!(0_i32.show_default(), None);
        assert_eq!(30_i32.show_default().as_deref(), Some("30"));
        assert_eq!(String::new().show_default(), None);
        assert_eq!("text".to_owned().show_default().as_deref(), Some("\"text\""));
    }
}
