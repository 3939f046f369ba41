//! Removes from answers what differs between any two servers.
//!
//! A value that the server made up is replaced by its kind and the order of its first appearance in the row
//! (`uid#2`). A value that stands in one of the row's requests was made up by the table, and stays.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The state of one row: what was made up so far.
pub(crate) struct Normaliser {
    requests: String,
    known: BTreeMap<(&'static str, String), String>,
    /// Made-up values that are also looked for inside longer strings, such as messages and table cells.
    words: BTreeMap<String, String>,
    /// The columns of the newest table that named them.
    columns: Vec<String>,
}

impl Normaliser {
    /// For a row whose requests say this.
    pub(crate) fn new<'t>(requests: impl Iterator<Item = &'t str>) -> Self {
        Self {
            requests: requests.collect(),
            known: BTreeMap::new(),
            words: BTreeMap::new(),
            columns: Vec::new(),
        }
    }

    /// The answer with server-made values replaced. Answers must come in order.
    pub(crate) fn apply(&mut self, answer: &Value) -> Value {
        self.learn(answer);
        let mut answer = answer.clone();
        self.rewrite(&mut answer, "");
        answer
    }

    /// Names that the server finished, and uids, before anything that may quote them is rewritten.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let text = |key| fields.get(key).and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
                    && name.len() == prefix.len() + 5
                    && name.starts_with(prefix)
                {
                    let alias = self.alias("name", name);
                    self.words.insert(name.to_owned(), format!("{prefix}{alias}"));
                }
                if let Some(uid) = text("uid").filter(|uid| !self.given(uid)) {
                    let alias = self.alias("uid", uid);
                    self.words.insert(uid.to_owned(), alias);
                }
                fields.values().for_each(|field| self.learn(field));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    fn rewrite(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(fields) => self.rewrite_object(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item, key)),
            Value::String(text) => *text = self.rewrite_text(text, key),
            Value::Number(number) => {
                if let Some(alias) = self.rewrite_number(&number.to_string(), key) {
                    *value = alias.into();
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn rewrite_object(&mut self, fields: &mut Map<String, Value>) {
        fields.remove("managedFields");
        // The version of a list moves with everything else in the store; so does that of a bookmark.
        let is =
            |field: &str, value: &str| fields.get(field).and_then(Value::as_str).is_some_and(|v| v == value);
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        let moving = if kind.ends_with("List") || kind == "Table" {
            fields.get_mut("metadata")
        } else if is("type", "BOOKMARK") {
            fields.get_mut("object").and_then(|object| object.get_mut("metadata"))
        } else {
            None
        };
        if let Some(version) = moving.and_then(|metadata| metadata.get_mut("resourceVersion")) {
            *version = "moving".into();
        }
        if is_table(fields) {
            self.hide_ages(fields);
            hide_prose(fields);
        }
        // Addresses and ports come first, for the parts of an object that quote them.
        for key in ["clusterIP", "clusterIPs", "ports", "healthCheckNodePort"] {
            if let Some(field) = fields.get_mut(key) {
                self.rewrite(field, key);
            }
        }
        for (key, field) in fields.iter_mut() {
            self.rewrite(field, key);
        }
    }

    /// Ages in the cells of a table; how they are written is not hidden, only how much. A watched table names
    /// its columns in its first event only.
    fn hide_ages(&mut self, table: &mut Map<String, Value>) {
        if let Some(columns) = table.get("columnDefinitions").and_then(Value::as_array) {
            let name =
                |column: &Value| column.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            self.columns = columns.iter().map(name).collect();
        }
        let rows = table.get_mut("rows").and_then(Value::as_array_mut);
        for row in rows.into_iter().flatten() {
            let cells = row.get_mut("cells").and_then(Value::as_array_mut);
            for (cell, name) in cells.into_iter().flatten().zip(&self.columns) {
                let is_age = matches!(name.as_str(), "Age" | "Last Observed" | "First Observed");
                if let Some(text) = cell.as_str().filter(|text| is_age && text.ends_with('s')) {
                    *cell = hide_numbers(text).into();
                }
            }
        }
    }

    fn rewrite_text(&mut self, text: &str, key: &str) -> String {
        match key {
            "resourceVersion" if is_number(text) && text != "0" => return self.alias("rv", text),
            "continue" if !text.is_empty() => return "continue".into(),
            "token" if text.len() > 100 => return "token".into(),
            "clusterIP" | "clusterIPs" if is_made_up_address(text) && !self.given(text) => {
                let alias = self.alias("ip", text);
                self.words.insert(text.to_owned(), alias.clone());
                return alias;
            }
            _ => {}
        }
        if let Some(form) = timestamp(text)
            && !self.given(text)
        {
            return form.into();
        }
        if key == "message" && text.to_ascii_lowercase().replace(' ', "").contains("resourceversion") {
            return hide_numbers(&self.rewrite_words(text));
        }
        self.rewrite_words(&self.hide_times(text))
    }

    /// Times inside longer texts, such as a message that quotes an object.
    fn hide_times(&self, text: &str) -> String {
        const LENGTH: usize = "0000-00-00T00:00:00Z".len();
        let mut hidden = text.to_owned();
        let mut at = 0;
        while let Some(found) = hidden.get(at..at + LENGTH) {
            if timestamp(found).is_some() && !self.given(found) {
                hidden.replace_range(at..at + LENGTH, "time");
            }
            at += 1;
            while at < hidden.len() && !hidden.is_char_boundary(at) {
                at += 1;
            }
        }
        hidden
    }

    fn rewrite_number(&mut self, number: &str, key: &str) -> Option<String> {
        let made_up =
            matches!(key, "nodePort" | "healthCheckNodePort") && number != "0" && !self.given(number);
        made_up.then(|| {
            let alias = self.alias("port", number);
            self.words.insert(number.to_owned(), alias.clone());
            alias
        })
    }

    fn rewrite_words(&self, text: &str) -> String {
        let in_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let mut rewritten = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rewritten.push_str(self.words.get(word).map_or(word, String::as_str));
            let gap = after.find(in_word).unwrap_or(after.len());
            let (between, next) = after.split_at(gap);
            rewritten.push_str(between);
            rest = next;
        }
        rewritten
    }

    fn alias(&mut self, kind: &'static str, value: &str) -> String {
        let next = self.known.keys().filter(|(known, _)| *known == kind).count() + 1;
        self.known.entry((kind, value.to_owned())).or_insert_with(|| format!("{kind}#{next}")).clone()
    }

    /// Whether the table itself said this value, as a text or as a number of its own.
    fn given(&self, value: &str) -> bool {
        let text = || self.requests.contains(&format!("\"{value}\""));
        let number = || self.requests.split(|c: char| !c.is_ascii_digit()).any(|digits| digits == value);
        text() || (is_number(value) && number())
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_made_up_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

fn is_table(fields: &Map<String, Value>) -> bool {
    fields.get("kind").and_then(Value::as_str) == Some("Table")
}

/// `2026-01-02T03:04:05Z`, or the same with microseconds.
fn timestamp(text: &str) -> Option<&'static str> {
    const SECONDS: &str = "0000-00-00T00:00:00Z";
    const MICROS: &str = "0000-00-00T00:00:00.000000Z";
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    match shape.as_str() {
        SECONDS => Some("time"),
        MICROS => Some("microtime"),
        _ => None,
    }
}

fn hide_numbers(text: &str) -> String {
    let mut hidden = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if hidden.ends_with('N') => {}
            '0'..='9' => hidden.push('N'),
            other => hidden.push(other),
        }
    }
    hidden
}

/// What is explained about a column: every server may do so in its own words, and no client shows them.
fn hide_prose(table: &mut Map<String, Value>) {
    let columns = table.get_mut("columnDefinitions").and_then(Value::as_array_mut);
    for description in columns.into_iter().flatten().filter_map(|column| column.get_mut("description")) {
        if description.as_str().is_some_and(|text| !text.is_empty()) {
            *description = "prose".into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn normalised(request: &Value, answers: &[Value]) -> Vec<Value> {
        let request = request.to_string();
        let mut normaliser = Normaliser::new([request.as_str()].into_iter());
        answers.iter().map(|answer| normaliser.apply(answer)).collect()
    }

    #[test]
    fn values_of_the_server_are_replaced_by_their_order() {
        let table = [
            (json!({ "uid": "u-u-i-d" }), json!({ "uid": "uid#1" })),
            (json!({ "resourceVersion": "12" }), json!({ "resourceVersion": "rv#1" })),
            (json!({ "resourceVersion": "0" }), json!({ "resourceVersion": "0" })),
            (json!({ "t": "2026-01-02T03:04:05Z" }), json!({ "t": "time" })),
            (json!({ "t": "2026-01-02T03:04:05.123456Z" }), json!({ "t": "microtime" })),
            (json!({ "message": "at 2026-01-02T03:04:05Z" }), json!({ "message": "at time" })),
            (json!({ "managedFields": [{}] }), json!({})),
            (json!({ "continue": "abc" }), json!({ "continue": "continue" })),
            (json!({ "continue": "" }), json!({ "continue": "" })),
            (
                json!({ "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "cells": ["10.96.0.9"] }),
                json!({ "clusterIP": "ip#1", "clusterIPs": ["ip#1"], "cells": ["ip#1"] }),
            ),
            (json!({ "clusterIP": "None" }), json!({ "clusterIP": "None" })),
            (
                json!({ "ports": [{ "port": 80, "nodePort": 31234 }], "z": "80:31234/TCP" }),
                json!({ "ports": [{ "port": 80, "nodePort": "port#1" }], "z": "80:port#1/TCP" }),
            ),
            (
                json!({ "name": "web-x2z7q", "generateName": "web-", "z": "no web-x2z7q here" }),
                json!({ "name": "web-name#1", "generateName": "web-", "z": "no web-name#1 here" }),
            ),
            (
                json!({ "kind": "NodeList", "metadata": { "resourceVersion": "9" } }),
                json!({ "kind": "NodeList", "metadata": { "resourceVersion": "moving" } }),
            ),
            (
                json!({ "message": "too old resource version: 1 (215)" }),
                json!({ "message": "too old resource version: N (N)" }),
            ),
        ];
        for (answer, want) in table {
            assert_eq!(normalised(&json!({}), std::slice::from_ref(&answer)), [want], "{answer}");
        }
    }

    #[test]
    fn values_of_the_table_stay() {
        let said = json!({ "clusterIP": "10.96.0.9", "renewTime": "2026-01-02T03:04:05Z", "uid": "mine", "nodePort": 30080 });
        assert_eq!(normalised(&said, std::slice::from_ref(&said)), [said]);
    }

    #[test]
    fn values_that_only_resemble_the_tables_are_replaced() {
        let said = json!({ "clusterIP": "10.96.0.77", "nodePort": 30080 });
        let seen = json!({ "clusterIP": "10.96.0.7", "nodePort": 3008 });
        assert_eq!(normalised(&said, &[seen]), [json!({ "clusterIP": "ip#1", "nodePort": "port#1" })]);
    }

    #[test]
    fn later_answers_go_on_counting() {
        let version = |v: &str| json!({ "resourceVersion": v });
        let seen = normalised(&json!({}), &[version("7"), version("9"), version("7")]);
        assert_eq!(seen, [version("rv#1"), version("rv#2"), version("rv#1")]);
    }

    #[test]
    fn ages_in_tables_are_hidden_but_not_their_form() {
        let table = |age: &str| {
            json!({ "kind": "Table", "columnDefinitions": [{ "name": "Name" }, { "name": "Age" }],
                "rows": [{ "cells": ["5s", age] }] })
        };
        let next = |age: &str| json!({ "kind": "Table", "columnDefinitions": null, "rows": [{ "cells": ["5s", age] }] });
        assert_eq!(
            normalised(&json!({}), &[table("12s"), table("<unknown>"), next("1s")]),
            [table("Ns"), table("<unknown>"), next("Ns")]
        );
    }
}
