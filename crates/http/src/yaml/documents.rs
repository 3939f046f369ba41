//! The documents of a manifest as JSON, each value with its line: for whoever judges what people are about to apply.

use serde_json::{Map, Number, Value as Json};

use super::{
    Mistake,
    node::{Kind, Node, parse_all},
};

/// One document of a file.
pub struct Document(Node);

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document").field("line", &self.line()).finish_non_exhaustive()
    }
}

/// The documents of a file; empty ones are left out. The mistake is that it is not YAML.
pub fn documents(text: &str) -> Result<Vec<Document>, Mistake> {
    let filled = parse_all(text)?.into_iter().filter(|node| !matches!(node.kind, Kind::Null));
    Ok(filled.map(Document).collect())
}

impl Document {
    /// The line that it begins on.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// The document as kubectl would send it. The mistake is something that JSON has no word for, or an alias.
    pub fn json(&self) -> Result<Json, Mistake> {
        json(&self.0, "")
    }

    /// The line of the value that a path of keys and numbers leads to, or of the last part of the path that is there.
    pub fn line_of(&self, path: &[&str]) -> usize {
        let (mut node, mut line) = (&self.0, self.0.line);
        for part in path {
            let next = match &node.kind {
                Kind::Map(entries) => entries
                    .iter()
                    .find(|(key, _, _)| key.as_deref() == Some(*part))
                    .map(|(_, line, value)| (value, *line)),
                Kind::List(items) => {
                    part.parse::<usize>().ok().and_then(|at| items.get(at)).map(|item| (item, item.line))
                }
                Kind::Null | Kind::Scalar { .. } | Kind::Odd(_) => None,
            };
            let Some((below, at)) = next else { break };
            (node, line) = (below, at);
        }
        line
    }
}

fn json(node: &Node, path: &str) -> Result<Json, Mistake> {
    let wrong =
        |line, field: &str, text: &str| Mistake { line, field: field.to_owned(), text: text.to_owned() };
    match &node.kind {
        Kind::Null => Ok(Json::Null),
        Kind::Scalar { text, plain: false } => Ok(Json::String(text.clone())),
        Kind::Scalar { text, plain: true } => Ok(plain(text)),
        Kind::Odd(why) => Err(wrong(node.line, path, why)),
        Kind::List(items) => {
            let each = items.iter().enumerate().map(|(at, item)| json(item, &format!("{path}[{at}]")));
            each.collect::<Result<Vec<_>, _>>().map(Json::Array)
        }
        Kind::Map(entries) => {
            let mut map = Map::new();
            for (key, line, value) in entries {
                let Some(key) = key else { return Err(wrong(*line, path, "a key must be text")) };
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if map.insert(key.clone(), json(value, &below)?).is_some() {
                    return Err(wrong(*line, &below, "the field is there twice; remove one of them"));
                }
            }
            Ok(Json::Object(map))
        }
    }
}

/// Text without quotes, as kubectl reads it: YAML 1.1, in which `yes` and `off` are no text either.
fn plain(text: &str) -> Json {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => return Json::Bool(true),
        "false" | "no" | "off" => return Json::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Json::Number(number.into());
    }
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let number = text.parse::<f64>().ok().filter(|_| numeric).and_then(Number::from_f64);
    number.map_or_else(|| Json::String(text.to_owned()), Json::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_become_json_as_kubectl_reads_them() {
        let text = "---\n# nothing\n---\na: 1\nb: \"1\"\nc: [yes, 1.5, 10.0.0.1, x, ~, -7]\n---\n{\"d\": {\"e\": false}}\n";
        let all = documents(text).unwrap();
        let read: Vec<_> = all.iter().map(|one| one.json().unwrap()).collect();
        let want = [
            json!({"a": 1, "b": "1", "c": [true, 1.5, "10.0.0.1", "x", null, -7]}),
            json!({"d": {"e": false}}),
        ];
        assert_eq!(read, want);
        assert_eq!(all.iter().map(Document::line).collect::<Vec<_>>(), [4, 8]);
        assert_eq!(documents("").unwrap().len(), 0);
    }

    #[test]
    fn a_value_has_the_line_of_its_key() {
        let text = "metadata:\n  annotations:\n    x.io/a: >-\n      long\n    x.io/b: 2\nspec:\n  ports:\n  - port: 80\n  - name: b\n    port: 81\n";
        let all = documents(text).unwrap();
        let table: [(&[&str], usize); 6] = [
            (&["metadata", "annotations", "x.io/a"], 3),
            (&["metadata", "annotations", "x.io/b"], 5),
            (&["spec", "ports", "1", "port"], 10),
            (&["spec", "ports", "7"], 7),
            (&["spec", "nothing"], 6),
            (&["nothing"], 1),
        ];
        for (path, want) in table {
            assert_eq!(all[0].line_of(path), want, "{path:?}");
        }
    }

    #[test]
    fn what_is_no_json_is_named() {
        let table = [
            ("a: &x 1\nb: *x\n", "line 2, field b: aliases"),
            ("a:\n  b: 1\n  b: 2\n", "line 3, field a.b: the field is there twice"),
            ("a: !!str 1\n", "line 1, field a: tags"),
        ];
        for (text, want) in table {
            let why = documents(text).unwrap()[0].json().unwrap_err().to_string();
            assert!(why.starts_with(want), "{text:?}: {why}");
        }
        assert!(documents("a: [\n").unwrap_err().to_string().contains("not YAML"));
    }
}
