//! Which labels a floating IP loses when the cluster that used it is gone.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    names::{CLUSTER_NAME, PREFIX},
    view::entry,
};

/// Whether a label says who uses a floating IP. `project-name` does not: the project keeps the address.
fn is_about_use(label: &str) -> bool {
    let Some(name) = label.strip_prefix(PREFIX) else { return false };
    if matches!(name, "cluster-name" | "service-name" | "service-namespace" | "floatingip-group") {
        return true;
    }
    let middle = name
        .strip_prefix("service-")
        .and_then(|rest| rest.strip_suffix("-namespace").or(rest.strip_suffix("-name")));
    middle.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The floating IP without any sign of `cluster`, which is gone; nothing if the cluster does not use it. If the labels that
/// name Services stayed, the address would leak with its next use.
pub fn released(floating_ip: &Value, cluster: &str) -> Option<Value> {
    if cluster.is_empty() || user(floating_ip) != Some(cluster) {
        return None;
    }
    let mut new = floating_ip.clone();
    let labels = new.pointer_mut("/metadata/labels")?.as_object_mut()?;
    labels.retain(|label, _| !is_about_use(label));
    Some(new)
}

/// The cluster that uses a floating IP.
pub fn user(floating_ip: &Value) -> Option<&str> {
    entry(floating_ip, "labels", CLUSTER_NAME)
}

/// The users that look like management Clusters and are not `known`. Whether they are really gone has to be asked.
/// A load-balancer controller that was set up by hand may use any other name, and keeps its addresses.
pub fn unknown_users<'a>(
    floating_ips: impl IntoIterator<Item = &'a Value>,
    known: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let users = floating_ips.into_iter().filter_map(user);
    users.filter(|name| name.starts_with("c-") && !known(name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn floating_ip(labels: &[(&str, &str)]) -> Value {
        let labels: serde_json::Map<_, _> =
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        json!({"metadata": {"name": "ip", "namespace": "p", "resourceVersion": "5", "labels": labels,
                "finalizers": ["rancher.k8s.binbash.org/floatingip-cleanup"]},
            "spec": {"floatingIPPool": "a", "ipAddr": "10.0.0.1"},
            "status": {"assigned": {"services": [{"serviceName": "s"}]}}})
    }

    #[test]
    fn every_sign_of_use_goes_and_everything_else_stays() {
        let used = floating_ip(&[
            ("rancher.k8s.binbash.org/cluster-name", "c-m-1"),
            ("rancher.k8s.binbash.org/project-name", "p-1"),
            ("rancher.k8s.binbash.org/service-0-name", "s"),
            ("rancher.k8s.binbash.org/service-0-namespace", "n"),
            ("rancher.k8s.binbash.org/service-12-name", "s"),
            ("rancher.k8s.binbash.org/service-name", "s"),
            ("rancher.k8s.binbash.org/service-namespace", "n"),
            ("rancher.k8s.binbash.org/floatingip-group", "g"),
            ("rancher.k8s.binbash.org/service-x-name", "foreign"),
            ("example.com/service-0-name", "foreign"),
            ("team", "a"),
        ]);
        let new = released(&used, "c-m-1").unwrap();
        let left = json!({"rancher.k8s.binbash.org/project-name": "p-1", "rancher.k8s.binbash.org/service-x-name": "foreign",
            "example.com/service-0-name": "foreign", "team": "a"});
        assert_eq!(new["metadata"]["labels"], left, "RF-172 RF-173 RF-174 RF-175");
        for part in ["/spec", "/status", "/metadata/finalizers", "/metadata/resourceVersion"] {
            assert_eq!(new.pointer(part), used.pointer(part), "RF-173 RF-176 {part}");
        }
        assert_eq!(released(&new, "c-m-1"), None, "law 4");
    }

    #[test]
    fn another_cluster_keeps_its_address() {
        let used = floating_ip(&[("rancher.k8s.binbash.org/cluster-name", "c-m-2")]);
        assert_eq!(released(&used, "c-m-1"), None, "RF-172");
        assert_eq!(released(&floating_ip(&[]), ""), None);
        assert_eq!(released(&json!({"metadata": {}}), "c-m-1"), None);
    }

    #[test]
    fn only_users_that_look_like_clusters_are_asked_for() {
        let of = |name: &str| floating_ip(&[("rancher.k8s.binbash.org/cluster-name", name)]);
        let all = [of("c-m-gone"), of("my-cluster"), of("c-m-here"), of("c-m-gone"), floating_ip(&[])];
        let unknown = unknown_users(&all, |name| name == "c-m-here");
        assert_eq!(unknown, BTreeSet::from(["c-m-gone".to_owned()]), "RF-217 RF-179");
    }
}
