//! Credentials: followed when they change, renewed when refused, never shown.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of the common stage")]

mod fixture;

use std::{fs, sync::Arc, time::Duration};

use cloudberth_core::{Category, lb::Outcome};
use cloudberth_http::{Client, LinkHeader, Operation, Read, TokenSource, testing::Reply};
use fixture::Fixture;
use serde_json::{Value, json};

const LINE: &str = "GET /v1/servers";

fn servers() -> Operation<Read> {
    Operation::get("list_servers", "servers")
}

fn fine() -> Reply {
    Reply::json(200, &json!([]))
}

fn credentials(fixture: &Fixture) -> Vec<String> {
    fixture.cloud.received().iter().map(|r| r.header("authorization").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_token_file_replaced_while_running_is_used() {
    let fixture = Fixture::new();
    fixture.cloud.always(LINE, fine());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "old\n").unwrap();
    let source = TokenSource::file(&path, fixture.clock.clone()).unwrap();
    let client = fixture.builder(1).authenticator(Arc::new(source)).build();
    let ask = async || client.read::<Value>(&fixture.call(60), servers()).await.unwrap();
    ask().await;
    fs::write(&path, "new\n").unwrap();
    ask().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    ask().await;
    fs::write(&path, "").unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    ask().await;
    assert_eq!(credentials(&fixture), ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_exchanged_once_if_there_is_another() {
    let table = [
        ("another token", "new", vec![Reply::empty(401), fine()], true, vec!["Bearer old", "Bearer new"]),
        (
            "still refused",
            "new",
            vec![Reply::empty(401), Reply::empty(401)],
            false,
            vec!["Bearer old", "Bearer new"],
        ),
        ("the same token", "old", vec![Reply::empty(401)], false, vec!["Bearer old"]),
    ];
    for (case, now_in_file, replies, good, want) in table {
        let fixture = Fixture::new();
        fixture.cloud.on(LINE, replies);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "old").unwrap();
        let source = TokenSource::file(&path, fixture.clock.clone()).unwrap();
        fs::write(&path, now_in_file).unwrap();
        let client = fixture.builder(1).authenticator(Arc::new(source)).build();
        let got = client.read::<Value>(&fixture.call(60), servers()).await;
        assert_eq!(got.is_ok(), good, "{case}");
        assert!(got.err().is_none_or(|e| e.category() == Category::Unauthorised), "{case}");
        assert_eq!(credentials(&fixture), want, "{case}");
        assert_eq!(fixture.millis(), 0, "without a wait: {case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_sent_again_too() {
    let fixture = Fixture::new();
    fixture.cloud.on("POST /v1/x", [Reply::empty(401), Reply::json(201, &json!(1))]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "old").unwrap();
    let source = TokenSource::file(&path, fixture.clock.clone()).unwrap();
    fs::write(&path, "new").unwrap();
    let client = fixture.builder(1).authenticator(Arc::new(source)).build();
    let outcome = client.write::<Value>(&fixture.call(60), Operation::post("x", "x")).await;
    assert_eq!(outcome, Outcome::Done(json!(1)), "401 is certain: nothing was done");
}

/// A token file that becomes another when a reply is under way.
struct Swap {
    fixture: Fixture,
    client: Client,
    path: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

impl Swap {
    fn new() -> Self {
        let fixture = Fixture::new();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "ours").unwrap();
        let source = TokenSource::file(&path, fixture.clock.clone()).unwrap();
        let client = fixture.builder(1).authenticator(Arc::new(source)).build();
        Self { fixture, client, path, _dir: dir }
    }

    /// Puts another token into the file after this many milliseconds, if at all.
    fn after(&self, millis: Option<u64>) {
        let Some(millis) = millis else { return };
        let path = self.path.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            // The test may be over by now.
            let _ = fs::write(&path, "theirs");
        });
    }
}

/// Replies, and after how many milliseconds the token changes.
type Story = (&'static str, Vec<Reply>, Option<u64>, bool);

fn stories() -> Vec<Story> {
    let gone = || Reply::json(404, &json!({"detail": "Not found."}));
    let slow = |reply: Reply| reply.after(Duration::from_millis(100));
    vec![
        ("nothing changes", vec![gone()], None, true),
        ("nothing changes, at the second attempt", vec![Reply::empty(503), gone()], None, true),
        ("it changes afterwards", vec![gone()], Some(50), true),
        ("L5-402 refused, then asked with another", vec![slow(Reply::empty(401)), gone()], Some(50), false),
        ("L5-403 while the answer is under way", vec![slow(gone())], Some(50), false),
        ("L5-404 between two attempts", vec![Reply::empty(503), gone()], Some(50), false),
        ("L5-405 gone for good", vec![slow(Reply::json(410, &json!({})))], Some(50), false),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_denial_to_another_credential_is_no_absence() {
    for (case, replies, change, counts) in stories() {
        let swap = Swap::new();
        swap.fixture.cloud.on("DELETE /v1/x/1", replies.clone());
        swap.after(change);
        let delete = Operation::delete("x", "x").segment("1").repeatable();
        let outcome = swap.client.remove(&swap.fixture.call(60), delete).await;
        assert_eq!(outcome == Outcome::NotThere, counts, "{case}: {outcome:?}");
        if let Outcome::Unknown(why) = &outcome {
            assert!(why.message().contains("the credential was replaced"), "{case}: {why}");
            assert_eq!(why.category(), Category::Temporary, "{case}");
        }
        assert_eq!(matches!(outcome, Outcome::Unknown(_)), !counts, "{case}: {outcome:?}");

        let swap = Swap::new();
        swap.fixture.cloud.on("GET /v1/x/1", replies.clone());
        swap.after(change);
        let get = || Operation::get("x", "x").segment("1");
        let found = swap.client.lookup::<Value>(&swap.fixture.call(60), get()).await;
        assert_eq!(found.is_absent(), counts, "L1-416 {case}: {found:?}");

        let swap = Swap::new();
        swap.fixture.cloud.on("GET /v1/x/1", replies);
        swap.after(change);
        let error = swap.client.read::<Value>(&swap.fixture.call(60), get()).await.unwrap_err();
        assert_eq!(error.category() == Category::NotFound, counts, "L1-417 {case}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_for_two_credentials_denies_nothing() {
    let slow = |reply: Reply| reply.after(Duration::from_millis(100));
    let page = |id: u64| Reply::json(200, &json!([{"id": id}]));
    let first = || page(1).header("link", "</v1/servers?after=1>; rel=\"next\"");
    let second = "GET /v1/servers?after=1";
    let table = [
        ("one credential", vec![first()], vec![page(2)], false, true),
        ("L1-418 replaced while the last page is under way", vec![first()], vec![slow(page(2))], true, false),
        (
            "L1-419 refused, then asked with another",
            vec![first()],
            vec![slow(Reply::empty(401)), page(2)],
            true,
            false,
        ),
        ("L1-420 already the first page", vec![slow(Reply::empty(401)), first()], vec![page(2)], true, false),
    ];
    for (case, one, two, change, complete) in table {
        let swap = Swap::new();
        swap.fixture.cloud.on(LINE, one);
        swap.fixture.cloud.on(second, two);
        swap.after(change.then_some(50));
        let id = |value: &Value| value["id"].as_u64();
        let listing = swap.client.list(&swap.fixture.call(60), servers(), &LinkHeader, id).await.unwrap();
        assert_eq!(listing.items.len(), 2, "{case}");
        assert_eq!(listing.is_complete(), complete, "{case}: {:?}", listing.short);
    }
}
