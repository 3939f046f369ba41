//! `cloudberth lycke doctor`: what is in the way of load balancers, and what to do about it.
//!
//! Facts are gathered first; what follows from them is decided without looking at anything else.

mod cluster;
mod computer;
mod finding;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::{
    Failure,
    output::{Output, show},
    table::Table,
};
use crate::{control::read_file, serve::Refused};
use finding::{Finding, Level};

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The inventory file.
    #[arg(long, value_name = "FILE")]
    inventory: PathBuf,
    /// The key of the cluster in the inventory that is looked at, with kubectl.
    #[arg(long, value_name = "KEY")]
    cluster: Option<String>,
    /// How to reach the cluster; by default whatever kubectl uses.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// Prints all findings. Ends with 1 if one of them is a problem.
pub(super) async fn run(options: Options) -> Result<(), Failure> {
    let inventory = read_file(&options.inventory)
        .map_err(|faults| Failure { message: faults.to_string(), code: Refused::EXIT_CODE })?;
    let mut findings = computer::gather(&inventory).await.judge();
    if let Some(key) = &options.cluster {
        if !inventory.clusters.contains_key(key) {
            let known: Vec<_> = inventory.clusters.keys().map(String::as_str).collect();
            return Err(Failure::new(format!(
                "{key:?} is not a cluster of the inventory; there are: {}",
                known.join(", ")
            )));
        }
        match cluster::gather(options.kubeconfig.as_deref()).await {
            Ok(facts) => findings.extend(facts.judge(key, &inventory)),
            Err(why) => {
                findings.push(Finding::problem("API server", why, "see that kubectl can reach the cluster"));
            }
        }
    } else {
        findings.push(Finding::skipped("cluster", "not looked at; name it with --cluster"));
    }
    let items: Vec<Value> = findings.iter().map(|finding| json!(finding)).collect();
    show(options.output, &json!({"items": items}), || table(&findings))?;
    let problems = findings.iter().filter(|finding| finding.level == Level::Problem).count();
    if problems == 0 { Ok(()) } else { Err(Failure::new(format!("{problems} problems"))) }
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new(&["CHECK", "", "FOUND"]);
    for finding in findings {
        table.row(vec![finding.check.to_owned(), finding.level.as_str().to_owned(), finding.found.clone()]);
        for remedy in &finding.remedies {
            table.row(vec![String::new(), String::new(), format!("-> {remedy}")]);
        }
    }
    table
}
