//! The domains of the certificate.

use cloudberth_brightbox::Action;
use cloudberth_core::{Error, Lookup, lb::Next};
use serde_json::json;

use crate::fixture::{
    FQDN, REVERSE, V4, V6, account, annotated, built, decide, ip, notices, read, resolve, secure, service,
    settle, want,
};

#[test]
fn a_domain_that_does_not_lead_here_is_left_out_and_told_of() {
    let domains = "good.example,shop.example";
    let asks = want(secure(&[("ssl-domains", domains)]));
    let table = [
        ("BB-99 BB-100 no such name", Lookup::Absent, "there is no such name"),
        ("BB-99 the resolver's reason", Lookup::Unknown(Error::temporary("SERVFAIL")), "SERVFAIL"),
        ("BB-101 elsewhere", Lookup::Present(vec![ip("192.0.2.1")]), "it leads elsewhere"),
    ];
    for (case, answer, why) in table {
        let mut observed = account(&["srv-aaaaa"]);
        resolve(&mut observed, "good.example", Lookup::Present(vec![ip("192.0.2.7"), ip(V6)]));
        resolve(&mut observed, "shop.example", answer);
        let way = settle(&asks, observed);
        let said = notices(&way.last);
        let fits = |line: &&String| ["shop.example", V4, V6, why].iter().all(|word| line.contains(word));
        assert!(said.iter().any(|line| fits(&line)), "{case}: {said:?}");
        assert!(!said.iter().any(|line| line.contains("good.example")), "{case}");
        let acme: Vec<_> = way
            .observed
            .live()
            .unwrap()
            .acme
            .as_ref()
            .unwrap()
            .domains
            .iter()
            .map(|one| one.identifier.as_str())
            .collect();
        assert_eq!(acme, [REVERSE, FQDN, "good.example"], "{case}: the address is published first");
        assert!(way.last.publish.is_some_and(|publish| publish.ingress.is_some()), "{case}");
        assert!(matches!(way.last.next, Next::Wait { .. }), "{case}: and it is looked for again");
    }
}

#[test]
fn names_of_the_cloud_ip_itself_are_waited_for() {
    let mut observed = account(&["srv-aaaaa"]);
    observed.resolved.clear();
    let way = settle(&want(secure(&[])), observed.clone());
    let Next::Wait { on, .. } = &way.last.next else { panic!("BB-172 {:?}", way.last) };
    assert!(on.contains(FQDN), "BB-172 {on}");
    assert!(
        !way.acts.iter().any(|act| matches!(act, Action::CreateBalancer(_) | Action::AllocateCloudIp { .. })),
        "BB-172 no second allocation"
    );
    let way = settle(&want(service(&[("listener-protocol", "tcp")])), observed.clone());
    assert_eq!(way.last.next, Next::Converged, "BB-104 no name matters to tcp");
    observed.cloud_ips[0].public_ipv4 = Some("fred".to_owned());
    observed.cloud_ips[0].public_ipv6 = None;
    let way = settle(&want(secure(&[])), observed);
    let Next::Wait { on, .. } = &way.last.next else { panic!("BB-102") };
    assert!(on.contains("cip-q4t9z"), "BB-102 {on}");
}

#[test]
fn empty_names_do_not_count_and_a_check_can_be_off() {
    let mut observed = account(&["srv-aaaaa"]);
    observed.cloud_ips[0].reverse_dns = None;
    let way = settle(&want(secure(&[("ssl-domains", " , ")])), observed.clone());
    assert_eq!(way.last.next, Next::Converged, "BB-103 BB-169");
    observed.resolved.clear();
    resolve(&mut observed, FQDN, Lookup::Unknown(Error::permanent("look-ups are off")));
    assert_eq!(settle(&want(secure(&[])), observed).last.next, Next::Converged, "look-ups are off");
}

#[test]
fn certificates_that_pend_are_told_of() {
    let (want, mut observed) = built(&want(secure(&[])), &["srv-aaaaa"]);
    let acme = |first: &str, second: &str| {
        json!({"domains": [
            {"identifier": REVERSE, "status": first, "last_message": "no luck"}, {"identifier": FQDN, "status": second}]})
    };
    let (live, ingress) = (observed.balancers[0].clone(), want.service.ingress.clone());
    for (case, value, waits) in [
        ("BB-142 one invalid", acme("invalid", "invalid"), true),
        ("BB-142 one of two", acme("invalid", "valid"), true),
        ("BB-142 all valid", acme("valid", "valid"), false),
        ("BB-142 the vendor's other word", acme("verified", "valid"), false),
    ] {
        observed.balancers[0] = live.clone();
        observed.balancers[0].acme = read(value);
        let decision = decide(&want, &observed);
        assert_eq!(matches!(decision.next, Next::Wait { .. }), waits, "{case}");
        let said = notices(&decision);
        let named = said
            .iter()
            .any(|line| line.contains(REVERSE) && line.contains("invalid") && line.contains("no luck"));
        assert_eq!(named, waits, "{case}: {said:?}");
        assert_eq!(want.service.ingress, ingress, "{case}: the status was published early");
    }
    let plain = annotated(&want, "listener-protocol", Some("tcp"));
    let way = settle(&plain, observed);
    assert_eq!(way.last.next, Next::Converged, "BB-142 no certificate matters to tcp");
    assert_eq!(
        way.observed.live().unwrap().acme.as_ref().unwrap().domains.len(),
        0,
        "old domains go with https"
    );
}
