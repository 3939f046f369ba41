//! Floating IPs, and what two Services claim at once.

use cloudberth_cloudscale::{
    Action, ObservedBalancer, lock_keys,
    wire::{FloatingIp, Stub},
};
use cloudberth_core::{
    ObjectKey,
    lb::{Desired, LockKey, LockKind, Next, Rival},
    view::Ingress,
};

use crate::fixture::*;

fn floating(network: &str, balancer: Option<&str>) -> FloatingIp {
    let stub = |uuid: &str| Stub { uuid: uuid.to_owned() };
    FloatingIp { network: network.to_owned(), load_balancer: balancer.map(stub), server: None }
}

fn with_ips(ips: &[FloatingIp]) -> ObservedBalancer {
    ObservedBalancer { floating_ips: ips.to_vec(), ..built(&plain(&[])) }
}

fn rival(want: &Desired, name: &str, kind: LockKind, value: &str) -> Desired {
    let rival = Rival { service: ObjectKey::new("shop", name), key: LockKey::new(kind, value) };
    Desired { rivals: [want.rivals.clone(), vec![rival]].concat(), ..want.clone() }
}

#[test]
fn floating_ips_are_assigned_last_and_never_taken_away() {
    let other = Some("another");
    let table: [(&str, &str, Vec<FloatingIp>, &[&str]); 9] = [
        (
            "CS-129 two that are free",
            r#"["192.0.2.7/32", "2001:db8::7/128"]"#,
            vec![floating("192.0.2.7/32", None), floating("2001:db8::7/128", None)],
            &["192.0.2.7", "2001:db8::7"],
        ),
        ("CS-135 one that is there", r#"["192.0.2.7/32"]"#, vec![floating("192.0.2.7/32", Some(LB))], &[]),
        (
            "CS-135 in another spelling",
            r#"["192.0.2.7", "2001:DB8:0::7"]"#,
            vec![floating("192.0.2.7/32", Some(LB)), floating("2001:db8::7/128", Some(LB))],
            &[],
        ),
        ("CS-133 one that nobody wants any more", "[]", vec![floating("192.0.2.7/32", Some(LB))], &[]),
        (
            "CS-134 one that another had",
            r#"["192.0.2.7/32"]"#,
            vec![floating("192.0.2.7/32", other)],
            &["192.0.2.7"],
        ),
        (
            "CS-114 host bits make an address",
            r#"["100.1.1.1/24"]"#,
            vec![floating("100.1.1.1/32", None)],
            &["100.1.1.1"],
        ),
        ("CS-114 that is there", r#"["100.1.1.1/24"]"#, vec![floating("100.1.1.1/32", Some(LB))], &[]),
        (
            "a network is only itself",
            r#"["2001:db8::/56"]"#,
            vec![floating("2001:db8::/128", Some(LB)), floating("2001:db8::/56", None)],
            &["2001:db8::"],
        ),
        (
            "the same twice",
            r#"["192.0.2.7/32", "192.0.2.7"]"#,
            vec![floating("192.0.2.7/32", None)],
            &["192.0.2.7"],
        ),
    ];
    for (case, text, ips, assigned) in table {
        let want = plain(&[("floating-ips", text)]);
        let way = settle(&want, look(&want, Some(with_ips(&ips))));
        let addresses: Vec<_> = way
            .acts
            .iter()
            .map(|act| match act {
                Action::AssignFloatingIp { address, balancer, .. } => {
                    assert_eq!(balancer, LB);
                    address.as_str()
                }
                other => panic!("{case}: {other:?}"),
            })
            .collect();
        assert_eq!(addresses, assigned, "{case}");
        assert_eq!(way.refused(), [""; 0], "{case}");
    }
    let fresh = plain(&[("floating-ips", r#"["192.0.2.7/32"]"#)]);
    let way = settle(&fresh, absent(&fresh));
    assert_eq!(way.labels.last().unwrap(), "assign floating IP 192.0.2.7/32", "CS-129 it comes last");
    assert!(!way.last.publish.unwrap().ingress.unwrap().iter().any(|i| i.ip.as_deref() == Some("192.0.2.7")));
}

#[test]
fn a_floating_ip_that_two_want_stays_with_whoever_has_it() {
    let want = annotated(&plain(&[]), "floating-ips", r#"["192.0.2.7/32"]"#);
    let contested = |name: &str, ip: FloatingIp| {
        let want = rival(&want, name, LockKind::Address, "192.0.2.7/32");
        let want = annotated(&want, "timeout-client-data-ms", "9");
        let way = settle(&want, look(&want, Some(with_ips(&[ip]))));
        let refused = way.last.refused.iter().map(ToString::to_string).collect::<Vec<_>>().join(";");
        (way.acts.len() - 1, refused)
    };
    assert_eq!(contested("zzz", floating("192.0.2.7/32", Some(LB))), (0, String::new()), "CS-130 we have it");
    assert_eq!(contested("aaa", floating("192.0.2.7/32", Some(LB))), (0, String::new()), "CS-130 we have it");
    let (acts, why) = contested("zzz", floating("192.0.2.7/32", Some("another")));
    assert_eq!(acts, 0, "CS-130 somebody else has it");
    assert!(
        why.contains("loadbalancer-floating-ips: 192.0.2.7/32 is assigned to another service: shop/zzz"),
        "CS-130 {why}"
    );
    assert_eq!(contested("zzz", floating("192.0.2.7/32", None)).0, 1, "nobody has it: the first by name");
    assert_eq!(contested("aaa", floating("192.0.2.7/32", None)).0, 0, "nobody has it: the first by name");
    let unrelated = rival(&want, "aaa", LockKind::Address, "192.0.2.8/32");
    assert_eq!(settle(&unrelated, look(&unrelated, Some(with_ips(&[])))).acts.len(), 1);
    let doomed = gone(&rival(&want, "aaa", LockKind::Address, "192.0.2.7/32"));
    assert_eq!(settle(&doomed, look(&doomed, Some(with_ips(&[])))).acts.len(), 1, "CS-151");
}

#[test]
fn claims_are_equal_for_equal_things() {
    let of = |annotations: &[(&str, &str)]| -> Vec<String> {
        lock_keys(&service(annotations))
            .iter()
            .map(|claim| format!("{:?} {}", claim.kind, claim.value))
            .collect()
    };
    let name = format!("Name k8s-service-{UID}");
    assert_eq!(of(&[]), [name.as_str()]);
    assert_eq!(of(&[("uuid", &LB.to_uppercase()), ("name", "x")]), ["Name x", &format!("Id {LB}")]);
    assert_eq!(
        of(&[("floating-ips", r#"["192.0.2.7", "2001:DB8::0007/128"]"#)]),
        [name.as_str(), "Address 192.0.2.7/32", "Address 2001:db8::7/128"]
    );
    assert_eq!(
        of(&[("floating-ips", "[broken")]),
        [name.as_str()],
        "CS-131 claims nothing that nobody can read"
    );
    assert_eq!(of(&[("name", "")]), [name.as_str()]);
}

#[test]
fn a_load_balancer_that_two_claim_is_touched_by_its_own_service_only() {
    let default = built(&plain(&[])).balancer.name;
    let shows = |want: &Desired, ip: &str| {
        edited(want, |s| {
            s.ingress = vec![Ingress { ip: Some(ip.to_owned()), ..Ingress::default() }];
        })
    };
    let published = |want: &Desired, ip: &str| rival(want, "copy", LockKind::Published, ip);
    let copied = || rival(&plain(&[("uuid", LB)]), "copy", LockKind::Id, LB);
    let named = || rival(&plain(&[("name", "same")]), "copy", LockKind::Name, "same");
    let recorded = || rival(&plain(&[("name", "same"), ("uuid", LB)]), "copy", LockKind::Name, "same");
    let table = [
        ("L3-201 the name carries our UID", copied(), default.as_str(), true),
        ("L3-202 the name carries another's", copied(), "k8s-service-another", false),
        ("L3-203 a name of both", named(), "same", false),
        ("L3-204 the id is ours alone", recorded(), "same", true),
        ("L3-205 its address is in our status", shows(&copied(), "203.0.113.90"), "same", true),
        ("L3-341 it is in both", published(&shows(&copied(), "203.0.113.90"), "203.0.113.90"), "same", false),
        (
            "the other shows another",
            published(&shows(&copied(), "203.0.113.90"), "203.0.113.7"),
            "same",
            true,
        ),
        ("L3-208 another's address is", shows(&copied(), "203.0.113.91"), "same", false),
        ("L3-206 nobody else claims it", plain(&[("uuid", LB)]), "k8s-service-another", true),
    ];
    for (case, want, name, ours) in table {
        let mut existing = built(&plain(&[]));
        existing.balancer = balancer(LB, name);
        let change = annotated(&want, "timeout-client-data-ms", "9");
        let way = settle(&change, look(&change, Some(existing.clone())));
        assert_eq!((!way.acts.is_empty(), way.refused().is_empty()), (ours, ours), "{case}");
        assert_eq!(way.last.publish.is_some(), ours, "{case}");
        let doomed = gone(&want);
        let way = settle(&doomed, look(&doomed, Some(existing)));
        assert_eq!(way.acts.len(), usize::from(ours), "{case}: nobody deletes another's");
        assert_eq!(way.refused().is_empty(), ours, "{case}: and it is said why");
        assert_eq!(way.last.next, Next::Converged, "{case}: and nobody is kept from going");
    }
    let fresh = named();
    let way = settle(&fresh, absent(&fresh));
    assert_eq!((way.acts.len(), way.refused()), (0, vec!["k8s.cloudscale.ch/loadbalancer-name"]), "L3-207");
}
