//! Items of which at least the identity can be decoded.
//!
//! A listing holds the things of everybody who uses the account. If one field of one of them cannot be decoded, that
//! thing exists all the same, and its identity says whose it is. So it neither counts as absent (law 1) nor blocks those
//! who have nothing to do with it (law 11). If even the identity cannot be decoded, it could be anybody's: it makes the
//! listing short, like any other item that cannot be decoded.

use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error as _};
use serde_json::value::RawValue;

/// A decoded `T`, or at least its identity `I`.
///
/// `I` holds what identifies the thing and what it belongs to; all its fields are required. It can be decoded wherever a
/// `T` can: from a listing, and from the answer to a single read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<T, I> {
    /// Decoded completely.
    Whole(T),
    /// It exists, and only its identity is known.
    Flawed(Flawed<I>),
}

/// A thing of which only the identity could be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flawed<I> {
    /// What identifies it, and what it belongs to.
    pub identity: I,
    /// Which field cannot be read: `algorithm is null`. Nothing of the answer is quoted, so it holds no secret.
    pub why: String,
}

impl<T, I> Item<T, I> {
    /// What tells it from others: taken from the thing where it is complete, otherwise from its identity.
    pub fn key<'a, K>(
        &'a self,
        whole: impl FnOnce(&'a T) -> &'a K,
        flawed: impl FnOnce(&'a I) -> &'a K,
    ) -> &'a K {
        match self {
            Self::Whole(thing) => whole(thing),
            Self::Flawed(thing) => flawed(&thing.identity),
        }
    }

    /// Separates complete things from flawed ones, each in their order.
    pub fn sort(items: impl IntoIterator<Item = Self>) -> (Vec<T>, Vec<Flawed<I>>) {
        let (mut whole, mut flawed) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                Self::Whole(thing) => whole.push(thing),
                Self::Flawed(thing) => flawed.push(thing),
            }
        }
        (whole, flawed)
    }
}

impl<'de, T: DeserializeOwned, I: DeserializeOwned> Deserialize<'de> for Item<T, I> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // A listing may have thousands of items; only one item's text is held at a time.
        let raw = Box::<RawValue>::deserialize(from)?;
        let error = match serde_json::from_str(raw.get()) {
            Ok(whole) => return Ok(Self::Whole(whole)),
            Err(error) => error,
        };
        let why = flaw(raw.get(), &error);
        match serde_json::from_str(raw.get()) {
            Ok(identity) => Ok(Self::Flawed(Flawed { identity, why })),
            Err(error) => Err(D::Error::custom(flaw(raw.get(), &error))),
        }
    }
}

/// Which field of `text` an error is about, and what is wrong with it.
fn flaw(text: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let line_start =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let at = place(text, line_start + error.column());
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    match missing {
        Some(field) if at.path.is_empty() => format!("{field} is missing"),
        Some(field) => format!("{}.{field} is missing", at.path),
        None if at.path.is_empty() => "it is not what was expected".to_owned(),
        None if text.get(at.value..).is_some_and(|value| value.starts_with("null")) => {
            format!("{} is null", at.path)
        }
        None => format!("{} is not what was expected", at.path),
    }
}

struct Place {
    /// The way there: `interfaces[0].addresses`. Empty for the whole text.
    path: String,
    /// Where the value at that place begins.
    value: usize,
}

/// What encloses a place: a member of an object, or the number of an element of a list.
enum Frame {
    Member(String),
    Element(usize),
}

/// The place of the last value that begins before `end`, or of the one that ends just there.
fn place(text: &str, end: usize) -> Place {
    let mut frames: Vec<Frame> = Vec::new();
    let (mut quote, mut escaped) = (None, false);
    let (mut word, mut value) = ("", 0);
    for (at, byte) in text.bytes().enumerate().take(end) {
        if let Some(from) = quote {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => (quote, word) = (None, text.get(from..at).unwrap_or_default()),
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => quote = Some(at + 1),
            b'{' => frames.push(Frame::Member(String::new())),
            b'[' => {
                frames.push(Frame::Element(0));
                value = at + 1;
            }
            b'}' | b']' => {
                frames.pop();
                value = at;
            }
            b':' => {
                if let Some(Frame::Member(name)) = frames.last_mut() {
                    word.clone_into(name);
                }
                value = at + 1;
            }
            b',' => {
                if let Some(Frame::Element(number)) = frames.last_mut() {
                    *number += 1;
                }
                value = at + 1;
            }
            _ => {}
        }
    }
    let step = |(depth, frame): (usize, &Frame)| match frame {
        Frame::Element(number) => format!("[{number}]"),
        Frame::Member(name) if depth == 0 || name.is_empty() => name.clone(),
        Frame::Member(name) => format!(".{name}"),
    };
    let path: String = frames.iter().enumerate().map(step).collect();
    let space = text.get(value..).map_or(0, |rest| rest.len() - rest.trim_ascii_start().len());
    Place { path, value: value + space }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::answer::json::any_json;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Part {
        id: u64,
        of: u64,
        kind: String,
        places: Vec<Spot>,
    }

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Spot {
        at: String,
    }

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Who {
        id: u64,
        of: u64,
    }

    fn read(text: &str) -> Result<Item<Part, Who>, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_part_that_cannot_be_read_is_known_by_its_identity() {
        let table = [
            (r#"{"id":1,"of":2,"kind":null,"places":[]}"#, "kind is null"),
            ("{\"id\":1,\n \"kind\" :  null ,\n\"of\":2,\"places\":[]}", "kind is null"),
            (r#"{"id":1,"of":2,"places":[]}"#, "kind is missing"),
            (r#"{"id":1,"of":2,"kind":"a","places":null}"#, "places is null"),
            (r#"{"places":[{"at":"x"},{"at":null}],"id":1,"of":2,"kind":"a"}"#, "places[1].at is null"),
            (r#"{"places":[{"at":"x"},{}],"id":1,"of":2,"kind":"a"}"#, "places[1].at is missing"),
            (r#"{"places":[null],"id":1,"of":2,"kind":"a"}"#, "places[0] is null"),
            (r#"{"places":["t0ken"],"id":1,"of":2,"kind":"a"}"#, "places[0] is not what was expected"),
            (r#"{"kind":{"a \" , }":[1]},"id":1,"of":2,"places":[]}"#, "kind is not what was expected"),
            (r#"{"kind":["t0ken"],"id":1,"of":2,"places":[]}"#, "kind is not what was expected"),
            (r#"{"kind":7,"id":1,"of":2,"places":[]}"#, "kind is not what was expected"),
        ];
        for (text, why) in table {
            let identity = Who { id: 1, of: 2 };
            assert_eq!(
                read(text),
                Ok(Item::Flawed(Flawed { identity, why: why.to_owned() })),
                "L11-402 {text}"
            );
        }
        let whole = Part { id: 1, of: 2, kind: "a".to_owned(), places: vec![Spot { at: "x".to_owned() }] };
        let text = r#"{"id":1,"of":2,"kind":"a","places":[{"at":"x"}],"more":{"x":[1]}}"#;
        assert_eq!(read(text), Ok(Item::Whole(whole)));
    }

    #[test]
    fn without_an_identity_nobody_is_known() {
        let table = [
            (r#"{"id":1,"kind":"a","places":[]}"#, "of is missing"),
            (r#"{"id":1,"of":null,"kind":null,"places":[]}"#, "of is null"),
            (r#"{"id":"t0ken","of":2,"kind":null,"places":[]}"#, "id is not what was expected"),
            ("null", "it is not what was expected"),
            (r#""t0ken""#, "it is not what was expected"),
        ];
        for (text, why) in table {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(why), "L1-407 {text}: {error}");
            assert!(!error.contains("t0ken"), "L10-400 {text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_upsets_it(value in any_json(), pretty in any::<bool>(), end in 0_usize..400) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let _ = read(&text);
            let _ = place(&text, end);
        }
    }
}
