//! Objects as Go prints them: fields in the order of the type, but maps (and whatever a patch went through) sorted.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::shape::{Shape, Shapes};

/// The JSON text of an object of a shape. `touched` has the members that a patch went through: those were taken
/// apart and put together again, which sorts them.
pub(crate) fn json(shapes: &Shapes, shape: &str, value: &Value, touched: &Value) -> String {
    let mut text = String::new();
    write(shapes, Some(&Shape::Struct(shape.to_owned())), value, Some(touched), &mut text);
    text
}

fn write(shapes: &Shapes, shape: Option<&Shape>, value: &Value, touched: Option<&Value>, out: &mut String) {
    let shape = shape.map(Shape::pointee);
    match value {
        Value::Object(map) => {
            let fields = match shape {
                Some(Shape::Struct(name)) => shapes.get(name),
                _ => None,
            };
            let mut keys: Vec<&String> = map.keys().collect();
            let place =
                |key: &str| fields.and_then(|fields| fields.iter().position(|field| field.name == key));
            match touched {
                Some(Value::Object(_)) => keys.sort(),
                _ => keys.sort_by_key(|key| (place(key).unwrap_or(usize::MAX), (*key).clone())),
            }
            members(map, &keys, out, |key, member, out| {
                let inner = match shape {
                    Some(Shape::Map(inner)) => Some(&**inner),
                    _ => fields.and_then(|fields| fields.get(key)).map(|field| &field.shape),
                };
                write(shapes, inner, member, touched.and_then(|touched| touched.get(key)), out);
            });
        }
        Value::Array(list) => {
            let inner = match shape {
                Some(Shape::List(inner)) => Some(&**inner),
                _ => None,
            };
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(shapes, inner, item, None, out);
            }
            out.push(']');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn members(
    map: &Map<String, Value>,
    keys: &[&String],
    out: &mut String,
    mut each: impl FnMut(&str, &Value, &mut String),
) {
    out.push('{');
    for (index, key) in keys.iter().enumerate() {
        let Some(member) = map.get(*key) else { continue };
        if index > 0 {
            out.push(',');
        }
        let _ = write!(out, "{}:", Value::from(key.as_str()));
        each(key, member, out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_stand_as_in_the_type_unless_a_patch_went_through() {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"uid": "u", "name": "n", "labels": {"b": "1", "a": "2"}}, "spec": {"taints": [{"effect": "e", "key": "k"}]}});
        let shapes = Shapes::kubernetes();
        assert_eq!(
            json(&shapes, "core/v1.Node", &object, &json!({"spec": 1})),
            r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","uid":"u","labels":{"a":"2","b":"1"}},"spec":{"taints":[{"key":"k","effect":"e"}]}}"#
        );
        assert_eq!(
            json(
                &shapes,
                "core/v1.Node",
                &json!({"metadata": {"uid": "u", "name": "n"}}),
                &json!({"metadata": {"uid": 1}})
            ),
            r#"{"metadata":{"name":"n","uid":"u"}}"#
        );
        assert_eq!(
            json(&shapes, "core/v1.Node", &json!({"kind": "x", "apiVersion": "y"}), &Value::Null),
            r#"{"kind":"x","apiVersion":"y"}"#
        );
    }
}
