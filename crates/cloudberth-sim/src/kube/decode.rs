//! From a request's body to an object: parsed, typed, defaulted; strict about unknown fields where asked to be.

use serde_json::Value;

use super::canonical;
use super::field::FieldErrors;
use super::json;
use super::kinds;
use super::patch::Patch;
use super::query::Query;
use super::resource::{Behaviour, Resource};
use super::shape::Shapes;
use super::status::{Answer, Failure};
use super::value::{text, unset};

/// What to do about fields that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    Ignore,
    Warn,
    Strict,
}

/// Options that all writes take.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) strictness: Strictness,
}

impl WriteOptions {
    pub(crate) fn read(query: &Query, kind: &str) -> Answer<Self> {
        let mut errors = FieldErrors::default();
        let manager = query.get("fieldManager").unwrap_or_default();
        if manager.len() > 128 {
            errors.too_long("fieldManager", 128);
        }
        if kind == "PatchOptions" && query.get("force").is_some() {
            errors.forbidden("force", "may not be specified for non-apply patch");
        }
        let dry: Vec<&str> = query.all("dryRun").filter(|value| !value.is_empty()).collect();
        if dry.iter().any(|value| *value != "All") {
            errors.not_supported("dryRun", serde_json::json!(dry), &["All"]);
        }
        let strictness = match query.get("fieldValidation") {
            None | Some("Warn") => Strictness::Warn,
            Some("Ignore") => Strictness::Ignore,
            Some("Strict") => Strictness::Strict,
            Some(other) => {
                errors.not_supported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]);
                Strictness::Warn
            }
        };
        if errors.is_empty() {
            Ok(Self { dry_run: !dry.is_empty(), strictness })
        } else {
            Err(Failure::invalid("meta.k8s.io", kind, "", &errors))
        }
    }
}

/// An object as read, and what the client should be told about it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
}

fn complaints(unknown: &[String], duplicates: &[String]) -> Vec<String> {
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    let duplicates = duplicates.iter().map(|path| format!("duplicate field {path:?}"));
    duplicates.chain(unknown).collect()
}

/// Reads the body of a create or an update.
pub(crate) fn body(
    shapes: &Shapes,
    resource: &Resource,
    bytes: &[u8],
    strictness: Strictness,
) -> Answer<Decoded> {
    let document = json::parse(bytes).map_err(|error| {
        let kind = &resource.kind;
        let shown: String = String::from_utf8_lossy(bytes).chars().take(30).collect();
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; \
             json parse error: {error} ({shown})"
        ))
    })?;
    let given = document.value;
    let (kind, version) = (text(&given, "kind"), text(&given, "apiVersion"));
    let expected = resource.api_version();
    let (kind, version) = (
        if kind.is_empty() { &resource.kind } else { kind },
        if version.is_empty() { expected.as_str() } else { version },
    );
    if kind != resource.kind {
        return Err(foreign_kind(resource, kind, version));
    }
    if version != expected {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    let refuse = |why: String| {
        let version = &resource.version;
        Failure::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            resource.kind
        ))
    };
    let (object, unknown) = typed(shapes, resource, &given).map_err(|error| refuse(error.to_string()))?;
    let complaints = complaints(&unknown, &document.duplicates);
    match strictness {
        Strictness::Strict if !complaints.is_empty() => {
            Err(refuse(format!("strict decoding error: {}", complaints.join(", "))))
        }
        Strictness::Warn => Ok(Decoded { object, warnings: complaints }),
        Strictness::Strict | Strictness::Ignore => Ok(Decoded { object, warnings: Vec::new() }),
    }
}

fn foreign_kind(resource: &Resource, kind: &str, version: &str) -> Box<Failure> {
    let bare = version.rsplit('/').next().unwrap_or(version);
    Failure::bad_request(format!(
        "{kind} in version {bare:?} cannot be handled as a {}: no kind {kind:?} is registered for version {version:?} \
         in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
        resource.kind
    ))
}

/// Reads the result of a patch.
pub(crate) fn patched(
    shapes: &Shapes,
    resource: &Resource,
    value: &Value,
    patch: &Patch,
    strictness: Strictness,
) -> Answer<Decoded> {
    let refuse = |why: String| {
        let mut errors = FieldErrors::default();
        let shown = if patch.is_strategic() { go_map(patch.body()) } else { value.to_string() };
        errors.invalid("patch", shown, &why);
        Failure::invalid("", "", "", &errors)
    };
    let (object, unknown) = typed(shapes, resource, value).map_err(|error| refuse(error.to_string()))?;
    let complaints = complaints(&unknown, &patch.duplicates);
    match strictness {
        Strictness::Strict if !complaints.is_empty() => {
            Err(refuse(format!("strict decoding error: {}", complaints.join(", "))))
        }
        Strictness::Warn => Ok(Decoded { object, warnings: complaints }),
        Strictness::Strict | Strictness::Ignore => Ok(Decoded { object, warnings: Vec::new() }),
    }
}

/// The kept form: typed, in the shape it is stored in, without the names of its kind and version, with defaults.
fn typed(
    shapes: &Shapes,
    resource: &Resource,
    given: &Value,
) -> Result<(Value, Vec<String>), canonical::Unreadable> {
    let (mut object, unknown) = match &resource.shape {
        Some(shape) => {
            let reading = canonical::read(shapes, shape, given)?;
            (reading.value, reading.unknown)
        }
        None => {
            let metadata = given.get("metadata").unwrap_or(&Value::Null);
            let reading = canonical::read(shapes, "meta/v1.ObjectMeta", metadata)?;
            let mut object = given.clone();
            super::value::set(&mut object, "metadata", reading.value);
            let unknown = reading.unknown.iter().map(|path| format!("metadata.{path}")).collect();
            (object, unknown)
        }
    };
    unset(&mut object, "kind");
    unset(&mut object, "apiVersion");
    unset(&mut object, "metadata.managedFields");
    unset(&mut object, "metadata.selfLink");
    if resource.behaviour == Behaviour::Event && !resource.group.is_empty() {
        // What the newer API leaves out, the older one writes: read it once more in the stored shape.
        object = canonical::read(shapes, "core/v1.Event", &kinds::event_to_core(&object))?.value;
    }
    kinds::defaults(resource, &mut object);
    Ok((object, unknown))
}

/// A map as Go prints it: `map[a:1 b:[x y]]`.
fn go_map(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let inner: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_map(value))).collect();
            format!("map[{}]", inner.join(" "))
        }
        Value::Array(list) => {
            let inner: Vec<String> = list.iter().map(go_map).collect();
            format!("[{}]", inner.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> std::sync::Arc<Resource> {
        super::super::resource::builtin().into_iter().find(|r| r.plural == "services").unwrap()
    }

    fn read(value: &Value, strictness: Strictness) -> Answer<Decoded> {
        body(&Shapes::kubernetes(), &service(), value.to_string().as_bytes(), strictness)
    }

    #[test]
    fn unknown_fields_are_dropped_warned_about_or_refused() {
        let given =
            json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"foo": 1}});
        let warned = read(&given, Strictness::Warn).unwrap();
        assert_eq!(warned.warnings, ["unknown field \"spec.foo\""]);
        assert!(warned.object["spec"].get("foo").is_none());
        assert!(warned.object.get("kind").is_none());
        assert!(read(&given, Strictness::Ignore).unwrap().warnings.is_empty());
        assert_eq!(
            read(&given, Strictness::Strict).unwrap_err().message,
            "Service in version \"v1\" cannot be handled as a Service: strict decoding error: unknown field \"spec.foo\""
        );
    }

    #[test]
    fn the_wrong_thing_is_refused() {
        let table = [
            (
                json!({"kind": "Service", "apiVersion": "v2"}),
                "the API version in the data (v2) does not match the expected API version (v1)",
            ),
            (
                json!({"spec": {"ports": 1}}),
                "cannot be handled as a Service: json: cannot unmarshal number into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort",
            ),
        ];
        for (given, want) in table {
            let failure = read(&given, Strictness::Warn).unwrap_err();
            assert_eq!(failure.code.as_u16(), 400);
            assert!(failure.message.contains(want), "{}", failure.message);
        }
        assert_eq!(
            body(&Shapes::kubernetes(), &service(), b"{", Strictness::Warn).unwrap_err().code.as_u16(),
            400
        );
    }

    #[test]
    fn options_are_checked() {
        let read = |query: &str| WriteOptions::read(&Query::parse(Some(query)), "CreateOptions");
        assert!(read("dryRun=All").unwrap().dry_run);
        assert!(
            read("dryRun=Some")
                .unwrap_err()
                .message
                .contains("dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"")
        );
        assert_eq!(read("fieldValidation=Strict").unwrap().strictness, Strictness::Strict);
        assert_eq!(read("fieldValidation=Nope").unwrap_err().code.as_u16(), 422);
    }
}
