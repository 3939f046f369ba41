//! The cloud on a port, with a client that speaks HTTP over loopback.

use std::time::Duration;

use cloudscale_sim::{Fault, Harm, Served, serve_on_loopback};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::fixture::cloud;

fn message(served: &Served, line: &str, body: &str) -> String {
    format!(
        "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer t\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    )
}

/// One request over a connection of its own, and all that came back.
async fn exchange(served: &Served, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(message(served, line, body).as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that is cut off may end in an error.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}

fn json_of(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn the_api_and_its_controls_are_served() {
    let cloud = cloud(|settings| settings.instances = 2);
    let served = serve_on_loopback(&cloud).await.unwrap();
    let servers = exchange(&served, "GET /v1/servers", "").await;
    assert!(servers.starts_with("HTTP/1.1 200"), "{servers}");
    let href = json_of(&servers)[0]["href"].as_str().unwrap().to_owned();
    assert!(href.starts_with(&format!("{}v1/servers/", served.url())), "{href}");
    let made = exchange(&served, "POST /v1/load-balancers", r#"{"name":"web","flavor":"lb-standard"}"#).await;
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    let path = format!("DELETE /v1/load-balancers/{}", json_of(&made)["uuid"].as_str().unwrap());
    let state = json_of(&exchange(&served, "GET /_sim/state", "").await);
    assert_eq!(
        (state["servers"].as_array().unwrap().len(), &state["load_balancers"][0]["name"]),
        (2, &json!("web"))
    );
    let deleted = exchange(&served, &path, "").await;
    assert!(deleted.starts_with("HTTP/1.1 204") && deleted.ends_with("\r\n\r\n"), "{deleted}");

    let calls = json_of(&exchange(&served, "GET /_sim/calls", "").await);
    assert_eq!((&calls["total"], &calls["mutations"]), (&json!(3), &json!(2)));
    let operations = json!({"servers.list": 1, "load-balancers.create": 1, "load-balancers.delete": 1});
    assert_eq!(calls["operations"], operations);
    assert_eq!(calls["calls"][1]["body"], json!({"name": "web", "flavor": "lb-standard"}));
    assert_eq!(
        (&calls["calls"][1]["status"], &calls["calls"][1]["outcome"]),
        (&json!(201), &json!("answered"))
    );
    let later = json_of(&exchange(&served, "GET /_sim/calls?since=2", "").await);
    assert_eq!(
        (&later["total"], &later["calls"][0]["operation"]),
        (&json!(1), &json!("load-balancers.delete"))
    );
    let table = [("GET /_sim/calls?since=x", 400), ("GET /_sim/nonsense", 404), ("POST /_sim/reset", 200)];
    for (line, status) in table {
        let answer = exchange(&served, line, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {answer}");
    }
    assert!(cloud.journal().is_empty(), "controls leave no trace");
}

#[tokio::test]
async fn faults_are_set_over_http() {
    let cloud = cloud(|settings| settings.instances = 2);
    let served = serve_on_loopback(&cloud).await.unwrap();
    let set = async |body: Value| exchange(&served, "POST /_sim/faults", &body.to_string()).await;
    let list = async || exchange(&served, "GET /v1/servers", "").await;
    let once = |harm: Value| json!({"faults": [{"operation": "servers.list", "times": 1, "harm": harm}]});
    let table = [
        (json!({"status": {"code": 429, "retryAfter": 3}}), "HTTP/1.1 429", "retry-after: 3"),
        (json!({"status": {"code": 502}}), "HTTP/1.1 502", "<html>"),
        (json!("notFound"), "HTTP/1.1 404", "Not found."),
        (json!("emptyList"), "HTTP/1.1 200", "\r\n\r\n[]"),
        (json!({"latency": {"millis": 1}}), "HTTP/1.1 200", "node-1"),
    ];
    for (harm, status, fragment) in table {
        set(once(harm.clone())).await;
        let answer = list().await;
        assert!(answer.starts_with(status) && answer.contains(fragment), "{harm}: {answer}");
    }
    for harm in ["lostCall", "lostAnswer"] {
        set(once(json!(harm))).await;
        assert_eq!(list().await, "", "{harm}: the connection is closed");
    }
    set(once(json!("truncated"))).await;
    let cut = list().await;
    let (head, body) = cut.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    assert!(body.len() < length.parse().unwrap(), "{cut}");

    set(json!({"faults": [{"harm": "lostCall"}]})).await;
    let shown = json_of(&exchange(&served, "GET /_sim/faults", "").await);
    assert_eq!(shown["faults"][0]["harm"], "lostCall");
    set(json!({"clear": true})).await;
    assert!(list().await.starts_with("HTTP/1.1 200"));
    let wrong = set(json!({"faults": [{"harm": "earthquake"}]})).await;
    assert!(wrong.starts_with("HTTP/1.1 400") && wrong.contains("earthquake"), "{wrong}");
}

#[tokio::test]
async fn a_client_that_hangs_up_undoes_nothing_and_dropping_the_server_closes_the_port() {
    let cloud = cloud(|_| {});
    cloud.add_fault(Fault::new(Harm::Latency { millis: 50 }));
    let served = serve_on_loopback(&cloud).await.unwrap();
    let body = r#"{"name":"web","flavor":"lb-standard"}"#;
    // Sent, and gone before there is an answer.
    let mut client = TcpStream::connect(served.address).await.unwrap();
    client.write_all(message(&served, "POST /v1/load-balancers", body).as_bytes()).await.unwrap();
    drop(client);
    while cloud.balancers().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let address = served.address;
    drop(served);
    tokio::task::yield_now().await;
    assert!(TcpStream::connect(address).await.is_err());
}
