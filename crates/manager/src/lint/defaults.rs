//! What the API server makes of a manifest: it refuses values of the wrong type, and fills in what is left out.

use cloudberth_core::{
    net::IpFamily,
    view::{ExternalTrafficPolicy, IpFamilyPolicy, ServiceView},
};
use serde_json::Value;

use super::{Finding, Level, Object};

/// The first port that the API server gives by default.
const FIRST_NODE_PORT: i64 = 30_000;
/// A health-check port that no node port above takes: a Service has far fewer ports.
const HEALTH_CHECK_NODE_PORT: i64 = 32_767;
/// In the place of a UID.
const UID: &str = "00000000-0000-4000-8000-000000000000";

/// What the server does not take: an annotation that is not text. Without quotes, `true` and `80` are not.
pub(super) fn refused_by_the_server(object: &Object) -> Vec<Finding> {
    let odd = object.annotations().into_iter().flatten().filter(|(_, value)| !value.is_string());
    odd.map(|(key, value)| {
        let what = match value {
            Value::Null => "nothing".to_owned(),
            other => other.to_string(),
        };
        let message = format!("{what} is not text, so the API server refuses the whole Service");
        let fix = format!("Put it in quotes: {key}: \"{}\".", if value.is_null() { "" } else { &what });
        object.finding(Level::Refused, key, message, &fix)
    })
    .collect()
}

/// The Service with what the server fills in where the manifest is silent.
pub(super) fn filled_in(mut view: ServiceView) -> ServiceView {
    if view.namespace.is_empty() {
        "default".clone_into(&mut view.namespace);
    }
    if view.uid.is_empty() {
        UID.clone_into(&mut view.uid);
    }
    if view.allocate_node_ports != Some(false) {
        let mut free = FIRST_NODE_PORT;
        let taken: Vec<_> = view.ports.iter().map(|port| port.node_port).collect();
        for port in view.ports.iter_mut().filter(|port| port.node_port == 0) {
            while taken.contains(&free) {
                free += 1;
            }
            port.node_port = free;
            free += 1;
        }
    }
    if view.external_traffic_policy == ExternalTrafficPolicy::Local && view.health_check_node_port == 0 {
        view.health_check_node_port = HEALTH_CHECK_NODE_PORT;
    }
    if view.ip_families.is_empty() {
        let both = matches!(
            view.ip_family_policy,
            Some(IpFamilyPolicy::RequireDualStack | IpFamilyPolicy::PreferDualStack)
        );
        view.ip_families = if both { vec![IpFamily::V4, IpFamily::V6] } else { vec![IpFamily::V4] };
    }
    view.ip_family_policy.get_or_insert(IpFamilyPolicy::SingleStack);
    view
}
