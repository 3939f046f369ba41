//! Which metrics a `PromQL` expression names, and which labels it asks of them.
//!
//! This is no parser: promtool is. It only finds names, so that they can be compared with what the program exports.

use std::collections::BTreeSet;

/// What an expression names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) metrics: BTreeSet<String>,
    /// In selectors and in `by (…)` and its kin.
    pub(crate) labels: BTreeSet<String>,
}

/// Words that are neither metrics nor functions.
const WORDS: [&str; 13] = [
    "and",
    "or",
    "unless",
    "bool",
    "offset",
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "inf",
    "nan",
];
/// Words before a list of labels.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// Reads an expression in which no variables are left.
pub(crate) fn named(expression: &str) -> Named {
    let mut found = Named::default();
    let mut rest = expression;
    let mut list_of_labels = false;
    while let Some(first) = rest.chars().next() {
        if is_word(first) && !first.is_ascii_digit() {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            list_of_labels = BEFORE_LABELS.contains(&word);
            // An aggregation may name its labels before what it adds up.
            let next = after.trim_start();
            let called =
                ["(", "by ", "by(", "without ", "without("].iter().any(|start| next.starts_with(start));
            if !called && !WORDS.contains(&word.to_ascii_lowercase().as_str()) {
                found.metrics.insert(word.to_owned());
            }
            continue;
        }
        let close = match first {
            '{' => '}',
            '[' => ']',
            '(' if list_of_labels => ')',
            '"' | '\'' => first,
            _ => '\0',
        };
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
        if close != '\0' {
            let end = end_of(rest, close);
            let (inner, after) = rest.split_at(end);
            match first {
                '{' => found.labels.extend(labels(inner)),
                '(' => found.labels.extend(inner.split(',').map(|label| label.trim().to_owned())),
                _ => {}
            }
            rest = after.strip_prefix(close).unwrap_or(after);
        } else if first.is_ascii_digit() {
            // A number or a duration, with its unit.
            rest = rest.trim_start_matches(|c: char| is_word(c) || c == '.');
        }
        list_of_labels &= first.is_whitespace();
    }
    found.labels.remove("");
    found
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Where `close` stands outside of quotation marks.
fn end_of(text: &str, close: char) -> usize {
    let mut quoted = false;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == close && !quoted {
            return at;
        }
        quoted ^= c == '"' && before != '\\';
        before = c;
    }
    text.len()
}

/// The labels of a selector: what stands before an operator, outside of values.
fn labels(selector: &str) -> Vec<String> {
    let outside = selector.split('"').step_by(2);
    let names =
        outside.map(|part| part.trim_start_matches([',', ' ', '\n']).trim_end_matches(['=', '!', '~', ' ']));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_and_labels_are_found_and_functions_are_not() {
        let table = [
            ("up", &["up"][..], &[][..]),
            ("absent(up{job=\"a\"} == 1)", &["up"], &["job"]),
            (
                "sum by (a, b) (rate(x_total{job=\"j\", code=~\"5..|n{2}\"}[5m])) > 0.25",
                &["x_total"],
                &["a", "b", "code", "job"],
            ),
            ("sum(rate(x[5m])) by (le) / on (a) group_left (b) y", &["x", "y"], &["a", "b", "le"]),
            ("a > 0 and time() - b{c!=\"and d\"} > 14 * 86400", &["a", "b"], &["c"]),
            ("a unless b offset 5m or c:d", &["a", "b", "c:d"], &[]),
            ("topk(5, max_over_time(a[1h:1m])) == bool 1e3", &["a"], &[]),
            ("{__name__=~\"a_.+\"}", &[], &["__name__"]),
            ("label_replace(a, \"to\", \"$1\", \"from\", \"(x)\")", &["a"], &[]),
        ];
        for (expression, metrics, labels) in table {
            let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let want = Named { metrics: own(metrics), labels: own(labels) };
            assert_eq!(named(expression), want, "{expression}");
        }
    }
}
