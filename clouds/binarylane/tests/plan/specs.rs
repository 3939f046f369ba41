//! What a Service asks for: every field and annotation is carried out or refused.

use cloudberth_binarylane::{Action, Planner, wire::NewBalancer};
use cloudberth_core::{
    ServiceView,
    lb::{LockKey, LockKind, Rival},
    net::IpFamily,
    view::{ExternalTrafficPolicy, IpFamilyPolicy, ObjectKey, ServiceProtocol, SessionAffinity},
};

use crate::fixture::*;

fn created(planner: &Planner, service: ServiceView) -> NewBalancer {
    let want = want(service, [1, 2]);
    let decision = planner.decide(&want, Some(&absent(&want)));
    assert_eq!(refusals(&decision), [""; 0]);
    match steps(&decision).as_slice() {
        [Action::Create(new)] => new.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn ports_become_rules_and_a_check() {
    let table = [
        ("BL-52", &[][..], &[80][..], &["http"][..], "http", "/"),
        ("BL-53", &[], &[443], &["https"], "https", "/"),
        ("BL-54", &[], &[80, 443], &["http", "https"], "both", "/"),
        ("BL-54 the other order", &[], &[443, 80], &["http", "https"], "both", "/"),
        ("BL-59", &[("protocol", "HTTPS")], &[80, 443], &["https"], "https", "/"),
        ("both", &[("protocol", "http, https")], &[80, 443], &["http", "https"], "both", "/"),
        ("BL-62", &[("health-check-path", "/health")], &[80], &["http"], "http", "/health"),
        ("BL-62", &[("healthcheck-path", "/health")], &[80], &["http"], "http", "/health"),
        ("one rule takes any check", &[("health-check-protocol", "Both")], &[80], &["http"], "both", "/"),
        ("the old spelling", &[("healthcheck-protocol", "https")], &[80], &["http"], "https", "/"),
        ("empty is not set", &[("protocol", ""), ("health-check-path", "")], &[80], &["http"], "http", "/"),
    ];
    for (case, annotations, ports, words, protocol, path) in table {
        let new = created(&planner(), service(annotations, ports));
        assert_eq!(new.forwarding_rules, rules(words), "{case}");
        assert_eq!(new.health_check, check(protocol, path), "{case}");
        assert_eq!(
            (new.name.as_str(), new.server_ids.as_slice()),
            ("k8s-prod-shop-web", &[1, 2][..]),
            "{case}"
        );
    }
    let planner = Planner { health_check_path: "/up".to_owned(), ..planner() };
    assert_eq!(created(&planner, service(&[], &[80])).health_check.path, "/up");
}

#[test]
fn two_spellings_that_differ_are_reported_and_the_first_counts() {
    let both = [("health-check-path", "/new"), ("healthcheck-path", "/old")];
    let want = want(service(&both, &[80]), [1]);
    let decision = planner().decide(&want, Some(&absent(&want)));
    assert_eq!(reasons(&decision), ["ConflictingAnnotations"], "BL-62");
    assert!(
        matches!(&steps(&decision)[..], [Action::Create(new)] if new.health_check.path == "/new"),
        "BL-62"
    );
}

#[test]
fn a_port_that_is_left_out_is_mentioned() {
    let want = want(service(&[("protocol", "https")], &[80, 443]), [1]);
    let decision = planner().decide(&want, Some(&absent(&want)));
    assert_eq!(reasons(&decision), ["PortNotForwarded"], "BL-59");
    assert!(decision.notices[0].message.contains("port 80"), "BL-59 {:?}", decision.notices);
}

type Edit = fn(&mut ServiceView);

/// A case, annotations, an edit, the reason, and words of the message.
type Refused =
    (&'static str, &'static [(&'static str, &'static str)], Edit, &'static str, &'static [&'static str]);

#[test]
#[allow(clippy::too_many_lines, reason = "it is one table")]
fn what_cannot_be_done_is_refused_with_what_is_possible() {
    let table: [Refused; 18] = [
        (
            "BL-55",
            &[],
            |s| s.ports = tcp(&[8080]),
            "UnsupportedServicePort",
            &["spec.ports", "8080/TCP", "TCP 80", "TCP 443"],
        ),
        (
            "BL-56",
            &[],
            |s| s.ports = tcp(&[80, 8080]),
            "UnsupportedServicePort",
            &["spec.ports: 8080/TCP cannot"],
        ),
        (
            "BL-57",
            &[],
            |s| s.ports = vec![port(ServiceProtocol::Udp, 443)],
            "UnsupportedServicePort",
            &["443/UDP"],
        ),
        ("no ports", &[], |s| s.ports.clear(), "UnsupportedServicePort", &["at least one of 80 and 443"]),
        (
            "BL-58",
            &[],
            |s| s.ip_families = vec![IpFamily::V6],
            "UnsupportedIPFamily",
            &["spec.ipFamilies", "IPv4 only"],
        ),
        (
            "L8-1600",
            &[],
            |s| s.ip_family_policy = Some(IpFamilyPolicy::RequireDualStack),
            "UnsupportedIPFamily",
            &["spec.ipFamilyPolicy", "RequireDualStack"],
        ),
        (
            "BL-135",
            &[],
            |s| s.session_affinity = SessionAffinity::ClientIp { timeout_seconds: Some(10_800) },
            "UnsupportedSessionAffinity",
            &["spec.sessionAffinity", "ClientIP", "60 s"],
        ),
        (
            "L8-1601",
            &[],
            |s| s.session_affinity = SessionAffinity::Other("Cookie".to_owned()),
            "UnsupportedSessionAffinity",
            &["Cookie"],
        ),
        (
            "BL-84",
            &[],
            |s| s.load_balancer_ip = Some("192.0.2.7".to_owned()),
            "UnsupportedLoadBalancerIP",
            &["spec.loadBalancerIP", "192.0.2.7"],
        ),
        (
            "L8-1602",
            &[],
            |s| s.external_traffic_policy = ExternalTrafficPolicy::Other("Odd".to_owned()),
            "UnsupportedField",
            &["spec.externalTrafficPolicy", "Odd"],
        ),
        (
            "BL-60",
            &[("protocol", "https")],
            |_| {},
            "InvalidAnnotation",
            &["-protocol", "https needs port 443"],
        ),
        ("BL-61", &[("protocol", "tcp")], |_| {}, "InvalidAnnotation", &["\"tcp\"", "http", "https"]),
        (
            "BL-63",
            &[("health-check-path", "health")],
            |_| {},
            "InvalidAnnotation",
            &["health-check-path", "\"health\""],
        ),
        (
            "BL-63",
            &[("healthcheck-path", "/a b")],
            |_| {},
            "InvalidAnnotation",
            &["healthcheck-path", "/a b"],
        ),
        (
            "BL-64",
            &[("health-check-protocol", "http")],
            |s| s.ports = tcp(&[80, 443]),
            "InvalidAnnotation",
            &["health-check-protocol", "has to be both"],
        ),
        (
            "a check",
            &[("health-check-protocol", "ping")],
            |_| {},
            "InvalidAnnotation",
            &["one of http, https, both"],
        ),
        ("a region", &[("region", "not a slug")], |_| {}, "InvalidAnnotation", &["-region"]),
        (
            "BL-137",
            &[],
            |s| {
                s.ports = vec![port(ServiceProtocol::Tcp, 8080), port(ServiceProtocol::Udp, 53)];
                s.session_affinity = SessionAffinity::ClientIp { timeout_seconds: None };
            },
            "UnsupportedServicePort",
            &["8080/TCP, 53/UDP", "sessionAffinity: ClientIP"],
        ),
    ];
    for (case, annotations, edit, reason, words) in table {
        let mut service = service(annotations, &[80]);
        edit(&mut service);
        let want = want(service, [1]);
        // Nothing is known yet, and the cloud is not asked.
        let screened = planner().decide(&want, None);
        let said = refusals(&screened).join("; ");
        assert!(said.starts_with(reason), "{case}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{case}: {words:?} in {said}");
        assert_eq!(refusals(&planner().decide(&want, Some(&absent(&want)))), refusals(&screened), "{case}");
    }
}

#[test]
fn what_a_cloud_need_not_do_is_accepted() {
    let table: [(&str, Edit, &[&str]); 6] = [
        ("None", |s| s.session_affinity = SessionAffinity::None, &[]),
        ("no node ports", |s| s.allocate_node_ports = Some(false), &[]),
        ("kube-proxy does that", |s| s.source_ranges = Some(vec!["10.0.0.0/8".to_owned()]), &[]),
        ("Local", |s| s.external_traffic_policy = ExternalTrafficPolicy::Local, &[]),
        (
            "L8-1603 a wish for both",
            |s| {
                s.ip_family_policy = Some(IpFamilyPolicy::PreferDualStack);
                s.ip_families = vec![IpFamily::V4, IpFamily::V6];
            },
            &["OnlyOneIPFamily"],
        ),
        (
            "L8-1603 that is granted",
            |s| {
                s.ip_family_policy = Some(IpFamilyPolicy::PreferDualStack);
                s.ip_families = vec![IpFamily::V4];
            },
            &[],
        ),
    ];
    for (case, edit, notices) in table {
        let mut service = service(&[], &[80]);
        edit(&mut service);
        let want = want(service, [1]);
        let decision = planner().decide(&want, Some(&absent(&want)));
        assert_eq!(refusals(&decision), [""; 0], "{case}");
        assert_eq!(reasons(&decision), notices, "{case}");
    }
}

#[test]
fn a_region_is_the_annotations_or_the_settings_or_none() {
    let bne = Planner { region: Some("bne".to_owned()), ..planner() };
    let table = [
        ("BL-69", &bne, &[][..], Some("bne")),
        ("BL-69", &planner(), &[], None),
        ("the annotation", &bne, &[("region", "syd")], Some("syd")),
        ("anycast", &bne, &[("region", "anycast")], None),
    ];
    for (case, planner, annotations, want) in table {
        let new = created(planner, service(annotations, &[80]));
        assert_eq!(new.region.as_deref(), want, "{case}");
        let body = serde_json::to_value(&new).unwrap();
        assert_eq!(body.get("region").is_some(), want.is_some(), "{case}: {body}");
    }
}

#[test]
fn nodes_elsewhere_are_left_out() {
    let bne = Planner { region: Some("bne".to_owned()), vpc: Some(4021), ..planner() };
    let want = want(service(&[], &[80]), [1, 2, 3]);
    let mut observed = absent(&want);
    observed.servers.found[1] = server(2, "syd", Some(4021));
    observed.servers.found[2] = server(3, "bne", None);
    let decision = bne.decide(&want, Some(&observed));
    assert!(matches!(&steps(&decision)[..], [Action::Create(new)] if new.server_ids == [1]), "BL-70");
    assert_eq!(reasons(&decision), ["NodeRegionMismatch", "NodeOutsideVPC"], "BL-70");
    assert!(decision.notices[0].message.contains("node-2"), "BL-70");
    let decision = planner().decide(&want, Some(&observed));
    assert!(
        matches!(&steps(&decision)[..], [Action::Create(new)] if new.server_ids == [1, 2, 3]),
        "anycast takes all"
    );
}

#[test]
fn two_services_of_one_name_get_names_of_their_own() {
    let mut want = want(service(&[], &[80]), [1]);
    let key = LockKey::new(LockKind::Name, "k8s-prod-shop-web");
    assert!(planner().lock_keys(&want.service, "prod").contains(&key), "BL-68");
    want.rivals = vec![Rival { service: ObjectKey::new("shop-web", "x"), key }];
    let decision = planner().decide(&want, Some(&absent(&want)));
    assert!(
        matches!(&steps(&decision)[..], [Action::Create(new)] if new.name == "k8s-prod-shop-web-63bb647e"),
        "BL-68 {decision:?}"
    );
}
