//! After every scenario: what the managers published is in the tables of reasons, from which the reference is written.

use cloudberth_core::Reason;
use cloudberth_core::reason::EventSource;
use cloudberth_e2e::Cluster;
use serde_json::Value;

use crate::Outcome;
use crate::fixture::text;

/// Checks every event that names one of our components: its reason is in a table, and so are its component, the kind of
/// its object and its type. Kubernetes' own programs publish under other names.
pub(crate) async fn are_all_in_the_tables(cluster: &Cluster) -> Outcome {
    let all = cluster.get("/api/v1/events").await?;
    for event in all["items"].as_array().into_iter().flatten() {
        assert!(is_of_another_program(event) || is_in_a_table(event), "not in a table of reasons: {event:#}");
    }
    Ok(())
}

fn is_of_another_program(event: &Value) -> bool {
    EventSource::ALL.iter().all(|source| text(event, "/source/component") != source.component())
}

fn is_in_a_table(event: &Value) -> bool {
    cloudberth::reasons().map(Reason::row).any(|row| {
        text(event, "/reason") == row.name
            && text(event, "/source/component") == row.source.component()
            && text(event, "/involvedObject/kind") == row.source.kind()
            && text(event, "/type") == format!("{:?}", row.severity)
    })
}
