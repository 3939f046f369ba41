//! What the load-balancer controller has read, and when it has to read again.
//!
//! It reads the address, the token and the CA once, when it starts. A hash of all that is recorded on its Deployment,
//! and stands for what the running pods have read. Where it differs from what is there now, the controller is restarted in
//! the same write that records the new hash: a restart that fails is made up for, and none is made twice.

use serde_json::{Value, json};

use super::data::{self, Hasher};
use crate::{
    names::{CA_KEY, CONTROLLER_DEPLOYMENT, READ_HASH, RESTARTED_AT},
    view::{entry, text},
};

/// What a starting controller would read.
#[derive(Clone, Copy, Debug)]
pub struct Readable<'a> {
    /// The project Secrets in its namespace.
    pub secrets: &'a [&'a Value],
    /// The Secret `cacerts`.
    pub ca: Option<&'a Value>,
    /// The interface map.
    pub map: Option<&'a Value>,
    /// The project label of its namespace.
    pub label: Option<&'a str>,
}

/// The hash of it.
pub fn hash(readable: Readable<'_>) -> String {
    let mut hasher = Hasher::default();
    let mut secrets: Vec<_> = readable
        .secrets
        .iter()
        .map(|secret| {
            ["project", "cluster", "apiUrl", "clientSecret"]
                .map(|key| data::bytes(secret, key).unwrap_or_default())
        })
        .collect();
    secrets.sort_unstable();
    hasher.add(secrets.len().to_string());
    for part in secrets.iter().flatten() {
        hasher.add(part);
    }
    hasher.add(readable.ca.and_then(|ca| data::bytes(ca, CA_KEY)).unwrap_or_default());
    let keys = readable.map.and_then(|map| map.get("data")).and_then(Value::as_object);
    let keys: Vec<_> = keys.into_iter().flatten().map(|(key, _)| key).collect();
    hasher.add(keys.len().to_string());
    for key in keys {
        hasher.add(key);
    }
    hasher.add(readable.label.unwrap_or_default());
    hasher.end()
}

/// The Deployment of the controller: the one that Helm made for the release, else the one of the chart's name, else the one
/// of the well-known name.
pub fn deployment<'a>(all: &'a [Value], release: &str) -> Option<&'a Value> {
    let by_helm = |deployment: &&Value| {
        entry(deployment, "labels", "app.kubernetes.io/managed-by") == Some("Helm")
            && entry(deployment, "annotations", "meta.helm.sh/release-name") == Some(release)
    };
    let named = |name: &str| all.iter().find(|deployment| text(deployment, "/metadata/name") == name);
    all.iter().find(by_helm).or_else(|| named(release)).or_else(|| named(CONTROLLER_DEPLOYMENT))
}

/// The hash that is recorded on the Deployment.
pub fn recorded(deployment: &Value) -> Option<&str> {
    entry(deployment, "annotations", READ_HASH)
}

/// The merge patch that records what the pods have read, without a rollout.
pub fn record(deployment: &Value, hash: &str) -> Value {
    json!({"metadata": identity(deployment, hash)})
}

/// The merge patch that restarts the controller and records what it will read.
pub fn restart(deployment: &Value, hash: &str, now: &str) -> Value {
    json!({"metadata": identity(deployment, hash),
        "spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: now}}}}})
}

/// Only the Deployment that was read is changed, and not if somebody else changed it since.
fn identity(deployment: &Value, hash: &str) -> Value {
    json!({"uid": text(deployment, "/metadata/uid"), "resourceVersion": text(deployment, "/metadata/resourceVersion"),
        "annotations": {READ_HASH: hash}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(project: &str, token: &str) -> Value {
        json!({"data": {"project": data::encode(project), "clientSecret": data::encode(token), "floatingIPPool": "eA=="}})
    }

    #[test]
    fn the_hash_changes_with_what_is_read_and_with_nothing_else() {
        let (one, two) = (secret("p-1", "T"), secret("p-2", "U"));
        let ca = json!({"data": {"ca.crt": data::encode("ca"), "more": "eA=="}});
        let map = json!({"data": {"a": "eth1"}});
        let base = Readable { secrets: &[&one], ca: Some(&ca), map: Some(&map), label: Some("p-1") };
        let known = hash(base);
        let (new_token, new_ca) = (secret("p-1", "V"), json!({"data": {"ca.crt": data::encode("other")}}));
        let new_map = json!({"data": {"a": "eth1", "b": "eth2"}});
        let changed = [
            ("RF-139 the token", Readable { secrets: &[&new_token], ..base }),
            ("RF-210 another project", Readable { secrets: &[&one, &two], ..base }),
            ("RF-123 the CA", Readable { ca: Some(&new_ca), ..base }),
            ("no CA", Readable { ca: None, ..base }),
            ("another pool", Readable { map: Some(&new_map), ..base }),
            ("RF-117 the label", Readable { label: Some("p-2"), ..base }),
            ("RF-115 no label", Readable { label: None, ..base }),
        ];
        for (case, readable) in changed {
            assert_ne!(hash(readable), known, "{case}");
        }
        let other_interface = json!({"data": {"a": "eth9"}});
        let mut other_pool = one.clone();
        other_pool["data"]["floatingIPPool"] = json!("eQ==");
        let same = [
            ("RF-116 RF-123 the same", base),
            ("an interface is read each time", Readable { map: Some(&other_interface), ..base }),
            ("so is the default pool", Readable { secrets: &[&other_pool], ..base }),
        ];
        for (case, readable) in same {
            assert_eq!(hash(readable), known, "{case}");
        }
        let (a, b) =
            (Readable { secrets: &[&one, &two], ..base }, Readable { secrets: &[&two, &one], ..base });
        assert_eq!(hash(a), hash(b), "the order does not count");
    }

    fn made(name: &str, release: Option<&str>) -> Value {
        let by_helm = release.map(|release| {
            (json!({"app.kubernetes.io/managed-by": "Helm"}), json!({"meta.helm.sh/release-name": release}))
        });
        let (labels, annotations) = by_helm.unwrap_or_default();
        json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "9", "labels": labels, "annotations": annotations}})
    }

    #[test]
    fn the_deployment_is_found_by_its_release() {
        let find = |all: &[Value], release: &str| {
            deployment(all, release).map(|found| text(found, "/metadata/name").to_owned())
        };
        let by_helm = made("fip-lb-rancher-fip-lb-controller", Some("fip-lb"));
        let known = made("rancher-fip-lb-controller", None);
        assert_eq!(
            find(&[known.clone(), by_helm.clone()], "fip-lb").as_deref(),
            Some("fip-lb-rancher-fip-lb-controller"),
            "RF-212"
        );
        assert_eq!(
            find(&[known.clone(), made("x", Some("other"))], "fip-lb").as_deref(),
            Some("rancher-fip-lb-controller"),
            "RF-115"
        );
        assert_eq!(find(&[known, made("fip-lb", None)], "fip-lb").as_deref(), Some("fip-lb"));
        assert_eq!(find(&[made("other", Some("purelb"))], "fip-lb"), None, "RF-119");
    }

    #[test]
    fn a_restart_records_what_will_be_read_in_the_same_write() {
        let found = made("rancher-fip-lb-controller", None);
        let patch = restart(&found, "h4sh", "2026-01-01T00:00:00Z");
        assert_eq!(patch["metadata"]["annotations"][READ_HASH], "h4sh", "RF-120");
        assert_eq!(
            (&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]),
            (&json!("u"), &json!("9"))
        );
        let restarted = &patch["spec"]["template"]["metadata"]["annotations"]["rancher.k8s.binbash.org/lb-controller-restarted-at"];
        assert_eq!(restarted, "2026-01-01T00:00:00Z", "RF-115");
        assert_eq!(record(&found, "h4sh").get("spec"), None, "RF-211 no rollout");
    }
}
