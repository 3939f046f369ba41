//! The repositories file for an address with a password.

use cloudberth_core::Secret;
use serde_json::json;

/// A repositories file (JSON is YAML) with one repository in it. It belongs into a private directory.
pub(super) fn file(name: &str, url: &str, user: &str, password: Option<&Secret>) -> Vec<u8> {
    let password = password.map(Secret::expose).unwrap_or_default();
    let entry = json!({"name": name, "url": url, "username": user, "password": password});
    json!({"apiVersion": "v1", "generated": "0001-01-01T00:00:00Z", "repositories": [entry]})
        .to_string()
        .into_bytes()
}
