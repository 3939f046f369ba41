//! The reference pages and tables that are written from the code, as JSON for `cargo xtask docs`.
//!
//! An example, because it needs the whole program: `cargo xtask` does not, and everybody waits for that.
#![allow(clippy::print_stdout, reason = "what it prints is read by xtask")]

mod admission;
mod rights;

use std::{collections::BTreeMap, fmt::Write};

use clap::CommandFactory;
use cloudberth::{CLOUDS, commands::Program};
use cloudberth_core::{
    error::{Category, Retry},
    lb::Severity,
    metric::{Metric, Stability},
    reason::{REASONS, Reason, Row},
};
use cloudberth_manager::exits::{EXITS, Exits};

use serde::Serialize;

/// A document, or a marked part of one, that is written from the code.
#[derive(Debug, Serialize)]
struct Generated {
    file: String,
    part: Part,
    text: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
enum Part {
    /// Between `<!-- NAME:begin -->` and `<!-- NAME:end -->`; the rest of the file is written by people.
    Region(&'static str),
    /// All of it.
    Whole,
}

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string(&generated())?);
    Ok(())
}

/// Everything that is generated. Every cloud that replaces a program has a page with the table of its annotations.
fn generated() -> Vec<Generated> {
    let document = |file: &str, part, text| Generated { file: file.to_owned(), part, text };
    let mut all = vec![
        document("docs/reference/commands.md", Part::Region("commands"), commands()),
        document("docs/reference/commands.md", Part::Region("exit-codes"), exit_codes()),
        document("docs/how-to/troubleshoot.md", Part::Region("reasons"), troubles()),
        document("docs/reference/errors.md", Part::Whole, errors()),
        document("docs/reference/events.md", Part::Whole, events()),
        document("docs/reference/metrics.md", Part::Whole, metrics()),
        document("charts/cloudberth/rights.yaml", Part::Whole, rights::yaml()),
        document("xtask/src/image/replaced.txt", Part::Whole, replaced()),
        document("docs/reference/flags.md", Part::Whole, cloudberth_manager::flags::markdown()),
        document(
            "docs/reference/rancher-fip.md",
            Part::Region("flags"),
            cloudberth_rancher_fip::options::markdown(),
        ),
        document("docs/reference/rancher-fip.md", Part::Region("events"), rancher_events()),
        document(
            "docs/reference/rancher-fip.md",
            Part::Region("metrics"),
            table_of_metrics(cloudberth_rancher_fip::metrics::TABLE),
        ),
    ];
    all.extend(admission::files().map(|(file, text)| document(&file, Part::Whole, text)));
    all.extend(CLOUDS.iter().filter(|factory| !factory.replaces.is_empty()).map(|factory| {
        let file = format!("docs/reference/{}.md", factory.name);
        document(&file, Part::Region("annotations"), factory.annotations.to_markdown())
    }));
    all
}

/// The programs that are replaced, for the links of the image.
fn replaced() -> String {
    let names =
        CLOUDS.iter().flat_map(|cloud| cloud.replaces.iter().map(|name| format!("{name} {}\n", cloud.name)));
    names.chain([format!("{}\n", cloudberth_rancher_fip::process::PROGRAM)]).collect()
}

/// Every command of the shipped program, as its own help tells about it.
fn commands() -> String {
    let mut text = String::from("| command | what it does |\n|---|---|\n");
    for command in Program::command().get_subcommands() {
        let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
        let about = about.unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(text, "| `cloudberth {}` | {} |", command.get_name(), about.trim_end_matches('.'));
    }
    text
}

/// A row for each exit code, with a column for each command.
fn exit_codes() -> String {
    let names: Vec<_> = EXITS.iter().map(|exits| format!(" `{}` |", exits.command)).collect();
    let mut text = format!("| code |{}\n|---|{}\n", names.concat(), "---|".repeat(EXITS.len()));
    let highest = EXITS.iter().flat_map(|exits| exits.codes).map(|(code, _)| *code).max().unwrap_or_default();
    for code in 0..=highest {
        let meaning = |exits: &Exits| {
            let found = exits.codes.iter().find(|(known, _)| *known == code);
            found.map_or(" |".to_owned(), |(_, means)| format!(" {means} |"))
        };
        let _ = writeln!(text, "| {code} |{}", EXITS.iter().map(meaning).collect::<String>());
    }
    text
}

/// Every warning once, in the order of the alphabet, with what to do about it.
fn troubles() -> String {
    let of_clouds = CLOUDS.iter().filter(|factory| !factory.replaces.is_empty());
    let of_clouds = of_clouds.flat_map(|factory| factory.reasons.iter().map(move |one| (one, factory.name)));
    let all = REASONS.iter().map(|one| (one, "")).chain(of_clouds);
    let mut found: BTreeMap<&str, Vec<(&Row, &str)>> = BTreeMap::new();
    for (reason, cloud) in all.filter(|(reason, _)| reason.row().severity == Severity::Warning) {
        found.entry(reason.name()).or_default().push((reason.row(), cloud));
    }
    let mut text = String::new();
    for (name, rows) in found {
        let _ = writeln!(text, "### {name}\n");
        for (row, cloud) in rows {
            let only = if cloud.is_empty() { String::new() } else { format!(", only with `{cloud}`") };
            let _ = writeln!(
                text,
                "About a {}{only}. {}\n\n*What to do:* {}\n",
                row.source.kind(),
                row.when,
                row.advice
            );
        }
    }
    text
}

/// The page of the events: by the object that they are about, those of the framework first, then those of each cloud.
fn events() -> String {
    let mut text = String::from(
        "# Events\n\n\
         Every event that cloudberth publishes has one of these reasons, and no other. Alerts should look for the reason:\n\
         the message is for people and may change. The component is in `source.component`. `kubectl describe` shows the\n\
         events of an object; `kubectl get events -A --field-selector reason=NAME` those of one reason.\n",
    );
    for kind in ["Service", "Node", "Lease"] {
        let _ = writeln!(text, "\n## {kind}\n");
        table_of_events(&mut text, kind, REASONS);
        for factory in CLOUDS.iter().filter(|factory| !factory.replaces.is_empty()) {
            if factory.reasons.iter().any(|reason| reason.row().source.kind() == kind) {
                let _ = writeln!(text, "\nOnly with `{}`:\n", factory.name);
                table_of_events(&mut text, kind, factory.reasons);
            }
        }
    }
    text
}

/// The events of the cluster manager for Rancher, by the object that they are about.
fn rancher_events() -> String {
    let reasons = cloudberth_rancher_fip::reasons::REASONS;
    let mut text = String::new();
    for kind in ["Cluster", "FloatingIPProjectQuota", "FloatingIP", "Lease"] {
        let _ = writeln!(text, "\n### {kind}\n");
        table_of_events(&mut text, kind, reasons);
    }
    text.trim_start().to_owned()
}

fn table_of_events(text: &mut String, kind: &str, reasons: &[Reason]) {
    text.push_str("| reason | type | component | published when | what to do |\n|---|---|---|---|---|\n");
    let rows = reasons.iter().map(|reason| reason.row());
    for Row { name, source, severity, when, advice } in rows.filter(|row| row.source.kind() == kind) {
        let component = source.component();
        let _ = writeln!(text, "| `{name}` | {severity:?} | `{component}` | {when} | {advice} |");
    }
}

/// The page of the metrics, by where they are served.
fn metrics() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         What is scraped from the HTTPS port, and nothing else. Names, labels and types are those that dashboards for cloud\n\
         controller managers know; `cloudberth_` is in front of what others do not have. A metric is not shown before there\n\
         is something to count. Histograms have `_bucket`, `_sum` and `_count` appended. `{cloud}` is the name of a cloud in\n\
         small letters, with `_` for everything but letters and digits. An alpha metric may change at any time, a beta\n\
         metric only with notice.\n",
    );
    let pages = [
        ("On `/metrics`: the program and its controllers", cloudberth_runtime::metrics::TABLE),
        ("On `/metrics`: who asks the port, and whether they may", cloudberth_serving::TABLE),
        ("On `/metrics/slis`", cloudberth_serving::SLIS),
    ];
    for (title, table) in pages {
        let _ = writeln!(text, "\n## {title}\n");
        text.push_str(&table_of_metrics(table));
    }
    text
}

fn table_of_metrics(table: &[Metric]) -> String {
    let mut text = String::from("| metric | type | labels | means | stability |\n|---|---|---|---|---|\n");
    for Metric { name, kind, stability, labels, meaning } in table {
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        let stability = match stability {
            Stability::Alpha => "alpha",
            Stability::Beta => "beta",
            Stability::Unmarked => "",
        };
        let (kind, labels) = (kind.name(), labels.join(", "));
        let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {meaning} | {stability} |");
    }
    text
}

fn errors() -> String {
    let mut text = String::from(
        "# Errors\n\n\
         Every failure has one of these categories. From it follow when the work is tried again, which\n\
         [event](events.md) a node shows and which label a metric carries. Operations whose event already has a name that\n\
         alerts look for (`SyncLoadBalancerFailed` and its kin) keep that name, whatever the category.\n\n\
         | category | means | tried again | event | metric label |\n|---|---|---|---|---|\n",
    );
    for category in Category::ALL {
        let again = match category.retry() {
            _ if matches!(category, Category::Throttled { .. }) => {
                "after the wait that the server asked for, else with growing waits"
            }
            Retry::OnChange => "when the object changes",
            Retry::Backoff => "with growing waits",
            Retry::After(_) => "after the wait that the server asked for",
            Retry::Slowly => "every minute",
            Retry::Never => "by whoever takes over",
        };
        let event = category.event_reason().map_or("none".to_owned(), |reason| format!("`{reason}`"));
        let name = format!("{category:?}");
        let name = name.split(' ').next().unwrap_or_default();
        let _ =
            writeln!(text, "| {name} | {} | {again} | {event} | `{}` |", category.about(), category.label());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_annotation_of_a_cloud_has_a_row_on_its_page() {
        let all = generated();
        let page = all.iter().find(|document| document.file == "docs/reference/cloudscale.md").unwrap();
        let text = &page.text;
        assert!(text.contains("| `k8s.cloudscale.ch/loadbalancer-pool-algorithm` |"), "{text}");
        assert!(text.contains("| considerable |") && text.contains("| major |"), "{text}");
    }

    #[test]
    fn every_reason_has_one_row_on_the_page_of_events() {
        let page = events();
        let clouds = CLOUDS.iter().filter(|factory| !factory.replaces.is_empty());
        let reasons: Vec<_> = REASONS.iter().chain(clouds.flat_map(|factory| factory.reasons)).collect();
        for reason in &reasons {
            // Two clouds may have a reason of one name.
            let declared = reasons.iter().filter(|other| other.to_string() == reason.to_string()).count();
            assert_eq!(page.matches(&format!("| `{reason}` |")).count(), declared, "{reason}");
        }
        assert!(page.contains("Only with `cloudscale`:"), "{page}");
    }

    #[test]
    fn every_warning_has_one_place_where_it_says_what_to_do() {
        let page = troubles();
        let clouds = CLOUDS.iter().filter(|factory| !factory.replaces.is_empty());
        for reason in REASONS.iter().chain(clouds.flat_map(|factory| factory.reasons)) {
            let row = reason.row();
            let warning = usize::from(row.severity == Severity::Warning);
            assert_eq!(page.matches(&format!("### {}\n", row.name)).count(), warning, "{reason}");
            assert!(warning == 0 || page.contains(&format!("*What to do:* {}\n", row.advice)), "{reason}");
        }
        assert!(page.contains("only with `cloudscale`"), "{page}");
    }

    #[test]
    fn every_exit_code_has_a_row() {
        let text = exit_codes();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "{text}");
        assert_eq!(lines[0], "| code | `lint` | `doctor` | `orphans` | `plan` |");
        assert!(
            lines[5].starts_with("| 3 | a file or a setting") && lines[5].ends_with(" was not deleted | |"),
            "{text}"
        );
    }

    #[test]
    fn every_command_of_the_image_has_a_row() {
        let text = commands();
        for name in ["controller-manager", "doctor", "lint", "orphans", "plan", "rancher-fip-cluster-manager"]
        {
            assert_eq!(text.matches(&format!("| `cloudberth {name}` | ")).count(), 1, "{text}");
        }
        assert!(text.contains("exit code 0 for nothing refused"), "{text}");
    }

    #[test]
    fn the_doctor_calls_those_versions_tested_that_are() {
        let minor = |version: &str| version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
        assert_eq!(minor(kube_assets::OLDEST), Some(cloudberth_manager::doctor::OLDEST_MINOR));
        assert_eq!(minor(kube_assets::NEWEST), Some(cloudberth_manager::doctor::NEWEST_MINOR));
    }
}
