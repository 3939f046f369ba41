//! Access tokens by `OAuth2`: one fetch for all, renewed when refused or about to expire, never shown.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of the common fixture")]

mod fixture;

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cloudberth_core::{Category, Secret, lb::Outcome};
use cloudberth_http::{
    Attempt, Client, Grant, LinkHeader, OAuth, OAuthSettings, Observer, Operation, Read, TokenSource,
    testing::Reply,
};
use fixture::Fixture;
use futures_util::future::join_all;
use serde_json::{Value, json};

const LINE: &str = "GET /v1/servers";
const TOKENS: &str = "POST /v1/token/";
const BASIC: &str = "Basic YXBwLTE6cGE1NSUyMHdvcmQ=";

fn servers() -> Operation<Read> {
    Operation::get("list_servers", "servers")
}

fn fine() -> Reply {
    Reply::json(200, &json!([]))
}

fn gone() -> Reply {
    Reply::json(404, &json!({"detail": "Not found."}))
}

/// A token that lasts two hours.
fn token(token: &str) -> Reply {
    Reply::json(200, &json!({"access_token": token, "expires_in": 7200}))
}

fn renewable(token: &str, refresh: &str) -> Reply {
    Reply::json(200, &json!({"access_token": token, "expires_in": 7200, "refresh_token": refresh}))
}

fn slow(reply: Reply) -> Reply {
    reply.after(Duration::from_millis(100))
}

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn password() -> Grant {
    Grant::Password { user: "me@example.org".to_owned(), password: secret("hunter 2") }
}

fn settings(grant: Grant) -> OAuthSettings {
    OAuthSettings {
        path: "token/",
        id: TokenSource::fixed(secret("app-1")),
        secret: TokenSource::fixed(secret("pa55 word")),
        grant,
        scope: "infrastructure orbit",
        credentials: "X_CLIENT and X_CLIENT_SECRET",
    }
}

/// A client of the API whose tokens come from the same scripted cloud.
fn client(fixture: &Fixture, settings: OAuthSettings) -> Client {
    let oauth = OAuth::new(fixture.builder(2), settings);
    fixture.builder(1).authenticator(Arc::new(oauth)).build()
}

fn credentials(fixture: &Fixture) -> Vec<String> {
    fixture.cloud.received().iter().map(|r| r.header("authorization").to_owned()).collect()
}

/// The bodies of all token requests.
fn asked(fixture: &Fixture) -> Vec<String> {
    let received = fixture.cloud.received().into_iter();
    received.filter(|request| request.line == TOKENS).map(|request| request.body).collect()
}

async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_token_exchange_fits_on_top() {
    let fixture = Fixture::new();
    fixture.cloud.on(TOKENS, [token("one"), token("two")]);
    fixture.cloud.on(LINE, [fine(), Reply::empty(401), fine(), fine()]);
    let client = client(&fixture, settings(Grant::ClientCredentials));
    for _ in 0..3 {
        // A standby reads too, so its token requests need no claim.
        client.read::<Value>(&fixture.standby(60), servers()).await.unwrap();
    }
    let want = [BASIC, "Bearer one", "Bearer one", BASIC, "Bearer two", "Bearer two"];
    assert_eq!(credentials(&fixture), want, "BB-15");
    let request = &fixture.cloud.received()[0];
    assert_eq!(request.body, "grant_type=client_credentials&scope=infrastructure%20orbit");
    assert_eq!(request.header("content-type"), "application/x-www-form-urlencoded");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_refused_twice_is_not_asked_for_again() {
    let fixture = Fixture::new();
    fixture.cloud.on(TOKENS, [token("one"), token("two")]);
    fixture.cloud.always(LINE, Reply::empty(401));
    let client = client(&fixture, settings(Grant::ClientCredentials));
    let error = client.read::<Value>(&fixture.call(60), servers()).await.unwrap_err();
    assert_eq!(error.category(), Category::Unauthorised, "BB-15 {error}");
    assert_eq!(credentials(&fixture), [BASIC, "Bearer one", BASIC, "Bearer two"], "BB-15");
    assert_eq!(fixture.millis(), 0, "without a wait");
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_sent_again_with_the_new_token() {
    let fixture = Fixture::new();
    fixture.cloud.on(TOKENS, [token("one"), token("two")]);
    fixture.cloud.on("POST /v1/x", [Reply::empty(401), Reply::json(201, &json!(1))]);
    let client = client(&fixture, settings(Grant::ClientCredentials));
    let outcome = client.write::<Value>(&fixture.call(60), Operation::post("x", "x")).await;
    assert_eq!(outcome, Outcome::Done(json!(1)), "401 is certain: nothing was done");
    let standby = client.write::<Value>(&fixture.standby(60), Operation::post("x", "x")).await;
    assert!(matches!(standby, Outcome::Failed(_)), "L9-1501 {standby:?}");
    assert_eq!(asked(&fixture).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_used_until_shortly_before_it_expires() {
    let brief = Reply::json(200, &json!({"access_token": "brief", "expires_in": 5}));
    let lasting = Reply::json(200, &json!({"access_token": "lasting"}));
    let table = [
        ("BB-14 just before the margin", token("one"), 7_189, 1),
        ("BB-14 in the margin", token("one"), 7_190, 2),
        ("BB-14 shortly before its end", token("one"), 7_191, 2),
        ("shorter than the margin", brief, 0, 2),
        ("without an end", lasting, 1_000_000, 1),
    ];
    for (case, first, wait, want) in table {
        let fixture = Fixture::new();
        fixture.cloud.on(TOKENS, [first, token("two")]);
        fixture.cloud.always(LINE, fine());
        let client = client(&fixture, settings(Grant::ClientCredentials));
        client.read::<Value>(&fixture.call(60), servers()).await.expect(case);
        sleep(wait).await;
        client.read::<Value>(&fixture.call(60), servers()).await.expect(case);
        assert_eq!(asked(&fixture).len(), want, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_fetch_serves_all_who_need_a_token() {
    let away = || slow(Reply::json(401, &json!({"error": "invalid_client"})));
    let brief = Reply::json(200, &json!({"access_token": "brief", "expires_in": 5}));
    let table = [
        ("a token", slow(token("one")), true),
        ("L12-1501 an error", away(), false),
        ("a token that expires at once", slow(brief), true),
    ];
    for (case, reply, good) in table {
        let fixture = Fixture::new();
        fixture.cloud.on(TOKENS, [reply]);
        fixture.cloud.always(LINE, fine());
        let client = client(&fixture, settings(Grant::ClientCredentials));
        let call = fixture.call(60);
        let got = join_all((0..20).map(|_| client.read::<Value>(&call, servers()))).await;
        assert!(got.iter().all(|got| got.is_ok() == good), "{case}: {got:?}");
        assert_eq!(asked(&fixture).len(), 1, "L7-1501 BB-161 {case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_many_are_refused_with_is_renewed_once() {
    let fixture = Fixture::new();
    fixture.cloud.on(TOKENS, [token("one"), slow(token("two")), token("three")]);
    let client = client(&fixture, settings(Grant::ClientCredentials));
    let replies = (0..5).map(|n| Reply::empty(401).after(Duration::from_millis(60 * n)));
    fixture.cloud.on(LINE, replies).always(LINE, fine());
    let call = fixture.call(60);
    let got = join_all((0..5).map(|_| client.read::<Value>(&call, servers()))).await;
    assert!(got.iter().all(Result::is_ok), "{got:?}");
    assert_eq!(asked(&fixture).len(), 2, "L7-1502 those who are refused late do not drop the new token");
}

#[tokio::test(start_paused = true)]
async fn a_fetch_goes_on_when_whoever_needed_it_gives_up() {
    let fixture = Fixture::new();
    fixture.cloud.on(TOKENS, [token("one").after(Duration::from_secs(5))]);
    fixture.cloud.always(LINE, fine());
    let client = client(&fixture, settings(Grant::ClientCredentials));
    let error = client.read::<Value>(&fixture.call(2), servers()).await.unwrap_err();
    assert_eq!((error.category(), fixture.millis()), (Category::Temporary, 2_000), "L12-1502 {error}");
    client.read::<Value>(&fixture.call(60), servers()).await.unwrap();
    assert_eq!((asked(&fixture).len(), fixture.millis()), (1, 5_000));
}

/// A bug that is met by the first token request.
#[derive(Default)]
struct Bug(AtomicBool);

impl Observer for Bug {
    fn attempted(&self, _attempt: Attempt) {
        assert!(self.0.swap(true, Ordering::Relaxed), "a bug, once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bug_met_by_one_fetch_does_not_stop_the_next() {
    let fixture = Fixture::new();
    fixture.cloud.on(TOKENS, [token("one"), token("two")]).always(LINE, fine());
    let tokens = fixture.builder(2).observer(Arc::new(Bug::default()));
    let oauth = OAuth::new(tokens, settings(Grant::ClientCredentials));
    let client = fixture.builder(1).authenticator(Arc::new(oauth)).build();
    let error = client.read::<Value>(&fixture.call(60), servers()).await.unwrap_err();
    assert_eq!((error.category(), fixture.millis()), (Category::Temporary, 0), "L11-1501 {error}");
    client.read::<Value>(&fixture.call(60), servers()).await.expect("L11-1501");
}

#[tokio::test(start_paused = true)]
async fn the_scheme_is_spelt_as_servers_expect_it() {
    let table = [
        (json!({"access_token": "t"}), "Bearer t"),
        (json!({"access_token": "t", "token_type": "bearer"}), "Bearer t"),
        (json!({"access_token": "t", "token_type": "BeArEr"}), "Bearer t"),
        (json!({"access_token": "t", "token_type": "OAuth"}), "OAuth t"),
    ];
    for (body, want) in table {
        let fixture = Fixture::new();
        fixture.cloud.on(TOKENS, [Reply::json(200, &body)]).on(LINE, [fine()]);
        let client = client(&fixture, settings(Grant::ClientCredentials));
        client.read::<Value>(&fixture.call(60), servers()).await.unwrap();
        assert_eq!(credentials(&fixture)[1], want, "BB-162 {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_password_is_sent_once_and_its_session_refreshed() {
    let fixture = Fixture::new();
    fixture
        .cloud
        .on(TOKENS, [renewable("one", "r-1"), token("two"), renewable("three", "r-2"), token("four")]);
    fixture.cloud.on(LINE, [fine(), Reply::empty(401), fine(), Reply::empty(401), fine(), fine()]);
    let client = client(&fixture, settings(password()));
    for _ in 0..3 {
        client.read::<Value>(&fixture.call(60), servers()).await.unwrap();
    }
    sleep(7_190).await;
    client.read::<Value>(&fixture.call(60), servers()).await.unwrap();
    let want = [
        "grant_type=password&username=me%40example.org&password=hunter%202&scope=infrastructure%20orbit",
        "grant_type=refresh_token&refresh_token=r-1",
        "grant_type=refresh_token&refresh_token=r-1",
        "grant_type=refresh_token&refresh_token=r-2",
    ];
    assert_eq!(asked(&fixture), want, "BB-6");
    assert!(
        fixture
            .cloud
            .received()
            .iter()
            .filter(|r| r.line == TOKENS)
            .all(|r| r.header("authorization") == BASIC)
    );
}

#[tokio::test(start_paused = true)]
async fn who_lost_the_session_signs_in_again_once() {
    let fixture = Fixture::new();
    let refused =
        || Reply::json(400, &json!({"error": "invalid_grant", "error_description": "r-1 was revoked"}));
    fixture.cloud.on(TOKENS, [renewable("one", "r-1"), refused(), renewable("two", "r-2")]);
    fixture.cloud.on(LINE, [fine(), Reply::empty(401), fine()]);
    let client = client(&fixture, settings(password()));
    for _ in 0..2 {
        client.read::<Value>(&fixture.call(60), servers()).await.unwrap();
    }
    let kinds = || -> Vec<String> {
        let asked = asked(&fixture);
        asked.iter().filter_map(|body| Some(body.split('&').next()?.to_owned())).collect()
    };
    let signed_in = ["grant_type=password", "grant_type=refresh_token", "grant_type=password"];
    assert_eq!(kinds(), signed_in, "BB-163");
    fixture.cloud.always(TOKENS, refused()).always(LINE, Reply::empty(401));
    let error = client.read::<Value>(&fixture.call(60), servers()).await.unwrap_err();
    let want = "GET /v1/servers: the token endpoint refused X_CLIENT and X_CLIENT_SECRET; check them: POST /v1/token/: \
                answered 400 Bad Request: invalid_grant: r-1 was revoked";
    assert_eq!((error.category(), error.message()), (Category::Unauthorised, want), "BB-163 L10-1502");
    assert_eq!(kinds().len(), 5, "BB-163 one refresh and one password for each call that needs a token");
}

#[tokio::test(start_paused = true)]
async fn without_a_refresh_token_the_password_is_sent_again() {
    let fixture = Fixture::new();
    fixture.cloud.on(TOKENS, [token("one"), token("two")]);
    fixture.cloud.on(LINE, [Reply::empty(401), fine()]);
    let client = client(&fixture, settings(password()));
    client.read::<Value>(&fixture.call(60), servers()).await.unwrap();
    assert!(asked(&fixture).iter().all(|body| body.starts_with("grant_type=password&")));
}

#[tokio::test(start_paused = true)]
async fn a_token_request_that_fails_fails_the_call() {
    let fixture = Fixture::new();
    let echo = json!({"error": "invalid_client", "error_description": "pa55 word or pa55%20word for app-1?"});
    fixture.cloud.on(TOKENS, [Reply::json(401, &echo)]);
    let client = client(&fixture, settings(Grant::ClientCredentials));
    let error = client.read::<Value>(&fixture.call(60), servers()).await.unwrap_err();
    assert_eq!(error.category(), Category::Unauthorised);
    let want = "GET /v1/servers: the token endpoint refused X_CLIENT and X_CLIENT_SECRET; check them: \
                POST /v1/token/: answered 401 Unauthorized: invalid_client: [redacted] or [redacted] for app-1?";
    assert_eq!(error.message(), want, "L10-312");
    assert_eq!(asked(&fixture).len(), 1, "BB-161");
}

#[tokio::test(start_paused = true)]
async fn a_token_endpoint_that_is_away_says_nothing_about_the_object() {
    let throttled = |retry_after| Category::Throttled { retry_after };
    let hour = Duration::from_secs(3_600);
    let table = [
        ("L1-1510 a failure", Reply::empty(500), Category::Temporary, 4),
        ("L1-1511 a lost connection", Reply::dropped(), Category::Temporary, 4),
        ("L1-1512 a page of a proxy", Reply::text(200, "<html>"), Category::Temporary, 1),
        ("L1-1513 nothing", Reply::empty(200), Category::Temporary, 1),
        ("L1-1514 no answer", fine().after(hour), Category::Temporary, 2),
        ("BB-164 no such path", gone(), Category::Permanent, 1),
        ("L1-1515 no such path for good", Reply::json(410, &json!({})), Category::Permanent, 1),
        ("a page that refuses", Reply::text(400, "<html>"), Category::Permanent, 1),
        ("a refusal", Reply::json(400, &json!({"error": "unauthorized_client"})), Category::Unauthorised, 1),
        ("a refusal", Reply::empty(403), Category::Unauthorised, 1),
        ("a long wait", Reply::empty(429).header("retry-after", "3600"), throttled(Some(hour)), 1),
    ];
    for (case, reply, category, times) in table {
        let fixture = Fixture::new();
        fixture.cloud.always(TOKENS, reply);
        let client = client(&fixture, settings(Grant::ClientCredentials));
        let get = Operation::get("x", "x").segment("1");
        let why = client.lookup::<Value>(&fixture.call(59), get).await.known().expect_err(case);
        assert_eq!(why.category(), category, "{case}: {why}");
        assert_eq!(asked(&fixture).len(), times, "{case}");
        let delete = Operation::delete("x", "x").segment("1");
        let outcome = client.remove(&fixture.call(59), delete).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{case}: nothing was sent: {outcome:?}");
        assert!(fixture.cloud.lines().iter().all(|line| line == TOKENS), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_endpoint_that_comes_back_is_waited_for() {
    let fixture = Fixture::new();
    let busy = Reply::empty(429).header("retry-after", "2");
    fixture.cloud.on(TOKENS, [Reply::refused(), Reply::empty(503), busy, token("one")]);
    fixture.cloud.on(LINE, [fine()]);
    let client = client(&fixture, settings(Grant::ClientCredentials));
    client.read::<Value>(&fixture.call(60), servers()).await.unwrap();
    let times = fixture.cloud.times();
    assert!(times[2] - times[1] >= 2_000, "L12-1503 {times:?}");
    assert_eq!(fixture.cloud.refusals(), 1);
}

/// A client whose id and secret are in files that a person replaces.
struct Replaced {
    fixture: Fixture,
    client: Client,
    files: [PathBuf; 2],
    _dir: tempfile::TempDir,
}

impl Replaced {
    fn new() -> Self {
        let fixture = Fixture::new();
        let dir = tempfile::tempdir().unwrap();
        let files = ["id", "secret"].map(|name| dir.path().join(name));
        for path in &files {
            fs::write(path, "app-1").unwrap();
        }
        let [id, secret] =
            files.each_ref().map(|path| TokenSource::file(path, fixture.clock.clone()).unwrap());
        let settings = OAuthSettings { id, secret, ..settings(Grant::ClientCredentials) };
        let client = client(&fixture, settings);
        Self { fixture, client, files, _dir: dir }
    }

    /// Puts something else into one of the files after 50 ms.
    fn soon(&self, file: usize) {
        let path = self.files[file].clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            // The test may be over by now.
            let _ = fs::write(&path, "app-2");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewed_token_is_the_same_credential_and_another_client_is_not() {
    const ID: usize = 0;
    const SECRET: usize = 1;
    let table = [
        ("nothing changes", vec![slow(gone())], None, true),
        ("L1-1516 renewed between two attempts", vec![slow(Reply::empty(401)), gone()], None, true),
        ("L1-1517 the same client's new secret", vec![slow(Reply::empty(401)), gone()], Some(SECRET), true),
        ("L1-1518 another client, under way", vec![slow(gone())], Some(ID), false),
        (
            "L1-1519 another client, at the second attempt",
            vec![slow(Reply::empty(401)), gone()],
            Some(ID),
            false,
        ),
    ];
    for (case, replies, change, counts) in table {
        let world = Replaced::new();
        world.fixture.cloud.on(TOKENS, [token("one"), token("two"), token("three")]);
        world.fixture.cloud.on("GET /v1/x/1", replies.clone());
        if let Some(file) = change {
            world.soon(file);
        }
        let get = Operation::get("x", "x").segment("1");
        let found = world.client.lookup::<Value>(&world.fixture.call(60), get).await;
        assert_eq!(found.is_absent(), counts, "{case}: {found:?}");

        let world = Replaced::new();
        world.fixture.cloud.on(TOKENS, [token("one"), token("two"), token("three")]);
        world.fixture.cloud.on("DELETE /v1/x/1", replies);
        if let Some(file) = change {
            world.soon(file);
        }
        let delete = Operation::delete("x", "x").segment("1");
        let outcome = world.client.remove(&world.fixture.call(60), delete).await;
        assert_eq!(outcome == Outcome::NotThere, counts, "{case}: {outcome:?}");
        assert_eq!(matches!(outcome, Outcome::Unknown(_)), !counts, "L5-1501 {case}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_goes_on_with_a_renewed_token_and_not_with_another_client() {
    for (case, replaced) in [("L1-1520 renewed", false), ("L1-1521 another client", true)] {
        let world = Replaced::new();
        let row = |id: u64| Reply::json(200, &json!([{"id": id}]));
        world.fixture.cloud.on(TOKENS, [token("one"), token("two")]);
        world.fixture.cloud.on(LINE, [row(1).header("link", "</v1/servers?after=1>; rel=\"next\"")]);
        world.fixture.cloud.on("GET /v1/servers?after=1", [slow(Reply::empty(401)), row(2)]);
        if replaced {
            world.soon(0);
        }
        let id = |value: &Value| value["id"].as_u64();
        let listing = world.client.list(&world.fixture.call(60), servers(), &LinkHeader, id).await.unwrap();
        assert_eq!((listing.items.len(), asked(&world.fixture).len()), (2, 2), "{case}");
        assert_eq!(listing.is_complete(), !replaced, "{case}: {:?}", listing.short);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_replaced_gets_tokens_of_its_own() {
    let world = Replaced::new();
    world.fixture.cloud.on(TOKENS, [token("one"), token("two")]).always(LINE, fine());
    let read = async || world.client.read::<Value>(&world.fixture.call(60), servers()).await.unwrap();
    read().await;
    fs::write(&world.files[0], "app-2").unwrap();
    sleep(5).await;
    read().await;
    let sent = credentials(&world.fixture);
    assert_eq!([&sent[1], &sent[3]], ["Bearer one", "Bearer two"], "{sent:?}");
    assert_ne!(sent[0], sent[2], "the new id is sent to the token endpoint");
}

#[tokio::test(start_paused = true)]
async fn a_refused_secret_is_read_again() {
    let world = Replaced::new();
    world.fixture.cloud.on(TOKENS, [Reply::empty(401), token("one")]).always(LINE, fine());
    fs::write(&world.files[1], "new").unwrap();
    world.client.read::<Value>(&world.fixture.call(60), servers()).await.unwrap();
    assert_eq!(asked(&world.fixture).len(), 2);
}
