//! Listing: complete, or short and able to say why.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of the common stage")]

mod fixture;

use std::time::Duration;

use cloudberth_core::{Category, Listing, Lookup, Result};
use cloudberth_http::{
    Array, Client, Envelope, Flawed, Item, LinkHeader, Numbered, Operation, Policy, testing::Reply,
};
use fixture::{Fixture, TOKEN};
use serde_json::{Value, json};

const ENVELOPE: Envelope =
    Envelope { key: "servers", next: Some("/links/pages/next"), total: Some("/meta/total") };

#[derive(Clone, Debug, serde::Deserialize)]
struct Server {
    id: u64,
}

#[derive(Clone, Debug, serde::Deserialize)]
struct Sized {
    id: u64,
    size: String,
}

fn page(ids: &[u64], next: Option<&str>, total: u64) -> Reply {
    let servers: Vec<Value> = ids.iter().map(|id| json!({"id": id, "extra": {"x": 1}})).collect();
    let links = next.map(|next| json!({"pages": {"next": next}}));
    Reply::json(200, &json!({"servers": servers, "meta": {"total": total}, "links": links}))
}

async fn list(fixture: &Fixture, client: &Client) -> Result<Listing<Server>> {
    let all = Operation::get("list_servers", "servers").query("per_page", 200);
    client.list(&fixture.call(60), all, &ENVELOPE, |server: &Server| server.id).await
}

fn ids(listing: &Listing<Server>) -> Vec<u64> {
    listing.items.iter().map(|server| server.id).collect()
}

const FIRST: &str = "GET /v1/servers?per_page=200";

const TWO: &str = "https://api.example.org/v1/servers?page=2";

/// Lists with these two pages; `why` is a part of the reason for a short listing, and empty for a complete one.
async fn check(case: &str, first: Reply, second: Option<Reply>, want: &[u64], why: &str) {
    let fixture = Fixture::new();
    fixture.cloud.always(FIRST, first);
    if let Some(second) = second {
        fixture.cloud.always("GET /v1/servers?page=2", second);
    }
    let listing = list(&fixture, &fixture.client()).await.expect(case);
    assert_eq!(ids(&listing), want, "{case}");
    assert_eq!(listing.is_complete(), why.is_empty(), "{case}: {:?}", listing.short);
    assert!(listing.short.clone().unwrap_or_default().contains(why), "{case}: {:?}", listing.short);
    assert!(fixture.cloud.lines().iter().all(|line| line.starts_with("GET /v1/servers?")), "{case}");
    assert_eq!(listing.find(|server| server.id == 99).is_absent(), why.is_empty(), "{case}");
    if want.contains(&1) {
        assert!(matches!(listing.find(|server| server.id == 1), Lookup::Present(_)), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_listing_is_complete() {
    let table: [(&str, Reply, Option<Reply>, &[u64]); 4] = [
        ("one page", page(&[1, 2], None, 2), None, &[1, 2]),
        ("none at all", page(&[], None, 0), None, &[]),
        ("two pages", page(&[1, 2], Some(TWO), 3), Some(page(&[3], None, 3)), &[1, 2, 3]),
        ("a relative link", page(&[1], Some("?page=2"), 2), Some(page(&[2], None, 2)), &[1, 2]),
    ];
    for (case, first, second, want) in table {
        check(case, first, second, want, "").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_lacks_a_page_says_so_and_keeps_the_rest() {
    let one = || page(&[1], Some(TWO), 2);
    let table = [
        ("L1-329 page missing", Reply::empty(500), "page 2 is missing: GET /v1/servers: answered 500"),
        ("L1-330 page cut", page(&[2], None, 2).cut(), "page 2 is missing"),
        ("L1-331 page empty", Reply::empty(200), "an empty body"),
        ("L1-332 page of a proxy", Reply::text(200, "<html>"), "page 2 is missing"),
        ("L1-333 no envelope", Reply::text(200, "{}"), "without \"servers\""),
        ("L1-334 unauthorised later", Reply::empty(401), "answered 401"),
        ("BL-130 the same page for ever", page(&[1], Some(TWO), 9), "page 2 holds nothing new"),
        ("L1-335 empty page, but a next one", page(&[], Some(TWO), 9), "holds nothing new"),
    ];
    for (case, second, why) in table {
        check(case, one(), Some(second), &[1], why).await;
    }
    check("L1-327 fewer than the total", page(&[1], None, 2), None, &[1], "1 of 2 were listed").await;
    let (first, second) = (page(&[1, 2], Some(TWO), 4), page(&[2, 4], None, 4));
    check("L1-328 shifted meanwhile", first, Some(second), &[1, 2, 4], "on an earlier page too").await;
    check("L1-410 more than the total", page(&[1, 2], None, 1), None, &[1, 2], "2 of 1 were listed").await;
}

/// What came or went between two pages has moved others across the cut.
#[tokio::test(start_paused = true)]
async fn what_moved_between_pages_makes_it_short() {
    let table: [(_, _, _, &[u64], _); 4] = [
        ("L1-411 one came: 2 twice", page(&[1, 2], Some(TWO), 3), page(&[2, 3], None, 3), &[1, 2, 3], "too"),
        (
            "L1-412 one came, and the total",
            page(&[1], Some(TWO), 1),
            page(&[2], None, 2),
            &[1, 2],
            "there were 1",
        ),
        // Of 1, 2, 3 and 4 somebody deletes 1; 3 moves to the first page, which was read before.
        (
            "L1-413 one went: 3 on no page",
            page(&[1, 2], Some(TWO), 4),
            page(&[4], None, 3),
            &[1, 2, 4],
            "there are 3",
        ),
        ("L1-414 a whole page again", page(&[1, 2], Some(TWO), 4), page(&[1, 2], None, 4), &[1, 2], "too"),
    ];
    for (case, first, second, want, why) in table {
        check(case, first, Some(second), want, why).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_bad_field_hides_no_item() {
    let fixture = Fixture::new();
    let odd = json!({"servers": [{"id": 1, "size": "s"}, {"id": 2, "size": null}, {"id": 3}], "meta": {"total": 3}});
    fixture.cloud.always(FIRST, Reply::json(200, &odd));
    let all = Operation::get("list_servers", "servers").query("per_page", 200);
    let id = |item: &Item<Sized, Server>| match item {
        Item::Whole(server) => server.id,
        Item::Flawed(flawed) => flawed.identity.id,
    };
    let listing = fixture.client().list(&fixture.call(60), all, &ENVELOPE, id).await.unwrap();
    assert!(listing.is_complete(), "L11-403 whoever is there is known: {:?}", listing.short);
    let seen = listing.items.into_iter().map(|item| match item {
        Item::Whole(Sized { id, size }) => format!("{id}: {size}"),
        Item::Flawed(Flawed { identity, why }) => format!("{}: {why}", identity.id),
    });
    assert_eq!(seen.collect::<Vec<_>>(), ["1: s", "2: size is null", "3: size is missing"], "L11-403");

    let nameless = json!({"servers": [{"id": 1, "size": "s"}, {"size": "s"}], "meta": {"total": 2}});
    fixture.cloud.always(FIRST, Reply::json(200, &nameless));
    let all = Operation::get("list_servers", "servers").query("per_page", 200);
    let short = fixture.client().list(&fixture.call(60), all, &ENVELOPE, id).await.unwrap().short.unwrap();
    assert!(short.contains("item 2 cannot be read: id is missing"), "L1-415 {short}");
}

#[tokio::test(start_paused = true)]
async fn a_link_that_leads_away_is_not_followed() {
    let table = [
        ("BL-129 another host", "https://evil.example.net/v1/servers", "another server"),
        ("BL-129 another path", "https://api.example.org/admin", "leads out of the API"),
        ("BL-129 no encryption", "http://api.example.org/v1/servers", "another server"),
    ];
    for (case, link, why) in table {
        check(case, page(&[1], Some(link), 1), None, &[1], why).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_first_page_nothing_was_learnt() {
    let table = [
        (Reply::empty(401), Category::Unauthorised),
        (Reply::empty(500), Category::Temporary),
        (Reply::empty(200), Category::Temporary),
        (Reply::text(200, "{\"servers\":null}"), Category::Temporary),
        (Reply::text(200, "[]"), Category::Temporary),
        (Reply::json(404, &json!({"detail": "Not found."})), Category::NotFound),
    ];
    for (reply, category) in table {
        let fixture = Fixture::new();
        fixture.cloud.always(FIRST, reply.clone());
        let error = list(&fixture, &fixture.client()).await.unwrap_err();
        assert_eq!(error.category(), category, "L1-336 {reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_bad_item_hides_no_other() {
    let fixture = Fixture::new();
    let odd = json!({"servers": [{"id": 1}, {"id": TOKEN}, {"id": 3}], "meta": {"total": 3}});
    fixture.cloud.always(FIRST, Reply::json(200, &odd));
    let listing = list(&fixture, &fixture.client()).await.unwrap();
    assert_eq!(ids(&listing), [1, 3], "L11-301");
    let why = listing.short.unwrap();
    assert!(why.contains("page 1: item 2 cannot be read"), "L11-301 {why}");
    assert!(!why.contains(TOKEN), "L10-311 {why}");
}

#[tokio::test(start_paused = true)]
async fn a_later_page_that_passes_is_asked_again() {
    let fixture = Fixture::new();
    fixture.cloud.on(FIRST, [page(&[1], Some("?page=2"), 2)]);
    fixture.cloud.on("GET /v1/servers?page=2", [Reply::empty(503), page(&[2], None, 2)]);
    let listing = list(&fixture, &fixture.client()).await.unwrap();
    assert_eq!((ids(&listing), listing.is_complete()), (vec![1, 2], true));
}

#[tokio::test(start_paused = true)]
async fn time_that_runs_out_makes_it_short() {
    let fixture = Fixture::new();
    fixture.cloud.on(FIRST, [page(&[1], Some("?page=2"), 2)]);
    fixture.cloud.always("GET /v1/servers?page=2", page(&[2], None, 2).after(Duration::from_secs(100)));
    let listing = list(&fixture, &fixture.client()).await.unwrap();
    assert_eq!((ids(&listing), listing.is_complete(), fixture.millis()), (vec![1], false, 60_000));
}

#[tokio::test(start_paused = true)]
async fn pages_without_end_end() {
    let fixture = Fixture::new();
    for n in 1..50 {
        let next = format!("?page={}", n + 1);
        let line = if n == 1 { FIRST.to_owned() } else { format!("GET /v1/servers?page={n}") };
        fixture.cloud.always(&line, page(&[n], Some(&next), 1_000));
    }
    let client = fixture.builder(1).policy(Policy { page_limit: 5, ..Policy::default() }).build();
    let listing = list(&fixture, &client).await.unwrap();
    assert_eq!(ids(&listing), [1, 2, 3, 4, 5]);
    assert_eq!(listing.short.unwrap(), "there are more than 5 pages");
}

#[tokio::test(start_paused = true)]
async fn numbered_pages_are_counted_to_the_total() {
    let numbered = Numbered { key: "servers", parameter: "page", total: Some("/meta/total") };
    let table = [
        ("total reached", vec![page(&[1, 2], None, 3), page(&[3], None, 3)], vec![1, 2, 3], true),
        ("one page", vec![page(&[1], None, 1)], vec![1], true),
        ("nothing", vec![page(&[], None, 0)], vec![], true),
        ("L1-337 the rest is missing", vec![page(&[1, 2], None, 3), page(&[], None, 3)], vec![1, 2], false),
        (
            "L1-338 the number is ignored",
            vec![page(&[1, 2], None, 3), page(&[1, 2], None, 3)],
            vec![1, 2],
            false,
        ),
    ];
    for (case, pages, want, complete) in table {
        let fixture = Fixture::new();
        let asked = pages.len();
        fixture.cloud.on("GET /v1/servers", pages);
        let all = Operation::get("list_servers", "servers").query("per_page", 2);
        let id = |server: &Server| server.id;
        let listing = fixture.client().list(&fixture.call(60), all, &numbered, id).await.unwrap();
        assert_eq!((ids(&listing), listing.is_complete()), (want, complete), "{case}");
        assert_eq!(fixture.cloud.lines().len(), asked, "{case}");
        if asked == 2 {
            assert_eq!(fixture.cloud.lines()[1], "GET /v1/servers?per_page=2&page=2", "{case}");
        }
    }
}

/// Numbered pages move like linked ones: what comes or goes on a page that was read moves everything after it.
#[tokio::test(start_paused = true)]
async fn numbered_pages_that_shift_deny_nothing() {
    let numbered = Numbered { key: "servers", parameter: "page", total: Some("/meta/total") };
    let odd = json!({"servers": [{"id": 1}, {"id": "?"}], "meta": {"total": 3}});
    let untold = json!({"servers": [{"id": 3}]});
    let table: [(_, _, &[u64], _); 9] = [
        (
            "L1-1501 one came and stays out of sight",
            vec![page(&[1, 2], None, 3), page(&[3], None, 4), page(&[], None, 4)],
            &[1, 2, 3],
            "page 2: there are 4 things, and there were 3",
        ),
        (
            "L1-1502 one came and is seen",
            vec![page(&[1, 2], None, 3), page(&[3, 4], None, 4)],
            &[1, 2, 3, 4],
            "page 2: there are 4 things",
        ),
        // Of 1, 2, 3 and 4 somebody deletes 1; 3 moves to the first page, which was read before.
        (
            "L1-1503 one went: 3 on no page",
            vec![page(&[1, 2], None, 4), page(&[4], None, 3)],
            &[1, 2, 4],
            "page 2: there are 3 things, and there were 4",
        ),
        (
            "L1-1504 one came in front: 2 twice, 4 not reached",
            vec![page(&[1, 2], None, 4), page(&[2, 3], None, 4), page(&[], None, 4)],
            &[1, 2, 3],
            "page 2: something on it was on an earlier page too",
        ),
        (
            "L1-1505 more than the total",
            vec![page(&[1, 2], None, 3), page(&[3, 4], None, 3)],
            &[1, 2, 3, 4],
            "4 of 3 were listed",
        ),
        (
            "L1-1506 the same thing twice on a page",
            vec![page(&[1, 1], None, 2), page(&[], None, 2)],
            &[1],
            "1 of 2",
        ),
        (
            "L1-1507 what cannot be read is not counted",
            vec![Reply::json(200, &odd), page(&[3], None, 3), page(&[], None, 3)],
            &[1, 3],
            "page 1: item 2 cannot be read",
        ),
        (
            "L1-1508 the total of an earlier page counts on",
            vec![
                page(&[1, 2], None, 4),
                Reply::json(200, &untold),
                Reply::json(200, &json!({"servers": []})),
            ],
            &[1, 2, 3],
            "3 of 4 were listed",
        ),
        ("the total comes late", vec![Reply::json(200, &untold), page(&[4], None, 2)], &[3, 4], ""),
    ];
    for (case, pages, want, why) in table {
        let fixture = Fixture::new();
        let asked = pages.len();
        fixture.cloud.on("GET /v1/servers", pages);
        let all = Operation::get("list_servers", "servers").query("per_page", 2);
        let id = |server: &Server| server.id;
        let listing = fixture.client().list(&fixture.call(60), all, &numbered, id).await.unwrap();
        assert_eq!(ids(&listing), want, "{case}");
        assert_eq!(listing.is_complete(), why.is_empty(), "{case}: {:?}", listing.short);
        assert!(listing.short.clone().unwrap_or_default().contains(why), "{case}: {:?}", listing.short);
        assert_eq!(fixture.cloud.lines().len(), asked, "{case}");
    }
}

/// Without a total, an entry on two pages is all that gives a shift away.
#[tokio::test(start_paused = true)]
async fn pages_without_a_total_that_repeat_something_deny_nothing() {
    let rows = |ids: &[u64]| ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>();
    let table: [(_, &[u64], &[u64], bool); 3] = [
        ("nothing moved", &[1, 2], &[3], true),
        ("L1-1509 one came in front", &[1, 2], &[2, 3], false),
        ("one answer is of one moment, so nothing moved on it", &[1, 1], &[2], true),
    ];
    for (case, first, second, complete) in table {
        let fixture = Fixture::new();
        let linked =
            Reply::json(200, &json!(rows(first))).header("link", "</v1/servers?after=1>; rel=\"next\"");
        fixture.cloud.on("GET /v1/servers", [linked]);
        fixture.cloud.on("GET /v1/servers?after=1", [Reply::json(200, &json!(rows(second)))]);
        let id = |server: &Server| server.id;
        let all = Operation::get("list_servers", "servers");
        let listing = fixture.client().list(&fixture.call(60), all, &LinkHeader, id).await.unwrap();
        assert_eq!(listing.is_complete(), complete, "{case}: {:?}", listing.short);
    }
}

#[tokio::test(start_paused = true)]
async fn plain_arrays_and_link_headers() {
    let fixture = Fixture::new();
    fixture.cloud.on("GET /v1/servers", [Reply::json(200, &json!([{"id": 1}, {"id": 1}, {"id": 2}]))]);
    let id = |server: &Server| server.id;
    let all = || Operation::get("list_servers", "servers");
    let listing = fixture.client().list(&fixture.call(60), all(), &Array, id).await.unwrap();
    assert_eq!((ids(&listing), listing.is_complete()), (vec![1, 2], true));

    let first = Reply::json(200, &json!([{"id": 1}])).header("link", "</v1/servers?after=1>; rel=\"next\"");
    fixture.cloud.on("GET /v1/servers", [first]);
    fixture.cloud.on("GET /v1/servers?after=1", [Reply::json(200, &json!([{"id": 2}]))]);
    let listing = fixture.client().list(&fixture.call(60), all(), &LinkHeader, id).await.unwrap();
    assert_eq!((ids(&listing), listing.is_complete()), (vec![1, 2], true));
}

#[tokio::test(start_paused = true)]
async fn what_has_not_changed_is_not_sent_again() {
    let fixture = Fixture::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), TOKEN).unwrap();
    let token = cloudberth_http::TokenSource::file(file.path(), fixture.clock.clone()).unwrap();
    let client = fixture.builder(1).authenticator(std::sync::Arc::new(token)).build();
    let list = async || {
        let all = Operation::get("list_servers", "servers").query("per_page", 200).tagged();
        client.list(&fixture.call(60), all, &ENVELOPE, |server: &Server| server.id).await
    };
    let unchanged = || Reply::empty(304).header("etag", "\"1\"");
    fixture.cloud.on(FIRST, [page(&[1, 2], None, 2).header("etag", "\"1\"")]);
    assert_eq!(ids(&list().await.unwrap()), [1, 2]);
    fixture.cloud.on(FIRST, [unchanged()]);
    let again = list().await.unwrap();
    assert!(again.is_complete(), "L7-1810 {:?}", again.short);
    assert_eq!(ids(&again), [1, 2], "L7-1810 what is known stands");
    fixture.cloud.on(FIRST, [page(&[1], None, 1).header("etag", "\"2\"")]);
    assert_eq!(ids(&list().await.unwrap()), [1], "L7-1811 what has changed counts");
    fixture.cloud.on(FIRST, [page(&[1, 3], None, 2)]);
    assert_eq!(ids(&list().await.unwrap()), [1, 3], "without a tag nothing is remembered");
    fixture.cloud.on(FIRST, [unchanged()]);
    assert!(list().await.is_err(), "L1-1820 nobody asked whether anything has changed, so this is no answer");
    fixture.cloud.on(FIRST, [page(&[4], None, 1).header("etag", "W/\"5\"")]);
    assert_eq!(ids(&list().await.unwrap()), [4]);
    fixture.cloud.on(FIRST, [page(&[4], None, 1).header("etag", "\"6\"")]);
    assert_eq!(ids(&list().await.unwrap()), [4]);
    // Another account may be shown something else.
    std::fs::write(file.path(), "another-0815").unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    fixture.cloud.on(FIRST, [page(&[9], None, 1).header("etag", "\"6\"")]);
    assert_eq!(ids(&list().await.unwrap()), [9]);
    let sent: Vec<String> =
        fixture.cloud.received().iter().map(|one| one.header("if-none-match").to_owned()).collect();
    assert_eq!(sent, ["", "\"1\"", "\"1\"", "\"2\"", "", "", "", ""], "L1-1821");
}
