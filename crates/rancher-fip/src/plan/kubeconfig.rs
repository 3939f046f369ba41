//! Which Secret holds the way into a cluster.

use cloudberth_core::ObjectKey;
use serde_json::Value;

use super::data;
use crate::{
    names::FLEET_DEFAULT,
    problem::{Again, Problem},
    reasons::NO_KUBECONFIG,
    view::{ClusterView, ProvisioningView},
};

/// The Secrets that may hold the kubeconfig of a cluster, the best first: what the provisioning Cluster says, then by the
/// id, then by the display name; in the namespace of the provisioning Cluster, then in `fleet-default`.
pub fn candidates(cluster: &ClusterView, provisioning: Option<&ProvisioningView>) -> Vec<ObjectKey> {
    let said = provisioning.map(|provisioning| provisioning.body.client_secret.clone());
    let by_name = |name: &str| (!name.is_empty()).then(|| format!("{name}-kubeconfig"));
    let names = [said, by_name(cluster.name()), by_name(&cluster.body.display_name)];
    let names = names.into_iter().flatten().filter(|name| !name.is_empty());
    let own = provisioning.map(|provisioning| provisioning.key.namespace.clone());
    let namespaces: Vec<_> =
        own.into_iter().filter(|own| own != FLEET_DEFAULT).chain([FLEET_DEFAULT.to_owned()]).collect();
    let mut keys = Vec::new();
    for name in names {
        for namespace in &namespaces {
            let key = ObjectKey::new(namespace, &name);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

/// The kubeconfig in a Secret.
pub fn value(key: &ObjectKey, secret: &Value) -> Result<Vec<u8>, Problem> {
    data::bytes(secret, "value").filter(|bytes| !bytes.is_empty()).ok_or_else(|| {
        Problem::new(
            NO_KUBECONFIG,
            Again::Soon,
            format!("the Secret {key} has no key \"value\" with a kubeconfig"),
        )
    })
}

/// That none of the Secrets exists.
pub fn missing(candidates: &[ObjectKey]) -> Problem {
    let names: Vec<_> = candidates.iter().map(ToString::to_string).collect();
    Problem::new(
        NO_KUBECONFIG,
        Again::Unreachable,
        format!("there is no kubeconfig of the cluster: none of the Secrets {} exists", names.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use cloudberth_runtime::object::Watched;
    use serde_json::json;

    use super::*;
    use crate::plan::select::tests::cluster;

    fn provisioning(namespace: &str, client_secret: &str) -> ProvisioningView {
        ProvisioningView::read(json!({"metadata": {"name": "guest01", "namespace": namespace},
            "status": {"clientSecretName": client_secret}}))
        .unwrap()
    }

    fn names(display: &str, provisioning: Option<&ProvisioningView>) -> Vec<String> {
        let cluster = cluster("c-m-1", display, &json!({}));
        candidates(&cluster, provisioning).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_provisioning_cluster_knows_best_and_then_the_id() {
        let by_names = ["fleet-default/c-m-1-kubeconfig", "fleet-default/guest01-kubeconfig"];
        assert_eq!(names("guest01", None), by_names, "RF-38 RF-39 RF-40");
        let told = provisioning("fleet-default", "own-kubeconfig");
        let want = ["fleet-default/own-kubeconfig", by_names[0], by_names[1]];
        assert_eq!(names("guest01", Some(&told)), want, "RF-40");
        let elsewhere = provisioning("team", "");
        let want = [
            "team/c-m-1-kubeconfig",
            "fleet-default/c-m-1-kubeconfig",
            "team/guest01-kubeconfig",
            "fleet-default/guest01-kubeconfig",
        ];
        assert_eq!(names("guest01", Some(&elsewhere)), want, "RF-41");
        assert_eq!(names("", None), ["fleet-default/c-m-1-kubeconfig"], "RF-33 an empty name names nothing");
    }

    #[test]
    fn a_secret_without_a_kubeconfig_is_tried_again_in_a_minute() {
        let key = ObjectKey::new("fleet-default", "x-kubeconfig");
        for bad in [json!({}), json!({"data": {"other": "eA=="}}), json!({"data": {"value": ""}})] {
            let problem = value(&key, &bad).unwrap_err();
            assert_eq!(problem.again, Again::Soon, "RF-42");
            assert!(problem.message.contains("fleet-default/x-kubeconfig"), "RF-42");
        }
        assert_eq!(value(&key, &json!({"data": {"value": "eA=="}})), Ok(b"x".to_vec()), "RF-38");
        assert_eq!(missing(&[key]).again, Again::Unreachable, "RF-37 RF-160");
    }
}
