//! A compact map of labels or annotations.

use std::{collections::BTreeMap, fmt, ops::Index};

use serde_json::Value;

/// A map from text to text: labels or annotations.
///
/// It is one text and one list of ends, because a cluster has thousands of nodes with a dozen labels each, and a tree of
/// small strings takes five times the memory. A lookup scans it; a change rebuilds it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Key, value, key, value, sorted by key.
    text: Box<str>,
    ends: Box<[u32]>,
}

impl Pairs {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Keys with their values, in the order of keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut from = 0;
        let mut piece = move |end: u32| {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            let piece = self.text.get(from..end).unwrap_or_default();
            from = end;
            piece
        };
        self.ends.as_chunks().0.iter().map(move |&[key, value]| (piece(key), piece(value)))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Whether the key exists.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: &str, value: &str) {
        *self = self.iter().chain([(key, value)]).collect();
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) {
        *self = self.iter().filter(|(known, _)| *known != key).collect();
    }
}

/// The members of a JSON object that are text.
pub(super) fn texts(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let members = object.as_object().into_iter().flatten();
    members.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Of several values of one key the last counts. What is longer than four gigabytes is left out.
impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let given: Vec<(K, V)> = pairs.into_iter().collect();
        let sorted: BTreeMap<&str, &str> = given.iter().map(|(k, v)| (k.as_ref(), v.as_ref())).collect();
        let mut text = String::with_capacity(sorted.iter().map(|(key, value)| key.len() + value.len()).sum());
        let mut ends = Vec::with_capacity(2 * sorted.len());
        for (key, value) in sorted {
            let start = text.len();
            let end = |length| u32::try_from(start + length);
            let (Ok(of_key), Ok(of_value)) = (end(key.len()), end(key.len() + value.len())) else { continue };
            text.extend([key, value]);
            ends.extend([of_key, of_value]);
        }
        Self { text: text.into(), ends: ends.into() }
    }
}

impl<K: AsRef<str>, V: AsRef<str>, const N: usize> From<[(K, V); N]> for Pairs {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

/// The value of a key; empty if there is none.
impl Index<&str> for Pairs {
    type Output = str;

    fn index(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_whole_and_sorted() {
        let mut pairs: Pairs = [("b", "2"), ("a", ""), ("", "none"), ("b", "3")].into();
        assert_eq!(pairs.iter().collect::<Vec<_>>(), [("", "none"), ("a", ""), ("b", "3")]);
        assert_eq!(
            (pairs.get("a"), pairs.get("b"), pairs.get("2"), pairs.get("ab")),
            (Some(""), Some("3"), None, None)
        );
        assert_eq!(format!("{pairs:?}"), r#"{"": "none", "a": "", "b": "3"}"#);
        pairs.remove("");
        pairs.remove("z");
        pairs.insert("ä", "\0");
        assert_eq!((pairs.len(), &pairs["ä"]), (3, "\0"));
        assert!(Pairs::default().is_empty() && !pairs.is_empty() && pairs.contains_key("a"));
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec(("[ab]{0,2}", proptest::option::of("[xy]{0,2}")), 0..12)) {
            let (mut pairs, mut map) = (Pairs::default(), BTreeMap::new());
            for (key, value) in &steps {
                if let Some(value) = value {
                    pairs.insert(key, value);
                    map.insert(key.clone(), value.clone());
                } else {
                    pairs.remove(key);
                    map.remove(key);
                }
                prop_assert_eq!(pairs.get(key), map.get(key).map(String::as_str));
            }
            prop_assert!(pairs.iter().eq(map.iter().map(|(key, value)| (key.as_str(), value.as_str()))));
            prop_assert_eq!(&pairs, &map.iter().collect::<Pairs>());
        }
    }
}
