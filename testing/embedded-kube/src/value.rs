//! Access to fields by path, written `a.b.c`; absent fields read as empty.

use serde_json::{Map, Value};

/// The value at a path of plain field names.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// The text at a path; empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a path; zero when there is none.
pub(crate) fn int(value: &Value, path: &str) -> i64 {
    at(value, path).and_then(Value::as_i64).unwrap_or_default()
}

/// The elements of the list at a path.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of the list at a path.
pub(crate) fn texts(value: &Value, path: &str) -> Vec<String> {
    list(value, path).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The entries of the map at a path.
pub(crate) fn entries<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    at(value, path).and_then(Value::as_object).into_iter().flatten()
}

/// Sets the value at a path and makes the objects in between.
pub(crate) fn set(value: &mut Value, path: &str, new: impl Into<Value>) {
    set_value(value, path, new.into());
}

fn set_value(value: &mut Value, path: &str, new: Value) {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Value::Object(map) = value {
        match path.split_once('.') {
            None => {
                map.insert(path.to_owned(), new);
            }
            Some((name, rest)) => set_value(map.entry(name).or_insert(Value::Null), rest, new),
        }
    }
}

/// Removes what is at a path.
pub(crate) fn unset(value: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let holder = if parent.is_empty() { Some(value) } else { at_mut(value, parent) };
    if let Some(map) = holder.and_then(Value::as_object_mut) {
        map.remove(name);
    }
}

/// Sets or removes.
pub(crate) fn put(value: &mut Value, path: &str, new: Option<Value>) {
    match new {
        Some(new) => set(value, path, new),
        None => unset(value, path),
    }
}

/// The value at a path, for changing.
pub(crate) fn at_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(value, |value, name| value.get_mut(name))
}

/// Sets a value where there is none (or an empty text, or zero).
pub(crate) fn default(value: &mut Value, path: &str, new: impl Into<Value>) {
    let missing = match at(value, path) {
        None => true,
        Some(Value::String(s)) => s.is_empty(),
        Some(_) => false,
    };
    if missing {
        set(value, path, new);
    }
}

pub(crate) fn name(value: &Value) -> &str {
    text(value, "metadata.name")
}

pub(crate) fn namespace(value: &Value) -> &str {
    text(value, "metadata.namespace")
}

pub(crate) fn revision(value: &Value) -> &str {
    text(value, "metadata.resourceVersion")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_in_and_out() {
        let mut value = json!({"a": {"b": "x", "n": null}, "l": [1]});
        assert_eq!(text(&value, "a.b"), "x");
        assert_eq!(text(&value, "a.c.d"), "");
        assert!(at(&value, "a.n").is_none());
        set(&mut value, "a.c.d", 1);
        default(&mut value, "a.b", "y");
        default(&mut value, "a.e", "z");
        unset(&mut value, "l");
        unset(&mut value, "no.such.thing");
        assert_eq!(value, json!({"a": {"b": "x", "c": {"d": 1}, "e": "z", "n": null}}));
    }
}
