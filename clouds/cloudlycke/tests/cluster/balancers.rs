//! Load balancers and their Services.

use std::time::Duration;

use cloudberth_core::view::{IngressPort, IpMode, ServiceProtocol};
use cloudberth_lycke::{inventory::MachineState, plane::ListenerFault};
use serde_json::{Value, json};
use testing_kit::checks::{CloudFixture, CloudUnderTest as _, annotation};

use crate::{
    seeded::ports,
    under_test::{ID, Lycke},
};

const PREFIX: &str = "service.beta.kubernetes.io/cloudlycke-load-balancer-";
const WEB: &str = "c2/default/web";

type Fixture = CloudFixture<Lycke>;

fn annotated(key: &str, value: &str) -> Value {
    annotation(&format!("{PREFIX}{key}"), json!(value))
}

fn generation(fixture: &Fixture, id: &str) -> u64 {
    fixture.cloud.balancer(id).unwrap().balancer.generation
}

fn backends(fixture: &Fixture, id: &str) -> Vec<String> {
    let spec = fixture.cloud.balancer(id).unwrap().balancer.spec;
    spec.backends.iter().map(|backend| backend.machine.clone()).collect()
}

async fn web(nodes: usize, body: Value) -> Fixture {
    let fixture = Fixture::with_nodes(nodes).await;
    fixture.pass(10).await;
    fixture.create("web", body).await;
    fixture.pass(30).await;
    fixture
}

#[tokio::test(start_paused = true)]
async fn a_service_gets_an_address_within_a_second() {
    let fixture = Fixture::with_nodes(2).await;
    fixture.pass(10).await;
    fixture.create("web", ports(&[8080])).await;
    let took = fixture.addressed("web", Duration::from_secs(5)).await;
    assert!(took <= Duration::from_secs(1), "CL-32 {took:?}");
    fixture.pass(10).await;
    let service = fixture.service("web").await.unwrap();
    let entry = &service.ingress[0];
    assert!(entry.ip.as_ref().unwrap().starts_with("127.77.0."), "CL-32 {entry:?}");
    assert_eq!(entry.ip_mode, Some(IpMode::Proxy), "CL-32");
    let port = IngressPort { port: 8080, protocol: ServiceProtocol::Tcp, error: None };
    assert_eq!(entry.ports, [port], "CL-32");
    assert_eq!(service.annotations.get(ID).map(String::as_str), Some(WEB));
    assert_eq!(backends(&fixture, WEB), ["c2-node-1", "c2-node-2"], "CL-32");
}

#[tokio::test(start_paused = true)]
async fn what_is_unchanged_is_not_put_again_not_even_after_a_restart() {
    let mut fixture = web(2, json!({})).await;
    let (before, generation_before) = (fixture.cloud.mutations(), generation(&fixture, WEB));
    fixture.restart();
    fixture.edit("web", json!({"metadata": {"labels": {"edited": "yes"}}})).await;
    fixture.pass(600).await;
    assert_eq!(fixture.cloud.mutations(), before, "CL-33 L4-1801 no PUT");
    assert_eq!(generation(&fixture, WEB), generation_before, "CL-33");
    fixture.assert_quiet(600, "CL-33 L4-1802").await;
}

#[tokio::test(start_paused = true)]
async fn ports_and_nodes_follow_the_cluster() {
    let fixture = web(2, json!({})).await;
    let listeners = || {
        let spec = fixture.cloud.balancer(WEB).unwrap().balancer.spec;
        spec.listeners.iter().map(|one| (one.port, one.node_port)).collect::<Vec<_>>()
    };
    let address = fixture.ingress("web").await;
    fixture.edit("web", ports(&[80, 443])).await;
    fixture.pass(30).await;
    assert_eq!(listeners().iter().map(|one| one.0).collect::<Vec<_>>(), [80, 443], "CL-34");
    let shown = fixture.service("web").await.unwrap().ingress[0].ports.len();
    assert_eq!(shown, 2, "CL-34 both are listed");
    fixture.edit("web", ports(&[443])).await;
    fixture.pass(30).await;
    assert_eq!(listeners().iter().map(|one| one.0).collect::<Vec<_>>(), [443], "CL-35");
    let other =
        json!({"spec": {"ports": [{"name": "p443", "port": 443, "protocol": "TCP", "nodePort": 31_999}]}});
    fixture.edit("web", other).await;
    fixture.pass(30).await;
    assert_eq!(listeners(), [(443, 31_999)], "CL-36");
    fixture.node("node-3").await;
    fixture.pass(60).await;
    assert_eq!(backends(&fixture, WEB).len(), 3, "CL-37 one came");
    fixture.cluster.delete(&fixture.cluster.nodes(), "node-1").await;
    fixture.pass(60).await;
    assert_eq!(backends(&fixture, WEB), ["c2-node-2", "c2-node-3"], "CL-37 one went");
    assert_eq!(fixture.ingress("web").await, address, "the address stays");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_takes_its_load_balancer_along_and_finds_its_address_again() {
    let fixture = web(1, json!({})).await;
    let address = fixture.ingress("web").await;
    fixture.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    fixture.pass(30).await;
    assert!(fixture.cloud.balancer(WEB).is_none(), "CL-39");
    let service = fixture.service("web").await.unwrap();
    assert!(service.ingress.is_empty() && service.finalizers.is_empty(), "CL-39 {service:?}");
    assert!(service.annotations.is_empty(), "CL-39 nothing is left of it: {:?}", service.annotations);
    fixture.edit("web", json!({"spec": {"type": "LoadBalancer"}})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.ingress("web").await, address, "CL-40");
    fixture.delete("web").await;
    fixture.pass(30).await;
    assert!(fixture.service("web").await.is_none() && fixture.cloud.balancer(WEB).is_none(), "CL-38");
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.ingress("web").await, address, "CL-40 created anew under the same name");
}

#[tokio::test(start_paused = true)]
async fn somebody_else_deleted_it_first_and_a_stale_finalizer_does_no_harm() {
    let fixture = web(1, json!({})).await;
    let (control, key) = (fixture.cloud.control(), crate::service::key(WEB));
    control.delete(&key, None).await.unwrap();
    fixture.delete("web").await;
    fixture.pass(120).await;
    assert!(fixture.service("web").await.is_none(), "CL-38 a second deletion succeeds");
    let stale = json!({"metadata": {"finalizers": [testing_kit::seeded::FINALIZER]}});
    fixture.create("stale", stale).await;
    fixture.delete("stale").await;
    fixture.pass(120).await;
    assert!(fixture.service("stale").await.is_none(), "CL-31 {:?}", fixture.cluster.events("stale"));
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_asked_for_is_given_or_refused_with_the_reason() {
    let asks = |ip: &str| json!({"spec": {"loadBalancerIP": ip}});
    let fixture = web(1, asks("127.77.0.9")).await;
    assert_eq!(fixture.ingress("web").await, ["127.77.0.9"], "CL-42 inside and free");
    for (case, name, ip, words) in [
        ("CL-42 taken", "taken", "127.77.0.9", "c2/default/web"),
        ("CL-42 outside", "outside", "127.78.0.9", "127.77.0.0/28"),
        ("CL-42 not an IP", "no-ip", "nowhere", "nowhere"),
    ] {
        fixture.create(name, asks(ip)).await;
        fixture.pass(60).await;
        let warnings = fixture.warnings(name);
        assert!(warnings.iter().any(|text| text.contains(words)), "{case} {warnings:?}");
        assert!(fixture.ingress(name).await.is_empty(), "{case}");
    }
    // On one that serves only the address is refused: everything else is carried out (law 8).
    fixture.edit("web", asks("127.78.0.9")).await;
    fixture.edit("web", ports(&[80, 443])).await;
    fixture.pass(60).await;
    assert_eq!(fixture.ingress("web").await, ["127.77.0.9"], "L8-1801 it keeps its address");
    let ports = fixture.cloud.balancer(WEB).unwrap().balancer.spec.listeners.len();
    assert_eq!(ports, 2, "L8-1801 and its ports follow: {:?}", fixture.warnings("web"));
    let refused = fixture.warnings("web").iter().any(|text| text.contains("spec.loadBalancerIP"));
    assert!(refused, "L8-1801 {:?}", fixture.warnings("web"));
    fixture.delete("web").await;
    fixture.pass(600).await;
    assert_eq!(fixture.ingress("taken").await, ["127.77.0.9"], "CL-42 it is free now");
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_pool_is_told_and_got_over() {
    let fixture = Fixture::with_nodes(1).await;
    for number in 0..14 {
        fixture.create(&format!("web-{number}"), json!({})).await;
    }
    fixture.pass(60).await;
    fixture.create("late", json!({})).await;
    fixture.pass(60).await;
    let warnings = fixture.warnings("late");
    assert!(warnings.iter().any(|text| text.contains("pool_exhausted")), "CL-43 {warnings:?}");
    fixture.delete("web-3").await;
    fixture.pass(600).await;
    assert_eq!(fixture.ingress("late").await.len(), 1, "CL-43 {:?}", fixture.warnings("late"));
}

#[tokio::test(start_paused = true)]
async fn the_same_name_in_another_cluster_is_another_load_balancer() {
    let fixture = web(1, json!({})).await;
    let (control, theirs) = (fixture.cloud.control(), crate::service::key("c1/default/web"));
    let spec = json!({"uid": "u", "listeners": [{"protocol": "TCP", "port": 80, "nodePort": 30_080}]});
    control.put(&theirs, &spec).await.unwrap();
    let address = |id: &str| fixture.cloud.balancer(id).unwrap().balancer.addresses;
    assert_ne!(address(WEB), address("c1/default/web"), "CL-44");
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert!(fixture.cloud.balancer("c1/default/web").is_some(), "CL-44 L3-1803 the other one stays");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_balanced_is_refused() {
    let fixture = Fixture::with_nodes(1).await;
    let sctp = json!({"spec": {"ports": [{"port": 80, "protocol": "SCTP"}]}});
    let bare =
        json!({"spec": {"allocateLoadBalancerNodePorts": false, "ports": [{"port": 80, "protocol": "TCP"}]}});
    for (case, name, body, words) in [("CL-45", "sctp", sctp, "SCTP"), ("CL-46", "bare", bare, "node port")] {
        fixture.create(name, body).await;
        fixture.pass(60).await;
        let warnings = fixture.warnings(name);
        assert!(
            warnings.iter().any(|text| text.contains("spec.ports") && text.contains(words)),
            "{case} {warnings:?}"
        );
        assert!(fixture.cloud.balancer(&format!("c2/default/{name}")).is_none(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_nodes_there_is_an_address_and_a_reason() {
    let fixture = web(0, json!({})).await;
    let address = fixture.ingress("web").await;
    assert_eq!(address.len(), 1, "CL-47");
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|text| text.contains("no node")), "CL-47 {warnings:?}");
    fixture.node("node-1").await;
    fixture.pass(60).await;
    assert_eq!(backends(&fixture, WEB), ["c2-node-1"], "CL-47");
    assert_eq!(fixture.ingress("web").await, address, "CL-47 the address does not change");
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    let labelled = json!({"metadata": {"labels": {label: ""}}});
    fixture.cluster.merge(&fixture.cluster.nodes(), "node-1", labelled).await;
    fixture.pass(60).await;
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|text| text.contains(label)), "CL-47 {warnings:?}");
    assert!(backends(&fixture, WEB).is_empty(), "CL-47");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_the_inventory_lacks_are_left_out_and_those_that_it_names_are_taken() {
    let fixture = web(1, json!({})).await;
    fixture.cluster.register_with("nope", json!({"providerID": "cloudlycke://nope"})).await;
    fixture.cloud.add_machine("c2", "kind", &json!({"nodeProviderID": "kind://docker/kind/kind-worker"}));
    fixture
        .cluster
        .register_with("kind-worker", json!({"providerID": "kind://docker/kind/kind-worker"}))
        .await;
    fixture.cluster.register_with("foreign", json!({"providerID": "kind://docker/kind/other"})).await;
    fixture.pass(400).await;
    assert_eq!(backends(&fixture, WEB), ["c2-kind", "c2-node-1"], "CL-48");
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|text| text.contains("nope")), "CL-48 {warnings:?}");
    assert!(!warnings.iter().any(|text| text.contains("foreign")), "L3-1804 {warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn wrong_annotations_are_told_together_and_change_nothing() {
    let fixture = web(1, annotated("policy", "source-hash")).await;
    let before = generation(&fixture, WEB);
    let mut wrong = annotated("policy", "random");
    sim_kit::merge(&mut wrong, annotated("idle-timeout", "soon"));
    fixture.edit("web", wrong).await;
    fixture.pass(60).await;
    assert_eq!(generation(&fixture, WEB), before, "CL-49 what ran runs on");
    let warnings = fixture.warnings("web").join("\n");
    for key in ["policy", "idle-timeout"] {
        assert!(warnings.contains(&format!("{PREFIX}{key}")), "CL-49 {warnings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_taken_is_shown_and_looked_at_until_it_is_free() {
    let fixture = Fixture::with_nodes(1).await;
    fixture.pass(10).await;
    fixture.cloud.set_fault(443, Some(ListenerFault::AddressInUse(None)));
    fixture.create("web", ports(&[80, 443])).await;
    fixture.pass(20).await;
    let shown = fixture.service("web").await.unwrap().ingress[0].ports.clone();
    let errors: Vec<_> = shown.iter().map(|port| (port.port, port.error.as_deref())).collect();
    assert_eq!(errors, [(80, None), (443, Some("cloudlycke.io/AddressInUse"))], "CL-63");
    let warnings = fixture.warnings("web");
    assert_eq!(
        warnings.iter().filter(|text| text.contains("443/TCP")).count(),
        1,
        "CL-63 once: {warnings:?}"
    );
    fixture.assert_quiet(60, "CL-63 looking writes nothing").await;
    fixture.cloud.set_fault(443, None);
    fixture.pass(7).await;
    let shown = fixture.service("web").await.unwrap().ingress[0].ports.clone();
    assert!(shown.iter().all(|port| port.error.is_none()), "CL-63 within 5 s: {shown:?}");
    fixture.pass(30).await;
    fixture.cloud.front.clear_journal();
    fixture.pass(60).await;
    let looks = fixture.cloud.tally().count("loadbalancers.list");
    assert!(looks <= 1, "CL-63 then only hand edits are looked for: {looks}");
}

#[tokio::test(start_paused = true)]
async fn a_shifted_port_is_shown_in_status_event_and_annotation() {
    let fixture = Fixture::with_nodes(1).await;
    fixture.cloud.set_fault(80, Some(ListenerFault::Shifted));
    fixture.create("web", ports(&[80, 8080])).await;
    fixture.pass(30).await;
    let service = fixture.service("web").await.unwrap();
    let shifted = "cloudlycke.io/shifted-ports";
    assert_eq!(service.annotations.get(shifted).map(String::as_str), Some("80=10080"), "CL-64");
    assert_eq!(service.ingress[0].ports[0].error.as_deref(), Some("cloudlycke.io/Shifted"), "CL-64");
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|text| text.contains("10080")), "CL-64 {warnings:?}");
    fixture.cloud.set_fault(80, None);
    fixture.edit("web", ports(&[8080])).await;
    fixture.pass(30).await;
    assert!(!fixture.service("web").await.unwrap().annotations.contains_key(shifted), "CL-64");
}

#[tokio::test(start_paused = true)]
async fn ranges_without_loopback_are_warned_about() {
    let ranges = |list: &[&str]| json!({"spec": {"loadBalancerSourceRanges": list}});
    let fixture = web(1, ranges(&["10.0.0.0/8"])).await;
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|text| text.contains("127.0.0.0/8")), "CL-60 {warnings:?}");
    fixture.edit("web", ranges(&["10.0.0.0/8", "127.0.0.0/8"])).await;
    fixture.pass(30).await;
    let spec = fixture.cloud.balancer(WEB).unwrap().balancer.spec;
    let ranges: Vec<_> = spec.source_ranges.iter().map(ToString::to_string).collect();
    assert_eq!(ranges, ["10.0.0.0/8", "127.0.0.0/8"], "CL-60");
    fixture.assert_quiet(300, "CL-60 L4-1803").await;
}

#[tokio::test(start_paused = true)]
async fn every_setting_reaches_the_service() {
    let mut body = annotated("policy", "least-connections");
    for (key, value) in [
        ("proxy-protocol", "v2"),
        ("idle-timeout", "0"),
        ("healthcheck-protocol", "http"),
        ("healthcheck-port", "8081"),
        ("healthcheck-path", "/ready"),
        ("healthcheck-interval", "7"),
        ("healthcheck-timeout", "3"),
        ("healthcheck-healthy-threshold", "4"),
        ("healthcheck-unhealthy-threshold", "5"),
        ("address-mode", "shared"),
    ] {
        sim_kit::merge(&mut body, annotated(key, value));
    }
    let affinity = json!({"spec": {"sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}}});
    sim_kit::merge(&mut body, affinity);
    let fixture = web(1, body).await;
    let spec = fixture.cloud.balancer(WEB).unwrap().balancer.spec;
    let health = &spec.health;
    let numbers = (health.interval, health.timeout, health.healthy_threshold, health.unhealthy_threshold);
    assert_eq!(numbers, (7, 3, 4, 5));
    assert_eq!((health.port, health.path.as_str()), (Some(8081), "/ready"));
    assert_eq!((spec.affinity, spec.idle_timeout), (Some(60), 0), "CL-59");
    let words = format!("{:?} {:?} {:?}", spec.policy, spec.proxy_protocol, spec.address_mode);
    assert_eq!(words, "LeastConnections V2 Some(Shared)", "CL-62 CL-67");
    assert_eq!(fixture.ingress("web").await, ["127.0.0.1"], "CL-67");
    fixture.assert_quiet(300, "L4-1804").await;
    fixture.annotate("web", &format!("{PREFIX}address-mode"), Value::Null).await;
    fixture.pass(60).await;
    assert!(fixture.ingress("web").await[0].starts_with("127.77."), "a mode that is withdrawn is noticed");
    fixture.assert_quiet(300, "L4-1805").await;
}

#[tokio::test(start_paused = true)]
async fn the_traffic_policy_local_asks_kube_proxy() {
    let local = json!({"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 32_100}});
    let fixture = web(1, local).await;
    let health = fixture.cloud.balancer(WEB).unwrap().balancer.spec.health;
    assert_eq!((format!("{:?}", health.kind).as_str(), health.port), ("Http", Some(32_100)), "CL-61");
    assert_eq!(health.path, "/healthz", "CL-61");
}

#[tokio::test(start_paused = true)]
async fn machines_whose_state_nobody_knows_stay_behind_load_balancers() {
    let fixture = web(2, json!({})).await;
    let id = fixture.cluster.node("node-1").await.unwrap().provider_id.unwrap();
    fixture.cloud.set_state(&id, MachineState::Unknown);
    fixture.edit("web", ports(&[443])).await;
    fixture.pass(120).await;
    assert_eq!(backends(&fixture, WEB).len(), 2, "L1-1801");
    let ports: Vec<_> =
        fixture.cloud.balancer(WEB).unwrap().balancer.spec.listeners.iter().map(|one| one.port).collect();
    assert_eq!(ports, [443], "and everything else goes on");
}

/// The id on a Service decides nothing: its load balancer goes by its name.
#[tokio::test(start_paused = true)]
async fn a_copied_id_leads_nowhere() {
    let fixture = web(1, json!({})).await;
    let before = generation(&fixture, WEB);
    fixture.create("shop", annotation(ID, json!(WEB))).await;
    fixture.pass(60).await;
    assert_eq!(fixture.recorded("shop").await.as_deref(), Some("c2/default/shop"), "L3-1805");
    fixture.delete("shop").await;
    fixture.pass(60).await;
    assert_eq!(generation(&fixture, WEB), before, "L3-1805 the other one is not touched");
}
