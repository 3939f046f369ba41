//! What commands print.

use std::io::Write as _;

use clap::ValueEnum;
use serde_json::Value;

use super::{Failure, table::Table};

/// How a command prints what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people.
    #[default]
    Table,
    /// For programs: what the API answered.
    Json,
}

pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    Ok(writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush())?)
}

pub(super) fn show(output: Output, answer: &Value, table: impl FnOnce() -> Table) -> Result<(), Failure> {
    match output {
        Output::Table => print(&table().to_string()),
        Output::Json => print(&serde_json::to_string_pretty(answer)?),
    }
}
