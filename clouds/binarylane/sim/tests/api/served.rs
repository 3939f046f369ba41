//! The cloud on a port, and the requests that control it.

use std::time::Duration;

use binarylane_sim::{Served, serve_on_loopback};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::fixture::cloud;

/// One request over a connection of its own, and all that came back.
async fn exchange(served: &Served, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let message = format!(
        "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer t\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    );
    stream.write_all(message.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that is cut off may end in an error.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}

fn json_of(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default()
}

#[tokio::test]
async fn the_api_and_its_controls_are_served() {
    let cloud = cloud(|settings| {
        settings.instances = 2;
        settings.build = Duration::from_secs(3600);
    });
    let served = serve_on_loopback(&cloud).await.unwrap();
    let first = exchange(&served, "GET /v2/servers?per_page=1", "").await;
    let next = json_of(&first)["links"]["pages"]["next"].clone();
    assert_eq!(next, format!("{}v2/servers?page=2&per_page=1", served.url()));
    let made = exchange(&served, "POST /v2/load_balancers", r#"{"name":"web"}"#).await;
    assert!(made.starts_with("HTTP/1.1 200"), "{made}");
    let state = async || json_of(&exchange(&served, "GET /_sim/state", "").await);
    assert_eq!(state().await["load_balancers"][0]["status"], "new");
    exchange(&served, "POST /_sim/advance", r#"{"millis": 3600000}"#).await;
    assert_eq!(state().await["load_balancers"][0]["status"], "active", "the clock was moved");

    exchange(&served, "POST /_sim/switches", r#"{"pageCap": 1}"#).await;
    assert_eq!(json_of(&exchange(&served, "GET /_sim/switches", "").await)["pageCap"], 1);
    let capped = json_of(&exchange(&served, "GET /v2/servers", "").await);
    assert_eq!(capped["servers"].as_array().unwrap().len(), 1);
    let faults =
        json!({"faults": [{"operation": "servers.list", "times": 1, "harm": {"masked": {"code": 504}}}]});
    exchange(&served, "POST /_sim/faults", &faults.to_string()).await;
    let masked = exchange(&served, "GET /v2/servers", "").await;
    assert!(masked.starts_with("HTTP/1.1 504") && masked.contains("<html>"), "{masked}");

    let calls = json_of(&exchange(&served, "GET /_sim/calls", "").await);
    assert_eq!((&calls["total"], &calls["mutations"]), (&json!(4), &json!(1)));
    assert_eq!(calls["operations"], json!({"servers.list": 3, "load_balancers.create": 1}));
    let table = [
        ("GET /_sim/calls?since=x", "", 400),
        ("POST /_sim/switches", "{\"pageCap\": \"x\"}", 400),
        ("POST /_sim/advance", "{}", 400),
        ("GET /_sim/nonsense", "", 404),
        ("POST /_sim/reset", "", 200),
    ];
    for (line, body, status) in table {
        let answer = exchange(&served, line, body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {answer}");
    }
    assert!(cloud.journal().is_empty() && cloud.balancers().is_empty(), "back to the beginning");
}
