//! Content negotiation: answers are JSON, as objects, as tables, or as metadata only; bodies may be protobuf too.

use http::{HeaderMap, header};

use super::status::{Answer, Failure};

/// What answers may be.
const ANSWER_TYPES: [&str; 1] = ["application/json"];
/// What bodies may be.
const BODY_TYPES: [&str; 2] = ["application/json", "application/vnd.kubernetes.protobuf"];

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

/// Picks the first form on the client's list that can be had. `tables` says whether rows and columns can.
pub(crate) fn view(headers: &HeaderMap, tables: bool) -> Answer<View> {
    let lists: Vec<&str> =
        headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    if lists.iter().all(|list| list.trim().is_empty()) {
        return Ok(View::Object);
    }
    for clause in lists.iter().flat_map(|list| list.split(',')) {
        let mut parts = clause.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !matches!(media, "application/json" | "*/*" | "application/*") {
            continue;
        }
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
    Err(Failure::not_acceptable(&ANSWER_TYPES))
}

/// The language of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Json,
    Protobuf,
}

/// The language that a body is said to be in; nothing said means JSON.
pub(crate) fn language(headers: &HeaderMap) -> Answer<Language> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" | "*/*" => Ok(Language::Json),
        "application/vnd.kubernetes.protobuf" => Ok(Language::Protobuf),
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
            ("text/html", true, None),
        ];
        for (accept, tables, want) in table {
            assert_eq!(view(&headers(accept), tables).ok(), want, "{accept}");
        }
    }

    #[test]
    fn bodies_are_json_or_protobuf() {
        let with = |content_type: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            headers
        };
        assert_eq!(language(&HeaderMap::new()).unwrap(), Language::Json);
        assert_eq!(language(&with("application/json; charset=utf-8")).unwrap(), Language::Json);
        assert_eq!(language(&with("application/vnd.kubernetes.protobuf")).unwrap(), Language::Protobuf);
        assert_eq!(language(&with("application/yaml")).unwrap_err().code.as_u16(), 415);
    }
}
