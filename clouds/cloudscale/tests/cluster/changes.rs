//! What a change of a Service does to what is there, and what it leaves alone.

use serde_json::{Value, json};

use crate::fixture::{Fixture, annotated};

#[allow(clippy::needless_pass_by_value, reason = "it is made where it is passed")]
fn ports(list: Value) -> Value {
    json!({"spec": {"ports": list}})
}

fn port(name: &str, number: u16, node_port: u16) -> Value {
    json!({"name": name, "port": number, "protocol": "TCP", "nodePort": node_port})
}

/// Four nodes, and a Service that is served.
async fn served(body: Value) -> Fixture {
    let fixture = Fixture::new();
    fixture.nodes(4).await;
    fixture.pass(5).await;
    fixture.create("web", body).await;
    fixture.pass(30).await;
    fixture.cloud.clear_journal();
    fixture
}

/// Which kinds of parts stay entirely as they are: pools, listeners, monitors, members.
async fn kept(fixture: &Fixture, change: Value) -> [bool; 4] {
    let before = fixture.parts();
    fixture.edit("web", change).await;
    fixture.pass(60).await;
    let after = fixture.parts();
    assert_eq!(fixture.cloud.emptied_pools(), [], "a pool with healthy members is never emptied");
    std::array::from_fn(|kind| before[kind].is_subset(&after[kind]))
}

#[tokio::test(start_paused = true)]
async fn a_port_that_keeps_its_name_only_moves_its_listener() {
    let one = |number| ports(json!([{"port": number, "protocol": "TCP", "nodePort": 30080}]));
    let fixture = served(one(80)).await;
    assert_eq!(kept(&fixture, one(8080)).await, [true, false, true, true], "CS-142");
    assert_eq!(fixture.shape("web").await[0].0, 8080, "CS-142");
    assert_eq!(fixture.changes().len(), 2, "CS-142 {:?}", fixture.changes());

    let fixture = served(ports(json!([port("http", 80, 30080)]))).await;
    assert_eq!(
        kept(&fixture, ports(json!([port("http", 8080, 30080)]))).await,
        [true, false, true, true],
        "CS-142"
    );
}

#[tokio::test(start_paused = true)]
async fn a_port_with_a_new_name_gets_a_new_pool() {
    let unnamed = ports(json!([{"port": 80, "protocol": "TCP", "nodePort": 30080}]));
    let table = [
        (
            "CS-143 renamed",
            ports(json!([port("http", 80, 30080)])),
            ports(json!([port("https", 80, 30080)])),
            "tcp/https",
        ),
        ("CS-143 named", unnamed, ports(json!([port("http", 80, 30080)])), "tcp/http"),
    ];
    for (case, old, new, name) in table {
        let fixture = served(old).await;
        assert_eq!(kept(&fixture, new).await, [false, false, false, false], "{case}");
        let pools: Vec<_> = fixture.cloud.pools().into_iter().map(|pool| pool.name).collect();
        assert_eq!(pools, [name], "{case}");
        assert_eq!(fixture.shape("web").await[0].1.len(), 4, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_ports_are_not_disturbed() {
    let fixture = served(ports(json!([port("a", 80, 30080)]))).await;
    let two = ports(json!([port("a", 80, 30080), port("b", 81, 30081)]));
    assert_eq!(kept(&fixture, two).await, [true; 4], "CS-144 added");
    assert_eq!(fixture.shape("web").await.len(), 2, "CS-144");
    let before = fixture.parts();
    fixture.edit("web", ports(json!([port("a", 80, 30080)]))).await;
    fixture.pass(30).await;
    assert_eq!(fixture.shape("web").await.len(), 1, "CS-144");
    assert!(fixture.parts().iter().zip(&before).all(|(now, then)| now.is_subset(then)), "CS-144 removed");
}

#[tokio::test(start_paused = true)]
async fn ports_that_change_places_both_let_go_first() {
    let fixture = served(ports(json!([port("a", 80, 30080), port("b", 81, 30081)]))).await;
    fixture.edit("web", ports(json!([port("a", 81, 30080), port("b", 80, 30081)]))).await;
    fixture.pass(60).await;
    let changes = fixture.changes();
    assert_eq!(
        changes,
        ["listeners.delete", "listeners.delete", "listeners.create", "listeners.create"],
        "CS-158"
    );
    let stock = fixture.cloud.resources();
    for listener in stock.listeners.values() {
        let pool = &stock.pools[listener.pool.as_ref().unwrap()].name;
        assert_eq!(pool, if listener.protocol_port == 81 { "tcp/a" } else { "tcp/b" }, "CS-158");
    }
    assert_eq!(fixture.warnings("web"), [""; 0], "CS-158");
}

#[tokio::test(start_paused = true)]
async fn small_settings_are_changed_in_place() {
    let fixture = served(json!({})).await;
    let timeouts = [("timeout-client-data-ms", json!("60000")), ("timeout-member-data-ms", json!("70000"))];
    assert_eq!(kept(&fixture, annotated(&timeouts)).await, [true; 4], "CS-145");
    assert_eq!(fixture.changes(), ["listeners.update", "listeners.update"], "CS-94 CS-145");
    fixture.cloud.clear_journal();
    assert_eq!(kept(&fixture, annotated(&[("name", json!("front door"))])).await, [true; 4], "CS-145");
    assert_eq!(fixture.changes(), ["load-balancers.update"], "CS-79 CS-145");
    assert_eq!(fixture.balancer("web").await.name, "front door", "CS-145");
    fixture.cloud.clear_journal();
    assert_eq!(
        kept(&fixture, annotated(&[("health-monitor-delay-s", json!("5"))])).await,
        [true; 4],
        "CS-97"
    );
    assert_eq!(fixture.changes(), ["health-monitors.update"], "CS-97");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_changed_is_refused_and_the_rest_goes_on() {
    for (key, value) in
        [("flavor", "lb-large"), ("zone", "lpg1"), ("vip-addresses", r#"[{"address":"10.0.0.9"}]"#)]
    {
        let fixture = served(json!({})).await;
        let before = fixture.parts();
        fixture.annotate("web", &[(key, json!(value))]).await;
        fixture.pass(30).await;
        assert_eq!(fixture.changes(), [""; 0], "CS-147 {key}");
        let warnings = fixture.warnings("web");
        assert!(warnings.iter().any(|line| line.contains(key)), "CS-147 {key}: {warnings:?}");
        assert_eq!(fixture.parts(), before, "CS-147 {key}");
        fixture.node("node-05").await;
        fixture.pass(30).await;
        assert_eq!(fixture.shape("web").await[0].1.len(), 5, "CS-147 {key}: nodes are still applied");
        assert_eq!(fixture.get("web").await.ingress.len(), 2, "CS-147 {key}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_traffic_policy_changes_and_changes_back() {
    let policy = |name: &str| json!({"spec": {"externalTrafficPolicy": name}});
    let fixture = served(json!({})).await;
    let checks = || {
        let monitor = fixture.cloud.monitors().remove(0);
        (monitor.kind, monitor.http.map(|http| (http.url_path, http.version)))
    };
    assert_eq!(checks(), ("tcp".to_owned(), None), "CS-140");
    kept(&fixture, policy("Local")).await;
    let livez = Some(("/livez".to_owned(), "1.0".to_owned()));
    assert_eq!(checks(), ("http".to_owned(), livez), "CS-70 CS-140");
    let port = fixture.get("web").await.health_check_node_port;
    let asked: Vec<_> = fixture.cloud.members().iter().map(|m| m.monitor_port.map(i64::from)).collect();
    assert_eq!(asked, [Some(port); 4], "CS-70 CS-140");
    kept(&fixture, policy("Cluster")).await;
    assert_eq!(checks(), ("tcp".to_owned(), None), "CS-140");
    assert!(fixture.cloud.members().iter().all(|m| m.monitor_port == Some(m.protocol_port)), "CS-140");
    assert_eq!(fixture.shape("web").await[0].1.len(), 4, "CS-140");
}

#[tokio::test(start_paused = true)]
async fn pools_are_replaced_without_a_moment_without_members() {
    let fixture = served(json!({})).await;
    let shape = fixture.shape("web").await;
    kept(&fixture, annotated(&[("pool-algorithm", json!("source_ip"))])).await;
    assert_eq!(fixture.cloud.pools().len(), 1);
    assert_eq!(fixture.cloud.pools()[0].algorithm, "source_ip");
    kept(&fixture, annotated(&[("pool-protocol", json!("proxyv2"))])).await;
    assert_eq!(fixture.cloud.pools()[0].protocol, "proxyv2");
    assert_eq!(fixture.shape("web").await, shape);
}

#[tokio::test(start_paused = true)]
async fn a_recorded_id_that_is_put_back_is_noticed_at_once() {
    let fixture = Fixture::new();
    fixture.nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    let id = fixture.balancer("web").await.uuid;
    let other = json!({"name": "by-hand", "flavor": "lb-standard", "zone": "rma1"});
    let other = fixture.cloud.seed("load-balancers", &other).unwrap();
    for round in 0..2 {
        fixture.annotate("web", &[("uuid", json!(other))]).await;
        fixture.node(&format!("late-{round}")).await;
        fixture.pass(120).await;
        assert!(!fixture.warnings("web").is_empty(), "it is not known which one is meant");
        fixture.annotate("web", &[("uuid", json!(id))]).await;
        fixture.pass(2).await;
        assert_eq!(
            fixture.shape("web").await[0].1.len(),
            3 + round,
            "L4-828 nobody waits for the end of a back-off"
        );
        fixture.assert_quiet(30, "L4-829 what we wrote ourselves wakes nobody").await;
    }
}
