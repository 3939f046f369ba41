//! What is written on the Service.

use cloudberth_cloudscale::wire::BalancerStatus;
use cloudberth_core::{
    lb::{Desired, INTENT_ANNOTATION, Next},
    view::{Ingress, IpFamilyPolicy, IpMode},
};

use crate::fixture::*;

fn ip(address: &str, mode: IpMode) -> Ingress {
    Ingress { ip: Some(address.to_owned()), ip_mode: Some(mode), ..Ingress::default() }
}

#[test]
fn the_status_shows_the_addresses_or_the_name() {
    let both = |mode: IpMode| Some(vec![ip("203.0.113.90", mode.clone()), ip("2001:db8:10::90", mode)]);
    let host = Some(vec![Ingress { hostname: Some("lb.example".to_owned()), ..Ingress::default() }]);
    let table = [
        ("CS-123", &[][..], both(IpMode::Proxy), 0),
        ("CS-124", &[("ip-mode", "VIP")], both(IpMode::Vip), 0),
        ("CS-126", &[("ip-mode", "proxy")], None, 1),
        ("CS-127", &[("force-hostname", "lb.example"), ("ip-mode", "proxy")], host, 0),
        ("an empty name is none", &[("force-hostname", "")], both(IpMode::Proxy), 0),
    ];
    let mut existing = built(&plain(&[]));
    existing.balancer = balancer(LB, &existing.balancer.name);
    for (case, annotations, ingress, refused) in table {
        let want = plain(annotations);
        let decision = decide(&want, &look(&want, Some(existing.clone())));
        assert_eq!(decision.next, Next::Converged, "{case}");
        assert_eq!(decision.publish.unwrap().ingress, ingress, "{case}");
        assert_eq!(decision.refused.len(), refused, "{case}");
    }
}

#[test]
fn the_id_is_recorded_at_once_and_the_address_when_the_ports_are_open() {
    let want = plain(&[]);
    let mut observed = walk(&want, absent(&want), 1).observed;
    if let Some(existing) = &mut observed.existing {
        existing.balancer = balancer(LB, &existing.balancer.name);
        existing.balancer.status = BalancerStatus::Changing;
    }
    let decision = decide(&want, &observed);
    assert!(matches!(decision.next, Next::Wait { .. }));
    let publish = decision.publish.unwrap();
    assert_eq!(publish.ingress, None, "nobody is sent to closed ports");
    assert_eq!(
        strings(&publish.annotations),
        [
            ("cloudberth.dev/cloudscale-created", LB),
            ("k8s.cloudscale.ch/loadbalancer-config-version", "1"),
            ("k8s.cloudscale.ch/loadbalancer-uuid", LB),
            ("k8s.cloudscale.ch/loadbalancer-zone", "lpg1"),
        ],
        "CS-48 CS-136"
    );
    if let Some(existing) = &mut observed.existing {
        existing.balancer.status = BalancerStatus::Settled;
    }
    for done in 0..4 {
        assert_eq!(
            decide(&want, &walk(&want, observed.clone(), done).observed).publish.unwrap().ingress,
            None,
            "{done}"
        );
    }
    let open = walk(&want, observed, 4);
    assert_eq!(decide(&want, &open.observed).publish.unwrap().ingress.unwrap().len(), 2, "CS-136");
}

#[test]
fn what_was_recorded_wrong_is_corrected() {
    let want = plain(&[("config-version", "7"), ("uuid", "00000000-0000-4000-8000-000000000000")]);
    let way = settle(&want, look(&want, Some(built(&plain(&[])))));
    let annotations = way.last.publish.unwrap().annotations;
    assert_eq!(annotations[&format!("{PREFIX}config-version")], "1", "CS-56");
    assert_eq!(annotations[&format!("{PREFIX}uuid")], LB, "CS-48");
}

fn with_ranges(annotations: &[(&str, &str)], ranges: &[&str]) -> Desired {
    let ranges = ranges.iter().map(|text| (*text).to_owned()).collect();
    edited(&plain(annotations), |service| service.source_ranges = Some(ranges))
}

#[test]
fn source_ranges_are_carried_out_on_load_balancers_that_we_created() {
    let created = [("cloudberth.dev/cloudscale-created", LB), ("uuid", LB)];
    let before = built(&plain(&[]));
    let cidrs = |want: &Desired, existing| {
        let way = settle(want, look(want, existing));
        let list = way.existing().pools[0].listeners[0].allowed_cidrs.clone();
        (list, way.refused().len(), way.warned().len())
    };
    let text = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let ranges = with_ranges(&[], &["10.0.0.0/8", "192.0.2.1/32"]);
    assert_eq!(cidrs(&ranges, None), (text(&["10.0.0.0/8", "192.0.2.1/32"]), 0, 0), "L8-210 a new one");
    let ours = with_ranges(&created, &["10.0.0.0/8"]);
    assert_eq!(cidrs(&ours, Some(before.clone())), (text(&["10.0.0.0/8"]), 0, 0), "L8-211 one of ours");
    let adopted = with_ranges(&[("uuid", LB)], &["10.0.0.0/8"]);
    assert_eq!(cidrs(&adopted, Some(before.clone())), (text(&[]), 0, 1), "L8-212 one that was there before");
    let way = settle(&adopted, look(&adopted, Some(before.clone())));
    assert!(
        way.last.notices[0].message.contains("loadbalancer-listener-allowed-cidrs"),
        "L8-212 {:?}",
        way.last.notices
    );
    let anothers = with_ranges(&[("cloudberth.dev/cloudscale-created", "x"), ("uuid", LB)], &["10.0.0.0/8"]);
    assert_eq!(cidrs(&anothers, Some(before.clone())).2, 1, "L8-213 the mark is of another one");
    let annotation = ("listener-allowed-cidrs", "[\"10.0.0.0/8\"]");
    assert_eq!(
        cidrs(&with_ranges(&[annotation], &["10.0.0.0/8"]), None),
        (text(&["10.0.0.0/8"]), 0, 0),
        "they agree"
    );
    let differ = with_ranges(&[annotation, created[0], created[1]], &["192.0.2.0/24"]);
    assert_eq!(
        cidrs(&differ, Some(before.clone())),
        (text(&["10.0.0.0/8"]), 1, 0),
        "L8-214 the annotation counts"
    );
    let wrong = with_ranges(&created, &["nonsense"]);
    let filtered = built(&with_ranges(&[], &["10.0.0.0/8"]));
    assert_eq!(
        cidrs(&wrong, Some(filtered)),
        (text(&["10.0.0.0/8"]), 1, 0),
        "L8-215 a mistake opens no door"
    );
    let mut half_built = built(&plain(&[]));
    half_built.pools.iter_mut().for_each(|pool| pool.listeners.clear());
    for wrong in
        [wrong, with_ranges(&[("listener-allowed-cidrs", "[\"nonsense\"]"), created[0], created[1]], &[])]
    {
        let way = settle(&wrong, look(&wrong, Some(half_built.clone())));
        let open = way
            .observed
            .existing
            .iter()
            .flat_map(|existing| &existing.pools)
            .any(|pool| !pool.listeners.is_empty());
        assert!(
            !open && way.last.refused.len() == 1,
            "L8-216 nor one that is not open yet: {:?}",
            way.last.refused
        );
    }
    assert_eq!(cidrs(&with_ranges(&created, &[]), Some(before)), (text(&[]), 0, 0), "nothing is said");
}

#[test]
fn a_creation_whose_answer_was_lost_is_still_ours() {
    let before = built(&plain(&[]));
    let mark = |annotations: &[(&str, &str)], name: &str| {
        let want = plain(annotations);
        let mut existing = before.clone();
        existing.balancer.name = name.to_owned();
        let publish = decide(&want, &look(&want, Some(existing))).publish.unwrap();
        publish.annotations.contains_key("cloudberth.dev/cloudscale-created")
    };
    let default = format!("k8s-service-{UID}");
    let intent = (INTENT_ANNOTATION, "2026-01-01T00:00:00Z");
    assert!(mark(&[intent], &default), "L6-201");
    assert!(!mark(&[], &default), "L6-202 nobody meant to create it");
    assert!(!mark(&[intent, ("uuid", LB)], &default), "L6-203 it was known before");
    assert!(!mark(&[intent, ("name", "mine")], "mine"), "L6-204 anybody may have called it that");
}

#[test]
fn one_family_where_two_are_required_is_said() {
    let want = edited(&plain(&[]), |s| s.ip_family_policy = Some(IpFamilyPolicy::RequireDualStack));
    let mut existing = built(&plain(&[]));
    existing.balancer = balancer(LB, &existing.balancer.name);
    assert_eq!(settle(&want, look(&want, Some(existing.clone()))).warned(), [""; 0]);
    existing.balancer.vip_addresses.pop();
    assert_eq!(settle(&want, look(&want, Some(existing))).warned(), ["ImmutableField"]);
}
