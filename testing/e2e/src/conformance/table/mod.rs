//! The table itself.
//!
//! A row says what it shows, and each step the status that kube-apiserver answers with; the rest of the
//! answer is whatever the real server says.

mod custom;
mod data;
mod definitions;
mod deletion;
mod deployments;
mod discovery;
mod errors;
mod events;
mod forgetful;
mod leases;
mod lists;
mod namespaces;
mod nodes;
mod patches;
mod reviews;
mod service_rules;
mod services;
mod tables;
mod watches;

use serde_json::{Value, json};

use super::row::Row;

const NODES: &str = "/api/v1/nodes";
const NODE: &str = "/api/v1/nodes/${id}";
const NAMESPACES: &str = "/api/v1/namespaces";
const SERVICES: &str = "/api/v1/namespaces/${ns}/services";
const CONFIG_MAPS: &str = "/api/v1/namespaces/${ns}/configmaps";

/// Every row, group by group.
pub fn rows() -> Vec<Row> {
    [
        grouped("nodes", nodes::rows()),
        grouped("services", services::rows()),
        grouped("service-rules", service_rules::rows()),
        grouped("patches", patches::rows()),
        grouped("deletion", deletion::rows()),
        grouped("lists", lists::rows()),
        grouped("watches", watches::rows()),
        grouped("tables", tables::rows()),
        grouped("namespaces", namespaces::rows()),
        grouped("events", events::rows()),
        grouped("leases", leases::rows()),
        grouped("data", data::rows()),
        grouped("deployments", deployments::rows()),
        grouped("errors", errors::rows()),
        grouped("reviews", reviews::rows()),
        grouped("discovery", discovery::rows()),
        grouped("definitions", definitions::rows()),
        grouped("custom", custom::rows()),
    ]
    .concat()
}

/// Rows for a server that forgets old versions within seconds, as [`rows`] could not have it.
pub fn forgetful_rows() -> Vec<Row> {
    grouped("forgetful", forgetful::rows())
}

/// How many requests these rows make.
pub fn requests(rows: &[Row]) -> usize {
    rows.iter().flat_map(|row| &row.steps).filter(|step| step.is_request()).count()
}

fn grouped(group: &'static str, rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter().map(|row| Row { group, ..row }).collect()
}

/// A config map: the plainest of objects.
fn config_map(name: &str, labels: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "labels": labels } })
}

/// `base` with these fields; those of its metadata beside the ones that are there.
fn with(mut base: Value, fields: &Value) -> Value {
    let (Some(old), Some(new)) = (base.as_object_mut(), fields.as_object()) else { return base };
    for (key, value) in new {
        let value = match old.remove(key) {
            Some(metadata) if key == "metadata" => with(metadata, value),
            _ => value.clone(),
        };
        old.insert(key.clone(), value);
    }
    base
}
