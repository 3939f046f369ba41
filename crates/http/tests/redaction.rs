//! A token is in nothing that leaves the client.
//!
//! This test is alone in its program: `tracing` remembers for the whole process whether anybody listens to a line, and
//! a test beside it, to which nobody listens, could be the first to say so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of the common stage")]

mod fixture;

use std::{
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_http::{Array, Operation, Read, TokenSource, testing::Reply};
use fixture::{Fixture, TOKEN};
use serde_json::json;

const LINE: &str = "GET /v1/servers";

fn servers() -> Operation<Read> {
    Operation::get("list_servers", "servers")
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_token_is_in_no_log_line_error_or_debug_output() {
    let log = Log::default();
    let sink = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || sink.clone())
        .with_ansi(false)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let fixture = Fixture::new();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, TOKEN).unwrap();
    let source = TokenSource::file(&path, fixture.clock.clone()).unwrap();
    let client = fixture.builder(1).authenticator(Arc::new(source.clone())).build();

    // Everything a spiteful server can do with a token that it was sent.
    let overlong = format!("{}{TOKEN}", "x".repeat(560));
    let echoes = [
        Reply::text(400, TOKEN),
        Reply::text(400, &overlong),
        Reply::json(401, &json!({"detail": format!("Bearer {TOKEN} is unknown")})),
        Reply::json(422, &json!({"errors": {TOKEN: [TOKEN]}})),
        Reply::text(403, &format!("<title>{TOKEN}</title>")),
        Reply::json(200, &json!(TOKEN)),
        Reply::json(200, &json!({"id": TOKEN})),
        Reply::text(301, "").header("location", &format!("https://x/?t={TOKEN}")),
        Reply::json(200, &json!([{"id": TOKEN}])),
        Reply::json(200, &json!([])).header("link", &format!("<https://evil/{TOKEN}>; rel=next")),
    ];
    let mut shown = vec![format!("{client:?} {source:?} {:?}", client.budget())];
    for echo in echoes {
        fixture.cloud.on(LINE, vec![echo; 4]);
        let call = fixture.call(60);
        shown.push(format!("{:?}", client.read::<Vec<u32>>(&call, servers()).await));
        shown.push(format!("{:?}", client.lookup::<Vec<u32>>(&call, servers()).await));
        let id = |n: &u32| *n;
        shown.push(format!("{:?}", client.list(&call, servers(), &Array, id).await));
        shown.push(format!("{:?}", client.list(&call, servers(), &cloudberth_http::LinkHeader, id).await));
        let _ = client.write_only(&call, Operation::post("x", "x").json(&json!({"password": TOKEN}))).await;
    }
    fs::write(&path, "bad\ntoken").unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let _ = source.current();
    fs::write(&path, "an0ther-token").unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    shown.push(format!("{:?}", source.current()));

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("cloud call") && log.contains("list_servers"), "the log was listened to");
    assert!(log.contains("keeping the last good token") && log.contains("using the new token"), "{log}");
    assert!(shown.iter().any(|text| text.contains("[redacted]")), "the errors do quote the server");
    for secret in [TOKEN, &TOKEN[..9], "an0ther-token"] {
        assert!(!log.contains(secret), "L10-313 in the log");
        for text in &shown {
            assert!(!text.contains(secret), "L10-314 {text}");
        }
    }
}
