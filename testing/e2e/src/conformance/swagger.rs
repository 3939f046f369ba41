//! Reads the protobuf form of an `OpenAPI` v2 document (gnostic's `openapi.v2.Document`), as far as it is about kinds.

use serde_json::{Map, Value, json};

/// What the form is called in answers.
pub(crate) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The definitions, as they stand in the JSON form of the document; `None` if these bytes are no such document.
pub(crate) fn read(bytes: &[u8]) -> Option<Value> {
    let document = fields(bytes)?;
    let version = text(first(&document, 1)?)?;
    let definitions = named_schemas(first(&document, 9)?)?;
    Some(json!({ "swagger": version, "definitions": definitions }))
}

/// The fields of a message that have a length, in order; numbers are passed over.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        match tag & 7 {
            0 => drop(varint(&mut bytes)?),
            1 => bytes = bytes.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (content, rest) = bytes.split_at_checked(length)?;
                all.push((tag >> 3, content));
                bytes = rest;
            }
            _ => return None,
        }
    }
    Some(all)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn first<'b>(fields: &[(u64, &'b [u8])], number: u64) -> Option<&'b [u8]> {
    fields.iter().find(|(known, _)| *known == number).map(|(_, content)| *content)
}

fn text(bytes: &[u8]) -> Option<Value> {
    std::str::from_utf8(bytes).ok().map(Value::from)
}

/// A list of names, each with a schema.
fn named_schemas(bytes: &[u8]) -> Option<Value> {
    let mut all = Map::new();
    for (_, pair) in fields(bytes)? {
        let pair = fields(pair)?;
        let name = String::from_utf8(first(&pair, 1)?.to_vec()).ok()?;
        all.insert(name, schema(first(&pair, 2).unwrap_or_default())?);
    }
    Some(Value::Object(all))
}

fn schema(bytes: &[u8]) -> Option<Value> {
    let (mut found, mut required) = (Map::new(), Vec::new());
    for (number, content) in fields(bytes)? {
        // Alternatives and lists are wrapped in a message with one field.
        let inner = || fields(content).and_then(|wrapped| wrapped.first().map(|(_, inner)| *inner));
        let (name, value) = match number {
            1 => ("$ref", text(content)?),
            2 => ("format", text(content)?),
            19 => {
                required.push(text(content)?);
                continue;
            }
            21 => ("additionalProperties", schema(inner()?)?),
            22 => ("type", text(inner()?)?),
            23 => ("items", schema(inner()?)?),
            25 => ("properties", named_schemas(content)?),
            31 => {
                let pair = fields(content)?;
                let name = String::from_utf8(first(&pair, 1)?.to_vec()).ok()?;
                let yaml = fields(first(&pair, 2)?)?;
                let yaml = std::str::from_utf8(first(&yaml, 2)?).ok()?;
                found.insert(name, serde_saphyr::from_str(yaml).ok()?);
                continue;
            }
            _ => continue,
        };
        found.insert(name.to_owned(), value);
    }
    if !required.is_empty() {
        found.insert("required".to_owned(), required.into());
    }
    Some(Value::Object(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_and_garbage_is_rejected() {
        let field = |number: u64, content: &[u8]| {
            let tag = number << 3 | 2;
            let mut bytes = if tag < 128 {
                vec![u8::try_from(tag).unwrap()]
            } else {
                vec![u8::try_from(tag & 0x7f).unwrap() | 0x80, u8::try_from(tag >> 7).unwrap()]
            };
            bytes.push(u8::try_from(content.len()).unwrap());
            bytes.extend_from_slice(content);
            bytes
        };
        let pair = |name: &[u8], value: &[u8]| [field(1, name), field(2, value)].concat();
        let list =
            [field(22, &field(1, b"array")), field(23, &field(1, &field(1, b"#/definitions/B")))].concat();
        let extension = field(31, &pair(b"x-kubernetes-group-version-kind", &field(2, b"- kind: A\n")));
        let properties = field(25, &field(1, &pair(b"b", &list)));
        let kind = [field(19, b"b"), vec![0x80, 1, 1], properties, extension].concat();
        let document = [field(1, b"2.0"), field(9, &field(1, &pair(b"A", &kind)))].concat();
        assert_eq!(
            read(&document).unwrap(),
            json!({"swagger": "2.0", "definitions": {"A": {
                "required": ["b"],
                "properties": {"b": {"type": "array", "items": {"$ref": "#/definitions/B"}}},
                "x-kubernetes-group-version-kind": [{"kind": "A"}],
            }}})
        );
        assert_eq!(read(b"{}"), None);
        assert_eq!(read(&document[..document.len() - 1]), None);
    }
}
