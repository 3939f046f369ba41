//! Which Cloud IP is used, where it leads, and which are given back.

use cloudberth_brightbox::{Action, Observed};
use cloudberth_core::{
    ServiceView,
    lb::{LockKey, LockKind, Next, Rival},
    view::ObjectKey,
};
use serde_json::json;

use crate::fixture::{
    NAME, V4, account, annotated, built, cloud_ip, decide, gone, notices, read, service, settle, want,
};

fn mapped(way: &crate::fixture::Way) -> Vec<String> {
    let map = |act: &Action| match act {
        Action::Map { cloud_ip, .. } => Some(cloud_ip.clone()),
        _ => None,
    };
    way.acts.iter().filter_map(map).collect()
}

fn with(cloud_ips: Vec<cloudberth_brightbox::wire::CloudIp>) -> Observed {
    Observed { cloud_ips, ..account(&["srv-aaaaa"]) }
}

fn by_address(address: &str) -> ServiceView {
    ServiceView { load_balancer_ip: Some(address.to_owned()), ..service(&[]) }
}

#[test]
fn the_first_rule_that_applies_chooses() {
    let (own, other) = (cloud_ip("cip-mine0", NAME, None), cloud_ip("cip-q4t9z", "theirs", None));
    let way = settle(&want(by_address(V4)), with(vec![own.clone(), other.clone()]));
    assert_eq!(mapped(&way), ["cip-q4t9z"], "BB-106 even though another one has the name");
    let long =
        settle(&want(by_address("2a02:1348:ffff:ffff:0000:0000:cb00:7109")), with(vec![other.clone()]));
    assert_eq!(mapped(&long), ["cip-q4t9z"], "BB-111");
    assert!(
        notices(&long.last)
            .iter()
            .any(|line| line.contains("deprecated") && line.contains("cloudip-allocations"))
    );
    for (case, cloud_ips) in [("BB-107", vec![own.clone()]), ("BB-107 none at all", vec![])] {
        let decision = decide(&want(by_address("192.0.2.200")), &with(cloud_ips));
        assert!(decision.refused.iter().any(|refusal| refusal.message.contains("192.0.2.200")), "{case}");
    }
    let way = settle(&want(service(&[])), with(vec![other.clone(), own.clone()]));
    assert_eq!(mapped(&way), ["cip-mine0"], "BB-108");
    let way = settle(&want(service(&[])), with(vec![other.clone()]));
    assert!(
        matches!(&way.acts[0], Action::AllocateCloudIp { name } if name == NAME),
        "BB-109 {:?}",
        way.labels
    );
    let asks = want(service(&[("cloudip-allocations", "cip-q4t9z")]));
    assert_eq!(mapped(&settle(&asks, with(vec![own, other]))), ["cip-q4t9z"], "by annotation");
    let refused = decide(&asks, &with(vec![])).refused;
    assert!(refused[0].message.contains("no Cloud IP cip-q4t9z"), "{refused:?}");
}

#[test]
fn one_that_leads_here_stays_when_nothing_asks_for_it_any_more() {
    let asks = want(service(&[("cloudip-allocations", "cip-given")]));
    let mut start = account(&["srv-aaaaa"]);
    start.cloud_ips = vec![cloud_ip("cip-given", "theirs", None)];
    let way = settle(&asks, start);
    assert_eq!(way.last.next, Next::Converged);
    let id = way.observed.live().unwrap().id.clone();
    let mut observed = crate::fixture::aged(way.observed);
    observed.cloud_ips[0].load_balancer = Some(read(json!({"id": id, "name": NAME})));
    let way = settle(&annotated(&asks, "cloudip-allocations", None), observed.clone());
    assert_eq!(way.labels, [""; 0], "BB-110 BB-173 nothing allocated, mapped, unmapped or deleted");
    assert!(notices(&way.last).iter().any(|line| line.contains("cip-given stays")), "BB-173");
    let way = settle(&gone(&asks), observed);
    assert!(!way.labels.iter().any(|label| label.contains("cip-given")), "BB-147 L5-1601 {:?}", way.labels);
}

#[test]
fn mapping_follows_where_it_leads() {
    let (want, observed) = built(&want(service(&[])), &["srv-aaaaa"]);
    assert_eq!(settle(&want, observed.clone()).labels, [""; 0], "BB-112 BB-113 mapped here");
    let mut elsewhere = observed.clone();
    elsewhere.balancers[0].cloud_ips.clear();
    elsewhere.cloud_ips[0].load_balancer = Some(read(json!({"id": "lba-other", "name": "other"})));
    let decision = decide(&want, &elsewhere);
    assert_eq!(decision.next, Next::Converged, "BB-112 no call");
    assert!(decision.refused[0].message.contains("lba-other"), "BB-112 {:?}", decision.refused);
    let mut server = elsewhere.clone();
    server.cloud_ips[0].load_balancer = None;
    server.cloud_ips[0].server = Some(read(json!({"id": "srv-zzzzz"})));
    assert!(decide(&want, &server).refused[0].message.contains("server srv-zzzzz"), "BB-112");
    let mut free = observed.clone();
    free.balancers[0].cloud_ips.clear();
    free.cloud_ips[0] = cloud_ip("cip-q4t9z", NAME, None);
    assert_eq!(mapped(&settle(&want, free)), ["cip-q4t9z"], "BB-112 BB-116 unmapped");
    let mut twin = observed;
    let mut dead = twin.balancers[0].clone();
    dead.id = "lba-dead".to_owned();
    dead.status = read(json!("failed"));
    dead.cloud_ips = vec![read(json!({"id": "cip-q4t9z"}))];
    twin.balancers[0].cloud_ips.clear();
    twin.balancers.push(dead);
    twin.cloud_ips[0].load_balancer = Some(read(json!({"id": "lba-dead", "name": NAME})));
    let way = settle(&want, twin);
    assert!(matches!(&way.acts[..], [Action::Unmap { .. }, Action::Map { .. }]), "F3 {:?}", way.labels);
}

#[test]
fn others_are_unmapped_and_only_our_own_given_back() {
    let (want, observed) = built(&want(service(&[])), &["srv-aaaaa"]);
    let id = observed.balancers[0].id.clone();
    let mut both = observed.clone();
    both.balancers[0].cloud_ips.push(read(json!({"id": "cip-manua"})));
    both.cloud_ips.push(cloud_ip("cip-manua", "theirs", Some((&id, NAME))));
    let way = settle(&want, both.clone());
    assert!(
        matches!(&way.acts[..], [Action::Unmap { cloud_ip }] if cloud_ip == "cip-manua"),
        "BB-115 {:?}",
        way.labels
    );
    let asks = annotated(&want, "cloudip-allocations", Some("cip-manua"));
    let way = settle(&asks, both.clone());
    let [Action::Unmap { cloud_ip: one }, Action::DeleteCloudIp { cloud_ip: two }] = &way.acts[..] else {
        panic!("BB-114 {:?}", way.labels)
    };
    assert_eq!((one.as_str(), two.as_str()), ("cip-q4t9z", "cip-q4t9z"), "BB-114");
    let mut claimed = both;
    claimed.claimed.insert("cip-q4t9z".to_owned());
    let way = settle(&asks, claimed);
    assert!(
        matches!(&way.acts[..], [Action::Unmap { .. }]),
        "L5-1602 another Service asks for it {:?}",
        way.labels
    );
    let mut spares = observed;
    spares.cloud_ips.extend([cloud_ip("cip-spar1", NAME, None), cloud_ip("cip-spar2", NAME, None)]);
    let way = settle(&want, spares);
    assert_eq!(way.acts.len(), 2, "BB-176 each is tried by itself {:?}", way.labels);
}

#[test]
fn a_cloud_ip_that_a_user_names_is_never_given_back() {
    let asks = want(service(&[("cloudip-allocations", "cip-q4t9z")]));
    let (asks, observed) = built(&asks, &["srv-aaaaa"]);
    assert_eq!(observed.cloud_ips[0].name, NAME);
    let way = settle(&gone(&asks), observed);
    assert!(
        !way.acts.iter().any(|act| matches!(act, Action::DeleteCloudIp { .. })),
        "L5-1603 {:?}",
        way.labels
    );
    assert_eq!(way.last.next, Next::Converged, "L5-1603");
}

#[test]
fn nobody_fights_over_a_cloud_ip() {
    let mut asks = want(service(&[("cloudip-allocations", "cip-q4t9z")]));
    asks.rivals.push(Rival {
        service: ObjectKey::new("shop", "other"),
        key: LockKey::new(LockKind::Address, "cip-q4t9z"),
    });
    let refused = decide(&asks, &account(&["srv-aaaaa"])).refused;
    assert!(refused[0].message.contains("shop/other"), "L3-1601 {refused:?}");
    let (mut kept, observed) = built(&want(service(&[("cloudip-allocations", "cip-q4t9z")])), &["srv-aaaaa"]);
    kept.rivals = asks.rivals;
    assert!(decide(&kept, &observed).refused.is_empty(), "L3-1601 who has it keeps it");
    let mut taken = account(&["srv-aaaaa"]);
    taken.cloud_ips[0] = cloud_ip("cip-q4t9z", "theirs", Some(("lba-other", "other.shop.prod")));
    let refused = decide(&want(by_address(V4)), &taken).refused;
    assert!(
        refused[0].message.contains("other.shop.prod"),
        "L3-1602 by address what another has by id {refused:?}"
    );
}
