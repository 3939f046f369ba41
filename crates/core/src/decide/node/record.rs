//! What we last wrote into a node's labels, remembered on the node.
//!
//! Without it a label of an old size and a label that a person chose look the same. The record is an annotation, so
//! it lives and dies with the node and is written in the same patch as the labels: it is never ahead or behind.

use std::collections::{BTreeMap, btree_map};

use serde_json::Value;

use super::labels;
use crate::view::NodeView;

/// Where the record is kept: a JSON object of label keys and the values that we gave them.
pub const ANNOTATION: &str = "cloudberth.dev/applied-labels";

/// Label keys and the values that we gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record(BTreeMap<String, String>);

impl Record {
    /// The record of `node`. What cannot be read counts as never written; and because a person can edit an
    /// annotation, keys that are never ours to write are dropped: nobody gets us to remove a label of Kubernetes.
    #[must_use]
    pub fn of(node: &NodeView) -> Self {
        let written = node.annotations.get(ANNOTATION);
        let mut map: BTreeMap<String, String> =
            written.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        map.retain(|key, _| labels::may_be_ours(key));
        Self(map)
    }

    /// The value that we last gave to the label `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Notes that we gave `value` to the label `key`.
    pub fn note(&mut self, key: &str, value: &str) {
        self.0.insert(key.to_owned(), value.to_owned());
    }

    /// Forgets the label `key`.
    pub fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Keys and values, in the order of the keys.
    pub fn iter(&self) -> btree_map::Iter<'_, String, String> {
        self.0.iter()
    }

    /// The annotation's value; `null`, which removes the annotation, when there is nothing to remember.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        let map = self.0.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
        Value::String(Value::Object(map).to_string())
    }
}

impl<'a> IntoIterator for &'a Record {
    type Item = (&'a String, &'a String);
    type IntoIter = btree_map::Iter<'a, String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::node::fixture::{map, node},
        view::Pairs,
    };

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = Record::default();
        assert_eq!(record.to_json(), Value::Null);
        record.note("topology.kubernetes.io/zone", "rma1");
        record.note("my.label/b", "2");
        record.note("my.label/a", "1");
        record.forget("my.label/b");
        let text = record.to_json();
        assert_eq!(text, r#"{"my.label/a":"1","topology.kubernetes.io/zone":"rma1"}"#);
        let read = Record::of(&node("n").annotated(ANNOTATION, text.as_str().unwrap()));
        assert_eq!(read, record);
        assert_eq!((read.get("my.label/a"), read.get("my.label/b")), (Some("1"), None));
        let listed: Pairs = read.iter().collect();
        assert_eq!(listed, map("my.label/a=1, topology.kubernetes.io/zone=rma1"));
        assert_eq!((&read).into_iter().count(), 2);
    }

    #[test]
    fn an_edited_record_cannot_make_us_touch_what_is_not_ours() {
        let table = [
            ("not JSON", "zone=rma1", ""),
            ("not a map", "[1]", ""),
            ("not text", r#"{"a":1}"#, ""),
            ("a label of Kubernetes", r#"{"kubernetes.io/hostname":"n","a":"1"}"#, "a=1"),
            ("no label key", r#"{"a b":"1"}"#, ""),
            ("ours", r#"{"beta.kubernetes.io/instance-type":"x"}"#, "beta.kubernetes.io/instance-type=x"),
        ];
        for (case, text, want) in table {
            let read = Record::of(&node("n").annotated(ANNOTATION, text));
            assert_eq!(Pairs::from_iter(&read.0), map(want), "{case}");
        }
        assert_eq!(Record::of(&node("n")), Record::default());
    }
}
