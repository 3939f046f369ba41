//! The `OpenAPI` v2 document in its protobuf form (gnostic's `openapi.v2.Document`). kubectl asks for no other: without
//! it, it can neither check a `List` nor say of an unknown kind that there is no such kind.

use serde_json::{Map, Value};

/// The document, from its JSON form. Only what the JSON form uses is known here.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, text(document, "swagger"));
    let mut info = Message::default();
    if let Some(given) = document.get("info") {
        info.text(1, text(given, "title")).text(2, text(given, "version"));
    }
    out.message(2, &info);
    let mut paths = Message::default();
    for (path, item) in members(document, "paths") {
        paths.message(2, &named(path, &path_item(item)));
    }
    out.message(8, &paths).message(9, &schemas(document, "definitions"));
    out.0
}

/// A message that is being written, field by field.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap_or_default());
    }

    fn bytes(&mut self, number: u64, content: &[u8]) -> &mut Self {
        self.varint(number << 3 | 2);
        self.varint(u64::try_from(content.len()).unwrap_or_default());
        self.0.extend_from_slice(content);
        self
    }

    /// An empty text is what a missing one means.
    fn text(&mut self, number: u64, content: &str) -> &mut Self {
        if content.is_empty() { self } else { self.bytes(number, content.as_bytes()) }
    }

    /// An empty message is not the same as none: a kind without fields is still a kind.
    fn message(&mut self, number: u64, content: &Self) -> &mut Self {
        self.bytes(number, &content.0)
    }

    fn flag(&mut self, number: u64, set: bool) -> &mut Self {
        if set {
            self.varint(number << 3);
            self.varint(1);
        }
        self
    }

    fn texts(&mut self, number: u64, list: Option<&Value>) -> &mut Self {
        for item in list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            self.bytes(number, item.as_bytes());
        }
        self
    }

    /// Everything whose name begins with `x-`. Its value is YAML, which JSON is too.
    fn extensions(&mut self, number: u64, holder: &Value) -> &mut Self {
        for (name, value) in
            holder.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-"))
        {
            let mut any = Self::default();
            any.text(2, &value.to_string());
            self.message(number, &named(name, &any));
        }
        self
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn members<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// Maps are lists of names with their values.
fn named(name: &str, value: &Message) -> Message {
    let mut pair = Message::default();
    pair.text(1, name).message(2, value);
    pair
}

/// A message with one field, in which alternatives and lists are wrapped.
fn wrapped(number: u64, inner: &Message) -> Message {
    let mut outer = Message::default();
    outer.message(number, inner);
    outer
}

fn path_item(item: &Value) -> Message {
    let mut out = Message::default();
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if let Some(given) = item.get(method) {
            out.message(number, &operation(given));
        }
    }
    out
}

fn operation(given: &Value) -> Message {
    let mut out = Message::default();
    out.texts(7, given.get("consumes"));
    for parameter in given.get("parameters").and_then(Value::as_array).into_iter().flatten() {
        let mut query = Message::default();
        query.text(2, text(parameter, "in")).text(4, text(parameter, "name"));
        query.text(6, text(parameter, "type"));
        query.flag(20, parameter.get("uniqueItems").and_then(Value::as_bool).unwrap_or_default());
        out.message(8, &wrapped(1, &wrapped(2, &wrapped(3, &query))));
    }
    let mut responses = Message::default();
    for (code, given) in members(given, "responses") {
        let mut response = Message::default();
        response.text(1, text(given, "description"));
        if let Some(given) = given.get("schema") {
            response.message(2, &wrapped(1, &schema(given)));
        }
        responses.message(1, &named(code, &wrapped(1, &response)));
    }
    out.message(9, &responses).extensions(13, given);
    out
}

fn schemas(holder: &Value, key: &str) -> Message {
    let mut out = Message::default();
    for (name, given) in members(holder, key) {
        out.message(1, &named(name, &schema(given)));
    }
    out
}

fn schema(given: &Value) -> Message {
    let mut out = Message::default();
    out.text(1, text(given, "$ref")).text(2, text(given, "format")).texts(19, given.get("required"));
    if let Some(inner) = given.get("additionalProperties") {
        out.message(21, &wrapped(1, &schema(inner)));
    }
    if let Some(kind) = given.get("type").and_then(Value::as_str) {
        let mut kinds = Message::default();
        kinds.text(1, kind);
        out.message(22, &kinds);
    }
    if let Some(inner) = given.get("items") {
        out.message(23, &wrapped(1, &schema(inner)));
    }
    if given.get("properties").is_some() {
        out.message(25, &schemas(given, "properties"));
    }
    out.extensions(31, given);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_stand_where_gnostic_looks_for_them() {
        let gvk = json!({"kind": "A"});
        let document = json!({
            "swagger": "2.0", "info": {"title": "T", "version": "v"},
            "paths": {"/a": {"patch": {
                "consumes": ["c"], "parameters": [{"in": "query", "name": "n", "type": "string", "uniqueItems": true}],
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/r"}}}, "x-gvk": gvk,
            }}},
            "definitions": {"A": {"type": "object", "required": ["b"], "properties": {
                "b": {"type": "array", "items": {"type": "string", "format": "byte"}},
                "m": {"type": "object", "additionalProperties": {"$ref": "#/r"}, "x-k": "v"},
            }}, "E": {"type": "object", "properties": {}}},
        });
        let field = |number: u8, content: &[u8]| {
            let tag = u64::from(number) << 3 | 2;
            let mut out = Message::default();
            out.varint(tag);
            out.varint(content.len() as u64);
            out.0.extend_from_slice(content);
            out.0
        };
        let pair = |name: &[u8], value: &[u8]| [field(1, name), field(2, value)].concat();
        let reference = field(1, b"#/r");
        let any = |text: &[u8]| field(2, text);
        let query = [field(2, b"query"), field(4, b"n"), field(6, b"string"), vec![0xa0, 1, 1]].concat();
        let response = [field(1, b"OK"), field(2, &field(1, &reference))].concat();
        let patch = [
            field(7, b"c"),
            field(8, &field(1, &field(2, &field(3, &query)))),
            field(9, &field(1, &pair(b"200", &field(1, &response)))),
            field(13, &pair(b"x-gvk", &any(br#"{"kind":"A"}"#))),
        ]
        .concat();
        let kind = |name: &[u8]| field(22, &field(1, name));
        let list =
            [kind(b"array"), field(23, &field(1, &[field(2, b"byte"), kind(b"string")].concat()))].concat();
        let map =
            [field(21, &field(1, &reference)), kind(b"object"), field(31, &pair(b"x-k", &any(br#""v""#)))]
                .concat();
        let properties = [field(1, &pair(b"b", &list)), field(1, &pair(b"m", &map))].concat();
        let a = [field(19, b"b"), kind(b"object"), field(25, &properties)].concat();
        let empty = [kind(b"object"), field(25, b"")].concat();
        let want = [
            field(1, b"2.0"),
            field(2, &[field(1, b"T"), field(2, b"v")].concat()),
            field(8, &field(2, &pair(b"/a", &field(8, &patch)))),
            field(9, &[field(1, &pair(b"A", &a)), field(1, &pair(b"E", &empty))].concat()),
        ]
        .concat();
        assert_eq!(encode(&document), want);
    }
}
