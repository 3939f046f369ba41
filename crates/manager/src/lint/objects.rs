//! The Services of files: several documents in one file, and Lists opened.

use cloudberth_http::yaml::{Document, Mistake, documents};
use serde_json::Value;

use super::{Finding, Level};

/// A file, or what came through a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, as it is shown.
    pub file: String,
    /// What it holds.
    pub text: String,
}

/// A Service in a file.
#[derive(Debug)]
pub struct Object {
    /// Namespace and name.
    pub name: String,
    /// The Service as kubectl would send it.
    pub json: Value,
    file: String,
    document: usize,
    /// The lines of its annotations and fields.
    lines: Lines,
}

/// Where the values of an object stand, by path.
#[derive(Debug, Default)]
struct Lines {
    first: usize,
    known: Vec<(Vec<String>, usize)>,
}

/// The Services in a file, and nothing else of it.
pub fn objects(source: &Source) -> Result<Vec<Object>, Mistake> {
    let mut out = Vec::new();
    for (number, document) in documents(&source.text)?.iter().enumerate() {
        let json = document.json()?;
        open(&source.file, number + 1, document, &[], &json, &mut out);
    }
    Ok(out)
}

/// Takes in a Service, and opens a List; one in a List too, as kubectl does.
fn open(file: &str, document: usize, whole: &Document, path: &[String], json: &Value, out: &mut Vec<Object>) {
    let kind = json.get("kind").and_then(Value::as_str).unwrap_or_default();
    let version = json.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if let Some(items) = json.get("items").and_then(Value::as_array).filter(|_| kind.ends_with("List")) {
        for (at, item) in items.iter().enumerate() {
            let below = [path, &["items".to_owned(), at.to_string()]].concat();
            let mut item = item.clone();
            // The items of a ServiceList need not say what they are.
            if let (Value::Object(fields), "ServiceList") = (&mut item, kind) {
                fields.entry("kind").or_insert_with(|| "Service".into());
                fields.entry("apiVersion").or_insert_with(|| "v1".into());
            }
            open(file, document, whole, &below, &item, out);
        }
    }
    if (kind, version) != ("Service", "v1") {
        return;
    }
    let text = |path: &str| json.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let namespace = Some(text("/metadata/namespace")).filter(|text| !text.is_empty()).unwrap_or("default");
    let name = Some(text("/metadata/name"))
        .filter(|text| !text.is_empty())
        .map_or_else(|| format!("{}*", text("/metadata/generateName")), str::to_owned);
    out.push(Object {
        name: format!("{namespace}/{name}"),
        json: json.clone(),
        file: file.to_owned(),
        document,
        lines: Lines::of(whole, path, json),
    });
}

impl Lines {
    fn of(whole: &Document, path: &[String], json: &Value) -> Self {
        let line = |rest: &[String]| {
            let all: Vec<_> = path.iter().chain(rest).map(String::as_str).collect();
            whole.line_of(&all)
        };
        let mut paths = Vec::new();
        below(json, &mut Vec::new(), &mut paths);
        let first = if path.is_empty() { whole.line() } else { line(&[]) };
        Self { first, known: paths.into_iter().map(|path| (path.clone(), line(&path))).collect() }
    }

    /// The line of the deepest part of the path that is there.
    fn at(&self, path: &[String]) -> usize {
        let mut path = path;
        loop {
            if let Some((_, line)) = self.known.iter().find(|(known, _)| known == path) {
                return *line;
            }
            match path {
                [shorter @ .., _] if !shorter.is_empty() => path = shorter,
                _ => return self.first,
            }
        }
    }
}

/// The paths of everything below a value.
fn below(value: &Value, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    let mut each = |key: String, value: &Value| {
        path.push(key);
        out.push(path.clone());
        below(value, path, out);
        path.pop();
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| each(key.clone(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| each(at.to_string(), item)),
        _ => {}
    }
}

impl Object {
    /// Whether it has an annotation of this key.
    pub(super) fn has_annotation(&self, key: &str) -> bool {
        self.annotations().is_some_and(|all| all.contains_key(key))
    }

    pub(super) fn annotations(&self) -> Option<&serde_json::Map<String, Value>> {
        self.json.pointer("/metadata/annotations").and_then(Value::as_object)
    }

    /// A finding about a field, which is an annotation's key or a path such as `spec.ports[1].protocol`.
    pub(super) fn finding(&self, level: Level, field: &str, message: String, fix: &str) -> Finding {
        let path = self.path(field);
        let value = path.iter().try_fold(&self.json, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            value => value.get(part),
        });
        Finding {
            level,
            file: self.file.clone(),
            document: self.document,
            line: self.lines.at(&path),
            service: self.name.clone(),
            cloud: None,
            reason: None,
            field: field.to_owned(),
            value: value.filter(|_| !path.is_empty()).cloned(),
            message,
            fix: fix.to_owned(),
        }
    }

    fn path(&self, field: &str) -> Vec<String> {
        if self.has_annotation(field) {
            return ["metadata", "annotations", field].map(str::to_owned).into();
        }
        let parts = field.split(['.', '[']).map(|part| part.trim_end_matches(']').to_owned());
        parts.filter(|part| !part.is_empty()).collect()
    }
}
