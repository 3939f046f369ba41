//! Content negotiation: answers are JSON or YAML, as objects, as tables, or as metadata only; bodies may be protobuf
//! too.

use http::{HeaderMap, header};

use super::status::{Answer, Failure};

/// Media types of answers.
const ANSWER_TYPES: [&str; 2] = ["application/json", "application/yaml"];
/// Media types of the lines of a watch.
const STREAM_TYPES: [&str; 1] = ["application/json"];
/// Media types of bodies.
const BODY_TYPES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Media types of the bodies of custom resources.
const CUSTOM_BODY_TYPES: [&str; 2] = ["application/json", "application/yaml"];

/// The form in which a client wants its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Object,
    /// Rows and columns, made by the server.
    Table(&'static str),
    /// Objects without anything but metadata.
    Metadata(&'static str),
}

fn version(parameters: &[(&str, &str)]) -> Option<&'static str> {
    let get = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    if get("g") != Some("meta.k8s.io") {
        return None;
    }
    match get("v") {
        Some("v1") => Some("v1"),
        Some("v1beta1") => Some("v1beta1"),
        _ => None,
    }
}

/// The clauses of the client's list, with their first word.
pub(crate) fn accepted(headers: &HeaderMap) -> impl Iterator<Item = (&str, std::str::Split<'_, char>)> {
    let lists = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).filter(|clause| !clause.trim().is_empty()).map(|clause| {
        let mut parts = clause.split(';');
        (parts.next().unwrap_or_default().trim(), parts)
    })
}

/// Whether the first form on the client's list that can be had is YAML.
pub(crate) fn prefers_yaml(headers: &HeaderMap) -> bool {
    let spoken =
        |media: &str| matches!(media, "application/json" | "application/yaml" | "*/*" | "application/*");
    accepted(headers).map(|(media, _)| media).find(|media| spoken(media)) == Some("application/yaml")
}

/// Picks the first form on the client's list that can be had. `tables` says whether rows and columns can,
/// `stream` that there will be many answers, one a line.
pub(crate) fn view(headers: &HeaderMap, tables: bool, stream: bool) -> Answer<View> {
    if accepted(headers).next().is_none() {
        return Ok(View::Object);
    }
    for (media, parts) in accepted(headers) {
        let spoken = matches!(media, "application/json" | "*/*" | "application/*")
            || (media == "application/yaml" && !stream);
        if !spoken {
            continue;
        }
        let parts = parts.map(str::trim);
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let form = parameters.iter().find(|(key, _)| *key == "as").map(|(_, value)| *value);
        match (form, version(&parameters)) {
            (None | Some(""), _) => return Ok(View::Object),
            (Some("Table"), Some(version)) if tables => return Ok(View::Table(version)),
            (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some(version)) if tables => {
                return Ok(View::Metadata(version));
            }
            _ => {}
        }
    }
    Err(Failure::not_acceptable(if stream { &STREAM_TYPES } else { &ANSWER_TYPES }))
}

/// The language of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Json,
    Yaml,
    Protobuf,
}

/// The language that a body is said to be in; nothing said means JSON. Custom resources have no protobuf form.
pub(crate) fn language(headers: &HeaderMap, custom: bool) -> Answer<Language> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" | "*/*" => Ok(Language::Json),
        "application/yaml" => Ok(Language::Yaml),
        "application/vnd.kubernetes.protobuf" if !custom => Ok(Language::Protobuf),
        _ if custom => Err(Failure::unsupported_media_type(&CUSTOM_BODY_TYPES)),
        _ => Err(Failure::unsupported_media_type(&BODY_TYPES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        headers
    }

    #[test]
    fn the_first_form_that_can_be_had_is_taken() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let table = [
            ("", true, Some(View::Object)),
            ("application/json", true, Some(View::Object)),
            ("*/*", true, Some(View::Object)),
            ("application/vnd.kubernetes.protobuf,application/json", true, Some(View::Object)),
            (kubectl, true, Some(View::Table("v1"))),
            (kubectl, false, Some(View::Object)),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                true,
                Some(View::Metadata("v1")),
            ),
            ("application/vnd.kubernetes.protobuf", true, None),
            ("application/json;as=Nonsense;g=meta.k8s.io;v=v1", true, None),
            ("application/yaml", true, Some(View::Object)),
            ("text/html", true, None),
        ];
        for (accept, tables, want) in table {
            assert_eq!(view(&headers(accept), tables, false).ok(), want, "{accept}");
        }
        assert!(view(&headers("application/yaml"), true, true).is_err(), "no watch is in YAML");
    }

    #[test]
    fn yaml_is_for_clients_that_list_it_first() {
        let table = [
            ("application/yaml", true),
            ("text/html, application/yaml;q=1, application/json", true),
            ("application/json, application/yaml", false),
            ("*/*", false),
        ];
        for (accept, want) in table {
            assert_eq!(prefers_yaml(&headers(accept)), want, "{accept}");
        }
    }

    #[test]
    fn bodies_are_json_yaml_or_protobuf() {
        let with = |content_type: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            headers
        };
        assert_eq!(language(&HeaderMap::new(), false).unwrap(), Language::Json);
        let table = [
            ("application/json; charset=utf-8", false, Some(Language::Json)),
            ("application/yaml", false, Some(Language::Yaml)),
            ("application/yaml", true, Some(Language::Yaml)),
            ("application/vnd.kubernetes.protobuf", false, Some(Language::Protobuf)),
            ("application/vnd.kubernetes.protobuf", true, None),
            ("text/plain", false, None),
        ];
        for (given, custom, want) in table {
            assert_eq!(language(&with(given), custom).ok(), want, "{given}");
        }
        assert_eq!(language(&with("text/plain"), false).unwrap_err().code.as_u16(), 415);
    }
}
