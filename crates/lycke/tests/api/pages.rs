//! Probes, metrics, tokens and requests that ask for nothing.

use serde_json::json;

use crate::fixture::{demo, service, service_with, spec};

#[tokio::test(start_paused = true)]
async fn probes_need_no_token_and_all_else_does() {
    let it = service_with(&demo(), Some("s3cr3t")).await;
    for path in ["/healthz", "/readyz", "/version"] {
        assert_eq!(it.get(path).await.status, 200, "CL-69 {path}");
    }
    for path in [
        "/metrics",
        "/v1/machines",
        "/v1/events",
        "/v1/clusters",
        "/nothing",
        "/v1/loadbalancers/c2/default/web/stats",
    ] {
        let refused = it.get(path).await;
        assert_eq!(refused.code(), (401, "unauthorized".into()), "CL-69 {path}");
        let wrong = it.send("GET", path, &[("authorization", "Bearer wrong")], Vec::new()).await;
        assert_eq!(wrong.code(), (401, "unauthorized".into()), "CL-69 {path}");
        assert!(!wrong.text.contains("s3cr3t"), "L10-1510");
    }
    let right = it.send("GET", "/v1/machines", &[("authorization", "Bearer s3cr3t")], Vec::new()).await;
    assert_eq!(right.status, 200, "CL-69");
    let put = it.put("web", &spec("u")).await;
    assert_eq!(put.code(), (401, "unauthorized".into()), "CL-69");
    assert!(it.plane.keys().is_empty(), "CL-69");
    assert!(!format!("{:?}", it.api).contains("s3cr3t"), "L10-1511");
}

#[tokio::test(start_paused = true)]
async fn other_paths_and_methods_are_refused() {
    let it = service().await;
    let table = [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v2/machines", 404, "not_found"),
        ("GET", "/v1/machines/", 404, "not_found"),
        ("GET", "/v1/loadbalancers/c2/default", 404, "not_found"),
        ("GET", "/v1/loadbalancers/c2/default/a%2Fb", 404, "not_found"),
        ("POST", "/v1/loadbalancers", 405, "method_not_allowed"),
        ("POST", "/v1/clusters", 405, "method_not_allowed"),
        ("PUT", "/v1/machines/n-c2-1", 405, "method_not_allowed"),
        ("PATCH", "/v1/loadbalancers/c2/default/web", 405, "method_not_allowed"),
        ("DELETE", "/v1/machines", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
    ];
    for (method, path, status, code) in table {
        let refused = it.send(method, path, &[], Vec::new()).await;
        assert_eq!(refused.code(), (status, code.to_owned()), "{method} {path}");
        assert_eq!(refused.headers.contains_key("allow"), status == 405, "{method} {path}");
        assert!(!refused.message().is_empty());
    }
    assert_eq!(
        it.send("POST", "/v1/machines", &[], b"{".to_vec()).await.code(),
        (400, "invalid_spec".into())
    );
    assert_eq!(
        it.send("POST", "/v1/machines", &[], b"[]".to_vec()).await.code(),
        (400, "invalid_spec".into())
    );
}

#[tokio::test(start_paused = true)]
async fn metrics_have_the_names_of_the_contract() {
    let it = service().await;
    it.put("web", &spec("u")).await;
    it.plane.set_fault(53, Some(cloudberth_lycke::plane::ListenerFault::TooManyFiles));
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    let page = it.get("/metrics").await;
    assert!(page.headers["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    for line in [
        "cloudlycke_balancers 1",
        "cloudlycke_listeners{state=\"bound\"} 1",
        "cloudlycke_listeners{state=\"failed\"} 1",
        "cloudlycke_connections_total{result=\"accepted\"} 0",
        "cloudlycke_connections_total{result=\"rejected\"} 0",
        "cloudlycke_connections_total{result=\"failed\"} 0",
        "cloudlycke_connections_open 0",
        "cloudlycke_bytes_total{direction=\"in\"} 0",
        "cloudlycke_bytes_total{direction=\"out\"} 0",
        "cloudlycke_backends{healthy=\"unknown\"} 2",
        "cloudlycke_udp_flows 0",
        "cloudlycke_inventory_valid 1",
        "cloudlycke_inventory_age_seconds 7",
        "cloudlycke_vagrant_age_seconds NaN",
    ] {
        assert!(page.text.lines().any(|known| known == line), "{line} in\n{}", page.text);
    }
    let version = it.get("/version").await.json();
    assert_eq!(version["name"], json!("cloudlycke"));
}
