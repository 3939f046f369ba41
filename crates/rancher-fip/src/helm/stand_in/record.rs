//! Release Secrets as Helm writes them, to plant states in tests.

use std::io::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::helm::ReleaseStatus;

/// What a revision says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planted {
    /// The version of the chart.
    pub version: String,
    /// The values that a user gave.
    pub config: Value,
    /// The description.
    pub description: String,
    /// When it was made.
    pub updated: Option<Timestamp>,
    /// When its removal began.
    pub deleted: Option<Timestamp>,
}

/// The Secret of one revision.
pub fn record(
    namespace: &str,
    release: &str,
    revision: u32,
    status: ReleaseStatus,
    planted: &Planted,
) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let (updated, deleted) = (time(planted.updated), time(planted.deleted));
    let body = json!({
        "name": release,
        "info": {
            "first_deployed": updated, "last_deployed": updated, "deleted": deleted,
            "description": planted.description, "status": status.name(),
        },
        "chart": {"metadata": {"name": release, "version": planted.version, "apiVersion": "v2"}},
        "config": planted.config,
        "manifest": "",
        "version": revision,
        "namespace": namespace,
    });
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let zipped = gzip.write_all(body.to_string().as_bytes()).and_then(|()| gzip.finish()).unwrap_or_default();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": format!("sh.helm.release.v1.{release}.v{revision}"),
            "namespace": namespace,
            "labels": {"name": release, "owner": "helm", "status": status.name(), "version": revision.to_string()},
        },
        "type": "helm.sh/release.v1",
        "data": {"release": STANDARD.encode(STANDARD.encode(zipped))},
    })
}
