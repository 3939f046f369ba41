//! The state that a watcher rebuilds from its events, with a check of every event.

use std::collections::BTreeMap;

use serde_json::Value;

use super::client::BenchError;

/// The state of one resource, rebuilt from a list and the events after it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mirror {
    objects: BTreeMap<String, Value>,
    version: u64,
    events: u64,
}

/// A valid event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// The object with this key changed.
    Change(String),
    Bookmark,
    /// The watch was too slow: list again.
    Expired,
}

fn wrong(why: impl Into<String>) -> BenchError {
    BenchError::Watch(why.into())
}

fn version(of: &Value) -> Result<u64, BenchError> {
    let text = of.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).ok_or_else(|| wrong("there is no resource version"))
}

fn key(object: &Value) -> String {
    let part = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", part("/metadata/namespace"), part("/metadata/name"))
}

/// An object without kind and version, which items of a list do not have.
fn bare(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    object
}

impl Mirror {
    pub(crate) fn of_list(mut list: Value) -> Result<Self, BenchError> {
        let version = version(&list)?;
        let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) else {
            return Err(wrong("this is no list"));
        };
        let objects = items.into_iter().map(|item| (key(&item), bare(item))).collect();
        Ok(Self { objects, version, events: 0 })
    }

    /// Applies one event and checks it: versions only go up, only known objects change or go, only unknown ones are added.
    pub(crate) fn apply(&mut self, event: Value) -> Result<WatchEvent, BenchError> {
        let Value::Object(mut event) = event else { return Err(wrong("an event that is no object")) };
        let object = event.remove("object").unwrap_or_default();
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "ERROR" && object.get("code").and_then(Value::as_u64) == Some(410) {
            return Ok(WatchEvent::Expired);
        }
        let (at, last) = (version(&object)?, self.version);
        self.version = at;
        if kind == "BOOKMARK" {
            return if at >= last { Ok(WatchEvent::Bookmark) } else { Err(wrong("a bookmark went back")) };
        }
        let key = key(&object);
        if at <= last {
            return Err(wrong(format!("{kind} of {key} at {at} came after {last}")));
        }
        self.events += 1;
        let known = match kind {
            "ADDED" => self.objects.insert(key.clone(), bare(object)).is_none(),
            "MODIFIED" => self.objects.insert(key.clone(), bare(object)).is_some(),
            "DELETED" => self.objects.remove(&key).is_some(),
            _ => false,
        };
        if known { Ok(WatchEvent::Change(key)) } else { Err(wrong(format!("{kind} of {key} does not fit"))) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.objects.get(key)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The number of changes so far.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Starts over from a list and keeps the number of changes.
    pub(crate) fn renew(&mut self, list: Self) {
        *self = Self { events: self.events, ..list };
    }

    /// The first key that the other lacks or has with another value.
    pub(crate) fn first_difference<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let mut keys = self.objects.keys().chain(other.objects.keys());
        keys.find(|key| self.objects.get(*key) != other.objects.get(*key)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, version: u64) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": version.to_string()}})
    }

    fn event(kind: &str, name: &str, version: u64) -> Value {
        json!({"type": kind, "object": object(name, version)})
    }

    fn mirror() -> Mirror {
        let list = json!({"metadata": {"resourceVersion": "7"}, "items": [object("a", 3), object("b", 7)]});
        Mirror::of_list(list).unwrap()
    }

    #[test]
    fn only_events_that_fit_are_taken_in() {
        let change = |key: &str| Some(WatchEvent::Change(key.to_owned()));
        let table = [
            ("a change", event("MODIFIED", "a", 8), change("/a")),
            ("a newcomer", event("ADDED", "c", 9), change("/c")),
            ("a deletion", event("DELETED", "b", 8), change("/b")),
            ("a bookmark", event("BOOKMARK", "", 7), Some(WatchEvent::Bookmark)),
            ("overrun", json!({"type": "ERROR", "object": {"code": 410}}), Some(WatchEvent::Expired)),
            ("a bookmark that goes back", event("BOOKMARK", "", 6), None),
            ("a repeated event", event("MODIFIED", "b", 7), None),
            ("an old event", event("MODIFIED", "a", 5), None),
            ("a change of nothing", event("MODIFIED", "c", 8), None),
            ("a second arrival", event("ADDED", "a", 8), None),
            ("a deletion of nothing", event("DELETED", "c", 8), None),
            ("another error", json!({"type": "ERROR", "object": {"code": 500}}), None),
            ("no event", json!(1), None),
        ];
        for (case, event, want) in table {
            assert_eq!(mirror().apply(event).ok(), want, "{case}");
        }
    }

    #[test]
    fn differences_are_found_on_both_sides() {
        let (mut more, mut other) = (mirror(), mirror());
        assert_eq!(more.first_difference(&mirror()), None);
        more.apply(event("ADDED", "c", 8)).unwrap();
        other.apply(event("MODIFIED", "b", 8)).unwrap();
        assert_eq!(more.first_difference(&mirror()), Some("/c"));
        assert_eq!(mirror().first_difference(&more), Some("/c"));
        assert_eq!(other.first_difference(&mirror()), Some("/b"));
        more.renew(mirror());
        assert_eq!((more.events(), more.first_difference(&mirror())), (1, None));
    }
}
