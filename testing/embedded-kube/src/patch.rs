//! The three kinds of patches, applied to the wire form of an object.

use serde_json::{Map, Value};

use super::gotext;
use super::json;
use super::shape::Shapes;
use super::status::{Answer, Failure};
use super::strategic;

/// More operations than this in one JSON patch are refused.
const MAX_OPERATIONS: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
}

/// Media types of patches, as error texts list them.
const MEDIA_TYPES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"];

/// Those that can be sent. Kinds without a shape have no strategic merge.
pub(crate) fn media_types(shaped: bool) -> &'static [&'static str] {
    let [json_and_merge @ .., _] = &MEDIA_TYPES;
    if shaped { &MEDIA_TYPES } else { json_and_merge }
}

impl PatchKind {
    /// The kind that a `Content-Type` names.
    pub(crate) fn of(content_type: &str, shaped: bool) -> Answer<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if shaped => Ok(Self::Strategic),
            "application/apply-patch+yaml"
            | "application/apply-patch+cbor"
            | "application/strategic-merge-patch+json" => {
                Err(Failure::unsupported_media_type(media_types(shaped)))
            }
            _ => Err(Failure::unknown_patch_type()),
        }
    }
}

/// A patch that was read but not yet applied.
#[derive(Debug)]
pub(crate) struct Patch {
    kind: PatchKind,
    body: Value,
    /// Keys that stood in the patch twice.
    pub(crate) duplicates: Vec<String>,
}

impl Patch {
    pub(crate) fn read(kind: PatchKind, bytes: &[u8]) -> Answer<Self> {
        let document = json::parse(bytes).map_err(|_| Failure::bad_request("invalid JSON patch"))?;
        let fits = match kind {
            PatchKind::Json => document.value.is_array(),
            PatchKind::Merge | PatchKind::Strategic => document.value.is_object(),
        };
        if !fits {
            let found = match document.value {
                Value::Array(_) => "array",
                Value::Object(_) => "object",
                Value::String(_) => "string",
                Value::Number(_) => "number",
                _ => "value",
            };
            let wanted = match kind {
                PatchKind::Json => "[]handlers.jsonPatchOp",
                PatchKind::Merge | PatchKind::Strategic => "map[string]interface {}",
            };
            let prefix = if kind == PatchKind::Strategic { "" } else { "error decoding patch: " };
            return Err(Failure::bad_request(format!(
                "{prefix}json: cannot unmarshal {found} into Go value of type {wanted}"
            )));
        }
        Ok(Self { kind, body: document.value, duplicates: document.duplicates })
    }

    /// The patched object; the original is left alone.
    pub(crate) fn apply(&self, original: &Value, shapes: &Shapes, shape: Option<&str>) -> Answer<Value> {
        match (self.kind, shape) {
            (PatchKind::Json, _) => self.apply_json(original),
            (PatchKind::Strategic, Some(shape)) => strategic::merge(shapes, shape, original, &self.body),
            (PatchKind::Merge, _) | (PatchKind::Strategic, None) => {
                let mut patched = original.clone();
                merge(&mut patched, &self.body);
                Ok(patched)
            }
        }
    }

    fn apply_json(&self, original: &Value) -> Answer<Value> {
        let operations = self.body.as_array().map_or(0, Vec::len);
        if operations > MAX_OPERATIONS {
            return Err(Failure::new(
                http::StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                format!(
                    "Request entity is too large: The allowed maximum operations in a JSON patch is \
                     {MAX_OPERATIONS}, got {operations}"
                ),
            ));
        }
        let patch: json_patch::Patch =
            serde_json::from_value(self.body.clone()).map_err(|_| Failure::unprocessable())?;
        let mut patched = original.clone();
        for operation in patch.0 {
            let operation = lenient(operation, &patched);
            json_patch::patch(&mut patched, &[operation]).map_err(|_| Failure::unprocessable())?;
        }
        Ok(patched)
    }

    /// What the patch was applied to, for messages: the patch itself, or the object that came of it.
    pub(crate) fn shown(&self, patched: &Value, shapes: &Shapes, shape: Option<&str>) -> String {
        match (self.kind, shape) {
            (PatchKind::Strategic, _) => json::go_map(&self.body),
            (PatchKind::Merge, Some(shape)) => gotext::json(shapes, shape, patched, &self.body),
            (PatchKind::Json, Some(shape)) => gotext::json(shapes, shape, patched, &self.paths()),
            (_, None) => patched.to_string(),
        }
    }

    /// The members that a JSON patch goes through.
    fn paths(&self) -> Value {
        let mut through = Value::Object(Map::new());
        let operations = self.body.as_array().into_iter().flatten();
        for pointer in operations.filter_map(|operation| operation.get("path")?.as_str()) {
            let mut place = &mut through;
            for part in pointer.split('/').skip(1) {
                let name = part.replace("~1", "/").replace("~0", "~");
                let Value::Object(map) = place else { break };
                place = map.entry(name).or_insert_with(|| Value::Object(Map::new()));
            }
        }
        through
    }
}

/// The API server lets a member of a map that is not there be replaced.
fn lenient(operation: json_patch::PatchOperation, target: &Value) -> json_patch::PatchOperation {
    use json_patch::{AddOperation, PatchOperation};
    match operation {
        PatchOperation::Replace(replace) => {
            let path = replace.path.to_string();
            let parent = path.rsplit_once('/').map(|(parent, _)| parent);
            match parent.and_then(|parent| target.pointer(parent)) {
                Some(Value::Object(_)) => {
                    PatchOperation::Add(AddOperation { path: replace.path, value: replace.value })
                }
                _ => PatchOperation::Replace(replace),
            }
        }
        other => other,
    }
}

/// RFC 7386: maps merge, null removes, everything else replaces.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn apply(kind: PatchKind, original: &Value, patch: &Value) -> Answer<Value> {
        Patch::read(kind, patch.to_string().as_bytes())?.apply(
            original,
            &Shapes::kubernetes(),
            Some("core/v1.Node"),
        )
    }

    #[test]
    fn patches_change_what_they_name() {
        let table = [
            (
                PatchKind::Merge,
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": null, "d": [1]}}),
                json!({"a": {"c": 2, "d": [1]}}),
            ),
            (PatchKind::Merge, json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (
                PatchKind::Merge,
                json!({"a": 1}),
                json!({"b": {"c": null, "d": 1}}),
                json!({"a": 1, "b": {"d": 1}}),
            ),
            (
                PatchKind::Json,
                json!({"a": {"b": 1}}),
                json!([{"op": "replace", "path": "/a/b", "value": 2}]),
                json!({"a": {"b": 2}}),
            ),
            (
                PatchKind::Json,
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/-", "value": 2}]),
                json!({"a": [1, 2]}),
            ),
            (
                PatchKind::Json,
                json!({"a": {}}),
                json!([{"op": "replace", "path": "/a/b", "value": 2}]),
                json!({"a": {"b": 2}}),
            ),
            (
                PatchKind::Json,
                json!({"a": {"x/y": 1}}),
                json!([{"op": "remove", "path": "/a/x~1y"}]),
                json!({"a": {}}),
            ),
            (
                PatchKind::Json,
                json!({"a": 1}),
                json!([{"op": "test", "path": "/a", "value": 1}, {"op": "move", "from": "/a", "path": "/b"}]),
                json!({"b": 1}),
            ),
        ];
        for (kind, original, patch, want) in table {
            assert_eq!(apply(kind, &original, &patch).unwrap(), want, "{kind:?} {patch}");
        }
    }

    #[test]
    fn patches_that_do_not_fit_are_refused() {
        let table = [
            (PatchKind::Json, json!([{"op": "remove", "path": "/nope"}]), 422),
            (PatchKind::Json, json!([{"op": "test", "path": "/a", "value": 2}]), 422),
            (PatchKind::Json, json!({"a": 1}), 400),
            (PatchKind::Merge, json!([1]), 400),
            (PatchKind::Strategic, json!("x"), 400),
        ];
        for (kind, patch, code) in table {
            assert_eq!(
                apply(kind, &json!({"a": 1}), &patch).unwrap_err().code.as_u16(),
                code,
                "{kind:?} {patch}"
            );
        }
    }

    #[test]
    fn media_types_name_the_kind() {
        assert_eq!(
            PatchKind::of("application/merge-patch+json; charset=utf-8", true).unwrap(),
            PatchKind::Merge
        );
        assert_eq!(PatchKind::of("application/apply-patch+yaml", true).unwrap_err().code.as_u16(), 415);
        assert_eq!(
            PatchKind::of("application/strategic-merge-patch+json", false).unwrap_err().code.as_u16(),
            415
        );
    }
}
