//! The message in an error body, whatever its form. Pure.
//!
//! Every cloud has its own form, and proxies answer with HTML pages. Field errors come first, because the title beside
//! them never says what is wrong.

use serde_json::{Map, Value};

/// How many bytes are looked at.
const LOOK_AT: usize = 64 * 1024;
const MOST: usize = 20;
const DEEPEST: usize = 6;

/// Keys that hold a sentence for people, best first.
const SENTENCES: [&str; 5] = ["error_description", "message", "detail", "description", "title"];
/// Keys that hold a short name of the error.
const NAMES: [&str; 3] = ["error_name", "error", "code"];
/// Keys that name the field that an entry of a list is about.
const FIELDS: [&str; 4] = ["field", "attribute", "pointer", "property"];
/// Keys that say nothing about what went wrong.
const NOISE: [&str; 8] =
    ["type", "status", "instance", "traceId", "trace_id", "request_id", "timestamp", "path"];

/// The message in an error body, on one line, uncut; empty if the body says nothing.
///
/// It is untrusted text: redact it before it is shown.
pub fn explain(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..LOOK_AT).unwrap_or(body));
    let text = text.trim();
    let said = match serde_json::from_slice(body) {
        Ok(value) => from_json(&value, DEEPEST),
        Err(_) if text.starts_with('<') => title(text),
        Err(_) => text.to_owned(),
    };
    one_line(&said)
}

fn from_json(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(object) => from_object(object, depth),
        other => {
            let mut found = Vec::new();
            flatten("", other, depth, &mut found);
            found.join("; ")
        }
    }
}

fn from_object(object: &Map<String, Value>, depth: usize) -> String {
    if let (Some(inner @ Value::Object(_)), Some(depth)) = (object.get("error"), depth.checked_sub(1)) {
        return from_json(inner, depth);
    }
    let name = NAMES.iter().find_map(|key| scalar(object.get(*key)?)).filter(|name| !name.is_empty());
    let mut found = Vec::new();
    if let Some(errors) = object.get("errors") {
        flatten("", errors, depth, &mut found);
        // A map of fields needs no name in front of it; a list does.
        if !found.is_empty() && errors.is_object() {
            return found.join("; ");
        }
    }
    if found.is_empty() {
        let sentence = SENTENCES.iter().find_map(|key| scalar(object.get(*key)?));
        found.extend(sentence.filter(|text| !text.is_empty()));
    }
    if found.is_empty() && name.is_none() {
        for (key, value) in object.iter().filter(|(key, _)| !NOISE.contains(&key.as_str())) {
            flatten(key, value, depth, &mut found);
        }
    }
    let sentence = found.join("; ");
    match name {
        Some(name) if sentence.is_empty() => name,
        Some(name) => format!("{name}: {sentence}"),
        None => sentence,
    }
}

/// Collects every text below `value`, each with the field that it is about.
fn flatten(field: &str, value: &Value, depth: usize, found: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if found.len() >= MOST {
        return;
    }
    match value {
        Value::Null => {}
        Value::Array(list) => list.iter().for_each(|inner| flatten(field, inner, depth, found)),
        Value::Object(object) => {
            let sentence = SENTENCES.iter().find_map(|key| scalar(object.get(*key)?));
            if let Some(sentence) = sentence {
                let named = FIELDS.iter().find_map(|key| scalar(object.get(*key)?));
                found.push(about(named.as_deref().unwrap_or(field), &sentence));
                return;
            }
            for (key, inner) in object {
                let deeper = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                flatten(&deeper, inner, depth, found);
            }
        }
        scalar => found.extend(self::scalar(scalar).map(|text| about(field, &text))),
    }
}

fn about(field: &str, text: &str) -> String {
    if field.is_empty() { text.to_owned() } else { format!("{field}: {text}") }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn title(page: &str) -> String {
    // ASCII lower case keeps every byte where it was.
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title").and_then(|at| Some(at + lower.get(at..)?.find('>')? + 1));
    open.and_then(|from| page.get(from..from + lower.get(from..)?.find("</title")?))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Removes control characters: with line breaks, a server could forge lines in our log.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_shape_says_its_best() {
        let table = [
            ("nothing", "", ""),
            ("white space", " \r\n", ""),
            ("plain text", "upstream\nis down\u{7}", "upstream is down"),
            (
                "a page",
                "<html><head><TITLE lang=en> 502 Bad Gateway </TITLE></head></html>",
                "502 Bad Gateway",
            ),
            ("a page without a title", "<html>oops</html>", ""),
            ("a page cut in its title", "<html><title>50", ""),
            ("detail", r#"{"detail":"Not found."}"#, "Not found."),
            (
                "flat fields",
                r#"{"name":"This field may not be blank."}"#,
                "name: This field may not be blank.",
            ),
            ("listed fields", r#"{"name":["too long","too odd"]}"#, "name: too long; name: too odd"),
            (
                "nested fields",
                r#"{"vip_addresses":[{"subnet":["no such"]}]}"#,
                "vip_addresses.subnet: no such",
            ),
            (
                "BL-131 BL-142 field errors before the title",
                r#"{"title":"One or more.","status":400,"errors":{"entry_protocol":["not one of: http"]}}"#,
                "entry_protocol: not one of: http",
            ),
            ("empty errors", r#"{"title":"Not Found","status":404,"errors":{},"traceId":"1"}"#, "Not Found"),
            ("detail before title", r#"{"title":"Bad","detail":"because"}"#, "because"),
            ("null detail", r#"{"title":"Bad","detail":null}"#, "Bad"),
            ("code and message", r#"{"code":"uid_conflict","message":"taken"}"#, "uid_conflict: taken"),
            (
                "error and description",
                r#"{"error":"invalid_token","error_description":"gone"}"#,
                "invalid_token: gone",
            ),
            ("error alone", r#"{"error":"invalid_client"}"#, "invalid_client"),
            ("error object", r#"{"error":{"code":7,"message":"bad zone"}}"#, "7: bad zone"),
            (
                "BB-153 name and list",
                r#"{"error_name":"account_limit_reached","errors":["too many","really"]}"#,
                "account_limit_reached: too many; really",
            ),
            ("name, empty list", r#"{"error_name":"Forbidden","errors":[]}"#, "Forbidden"),
            ("list of objects", r#"{"errors":[{"field":"port","message":"taken"}]}"#, "port: taken"),
            ("a list", r#"["a",{"message":"b"},3,true,null]"#, "a; b; 3; true"),
            ("a string", r#""down for tea""#, "down for tea"),
            ("null", "null", ""),
            ("only noise", r#"{"status":500,"traceId":"x"}"#, ""),
            ("a line of its own", r#"{"detail":"x\nlevel=error y"}"#, "x level=error y"),
        ];
        for (case, body, want) in table {
            assert_eq!(explain(body.as_bytes()), want, "{case}");
        }
    }

    #[test]
    fn long_lists_end() {
        let many: Vec<String> = (0..1_000).map(|n| format!("e{n}")).collect();
        let body = serde_json::to_vec(&serde_json::json!({ "errors": many })).unwrap();
        assert_eq!(explain(&body).split("; ").count(), MOST);
    }

    proptest! {
        #[test]
        fn any_bytes_do(body in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(!explain(&body).contains(char::is_control));
        }

        #[test]
        fn any_text_and_page_does(body in "(<html>|<title|>|</title>|[{\\[\"]|error|errors|:|é|\\PC){0,40}") {
            prop_assert!(!explain(body.as_bytes()).contains(char::is_control));
        }

        #[test]
        fn any_json_does(value in crate::answer::json::any_json()) {
            let body = serde_json::to_vec(&value).unwrap();
            prop_assert!(!explain(&body).contains(char::is_control));
        }
    }
}
