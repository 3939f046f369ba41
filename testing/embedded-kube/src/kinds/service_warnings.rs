//! Warnings about Service fields that are accepted but may not do what their author expects.

use serde_json::Value;

use super::super::value::{entries, list, text, texts};
use super::service::kind;
use super::service_addresses::{cidr_warning, ip_warning};

pub(super) fn of_service(service: &Value) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    let mut warn_if = |when: bool, warning: &str| warnings.extend(when.then(|| warning.to_owned()));
    let hints = "service.kubernetes.io/topology-aware-hints";
    let external = texts(service, "spec.externalIPs");
    let headless = kind(service) == "ClusterIP" && text(service, "spec.clusterIP") == "None";
    warn_if(
        entries(service, "metadata.annotations").any(|(key, _)| key == hints),
        &format!("annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"),
    );
    warn_if(
        headless && !text(service, "spec.loadBalancerIP").is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn_if(headless && !external.is_empty(), "spec.externalIPs is ignored for headless services");
    warn_if(
        headless && text(service, "spec.sessionAffinity") != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    warn_if(
        !external.is_empty() && !headless && kind(service) != "ExternalName",
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn_if(
        kind(service) == "ExternalName" && !external.is_empty(),
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn_if(
        kind(service) != "ExternalName" && !text(service, "spec.externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn_if(
        text(service, "spec.trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    for path in ["spec.clusterIPs", "spec.externalIPs"] {
        let all = texts(service, path);
        warnings.extend(all.iter().enumerate().filter_map(|(i, ip)| ip_warning(&format!("{path}[{i}]"), ip)));
    }
    warnings.extend(ip_warning("spec.loadBalancerIP", text(service, "spec.loadBalancerIP")));
    let ranges = texts(service, "spec.loadBalancerSourceRanges");
    let path = |index: usize| format!("spec.loadBalancerSourceRanges[{index}]");
    warnings.extend(ranges.iter().enumerate().filter_map(|(i, range)| cidr_warning(&path(i), range)));
    warnings
}

pub(super) fn of_status(service: &Value) -> Vec<String> {
    let path = "status.loadBalancer.ingress";
    let all = list(service, path).iter().enumerate();
    all.filter_map(|(i, entry)| ip_warning(&format!("{path}[{i}]"), text(entry, "ip"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_ignored_is_said() {
        let table = [
            (json!({"type": "ClusterIP", "sessionAffinity": "None"}), vec![]),
            (
                json!({"type": "ClusterIP", "externalName": "x.y"}),
                vec!["spec.externalName is ignored when spec.type is not \"ExternalName\""],
            ),
            (
                json!({"type": "ExternalName", "externalIPs": ["192.0.2.1"]}),
                vec!["spec.externalIPs is ignored when spec.type is \"ExternalName\""],
            ),
            (
                json!({"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP"}),
                vec!["spec.SessionAffinity is ignored for headless services"],
            ),
            (
                json!({"type": "LoadBalancer", "loadBalancerIP": "FD00::1"}),
                vec![
                    "spec.loadBalancerIP: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")",
                ],
            ),
        ];
        for (spec, want) in table {
            assert_eq!(of_service(&json!({"spec": spec})), want, "{spec}");
        }
    }
}
