//! The table itself.
//!
//! A row says what it shows, and each step the status that kube-apiserver answers with; the rest of the
//! answer is whatever the real server says.

mod data;
mod deletion;
mod discovery;
mod errors;
mod events;
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
    let groups: [(&'static str, fn() -> Vec<Row>); 15] = [
        ("nodes", nodes::rows),
        ("services", services::rows),
        ("service-rules", service_rules::rows),
        ("patches", patches::rows),
        ("deletion", deletion::rows),
        ("lists", lists::rows),
        ("watches", watches::rows),
        ("tables", tables::rows),
        ("namespaces", namespaces::rows),
        ("events", events::rows),
        ("leases", leases::rows),
        ("data", data::rows),
        ("errors", errors::rows),
        ("reviews", reviews::rows),
        ("discovery", discovery::rows),
    ];
    groups
        .into_iter()
        .flat_map(|(group, made)| made().into_iter().map(move |row| Row { group, ..row }))
        .collect()
}

/// A config map: the plainest of objects.
fn config_map(name: &str, labels: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "labels": labels } })
}
