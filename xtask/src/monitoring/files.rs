//! The files of `deploy/monitoring`, as far as they are checked here.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;

use crate::Result;

/// A file of rules.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Rules {
    groups: Vec<Group>,
}

#[derive(Clone, Debug, Deserialize)]
struct Group {
    rules: Vec<Alert>,
}

/// An alerting rule.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Alert {
    #[serde(rename = "alert")]
    pub(crate) name: String,
    pub(crate) expr: String,
    pub(crate) labels: Labels,
    pub(crate) annotations: Annotations,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Labels {
    pub(crate) severity: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Annotations {
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) runbook_url: String,
}

impl Rules {
    pub(crate) fn read(text: &str) -> Result<Self> {
        serde_saphyr::from_str(text).map_err(|why| why.to_string())
    }

    pub(crate) fn alerts(&self) -> impl Iterator<Item = &Alert> {
        self.groups.iter().flat_map(|group| &group.rules)
    }
}

/// A file of tests for promtool.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Tests {
    tests: Vec<Test>,
}

#[derive(Clone, Debug, Deserialize)]
struct Test {
    alert_rule_test: Vec<Expectation>,
}

/// What is expected of an alert at a time.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Expectation {
    pub(crate) alertname: String,
    pub(crate) exp_alerts: Vec<Value>,
}

impl Tests {
    pub(crate) fn read(text: &str) -> Result<Self> {
        serde_saphyr::from_str(text).map_err(|why| why.to_string())
    }

    /// How many tests there are.
    pub(crate) fn count(&self) -> usize {
        self.tests.len()
    }

    pub(crate) fn expectations(&self) -> impl Iterator<Item = &Expectation> {
        self.tests.iter().flat_map(|test| &test.alert_rule_test)
    }
}

/// A query of a dashboard, with the title of its panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) panel: String,
    pub(crate) expr: String,
}

/// What stands for a variable where none is chosen. Those of Grafana itself are durations.
const VARIABLES: [(&str, &str); 4] =
    [("$__rate_interval", "5m"), ("$__interval", "1m"), ("$__range", "1h"), ("$job", "cloudberth")];

/// The queries of all panels, and of the variables, in which a text stands for every variable.
pub(crate) fn queries(dashboard: &Value) -> Vec<Query> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for panel in list(dashboard, "panels") {
        for panel in list(&panel, "panels").into_iter().chain([panel]) {
            let title = panel.get("title").and_then(Value::as_str).unwrap_or("without a title").to_owned();
            for target in list(&panel, "targets") {
                let expr = target.get("expr").and_then(Value::as_str).unwrap_or_default();
                let expr =
                    VARIABLES.iter().fold(expr.to_owned(), |expr, (name, text)| expr.replace(name, text));
                all.push(Query { panel: title.clone(), expr });
            }
        }
    }
    all
}

/// The queries as recording rules, which promtool can check. A JSON string is a YAML string.
pub(crate) fn as_rules(queries: &[Query]) -> String {
    let mut text = String::from("groups:\n  - name: dashboard\n    rules:\n");
    for (at, query) in queries.iter().enumerate() {
        let expr = Value::from(query.expr.as_str());
        let _ = writeln!(
            text,
            "      # {}\n      - record: dashboard:query_{at}\n        expr: {expr}",
            query.panel
        );
    }
    text
}

/// An object for the Prometheus operator, with the same rules.
pub(crate) fn as_object(rules: &str) -> String {
    let mut text = String::from(
        "# Written by `cargo xtask docs` from deploy/monitoring/rules.yaml; change that instead.\n\
         apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: cloudberth\n  namespace: kube-system\n\
         spec:\n",
    );
    for line in rules.lines().skip_while(|line| line.starts_with('#')) {
        text.push_str(if line.is_empty() { "" } else { "  " });
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn queries_are_found_in_rows_too_and_have_no_variables_left() {
        let dashboard = json!({"panels": [
            {"title": "a", "targets": [{"expr": "rate(x{job=\"$job\"}[$__rate_interval])"}]},
            {"title": "row", "panels": [{"title": "b", "targets": [{"expr": "y"}, {"expr": "z"}]}]},
        ]});
        let found = queries(&dashboard);
        let shown: Vec<_> = found.iter().map(|query| (query.panel.as_str(), query.expr.as_str())).collect();
        assert_eq!(shown, [("a", "rate(x{job=\"cloudberth\"}[5m])"), ("b", "y"), ("b", "z")]);
        let rules = as_rules(&found);
        assert!(rules.contains("record: dashboard:query_2\n        expr: \"z\"\n"), "{rules}");
    }

    #[test]
    fn the_object_holds_the_rules_as_they_are() {
        let rules = "# about\ngroups:\n  - name: a\n    rules: []\n";
        let object: Value = serde_saphyr::from_str(&as_object(rules)).unwrap();
        assert_eq!(object["kind"], "PrometheusRule");
        assert_eq!(object["spec"], json!({"groups": [{"name": "a", "rules": []}]}));
    }
}
