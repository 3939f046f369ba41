//! What holds for every Service, every node set and every state of the cloud.
//!
//! [`walk`] carries each step out in a cloud that insists on its rules, and watches that no pool is emptied.

use std::collections::BTreeSet;

use cloudberth_cloudscale::{Action, Observed, ObservedBalancer, ObservedPool};
use cloudberth_core::{
    lb::{Desired, Next},
    view::{ExternalTrafficPolicy, ServicePort},
};
use proptest::{prelude::*, sample::subsequence};

use crate::fixture::*;

/// A state in a form in which equal states are equal, whatever the ids and the order.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    name: String,
    pools: BTreeSet<[String; 6]>,
}

fn shape(existing: &ObservedBalancer, details: bool) -> Shape {
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list.join(", ")
    };
    let pool = |observed: &ObservedPool| {
        let members = observed.members.iter().map(|m| {
            format!(
                "{} {} {} {:?} {:?} {}",
                m.name, m.address, m.protocol_port, m.monitor_port, m.subnet, m.enabled
            )
        });
        let listeners = observed.listeners.iter().map(|l| {
            let cidrs: BTreeSet<_> = l.allowed_cidrs.iter().collect();
            let times = [l.timeout_client_data_ms, l.timeout_member_connect_ms, l.timeout_member_data_ms];
            format!("{} {} {} {cidrs:?} {times:?}", l.name, l.protocol, l.protocol_port)
        });
        let monitors = observed.monitors.iter().map(|m| {
            let numbers = [m.delay_s, m.timeout_s, m.up_threshold, m.down_threshold];
            let http = m.http.as_ref().filter(|_| details);
            format!("{} {numbers:?} {http:?}", m.kind)
        });
        [
            observed.pool.name.clone(),
            observed.pool.algorithm.clone(),
            observed.pool.protocol.clone(),
            sorted(members.collect()),
            sorted(listeners.collect()),
            sorted(monitors.collect()),
        ]
    };
    Shape { name: existing.balancer.name.clone(), pools: existing.pools.iter().map(pool).collect() }
}

fn ids(existing: &ObservedBalancer) -> Vec<String> {
    let mut ids = vec![existing.balancer.uuid.clone()];
    for pool in &existing.pools {
        ids.push(pool.pool.uuid.clone());
        ids.extend(pool.members.iter().map(|member| member.uuid.clone()));
        ids.extend(pool.listeners.iter().map(|listener| listener.uuid.clone()));
        ids.extend(pool.monitors.iter().map(|monitor| monitor.uuid.clone()));
    }
    ids
}

/// Whether the details of HTTP checks follow from the wish alone.
fn detailed(want: &Desired) -> bool {
    let details = want.service.annotations.get(&format!("{PREFIX}health-monitor-http"));
    details.is_some() || want.service.external_traffic_policy == ExternalTrafficPolicy::Local
}

fn some_ports() -> impl Strategy<Value = Vec<ServicePort>> {
    let outer = subsequence(vec![80, 81, 82, 443], 1..=3).prop_shuffle();
    (
        outer,
        subsequence(vec![30080, 30081, 30082, 30443], 3).prop_shuffle(),
        any::<[bool; 3]>(),
        any::<bool>(),
    )
        .prop_map(|(outer, inner, is_udp, named)| {
            let alone = outer.len() == 1 && !named;
            let port = |(at, (outer, inner)): (usize, (i64, i64))| {
                let name = if alone { String::new() } else { format!("p{at}") };
                if is_udp[at] { udp(&name, outer, inner) } else { tcp(&name, outer, inner) }
            };
            outer.into_iter().zip(inner).enumerate().map(port).collect()
        })
}

fn some_annotations() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let choices = vec![
        ("pool-algorithm", "source_ip"),
        ("pool-protocol", "proxyv2"),
        ("listener-allowed-cidrs", r#"["10.0.0.0/8", "192.0.2.0/24"]"#),
        ("timeout-client-data-ms", "7"),
        ("timeout-member-data-ms", "8"),
        ("health-monitor-type", "http"),
        ("health-monitor-http", r#"{"url_path": "/x", "host": "h"}"#),
        ("health-monitor-delay-s", "9"),
        ("health-monitor-down-threshold", "4"),
        ("floating-ips", r#"["192.0.2.7/32"]"#),
        ("name", "a-name"),
        ("force-hostname", "lb.example"),
    ];
    subsequence(choices, 0..=6)
}

fn some_want() -> impl Strategy<Value = Desired> {
    let numbers = subsequence((1..=6).collect::<Vec<usize>>(), 1..=5);
    (some_annotations(), some_ports(), numbers, any::<bool>()).prop_map(
        |(annotations, ports, numbers, local)| {
            let mut service = service(&annotations);
            service.ports = ports;
            if local {
                service.external_traffic_policy = ExternalTrafficPolicy::Local;
                service.health_check_node_port = 32_000;
            }
            want(service, nodes(numbers))
        },
    )
}

/// One thing out of place.
fn disturb(existing: &mut ObservedBalancer, kind: u8, at: usize) {
    let pools = existing.pools.len();
    if pools == 0 {
        return;
    }
    let pool = &mut existing.pools[at % pools];
    let members = pool.members.len().max(1);
    match kind % 9 {
        0 => pool.members.clear(),
        1 => pool.listeners.clear(),
        2 => pool.monitors.clear(),
        3 => drop(existing.pools.remove(at % pools)),
        4 => pool.members.iter_mut().skip(at % members).take(1).for_each(|m| m.enabled = false),
        5 => pool.listeners.iter_mut().for_each(|l| l.allowed_cidrs = vec!["203.0.113.0/24".to_owned()]),
        6 => pool.monitors.iter_mut().for_each(|m| "ping".clone_into(&mut m.kind)),
        7 => "least_connections".clone_into(&mut pool.pool.algorithm),
        _ => existing.balancer.name.push('x'),
    }
}

/// Half as many cases as usual (`PROPTEST_CASES`), because each is a whole life.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.div_ceil(2), failure_persistence: None, ..usual }
}

fn at_rest(want: &Desired, observed: &Observed) {
    let decision = decide(want, observed);
    assert_eq!(decision.next, Next::Converged);
    assert_eq!(decide(want, observed), decision, "the same question has the same answer");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_wish_comes_to_rest_and_rests(want in some_want()) {
        let way = settle(&want, absent(&want));
        prop_assert!(way.refused().is_empty());
        at_rest(&want, &way.observed);
        at_rest(&want, &look(&want, Some(aged(way.existing()))));
        let ids = ids(&way.existing());
        prop_assert!(ids.iter().all(|id| !id.is_empty()), "what is assumed has an id");
        prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "each its own");
        let ports = want.service.ports.len();
        let members = ports * want.backends.len();
        let floating = want.service.annotations.contains_key(&format!("{PREFIX}floating-ips"));
        prop_assert_eq!(way.acts.len(), 1 + 3 * ports + members + usize::from(floating), "no step is wasted");
    }

    #[test]
    fn a_crash_at_any_point_leads_to_the_same_end(before in some_want(), after in some_want(), at in 0_usize..80) {
        let end = shape(&built(&after), detailed(&after));
        let start = look(&after, Some(built(&before)));
        let whole = settle(&after, start.clone());
        prop_assert_eq!(shape(&whole.existing(), detailed(&after)), end);
        let cut = walk(&after, start, at);
        let again = look(&after, Some(aged(cut.existing())));
        let way = settle(&after, again);
        let end = shape(&built(&after), detailed(&after));
        prop_assert_eq!(shape(&way.existing(), detailed(&after)), end);
        at_rest(&after, &way.observed);
        prop_assert!(cut.acts.len() + way.acts.len() <= whole.acts.len() + 1, "L6-210 hardly anything is done twice");
    }

    #[test]
    fn a_change_of_mind_at_any_point_leads_to_the_newest_wish(
        first in some_want(),
        minds in prop::collection::vec((some_want(), 0_usize..12), 1..5),
    ) {
        let mut existing = built(&first);
        for (want, steps) in &minds {
            existing = aged(walk(want, look(want, Some(existing)), *steps).existing());
        }
        let newest = &minds[minds.len() - 1].0;
        let way = settle(newest, look(newest, Some(existing)));
        // A monitor may have got its details from a wish in between.
        prop_assert_eq!(shape(&way.existing(), detailed(newest)), shape(&built(newest), detailed(newest)));
        at_rest(newest, &way.observed);
    }

    #[test]
    fn a_crash_during_creation_creates_nothing_twice(want in some_want(), at in 1_usize..40) {
        let cut = walk(&want, absent(&want), at);
        let way = settle(&want, look(&want, Some(aged(cut.existing()))));
        let end = shape(&built(&want), true);
        prop_assert_eq!(shape(&way.existing(), true), end, "CS-155");
        let whole = settle(&want, absent(&want)).acts.len();
        prop_assert_eq!(cut.acts.len() + way.acts.len(), whole, "CS-155");
    }

    #[test]
    fn what_somebody_broke_is_mended(want in some_want(), broken in prop::collection::vec((any::<u8>(), any::<usize>()), 1..4)) {
        let mut existing = built(&want);
        for (kind, at) in broken {
            disturb(&mut existing, kind, at);
        }
        let way = settle(&want, look(&want, Some(existing)));
        let end = shape(&built(&want), detailed(&want));
        prop_assert_eq!(shape(&way.existing(), detailed(&want)), end);
    }

    #[test]
    fn the_order_of_nodes_servers_and_listings_does_not_matter(before in some_want(), after in some_want(), seed in any::<u64>()) {
        let mut existing = built(&before);
        let start = look(&after, Some(existing.clone()));
        let one = settle(&after, start);
        let turn = |list: &mut Vec<_>| { let len = list.len().max(1); list.rotate_left(usize::try_from(seed % 7).unwrap() % len); };
        let mut turned = after.clone();
        turned.backends.reverse();
        turn(&mut existing.pools);
        existing.pools.iter_mut().for_each(|pool| pool.members.reverse());
        let two = settle(&turned, look(&turned, Some(existing)));
        prop_assert_eq!(shape(&one.existing(), true), shape(&two.existing(), true));
        prop_assert_eq!(one.acts.len(), two.acts.len());
    }

    #[test]
    fn no_text_of_an_annotation_breaks_anything(key in 0_usize..24, text in ".{0,12}|[\\[\\]{}\":, a-z0-9/.]{0,24}") {
        let page = cloudberth_cloudscale::annotations::TABLE.to_markdown();
        let keys: Vec<_> = page.lines().filter_map(|l| l.strip_prefix("| `")?.split_once('`')).map(|(k, _)| k).collect();
        let before = plain(&[]);
        let want = edited(&before, |s| _ = s.annotations.insert(keys[key].to_owned(), text));
        let way = settle(&want, look(&want, Some(built(&before))));
        // Whatever it says, the ports stay open and members stay, unless it says so in a form that can be read.
        let removes = |act: &&Action| matches!(act, Action::DeleteMember { .. } | Action::DeletePool { .. } | Action::DeleteBalancer { .. });
        let chooses = ["subnets", "selector", "algorithm", "pool-protocol"].iter().any(|word| keys[key].contains(word));
        prop_assert!(chooses || way.acts.iter().find(removes).is_none(), "{:?}", way.labels);
        settle(&want, absent(&want));
    }
}

#[test]
fn a_thousand_nodes_are_a_few_rounds() {
    let want = want(service(&[]), nodes(1..=250));
    let instances = instances_of(&want, &servers(1..=250)).unwrap();
    let way = settle(&want, Observed { existing: None, instances: instances.clone() });
    let local = edited(&want, |service| {
        service.external_traffic_policy = ExternalTrafficPolicy::Local;
        service.health_check_node_port = 32_000;
    });
    // One at a time, and yet in one round: the number of rounds does not grow with nodes.
    let observed = Observed { existing: Some(aged(way.existing())), instances };
    let way = settle(&local, observed);
    assert_eq!(way.acts.len(), 502, "L7-201");
}
