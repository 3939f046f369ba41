//! Which nodes of a Service are worth sending traffic to, and how to ask them.

use crate::view::{ExternalTrafficPolicy, ServiceType, ServiceView};

/// Where a node answers whether it has pods of a Service with the policy `Local`.
pub const HEALTH_CHECK_PATH: &str = "/healthz";

/// Whether traffic from outside goes only to nodes that have a pod of the Service.
#[must_use]
pub fn only_local(service: &ServiceView) -> bool {
    matches!(service.service_type, ServiceType::LoadBalancer | ServiceType::NodePort)
        && service.external_traffic_policy == ExternalTrafficPolicy::Local
}

/// Whether nodes have to be asked if they have a pod of the Service.
#[must_use]
pub fn needs_health_check(service: &ServiceView) -> bool {
    service.service_type == ServiceType::LoadBalancer && only_local(service)
}

/// Path and port at which nodes answer, where they have to be asked and a port is allocated.
#[must_use]
pub fn health_check(service: &ServiceView) -> Option<(&'static str, i64)> {
    let port = service.health_check_node_port;
    (needs_health_check(service) && port != 0).then_some((HEALTH_CHECK_PATH, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_by_type() {
        use {ExternalTrafficPolicy as Policy, ServiceType as Type};
        let table = [
            ("FW-262 empty", Type::default(), Policy::default(), false, false),
            ("FW-262 ClusterIP", Type::ClusterIp, Policy::Local, false, false),
            ("FW-262 NodePort", Type::NodePort, Policy::default(), false, false),
            ("FW-262 NodePort, Cluster", Type::NodePort, Policy::Cluster, false, false),
            ("FW-262 LoadBalancer, Cluster", Type::LoadBalancer, Policy::Cluster, false, false),
            ("FW-263 FW-264 NodePort, Local", Type::NodePort, Policy::Local, true, false),
            ("FW-263 FW-264 LoadBalancer, Local", Type::LoadBalancer, Policy::Local, true, true),
        ];
        for (case, service_type, external_traffic_policy, local, check) in table {
            let mut view = ServiceView { service_type, external_traffic_policy, ..ServiceView::default() };
            assert_eq!(only_local(&view), local, "{case}");
            assert_eq!(needs_health_check(&view), check, "{case}");
            assert_eq!(health_check(&view), None, "{case}: no port is allocated");
            view.health_check_node_port = 32000;
            assert_eq!(health_check(&view), check.then_some(("/healthz", 32000)), "{case}");
        }
    }
}
