//! The schemas of custom kinds: which fields of an object are kept, and which values are refused.
//!
//! Types, properties, items, required fields and unknown fields that are to be kept are obeyed. All other rules that a
//! schema can have are named by [`ignored`].

use serde_json::{Map, Value};

use super::field::FieldErrors;
use super::json::child;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// What a schema may say without it making a difference to an object.
const PROSE: [&str; 6] =
    ["description", "title", "example", "externalDocs", "format", "x-kubernetes-map-type"];
const OBEYED: [&str; 8] =
    ["type", "properties", "required", "items", "additionalProperties", "nullable", PRESERVE, INT_OR_STRING];

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// The schema of a member, if the schema of its holder has one.
fn member<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(name));
    named.or_else(|| schema.get("additionalProperties").filter(|rest| rest.is_object()))
}

/// Drops the fields that a schema does not know, and nulls where it allows none. Gives back the paths of unknown
/// fields, in order. Metadata is left alone.
pub(crate) fn prune(object: &mut Value, schema: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    if let Some(map) = object.as_object_mut() {
        let metadata = map.remove("metadata");
        prune_map(map, Some(schema), "", &mut unknown);
        map.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    }
    unknown.sort();
    unknown
}

fn prune_value(value: &mut Value, schema: Option<&Value>, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => prune_map(map, schema, path, unknown),
        Value::Array(items) => {
            let preserved = schema.is_some_and(|schema| flag(schema, PRESERVE));
            let schema = schema.and_then(|schema| schema.get("items"));
            for (index, item) in items.iter_mut().enumerate() {
                if schema.is_some() || !preserved {
                    prune_value(item, schema, &format!("{path}[{index}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

fn prune_map(map: &mut Map<String, Value>, schema: Option<&Value>, path: &str, unknown: &mut Vec<String>) {
    let preserved = schema.is_some_and(|schema| flag(schema, PRESERVE));
    map.retain(|name, value| {
        let known = schema.and_then(|schema| member(schema, name));
        let allowed = schema.is_some_and(|schema| flag(schema, "additionalProperties"));
        let null = value.is_null() && known.is_some_and(|known| !flag(known, "nullable"));
        if known.is_some() || (allowed && !preserved) {
            prune_value(value, known, &child(path, name), unknown);
        } else if !preserved {
            unknown.push(child(path, name));
        }
        !null && (known.is_some() || allowed || preserved)
    });
}

/// Refuses values of the wrong type and objects that lack a required field. What did not change is not held against
/// an update.
pub(crate) fn validate(object: &Value, old: Option<&Value>, schema: &Value) -> FieldErrors {
    let mut checker = Checker { place: "", errors: FieldErrors::default() };
    checker.value(object, old, schema, "");
    checker.errors
}

/// The same for the status alone, as a change through its own path is checked.
pub(crate) fn validate_status(object: &Value, old: &Value, schema: &Value) -> FieldErrors {
    let mut checker = Checker { place: "status", errors: FieldErrors::default() };
    if let (Some(status), Some(schema)) = (object.get("status"), member(schema, "status")) {
        checker.value(status, old.get("status"), schema, "");
    }
    checker.errors
}

struct Checker {
    /// Where the checked value stands in the object.
    place: &'static str,
    errors: FieldErrors,
}

impl Checker {
    fn field(&self, path: &str) -> String {
        let path = path.trim_start_matches('.');
        if path.is_empty() { self.place.to_owned() } else { child(self.place, path) }
    }

    fn value(&mut self, value: &Value, old: Option<&Value>, schema: &Value, path: &str) {
        if old == Some(value) {
            return;
        }
        let wanted = match schema.get("type").and_then(Value::as_str) {
            _ if flag(schema, INT_OR_STRING) => "integer,string",
            wanted => wanted.unwrap_or_default(),
        };
        let found = kind(value);
        let fits = wanted.is_empty()
            || wanted.split(',').any(|wanted| wanted == found || (wanted == "number" && found == "integer"))
            || (found == "null" && flag(schema, "nullable"));
        if !fits {
            let why = format!("{path} in body must be of type {wanted}: {found:?}");
            self.errors.type_invalid(&self.field(path), found, &why);
            if (wanted, found) == ("integer", "number") {
                let why = format!("Checked value must be of type integer (default format) in {path}");
                let place = if self.place.is_empty() { "<nil>" } else { self.place };
                self.errors.invalid(place, "", &why);
            }
        }
        match value {
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else { return };
                for (index, item) in items.iter().enumerate() {
                    self.value(item, old.and_then(|old| old.get(index)), schema, &format!("{path}[{index}]"));
                }
            }
            Value::Object(map) => {
                for (name, value) in map {
                    if let Some(schema) = member(schema, name) {
                        self.value(value, old.and_then(|old| old.get(name)), schema, &child(path, name));
                    }
                }
                let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
                for name in required.filter_map(Value::as_str).filter(|name| !map.contains_key(*name)) {
                    self.errors.required(&self.field(&format!("{path}.{name}")), "");
                }
            }
            _ => {}
        }
    }
}

/// The JSON type of a value, in the words of a schema.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Where a schema stands in another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// The rules that make a schema structural, as far as they are about what is obeyed here.
pub(crate) fn check(schema: &Value, place: &str, errors: &mut FieldErrors) {
    check_at(schema, place, Level::Root, errors);
}

fn check_at(schema: &Value, place: &str, level: Level, errors: &mut FieldErrors) {
    let of = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match schema.get("items") {
        Some(items) => check_at(items, &format!("{place}.items"), Level::Item, errors),
        None if of == "array" => errors.required(&format!("{place}.items"), "must be specified"),
        None => {}
    }
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check_at(schema, &format!("{place}.properties[{name}]"), Level::Field, errors);
    }
    if let Some(rest) = schema.get("additionalProperties") {
        let place = format!("{place}.additionalProperties");
        if level == Level::Root {
            errors.forbidden(&place, "must not be used at the root");
        }
        if rest.is_object() {
            check_at(rest, &place, Level::Field, errors);
        }
    }
    let place = format!("{place}.type");
    match (of, level) {
        ("", _) if flag(schema, INT_OR_STRING) || flag(schema, PRESERVE) => {}
        ("", Level::Root) => errors.required(&place, "must not be empty at the root"),
        ("", Level::Item) => errors.required(&place, "must not be empty for specified array items"),
        ("", Level::Field) => errors.required(&place, "must not be empty for specified object fields"),
        (of, Level::Root) if of != "object" => errors.invalid(&place, of, "must be object at the root"),
        _ => {}
    }
}

/// The paths of rules in a schema that have no effect here.
pub(crate) fn ignored(schema: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (name, rule) in schema.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match name.as_str() {
            "properties" => {
                for (name, schema) in rule.as_object().into_iter().flatten() {
                    found.extend(ignored(schema, &format!("{place}[{name}]")));
                }
            }
            "items" | "additionalProperties" => found.extend(ignored(rule, &place)),
            name if OBEYED.contains(&name) || PROSE.contains(&name) => {}
            _ => found.push(place),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["pool"], "properties": {
                "pool": {"type": "string"},
                "used": {"type": "integer"},
                "port": {INT_OR_STRING: true},
                "maybe": {"type": "string", "nullable": true},
                "names": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "free": {"type": "object", PRESERVE: true, "properties": {"tight": {"type": "object"}}},
            }},
            "status": {"type": "object", "properties": {"state": {"type": "string"}}},
        }})
    }

    #[test]
    fn unknown_fields_go_unless_they_are_to_be_kept() {
        let table = [
            (
                "known",
                json!({"metadata": {"x": 1}, "spec": {"pool": "a"}}),
                json!({"metadata": {"x": 1}, "spec": {"pool": "a"}}),
                vec![],
            ),
            (
                "unknown",
                json!({"spec": {"b": 1, "a": {}}, "z": 1}),
                json!({"spec": {}}),
                vec!["spec.a", "spec.b", "z"],
            ),
            (
                "in a list",
                json!({"spec": {"names": [{"name": "a"}, {"x": 1}]}}),
                json!({"spec": {"names": [{"name": "a"}, {}]}}),
                vec!["spec.names[1].x"],
            ),
            ("in a map", json!({"spec": {"map": {"a": 1}}}), json!({"spec": {"map": {"a": 1}}}), vec![]),
            (
                "to be kept",
                json!({"spec": {"free": {"a": {"b": [1, {"c": null}]}, "tight": {"x": 1}}}}),
                json!({"spec": {"free": {"a": {"b": [1, {"c": null}]}, "tight": {}}}}),
                vec!["spec.free.tight.x"],
            ),
            (
                "null",
                json!({"spec": {"pool": null, "maybe": null}}),
                json!({"spec": {"maybe": null}}),
                vec![],
            ),
        ];
        for (case, mut object, want, unknown) in table {
            assert_eq!(prune(&mut object, &schema()), unknown, "{case}");
            assert_eq!(object, want, "{case}");
        }
        let mut anything = json!({"a": {"b": [null, {"c": 1}]}});
        assert!(prune(&mut anything, &json!({"type": "object", PRESERVE: true})).is_empty());
        assert_eq!(anything, json!({"a": {"b": [null, {"c": 1}]}}));
    }

    #[test]
    fn wrong_values_are_refused_in_the_words_of_the_api_server() {
        let table = [
            (json!({"spec": {"pool": "a", "used": 1, "port": "x", "maybe": null, "map": {"a": 1}}}), None),
            (json!({"spec": {}}), Some("spec.pool: Required value")),
            (
                json!({"spec": {"pool": 1}}),
                Some(
                    "spec.pool: Invalid value: \"integer\": spec.pool in body must be of type string: \"integer\"",
                ),
            ),
            (
                json!({"spec": {"pool": "a", "map": {"b": "c"}}}),
                Some(
                    "spec.map.b: Invalid value: \"string\": spec.map.b in body must be of type integer: \"string\"",
                ),
            ),
            (
                json!({"spec": {"pool": "a", "names": [{"name": 1.5}]}}),
                Some(
                    "spec.names[0].name: Invalid value: \"number\": spec.names[0].name in body must be of type string: \"number\"",
                ),
            ),
            (
                json!({"spec": 1}),
                Some("spec: Invalid value: \"integer\": spec in body must be of type object: \"integer\""),
            ),
        ];
        for (object, want) in table {
            assert_eq!(validate(&object, None, &schema()).summary().as_deref(), want, "{object}");
            assert!(validate(&object, Some(&object), &schema()).is_empty(), "nothing changed");
        }
        let found = validate_status(&json!({"spec": {}, "status": {"state": 1}}), &json!({}), &schema());
        let want =
            "status.state: Invalid value: \"integer\": state in body must be of type string: \"integer\"";
        assert_eq!(found.summary().unwrap(), want);
    }

    #[test]
    fn schemas_have_types_and_rules_without_effect_are_named() {
        let schema = json!({"properties": {"a": {"type": "array"}, "b": {"pattern": "x", PRESERVE: true}, "c": {"type": "array", "items": {}}}});
        let mut errors = FieldErrors::default();
        check(&schema, "s", &mut errors);
        let found = errors.summary().unwrap();
        for want in [
            "s.properties[a].items: Required value: must be specified",
            "s.properties[c].items.type: Required value: must not be empty for specified array items",
            "s.type: Required value: must not be empty at the root",
        ] {
            assert!(found.contains(want), "{found}");
        }
        assert_eq!(ignored(&schema, "s"), ["s.properties[b].pattern"]);
    }
}
