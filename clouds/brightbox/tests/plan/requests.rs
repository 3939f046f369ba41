//! The load balancer that is built.

use cloudberth_core::{ServiceView, view::ExternalTrafficPolicy};
use serde_json::json;

use crate::fixture::{FQDN, NAME, REVERSE, created, port, secure, service, want};

#[test]
fn a_secure_service_with_everything() {
    let asks = ServiceView {
        health_check_node_port: 8_080,
        ..secure(&[("listener-idle-timeout", "86400000"), ("policy", "round-robin")])
    };
    let body = json!({
        "name": NAME, "nodes": [{"node": "srv-k7m2q"}, {"node": "srv-p03xd"}], "policy": "round-robin",
        "listeners": [
            {"protocol": "https", "in": 443, "out": 31347, "timeout": 86_400_000},
            {"protocol": "http", "in": 80, "out": 31348, "timeout": 86_400_000}],
        "healthcheck": {"type": "http", "port": 31347, "request": "/healthz"},
        "domains": [REVERSE, FQDN], "https_redirect": true,
    });
    assert_eq!(created(asks, &["srv-k7m2q", "srv-p03xd"]), body, "BB-88 BB-159");
    let repeated = format!("{FQDN},{REVERSE}");
    let new = created(
        secure(&[("listener-proxy-protocol", "v2-ssl-cn"), ("ssl-domains", &repeated)]),
        &["srv-k7m2q"],
    );
    assert_eq!(new["domains"], json!([REVERSE, FQDN]), "BB-89");
    for at in [0, 1] {
        assert_eq!(new["listeners"][at]["proxy_protocol"], "v2-ssl-cn", "BB-89");
    }
}

#[test]
fn ports_speak_what_is_asked_for() {
    let protocols = |service| {
        let new = created(service, &["srv-k7m2q"]);
        let listeners = new["listeners"].as_array().unwrap().clone();
        (
            listeners.iter().map(|one| one["protocol"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
            new["https_redirect"] == true,
        )
    };
    let four = |annotations: &[(&str, &str)]| {
        let mut service = secure(annotations);
        service.ports.extend([port("fancy", 5_050, 31_349), port("charm", 3_030, 31_350)]);
        service
    };
    let all = |annotations: &[(&str, &str)]| protocols(four(annotations)).0.join(" ");
    assert_eq!(all(&[("ssl-ports", "fancy,3030"), ("ssl-domains", FQDN)]), "https http https https", "BB-90");
    assert_eq!(all(&[("ssl-ports", "443, 3030"), ("ssl-domains", FQDN)]), "https http http http", "BB-185");
    assert_eq!(all(&[("ssl-ports", "*"), ("ssl-domains", FQDN)]), "https http http http", "BB-97 BB-185");
    assert_eq!(all(&[("listener-protocol", "tcp")]), "tcp tcp tcp tcp");
    let only =
        ServiceView { ports: vec![port("", 8_443, 31_347)], ..service(&[("listener-protocol", "https")]) };
    assert_eq!(protocols(only), (vec!["https".to_owned()], true), "BB-98");
}

#[test]
fn health_checks_follow_the_listeners_and_the_policy() {
    let check = |service: ServiceView| created(service, &["srv-k7m2q"])["healthcheck"].clone();
    let new = created(service(&[("listener-protocol", "tcp")]), &["srv-k7m2q"]);
    assert_eq!(new["healthcheck"], json!({"type": "tcp", "port": 31348, "request": "/"}), "BB-91");
    assert_eq!((new.get("domains"), &new["https_redirect"]), (None, &json!(false)), "BB-91");
    assert_eq!(new["listeners"], json!([{"protocol": "tcp", "in": 80, "out": 31348}]), "BB-91 BB-159");
    let timed = [
        ("listener-protocol", "tcp"),
        ("healthcheck-protocol", "http"),
        ("healthcheck-interval", "4000"),
        ("healthcheck-timeout", "6000"),
        ("healthcheck-healthy-threshold", "4"),
        ("healthcheck-unhealthy-threshold", "5"),
    ];
    let body = json!({"type": "http", "port": 31347, "request": "/healthz", "interval": 4000, "timeout": 6000,
                      "threshold_up": 4, "threshold_down": 5});
    assert_eq!(check(secure(&timed)), body, "BB-92");
    let local = |annotations: &[(&str, &str)]| ServiceView {
        external_traffic_policy: ExternalTrafficPolicy::Local,
        health_check_node_port: 8_080,
        ..service(annotations)
    };
    assert_eq!(check(local(&[])), json!({"type": "http", "port": 8080, "request": "/healthz"}), "BB-93");
    let tcp = json!({"type": "tcp", "port": 8080, "request": "/"});
    assert_eq!(check(local(&[("healthcheck-protocol", "tcp")])), tcp, "BB-94");
    let path = json!({"type": "http", "port": 8080, "request": "/different/path"});
    assert_eq!(check(local(&[("healthcheck-request", "/different/path")])), path, "BB-96");
    assert_eq!(
        check(service(&[("healthcheck-request", "")])),
        json!({"type": "http", "port": 31348}),
        "BB-171"
    );
}

#[test]
fn without_ports_and_nodes_little_is_asked_for() {
    use cloudberth_brightbox::{Action, Switches, decide};
    use cloudberth_core::lb::Next;

    let empty = want(ServiceView { ports: Vec::new(), ..service(&[]) });
    let Next::Act(steps) = decide(&empty, None, Switches::default()).next else { panic!("BB-95") };
    let Action::CreateBalancer(new) = &steps[0].act else { panic!("BB-95 {steps:?}") };
    let body = json!({"name": NAME, "healthcheck": {"type": "http", "port": 80, "request": "/healthz"}, "https_redirect": false});
    assert_eq!(json!(new), body, "BB-95 BB-63 and it is refused");
}
