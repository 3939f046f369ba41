//! Where two transcripts differ.

use std::fmt;

use serde_json::{Map, Value};

use super::normalise::Normaliser;
use super::run::Transcript;

/// One field that two servers do not agree on.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The row's id and name.
    pub row: String,
    /// The step: its number, and the request.
    pub step: String,
    /// The field, as a JSON pointer into the answer.
    pub path: String,
    /// What the real server has there.
    pub real: Option<Value>,
    /// What the other has there.
    pub embedded: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| value.as_ref().map_or("(absent)".to_owned(), Value::to_string);
        let (real, embedded) = (show(&self.real), show(&self.embedded));
        write!(f, "{} | {} | {}: real={real} embedded={embedded}", self.row, self.step, self.path)
    }
}

/// Is told the path of a difference and what stands there on either side.
type Tell<'f> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 'f;

/// Every field in which `embedded` differs from `real`, in the table's order.
pub fn differences(real: &[Transcript], embedded: &[Transcript]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (real, embedded) in real.iter().zip(embedded) {
        let row = format!("{} {:?}", real.id, real.name);
        let (left, right) = (normalised(real), normalised(embedded));
        for (number, (seen, (left, right))) in real.seen.iter().zip(left.iter().zip(&right)).enumerate() {
            let step = format!("{}. {}", number + 1, seen.asked);
            descend(Some(left), Some(right), &mut String::new(), &mut |path, real, embedded| {
                found.push(Difference {
                    row: row.clone(),
                    step: step.clone(),
                    path: path.to_owned(),
                    real: real.cloned(),
                    embedded: embedded.cloned(),
                });
            });
        }
    }
    found
}

fn normalised(transcript: &Transcript) -> Vec<Value> {
    let mut normaliser = Normaliser::new(transcript.seen.iter().map(|seen| seen.template.as_str()));
    transcript
        .seen
        .iter()
        .map(|seen| {
            let mut answer = normaliser.apply(&seen.answer);
            if let (Some(lens), Some(body)) = (seen.lens, answer.get_mut("body")) {
                *body = lens(body);
            }
            answer
        })
        .collect()
}

fn descend(left: Option<&Value>, right: Option<&Value>, path: &mut String, tell: &mut Tell<'_>) {
    match (left, right) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in keys(a, b) {
                within(path, &key.replace('~', "~0").replace('/', "~1"), |path| {
                    descend(a.get(key), b.get(key), path, tell);
                });
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                within(path, &index.to_string(), |path| descend(a.get(index), b.get(index), path, tell));
            }
        }
        _ if left == right => {}
        _ => tell(path, left, right),
    }
}

fn keys<'v>(a: &'v Map<String, Value>, b: &'v Map<String, Value>) -> impl Iterator<Item = &'v String> {
    a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)))
}

fn within(path: &mut String, key: &str, inside: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(key);
    inside(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::super::run::Observed;
    use super::*;
    use serde_json::json;

    fn transcript(answers: &[Value]) -> Vec<Transcript> {
        let seen = answers.iter().map(|answer| Observed {
            asked: "GET /x".into(),
            request: json!({}),
            template: String::new(),
            answer: answer.clone(),
            lens: None,
            problem: None,
        });
        vec![Transcript { id: "t-1".into(), name: "a row", seen: seen.collect() }]
    }

    fn object(uid: &str, version: &str, colour: &Value) -> Value {
        json!({ "status": 200, "body": { "metadata": { "uid": uid, "resourceVersion": version }, "colour": colour } })
    }

    #[test]
    fn ids_may_differ_but_not_what_they_say_about_each_other() {
        let real = [object("a", "7", &json!(1)), object("a", "7", &json!(1))];
        let same = [object("b", "1", &json!(1)), object("b", "1", &json!(1))];
        assert!(differences(&transcript(&real), &transcript(&same)).is_empty());

        let bumped = [object("b", "1", &json!(1)), object("c", "2", &json!(null))];
        let found: Vec<_> =
            differences(&transcript(&real), &transcript(&bumped)).iter().map(ToString::to_string).collect();
        let at = |path: &str, real: &str, other: &str| {
            format!("t-1 \"a row\" | 2. GET /x | /body/{path}: real={real} embedded={other}")
        };
        assert_eq!(
            found,
            [
                at("colour", "1", "null"),
                at("metadata/resourceVersion", "\"rv#1\"", "\"rv#2\""),
                at("metadata/uid", "\"uid#1\"", "\"uid#2\""),
            ]
        );
    }

    #[test]
    fn a_missing_or_extra_field_or_element_is_a_difference() {
        let real = transcript(&[json!({ "body": { "a/b": 1, "list": [1, 2] } })]);
        let other = transcript(&[json!({ "body": { "extra": {}, "list": [1] } })]);
        let paths: Vec<_> = differences(&real, &other).into_iter().map(|d| d.path).collect();
        assert_eq!(paths, ["/body/a~1b", "/body/list/1", "/body/extra"]);
    }
}
