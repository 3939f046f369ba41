//! What a Service gets, from its first day on.

use std::time::Duration;

use cloudberth_core::view::IpMode;
use serde_json::{Value, json};

use crate::fixture::{FINALIZER, Fixture, INTENT, PREFIX, annotated, merge};

#[allow(clippy::needless_pass_by_value, reason = "it is made where it is passed")]
fn spec(ports: Value) -> Value {
    json!({"spec": {"ports": ports}})
}

fn with(mut body: Value, annotations: &[(&str, Value)]) -> Value {
    merge(&mut body, annotated(annotations));
    body
}

/// A cluster of two nodes, and one Service that had time to be served.
async fn served(body: Value) -> Fixture {
    let fixture = Fixture::new();
    fixture.nodes(2).await;
    fixture.pass(5).await;
    fixture.create("web", body).await;
    fixture.pass(30).await;
    fixture
}

async fn ingress(fixture: &Fixture) -> Vec<(Option<String>, Option<String>, String)> {
    let entry = |entry: &cloudberth_core::view::Ingress| {
        (entry.ip.clone(), entry.hostname.clone(), format!("{:?}", entry.ip_mode))
    };
    fixture.get("web").await.ingress.iter().map(entry).collect()
}

#[tokio::test(start_paused = true)]
async fn a_plain_service_is_served() {
    let fixture = served(json!({})).await;
    let (service, balancer) = (fixture.get("web").await, fixture.balancer("web").await);
    assert_eq!(balancer.name, format!("k8s-service-{}", service.uid), "CS-60 CS-136");
    let annotation = |key: &str| service.annotations.get(&format!("{PREFIX}{key}")).cloned();
    assert_eq!(annotation("uuid"), Some(balancer.uuid.clone()), "CS-136");
    assert_eq!(annotation("config-version").as_deref(), Some("1"), "CS-56 CS-136");
    assert_eq!(annotation("zone").as_deref(), Some("rma1"), "CS-136");
    assert_eq!(service.annotations.get(INTENT), None, "no intent is left");
    assert!(service.finalizers.contains(&FINALIZER.to_owned()));
    let shown = ingress(&fixture).await;
    let vips: Vec<_> = balancer.vips.iter().map(|vip| Some(vip.address.to_string())).collect();
    assert_eq!(shown.iter().map(|(ip, ..)| ip.clone()).collect::<Vec<_>>(), vips, "CS-123 CS-136");
    assert!(shown.len() == 2 && shown.iter().all(|(.., mode)| mode == "Some(Proxy)"), "CS-123 {shown:?}");
    assert_eq!(fixture.warnings("web"), [""; 0], "CS-136");
    let shape = fixture.shape("web").await;
    assert!(shape.len() == 1 && shape[0].0 == 80 && shape[0].1.len() == 2, "CS-136 {shape:?}");
    fixture.assert_quiet(900, "L4-804 CS-136").await;
}

#[tokio::test(start_paused = true)]
async fn udp_and_tcp_on_one_port() {
    let ports = json!([{"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53, "protocol": "TCP"}]);
    let fixture = served(spec(ports)).await;
    let stock = fixture.cloud.resources();
    let mut pools: Vec<_> =
        stock.pools.values().map(|pool| (pool.name.as_str(), pool.protocol.as_str())).collect();
    pools.sort_unstable();
    assert_eq!(pools, [("tcp/tcp", "tcp"), ("udp/udp", "udp")], "CS-64 CS-138");
    let mut listeners: Vec<_> = stock.listeners.values().map(|listener| listener.name.as_str()).collect();
    listeners.sort_unstable();
    assert_eq!(listeners, ["tcp/53", "udp/53"], "CS-138");
    assert_eq!(ingress(&fixture).await.len(), 2, "CS-138");

    let checks = [
        ("health-monitor-type", json!("udp-connect")),
        ("health-monitor-delay-s", json!("3")),
        ("health-monitor-timeout-s", json!("2")),
    ];
    let fixture = served(with(spec(json!([{"port": 7, "protocol": "UDP"}])), &checks)).await;
    let monitors = fixture.cloud.monitors();
    assert_eq!(
        (monitors[0].kind.as_str(), monitors[0].delay_s, monitors[0].timeout_s),
        ("udp-connect", 3, 2),
        "CS-63 CS-137"
    );
    assert_eq!(fixture.shape("web").await[0].1.len(), 2, "CS-137");
}

#[tokio::test(start_paused = true)]
async fn a_private_address_in_place_of_the_public_pair() {
    let fixture = Fixture::new();
    fixture.nodes(2).await;
    let subnet = fixture.cloud.add_private_network("backend", "rma1", "10.77.0.0/24".parse().unwrap());
    let vips = json!([{"subnet": subnet, "address": "10.77.0.42"}]).to_string();
    fixture.create("web", annotated(&[("vip-addresses", json!(vips))])).await;
    fixture.pass(30).await;
    let shown = ingress(&fixture).await;
    assert_eq!(shown.len(), 1, "CS-139 {:?}", fixture.cluster.events("web"));
    assert_eq!(shown[0].0.as_deref(), Some("10.77.0.42"), "CS-139");
    fixture.assert_quiet(300, "CS-139").await;
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_what_is_asked_for() {
    let proxy = ("pool-protocol", json!("proxy"));
    let vip = ("ip-mode", json!("VIP"));
    let fixture = served(annotated(&[proxy.clone(), vip])).await;
    assert!(ingress(&fixture).await.iter().all(|(.., mode)| mode == "Some(Vip)"), "CS-124 CS-141");
    assert_eq!(fixture.cloud.pools()[0].protocol, "proxy", "CS-141");

    let host = ("force-hostname", json!("web.example.org"));
    let fixture = served(annotated(&[proxy, host, ("ip-mode", json!("nonsense"))])).await;
    let shown = ingress(&fixture).await;
    assert_eq!(shown, [(None, Some("web.example.org".to_owned()), "None".to_owned())], "CS-127 CS-141");

    let fixture = served(annotated(&[("ip-mode", json!("proxy"))])).await;
    assert_eq!(fixture.cloud.balancers().len(), 0, "CS-126 refused before anything is built");
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|line| line.contains("loadbalancer-ip-mode")), "CS-126 {warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn only_selected_nodes_take_traffic() {
    let fixture = Fixture::new();
    fixture.nodes(3).await;
    let label = async |node: &str, labels: Value| {
        fixture.cluster.merge(&fixture.cluster.nodes(), node, json!({"metadata": {"labels": labels}})).await;
    };
    label("node-01", json!({"env": "prod"})).await;
    label("node-02", json!({"env": "prod"})).await;
    fixture.create("web", annotated(&[("node-selector", json!("env=prod"))])).await;
    fixture.pass(30).await;
    let members = async || fixture.shape("web").await[0].1.len();
    assert_eq!(members().await, 2, "CS-122");
    label("node-01", json!({"node.kubernetes.io/exclude-from-external-load-balancers": ""})).await;
    fixture.pass(30).await;
    assert_eq!(members().await, 1, "CS-146");
    label("node-03", json!({"env": "prod"})).await;
    fixture.pass(30).await;
    assert_eq!(members().await, 2, "a node that starts to match is a member soon");

    fixture.annotate("web", &[("node-selector", json!("env=none"))]).await;
    fixture.pass(30).await;
    assert_eq!(members().await, 0, "CS-121 CS-122");
    let warnings = fixture.warnings("web");
    assert!(
        warnings.iter().any(|line| line.contains("NoValidNodes") && line.contains("env=none")),
        "CS-121 {warnings:?}"
    );
    assert_eq!(ingress(&fixture).await.len(), 2, "CS-122");
    assert!(fixture.get("web").await.annotations.contains_key(&format!("{PREFIX}uuid")), "CS-122");

    fixture.cloud.clear_journal();
    fixture.annotate("web", &[("node-selector", json!("invalid===syntax"))]).await;
    fixture.pass(30).await;
    assert_eq!(fixture.changes(), [""; 0], "CS-120");
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|line| line.contains("node-selector")), "CS-120 {warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn sources_are_honoured_where_the_load_balancer_is_ours() {
    let fixture = served(json!({"spec": {"loadBalancerSourceRanges": ["10.1.0.0/16"]}})).await;
    assert_eq!(fixture.cloud.listeners()[0].allowed_cidrs, ["10.1.0.0/16"], "L8-801");
    fixture.edit("web", json!({"spec": {"loadBalancerSourceRanges": null}})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.cloud.listeners()[0].allowed_cidrs, [""; 0], "L8-802");
}

#[tokio::test(start_paused = true)]
async fn what_a_user_writes_meanwhile_stays() {
    let fixture = Fixture::new();
    fixture.nodes(2).await;
    fixture.pass(5).await;
    fixture.create("web", json!({})).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    fixture.edit("web", json!({"metadata": {"annotations": {"example.org/mine": "yes"}}})).await;
    fixture.pass(30).await;
    let service = fixture.get("web").await;
    assert_eq!(service.annotations.get("example.org/mine").map(String::as_str), Some("yes"), "CS-159");
    assert!(service.annotations.contains_key(&format!("{PREFIX}uuid")), "CS-159");
    assert_eq!(fixture.cloud.balancers().len(), 1, "CS-156");
    assert_eq!(fixture.tally().count("load-balancers.create"), 1, "CS-156");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_no_server_is_left_out_and_told() {
    let fixture = Fixture::new();
    fixture.nodes(9).await;
    fixture.cluster.register("ghost", Some("cloudscale://00000000-0000-4000-8000-000000000404")).await;
    fixture.pass(5).await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.shape("web").await[0].1.len(), 9, "CS-38 L11-802");
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|line| line.contains("ghost")), "CS-38 {warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_project_empties_no_pool_and_creates_nothing() {
    use cloudscale_sim::{Fault, Harm};
    let fixture = served(json!({})).await;
    fixture.cloud.add_fault(Fault { operation: "servers.list".to_owned(), ..Fault::new(Harm::EmptyList) });
    fixture.cloud.add_fault(Fault { operation: "servers.get".to_owned(), ..Fault::new(Harm::NotFound) });
    fixture.cloud.clear_journal();
    fixture.create("second", json!({})).await;
    fixture.edit("web", spec(json!([{"port": 8080, "protocol": "TCP"}]))).await;
    fixture.pass(300).await;
    assert_eq!(fixture.changes(), [""; 0], "CS-38 L1-823");
    let warnings = fixture.warnings("second");
    assert!(warnings.iter().any(|line| line.contains("another account")), "CS-38 {warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_service_of_another_class_is_nobodys_business() {
    let fixture = served(json!({"spec": {"loadBalancerClass": "example.org/other"}})).await;
    assert_eq!(fixture.cloud.balancers().len(), 0, "CS-53");
    let service = fixture.get("web").await;
    assert_eq!((service.finalizers.len(), service.annotations.len()), (0, 0), "CS-53 L3-801");
    fixture.delete("web").await;
    fixture.pass(10).await;
    assert_eq!(fixture.changes(), [""; 0], "CS-53");
    let fixture = served(json!({})).await;
    assert_eq!(fixture.cloud.balancers().len(), 1, "CS-53 without a class it is ours");
}

#[tokio::test(start_paused = true)]
async fn while_another_program_leads_nothing_is_written() {
    let mut fixture = Fixture::new();
    fixture.nodes(2).await;
    fixture.restart_behind_another();
    fixture.create("web", json!({})).await;
    let kube = fixture.kube_calls();
    fixture.pass(600).await;
    assert_eq!(fixture.changes(), [""; 0], "CS-154 L9-801");
    assert_eq!(fixture.cluster.writes(kube), [], "CS-154 L9-801");
}

#[tokio::test(start_paused = true)]
async fn an_old_api_server_is_spared_what_it_does_not_keep() {
    for (case, version, answers, mode) in [
        ("CS-123 the first that keeps it", "v1.30.0", true, Some(IpMode::Vip)),
        ("CS-128 a vendor's number", "v1.31+vendor.1", true, Some(IpMode::Vip)),
        ("CS-125 the last that does not", "v1.29.14", true, None),
        ("it does not say", "v1.30.0", false, Some(IpMode::Vip)),
    ] {
        let fixture = Fixture::looking_again(Some(Duration::from_secs(60)), |_| {});
        fixture.cluster.api.set_version(version);
        if answers {
            fixture.cluster.ctx.cluster.ask_version().await.unwrap();
        }
        fixture.nodes(2).await;
        fixture.pass(5).await;
        fixture.create("web", annotated(&[("ip-mode", json!("VIP"))])).await;
        fixture.create("wrong", annotated(&[("ip-mode", json!("proxy"))])).await;
        fixture.pass(30).await;
        let modes: Vec<_> = fixture.get("web").await.ingress.into_iter().map(|entry| entry.ip_mode).collect();
        assert_eq!(modes, [mode.clone(), mode], "{case}");
        assert!(!fixture.warnings("wrong").is_empty(), "CS-126 {case}");
        fixture.assert_quiet(300, case).await;
    }
}
