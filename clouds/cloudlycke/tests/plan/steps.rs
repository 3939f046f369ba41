//! What is decided, and what it is called.

use cloudberth_cloudlycke::{Action, Observed, decide};
use cloudberth_core::{
    lb::{Goal, Impact, Next},
    net::IpFamily,
    view::{IpFamilyPolicy, ServicePort, ServiceProtocol, SessionAffinity},
};

use crate::fixture::*;

#[test]
fn a_step_says_what_changes_and_what_it_does_to_traffic() {
    let before = present(&want(service(&[], &[80]), &[1, 2]));
    let table = [
        ("CL-34", want(service(&[], &[80, 443]), &[1, 2]), "set ports", Impact::None),
        ("CL-35", want(service(&[], &[443]), &[1, 2]), "set ports", Impact::Minimal),
        ("CL-37", want(service(&[], &[80]), &[1, 2, 3]), "set nodes", Impact::None),
        ("CL-37", want(service(&[], &[80]), &[1]), "set nodes", Impact::Minimal),
        (
            "",
            want(service(&[("policy", "source-hash")], &[80, 81]), &[1, 2]),
            "set ports, the policy",
            Impact::None,
        ),
        (
            "",
            want(service(&[("address-mode", "pool")], &[80]), &[1, 2]),
            "set the address mode",
            Impact::Major,
        ),
    ];
    for (case, wanted, label, impact) in table {
        let observed = Observed { machines: absent(&wanted).machines, ..before.clone() };
        let decision = decide(&wanted, Some(&observed));
        let step = step(&decision);
        assert_eq!(step.label, format!("{label} of load balancer shop/web"), "{case}");
        assert_eq!((step.impact, step.creates), (impact, false), "{case} {label}");
    }
    let same = want(service(&[], &[80]), &[1, 2]);
    assert_eq!(decide(&same, Some(&before)).next, Next::Converged, "CL-33");
    let create = decide(&same, Some(&absent(&same)));
    assert_eq!(
        (step(&create).label.as_str(), step(&create).creates),
        ("create load balancer shop/web", true)
    );
    let gone = cloudberth_core::lb::Desired { goal: Goal::Gone, ..same };
    let delete = decide(&gone, Some(&before));
    assert_eq!(step(&delete).label, "delete load balancer shop/web", "CL-38");
    assert!(matches!(&step(&delete).act, Action::Delete { uid, .. } if uid == "uid-web"), "CL-80");
    assert_eq!(decide(&gone, Some(&Observed::default())).next, Next::Converged, "CL-38");
}

#[test]
fn every_mistake_is_refused_by_its_field() {
    let odd = |ports: Vec<ServicePort>| {
        let mut service = service(&[], &[]);
        service.ports = ports;
        service
    };
    let mut affinity = service(&[], &[80]);
    affinity.session_affinity = SessionAffinity::ClientIp { timeout_seconds: Some(90_000) };
    let mut kind = service(&[], &[80]);
    kind.session_affinity = SessionAffinity::Other("Cookie".to_owned());
    let mut address = service(&[], &[80]);
    address.load_balancer_ip = Some("nowhere".to_owned());
    let mut ranges = service(&[], &[80]);
    ranges.source_ranges = Some(vec!["10.0.0.0/40".to_owned()]);
    let mut families = service(&[], &[80]);
    families.ip_family_policy = Some(IpFamilyPolicy::Other("Both".to_owned()));
    let no_node_port = ServicePort { port: 80, ..ServicePort::default() };
    let table = [
        ("CL-45", odd(vec![port(ServiceProtocol::Sctp, 80)]), "spec.ports", "SCTP"),
        ("CL-46", odd(vec![no_node_port]), "spec.ports", "no node port"),
        ("no ports", odd(vec![]), "spec.ports", "none"),
        ("CL-42", address, "spec.loadBalancerIP", "nowhere"),
        ("", affinity, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", "90000"),
        ("", kind, "spec.sessionAffinity", "Cookie"),
        ("", ranges, "spec.loadBalancerSourceRanges", "10.0.0.0/40"),
        ("", families, "spec.ipFamilyPolicy", "Both"),
        ("CL-49", service(&[("policy", "random")], &[80]), &format!("{PREFIX}policy"), "random"),
        (
            "http without a port",
            service(&[("healthcheck-protocol", "http")], &[80]),
            &format!("{PREFIX}healthcheck-protocol"),
            "healthcheck-port",
        ),
    ];
    for (case, service, field, words) in table {
        let want = want(service, &[1]);
        let refused = decide(&want, Some(&absent(&want))).refused;
        assert_eq!(refused.len(), 1, "{case} {refused:?}");
        assert_eq!(refused[0].field, field, "{case}");
        assert!(refused[0].message.contains(words), "{case} {refused:?}");
    }
    let two = want(service(&[("policy", "x"), ("idle-timeout", "y")], &[80]), &[1]);
    assert_eq!(decide(&two, Some(&absent(&two))).refused.len(), 2, "CL-49 all at once");
}

#[test]
fn a_service_that_prefers_both_families_is_content_with_the_one_it_has() {
    let mut dual = service(&[], &[80]);
    dual.ip_families = vec![IpFamily::V4, IpFamily::V6];
    dual.ip_family_policy = Some(IpFamilyPolicy::RequireDualStack);
    let required = want(dual.clone(), &[1]);
    assert_eq!(spec_of(&required).families, ["IPv4", "IPv6"], "CL-68");
    dual.ip_family_policy = Some(IpFamilyPolicy::PreferDualStack);
    let preferred = want(dual, &[1]);
    let mut spec = spec_of(&preferred);
    assert_eq!(spec.families, ["IPv4", "IPv6"], "CL-68 both are tried");
    spec.families = vec!["IPv4".to_owned()];
    let observed = Observed { existing: Some(served(spec)), ..absent(&preferred) };
    assert_eq!(decide(&preferred, Some(&observed)).next, Next::Converged);
    let decision = decide(&required, Some(&observed));
    assert!(step(&decision).label.contains("the IP families"));
}

#[test]
fn nobody_is_removed_while_a_machine_is_not_known() {
    let wanted = want(service(&[], &[80]), &[1]);
    let mut observed = present(&want(service(&[], &[80]), &[1, 2]));
    observed.machines = absent(&wanted).machines;
    observed.machines.unknown = vec![("node-2".to_owned(), "internal is missing".to_owned())];
    let decision = decide(&wanted, Some(&observed));
    assert!(matches!(decision.next, Next::Wait { .. }), "L5-1801 {:?}", decision.next);
}
