//! What goes wrong on demand: rules 1, 2, 17 and 19 of the simulator.

use std::time::Duration;

use binarylane_sim::{Access, Fault, Harm, Outcome, RateLimit};
use serde_json::{Value, json};

use crate::fixture::{ask, cloud, get, pass, request, secs, send};

fn web() -> Value {
    json!({"name": "web"})
}

#[tokio::test(start_paused = true)]
async fn injected_errors_change_nothing() {
    let table = [
        (Harm::status(400), 400, "Bad Request", "text/plain"),
        (Harm::status(401), 401, "", ""),
        (Harm::Status { code: 429, retry_after: Some(7) }, 429, "Too Many", "text/plain"),
        (Harm::status(500), 500, "title", "application/problem+json"),
        (Harm::status(502), 502, "<html>", "text/html"),
        (Harm::status(503), 503, "<html>", "text/html"),
        (Harm::NotFound, 404, "Not Found", "application/problem+json"),
    ];
    for (harm, status, fragment, kind) in table {
        let cloud = cloud(|_| {});
        let wanted = harm.clone();
        cloud.plan_faults(move |request| request.mutation.then(|| wanted.clone()));
        let answer = ask(&cloud, "POST", "/v2/load_balancers", web()).await;
        assert_eq!(answer.status, status, "{harm:?}");
        assert!(
            answer.text.contains(fragment) && answer.text.is_empty() == fragment.is_empty(),
            "{answer:?}"
        );
        let header = |name| answer.headers.get(name).map_or("", |value| value.to_str().unwrap());
        let wait = if status == 429 { "7" } else { "" };
        assert_eq!((header("content-type"), header("retry-after")), (kind, wait), "{harm:?}");
        assert!(cloud.balancers().is_empty(), "{harm:?}");
        cloud.stop_faults();
        assert_eq!(ask(&cloud, "POST", "/v2/load_balancers", web()).await.status, 200, "{harm:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_answers_although_the_request_was_carried_out() {
    let table = [
        (Harm::Masked { code: 504, empty: false }, 504, "<html>"),
        (Harm::Masked { code: 200, empty: false }, 200, "<html>"),
        (Harm::Masked { code: 200, empty: true }, 200, ""),
    ];
    for (harm, status, fragment) in table {
        let cloud = cloud(|_| {});
        cloud.add_fault(Fault { times: Some(1), ..Fault::new(harm.clone()) });
        let answer = ask(&cloud, "POST", "/v2/load_balancers", web()).await;
        assert_eq!(answer.status, status, "BL-75 {harm:?}");
        assert!(
            answer.text.contains(fragment) && answer.text.is_empty() == fragment.is_empty(),
            "{answer:?}"
        );
        assert_eq!(cloud.balancers().len(), 1, "BL-75 {harm:?}");
        assert_eq!(cloud.journal()[0].outcome, Outcome::Lost(200), "{harm:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_mean_a_lost_request() {
    let table = [
        (Harm::LostCall, 0, Outcome::Dropped),
        (Harm::LostAnswer, 1, Outcome::Lost(200)),
        (Harm::Truncated, 1, Outcome::Lost(200)),
    ];
    for (harm, made, outcome) in table {
        let cloud = cloud(|_| {});
        cloud.add_fault(Fault { times: Some(1), ..Fault::new(harm.clone()) });
        let answer = send(&cloud, request("POST", "/v2/load_balancers", &web())).await;
        assert!(answer.unwrap_err().contains("the connection broke"), "BL-74 {harm:?}");
        assert_eq!((cloud.balancers().len(), cloud.journal()[0].outcome), (made, outcome), "BL-74 {harm:?}");
        assert_eq!(get(&cloud, "/v2/load_balancers").await.status, 200, "{harm:?}: only once");
    }
    let cloud = cloud(|_| {});
    cloud.add_fault(Fault { times: Some(1), ..Fault::new(Harm::Stall { millis: 5_000 }) });
    let sent = send(&cloud, request("POST", "/v2/load_balancers", &web()));
    assert!(tokio::time::timeout(secs(60), sent).await.is_err());
    let entry = cloud.journal().remove(0);
    assert_eq!((entry.outcome, entry.applied.since(entry.sent)), (Outcome::Lost(200), secs(5)));
}

#[tokio::test(start_paused = true)]
async fn lists_can_lie_and_answers_can_lack_parts() {
    let cloud = cloud(|settings| settings.instances = 5);
    for (harm, want) in [(Harm::EmptyList, 0), (Harm::ShortList, 2)] {
        cloud.add_fault(Fault { times: Some(1), ..Fault::new(harm.clone()) });
        let list = get(&cloud, "/v2/servers").await.json();
        let got = (list["servers"].as_array().unwrap().len(), &list["meta"]["total"]);
        assert_eq!(got, (want, &json!(5)), "BL-150 {harm:?}");
    }
    cloud.edit_answers(|request, body| {
        if request.operation == "servers.list" {
            body["servers"][0]["networks"] = Value::Null;
        }
    });
    assert_eq!(get(&cloud, "/v2/servers").await.json()["servers"][0]["networks"], Value::Null);
    cloud.stop_faults();
    assert_ne!(get(&cloud, "/v2/servers").await.json()["servers"][0]["networks"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn only_known_tokens_are_let_in() {
    let cloud = cloud(|settings| settings.instances = 1);
    let server = cloud.servers()[0].id;
    let without = |path: &str| {
        let mut request = request("GET", path, &Value::Null);
        request.headers_mut().remove("authorization");
        request
    };
    let answer = send(&cloud, without("/v2/servers")).await.unwrap();
    assert_eq!((answer.status, answer.text.as_str()), (401, ""), "BL-126");
    assert_eq!(send(&cloud, without("/v2/nonsense")).await.unwrap().status, 401);
    for open in ["/v2/regions", "/v2/sizes"] {
        assert_eq!(send(&cloud, without(open)).await.unwrap().status, 200, "{open}");
    }
    cloud.set_tokens([("secret", Access::OtherAccount), ("good", Access::Own)]);
    let answer = get(&cloud, &format!("/v2/servers/{server}")).await;
    assert_eq!((answer.status, &answer.json()["title"]), (404, &json!("Not Found")), "BL-48");
    assert_eq!(get(&cloud, "/v2/servers").await.json()["meta"]["total"], 0, "BL-48");
    cloud.set_tokens([("good", Access::Own)]);
    let answer = get(&cloud, "/v2/servers").await;
    assert_eq!((answer.status, answer.text.as_str()), (401, ""), "BL-11");
    assert_eq!(answer.headers["x-spec-version"], "0.34.0");
}

#[tokio::test(start_paused = true)]
async fn paths_that_do_not_exist_have_no_body() {
    let cloud = cloud(|_| {});
    for path in ["/v2/nonsense", "/v2/servers/abc", "/servers", "/v2/load_balancers/1/nonsense"] {
        let answer = get(&cloud, path).await;
        assert_eq!((answer.status, answer.text.as_str()), (404, ""), "BL-126 {path}");
    }
    for path in
        ["servers/1", "load_balancers/1", "vpcs/1", "actions/1", "servers/1/actions", "vpcs/1/members"]
    {
        let answer = get(&cloud, &format!("/v2/{path}")).await;
        assert_eq!((answer.status, &answer.json()["status"]), (404, &json!(404)), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_told_when_to_come_again() {
    let limit = RateLimit { requests: 2, within: secs(3) };
    let cloud = cloud(|settings| settings.rate_limit = Some(limit));
    let ask = async || {
        let answer = get(&cloud, "/v2/servers").await;
        (answer.status, answer.headers.get("retry-after").map(|wait| wait.to_str().unwrap().to_owned()))
    };
    assert_eq!((ask().await, ask().await), ((200, None), (200, None)));
    pass(1).await;
    assert_eq!(ask().await, (429, Some("2".to_owned())), "BL-127");
    pass(2).await;
    assert_eq!(ask().await, (200, None), "BL-127");
}

#[tokio::test(start_paused = true)]
async fn requests_take_time_and_are_logged() {
    let cloud = cloud(|settings| settings.latency = Duration::from_millis(20));
    let begun = cloud.now();
    ask(&cloud, "POST", "/v2/load_balancers", web()).await;
    assert_eq!(cloud.now().since(begun), Duration::from_millis(20));
    cloud.add_fault(Fault { times: Some(1), ..Fault::new(Harm::Latency { millis: 300 }) });
    get(&cloud, "/v2/servers?per_page=200").await;
    assert_eq!(cloud.now().since(begun), Duration::from_millis(340));
    let journal = cloud.journal();
    let facts: Vec<_> = journal.iter().map(|e| (e.operation.as_str(), e.path.as_str(), e.mutation)).collect();
    let want = [
        ("load_balancers.create", "/v2/load_balancers", true),
        ("servers.list", "/v2/servers?per_page=200", false),
    ];
    assert_eq!((facts.as_slice(), &journal[0].body), (want.as_slice(), &Some(web())));
    let tally = cloud.tally();
    assert_eq!((tally.calls, tally.mutations, tally.count("servers.list")), (2, 1, 1));
}
