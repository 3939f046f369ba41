//! What is wrong with the rules, the dashboard and the runbooks, as far as promtool does not know.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{Query, Rules, Tests};
use super::query::named;

/// Where every alert has its section.
pub(crate) const RUNBOOKS: &str = "docs/how-to/runbooks.md";
/// Where every metric has a row. The docs stage holds these pages to the tables that the program exports by.
pub(crate) const METRICS: &str = "docs/reference/metrics.md";
pub(crate) const RANCHER: &str = "docs/reference/rancher-fip.md";
/// Stands for the name of a cloud in the name of a metric.
pub(super) const CLOUD: &str = "{cloud}";
/// Labels that Prometheus or its configuration adds.
const TARGET_LABELS: [&str; 6] = ["cluster", "instance", "job", "le", "namespace", "pod"];
/// What Prometheus itself says about a target.
const OWN: [&str; 1] = ["up"];

/// What the program exports: the name of every series, with its labels.
pub(crate) struct Exported(BTreeMap<String, Vec<String>>);

impl Exported {
    /// Reads the tables of the pages: ``| `name` | type | `label`, `label` | …``.
    pub(crate) fn on_pages(pages: &[String]) -> Self {
        let mut all: BTreeMap<_, _> = OWN.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
        for line in pages.iter().flat_map(|page| page.lines()) {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let (Some(name), Some(kind), Some(labels)) = (cells.next(), cells.next(), cells.next()) else {
                continue;
            };
            let ends: &[&str] = match kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                "counter" | "gauge" => &[""],
                _ => continue,
            };
            let name = name.trim_matches('`');
            let labels: Vec<_> = labels.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            all.extend(ends.iter().map(|end| (format!("{name}{end}"), labels.clone())));
        }
        Self(all)
    }

    /// The labels of a series, if there is one of this name.
    fn labels(&self, name: &str) -> Option<&[String]> {
        let of_a_cloud = |row: &str| {
            let (before, after) = row.split_once(CLOUD)?;
            let cloud = name.strip_prefix(before)?.strip_suffix(after)?;
            Some(
                !cloud.is_empty()
                    && cloud.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            )
        };
        let found = self.0.get(name);
        let found = found.or_else(|| {
            let mut rows = self.0.iter().filter(|(row, _)| of_a_cloud(row) == Some(true));
            rows.next().map(|(_, labels)| labels)
        });
        found.map(Vec::as_slice)
    }

    /// What an expression names that the program does not have.
    fn unknown(&self, expr: &str) -> Vec<String> {
        let found = named(expr);
        let strangers = found.metrics.iter().filter(|name| self.labels(name).is_none());
        let mut wrong: Vec<_> = strangers.map(|name| format!("no metric is called {name}")).collect();
        let labels: BTreeSet<_> =
            found.metrics.iter().filter_map(|name| self.labels(name)).flatten().map(String::as_str).collect();
        let strangers = found.labels.iter().map(String::as_str);
        let strangers = strangers.filter(|label| !labels.contains(label) && !TARGET_LABELS.contains(label));
        wrong.extend(strangers.map(|label| format!("none of its metrics has the label {label}")));
        wrong
    }
}

/// What is wrong, one line each.
pub(crate) fn problems(
    exported: &Exported,
    rules: &Rules,
    tests: &[Tests],
    queries: &[Query],
    runbooks: &str,
) -> Vec<String> {
    let mut problems = Vec::new();
    let sections: BTreeSet<_> = runbooks.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let mut names = BTreeSet::new();
    for alert in rules.alerts() {
        let name = alert.name.as_str();
        let mut wrong = exported.unknown(&alert.expr);
        if !names.insert(name) {
            wrong.push("there are two of this name".to_owned());
        }
        if !["critical", "warning", "info"].contains(&alert.labels.severity.as_str()) {
            wrong.push(format!("{} is no severity", alert.labels.severity));
        }
        if alert.annotations.summary.is_empty() || alert.annotations.description.is_empty() {
            wrong.push("it lacks a summary or a description".to_owned());
        }
        let link = format!("{RUNBOOKS}#{}", name.to_lowercase());
        if alert.annotations.runbook_url != link {
            wrong.push(format!("its runbook_url is not {link}"));
        }
        if !sections.contains(name) {
            wrong.push(format!("{RUNBOOKS} has no section of this name"));
        }
        for (what, silent) in [("fires", false), ("stays silent", true)] {
            let mut expected = tests.iter().flat_map(Tests::expectations).filter(|e| e.alertname == name);
            if !expected.any(|expectation| expectation.exp_alerts.is_empty() == silent) {
                wrong.push(format!("in no test it {what}"));
            }
        }
        problems.extend(wrong.into_iter().map(|why| format!("{name}: {why}")));
    }
    let strangers = tests.iter().flat_map(Tests::expectations).map(|e| e.alertname.as_str()).chain(sections);
    let strangers: BTreeSet<_> = strangers.filter(|name| !names.contains(name)).collect();
    problems.extend(strangers.into_iter().map(|name| format!("{name}: a test or a section, but no alert")));
    for query in queries {
        let wrong = exported.unknown(&query.expr);
        problems.extend(wrong.into_iter().map(|why| format!("dashboard, {}: {why}", query.panel)));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "groups:\n- name: a\n  rules:\n  - alert: Down\n    expr: EXPR\n    labels: {severity: SEVERITY}\n    annotations: {summary: s, description: d, runbook_url: 'docs/how-to/runbooks.md#ANCHOR'}\n";
    const PAGE: &str = "| metric | type | labels | means |\n|---|---|---|---|\n| `workqueue_depth` | gauge | `name` | m |\n\
                        | `workqueue_work_duration_seconds` | histogram | `name` | m |\n\
                        | `cloudprovider_{cloud}_api_request_duration_seconds` | histogram | `request` | m |\n";
    const TESTS: &str = "tests:\n- alert_rule_test:\n  - {alertname: Down, exp_alerts: [{}]}\n- alert_rule_test:\n  - {alertname: OTHER, exp_alerts: []}\n";

    #[test]
    fn every_kind_of_mistake_is_named() {
        // Expression, severity, anchor, the other test, section, query, and what is said.
        let up = "up == 0";
        let good = [up, "warning", "down", "Down", "## Down", up];
        let table = [
            (good, vec![]),
            (["upp == 0", "warning", "down", "Down", "## Down", up], vec!["Down: no metric is called upp"]),
            (
                ["workqueue_depth{mane=\"a\"} > 0", "warning", "down", "Down", "## Down", up],
                vec!["Down: none of its metrics has the label mane"],
            ),
            ([up, "loud", "down", "Down", "## Down", up], vec!["Down: loud is no severity"]),
            (
                [up, "warning", "up", "Down", "## Down", up],
                vec!["Down: its runbook_url is not docs/how-to/runbooks.md#down"],
            ),
            (
                [up, "warning", "down", "Up", "## Down", up],
                vec!["Down: in no test it stays silent", "Up: a test or a section, but no alert"],
            ),
            (
                [up, "warning", "down", "Down", "### Down", up],
                vec!["Down: docs/how-to/runbooks.md has no section of this name"],
            ),
            (
                [up, "warning", "down", "Down", "## Down", "rate(workqueue_depths[5m])"],
                vec!["dashboard, p: no metric is called workqueue_depths"],
            ),
            (
                [up, "warning", "down", "Down", "## Down", "workqueue_work_duration_seconds"],
                vec!["dashboard, p: no metric is called workqueue_work_duration_seconds"],
            ),
        ];
        for ([expr, severity, anchor, other, section, query], want) in table {
            let rule = RULE.replace("EXPR", expr).replace("SEVERITY", severity).replace("ANCHOR", anchor);
            let (rules, tests) =
                (Rules::read(&rule).unwrap(), Tests::read(&TESTS.replace("OTHER", other)).unwrap());
            let queries = [Query { panel: "p".to_owned(), expr: query.to_owned() }];
            let found =
                problems(&Exported::on_pages(&[PAGE.to_owned()]), &rules, &[tests], &queries, section);
            assert_eq!(found, want);
        }
    }

    #[test]
    fn the_names_of_clouds_stand_in_the_names_of_metrics() {
        let exported = Exported::on_pages(&[PAGE.to_owned()]);
        let name = "cloudprovider_cloudscale_api_request_duration_seconds_bucket";
        assert_eq!(exported.labels(name), Some(&["request".to_owned()][..]));
        for other in
            ["cloudprovider__api_request_duration_seconds_bucket", "cloudprovider_cloudscale_api_bucket"]
        {
            assert_eq!(exported.labels(other), None, "{other}");
        }
        assert_eq!(exported.labels("workqueue_work_duration_seconds_sum"), Some(&["name".to_owned()][..]));
    }
}
