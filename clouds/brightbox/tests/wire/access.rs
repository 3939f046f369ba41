//! Tokens, refusals, and what is asked at the start.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Call, Category, Instances, Lookup, Provider, Tick, call::ReadOnly, provider::Start};
use cloudberth_http::testing::Reply;
use serde_json::json;

use crate::script::{ACCOUNT, Script, TOKENS, server, token};

const LINE: &str = "GET /1.0/servers/srv-testy";

async fn exists(script: &Script) -> Lookup<bool> {
    let id = "brightbox://srv-testy".parse().unwrap();
    script.provider.get(&script.call(), &id).await.map(|_| true)
}

fn fine() -> Reply {
    Reply::json(200, &server("srv-testy", &json!({})))
}

#[tokio::test(start_paused = true)]
async fn a_start_asks_for_a_token_and_for_an_account_that_nobody_named() {
    let named = Script::signed_in();
    assert_eq!(named.provider.start(&named.call()).await, Start::Ready, "BB-9");
    assert_eq!(named.cloud.lines(), [TOKENS], "BB-9 no call of the API");
    let form = named.cloud.received()[0].body.clone();
    assert_eq!(form, "grant_type=client_credentials&scope=infrastructure%20orbit", "BB-10");
    let unnamed = Script::new("cli-xxxxx", &[]);
    unnamed.cloud.always(TOKENS, token("t0k3n"));
    unnamed.cloud.on(
        "GET /1.0/accounts",
        [Reply::json(200, &json!([{"id": "acc-9t4wz"}])), Reply::json(200, &json!([]))],
    );
    assert_eq!(unnamed.provider.start(&unnamed.call()).await, Start::Ready, "BB-10");
    assert_eq!(unnamed.cloud.lines(), [TOKENS, "GET /1.0/accounts"], "BB-10");
    let Start::Fatal(why) = unnamed.provider.start(&unnamed.call()).await else { panic!("BB-17") };
    assert!(why.message().contains("no account"), "BB-17 {why}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_fatal_and_silence_is_not() {
    let refused = Script::new("cli-xxxxx", &[ACCOUNT]);
    refused.cloud.always(TOKENS, Reply::json(401, &json!({"error": "invalid_client"})));
    let Start::Fatal(why) = refused.provider.start(&refused.call()).await else { panic!("BB-9 BB-5") };
    assert!(
        why.message().contains("BRIGHTBOX_CLIENT") && !why.message().contains("s3cr3t"),
        "L10-1603 {why}"
    );
    assert_eq!(refused.cloud.lines(), [TOKENS], "BB-161 one request");
    let silent = Script::new("cli-xxxxx", &[ACCOUNT]);
    silent.cloud.always(TOKENS, Reply::empty(503));
    assert!(matches!(silent.provider.start(&silent.call()).await, Start::Later(_)), "BB-9");
}

#[tokio::test(start_paused = true)]
async fn a_user_signs_in_with_a_password_and_names_the_account() {
    let user = [ACCOUNT, ("BRIGHTBOX_USER_NAME", "me@example.org"), ("BRIGHTBOX_PASSWORD", "pa55")];
    let script = Script::new("app-xxxxx", &user);
    let form = Reply::text(200, "access_token=t0k3n&expires_in=7200")
        .header("content-type", "application/x-www-form-urlencoded");
    script.cloud.on(TOKENS, [form]);
    assert_eq!(script.provider.start(&script.call()).await, Start::Ready, "BB-6");
    let asked = &script.cloud.received()[0];
    let want = "grant_type=password&username=me%40example.org&password=pa55&scope=infrastructure%20orbit";
    assert_eq!(asked.body, want, "BB-6");
    assert_eq!(asked.header("authorization"), "Basic YXBwLXh4eHh4OnMzY3IzdA==", "BB-6");
    script.cloud.on(&format!("{LINE}?account_id=acc-9t4wz"), [fine()]);
    assert_eq!(exists(&script).await, Lookup::Present(true), "BB-13");
    assert_eq!(script.cloud.received()[1].header("authorization"), "Bearer t0k3n", "BB-162");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_before_it_ends_and_when_it_is_refused() {
    let script = Script::new("cli-xxxxx", &[ACCOUNT]);
    script.cloud.on(TOKENS, [token("one"), token("two"), token("three"), token("four")]);
    script.cloud.always(LINE, fine());
    exists(&script).await.known().unwrap();
    tokio::time::sleep(Duration::from_secs(7_000)).await;
    exists(&script).await.known().unwrap();
    tokio::time::sleep(Duration::from_secs(191)).await;
    exists(&script).await.known().unwrap();
    let carried: Vec<_> = script
        .cloud
        .received()
        .iter()
        .filter(|one| one.line == LINE)
        .map(|one| one.header("authorization").to_owned())
        .collect();
    assert_eq!(carried, ["Bearer one", "Bearer one", "Bearer two"], "BB-14");
    script.cloud.on(LINE, [Reply::empty(401), fine()]);
    assert_eq!(exists(&script).await, Lookup::Present(true), "BB-15");
    script.cloud.on(LINE, [Reply::empty(401), Reply::empty(401)]);
    let why = exists(&script).await.known().unwrap_err();
    assert_eq!(why.category(), Category::Unauthorised, "BB-15 BB-154 {why}");
    assert!(why.message().contains("401"), "BB-154 {why}");
}

#[tokio::test(start_paused = true)]
async fn answers_that_cannot_be_used_prove_nothing() {
    let table = [
        ("BB-155", Reply::text(200, "{\"id\":"), "srv-testy"),
        ("BB-156", Reply::text(200, "{} {}"), "srv-testy"),
        ("F39", Reply::text(502, "<html>bad</html>"), "502"),
    ];
    for (case, reply, word) in table {
        let script = Script::signed_in();
        script.cloud.always(LINE, reply);
        let why = exists(&script).await.known().unwrap_err();
        assert!(why.message().contains(word), "{case}: {why}");
    }
    let limit = Script::signed_in();
    limit.cloud.always(
        LINE,
        Reply::json(403, &json!({"error_name": "account_limit_reached", "errors": ["too many"]})),
    );
    let why = exists(&limit).await.known().unwrap_err();
    assert!(
        why.message().contains("account_limit_reached") && why.message().contains("too many"),
        "BB-153 {why}"
    );
    assert_eq!(why.category(), Category::Permanent, "BB-153");
    let lost = Script::new("cli-xxxxx", &[ACCOUNT]);
    lost.cloud.always(TOKENS, Reply::json(404, &json!({})));
    assert!(matches!(exists(&lost).await, Lookup::Unknown(_)), "BB-164 not \"does not exist\"");
}

#[tokio::test(start_paused = true)]
async fn time_outs_waits_and_ends() {
    let hangs = Script::signed_in();
    hangs.cloud.always(LINE, fine().after(Duration::from_secs(3_600)));
    assert!(exists(&hangs).await.known().is_err(), "BB-16");
    let busy = Script::signed_in();
    busy.cloud.on(LINE, [Reply::empty(429).header("retry-after", "2"), fine()]);
    let began = tokio::time::Instant::now();
    assert_eq!(exists(&busy).await, Lookup::Present(true), "BB-160");
    assert!(began.elapsed() >= Duration::from_secs(2), "BB-160");
    let over = Script::signed_in();
    let call = Call::new(Tick::ZERO, Arc::new(ReadOnly));
    let id = "brightbox://srv-testy".parse().unwrap();
    assert!(over.provider.get(&call, &id).await.known().is_err(), "BB-22");
    assert!(!over.cloud.lines().iter().any(|line| line.starts_with("GET")), "BB-22 no call");
}
