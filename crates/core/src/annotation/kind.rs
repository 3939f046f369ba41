//! Kinds of values: how a text is read, and what a good text looks like.

use std::fmt;

use ipnet::IpNet;

use super::shape::Shape;
use crate::net;

/// A way to read the text of an annotation.
///
/// Reading is pure: the same text gives the same answer, and no text panics.
pub trait Kind: fmt::Debug + Sync {
    /// What a good text becomes.
    type Value: PartialEq;

    /// What a good text is, in words that complete "it is not …" and stand alone in the documentation.
    fn expects(&self) -> String;

    /// Reads a text. The error adds what is wrong in particular; empty when [`expects`](Self::expects) says it all.
    fn read(&self, text: &str) -> Result<Self::Value, String>;

    /// What good texts look like to somebody who cannot [`read`](Self::read); never narrower than that.
    fn shape(&self) -> Shape {
        Shape::Any
    }
}

/// Any text at all.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Kind for Text {
    type Value = String;

    fn expects(&self) -> String {
        "text".to_owned()
    }

    fn read(&self, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }
}

/// A text of a certain form.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    what: &'static str,
    fits: fn(&str) -> bool,
}

impl Pattern {
    /// A text for which `fits` says yes; `what` completes "it is not …".
    pub const fn new(what: &'static str, fits: fn(&str) -> bool) -> Self {
        Self { what, fits }
    }
}

impl Kind for Pattern {
    type Value = String;

    fn expects(&self) -> String {
        self.what.to_owned()
    }

    fn read(&self, text: &str) -> Result<String, String> {
        if (self.fits)(text) { Ok(text.to_owned()) } else { Err(String::new()) }
    }
}

/// A value that a function of the provider reads: selectors, ids, anything with a grammar of its own.
#[derive(Clone, Copy, Debug)]
pub struct By<T> {
    what: &'static str,
    read: fn(&str) -> Result<T, String>,
}

impl<T> By<T> {
    /// A value that `read` makes; `what` completes "it is not …".
    pub const fn new(what: &'static str, read: fn(&str) -> Result<T, String>) -> Self {
        Self { what, read }
    }
}

impl<T: fmt::Debug + PartialEq> Kind for By<T> {
    type Value = T;

    fn expects(&self) -> String {
        self.what.to_owned()
    }

    fn read(&self, text: &str) -> Result<T, String> {
        (self.read)(text)
    }
}

/// A whole number: an optional sign and decimal digits, nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Int {
    min: i64,
    max: i64,
}

impl Int {
    /// Whatever fits into 64 bits.
    pub const ANY: Self = Self::between(i64::MIN, i64::MAX);

    /// From `min` to `max`, both included.
    pub const fn between(min: i64, max: i64) -> Self {
        Self { min, max }
    }
}

impl Kind for Int {
    type Value = i64;

    fn expects(&self) -> String {
        if (self.min, self.max) == (i64::MIN, i64::MAX) {
            "a whole number".to_owned()
        } else {
            format!("a whole number from {} to {}", self.min, self.max)
        }
    }

    fn read(&self, text: &str) -> Result<i64, String> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        all_digits(digits)?;
        in_range(text.parse().ok(), self.min, self.max)
    }

    fn shape(&self) -> Shape {
        Shape::Number { min: self.min, max: self.max, signed: true }
    }
}

/// A number without a sign, of 32 bits at most: decimal digits, nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned {
    min: u32,
    max: u32,
}

impl Unsigned {
    /// Whatever fits into 32 bits.
    pub const ANY: Self = Self::between(0, u32::MAX);

    /// From `min` to `max`, both included.
    pub const fn between(min: u32, max: u32) -> Self {
        Self { min, max }
    }
}

impl Kind for Unsigned {
    type Value = u32;

    fn expects(&self) -> String {
        format!("a number from {} to {}, digits only", self.min, self.max)
    }

    fn read(&self, text: &str) -> Result<u32, String> {
        all_digits(text)?;
        in_range(text.parse().ok(), self.min, self.max)
    }

    fn shape(&self) -> Shape {
        Shape::Number { min: self.min.into(), max: self.max.into(), signed: false }
    }
}

fn all_digits(text: &str) -> Result<(), String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        Ok(())
    } else {
        Err("not a number".to_owned())
    }
}

/// Digits that do not fit into the type are as much out of range as ones that do and are too large.
fn in_range<N: PartialOrd>(number: Option<N>, min: N, max: N) -> Result<N, String> {
    number.filter(|n| (min..=max).contains(n)).ok_or_else(|| "out of range".to_owned())
}

/// One word of a list.
#[derive(Clone, Copy, Debug)]
pub struct OneOf<T: 'static> {
    choices: &'static [(&'static str, T)],
    any_case: bool,
}

impl<T> OneOf<T> {
    /// The word must be written as it stands in the list.
    pub const fn exact(choices: &'static [(&'static str, T)]) -> Self {
        Self { choices, any_case: false }
    }

    /// Capital and small ASCII letters are the same.
    pub const fn any_case(choices: &'static [(&'static str, T)]) -> Self {
        Self { choices, any_case: true }
    }
}

impl<T: Copy + fmt::Debug + PartialEq + Sync> Kind for OneOf<T> {
    type Value = T;

    fn expects(&self) -> String {
        let words: Vec<_> = self.choices.iter().map(|(word, _)| *word).collect();
        let case = if self.any_case { " (in any case)" } else { "" };
        format!("one of {}{case}", words.join(", "))
    }

    fn read(&self, text: &str) -> Result<T, String> {
        let same = |word: &str| if self.any_case { word.eq_ignore_ascii_case(text) } else { word == text };
        self.choices.iter().find(|(word, _)| same(word)).map(|(_, value)| *value).ok_or_else(String::new)
    }

    fn shape(&self) -> Shape {
        let words = self.choices.iter().map(|(word, _)| *word).collect();
        Shape::Word { words, any_case: self.any_case }
    }
}

/// A network; host bits are masked away, as Kubernetes does.
#[derive(Clone, Copy, Debug)]
pub struct Cidr;

impl Kind for Cidr {
    type Value = IpNet;

    fn expects(&self) -> String {
        "a network such as 10.0.0.0/8".to_owned()
    }

    fn read(&self, text: &str) -> Result<IpNet, String> {
        net::parse_cidr(text).ok_or_else(String::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_a_sign_and_digits_within_their_range() {
        let range = Err("out of range".to_owned());
        let syntax = Err("not a number".to_owned());
        let table = [
            (Int::ANY, "1", Ok(1)),
            (Int::ANY, "+1", Ok(1)),
            (Int::ANY, "-1", Ok(-1)),
            (Int::ANY, "007", Ok(7)),
            (Int::ANY, "9223372036854775807", Ok(i64::MAX)),
            (Int::ANY, "-9223372036854775808", Ok(i64::MIN)),
            (Int::ANY, "9223372036854775808", range.clone()),
            (Int::ANY, "", syntax.clone()),
            (Int::ANY, "+", syntax.clone()),
            (Int::ANY, "+-1", syntax.clone()),
            (Int::ANY, " 1", syntax.clone()),
            (Int::ANY, "1.5", syntax.clone()),
            (Int::ANY, "a", syntax.clone()),
            (Int::between(0, 10), "0", Ok(0)),
            (Int::between(0, 10), "10", Ok(10)),
            (Int::between(0, 10), "11", range.clone()),
            (Int::between(0, 10), "-1", range),
        ];
        for (kind, text, want) in table {
            assert_eq!(kind.read(text), want, "{text:?}");
        }
        assert_eq!(Int::ANY.expects(), "a whole number");
        assert_eq!(Int::between(0, i64::MAX).expects(), "a whole number from 0 to 9223372036854775807");
        assert_eq!(Int::between(1, 9).expects(), "a whole number from 1 to 9");
    }

    #[test]
    fn unsigned_numbers_are_digits_within_their_range() {
        let range = Err("out of range".to_owned());
        let syntax = Err("not a number".to_owned());
        let table = [
            (Unsigned::ANY, "0", Ok(0)),
            (Unsigned::ANY, "4294967295", Ok(u32::MAX)),
            (Unsigned::ANY, "4294967296", range.clone()),
            (Unsigned::ANY, "+1", syntax.clone()),
            (Unsigned::ANY, "-1", syntax.clone()),
            (Unsigned::ANY, "0x10", syntax.clone()),
            (Unsigned::ANY, "1 ", syntax.clone()),
            (Unsigned::ANY, "", syntax),
            (Unsigned::between(5, 9), "5", Ok(5)),
            (Unsigned::between(5, 9), "9", Ok(9)),
            (Unsigned::between(5, 9), "4", range.clone()),
            (Unsigned::between(5, 9), "10", range),
        ];
        for (kind, text, want) in table {
            assert_eq!(kind.read(text), want, "{text:?}");
        }
        assert_eq!(Unsigned::ANY.expects(), "a number from 0 to 4294967295, digits only");
    }

    #[test]
    fn words_are_matched_as_their_list_says() {
        const WORDS: &[(&str, u8)] = &[("tcp", 1), ("http", 2)];
        let table = [
            (OneOf::exact(WORDS), "tcp", Some(1)),
            (OneOf::exact(WORDS), "http", Some(2)),
            (OneOf::exact(WORDS), "TCP", None),
            (OneOf::exact(WORDS), "", None),
            (OneOf::any_case(WORDS), "TCP", Some(1)),
            (OneOf::any_case(WORDS), "tcp", Some(1)),
            (OneOf::any_case(WORDS), "tcp ", None),
        ];
        for (kind, text, want) in table {
            assert_eq!(kind.read(text).ok(), want, "{kind:?} {text:?}");
        }
        assert_eq!(OneOf::exact(WORDS).expects(), "one of tcp, http");
        assert_eq!(OneOf::any_case(WORDS).expects(), "one of tcp, http (in any case)");
    }

    #[test]
    fn texts_patterns_functions_and_networks_say_what_they_expect() {
        let slug = Pattern::new("a slug", |text| !text.is_empty());
        assert_eq!((slug.read("a").ok(), slug.read("").err()), (Some("a".into()), Some(String::new())));
        assert_eq!(slug.expects(), "a slug");
        let half = By::new("an even number", |text| match text.parse::<u8>() {
            Ok(n) if n % 2 == 0 => Ok(n / 2),
            _ => Err("odd".to_owned()),
        });
        assert_eq!((half.read("8"), half.read("7")), (Ok(4), Err("odd".to_owned())));
        assert_eq!(half.expects(), "an even number");
        assert_eq!((Text.read(" a ").unwrap(), Text.expects()), (" a ".to_owned(), "text".to_owned()));
        assert_eq!(Cidr.read("10.1.2.3/8"), Ok("10.0.0.0/8".parse().unwrap()));
        assert_eq!((Cidr.read("10.1.2.3").is_err(), Cidr.expects().contains("10.0.0.0/8")), (true, true));
    }
}
