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

use cloudberth_core::Secret;
use cloudberth_http::{Array, Grant, OAuth, OAuthSettings, Operation, Read, TokenSource, testing::Reply};
use fixture::{Fixture, TOKEN};
use serde_json::json;

const LINE: &str = "GET /v1/servers";

/// The id and the secret of a client, as the token endpoint gets them.
const PAIR: &str = "YXBwLTE6Y2wxZW50LXNlY3JldA==";

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

    let of_oauth = ["cl1ent-secret", "pa55-word", "acc3ss-token", "r3fresh-token", PAIR];
    shown.extend(oauth_errors(&fixture, of_oauth).await);

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("cloud call") && log.contains("list_servers"), "the log was listened to");
    assert!(log.contains("keeping the last good token") && log.contains("using the new token"), "{log}");
    assert!(shown.iter().any(|text| text.contains("[redacted]")), "the errors do quote the server");
    assert!(log.contains("access token fetched"), "{log}");
    for secret in [TOKEN, &TOKEN[..9], "an0ther-token"].iter().chain(&of_oauth) {
        assert!(!log.contains(secret), "L10-313 in the log");
        for text in &shown {
            assert!(!text.contains(secret), "L10-314 {text}");
        }
    }
}

/// What is shown when a spiteful token endpoint quotes all that it ever got and gave.
async fn oauth_errors(fixture: &Fixture, secrets: [&str; 5]) -> Vec<String> {
    let [client, password, access, refresh, pair] = secrets;
    let password = Secret::new(password).unwrap();
    let settings = OAuthSettings {
        path: "token/",
        id: TokenSource::fixed(Secret::new("app-1").unwrap()),
        secret: TokenSource::fixed(Secret::new(client).unwrap()),
        grant: Grant::Password { user: "me".to_owned(), password: password.clone() },
        scope: "all",
        credentials: "X_CLIENT",
    };
    let mut shown = vec![format!("{settings:?}")];
    let oauth = OAuth::new(fixture.builder(2), settings);
    let api = fixture.builder(1).authenticator(Arc::new(oauth.clone())).build();
    let given = json!({"access_token": access, "refresh_token": refresh});
    let quotes = [
        Reply::json(401, &json!({"error": format!("{client} {} {pair}", password.expose())})),
        Reply::json(400, &json!({"error": password.expose()})),
        Reply::json(200, &json!([access])),
        Reply::json(200, &json!({"access_token": access, "expires_in": refresh})),
        Reply::json(200, &given),
        Reply::json(400, &json!({"error": refresh, "error_description": client})),
        Reply::json(401, &json!({"error": format!("last words {refresh} {}", password.expose())})),
    ];
    fixture.cloud.on("POST /v1/token/", quotes);
    fixture.cloud.always(LINE, Reply::json(401, &json!({"detail": format!("{access} is void")})));
    for _ in 0..5 {
        shown.push(format!("{:?}", api.read::<Vec<u32>>(&fixture.call(60), servers()).await));
    }
    assert!(shown.last().unwrap().contains("last words"), "all quotes were heard: {shown:?}");
    shown.push(format!("{oauth:?}"));
    shown
}
