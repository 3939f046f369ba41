//! The `OpenAPI` documents that clients check manifests and build patches with, made from the shapes.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::render::bytes;
use super::resource::Resource;
use super::router::{Incoming, Reply};
use super::shape::{Field, Fields, Omit, Shape};
use super::state::State;
use super::value::set;

/// Answers `/openapi/…`; `None` for any other path.
pub(crate) fn answer(state: &State, incoming: &Incoming) -> Option<Reply> {
    if incoming.method != Method::GET {
        return None;
    }
    let path = incoming.path.trim_matches('/');
    let value = match path.strip_prefix("openapi/")? {
        "v2" => version_2(state),
        "v3" => index(state),
        rest => version_3(state, rest.strip_prefix("v3/")?)?,
    };
    let reply = Reply::json(StatusCode::OK, bytes(&value));
    // The index has always been called plain text.
    Some(if path == "openapi/v3" {
        Reply { content_type: "text/plain; charset=utf-8", ..reply }
    } else {
        reply
    })
}

/// Groups and versions that have documents, as paths: `api/v1`, `apis/coordination.k8s.io/v1`.
fn documents(state: &State) -> Vec<(String, String, String)> {
    let mut all: Vec<(String, String, String)> = Vec::new();
    for resource in &state.resources {
        let (group, version) = (&resource.group, &resource.version);
        let path =
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        if !all.iter().any(|(known, ..)| *known == path) {
            all.push((path, group.clone(), version.clone()));
        }
    }
    all
}

fn index(state: &State) -> Value {
    let entry = |(path, ..): (String, String, String)| {
        let url = format!("/openapi/v3/{path}?hash={}", fingerprint(state, &path));
        (path, json!({"serverRelativeURL": url}))
    };
    let paths: Map<String, Value> = documents(state).into_iter().map(entry).collect();
    json!({"paths": paths})
}

/// Changes whenever the document does: clients cache by it.
fn fingerprint(state: &State, path: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let names = state.resources.iter().flat_map(|r| [r.plural.as_str(), r.kind.as_str()]);
    for byte in names.chain([path, super::discovery::VERSION]).flat_map(str::bytes) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016X}")
}

/// `core/v1.Service` by its full name.
fn full_name(name: &str) -> String {
    let dotted = name.replace('/', ".");
    match name.split_once('/') {
        Some(("meta", _)) => format!("io.k8s.apimachinery.pkg.apis.{dotted}"),
        _ => format!("io.k8s.api.{dotted}"),
    }
}

fn own_name(resource: &Resource) -> String {
    if let Some(shape) = &resource.shape {
        return full_name(shape);
    }
    let reversed: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), resource.version, resource.kind)
}

fn identity(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn schema(shape: &Shape, refs: &str) -> Value {
    match shape {
        Shape::String(_) | Shape::Quantity => json!({"type": "string"}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 => json!({"type": "integer", "format": "int64"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::Time | Shape::MicroTime => json!({"type": "string", "format": "date-time"}),
        Shape::IntOrString => json!({"type": "string", "format": "int-or-string"}),
        Shape::Any => json!({"type": "object"}),
        Shape::List(inner) => json!({"type": "array", "items": schema(inner, refs)}),
        Shape::Map(inner) => json!({"type": "object", "additionalProperties": schema(inner, refs)}),
        Shape::Pointer(inner) => schema(inner, refs),
        Shape::Struct(name) => json!({"$ref": format!("{refs}{}", full_name(name))}),
    }
}

fn property(field: &Field, refs: &str) -> Value {
    let mut property = schema(&field.shape, refs);
    if refs.starts_with("#/components") && property.get("$ref").is_some() {
        property = json!({"allOf": [property]});
    }
    if field.rule.merge {
        set(&mut property, "x-kubernetes-patch-strategy", "merge");
        if let Some(key) = &field.rule.key {
            set(&mut property, "x-kubernetes-patch-merge-key", key.as_str());
        }
    }
    property
}

fn definition(fields: &Fields, refs: &str) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.clone(), property(field, refs))).collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| {
            field.omit == Omit::Always && !matches!(field.shape, Shape::Struct(_) | Shape::Pointer(_))
        })
        .map(|field| field.name.as_str())
        .collect();
    let mut definition = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        set(&mut definition, "required", json!(required));
    }
    definition
}

/// All shapes as definitions; the kinds among them say who they are.
fn definitions(state: &State, refs: &str) -> Map<String, Value> {
    let mut all: Map<String, Value> =
        state.shapes.iter().map(|(name, fields)| (full_name(name), definition(fields, refs))).collect();
    for resource in &state.resources {
        let entry = all.entry(own_name(resource)).or_insert_with(|| json!({"type": "object"}));
        set(entry, "x-kubernetes-group-version-kind", json!([identity(resource)]));
    }
    all
}

/// Query parameters of writes; clients look here to see that the server checks fields itself.
fn parameters(swagger: bool) -> Value {
    let one = |name: &str| {
        if swagger {
            json!({"name": name, "in": "query", "type": "string", "uniqueItems": true})
        } else {
            json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
        }
    };
    ["dryRun", "fieldManager", "fieldValidation"].into_iter().map(one).collect()
}

fn operation(resource: &Resource, action: &str, swagger: bool) -> Value {
    let name = own_name(resource);
    let (reference, body_type) = if swagger {
        (format!("#/definitions/{name}"), "application/json")
    } else {
        (format!("#/components/schemas/{name}"), "application/json")
    };
    let ok = if swagger {
        json!({"description": "OK", "schema": {"$ref": reference}})
    } else {
        json!({"description": "OK", "content": {body_type: {"schema": {"$ref": reference}}}})
    };
    let mut operation = json!({
        "responses": {"200": ok}, "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": identity(resource),
    });
    if matches!(action, "post" | "put" | "patch") {
        set(&mut operation, "parameters", parameters(swagger));
    }
    operation
}

fn paths<'a>(resources: impl Iterator<Item = &'a Resource>, swagger: bool) -> Map<String, Value> {
    let mut paths = Map::new();
    for resource in resources {
        let root = match resource.group.as_str() {
            "" => format!("/api/{}", resource.version),
            group => format!("/apis/{group}/{}", resource.version),
        };
        let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let all = format!("{root}{place}/{}", resource.plural);
        let allowed = |verb: &str| resource.verbs.iter().any(|known| known == verb);
        let on = |table: &[(&str, &str, &str)]| {
            let wanted = table.iter().filter(|(_, _, verb)| allowed(verb));
            wanted
                .map(|(method, action, _)| ((*method).to_owned(), operation(resource, action, swagger)))
                .collect::<Map<_, _>>()
        };
        paths.insert(all.clone(), on(&[("get", "list", "list"), ("post", "post", "create")]).into());
        if allowed("get") {
            let methods = [
                ("get", "get", "get"),
                ("put", "put", "update"),
                ("patch", "patch", "patch"),
                ("delete", "delete", "delete"),
            ];
            paths.insert(format!("{all}/{{name}}"), on(&methods).into());
        }
    }
    paths
}

fn version_2(state: &State) -> Value {
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": super::discovery::VERSION},
        "paths": paths(state.resources.iter().map(AsRef::as_ref), true),
        "definitions": definitions(state, "#/definitions/"),
    })
}

fn version_3(state: &State, path: &str) -> Option<Value> {
    let (_, group, version) = documents(state).into_iter().find(|(known, ..)| known == path)?;
    let here = state.resources.iter().map(AsRef::as_ref).filter(|r| r.group == group && r.version == version);
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": super::discovery::VERSION},
        "paths": paths(here, false),
        "components": {"schemas": definitions(state, "#/components/schemas/")},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let world = crate::Surroundings::new(1, || jiff::Timestamp::UNIX_EPOCH);
        State::new(&super::super::Config::default(), world)
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn collect(value: &Value, out: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    for (key, value) in map {
                        match value {
                            Value::String(text) if key == "$ref" => out.push(text.clone()),
                            other => collect(other, out),
                        }
                    }
                }
                Value::Array(list) => list.iter().for_each(|item| collect(item, out)),
                _ => {}
            }
        }
        let state = state();
        for document in [version_2(&state), version_3(&state, "api/v1").unwrap()] {
            let mut references = Vec::new();
            collect(&document, &mut references);
            assert!(references.len() > 100);
            for reference in references {
                assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
            }
        }
    }

    #[test]
    fn writes_say_that_fields_are_checked() {
        let document = version_3(&state(), "api/v1").unwrap();
        let patch = &document["paths"]["/api/v1/namespaces/{namespace}/services/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Service");
        let names: Vec<_> =
            patch["parameters"].as_array().unwrap().iter().map(|p| p["name"].clone()).collect();
        assert!(names.contains(&json!("fieldValidation")), "{names:?}");
        let ports =
            &document["components"]["schemas"]["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"];
        assert_eq!(ports["x-kubernetes-patch-merge-key"], "port");
    }
}
