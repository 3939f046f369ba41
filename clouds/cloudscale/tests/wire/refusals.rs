//! What the API says when it says no: the status is kept, whatever the body looks like.

use cloudberth_core::Category;
use cloudberth_http::testing::Reply;
use serde_json::json;

use crate::script::{ONE, Script, TOKEN};

#[tokio::test(start_paused = true)]
async fn every_shape_of_an_error_keeps_its_status() {
    let table = [
        (
            "text by field",
            Reply::json(400, &json!({"name": "may not be blank"})),
            400,
            "name: may not be blank",
        ),
        (
            "lists by field",
            Reply::json(400, &json!({"name": ["too long", "odd"]})),
            400,
            "name: too long; name: odd",
        ),
        (
            "nested",
            Reply::json(400, &json!({"vip_addresses": [{"subnet": ["no such"]}]})),
            400,
            "vip_addresses.subnet: no such",
        ),
        ("a list", Reply::json(400, &json!(["one", "two"])), 400, "one; two"),
        ("a text", Reply::json(400, &json!("plain")), 400, "plain"),
        ("a page", Reply::text(400, "<html><title>Bad</title></html>"), 400, "Bad"),
        ("nothing", Reply::empty(403), 403, ""),
        (
            "the token itself",
            Reply::json(403, &json!({"detail": format!("{TOKEN} may not")})),
            403,
            "may not",
        ),
    ];
    for (case, reply, status, said) in table {
        let script = Script::new();
        script.cloud.always(&format!("GET /v1/servers/{ONE}"), reply);
        let id = format!("cloudscale://{ONE}").parse().unwrap();
        let why = script.instances().get(&script.call(), &id).await.known().unwrap_err();
        let text = why.message();
        assert!(text.contains(&status.to_string()) && text.contains(said), "{case}: {text}");
        assert!(!text.contains(TOKEN), "L10-805 {case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_and_stays_away_as_long_as_it_is_asked_to() {
    let script = Script::new();
    let line = format!("GET /v1/servers/{ONE}");
    let busy = Reply::json(429, &json!({"detail": "slow down"})).header("retry-after", "7");
    let down = Reply::text(503, "<html>maintenance</html>").header("retry-after", "11");
    script.cloud.on(&line, [busy, down, Reply::json(404, &json!({"detail": "Not found."}))]);
    let id = format!("cloudscale://{ONE}").parse().unwrap();
    assert!(script.instances().get(&script.call(), &id).await.is_absent(), "L12-801");
    let times = script.cloud.times();
    assert!(times[1] - times[0] >= 7_000 && times[2] - times[1] >= 11_000, "L12-802 {times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_takes_too_long_is_given_up() {
    let script = Script::new();
    let slow = Reply::json(200, &json!([])).after(std::time::Duration::from_secs(21));
    script.cloud.always("GET /v1/servers", slow);
    let why = script.instances().list(&script.call()).await.unwrap_err();
    assert_eq!(why.category(), Category::Temporary, "CS-7");
    assert!(why.message().contains("20s"), "CS-7 {why}");
}
