//! Label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

use serde_json::Value;

use super::value;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    Above(i64),
    Below(i64),
}

/// A conjunction of tests on labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<(String, Test)>);

impl LabelSelector {
    /// Parses a selector; the error says what was found and what was expected.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut words = Words { rest: text };
        let mut tests = Vec::new();
        if words.peek() == Word::End {
            return Ok(Self::default());
        }
        loop {
            if let Word::Mark(mark @ ("=" | "==" | "!=" | "," | "(" | ")" | "<" | ">")) = words.peek() {
                return Err(format!("found '{mark}', expected: !, identifier, or 'end of string'"));
            }
            tests.push(requirement(&mut words).map_err(|why| format!("unable to parse requirement: {why}"))?);
            match words.next() {
                Word::End => return Ok(Self(tests)),
                Word::Mark(",") => match words.peek() {
                    Word::Text(_) | Word::Mark("!") => {}
                    other => {
                        return Err(format!("found '{}', expected: identifier after ','", other.shown()));
                    }
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.shown())),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = value::at(object, "metadata.labels");
        self.0.iter().all(|(key, test)| {
            let found = labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
            match (test, found) {
                (Test::In(values), Some(found)) => values.iter().any(|v| v == found),
                (Test::NotIn(values), Some(found)) => values.iter().all(|v| v != found),
                (Test::NotIn(_) | Test::Missing, None) | (Test::Exists, Some(_)) => true,
                (Test::Above(than), Some(found)) => found.parse::<i64>().is_ok_and(|n| n > *than),
                (Test::Below(than), Some(found)) => found.parse::<i64>().is_ok_and(|n| n < *than),
                _ => false,
            }
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word<'a> {
    Mark(&'a str),
    Text(&'a str),
    End,
}

impl Word<'_> {
    fn shown(&self) -> &str {
        match self {
            Self::Mark(s) | Self::Text(s) => s,
            Self::End => "",
        }
    }
}

#[derive(Clone)]
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Word<'a> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Word::End;
        }
        for mark in ["!=", "==", "=", "!", ",", "(", ")", "<", ">"] {
            if let Some(rest) = self.rest.strip_prefix(mark) {
                let (found, _) = self.rest.split_at(mark.len());
                self.rest = rest;
                return Word::Mark(found);
            }
        }
        let end =
            self.rest.find(|c: char| c.is_whitespace() || "=!,()<>".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Word::Text(word)
    }

    fn peek(&self) -> Word<'a> {
        self.clone().next()
    }
}

fn requirement(words: &mut Words<'_>) -> Result<(String, Test), String> {
    if words.peek() == Word::Mark("!") {
        words.next();
        return Ok((key(words)?, Test::Missing));
    }
    let key = key(words)?;
    if matches!(words.peek(), Word::End | Word::Mark(",")) {
        return Ok((key, Test::Exists));
    }
    let operator = words.next();
    let test = match operator {
        Word::Mark("=" | "==") => Test::In(vec![exact(words)?]),
        Word::Mark("!=") => Test::NotIn(vec![exact(words)?]),
        Word::Mark(">") => Test::Above(number(&exact(words)?)?),
        Word::Mark("<") => Test::Below(number(&exact(words)?)?),
        Word::Text("in") => Test::In(set(words)?),
        Word::Text("notin") => Test::NotIn(set(words)?),
        other => {
            const EXPECTED: &str = "in, notin, =, ==, !=, gt, lt";
            return Err(format!("found '{}', expected: {EXPECTED}", other.shown()));
        }
    };
    Ok((key, test))
}

fn key(words: &mut Words<'_>) -> Result<String, String> {
    match words.next() {
        Word::Text(key) => {
            let problems = super::names::qualified_name(key);
            if problems.is_empty() {
                Ok(key.to_owned())
            } else {
                Err(format!("key: Invalid value: {key:?}: {}", problems.join("; ")))
            }
        }
        other @ (Word::Mark(_) | Word::End) => {
            Err(format!("found '{}', expected: identifier", other.shown()))
        }
    }
}

fn label_value(text: &str, key_shown: &str) -> Result<String, String> {
    let problems = super::names::label_value(text);
    if problems.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(format!("values[0][{key_shown}]: Invalid value: {text:?}: {}", problems.join("; ")))
    }
}

fn exact(words: &mut Words<'_>) -> Result<String, String> {
    match words.peek() {
        Word::Text(text) => {
            words.next();
            label_value(text, "")
        }
        Word::End | Word::Mark(",") => Ok(String::new()),
        other @ Word::Mark(_) => Err(format!("found '{}', expected: identifier", other.shown())),
    }
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        format!("values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })
}

fn set(words: &mut Words<'_>) -> Result<Vec<String>, String> {
    match words.next() {
        Word::Mark("(") => {}
        other => return Err(format!("found '{}' expected: '('", other.shown())),
    }
    let mut values = Vec::new();
    loop {
        match words.next() {
            Word::Text(text) => values.push(label_value(text, "")?),
            Word::Mark(",") => {}
            Word::Mark(")") => {
                return Ok(if values.is_empty() { vec![String::new()] } else { values });
            }
            other => return Err(format!("found '{}', expected: ',', or identifier", other.shown())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_match_labels() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front", "n": "5", "a.b/c": ""}}});
        let table = [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app=db", false),
            ("app!=db", true),
            ("app!=web", false),
            ("missing!=x", true),
            ("app in (web, db)", true),
            ("app in (db)", false),
            ("app notin (db,cache)", true),
            ("missing notin (x)", true),
            ("app", true),
            ("!app", false),
            ("!missing", true),
            ("missing", false),
            ("a.b/c=", true),
            ("a.b/c", true),
            ("n>4", true),
            ("n<4", false),
            ("app in (web),tier notin (back),!gone,n", true),
        ];
        for (text, want) in table {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&object), want, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["a=b=c", "a in b", "=x", "a,,b", "a in (b", "a=!", "-x=1", "a=b c", "n>x"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }
}
