//! The cloud on a port, with a client that speaks HTTP over loopback.

use brightbox_sim::{Served, serve_on_loopback};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::fixture::cloud;

/// One request over a connection of its own, and all that came back.
async fn exchange(served: &Served, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let (host, length) = (served.address, body.len());
    let message = format!(
        "{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer t\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(message.as_bytes()).await.unwrap();
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
    let servers = exchange(&served, "GET /1.0/servers", "").await;
    assert!(servers.starts_with("HTTP/1.1 200"), "{servers}");
    let url = json_of(&servers)[0]["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&format!("{}1.0/servers/", served.url())), "{url}");
    let made = exchange(&served, "POST /1.0/cloud_ips", r#"{"name":"web"}"#).await;
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    let state = json_of(&exchange(&served, "GET /_sim/state", "").await);
    assert_eq!(
        (state["servers"].as_array().unwrap().len(), &state["cloud_ips"][0]["name"]),
        (2, &json!("web"))
    );
    let calls = json_of(&exchange(&served, "GET /_sim/calls?since=1", "").await);
    assert_eq!((&calls["total"], &calls["mutations"]), (&json!(1), &json!(1)));
    assert_eq!(calls["operations"], json!({"cloud_ips.create": 1}));
    assert_eq!(calls["calls"][0]["body"], json!({"name": "web"}));
    assert!(exchange(&served, "GET /_sim/calls?since=x", "").await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn people_steer_it_through_the_control_port() {
    let cloud = cloud(|_| {});
    let served = serve_on_loopback(&cloud).await.unwrap();
    let good = async |line: &str, body: &str| {
        let answer = exchange(&served, line, body).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{line} {body}: {answer}");
        json_of(&answer)
    };
    let made = good("POST /_sim/servers", r#"{"name": "node-1", "zone": "gb1-b"}"#).await;
    assert_eq!(
        (cloud.servers()[0].id.as_str(), cloud.servers()[0].zone.as_deref()),
        (made["id"].as_str().unwrap(), Some("gb1-b"))
    );
    good("POST /_sim/delays", r#"{"build": 3600000, "latency": 1}"#).await;
    let balancer =
        r#"{"listeners":[{"protocol":"tcp","in":1,"out":2}],"healthcheck":{"type":"tcp","port":2}}"#;
    exchange(&served, "POST /1.0/load_balancers", balancer).await;
    assert_eq!(cloud.balancers()[0].status, "creating");
    good("POST /_sim/domains", r#"{"shop.example.org": ["192.0.2.1"]}"#).await;
    assert_eq!(cloud.resolve("shop.example.org").len(), 1);
    good("POST /_sim/domains", r#"{"shop.example.org": []}"#).await;
    assert!(cloud.resolve("shop.example.org").is_empty());
    let fault =
        r#"{"faults": [{"operation": "servers.list", "times": 1, "harm": {"masked": {"code": 504}}}]}"#;
    good("POST /_sim/faults", fault).await;
    assert_eq!(good("GET /_sim/faults", "").await["faults"].as_array().unwrap().len(), 1);
    assert!(exchange(&served, "GET /1.0/servers", "").await.starts_with("HTTP/1.1 504"));
    let watch = r#"{"faults": [{"harm": {"dropWatch": {}}}]}"#;
    for (line, body) in [
        ("POST /_sim/faults", watch),
        ("POST /_sim/delays", r#"{"naps": 1}"#),
        ("POST /_sim/servers", "{}"),
        ("POST /_sim/domains", r#"{"a": ["nonsense"]}"#),
    ] {
        let answer = exchange(&served, line, body).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{line} {body}: {answer}");
    }
    good("POST /_sim/expire-tokens", "").await;
    good("DELETE /_sim/calls", "").await;
    assert!(cloud.journal().is_empty() && !cloud.balancers().is_empty());
    good("POST /_sim/reset", "").await;
    assert!(cloud.balancers().is_empty());
    assert!(exchange(&served, "GET /_sim/nonsense", "").await.starts_with("HTTP/1.1 404"));
}
