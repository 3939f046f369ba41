//! The annotations: defaults, mistakes, and the page that is made of their table.

use cloudberth_cloudscale::{annotations::*, selector};
use cloudberth_core::{
    annotation::{Annotations, Value},
    lb::{Desired, Impact, Next},
    view::{ExternalTrafficPolicy, SessionAffinity},
};

use crate::fixture::*;

fn set(pairs: &[(&str, &str)]) -> Annotations {
    service(pairs).annotations
}

#[test]
fn the_declarations_are_sound() {
    assert_eq!(TABLE.flaws(), [""; 0]);
    let page = TABLE.to_markdown();
    let keys: Vec<_> =
        page.lines().filter_map(|line| line.strip_prefix("| `k8s.cloudscale.ch/loadbalancer-")).collect();
    assert_eq!(keys.len(), 24, "every key of the program that we replace");
    assert!(page.contains("| `k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms` | a whole number from 1 to 2147483647 | `50000` | none |"), "{page}");
    assert!(page.contains("loadbalancer-pool-algorithm` | one of round_robin, least_connections, source_ip | `round_robin` | considerable |"));
}

#[test]
fn without_annotations_the_defaults_go() {
    let none = set(&[]);
    let parsed = TABLE.parse(&none);
    assert_eq!(parsed.get(&UUID), Value::Unset, "CS-49");
    assert_eq!(parsed.settle(&FLAVOR, None).as_deref(), Some("lb-standard"), "CS-49");
    let numbers = [
        &MONITOR_DELAY,
        &MONITOR_TIMEOUT,
        &MONITOR_UP,
        &MONITOR_DOWN,
        &TIMEOUT_CLIENT_DATA,
        &TIMEOUT_MEMBER_CONNECT,
        &TIMEOUT_MEMBER_DATA,
    ];
    assert_eq!(numbers.map(|key| parsed.settle(key, None)), [2, 1, 2, 3, 50_000, 5_000, 50_000].map(Some));
    let words = [&POOL_ALGORITHM, &POOL_PROTOCOL, &MONITOR_TYPE, &LISTENER_PROTOCOL, &IP_MODE];
    assert_eq!(
        words.map(|key| parsed.settle(key, None)),
        ["round_robin", "tcp", "tcp", "tcp", "Proxy"].map(Some)
    );
    assert_eq!(parsed.settle(&FORCE_HOSTNAME, None).as_deref(), Some(""));
    let some = set(&[("uuid", "x"), ("name", " n "), ("flavor", "f"), ("force-hostname", "h")]);
    let parsed = TABLE.parse(&some);
    let texts = [&UUID, &NAME, &FORCE_HOSTNAME].map(|key| parsed.get(key).set());
    assert_eq!(texts, ["x", " n ", "h"].map(|text| Some(text.to_owned())), "CS-50");
    assert_eq!(parsed.get(&FLAVOR), Value::Set("f".to_owned()), "CS-50");
}

#[test]
fn every_mistake_names_its_own_key() {
    let table = [
        ("CS-51", "health-monitor-delay-s", "1", true),
        ("a sign", "timeout-client-data-ms", "+5", true),
        ("CS-51", "health-monitor-delay-s", "a", false),
        ("CS-51", "timeout-member-connect-ms", "", false),
        ("nothing is sent for zero", "health-monitor-up-threshold", "0", false),
        ("less than nothing", "health-monitor-down-threshold", "-1", false),
        ("a fraction", "timeout-member-data-ms", "1.5", false),
        ("CS-52", "listener-allowed-cidrs", "", true),
        ("CS-52", "listener-allowed-cidrs", "[]", true),
        ("CS-52", "listener-allowed-cidrs", "\n[\"10.0.0.0/8\", \"::/0\"] ", true),
        ("null", "listener-allowed-cidrs", "null", true),
        ("CS-52", "listener-allowed-cidrs", "[", false),
        ("a bare address", "listener-allowed-cidrs", "[\"10.0.0.1\"]", false),
        ("a number", "listener-allowed-subnets", "[1]", false),
        ("a bare string", "listener-allowed-subnets", "\"x\"", false),
        ("CS-132", "floating-ips", "[\"192.0.2.7/32\"", false),
        ("CS-132", "floating-ips", "[\"not an address\"]", false),
        ("a bare floating IP", "floating-ips", "[\"192.0.2.7\", \"2001:db8::/56\"]", true),
        ("CS-54", "flavor", "", false),
        ("CS-55", "health-monitor-http", "null", true),
        ("blank details", "health-monitor-http", " ", false),
        ("a list for an object", "health-monitor-http", "[1]", false),
        ("a code that is a number", "health-monitor-http", "{\"expected_codes\": [200]}", false),
        ("a host with 1.0", "health-monitor-http", "{\"version\": \"1.0\", \"host\": \"h\"}", false),
        ("a version that there is not", "health-monitor-http", "{\"version\": \"2\"}", false),
        ("CS-126", "ip-mode", "proxy", false),
        ("an algorithm", "pool-algorithm", "random", false),
        ("a protocol", "pool-protocol", "udp", false),
        ("a protocol", "listener-protocol", "http", false),
        ("a type", "health-monitor-type", "TCP", false),
        ("VIPs", "vip-addresses", "{}", false),
        ("CS-120", "node-selector", "invalid===syntax", false),
        ("a selector", "node-selector", "env=prod", true),
    ];
    for (case, key, text, good) in table {
        let want = plain(&[(key, text)]);
        let fresh = settle(&want, absent(&want));
        let field = format!("{PREFIX}{key}");
        if good {
            assert_eq!(fresh.refused(), [""; 0], "{case}: {key} {text:?}");
        } else {
            assert_eq!(fresh.refused(), [field.as_str()], "{case}: {key} {text:?}");
            assert_eq!(fresh.acts, [], "{case}: {key} {text:?}: a mistake blocks creation");
            assert!(fresh.last.refused[0].message.contains(" is not "), "{}", fresh.last.refused[0]);
        }
    }
    let unknown = plain(&[("pool-algoritm", "x"), ("health-monitor-delay-s", "x"), ("flavor", "")]);
    let way = settle(&unknown, absent(&unknown));
    assert_eq!(way.refused().len(), 2, "all at once");
    assert!(
        way.last.notices[0].message.contains("did you mean k8s.cloudscale.ch/loadbalancer-pool-algorithm?"),
        "CS-49"
    );
}

#[test]
fn a_mistake_keeps_what_runs() {
    let full = [
        ("pool-algorithm", "source_ip"),
        ("pool-protocol", "proxy"),
        ("listener-allowed-cidrs", "[\"10.0.0.0/8\"]"),
        ("timeout-client-data-ms", "7"),
        ("timeout-member-connect-ms", "8"),
        ("timeout-member-data-ms", "9"),
        ("health-monitor-type", "http"),
        ("health-monitor-http", "{\"url_path\": \"/x\", \"host\": \"h\"}"),
        ("health-monitor-delay-s", "11"),
        ("health-monitor-timeout-s", "10"),
        ("health-monitor-up-threshold", "5"),
        ("health-monitor-down-threshold", "6"),
        ("vip-addresses", "[]"),
        ("listener-protocol", "tcp"),
        ("listener-allowed-subnets", "[]"),
        ("flavor", "lb-standard"),
        ("floating-ips", "[]"),
        ("node-selector", ""),
        ("ip-mode", "VIP"),
    ];
    let existing = built(&plain(&full));
    for (key, _) in full {
        let want = annotated(&plain(&full), key, "?!");
        let want = if key == "flavor" { annotated(&want, key, "") } else { want };
        let way = settle(&want, look(&want, Some(existing.clone())));
        assert_eq!(
            (way.labels.len(), way.refused()),
            (0, vec![format!("{PREFIX}{key}").as_str()]),
            "L8-201 {key}: {:?}",
            way.labels
        );
        assert_eq!(way.last.next, Next::Converged, "L8-201 {key}");
    }
    // A port that is added meanwhile gets what the others have.
    let wrong = annotated(&annotated(&plain(&full), "listener-allowed-cidrs", "?"), "pool-algorithm", "?");
    let added = edited(&wrong, |s| s.ports.push(tcp("b", 81, 30081)));
    let way = settle(&added, look(&added, Some(existing.clone())));
    let pool = &way.existing().pools[1];
    assert_eq!(pool.listeners[0].allowed_cidrs, ["10.0.0.0/8"], "L8-202 not more open than the others");
    assert_eq!(pool.pool.algorithm, "source_ip", "L8-202");
    // But never what only another protocol can have.
    let only_udp = edited(&plain(&[]), |s| s.ports = vec![udp("a", 53, 30053)]);
    let wrong = annotated(&annotated(&only_udp, "listener-protocol", "?"), "pool-protocol", "?");
    let added = edited(&wrong, |s| s.ports.push(tcp("b", 81, 30081)));
    let way = settle(&added, look(&added, Some(built(&only_udp))));
    let pool = &way.existing().pools[1];
    assert_eq!((pool.pool.protocol.as_str(), pool.listeners[0].name.as_str()), ("tcp", "tcp/81"), "L8-202");
}

#[test]
fn details_of_checks_that_cannot_be_read_stay_as_they_are() {
    let http = |text| plain(&[("health-monitor-type", "http"), ("health-monitor-http", text)]);
    let local = |want: &Desired| {
        edited(want, |service| {
            service.external_traffic_policy = ExternalTrafficPolicy::Local;
            service.health_check_node_port = 32_000;
        })
    };
    let old = built(&http(r#"{"version": "1.0"}"#));
    assert_eq!(labels(&http("?"), &old), [""; 0], "L8-208 not even the version");
    let mine = built(&local(&http(r#"{"url_path": "/x"}"#)));
    assert_eq!(labels(&local(&http("?")), &mine), [""; 0], "L8-208 with policy Local too");
    let wrong = local(&plain(&[("health-monitor-http", "?")]));
    let way = settle(&wrong, look(&wrong, Some(built(&plain(&[])))));
    let path = way.existing().pools[0].monitors[0].http.clone().map(|http| http.url_path);
    assert_eq!(path.as_deref(), Some("/livez"), "L8-209 there are none to keep");
}

#[test]
fn a_selector_that_cannot_be_read_lets_nobody_in_and_lets_the_gone_go() {
    let existing = built(&plain(&[]));
    let want = want(service(&[("node-selector", "invalid===syntax")]), nodes([2, 3]));
    let way = settle(&want, look(&want, Some(existing)));
    assert_eq!(way.labels, ["remove 10.0.0.1:30080 from pool tcp"], "CS-120");
    let error = selector(&want.service).unwrap_err();
    assert!(
        error.message().contains("unable to parse label selector")
            && error.message().contains("node-selector"),
        "CS-120 {error}"
    );
}

#[test]
fn nodes_are_chosen_by_their_labels() {
    let labelled = |number, pairs: &[(&str, &str)]| {
        let mut node = node(number);
        node.labels = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        node
    };
    let exclude = "node.kubernetes.io/exclude-from-external-load-balancers";
    let cluster = || {
        [
            labelled(1, &[("env", "prod"), ("disk", "ssd")]),
            labelled(2, &[("env", "test")]),
            labelled(3, &[("env", "prod")]),
            labelled(4, &[("env", "prod"), (exclude, "")]),
        ]
    };
    let all = want(service(&[]), cluster());
    let existing = built(&all);
    let table: [(&str, Option<&str>, &[usize]); 5] = [
        ("CS-116 CS-146", Some("env=prod"), &[1, 3]),
        ("CS-117", None, &[1, 2, 3]),
        ("CS-117 empty", Some(""), &[1, 2, 3]),
        ("CS-118 CS-121 CS-122", Some("env=none"), &[]),
        ("CS-119", Some("env=prod,disk=ssd"), &[1]),
    ];
    for (case, text, chosen) in table {
        let annotations: Vec<_> = text.map(|text| ("node-selector", text)).into_iter().collect();
        let want = want(service(&annotations), cluster());
        let way = settle(&want, look(&want, Some(existing.clone())));
        let members: Vec<_> = way.existing().pools[0].members.iter().map(|m| m.address.clone()).collect();
        let addresses: Vec<_> = chosen.iter().map(|number| format!("10.0.0.{number}")).collect();
        assert_eq!(members, addresses, "{case}");
        assert_eq!(way.refused(), [""; 0], "{case}");
        let publish = way.last.publish.as_ref().unwrap();
        assert_eq!((publish.ingress.as_ref().unwrap().len(), publish.annotations.len()), (2, 3), "{case}");
        if chosen.is_empty() {
            assert_eq!(way.warned(), ["NoValidNodes"], "{case}");
            assert!(way.last.notices[0].message.contains("loadbalancer-node-selector: env=none"), "{case}");
        } else {
            assert_eq!(way.warned(), [""; 0], "{case}");
        }
    }
}

#[test]
fn fields_are_carried_out_or_refused() {
    let sticky = SessionAffinity::ClientIp { timeout_seconds: None };
    let table = [
        (
            "L8-203 no such affinity",
            edited(&plain(&[]), |s| s.session_affinity = sticky.clone()),
            vec!["spec.sessionAffinity"],
        ),
        (
            "the nearest thing",
            edited(&plain(&[("pool-algorithm", "source_ip")]), |s| s.session_affinity = sticky.clone()),
            vec![],
        ),
        (
            "L8-204 an address",
            edited(&plain(&[]), |s| s.load_balancer_ip = Some("192.0.2.7".to_owned())),
            vec!["spec.loadBalancerIP"],
        ),
        ("no address", edited(&plain(&[]), |s| s.load_balancer_ip = Some(String::new())), vec![]),
        (
            "L8-205 a floating IP",
            edited(&plain(&[("floating-ips", "[\"192.0.2.7/32\"]")]), |s| {
                s.load_balancer_ip = Some("192.0.2.7".to_owned());
            }),
            vec![],
        ),
        (
            "L8-206 something that is no address",
            edited(&plain(&[]), |s| s.load_balancer_ip = Some("x".to_owned())),
            vec!["spec.loadBalancerIP"],
        ),
        (
            "L8-207 another policy",
            edited(&plain(&[]), |s| {
                s.external_traffic_policy = ExternalTrafficPolicy::Other("X".to_owned());
            }),
            vec!["spec.externalTrafficPolicy"],
        ),
    ];
    for (case, want, fields) in table {
        let way = settle(&want, absent(&want));
        assert_eq!(way.refused(), fields, "{case}");
        assert_eq!(way.acts.is_empty(), !fields.is_empty(), "{case}");
    }
}

#[test]
fn the_classes_of_impact_are_the_original_manuals() {
    let page = TABLE.to_markdown();
    let class = |key: &str| {
        let line = page.lines().find(|line| line.contains(&format!("`{PREFIX}{key}`"))).unwrap();
        line.split(" | ").nth(3).unwrap().to_owned()
    };
    let table = [
        (
            Impact::None,
            &["name", "timeout-client-data-ms", "timeout-member-connect-ms", "timeout-member-data-ms"][..],
        ),
        (
            Impact::Minimal,
            &[
                "floating-ips",
                "health-monitor-delay-s",
                "health-monitor-type",
                "health-monitor-http",
                "listener-allowed-cidrs",
                "node-selector",
            ],
        ),
        (Impact::Considerable, &["pool-algorithm", "pool-protocol", "listener-allowed-subnets"]),
        (Impact::Major, &["flavor", "zone", "vip-addresses"]),
    ];
    for (impact, keys) in table {
        for key in keys {
            assert_eq!(class(key), impact.to_string(), "{key}");
        }
    }
}
