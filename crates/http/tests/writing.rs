//! Writing: sent once, by the leader, with an outcome that is never guessed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of the common stage")]

mod fixture;

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Category, Tick, lb::Outcome};
use cloudberth_http::{Answer, Dialect, Operation, Policy, Write, testing::Reply};
use fixture::{Fixture, LeaderClaim};
use serde_json::{Value, json};

fn create() -> Operation<Write> {
    Operation::post("create_load_balancer", "load-balancers").json(&json!({"name": "a"}))
}

fn replace() -> Operation<Write> {
    Operation::put("update_load_balancer", "load-balancers").segment("1").json(&json!({"name": "a"}))
}

fn made() -> Reply {
    Reply::json(201, &json!({"id": 1}))
}

fn brief<T>(outcome: &Outcome<T>) -> (&'static str, Option<Category>) {
    match outcome {
        Outcome::Done(_) => ("done", None),
        Outcome::NotThere => ("not there", None),
        Outcome::Refused { why, .. } => ("refused", Some(why.category())),
        Outcome::Failed(error) => ("failed", Some(error.category())),
        Outcome::Unknown(error) => ("unknown", Some(error.category())),
    }
}

fn steady() -> Policy {
    Policy { jitter: 0.0, ..Policy::default() }
}

const TEMPORARY: Option<Category> = Some(Category::Temporary);

#[derive(serde::Deserialize)]
struct Made {
    id: u32,
}

#[tokio::test(start_paused = true)]
async fn a_post_is_sent_once_and_its_outcome_is_not_guessed() {
    let page = "<html><title>Welcome</title></html>";
    let seconds = Duration::from_secs;
    let throttled = |s: Option<u64>| Some(Category::Throttled { retry_after: s.map(seconds) });
    let table = [
        ("created", made(), ("done", None)),
        ("invalid", Reply::json(400, &json!({"name": "taken"})), ("failed", Some(Category::UserInput))),
        ("unprocessable", Reply::empty(422), ("failed", Some(Category::UserInput))),
        (
            "refused, its explanation lost",
            Reply::text(400, "half").cut(),
            ("failed", Some(Category::UserInput)),
        ),
        (
            "refused, its explanation slow",
            Reply::text(400, "half").body_after(seconds(99)),
            ("failed", Some(Category::UserInput)),
        ),
        ("wrong token", Reply::empty(401), ("failed", Some(Category::Unauthorised))),
        ("read-only token", Reply::empty(403), ("failed", Some(Category::Unauthorised))),
        ("wrong state", Reply::empty(409), ("failed", Some(Category::Conflict))),
        ("BB-160 too many", Reply::empty(429).header("retry-after", "2"), ("failed", throttled(Some(2)))),
        ("moved", Reply::empty(308), ("failed", Some(Category::Permanent))),
        ("see other", Reply::empty(303), ("unknown", Some(Category::Permanent))),
        ("gateway lost patience with us", Reply::empty(408), ("unknown", TEMPORARY)),
        ("crash", Reply::empty(500), ("unknown", TEMPORARY)),
        ("gateway", Reply::text(502, page), ("unknown", TEMPORARY)),
        ("maintenance", Reply::empty(503), ("unknown", TEMPORARY)),
        ("gateway time-out", Reply::empty(504).after(seconds(60)), ("unknown", TEMPORARY)),
        ("closed before the answer", Reply::dropped(), ("unknown", TEMPORARY)),
        ("closed after a while", Reply::dropped().after(seconds(1)), ("unknown", TEMPORARY)),
        ("half a body", made().cut(), ("unknown", TEMPORARY)),
        ("empty success", Reply::empty(201), ("unknown", TEMPORARY)),
        ("success of a proxy", Reply::text(200, page), ("unknown", TEMPORARY)),
        ("success of another shape", Reply::json(200, &json!({"uuid": 1})), ("unknown", TEMPORARY)),
        ("slow head", made().after(seconds(66)), ("unknown", TEMPORARY)),
        ("slow body", made().body_after(seconds(66)), ("unknown", TEMPORARY)),
    ];
    for (case, reply, want) in table {
        let fixture = Fixture::new();
        fixture.cloud.on("POST /v1/load-balancers", [reply]);
        let outcome = fixture.client().write::<Made>(&fixture.call(600), create()).await;
        assert_eq!(brief(&outcome), want, "{case}");
        assert!(!matches!(outcome, Outcome::Done(made) if made.id != 1), "{case}");
        assert_eq!(fixture.cloud.lines(), ["POST /v1/load-balancers"], "exactly once: {case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_had_no_effect_may_be_sent_again() {
    let down = || Reply::json(503, &json!({"detail": "maintenance"}));
    let busy = || Reply::empty(429);
    let asks = |seconds: &str| busy().header("retry-after", seconds);
    let throttled = |s| Some(Category::Throttled { retry_after: s });
    let wait = Some(Duration::from_secs(2));
    let table = [
        ("L12-829 throttled, then done", vec![busy(), made()], ("done", None), 2),
        (
            "L12-830 there is an end to it",
            vec![busy(), busy(), busy(), busy()],
            ("failed", throttled(None)),
            4,
        ),
        ("a moment is waited for", vec![asks("1"), made()], ("done", None), 2),
        ("L12-831 more than a moment is not", vec![asks("2")], ("failed", throttled(wait)), 1),
        ("L6-825 not done, then done", vec![down(), down(), made()], ("done", None), 3),
        ("L6-826 not done, then lost", vec![down(), Reply::dropped()], ("unknown", TEMPORARY), 2),
        ("not done in the end", vec![down(), down(), down(), down()], ("failed", TEMPORARY), 4),
        ("L6-827 a page is nobody's word", vec![Reply::text(503, "<html>")], ("unknown", TEMPORARY), 1),
    ];
    for (case, replies, want, sent) in table {
        let fixture = Fixture::new();
        fixture.cloud.on("POST /v1/load-balancers", replies);
        let undone = |answer: &Answer| answer.status() == 503 && answer.is_json_object();
        let client = fixture.builder(100).dialect(Dialect { undone, ..Dialect::default() }).build();
        let outcome = client.write::<Value>(&fixture.call(60), create()).await;
        assert_eq!(brief(&outcome), want, "{case}");
        assert_eq!(fixture.cloud.lines().len(), sent, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_not_sent_again_without_a_claim() {
    let fixture = Fixture::new();
    fixture.cloud.always("POST /v1/load-balancers", Reply::empty(429));
    // A little more than the reserve: enough for the first attempt, not for the second.
    let gate = LeaderClaim::until(0);
    gate.set(Some(Tick(Duration::from_millis(3_300))));
    let outcome = fixture.client().write::<Value>(&fixture.guarded(60, gate), create()).await;
    assert_eq!(brief(&outcome).0, "failed", "L9-820 {outcome:?}");
    assert_eq!(fixture.cloud.lines().len(), 1, "L9-821");
}

#[tokio::test(start_paused = true)]
async fn what_never_left_may_be_sent_again() {
    let fixture = Fixture::new();
    fixture.cloud.on("POST /v1/load-balancers", [Reply::refused(), Reply::refused(), made()]);
    let outcome = fixture.client().write::<Value>(&fixture.call(60), create()).await;
    assert_eq!(brief(&outcome), ("done", None));
    assert_eq!(fixture.cloud.lines().len(), 1);

    let fixture = Fixture::new();
    fixture.cloud.always("POST /v1/load-balancers", Reply::refused());
    let outcome = fixture.client().write::<Value>(&fixture.call(60), create()).await;
    assert_eq!(brief(&outcome), ("failed", TEMPORARY));
    assert_eq!(fixture.cloud.refusals(), 4, "L12-312");
}

#[tokio::test(start_paused = true)]
async fn a_declared_put_is_repeated_but_doubt_stays() {
    let done = || Reply::json(200, &json!({"id": 1}));
    let table = [
        ("lost, then done", vec![Reply::dropped(), done()], ("done", None), 2),
        ("throttled, then done", vec![Reply::empty(429), done()], ("done", None), 2),
        ("503 twice, then done", vec![Reply::empty(503), Reply::empty(503), done()], ("done", None), 3),
        (
            "throttled, then refused",
            vec![Reply::empty(429), Reply::empty(422)],
            ("failed", Some(Category::UserInput)),
            2,
        ),
        (
            "lost, then refused",
            vec![Reply::dropped(), Reply::empty(422)],
            ("unknown", Some(Category::UserInput)),
            2,
        ),
        (
            "lost, then forbidden",
            vec![Reply::dropped(), Reply::empty(403)],
            ("unknown", Some(Category::Unauthorised)),
            2,
        ),
    ];
    for (case, replies, want, times) in table {
        let fixture = Fixture::new();
        fixture.cloud.on("PUT /v1/load-balancers/1", replies.clone());
        let outcome = fixture.client().write::<Value>(&fixture.call(60), replace().repeatable()).await;
        assert_eq!((brief(&outcome), fixture.cloud.lines().len()), (want, times), "{case}");

        let fixture = Fixture::new();
        fixture.cloud.on("PUT /v1/load-balancers/1", replies);
        let _ = fixture.client().write::<Value>(&fixture.call(60), replace()).await;
        // What was throttled certainly had no effect.
        let times = if case.starts_with("throttled") { 2 } else { 1 };
        assert_eq!(fixture.cloud.lines().len(), times, "not declared, not repeated in doubt: {case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_says_whether_the_thing_was_there() {
    let gone = || Reply::json(404, &json!({"detail": "Not found."}));
    let table = [
        ("removed", vec![Reply::empty(204)], ("done", None)),
        ("forbidden", vec![Reply::empty(403)], ("failed", Some(Category::Unauthorised))),
        ("gone before", vec![gone()], ("not there", None)),
        ("lost, gone the second time", vec![Reply::dropped(), gone()], ("not there", None)),
        ("a proxy's 404", vec![Reply::text(404, "<html>")], ("failed", Some(Category::NotFound))),
        ("a proxy's success", vec![Reply::text(200, "<html>")], ("unknown", TEMPORARY)),
        ("success with a body", vec![Reply::json(200, &json!({"ok": true}))], ("done", None)),
    ];
    for (case, replies, want) in table {
        let fixture = Fixture::new();
        fixture.cloud.on("DELETE /v1/load-balancers/1", replies);
        let delete = Operation::delete("delete_load_balancer", "load-balancers").segment("1").repeatable();
        let outcome = fixture.client().remove(&fixture.call(60), delete).await;
        assert_eq!(brief(&outcome), want, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mistake_in_the_request_sends_nothing() {
    let fixture = Fixture::new();
    let nameless = Operation::delete("delete_load_balancer", "load-balancers").segment("");
    let outcome = fixture.client().remove(&fixture.call(60), nameless).await;
    assert_eq!(brief(&outcome), ("failed", Some(Category::UserInput)));
    assert_eq!(fixture.cloud.lines().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_claim_nothing_is_sent() {
    let gates: [(&str, Arc<LeaderClaim>, Category); 3] = [
        ("L9-307 not the leader", Arc::new(LeaderClaim::default()), Category::Cancelled),
        ("L9-308 less than the reserve left", LeaderClaim::until(2), Category::Temporary),
        ("L9-309 the claim is over", LeaderClaim::until(0), Category::Temporary),
    ];
    for (case, gate, category) in gates {
        let fixture = Fixture::new();
        fixture.cloud.always("POST /v1/load-balancers", made());
        let outcome = fixture.client().write::<Value>(&fixture.guarded(60, gate), create()).await;
        assert_eq!(brief(&outcome), ("failed", Some(category)), "{case}");
        assert_eq!(fixture.cloud.lines().len(), 0, "BL-134 {case}");
        assert_eq!(fixture.client().budget().left(), 20, "{case}");
    }
    let fixture = Fixture::new();
    fixture.cloud.always("GET /v1/x", Reply::json(200, &json!(1)));
    assert!(
        fixture.client().read::<Value>(&fixture.standby(9), Operation::get("x", "x")).await.is_ok(),
        "L9-310"
    );
}

#[tokio::test(start_paused = true)]
async fn the_claim_is_looked_at_when_the_request_is_sent() {
    // L9-311: there was a claim when the wait for the budget began, and none when it ended.
    let fixture = Fixture::new();
    fixture.cloud.always("POST /v1/load-balancers", made());
    let budget = cloudberth_http::Budget::new(Duration::from_secs(5), 1, fixture.clock.clone());
    let client = fixture.builder(1).budget(budget).build();
    let claim = LeaderClaim::until(100);
    let call = fixture.guarded(60, claim.clone());
    assert_eq!(brief(&client.write::<Value>(&call, create()).await), ("done", None));
    let (outcome, ()) = tokio::join!(client.write::<Value>(&call, create()), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        claim.set(None);
    });
    assert_eq!(brief(&outcome), ("failed", Some(Category::Cancelled)), "L9-311");
    assert_eq!((fixture.cloud.lines().len(), fixture.millis()), (1, 5_000), "L9-311");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_had_to_wait_into_the_reserve_is_not_sent_and_costs_nothing() {
    let fixture = Fixture::new();
    fixture.cloud.always("POST /v1/load-balancers", made());
    let budget = cloudberth_http::Budget::new(Duration::from_secs(5), 1, fixture.clock.clone());
    let client = fixture.builder(1).budget(budget).build();
    let call = fixture.guarded(60, LeaderClaim::until(7));
    assert_eq!(brief(&client.write::<Value>(&call, create()).await), ("done", None));
    let outcome = client.write::<Value>(&call, create()).await;
    assert_eq!(brief(&outcome), ("failed", Some(Category::Temporary)), "L9-518");
    let told = matches!(&outcome, Outcome::Failed(why) if why.message().contains("claim is about to end"));
    assert!(told, "L9-518 {outcome:?}");
    assert_eq!((fixture.cloud.lines().len(), fixture.millis()), (1, 5_000), "L9-518");
    assert_eq!(client.budget().left(), 1, "L12-502 the permit is given back");
}

#[tokio::test(start_paused = true)]
async fn a_write_counts_as_under_way_until_the_server_is_done_with_it() {
    let slow = Duration::from_secs(20);
    let table = [
        ("answered", vec![made()], None),
        ("refused", vec![Reply::empty(422)], None),
        ("failed", vec![Reply::empty(500)], None),
        ("a gateway did not wait", vec![Reply::empty(504)], Some(30)),
        ("not sent at first", vec![Reply::refused(), made()], None),
        ("no answer", vec![Reply::dropped()], Some(30)),
        ("given up", vec![made().after(slow)], Some(30)),
    ];
    for (case, replies, doubt) in table {
        let fixture = Fixture::new();
        fixture.cloud.on("POST /v1/load-balancers", replies);
        let claim = LeaderClaim::until(30);
        let client =
            fixture.builder(1).policy(Policy { write_attempt: Duration::from_secs(10), ..steady() }).build();
        let call = fixture.guarded(60, claim.clone());
        let _ = client.write::<Value>(&call, create()).await;
        assert_eq!(claim.writes(), (0, doubt.map(Tick::from_secs)), "L9-519 {case}");
    }
    let fixture = Fixture::new();
    fixture.cloud.on("POST /v1/load-balancers", [made().after(slow)]);
    let (claim, client) = (LeaderClaim::until(30), fixture.client());
    let call = fixture.guarded(60, claim.clone());
    let cut = tokio::time::timeout(Duration::from_secs(1), client.write::<Value>(&call, create()));
    let (cut, ()) = tokio::join!(cut, async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(claim.writes(), (1, None), "L9-520 under way");
    });
    assert!(cut.is_err());
    assert_eq!(claim.writes(), (0, Some(Tick::from_secs(30))), "L9-520 its task was dropped");
}

#[tokio::test(start_paused = true)]
async fn between_attempts_the_claim_may_go() {
    let fixture = Fixture::new();
    fixture.cloud.on("PUT /v1/load-balancers/1", [Reply::empty(503), made()]);
    let claim = LeaderClaim::until(100);
    let client = fixture.builder(1).policy(steady()).build();
    let call = fixture.guarded(60, claim.clone());
    let (outcome, ()) = tokio::join!(client.write::<Value>(&call, replace().repeatable()), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        claim.set(None);
    });
    assert_eq!(
        brief(&outcome),
        ("unknown", Some(Category::Cancelled)),
        "L9-312 the first attempt stays in doubt"
    );
    assert_eq!(fixture.cloud.lines().len(), 1, "L9-312");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_claim_cuts_a_write_under_way() {
    let slow = Duration::from_secs(30);
    for (case, reply) in [("L9-313 head", made().after(slow)), ("L9-314 body", made().body_after(slow))] {
        let fixture = Fixture::new();
        fixture.cloud.on("POST /v1/load-balancers", [reply]);
        let outcome =
            fixture.client().write::<Value>(&fixture.guarded(60, LeaderClaim::until(8)), create()).await;
        assert_eq!(brief(&outcome), ("unknown", Some(Category::Temporary)), "{case}");
        assert_eq!(fixture.millis(), 8_000, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_renewed_carries_a_slow_write_on() {
    let fixture = Fixture::new();
    fixture.cloud.on("POST /v1/load-balancers", [made().after(Duration::from_secs(20))]);
    let claim = LeaderClaim::until(8);
    let call = fixture.guarded(60, claim.clone());
    let client = fixture.client();
    let (outcome, ()) = tokio::join!(client.write::<Value>(&call, create()), async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        claim.set(Some(Tick::from_secs(14)));
        tokio::time::sleep(Duration::from_secs(6)).await;
        claim.set(Some(Tick::from_secs(27)));
    });
    assert_eq!(brief(&outcome), ("done", None), "L9-315");
    assert_eq!(fixture.millis(), 20_000, "L9-315");
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_is_what_was_described() {
    let fixture = Fixture::new();
    fixture.cloud.always("POST /v1/load-balancers", made());
    let _ = fixture.client().write::<Value>(&fixture.call(60), create()).await;
    let sent = &fixture.cloud.received()[0];
    assert_eq!(sent.body, r#"{"name":"a"}"#);
    assert_eq!(sent.header("content-type"), "application/json");
    assert_eq!(sent.header("accept"), "application/json");
    assert_eq!(sent.header("authorization"), format!("Bearer {}", fixture::TOKEN));
    assert!(sent.header("user-agent").starts_with("cloudberth/"));
}
