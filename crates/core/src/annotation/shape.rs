//! What good values look like, for rules outside of this program, such as the policies in `deploy/admission`.

/// The form of a kind's good texts, as far as it can be told without the program.
///
/// It is never narrower than [`Kind::read`](super::Kind::read): a text that it does not admit is refused by the kind too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing can be told.
    Any,
    /// One of these words.
    Word {
        /// The words.
        words: Vec<&'static str>,
        /// Capital and small ASCII letters are the same.
        any_case: bool,
    },
    /// Decimal digits.
    Number {
        /// The smallest good number.
        min: i64,
        /// The largest good number.
        max: i64,
        /// A sign may stand before them.
        signed: bool,
    },
    /// A list in square brackets, `null` or nothing, with blanks around it.
    JsonList,
}

impl Shape {
    /// Whether a text has this form.
    #[must_use]
    pub fn admits(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Word { words, any_case: true } => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
            Self::Word { words, any_case: false } => words.contains(&text),
            Self::Number { min, max, signed } => {
                let digits = if *signed { text.strip_prefix(['+', '-']).unwrap_or(text) } else { text };
                let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                let within =
                    text.parse().map_or(self.admits_huge(), |number| (*min..=*max).contains(&number));
                plain && within
            }
            Self::JsonList => {
                let text = text.trim_matches([' ', '\t', '\r', '\n']);
                text.is_empty() || text == "null" || (text.starts_with('[') && text.ends_with(']'))
            }
        }
    }

    /// Whether numbers of more than 18 digits may be good: a rule that computes with 64 bits cannot compare them.
    #[must_use]
    pub const fn admits_huge(&self) -> bool {
        const HUGE: i64 = 1_000_000_000_000_000_000;
        matches!(self, Self::Number { min, max, .. } if *max >= HUGE || *min <= -HUGE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Cidr, Int, JsonList, Kind, OneOf, Text, Unsigned};

    const EXACT: OneOf<u8> = OneOf::exact(&[("tcp", 1), ("Proxy", 2)]);
    const ANY_CASE: OneOf<u8> = OneOf::any_case(&[("tcp", 1), ("Proxy", 2)]);

    #[test]
    fn what_has_not_the_form_is_not_admitted() {
        let table = [
            (EXACT.shape(), &["tcp", "Proxy"][..], &["", "TCP", "proxy", "tcp "][..]),
            (ANY_CASE.shape(), &["TCP", "proxy"], &["", "tc"]),
            (
                Int::between(-5, 10).shape(),
                &["-5", "+10", "007"],
                &["", "+", "-6", "11", "1.0", "99999999999999999999"],
            ),
            (Int::ANY.shape(), &["9223372036854775807", "99999999999999999999"], &["x", "1 "]),
            (Unsigned::between(1, 3).shape(), &["1", "003"], &["0", "4", "+1", "-1", "٣"]),
            (JsonList::of(Text).shape(), &["", " ", "null", "[]", "\n[\"a\"] "], &["a", "{}", "[", "\"a\""]),
            (Text.shape(), &["", "x"], &[]),
        ];
        for (shape, good, bad) in table {
            for (text, want) in
                good.iter().map(|text| (text, true)).chain(bad.iter().map(|text| (text, false)))
            {
                assert_eq!(shape.admits(text), want, "{shape:?} {text:?}");
            }
        }
    }

    fn never_stricter<K: Kind>(kind: &K, text: &str) {
        assert!(kind.shape().admits(text) || kind.read(text).is_err(), "{kind:?} reads {text:?}");
    }

    proptest! {
        #[test]
        fn no_shape_is_stricter_than_its_kind(text in prop_oneof![
            ".*",
            "[+-]?0{0,3}[0-9]{0,21}",
            "(?i:tcp|proxy)",
            "[ \n\t]{0,2}(\\[(\"[0-9./]{0,9}\",?){0,2}\\]|null)?[ \n\t]{0,2}",
        ]) {
            never_stricter(&EXACT, &text);
            never_stricter(&ANY_CASE, &text);
            never_stricter(&Int::ANY, &text);
            never_stricter(&Int::between(1, i64::from(i32::MAX)), &text);
            never_stricter(&Unsigned::ANY, &text);
            never_stricter(&Unsigned::between(5, 86_400), &text);
            never_stricter(&JsonList::of(Text), &text);
            never_stricter(&JsonList::of(Cidr), &text);
        }
    }
}
