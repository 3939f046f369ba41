//! What holds whatever is asked for: it comes to rest, rests, and a crash at any point leads to the same end.

use cloudberth_core::{
    ServiceView,
    lb::{Desired, Next},
    view::ExternalTrafficPolicy,
};

use crate::fixture::{account, aged, built, decide, edited, gone, port, secure, service, settle, walk, want};

/// Many Services that differ in many ways.
fn wishes() -> Vec<Desired> {
    let annotations: [&[(&str, &str)]; 8] = [
        &[],
        &[("listener-protocol", "tcp")],
        &[("policy", "source-address"), ("listener-idle-timeout", "60000")],
        &[("listener-proxy-protocol", "v2"), ("healthcheck-protocol", "tcp")],
        &[("healthcheck-request", "/x"), ("healthcheck-interval", "4000")],
        &[("healthcheck-request", "")],
        &[("listener-protocol", "https")],
        &[("healthcheck-healthy-threshold", "4"), ("healthcheck-unhealthy-threshold", "5")],
    ];
    let mut all = Vec::new();
    for annotations in annotations {
        for secured in [false, true] {
            for local in [false, true] {
                for count in [0, 1, 18] {
                    let mut asks: ServiceView =
                        if secured { secure(annotations) } else { service(annotations) };
                    asks.ports.extend((0..count).map(|at| port(&format!("p{at}"), 2_000 + at, 32_000 + at)));
                    if local {
                        asks.external_traffic_policy = ExternalTrafficPolicy::Local;
                        asks.health_check_node_port = 30_999;
                    }
                    all.push(want(asks));
                }
            }
        }
    }
    all
}

#[test]
fn every_wish_comes_to_rest_and_rests() {
    for asks in wishes() {
        let (want, observed) = built(&asks, &["srv-a", "srv-b"]);
        let decision = decide(&want, &observed);
        assert_eq!(decision.next, Next::Converged, "L4-1604");
        assert_eq!((decision.publish, decision.refused), (None, vec![]), "L4-1604");
        let way = settle(&gone(&want), observed);
        let left = &way.observed;
        assert_eq!(
            (left.balancers.len(), left.groups.len(), left.policies.len(), left.cloud_ips.len()),
            (0, 0, 0, 0),
            "L6-1602"
        );
        assert_eq!(way.acts.len(), 5, "{:?}", way.labels);
    }
}

#[test]
fn a_crash_at_any_step_leads_to_the_same_end() {
    let all = wishes();
    for (at, after) in all.iter().enumerate() {
        let before = &all[(at * 7 + 3) % all.len()];
        let (_, observed) = built(before, &["srv-a", "srv-c"]);
        let mut start = observed;
        start.servers.found = vec!["srv-a".to_owned(), "srv-b".to_owned()];
        let record = |want: &Desired, way: crate::fixture::Way| {
            let recorded = way.last.publish.unwrap_or_default();
            edited(want, |service| service.annotations.extend(recorded.annotations))
        };
        let whole = settle(after, start.clone());
        let end = aged(whole.observed.clone());
        for cut in 0..whole.acts.len() {
            let first = walk(after, start.clone(), cut);
            let seen = aged(first.observed.clone());
            let want = record(after, first);
            let way = settle(&want, seen);
            assert_eq!(way.last.next, Next::Converged, "L6-1603 {:?}", way.labels);
            assert_eq!(aged(way.observed), end, "L6-1603 wish {at} cut at {cut}");
        }
    }
}

#[test]
fn a_crash_during_creation_creates_nothing_twice() {
    for asks in wishes().iter().step_by(5) {
        let mut start = account(&["srv-a"]);
        start.cloud_ips.clear();
        let whole = settle(asks, start.clone());
        for cut in 0..whole.acts.len() {
            let first = walk(asks, start.clone(), cut);
            let way = settle(asks, aged(first.observed));
            assert_eq!(first.acts.len() + way.acts.len(), whole.acts.len(), "L6-1604 {:?}", way.labels);
        }
        let way = settle(&gone(asks), aged(walk(asks, start, 3).observed));
        assert_eq!(
            (way.observed.cloud_ips.len(), way.observed.groups.len(), way.observed.policies.len()),
            (0, 0, 0),
            "BB-149"
        );
    }
}
