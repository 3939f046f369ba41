//! `cloudberth lycke machines`.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::{Failure, api_options::ApiOptions, output::show, table::Table};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Lists machines.
    List {
        /// Those of this cluster.
        #[arg(long)]
        cluster: Option<String>,
        #[command(flatten)]
        api: ApiOptions,
    },
    /// Has a machine seem to be switched off, until the inventory is read again.
    Stop(One),
    /// Has a machine seem to run.
    Start(One),
    /// Has a machine seem to be gone for good.
    Destroy(One),
    /// Has a machine that was destroyed run again.
    Restore(One),
}

#[derive(Debug, Args)]
pub(super) struct One {
    /// The id of the machine.
    id: String,
    #[command(flatten)]
    api: ApiOptions,
}

pub(super) async fn run(command: Command) -> Result<(), Failure> {
    let (one, state) = match command {
        Command::List { cluster, api } => return list(cluster, &api).await,
        Command::Stop(one) => (one, "stopped"),
        Command::Start(one) | Command::Restore(one) => (one, "running"),
        Command::Destroy(one) => (one, "gone"),
    };
    let path = format!("/v1/machines/{}", one.id);
    let machine = one.api.client()?.send(Method::PATCH, &path, Some(&json!({"state": state}))).await?;
    show(one.api.output, &machine, || machines(std::slice::from_ref(&machine)))
}

async fn list(cluster: Option<String>, api: &ApiOptions) -> Result<(), Failure> {
    let query = cluster.map(|cluster| format!("?cluster={cluster}")).unwrap_or_default();
    let answer = api.client()?.get(&format!("/v1/machines{query}")).await?;
    let items = answer.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    show(api.output, &answer, || machines(items))
}

fn machines(machines: &[Value]) -> Table {
    let mut table = Table::new(&["ID", "NAME", "CLUSTER", "TYPE", "STATE", "BACKEND", "SOURCE"]);
    for machine in machines {
        let fields = ["id", "name", "cluster", "type", "state", "backend", "source"];
        table.row(fields.map(|field| text(machine, field)).into());
    }
    table
}

/// A field as text; nothing if it is not there.
pub(super) fn text(object: &Value, field: &str) -> String {
    match object.get(field) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}
