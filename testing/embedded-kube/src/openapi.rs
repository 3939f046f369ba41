//! The `OpenAPI` documents that clients check manifests and build patches with, made from the shapes.

use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};

use super::negotiate::accepted;
use super::patch;
use super::render::bytes;
use super::resource::Resource;
use super::router::{Incoming, Reply};
use super::shape::{Field, Fields, Omit, Shape};
use super::state::State;
use super::swagger;
use super::value::set;

/// The media type of version 2 in protobuf. Clients ask for it with an `@`, which no media type may have.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_AS_ASKED_FOR: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Answers `/openapi/…`; `None` for any other path.
pub(crate) fn answer(state: &State, incoming: &Incoming) -> Option<Reply> {
    if incoming.method != Method::GET {
        return None;
    }
    let path = incoming.path.trim_matches('/');
    let value = match path.strip_prefix("openapi/")? {
        "v2" => return Some(in_form(&version_2(state), &incoming.headers)),
        "v3" => index(state),
        rest => version_3(state, rest.strip_prefix("v3/")?)?,
    };
    let reply = Reply::json(StatusCode::OK, bytes(&value));
    // kube-apiserver, too, serves the index as plain text.
    Some(if path == "openapi/v3" {
        Reply { content_type: "text/plain; charset=utf-8", ..reply }
    } else {
        reply
    })
}

/// Version 2 in the first form on the client's list that can be had.
fn in_form(document: &Value, headers: &HeaderMap) -> Reply {
    let json = || Reply::json(StatusCode::OK, bytes(document));
    let mut wanted = accepted(headers).map(|(media, _)| media).peekable();
    if wanted.peek().is_none() {
        return json();
    }
    wanted
        .find_map(|media| match media {
            "application/json" | "application/*" | "*/*" => Some(json()),
            PROTOBUF | PROTOBUF_AS_ASKED_FOR => {
                let content = swagger::encode(document).into();
                Some(Reply { content, content_type: PROTOBUF, ..Reply::text(StatusCode::OK, "") })
            }
            _ => None,
        })
        .unwrap_or_else(|| Reply { content_type: "", ..Reply::text(StatusCode::NOT_ACCEPTABLE, "") })
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
    let names = state.resources.iter().flat_map(|r| [r.version.as_str(), r.plural.as_str(), r.kind.as_str()]);
    let schemas = state.resources.iter().filter_map(|r| r.custom.as_ref()).map(|c| c.schema.to_string());
    let schemas: Vec<String> = schemas.collect();
    let words = names.chain(schemas.iter().map(String::as_str)).chain([path, super::discovery::VERSION]);
    for byte in words.flat_map(str::bytes) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016X}")
}

/// `core/v1.Service` by its full name.
fn full_name(name: &str) -> String {
    let dotted = name.replace('/', ".");
    match name.split_once('/') {
        Some(("meta", _)) => format!("io.k8s.apimachinery.pkg.apis.{dotted}"),
        Some(("apiextensions", _)) => format!("io.k8s.apiextensions-apiserver.pkg.apis.{dotted}"),
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

/// Types that are more than their wire form to clients: name, and how they are written.
const NAMED: [(&str, &str); 4] =
    [(QUANTITY, ""), (TIME, "date-time"), (MICRO_TIME, "date-time"), (INT_OR_STRING, "int-or-string")];
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

fn schema(shape: &Shape, refs: &str) -> Value {
    let reference = |name: &str| json!({"$ref": format!("{refs}{name}")});
    match shape {
        Shape::String(_) => json!({"type": "string"}),
        Shape::Quantity => reference(QUANTITY),
        Shape::Time => reference(TIME),
        Shape::MicroTime => reference(MICRO_TIME),
        Shape::IntOrString => reference(INT_OR_STRING),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 => json!({"type": "integer", "format": "int64"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::Any => json!({"type": "object"}),
        Shape::List(inner) => json!({"type": "array", "items": schema(inner, refs)}),
        Shape::Map(inner) => json!({"type": "object", "additionalProperties": schema(inner, refs)}),
        Shape::Pointer(inner) => schema(inner, refs),
        Shape::Struct(name) => reference(&full_name(name)),
    }
}

fn property(field: &Field, refs: &str) -> Value {
    let mut property = schema(&field.shape, refs);
    if refs.starts_with("#/components") && property.get("$ref").is_some() {
        property = json!({"allOf": [property]});
    }
    let strategy = match (field.rule.merge, field.rule.retain_keys) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, true) => "retainKeys",
        (false, false) => return property,
    };
    set(&mut property, "x-kubernetes-patch-strategy", strategy);
    if let Some(key) = &field.rule.key {
        set(&mut property, "x-kubernetes-patch-merge-key", key.as_str());
    }
    property
}

/// Fields that are always written but need not be given.
const OPTIONAL: [(&str, &str); 17] = [
    ("apiextensions/v1.CustomResourceDefinitionStatus", "acceptedNames"),
    ("apiextensions/v1.CustomResourceDefinitionStatus", "conditions"),
    ("apiextensions/v1.CustomResourceDefinitionStatus", "storedVersions"),
    ("apps/v1.DeploymentCondition", "status"),
    ("apps/v1.DeploymentCondition", "type"),
    ("authentication/v1.TokenRequest", "spec"),
    ("authentication/v1.TokenRequestSpec", "audiences"),
    ("authentication/v1.TokenRequestStatus", "expirationTimestamp"),
    ("authentication/v1.TokenRequestStatus", "token"),
    ("core/v1.ContainerImage", "names"),
    ("core/v1.Event", "reportingComponent"),
    ("core/v1.Event", "reportingInstance"),
    ("core/v1.NodeRuntimeHandler", "name"),
    ("core/v1.ProjectedVolumeSource", "sources"),
    ("discovery/v1.EndpointSlice", "endpoints"),
    ("discovery/v1.EndpointSlice", "ports"),
    ("events/v1.Event", "metadata"),
];

/// Fields that are not always written but have to be given.
const REQUIRED: [(&str, &str); 2] = [("apps/v1.Deployment", "spec"), ("apps/v1.DeploymentSpec", "selector")];

fn definition(name: &str, fields: &Fields, refs: &str) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.clone(), property(field, refs))).collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| {
            let place = (name, field.name.as_str());
            let written = field.omit == Omit::Always && !matches!(field.shape, Shape::Pointer(_));
            (written && !OPTIONAL.contains(&place)) || REQUIRED.contains(&place)
        })
        .map(|field| field.name.as_str())
        .collect();
    let mut definition = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        set(&mut definition, "required", json!(required));
    }
    definition
}

/// A custom kind as its schema describes it, with the fields that every object has.
fn described(resource: &Resource, refs: &str) -> Value {
    let schema = resource.custom.as_ref().map(|custom| &custom.schema);
    let mut properties =
        schema.and_then(|schema| schema.get("properties")).cloned().unwrap_or_else(|| json!({}));
    set(&mut properties, "apiVersion", json!({"type": "string"}));
    set(&mut properties, "kind", json!({"type": "string"}));
    let metadata = format!("{refs}{}", full_name("meta/v1.ObjectMeta"));
    set(&mut properties, "metadata", json!({"allOf": [{"$ref": metadata}]}));
    if refs == "#/definitions/" {
        set(&mut properties, "metadata", json!({"$ref": metadata}));
    }
    let mut described = schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
    // Without properties anything may stand there.
    if properties.as_object().is_some_and(|properties| properties.len() > 3) {
        set(&mut described, "properties", properties);
    }
    described
}

/// All shapes as definitions; kinds have their group, version and kind.
fn definitions(state: &State, refs: &str) -> Map<String, Value> {
    let mut all: Map<String, Value> =
        state.shapes.iter().map(|(name, fields)| (full_name(name), definition(name, fields, refs))).collect();
    for (name, format) in NAMED {
        let mut definition = json!({"type": "string"});
        if !format.is_empty() {
            set(&mut definition, "format", format);
        }
        all.insert(name.to_owned(), definition);
    }
    for resource in &state.resources {
        let entry = all.entry(own_name(resource)).or_insert_with(|| described(resource, refs));
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
    if action == "patch" {
        // From here clients learn whether they may send a strategic merge.
        let forms = patch::media_types(resource.shape.is_some());
        if swagger {
            set(&mut operation, "consumes", json!(forms));
        } else {
            let form = |form: &&str| ((*form).to_owned(), json!({"schema": {"type": "object"}}));
            let content: Map<String, Value> = forms.iter().map(form).collect();
            set(&mut operation, "requestBody", json!({"content": content, "required": true}));
        }
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
        let world = sim_kit::Surroundings::new(1, || jiff::Timestamp::UNIX_EPOCH);
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
    fn version_2_comes_in_the_form_that_is_asked_for() {
        let table = [
            ("", Some("application/json")),
            ("*/*", Some("application/json")),
            ("text/plain, application/json", Some("application/json")),
            (PROTOBUF_AS_ASKED_FOR, Some(PROTOBUF)),
            (PROTOBUF, Some(PROTOBUF)),
            ("application/yaml", None),
        ];
        let document = version_2(&state());
        for (accept, want) in table {
            let mut headers = HeaderMap::new();
            if !accept.is_empty() {
                headers.insert(http::header::ACCEPT, accept.parse().unwrap());
            }
            let reply = in_form(&document, &headers);
            let got = (reply.status == StatusCode::OK).then_some(reply.content_type);
            assert_eq!(got, want, "{accept}");
            assert_eq!(want.is_none(), reply.status == StatusCode::NOT_ACCEPTABLE, "{accept}");
        }
    }

    #[test]
    fn what_need_not_be_given_is_not_required() {
        let document = version_2(&state());
        let required = |name: &str| document["definitions"][name]["required"].clone();
        assert_eq!(required("io.k8s.api.core.v1.Event"), json!(["metadata", "involvedObject"]));
        assert_eq!(required("io.k8s.api.core.v1.ServicePort"), json!(["port"]));
        assert_eq!(required("io.k8s.api.core.v1.Service"), Value::Null);
        let volumes = &document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"];
        assert_eq!(volumes["x-kubernetes-patch-strategy"], "merge,retainKeys");
    }

    #[test]
    fn writes_say_that_fields_are_checked() {
        let document = version_3(&state(), "api/v1").unwrap();
        let patch = &document["paths"]["/api/v1/namespaces/{namespace}/services/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Service");
        let names: Vec<_> =
            patch["parameters"].as_array().unwrap().iter().map(|p| p["name"].clone()).collect();
        assert!(names.contains(&json!("fieldValidation")), "{names:?}");
        assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
        let ports =
            &document["components"]["schemas"]["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"];
        assert_eq!(ports["x-kubernetes-patch-merge-key"], "port");
    }
}
