//! Names, and what the status shows.

use cloudberth_brightbox::{
    Observed, Switches, balancer_name, decide as decide_with, lock_keys, trimmed, wire::LoadBalancer,
};
use cloudberth_core::{
    ServiceView,
    lb::{Goal, LockKind, Next},
    view::{Ingress, IpMode},
};
use serde_json::json;

use crate::fixture::{
    FQDN, NAME, REVERSE, V4, account, built, cloud_ip, decide, edited, gone, read, service, settle, want,
};

#[test]
fn everything_is_called_after_the_service() {
    let nameless = ServiceView { name: String::new(), namespace: String::new(), ..service(&[]) };
    let want = "a9bde5f3313794b8c877a777f5da4d76.default.test-cluster-name";
    assert_eq!(balancer_name(&nameless, "test-cluster-name"), want, "BB-53");
    assert_eq!(balancer_name(&service(&[]), "prod"), "web.shop.prod", "BB-54");
    for text in [NAME, " web.shop.prod ", "web.shop.prod#type:container", " web.shop.prod #type:container "] {
        assert_eq!(trimmed(text), NAME, "BB-60 {text:?}");
    }
    assert_ne!(trimmed("web.shop.prod#type:containers"), NAME, "BB-60");
}

fn hosts(entries: &[Ingress]) -> Vec<&str> {
    entries.iter().filter_map(|entry| entry.hostname.as_deref()).collect()
}

#[test]
fn the_status_names_the_cloud_ip() {
    let (want, observed) = built(&want(service(&[])), &["srv-aaaaa"]);
    assert_eq!(hosts(&want.service.ingress), [REVERSE, FQDN], "BB-56 BB-136");
    assert_eq!(decide(&want, &observed).publish, None, "L4-1601 nothing to say");
    let shouting = edited(&want, |service| {
        service.ingress[0].hostname = Some(format!("{}.", REVERSE.to_uppercase()));
        let again = service.ingress[1].clone();
        service.ingress.push(again);
    });
    assert_eq!(decide(&shouting, &observed).publish, None, "BB-181 another spelling is left alone");
    let mut nameless = observed.clone();
    nameless.cloud_ips[0].reverse_dns = None;
    let shown = decide(&want, &nameless).publish.unwrap().ingress.unwrap();
    assert_eq!(hosts(&shown), [FQDN], "BB-57 the other name stays");
    nameless.cloud_ips[0].fqdn = Some("not a name".to_owned());
    assert_eq!(decide(&want, &nameless).publish.unwrap().ingress, Some(vec![]), "BB-55 no name, no entry");
    let mut two = observed.clone();
    two.balancers[0].cloud_ips.push(read(json!({"id": "cip-other"})));
    two.cloud_ips.push(cloud_ip("cip-other", "theirs", Some((&two.balancers[0].id.clone(), NAME))));
    assert_eq!(decide(&want, &two).publish, None, "BB-57 BB-175 only the chosen one is named");
    let switches = Switches { publish_addresses: true, ..Switches::default() };
    let shown = decide_with(&want, Some(&observed), switches).publish.unwrap().ingress.unwrap();
    assert_eq!((shown.len(), shown[2].ip.as_deref(), &shown[2].ip_mode), (4, Some(V4), &Some(IpMode::Proxy)));
}

#[test]
fn of_several_the_live_one_counts() {
    let (want, mut observed) = built(&want(service(&[])), &["srv-aaaaa"]);
    let mut leaving: LoadBalancer = observed.balancers[0].clone();
    leaving.id = "lba-old".to_owned();
    leaving.status = read(json!("deleting"));
    leaving.cloud_ips = Vec::new();
    observed.balancers.insert(0, leaving);
    assert_eq!(observed.live().unwrap().id, observed.balancers[1].id, "BB-59");
    assert_eq!(settle(&want, observed).labels, [""; 0], "BB-59");
}

#[test]
fn a_part_that_is_left_is_something() {
    let want = gone(&want(service(&[])));
    let alone = account(&[]);
    let Next::Act(steps) = decide(&want, &alone).next else { panic!("BB-61") };
    assert_eq!(steps.len(), 1, "BB-61 {steps:?}");
    assert!(steps[0].label.starts_with("delete Cloud IP cip-q4t9z"), "BB-61 {steps:?}");
    assert_eq!(decide(&want, &Observed::default()).next, Next::Converged, "BB-143");
    assert_eq!(decide_with(&want, None, Switches::default()).next, Next::Converged, "BB-143 BB-58");
    assert_eq!(want.goal, Goal::Gone);
}

#[test]
fn one_that_is_deleted_and_has_not_let_go_is_waited_for() {
    let mut observed = Observed {
        cloud_ips: vec![cloud_ip("cip-q4t9z", NAME, Some(("lba-gone", NAME)))],
        ..account(&["srv-aaaaa"])
    };
    let decision = decide(&gone(&want(service(&[]))), &observed);
    assert!(
        matches!(&decision.next, Next::Wait { on, .. } if on.contains("lba-gone")),
        "BB-178 {decision:?}"
    );
    let way = settle(&want(service(&[])), observed.clone());
    assert!(
        matches!(&way.last.next, Next::Wait { on, .. } if on.contains("lba-gone")),
        "BB-178 {:?}",
        way.last
    );
    observed.cloud_ips[0].load_balancer = Some(read(json!({"id": "lba-other", "name": "other"})));
    let decision = decide(&gone(&want(service(&[]))), &observed);
    assert_eq!(decision.next, Next::Converged, "L3-1605 what somebody else uses by now is left to them");
}

#[test]
fn a_service_locks_its_name_and_the_cloud_ip_that_it_asks_for() {
    let keys = |service: &ServiceView| -> Vec<_> {
        lock_keys(service, "prod").into_iter().map(|key| (key.kind, key.value)).collect()
    };
    let name = (LockKind::Name, NAME.to_owned());
    assert_eq!(keys(&service(&[])), std::slice::from_ref(&name));
    let by_id = service(&[("cloudip-allocations", "cip-q4t9z")]);
    assert_eq!(keys(&by_id), [name.clone(), (LockKind::Address, "cip-q4t9z".to_owned())]);
    let by_address = ServiceView {
        load_balancer_ip: Some("2A02:1348:ffff:ffff:0:0:cb00:7109".to_owned()),
        ..service(&[])
    };
    assert_eq!(
        keys(&by_address)[1],
        (LockKind::Address, "2a02:1348:ffff:ffff::cb00:7109".to_owned()),
        "BB-111"
    );
}
