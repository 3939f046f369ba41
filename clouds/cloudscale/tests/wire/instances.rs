//! Servers: which requests are sent, and which answers prove what.

use cloudberth_core::{Category, InstanceState, Lookup, Provider, provider_id::Reading};
use cloudberth_http::testing::Reply;
use serde_json::json;

use crate::script::{ONE, Script, TOKEN, TWO, server};

fn id(uuid: &str) -> cloudberth_core::ProviderId {
    format!("cloudscale://{uuid}").parse().unwrap()
}

fn not_found() -> Reply {
    Reply::json(404, &json!({"detail": "Not found."}))
}

#[tokio::test(start_paused = true)]
async fn one_request_lists_every_server() {
    let script = Script::new();
    let all = json!([server(ONE, "a"), server(TWO, "b")]);
    script.cloud.on("GET /v1/servers", [Reply::json(200, &all)]);
    let listing = script.instances().list(&script.call()).await.unwrap();
    assert!(listing.is_complete(), "CS-26");
    let names: Vec<_> = listing.items.iter().map(|instance| instance.name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "CS-26");
    let received = script.cloud.received();
    assert_eq!(script.cloud.lines(), ["GET /v1/servers"], "L7-801");
    assert_eq!(received[0].header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(received[0].header("accept"), "application/json");
    assert!(received[0].header("user-agent").starts_with("cloudberth/"));
    assert_eq!(script.operations(), ["list servers"]);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_is_not_whole_does_not_pass_for_one() {
    let short = json!([server(ONE, "a"), {"name": "without an id"}]);
    let table = [
        ("L1-803 an item that cannot be read", Reply::json(200, &short), Some(1)),
        ("L1-804 a page in front of it", Reply::text(200, "<html>tea</html>"), None),
        ("L1-805 an object", Reply::json(200, &json!({"detail": "hm"})), None),
        ("L1-806 a token that is not known", Reply::json(401, &json!({"detail": "Invalid token."})), None),
    ];
    for (case, reply, items) in table {
        let script = Script::new();
        script.cloud.always("GET /v1/servers", reply);
        let listing = script.instances().list(&script.call()).await.ok();
        assert!(listing.as_ref().is_none_or(|listing| !listing.is_complete()), "{case}");
        assert_eq!(listing.map(|listing| listing.items.len()), items, "{case}");
    }
    let script = Script::new();
    script.cloud.always("GET /v1/servers", Reply::json(200, &json!([])));
    assert!(script.instances().list(&script.call()).await.unwrap().is_complete(), "CS-37");
}

/// Law 1: a server of which something is not told is there all the same, and the others are not in doubt for it.
#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_read_is_there() {
    let script = Script::new();
    let mut odd = server(ONE, "a");
    odd.as_object_mut().unwrap().remove("interfaces");
    script.cloud.always("GET /v1/servers", Reply::json(200, &json!([odd, server(TWO, "b")])));
    script.cloud.always(&format!("GET /v1/servers/{ONE}"), Reply::json(200, &odd));
    let call = script.call();
    let listing = script.instances().list(&call).await.unwrap();
    assert!(listing.is_complete(), "L11-404 {:?}", listing.short);
    let flaws: Vec<_> = listing.items.iter().map(|m| (m.id.clone(), m.flaw.as_deref())).collect();
    assert_eq!(flaws, [(id(ONE), Some("interfaces is missing")), (id(TWO), None)], "L1-431");
    let found = script.instances().get(&call, &id(ONE)).await;
    let instance = found.known().unwrap().expect("L1-432 it is there");
    assert_eq!((instance.id, instance.flaw.is_some()), (id(ONE), true), "L1-432");
    odd["name"] = json!(null);
    script.cloud.always("GET /v1/servers", Reply::json(200, &json!([odd, server(TWO, "b")])));
    let listing = script.instances().list(&call).await.unwrap();
    assert!(!listing.is_complete(), "L1-433 it may be called anything");
}

#[tokio::test(start_paused = true)]
async fn an_id_is_asked_at_the_source_and_only_its_404_denies() {
    let object = |name: &str| server(ONE, name);
    let list = json!({"detail": ["Not found."]});
    let table = [
        ("CS-17 CS-30 CS-32 there, whatever its name", Reply::json(200, &object("other")), Ok(Some("other"))),
        ("CS-18 CS-33 not there", not_found(), Ok(None)),
        ("CS-18 not there, said in a list", Reply::json(404, &list), Ok(None)),
        ("CS-19 an error", Reply::json(500, &json!({"detail": "oops"})), Err(Category::Temporary)),
        ("CS-19 a page", Reply::text(502, "<html><title>Bad Gateway</title>"), Err(Category::Temporary)),
        ("L1-807 a page that says 404", Reply::text(404, "<html>404</html>"), Err(Category::NotFound)),
        ("L1-808 a refused token", Reply::json(403, &json!({"detail": "no"})), Err(Category::Unauthorised)),
        ("L1-809 half a body", Reply::json(200, &object("a")).cut(), Err(Category::Temporary)),
    ];
    for (case, reply, want) in table {
        let script = Script::new();
        script.cloud.always(&format!("GET /v1/servers/{ONE}"), reply);
        let found = script.instances().get(&script.call(), &id(ONE)).await.known();
        let found = found.map(|instance| instance.map(|m| m.name)).map_err(|why| why.category());
        assert_eq!(found, want.map(|name| name.map(str::to_owned)), "{case}");
        assert!(script.cloud.lines().iter().all(|line| line.ends_with(ONE)), "{case}: the name is not tried");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_put_into_the_path_in_its_one_spelling() {
    let script = Script::new();
    script.cloud.always(&format!("GET /v1/servers/{ONE}"), Reply::json(200, &server(ONE, "a")));
    let spelt = id(&ONE.replace('-', "").to_uppercase());
    assert!(script.instances().get(&script.call(), &spelt).await.is_present(), "CS-12");
    let mut stopped = server(ONE, "a");
    stopped["status"] = json!("stopped");
    script.cloud.on(&format!("GET /v1/servers/{ONE}"), [Reply::json(200, &stopped)]);
    let instance = script.instances().get(&script.call(), &id(ONE)).await.known().unwrap().unwrap();
    assert_eq!(instance.state, InstanceState::Stopped, "CS-20");
    assert_eq!(script.operations(), ["get server", "get server"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_id_of_ours_is_not_asked_about() {
    let script = Script::new();
    for (case, text) in [
        ("CS-25 CS-34 broken", "cloudscale://bad".to_owned()),
        ("CS-25 another cloud's", format!("bigcorp://{ONE}")),
        ("a way out of the path", "cloudscale://../floating-ips".to_owned()),
    ] {
        let id = text.parse().unwrap();
        let Lookup::Unknown(why) = script.instances().get(&script.call(), &id).await else {
            panic!("{case}")
        };
        assert!(why.message().contains(&text), "{case}: {why}");
        assert!(!script.provider.owns(&id), "{case}");
        assert!(!matches!(script.provider.read_id(&text), Reading::Mine(_)), "{case}");
    }
    assert_eq!(script.cloud.lines(), Vec::<String>::new(), "CS-25 no call is made");
}

#[tokio::test(start_paused = true)]
async fn the_cloud_goes_by_the_name_that_is_in_its_ids() {
    let Script { provider, .. } = Script::new();
    assert_eq!((provider.name(), provider.scheme()), ("cloudscale", "cloudscale"), "CS-10");
    let loud = format!("cloudscale://{}", ONE.to_uppercase());
    assert_eq!(provider.read_id(&loud), Reading::Mine(id(ONE)), "CS-12");
    assert!(provider.owns(&id(ONE)) && provider.owns(&loud.parse().unwrap()), "CS-12");
    assert!(provider.load_balancers().is_some());
}
