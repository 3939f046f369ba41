//! Which difference between two versions of a Service is work.
//!
//! What we write ourselves is none: status and finalizers are not looked at (a lost finalizer apart), and an
//! annotation that has the value which we wrote last is not a change. Values are compared rather than keys, because a
//! person may set a recorded annotation too (a zone, say) and then wants an answer.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

use crate::{
    decide::service::{assignments::Assignment, need},
    view::{ServiceView, SessionAffinity},
};

/// What we wrote last on a Service: annotation key to value, `None` for a key that we removed. Remembered before the
/// write is sent, because the watch may be faster than the answer. Lost at a restart, which costs a pass that finds
/// nothing to do.
pub type Written = BTreeMap<String, Option<String>>;

/// Remembers the annotations that `patch` sets and removes.
pub fn remember(written: &mut Written, patch: &Value) {
    let annotations = patch.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        written.insert(key.clone(), value.as_str().map(ToOwned::to_owned));
    }
}

/// Forgets what somebody else wrote over: whoever puts our value back later changes something again.
///
/// A difference to what we wrote tells nothing as long as it was there before: our write may not have arrived yet.
pub fn overwritten(written: &mut Written, old: &ServiceView, new: &ServiceView) {
    written.retain(|key, value| {
        let now = new.annotations.get(key);
        old.annotations.get(key) == now || value.as_ref() == now
    });
}

/// The first difference that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It wants a load balancer now.
    Wanted,
    /// It does not want one any more.
    Unwanted,
    /// Another provider serves it now.
    Provider,
    /// `spec.loadBalancerSourceRanges`.
    SourceRanges,
    /// `spec.ports`.
    Ports,
    /// `spec.sessionAffinity`.
    SessionAffinity,
    /// `spec.sessionAffinityConfig`.
    SessionAffinityConfig,
    /// `spec.loadBalancerIP`.
    LoadBalancerIp,
    /// `spec.externalIPs`.
    ExternalIps,
    /// The annotation of this key.
    Annotation(String),
    /// It was deleted and made anew under the same name.
    Uid,
    /// `spec.externalTrafficPolicy`.
    ExternalTrafficPolicy,
    /// `spec.healthCheckNodePort`.
    HealthCheckNodePort,
    /// The number of `spec.ipFamilies`.
    IpFamilies,
    /// Somebody took the finalizer away from a Service that needs it.
    FinalizerLost,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wanted => "a load balancer is wanted",
            Self::Unwanted => "no load balancer is wanted any more",
            Self::Provider => "the provider changed",
            Self::SourceRanges => "spec.loadBalancerSourceRanges changed",
            Self::Ports => "spec.ports changed",
            Self::SessionAffinity => "spec.sessionAffinity changed",
            Self::SessionAffinityConfig => "spec.sessionAffinityConfig changed",
            Self::LoadBalancerIp => "spec.loadBalancerIP changed",
            Self::ExternalIps => "spec.externalIPs changed",
            Self::Annotation(key) => return write!(f, "annotation {key} changed"),
            Self::Uid => "the Service was made anew",
            Self::ExternalTrafficPolicy => "spec.externalTrafficPolicy changed",
            Self::HealthCheckNodePort => "spec.healthCheckNodePort changed",
            Self::IpFamilies => "the number of spec.ipFamilies changed",
            Self::FinalizerLost => "the finalizer was taken away",
        })
    }
}

/// Whether `new` needs work that `old` did not, and why. Each version comes with what it is to us.
#[must_use]
pub fn needs_update(
    (old, before): (&ServiceView, &Assignment<'_>),
    (new, now): (&ServiceView, &Assignment<'_>),
    written: &Written,
) -> Option<Change> {
    match (need::wants(old, before), need::wants(new, now)) {
        (false, false) => return None,
        (false, true) => return Some(Change::Wanted),
        (true, false) => return Some(Change::Unwanted),
        (true, true) => {}
    }
    let lost = need::has_finalizer(old) && !need::has_finalizer(new) && !new.deleting;
    let rules = [
        (before.server != now.server, Change::Provider),
        (old.source_ranges != new.source_ranges, Change::SourceRanges),
        (old.ports != new.ports, Change::Ports),
        (kind(&old.session_affinity) != kind(&new.session_affinity), Change::SessionAffinity),
        (old.session_affinity != new.session_affinity, Change::SessionAffinityConfig),
        (old.load_balancer_ip != new.load_balancer_ip, Change::LoadBalancerIp),
        (old.external_ips != new.external_ips, Change::ExternalIps),
    ];
    let later = [
        (old.uid != new.uid, Change::Uid),
        (old.external_traffic_policy != new.external_traffic_policy, Change::ExternalTrafficPolicy),
        (old.health_check_node_port != new.health_check_node_port, Change::HealthCheckNodePort),
        (old.ip_families.len() != new.ip_families.len(), Change::IpFamilies),
        (lost, Change::FinalizerLost),
    ];
    let first =
        |rules: Vec<(bool, Change)>| rules.into_iter().find_map(|(hit, change)| hit.then_some(change));
    first(rules.into())
        .or_else(|| foreign_annotation(old, new, written).map(Change::Annotation))
        .or_else(|| first(later.into()))
}

/// The affinity without its configuration.
fn kind(affinity: &SessionAffinity) -> SessionAffinity {
    match affinity {
        SessionAffinity::ClientIp { .. } => SessionAffinity::ClientIp { timeout_seconds: None },
        other => other.clone(),
    }
}

/// The first annotation that differs and was not written so by us.
fn foreign_annotation(old: &ServiceView, new: &ServiceView, written: &Written) -> Option<String> {
    let ours = |key: &str| written.get(key).is_some_and(|value| value.as_ref() == new.annotations.get(key));
    let mut keys: Vec<_> = old.annotations.keys().chain(new.annotations.keys()).collect();
    keys.sort_unstable();
    keys.into_iter().find(|key| old.annotations.get(*key) != new.annotations.get(*key) && !ours(key)).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        decide::service::{
            FINALIZER, PROVIDER_ANNOTATION,
            assignments::{Assignments, Candidate},
            testing::{CLOUD, annotated, assignments, classy, service, typed},
        },
        lb::INTENT_ANNOTATION,
        net::IpFamily,
        view::{ExternalTrafficPolicy, Ingress, ServicePort, ServiceProtocol, ServiceType, TargetPort},
    };

    fn needs_update(
        assignments: &Assignments,
        old: &ServiceView,
        new: &ServiceView,
        written: &Written,
    ) -> Option<Change> {
        super::needs_update((old, &assignments.of(old)), (new, &assignments.of(new)), written)
    }

    fn edited(edit: impl FnOnce(&mut ServiceView)) -> ServiceView {
        let mut view = service();
        edit(&mut view);
        view
    }

    fn port(edit: impl FnOnce(&mut ServicePort)) -> ServiceView {
        edited(|view| edit(&mut view.ports[0]))
    }

    fn sticky(timeout_seconds: Option<i64>) -> ServiceView {
        edited(|v| v.session_affinity = SessionAffinity::ClientIp { timeout_seconds })
    }

    fn ranges(list: &[&str]) -> ServiceView {
        edited(|v| v.source_ranges = Some(list.iter().map(|&r| r.to_owned()).collect()))
    }

    fn outside(list: &[&str]) -> ServiceView {
        edited(|v| v.external_ips = list.iter().map(|&r| r.to_owned()).collect())
    }

    fn app(protocol: Option<&str>) -> ServiceView {
        port(|p| p.app_protocol = protocol.map(str::to_owned))
    }

    fn families(list: &[IpFamily]) -> ServiceView {
        edited(|v| v.ip_families = list.to_vec())
    }

    fn note(value: &str) -> ServiceView {
        annotated(service(), "note", value)
    }

    #[test]
    fn the_rules_in_their_order() {
        use Change::{
            Annotation, ExternalIps, HealthCheckNodePort, IpFamilies, LoadBalancerIp, Ports,
            SessionAffinityConfig, SourceRanges, Uid, Unwanted, Wanted,
        };
        let (v4, v6) = (IpFamily::V4, IpFamily::V6);
        let noted = || Some(Annotation("note".to_owned()));
        let cluster_ip = || typed(ServiceType::ClusterIp);
        let target = |t| port(|p| p.target_port = Some(t));
        let number = |n| target(TargetPort::Number(n));
        let busy = edited(|v| {
            v.service_type = ServiceType::ClusterIp;
            v.load_balancer_ip = Some("192.0.2.1".to_owned());
        });
        let dressed = edited(|v| {
            v.labels.insert("a", "b");
            v.ingress = vec![Ingress { ip: Some("192.0.2.1".to_owned()), ..Ingress::default() }];
            v.resource_version = "8".to_owned();
            v.generation = 4;
        });
        let table = vec![
            ("FW-176 LoadBalancer to ClusterIP", service(), cluster_ip(), Some(Unwanted)),
            ("ClusterIP to LoadBalancer", cluster_ip(), service(), Some(Wanted)),
            ("FW-177 port numbers", service(), port(|p| p.port = 81), Some(Ports)),
            ("a node port", service(), port(|p| p.node_port = 1), Some(Ports)),
            ("a port's name", service(), port(|p| p.name = "x".to_owned()), Some(Ports)),
            ("a port's protocol", service(), port(|p| p.protocol = ServiceProtocol::Udp), Some(Ports)),
            ("one port more", service(), edited(|v| v.ports.push(ServicePort::default())), Some(Ports)),
            ("FW-178 number of externalIPs", outside(&["a"]), outside(&["a", "b"]), Some(ExternalIps)),
            ("FW-178 a value of externalIPs", outside(&["a", "b"]), outside(&["a", "c"]), Some(ExternalIps)),
            ("FW-179 UID", service(), edited(|v| v.uid = "u-2".to_owned()), Some(Uid)),
            (
                "FW-180 externalTrafficPolicy",
                service(),
                edited(|v| v.external_traffic_policy = ExternalTrafficPolicy::Local),
                Some(Change::ExternalTrafficPolicy),
            ),
            (
                "FW-181 healthCheckNodePort",
                service(),
                edited(|v| v.health_check_node_port = 1),
                Some(HealthCheckNodePort),
            ),
            ("FW-182 targetPort 20 to 21", number(20), number(21), Some(Ports)),
            ("FW-183 number to name", number(20), target(TargetPort::Name("20".to_owned())), Some(Ports)),
            ("FW-184 identical copies", service(), service(), None),
            ("FW-185 appProtocol unset to http", app(None), app(Some("http")), Some(Ports)),
            ("FW-185 appProtocol http to tcp", app(Some("http")), app(Some("tcp")), Some(Ports)),
            ("FW-186 one family to two", families(&[v4]), families(&[v4, v6]), Some(IpFamilies)),
            ("FW-186 two families to one", families(&[v4, v6]), families(&[v4]), Some(IpFamilies)),
            ("FW-187 the same family", families(&[v4]), families(&[v4]), None),
            ("FW-187 as many, but another", families(&[v4]), families(&[v6]), None),
            ("FW-188 annotation added", service(), note("1"), noted()),
            ("FW-188 annotation changed", note("1"), note("2"), noted()),
            ("FW-188 annotation removed", note("1"), service(), noted()),
            ("FW-189 sessionAffinity", service(), sticky(None), Some(Change::SessionAffinity)),
            ("FW-189 its config", sticky(Some(1)), sticky(Some(2)), Some(SessionAffinityConfig)),
            ("FW-190 reordered source ranges", ranges(&["a", "b"]), ranges(&["b", "a"]), Some(SourceRanges)),
            ("source ranges unset to empty", service(), ranges(&[]), Some(SourceRanges)),
            (
                "FW-191 loadBalancerIP",
                service(),
                edited(|v| v.load_balancer_ip = Some("192.0.2.1".to_owned())),
                Some(LoadBalancerIp),
            ),
            ("FW-192 only labels and status", service(), dressed, None),
            ("FW-193 both ClusterIP", cluster_ip(), busy, None),
            ("FW-194 it gains another class", service(), classy("example.net/other"), Some(Unwanted)),
        ];
        let assignments = assignments();
        for (case, old, new, want) in table {
            assert_eq!(needs_update(&assignments, &old, &new, &Written::new()), want, "{case}");
        }
    }

    #[test]
    fn an_earlier_rule_names_the_change() {
        let all: [fn(&mut ServiceView); 11] = [
            |v| v.source_ranges = Some(vec![]),
            |v| v.ports.clear(),
            |v| v.session_affinity = SessionAffinity::ClientIp { timeout_seconds: None },
            |v| v.load_balancer_ip = Some("192.0.2.1".to_owned()),
            |v| v.external_ips = vec!["192.0.2.1".to_owned()],
            |v| _ = v.annotations.insert("note".to_owned(), "1".to_owned()),
            |v| v.uid = "u-2".to_owned(),
            |v| v.external_traffic_policy = ExternalTrafficPolicy::Local,
            |v| v.health_check_node_port = 1,
            |v| v.ip_families = vec![IpFamily::V4],
            |v| v.finalizers.clear(),
        ];
        let names = [
            "spec.loadBalancerSourceRanges changed",
            "spec.ports changed",
            "spec.sessionAffinity changed",
            "spec.loadBalancerIP changed",
            "spec.externalIPs changed",
            "annotation note changed",
            "the Service was made anew",
            "spec.externalTrafficPolicy changed",
            "spec.healthCheckNodePort changed",
            "the number of spec.ipFamilies changed",
            "the finalizer was taken away",
        ];
        let old = edited(|v| v.finalizers = vec![FINALIZER.to_owned()]);
        for (first, name) in names.iter().enumerate() {
            let mut new = old.clone();
            all[first..].iter().for_each(|edit| edit(&mut new));
            let change = needs_update(&assignments(), &old, &new, &Written::new()).unwrap();
            assert_eq!(&change.to_string(), name);
        }
        let rest = [
            (Change::Wanted, "a load balancer is wanted"),
            (Change::Unwanted, "no load balancer is wanted any more"),
            (Change::Provider, "the provider changed"),
            (Change::SessionAffinityConfig, "spec.sessionAffinityConfig changed"),
        ];
        for (change, name) in rest {
            assert_eq!(change.to_string(), name);
        }
    }

    #[test]
    fn what_we_wrote_ourselves_is_no_change() {
        let written: Written =
            [("cloud.example/id".to_owned(), Some("7".to_owned())), (INTENT_ANNOTATION.to_owned(), None)]
                .into();
        let with_intent = annotated(service(), INTENT_ANNOTATION, "2026-03-02T04:05:00Z");
        let recorded = annotated(service(), "cloud.example/id", "7");
        let table = [
            ("L4-101 the id that we recorded", service(), recorded.clone(), None),
            ("L4-102 the intent that we removed", with_intent.clone(), service(), None),
            ("L4-103 both at once", with_intent, recorded.clone(), None),
            (
                "somebody changes the id",
                recorded.clone(),
                annotated(service(), "cloud.example/id", "8"),
                Some(Change::Annotation("cloud.example/id".to_owned())),
            ),
            (
                "somebody removes the id",
                recorded.clone(),
                service(),
                Some(Change::Annotation("cloud.example/id".to_owned())),
            ),
            (
                "another annotation beside ours",
                service(),
                annotated(recorded, "zone", "1"),
                Some(Change::Annotation("zone".to_owned())),
            ),
        ];
        for (case, old, new, want) in table {
            assert_eq!(needs_update(&assignments(), &old, &new, &written), want, "{case}");
        }
    }

    #[test]
    fn what_we_wrote_and_somebody_put_back_is_a_change() {
        let id = |value: &str| annotated(service(), "cloud.example/id", value);
        let ours = || Written::from([("cloud.example/id".to_owned(), Some("7".to_owned()))]);
        let changed = || Some(Change::Annotation("cloud.example/id".to_owned()));
        let noted = annotated(service(), "note", "1");
        // Versions in the order in which the watch shows them, and what each of them means.
        let table = [
            ("L4-822 we write it, and that is all", vec![service(), id("7"), id("7")], vec![None, None]),
            (
                "L4-823 changed, and put back",
                vec![id("7"), id("8"), id("7"), id("7")],
                vec![changed(), changed(), None],
            ),
            ("L4-824 removed, and put back", vec![id("7"), service(), id("7")], vec![changed(), changed()]),
            (
                "L4-825 something else changes before our write arrives",
                vec![service(), noted, id("7")],
                vec![
                    Some(Change::Annotation("note".to_owned())),
                    Some(Change::Annotation("note".to_owned())),
                ],
            ),
        ];
        for (case, versions, want) in table {
            let mut written = ours();
            let mut got = Vec::new();
            for pair in versions.windows(2) {
                got.push(needs_update(&assignments(), &pair[0], &pair[1], &written));
                overwritten(&mut written, &pair[0], &pair[1]);
            }
            assert_eq!(got, want, "{case}");
        }
        let mut written = ours();
        overwritten(&mut written, &service(), &annotated(service(), "note", "1"));
        assert_eq!(written, ours(), "L4-826 it is still on its way");
        overwritten(&mut written, &service(), &id("7"));
        assert_eq!(written, ours());
        overwritten(&mut written, &id("7"), &id("8"));
        remember(&mut written, &json!({"metadata": {"annotations": {"cloud.example/id": "7"}}}));
        assert_eq!(
            needs_update(&assignments(), &id("8"), &id("7"), &written),
            None,
            "L4-827 we put it back ourselves"
        );
    }

    #[test]
    fn what_a_patch_writes_is_remembered() {
        let mut written: Written = [("a".to_owned(), Some("old".to_owned()))].into();
        remember(&mut written, &json!({"metadata": {"annotations": {"a": "1", "b": null}, "uid": "u-1"}}));
        remember(&mut written, &json!({"status": {}}));
        assert_eq!(written, [("a".to_owned(), Some("1".to_owned())), ("b".to_owned(), None)].into());
    }

    #[test]
    fn our_finalizer_and_its_loss() {
        let held = edited(|v| v.finalizers = vec![FINALIZER.to_owned()]);
        let going = edited(|v| v.deleting = true);
        let more = edited(|v| v.finalizers = vec![FINALIZER.to_owned(), "other".to_owned()]);
        let table = [
            ("L4-104 we added it", service(), held.clone(), None),
            ("somebody added another", held.clone(), more, None),
            ("L6-101 somebody took it away", held.clone(), service(), Some(Change::FinalizerLost)),
            ("taken away from one that goes", held, going, None),
        ];
        for (case, old, new, want) in table {
            assert_eq!(needs_update(&assignments(), &old, &new, &Written::new()), want, "{case}");
        }
    }

    #[test]
    fn a_service_can_move_to_another_provider() {
        let candidate = |name: &str| Candidate { name: name.to_owned(), ..Candidate::default() };
        let two =
            Assignments::new(vec![candidate(CLOUD), candidate("beta")], Some(CLOUD.to_owned())).unwrap();
        let moved = annotated(service(), PROVIDER_ANNOTATION, "beta");
        assert_eq!(needs_update(&two, &service(), &moved, &Written::new()), Some(Change::Provider));
    }
}
