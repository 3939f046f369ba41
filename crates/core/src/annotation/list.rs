//! Kinds of values that hold several: comma lists, JSON lists, JSON documents.

use std::{fmt, marker::PhantomData};

use serde::de::DeserializeOwned;
use serde_json::Value as JsonValue;

use super::{kind::Kind, shape::Shape};

/// What is said about one item of a list.
fn item_flaw<K: Kind>(item: &K, text: &str, detail: &str) -> String {
    let colon = if detail.is_empty() { "" } else { ": " };
    format!("{text:?} is not {}{colon}{detail}", item.expects())
}

fn read_items<K: Kind>(item: &K, texts: &[String]) -> Result<Vec<K::Value>, String> {
    let read = |text: &String| item.read(text).map_err(|detail| item_flaw(item, text, &detail));
    texts.iter().map(read).collect()
}

/// Items between commas.
#[derive(Clone, Copy, Debug)]
pub struct CommaList<K> {
    item: K,
    tidy: bool,
}

impl<K> CommaList<K> {
    /// Every item as it stands between the commas; an empty text is one empty item.
    pub const fn raw(item: K) -> Self {
        Self { item, tidy: false }
    }

    /// Blanks around items, empty items and repetitions do not count.
    pub const fn tidy(item: K) -> Self {
        Self { item, tidy: true }
    }
}

impl<K: Kind> Kind for CommaList<K> {
    type Value = Vec<K::Value>;

    fn expects(&self) -> String {
        format!("a comma-separated list, each item {}", self.item.expects())
    }

    fn read(&self, text: &str) -> Result<Self::Value, String> {
        if !self.tidy {
            let texts: Vec<_> = text.split(',').map(str::to_owned).collect();
            return read_items(&self.item, &texts);
        }
        let texts: Vec<_> =
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect();
        let mut values = Vec::new();
        for value in read_items(&self.item, &texts)? {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Ok(values)
    }
}

/// A JSON list of strings. Nothing but spaces, or `null`, is the empty list.
#[derive(Clone, Copy, Debug)]
pub struct JsonList<K> {
    item: K,
}

impl<K> JsonList<K> {
    /// A list whose strings are read as `item`.
    pub const fn of(item: K) -> Self {
        Self { item }
    }
}

impl<K: Kind> Kind for JsonList<K> {
    type Value = Vec<K::Value>;

    fn expects(&self) -> String {
        format!("a JSON list of strings, each {}", self.item.expects())
    }

    fn read(&self, text: &str) -> Result<Self::Value, String> {
        if text.trim_matches(' ').is_empty() {
            return Ok(Vec::new());
        }
        let texts: Option<Vec<String>> = serde_json::from_str(text).map_err(|e| e.to_string())?;
        read_items(&self.item, &texts.unwrap_or_default())
    }

    fn shape(&self) -> Shape {
        Shape::JsonList
    }
}

/// A JSON document of type `T`. `null` is `T::default()`.
///
/// People write it, so it is read leniently: object keys count in any case (`T` names its fields in lower case; of two
/// keys that differ in case only, the lower-case one counts), and a member that is `null` counts as absent.
pub struct Json<T> {
    what: &'static str,
    makes: PhantomData<fn() -> T>,
}

impl<T> Json<T> {
    /// A document; `what` completes "it is not …".
    pub const fn new(what: &'static str) -> Self {
        Self { what, makes: PhantomData }
    }
}

impl<T> fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Json").field(&self.what).finish()
    }
}

impl<T: DeserializeOwned + Default + PartialEq> Kind for Json<T> {
    type Value = T;

    fn expects(&self) -> String {
        self.what.to_owned()
    }

    fn read(&self, text: &str) -> Result<T, String> {
        let document = serde_json::from_str(text).map_err(|e| e.to_string())?;
        match fold_keys(document) {
            JsonValue::Null => Ok(T::default()),
            document => serde_json::from_value(document).map_err(|e| e.to_string()),
        }
    }
}

/// Lower-cases the keys of every object and drops members that are null.
fn fold_keys(value: JsonValue) -> JsonValue {
    match value {
        JsonValue::Object(members) => {
            let capital = |(key, _): &(String, JsonValue)| key.bytes().any(|b| b.is_ascii_uppercase());
            let (capitals, lower): (Vec<_>, Vec<_>) =
                members.into_iter().filter(|(_, value)| !value.is_null()).partition(capital);
            // Of equal keys the last one stays, so the lower-case ones come last.
            let fold = |(key, value): (String, _)| (key.to_ascii_lowercase(), fold_keys(value));
            capitals.into_iter().chain(lower).map(fold).collect()
        }
        JsonValue::Array(items) => items.into_iter().map(fold_keys).collect(),
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::kind::{Cidr, Text, Unsigned},
        *,
    };

    fn texts(items: &[&str]) -> Vec<String> {
        items.iter().map(|&i| i.to_owned()).collect()
    }

    #[test]
    fn comma_lists_are_taken_as_they_are_or_tidied() {
        let table = [
            (CommaList::raw(Text), "a,b", Some(texts(&["a", "b"]))),
            (CommaList::raw(Text), "a, b,a,", Some(texts(&["a", " b", "a", ""]))),
            (CommaList::raw(Text), "", Some(texts(&[""]))),
            (CommaList::tidy(Text), " a, b,a,,", Some(texts(&["a", "b"]))),
            (CommaList::tidy(Text), "", Some(texts(&[]))),
        ];
        for (kind, text, want) in table {
            assert_eq!(kind.read(text).ok(), want, "{kind:?} {text:?}");
        }
        let numbers = CommaList::tidy(Unsigned::between(1, 9));
        assert_eq!(numbers.read("1,01, 2"), Ok(vec![1, 2]), "repetitions are of values");
        let flaw = numbers.read("1,x,10").unwrap_err();
        assert_eq!(flaw, "\"x\" is not a number from 1 to 9, digits only: not a number");
        assert!(
            CommaList::raw(Cidr).read("10.0.0.0/8, 10.0.0.0/8").unwrap_err().starts_with("\" 10.0.0.0/8\"")
        );
        assert!(
            CommaList::raw(Cidr).read("x").unwrap_err().ends_with("10.0.0.0/8"),
            "no colon without a detail"
        );
        assert_eq!(numbers.expects(), "a comma-separated list, each item a number from 1 to 9, digits only");
    }

    #[test]
    fn json_lists_hold_strings_and_may_be_blank_or_null() {
        let table = [
            ("", Some(texts(&[]))),
            ("   ", Some(texts(&[]))),
            ("null", Some(texts(&[]))),
            ("[]", Some(texts(&[]))),
            ("[\"a\", \"b\"]", Some(texts(&["a", "b"]))),
            (" [\n\"a\"\n] ", Some(texts(&["a"]))),
            ("\n", None),
            ("\"a\"", None),
            ("a", None),
            ("[1]", None),
            ("[\"a\"", None),
            ("[\"a\"] b", None),
            ("{}", None),
        ];
        for (text, want) in table {
            assert_eq!(JsonList::of(Text).read(text).ok(), want, "{text:?}");
        }
        assert_eq!(JsonList::of(Cidr).read("[\"10.0.0.0/8\"]"), Ok(vec!["10.0.0.0/8".parse().unwrap()]));
        assert!(
            JsonList::of(Cidr)
                .read("[\"10.0.0.0/8\", \"y\"]")
                .unwrap_err()
                .contains("\"y\" is not a network")
        );
        assert!(!JsonList::of(Text).read("[1]").unwrap_err().is_empty(), "the decoder's reason is passed on");
        assert_eq!(JsonList::of(Text).expects(), "a JSON list of strings, each text");
    }

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default)]
    struct Check {
        host: Option<String>,
        url_path: String,
        inner: Vec<Check>,
    }

    #[test]
    fn json_documents_are_read_with_good_will() {
        let check = |host: Option<&str>, path: &str| Check {
            host: host.map(str::to_owned),
            url_path: path.to_owned(),
            inner: vec![],
        };
        let table = [
            ("{}", Some(check(None, ""))),
            ("null", Some(check(None, ""))),
            ("{\"host\":\"a\",\"url_path\":\"/\"}", Some(check(Some("a"), "/"))),
            ("{\"Host\":\"a\",\"URL_Path\":\"/\"}", Some(check(Some("a"), "/"))),
            ("{\"host\":\"a\",\"Host\":\"b\"}", Some(check(Some("a"), ""))),
            ("{\"host\":null,\"url_path\":null}", Some(check(None, ""))),
            ("{\"other\":1}", Some(check(None, ""))),
            (
                "{\"inner\":[{\"HOST\":\"a\"}]}",
                Some(Check { inner: vec![check(Some("a"), "")], ..Check::default() }),
            ),
            ("{\"host\":1}", None),
            ("", None),
            ("  ", None),
            ("{", None),
            ("[1]", None),
        ];
        let kind = Json::<Check>::new("a JSON object");
        for (text, want) in table {
            assert_eq!(kind.read(text).ok(), want, "{text:?}");
        }
        assert!(kind.read("{\"host\":1}").unwrap_err().contains("invalid type"));
        assert_eq!(kind.expects(), "a JSON object");
        assert_eq!(format!("{kind:?}"), "Json(\"a JSON object\")");
    }

    #[test]
    fn a_deep_document_is_refused_rather_than_followed() {
        let deep = "[".repeat(100_000);
        assert!(Json::<Vec<Check>>::new("x").read(&deep).is_err());
        assert!(JsonList::of(Text).read(&deep).is_err());
    }
}
