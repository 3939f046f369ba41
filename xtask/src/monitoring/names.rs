//! What promtool thinks of the names of the metrics. It is shown a page with a sample of each metric of the reference: a
//! program that runs shows only what it has had reason to count.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::check::CLOUD;
use crate::Result;

/// The findings that are accepted, one a line.
pub(super) const ACCEPTED: &str = "deploy/monitoring/tests/accepted-findings.txt";
/// Stands for the clouds.
const ANY: &str = "anycloud";

/// A page such as a program exports, from the tables of the reference.
fn sample(pages: &[String]) -> String {
    let mut text = String::new();
    let mut names = BTreeSet::new();
    for line in pages.iter().flat_map(|page| page.lines()) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, kind @ ("counter" | "gauge" | "histogram"), labels, means, ..] = cells.as_slice()
        else {
            continue;
        };
        let name = name.trim_matches('`').replace(CLOUD, ANY);
        // One may be on several ports.
        if !names.insert(name.clone()) {
            continue;
        }
        let labels: Vec<String> =
            labels.split('`').skip(1).step_by(2).map(|label| format!("{label}=\"x\"")).collect();
        let bucket: Vec<String> = labels.iter().cloned().chain(["le=\"+Inf\"".to_owned()]).collect();
        let (labels, bucket) = (braced(&labels), braced(&bucket));
        let _ = writeln!(text, "# HELP {name} {means}\n# TYPE {name} {kind}");
        let _ = match *kind {
            "histogram" => {
                writeln!(text, "{name}_bucket{bucket} 1\n{name}_sum{labels} 1\n{name}_count{labels} 1")
            }
            _ => writeln!(text, "{name}{labels} 1"),
        };
    }
    text
}

fn braced(labels: &[String]) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

/// What is wrong, one line each: findings that nobody has accepted, and accepted ones that are not found.
fn problems(found: &str, accepted: &str) -> Vec<String> {
    let lines = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| line.replace(CLOUD, ANY)).collect()
    };
    let (found, accepted) = (lines(found), lines(accepted));
    let shown = |line: &String| line.replace(ANY, CLOUD);
    let new = found.difference(&accepted).map(|line| format!("promtool check metrics: {}", shown(line)));
    let gone = accepted.difference(&found);
    let gone = gone.map(|line| format!("{ACCEPTED}: promtool does not find this: {}", shown(line)));
    new.chain(gone).collect()
}

/// Has promtool look at a sample of all metrics on these pages.
pub(super) fn check(promtool: &Path, pages: &[String], accepted: &str) -> Result<Vec<String>> {
    let scratch = std::env::temp_dir().join(format!("cloudberth-metrics-{}.txt", std::process::id()));
    let failed = |why| format!("{}: {why}", scratch.display());
    fs::write(&scratch, sample(pages)).map_err(failed)?;
    let page = fs::File::open(&scratch).map_err(failed)?;
    let mut command = Command::new(promtool);
    let ran = command.args(["check", "metrics"]).stdin(Stdio::from(page)).output();
    let _ = fs::remove_file(&scratch);
    let ran = ran.map_err(|why| format!("{}: {why}", promtool.display()))?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    match ran.status.code() {
        // 3 stands for findings.
        Some(0 | 3) => Ok(problems(&said, accepted)),
        _ => Err(format!("promtool check metrics cannot read the sample: {}", said.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_every_metric_of_the_tables_once() {
        let page = "| metric | type | labels | means |\n|---|---|---|---|\n| `a_total` | counter | `b`, `c` | All. |\n\
                    | `cloud_{cloud}_seconds` | histogram |  | How long |\n| `--flag` | text | | no metric |\n";
        let again = "| `a_total` | counter |  | Again |\n";
        let want = "# HELP a_total All.\n# TYPE a_total counter\na_total{b=\"x\",c=\"x\"} 1\n\
                    # HELP cloud_anycloud_seconds How long\n# TYPE cloud_anycloud_seconds histogram\n\
                    cloud_anycloud_seconds_bucket{le=\"+Inf\"} 1\ncloud_anycloud_seconds_sum 1\ncloud_anycloud_seconds_count 1\n";
        assert_eq!(sample(&[page.to_owned(), again.to_owned()]), want);
    }

    #[test]
    fn what_is_new_fails_and_so_does_what_is_gone() {
        let accepted = "# why\n\na_{cloud}_b should have x\nc should have y\n";
        let table = [
            ("a_anycloud_b should have x\nc should have y\n", vec![]),
            (
                "a_anycloud_b should have x\nd should have z\n",
                vec![
                    "promtool check metrics: d should have z".to_owned(),
                    format!("{ACCEPTED}: promtool does not find this: c should have y"),
                ],
            ),
            (
                "c should have y\n",
                vec![format!("{ACCEPTED}: promtool does not find this: a_{{cloud}}_b should have x")],
            ),
        ];
        for (found, want) in table {
            assert_eq!(problems(found, accepted), want, "{found}");
        }
    }
}
