//! From a request's body to an object: parsed, typed, defaulted; strict about unknown fields where asked to be.

use std::fmt::Write as _;
use std::sync::Arc;

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
use super::structural;
use super::syntax;
use super::value::{text, unset};

/// What to do about unknown fields.
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

/// An object as read, and the warnings for the client.
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
    known: &[Arc<Resource>],
    resource: &Resource,
    bytes: &[u8],
    strictness: Strictness,
) -> Answer<Decoded> {
    let unrecognized = |why: &str| {
        let kind = &resource.kind;
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; \
             json parse error: {why} ({})",
            summary(bytes)
        ))
    };
    let document = json::parse(bytes)
        .map_err(|error| unrecognized(&syntax::mistake(bytes).unwrap_or_else(|| error.to_string())))?;
    let given = document.value;
    if !given.is_object() {
        let found = json::kind_of(&given);
        return Err(unrecognized(&format!(
            "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    }
    let (kind, version) = (text(&given, "kind"), text(&given, "apiVersion"));
    let expected = resource.api_version();
    if resource.custom.is_some() {
        check_custom(resource, &given, bytes)?;
    }
    let (kind, version) = (
        if kind.is_empty() { &resource.kind } else { kind },
        if version.is_empty() { expected.as_str() } else { version },
    );
    if kind != resource.kind || version != expected {
        return Err(foreign(known, resource, kind, version));
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

/// An object of a custom kind says itself what it is.
fn check_custom(resource: &Resource, given: &Value, bytes: &[u8]) -> Answer<()> {
    let (kind, version, expected) = (text(given, "kind"), text(given, "apiVersion"), resource.api_version());
    if kind.is_empty() {
        let body = String::from_utf8_lossy(bytes);
        return Err(Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{body}' ({})",
            resource.kind,
            summary(bytes)
        )));
    }
    if version != expected {
        return Err(version_mismatch(version, &expected));
    }
    if kind != resource.kind {
        let mut errors = FieldErrors::default();
        errors.invalid("kind", kind, &format!("must be {}", resource.kind));
        return Err(Failure::invalid(&resource.group, kind, super::value::name(given), &errors));
    }
    Ok(())
}

fn version_mismatch(found: &str, expected: &str) -> Failure {
    Failure::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({expected})"
    ))
}

/// The beginning of a body, for messages: as it is when it looks like an object, else in hexadecimal.
fn summary(bytes: &[u8]) -> String {
    let start = bytes.get(..30).unwrap_or(bytes);
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => {
            let shown = String::from_utf8_lossy(start);
            if start.len() < bytes.len() { format!("{shown} ...") } else { shown.into_owned() }
        }
        Some(_) => start.iter().fold(String::new(), |mut shown, byte| {
            let _ = write!(shown, "{byte:02x}");
            shown
        }),
    }
}

/// The Go package that a group's own types live in.
fn package(resource: &Resource) -> &str {
    match resource.group.split('.').next() {
        Some("" | "events") | None => "core",
        Some(name) => name,
    }
}

/// An object of another kind or version than the path is about.
fn foreign(known: &[Arc<Resource>], resource: &Resource, kind: &str, version: &str) -> Failure {
    let bare = version.rsplit('/').next().unwrap_or(version);
    let found = known.iter().find(|other| other.kind == kind && other.api_version() == version);
    let why = match found {
        Some(other) if other.kind == resource.kind => {
            return version_mismatch(version, &resource.api_version());
        }
        Some(other) => conversion(&other.version, kind, resource),
        None => unregistered(kind, version),
    };
    Failure::bad_request(format!(
        "{kind} in version {bare:?} cannot be handled as a {}: {why}",
        resource.kind
    ))
}

fn conversion(version: &str, kind: &str, resource: &Resource) -> String {
    let (package, wanted) = (package(resource), &resource.kind);
    format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion")
}

pub(crate) fn unregistered(kind: &str, version: &str) -> String {
    format!("no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
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
        let shown = patch.shown(value, shapes, resource.shape.as_deref());
        errors.invalid("patch", shown, &why);
        Failure::invalid("", "", "", &errors)
    };
    let (kind, version) = (text(value, "kind"), text(value, "apiVersion"));
    if kind != resource.kind {
        return Err(refuse(conversion(version.rsplit('/').next().unwrap_or_default(), kind, resource)));
    }
    if version != resource.api_version() {
        return Err(refuse(unregistered(kind, version)));
    }
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
    let (mut object, unknown) = if let Some(shape) = &resource.shape {
        let reading = canonical::read(shapes, shape, given)?;
        (reading.value, reading.unknown)
    } else {
        let metadata = given.get("metadata").unwrap_or(&Value::Null);
        let reading = canonical::read(shapes, "meta/v1.ObjectMeta", metadata)?;
        let mut object = given.clone();
        super::value::set(&mut object, "metadata", reading.value);
        let mut unknown: Vec<String> =
            reading.unknown.iter().map(|path| format!("metadata.{path}")).collect();
        unset(&mut object, "kind");
        unset(&mut object, "apiVersion");
        if let Some(custom) = &resource.custom {
            unknown.extend(structural::prune(&mut object, &custom.schema));
        }
        (object, unknown)
    };
    unset(&mut object, "kind");
    unset(&mut object, "apiVersion");
    unset(&mut object, "metadata.managedFields");
    unset(&mut object, "metadata.selfLink");
    if resource.behaviour == Behaviour::Event && !resource.group.is_empty() {
        // The stored shape has fields that the newer API leaves out: read it once more in that shape.
        object = canonical::read(shapes, "core/v1.Event", &kinds::event_to_core(&object))?.value;
    }
    kinds::defaults(resource, &mut object);
    Ok((object, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> Arc<Resource> {
        super::super::resource::builtin().into_iter().find(|r| r.plural == "services").unwrap()
    }

    fn read(value: &Value, strictness: Strictness) -> Answer<Decoded> {
        let known = super::super::resource::builtin();
        body(&Shapes::kubernetes(), &known, &service(), value.to_string().as_bytes(), strictness)
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
                "no kind \"Service\" is registered for version \"v2\"",
            ),
            (
                json!({"kind": "Pod", "apiVersion": "v1"}),
                "converting (v1.Pod) to (core.Service): unknown conversion",
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
            body(&Shapes::kubernetes(), &[], &service(), b"{", Strictness::Warn).unwrap_err().code.as_u16(),
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
