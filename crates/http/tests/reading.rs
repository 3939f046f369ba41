//! Reading: what is repeated, what is waited for, and what an answer means.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of the common stage")]

mod fixture;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Category, Lookup};
use cloudberth_http::{Answer, Attempt, Dialect, Observer, Operation, Policy, Read, testing::Reply};
use fixture::Fixture;
use serde_json::{Value, json};

const LINE: &str = "GET /v1/servers/7";

fn server() -> Operation<Read> {
    Operation::get("get_server", "servers").segment("7")
}

fn found() -> Reply {
    Reply::json(200, &json!({"id": 7}))
}

fn throttled(after: Option<u64>) -> Category {
    Category::Throttled { retry_after: after.map(Duration::from_secs) }
}

/// Steady waits, so that the numbers in a table can be checked by eye.
fn steady() -> Policy {
    Policy { jitter: 0.0, ..Policy::default() }
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_asked_again_after_a_wait() {
    let date = "Tue, 06 May 2031 12:00:07 GMT";
    let late = |reply: Reply, ms| reply.after(Duration::from_millis(ms));
    let wait = |status, after| Reply::empty(status).header("retry-after", after);
    let table = [
        ("503 twice, then 200", vec![Reply::empty(503), Reply::empty(503), found()], vec![0, 500, 1_500]),
        ("BL-127 BB-160 429 with seconds", vec![wait(429, "3"), found()], vec![0, 3_000]),
        ("429 with a date", vec![wait(429, date), found()], vec![0, 7_000]),
        ("429 without a wait", vec![Reply::empty(429), Reply::empty(429), found()], vec![0, 500, 1_500]),
        (
            "429 with a wait in the past",
            vec![wait(429, "Tue, 06 May 2031 11:00:00 GMT"), found()],
            vec![0, 500],
        ),
        ("429 with nonsense", vec![wait(429, "soon"), found()], vec![0, 500]),
        ("503 with seconds", vec![wait(503, "4"), found()], vec![0, 4_000]),
        ("a wait shorter than ours", vec![Reply::empty(500), wait(503, "1"), found()], vec![0, 500, 1_500]),
        ("body cut in half", vec![found().cut(), found()], vec![0, 500]),
        ("connection lost", vec![Reply::dropped(), found()], vec![0, 500]),
        ("408 from a gateway", vec![Reply::empty(408), found()], vec![0, 500]),
        ("BB-16 slow head", vec![late(found(), 31_000), found()], vec![0, 30_500]),
        ("slow body", vec![found().body_after(Duration::from_secs(40)), found()], vec![0, 30_500]),
        ("slow, but in time", vec![late(found().body_after(Duration::from_secs(9)), 20_000)], vec![0]),
    ];
    for (case, replies, times) in table {
        let fixture = Fixture::new();
        fixture.cloud.on(LINE, replies);
        let client = fixture.builder(1).policy(steady()).build();
        let got: Value = client.read(&fixture.call(120), server()).await.expect(case);
        assert_eq!(got, json!({"id": 7}), "{case}");
        assert_eq!(fixture.cloud.times(), times, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_is_tried_again() {
    let fixture = Fixture::new();
    fixture.cloud.on(LINE, [Reply::refused(), Reply::refused(), found()]);
    let client = fixture.builder(1).policy(steady()).build();
    client.read::<Value>(&fixture.call(60), server()).await.unwrap();
    assert_eq!((fixture.cloud.times(), fixture.cloud.refusals()), (vec![1_500], 2));
}

#[tokio::test(start_paused = true)]
async fn some_answers_are_final() {
    let table = [
        (Reply::empty(401), Category::Unauthorised, "answered 401 Unauthorized"),
        (Reply::empty(403), Category::Unauthorised, "answered 403 Forbidden"),
        (
            Reply::text(400, r#"{"errors":{"a":["b"]}}"#),
            Category::UserInput,
            "answered 400 Bad Request: a: b",
        ),
        (Reply::text(422, r#"{"detail":"no"}"#), Category::UserInput, "Unprocessable Entity: no"),
        (Reply::empty(404), Category::NotFound, "answered 404 Not Found"),
        (Reply::empty(409), Category::Conflict, "answered 409 Conflict"),
        (Reply::empty(418), Category::Permanent, "answered 418"),
        (Reply::empty(501), Category::Permanent, "answered 501"),
        (
            Reply::empty(302).header("location", "https://login.example.org/"),
            Category::Permanent,
            "redirects are not followed, and this one leads to https://login.example.org/",
        ),
        (Reply::empty(304), Category::Permanent, "answered 304"),
        (Reply::empty(200), Category::Temporary, "answered 200 OK with an empty body"),
        (Reply::text(200, "<html>"), Category::Temporary, "answered 200 OK with a body that is not"),
    ];
    for (reply, category, text) in table {
        let fixture = Fixture::new();
        fixture.cloud.on(LINE, [reply.clone()]);
        let error = fixture.client().read::<Value>(&fixture.call(60), server()).await.unwrap_err();
        assert_eq!(error.category(), category, "{error}");
        assert!(error.message().starts_with("GET /v1/servers/7: "), "BB-154 BB-155 BL-126 {error}");
        assert!(error.message().contains(text), "{error}");
        assert_eq!(fixture.cloud.times(), [0], "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_end() {
    let fixture = Fixture::new();
    fixture.cloud.always(LINE, Reply::text(502, "<title>Bad Gateway</title>"));
    let client = fixture.builder(1).policy(steady()).build();
    let error = client.read::<Value>(&fixture.call(60), server()).await.unwrap_err();
    assert_eq!(error.category(), Category::Temporary);
    let want = "GET /v1/servers/7: answered 502 Bad Gateway: Bad Gateway (attempt 4)";
    assert_eq!(error.message(), want, "L12-303");
    assert_eq!(fixture.cloud.times(), [0, 500, 1_500, 3_500], "L12-303");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_not_waited_for() {
    let wait = |status, after| Reply::empty(status).header("retry-after", after);
    let table = [
        ("L12-304 seconds", wait(429, "30"), throttled(Some(30))),
        ("L12-305 a date", wait(429, "Tue, 06 May 2031 12:01:00 GMT"), throttled(Some(60))),
        ("L12-306 maintenance", wait(503, "600"), throttled(Some(600))),
        ("L12-307 to the very end", wait(429, "10"), throttled(Some(10))),
    ];
    for (case, reply, category) in table {
        let fixture = Fixture::new();
        fixture.cloud.on(LINE, [reply]);
        let error = fixture.client().read::<Value>(&fixture.call(10), server()).await.unwrap_err();
        assert_eq!(error.category(), category, "{case}");
        assert_eq!(fixture.millis(), 0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_read_outlives_its_call() {
    let slow = Duration::from_secs(100);
    let table = [
        ("L12-308 slow head", found().after(slow), 5_000, Category::Temporary),
        ("L12-309 slow body", found().body_after(slow), 5_000, Category::Temporary),
        (
            "L12-310 no time for another wait",
            Reply::empty(503).after(Duration::from_millis(4_700)),
            4_700,
            Category::Temporary,
        ),
    ];
    for (case, reply, end, category) in table {
        let fixture = Fixture::new();
        fixture.cloud.always(LINE, reply);
        let error = fixture.client().read::<Value>(&fixture.call(5), server()).await.unwrap_err();
        assert_eq!((fixture.millis(), error.category()), (end, category), "{case}: {error}");
        assert_eq!(fixture.cloud.times(), [0], "{case}");
    }
    let fixture = Fixture::new();
    let error = fixture.client().read::<Value>(&fixture.call(0), server()).await.unwrap_err();
    assert_eq!(
        (error.category(), fixture.cloud.lines().len()),
        (Category::Temporary, 0),
        "L12-311 over already"
    );
}

#[derive(serde::Deserialize)]
struct Server {
    id: u32,
}

#[tokio::test(start_paused = true)]
async fn only_the_api_itself_can_deny() {
    let not_found = json!({"detail": "Not found."});
    let table = [
        ("L1-313 there", found(), "present"),
        ("L1-314 not there", Reply::json(404, &not_found), "absent"),
        ("L1-315 a proxy's 404", Reply::text(404, "<html><title>404</title></html>"), "unknown"),
        ("L1-316 no such path", Reply::empty(404), "unknown"),
        ("L1-317 wrong token", Reply::empty(401), "unknown"),
        ("L1-318 forbidden", Reply::json(403, &not_found), "unknown"),
        ("L1-319 too many", Reply::empty(429), "unknown"),
        ("L1-320 outage", Reply::json(500, &not_found), "unknown"),
        ("L1-321 nothing said", Reply::empty(200), "unknown"),
        ("L1-322 another shape", Reply::json(200, &json!({"uuid": "x"})), "unknown"),
        ("L1-323 half a body", found().cut(), "unknown"),
        ("L1-324 lost", Reply::dropped(), "unknown"),
        ("L1-325 unreachable", Reply::refused(), "unknown"),
        ("L1-326 never answered", found().after(Duration::from_secs(1_000)), "unknown"),
    ];
    for (case, reply, want) in table {
        let fixture = Fixture::new();
        fixture.cloud.always(LINE, reply);
        let got = match fixture.client().lookup::<Server>(&fixture.call(60), server()).await {
            Lookup::Present(server) if server.id == 7 => "present",
            Lookup::Present(_) => "another",
            Lookup::Absent => "absent",
            Lookup::Unknown(_) => "unknown",
        };
        assert_eq!(got, want, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_can_be_stricter_about_absence() {
    let missing = |code: &str| Reply::json(404, &json!({ "code": code }));
    let strict = Dialect {
        absent: |answer: &Answer| answer.json::<Value>().is_ok_and(|v| v["code"] == "machine_not_found"),
        ..Dialect::default()
    };
    let fixture = Fixture::new();
    fixture.cloud.on(LINE, [missing("no_route"), missing("machine_not_found"), missing("no_route")]);
    let client = fixture.builder(1).dialect(strict).build();
    let call = fixture.call(60);
    assert!(matches!(client.lookup::<Value>(&call, server()).await, Lookup::Unknown(_)));
    assert_eq!(client.lookup::<Value>(&call, server()).await, Lookup::Absent);
    let lenient = server().dialect(Dialect::default());
    assert_eq!(client.lookup::<Value>(&call, lenient).await, Lookup::Absent);
}

#[tokio::test(start_paused = true)]
async fn a_question_needs_no_claim_and_is_not_repeated() {
    let fixture = Fixture::new();
    let token = Reply::json(200, &json!({"access_token": "x"}));
    fixture.cloud.on("POST /v1/token", [token, Reply::dropped()]);
    let (client, call) = (fixture.client(), fixture.standby(60));
    let ask = || Operation::question("token", "token").form(&[("grant_type", "password")]);
    let token: Value = client.read(&call, ask()).await.unwrap();
    assert_eq!(token, json!({"access_token": "x"}));
    let lost = client.read::<Value>(&call, ask()).await.unwrap_err();
    assert_eq!(lost.category(), Category::Temporary);
    assert_eq!(fixture.cloud.lines().len(), 2, "it may have been sent");
}

#[tokio::test(start_paused = true)]
async fn a_secret_answer_is_not_quoted() {
    let fixture = Fixture::new();
    fixture.cloud.always(LINE, Reply::json(200, &json!({"id": "fresh-t0ken"})));
    let (client, call) = (fixture.client(), fixture.call(60));
    let quoted = client.read::<Server>(&call, server()).await.map(|s| s.id).unwrap_err();
    assert!(quoted.message().contains("fresh-t0ken"), "{quoted}");
    let hidden = client.read::<Server>(&call, server().secret_answer()).await.map(|s| s.id).unwrap_err();
    let want =
        "GET /v1/servers/7: answered 200 OK with a body that is not what was expected: line 1, column 19";
    assert_eq!(hidden.message(), want, "L10-315");
}

#[tokio::test(start_paused = true)]
async fn a_body_without_end_is_not_read() {
    let fixture = Fixture::new();
    fixture.cloud.on(LINE, [Reply::text(200, &format!("\"{}\"", "x".repeat(2_000)))]);
    let client = fixture.builder(1).policy(Policy { body_limit: 1_000, ..Policy::default() }).build();
    let error = client.read::<Value>(&fixture.call(60), server()).await.unwrap_err();
    assert!(error.message().contains("more than 1000 bytes"), "{error}");
    assert_eq!(error.category(), Category::Permanent);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_waits_the_same() {
    async fn times(seed: u64) -> Vec<u128> {
        let fixture = Fixture::new();
        fixture.cloud.always(LINE, Reply::empty(503));
        let _ = fixture.builder(seed).build().read::<Value>(&fixture.call(60), server()).await;
        fixture.cloud.times()
    }
    let first = times(7).await;
    assert_eq!(first.len(), 4);
    assert_eq!(first, times(7).await);
    assert_ne!(first, times(8).await);
}

#[tokio::test(start_paused = true)]
async fn a_429_slows_every_clone_down() {
    let fixture = Fixture::new();
    fixture.cloud.on(LINE, [Reply::empty(429).header("retry-after", "2")]).always(LINE, found());
    let client = fixture.client();
    let call = fixture.call(60);
    let other = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(client.clone().budget().left(), 0);
        client.clone().read::<Value>(&call, server()).await
    };
    let (a, b) = tokio::join!(client.read::<Value>(&call, server()), other);
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(fixture.cloud.times(), [0, 2_000, 2_100]);
}

type Row = (&'static str, Option<u16>, &'static str, u128);

#[derive(Default)]
struct Counts(Mutex<Vec<Row>>, Mutex<Vec<u128>>);

impl Observer for Counts {
    fn attempted(&self, a: Attempt) {
        self.0.lock().unwrap().push((a.operation, a.status, a.outcome, a.took.as_millis()));
    }

    fn waited(&self, _operation: &'static str, wait: Duration) {
        self.1.lock().unwrap().push(wait.as_millis());
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_counted() {
    let fixture = Fixture::new();
    let slow = Duration::from_millis(30);
    fixture.cloud.on(
        LINE,
        [Reply::refused(), Reply::dropped(), found().cut(), Reply::empty(500), found().after(slow)],
    );
    fixture.cloud.on(LINE, [found().after(Duration::from_secs(9)), Reply::empty(404)]);
    let counts = Arc::new(Counts::default());
    let budget = cloudberth_http::Budget::new(Duration::from_secs(2), 1, fixture.clock.clone());
    let policy = Policy { attempts: 9, ..steady() };
    let client = fixture.builder(1).policy(policy).budget(budget).observer(counts.clone()).build();
    client.read::<Value>(&fixture.call(600), server()).await.unwrap();
    let _ = client.read::<Value>(&fixture.call(600), server().patience(Duration::from_secs(1))).await;
    let op = "get_server";
    let want = [
        (op, None, "not_sent", 0),
        (op, None, "lost", 0),
        (op, Some(200), "cut", 0),
        (op, Some(500), "answered", 0),
        (op, Some(200), "answered", 30),
        (op, None, "timeout", 1_000),
        (op, Some(404), "answered", 0),
    ];
    assert_eq!(*counts.0.lock().unwrap(), want);
    assert_eq!(counts.1.lock().unwrap()[..2], [1_500, 1_000]);
}
