//! Faults, planned from Rust: what the client hears, and what became of the request.

use std::time::Duration;

use brightbox_sim::{Fault, Harm, Outcome, Rate};
use serde_json::{Value, json};
use tower::Service as _;

use crate::fixture::{
    ask, balancer_body, cloud, delete, get, pass, post, request, secs, seed_balancer, seed_cloud_ip, send,
};

#[tokio::test(start_paused = true)]
async fn injected_errors_change_nothing() {
    let table = [
        (Harm::Status { code: 429, retry_after: Some(7) }, 429, "failure"),
        (Harm::status(401), 401, "invalid_token"),
        (Harm::status(403), 403, "Forbidden"),
        (Harm::status(422), 422, "unprocessable_entity"),
        (Harm::status(500), 500, "failure"),
        (Harm::status(502), 502, "<html>"),
        (Harm::status(503), 503, "failure"),
        (Harm::NotFound, 404, "missing_resource"),
        (Harm::Conflict, 409, "resource_conflict"),
    ];
    for (fault, status, fragment) in table {
        let cloud = cloud(|_| {});
        let wanted = fault.clone();
        cloud.plan_faults(move |request| request.mutation.then(|| wanted.clone()));
        let answer = post(&cloud, "/1.0/cloud_ips", json!({"name": "n"})).await;
        assert_eq!(answer.status, status, "{fault:?}");
        assert!(answer.text.contains(fragment), "{fault:?}: {answer:?}");
        assert_eq!(answer.header("retry-after"), if status == 429 { "7" } else { "" }, "{fault:?}");
        assert_eq!(answer.header("content-type") == "text/html", status == 502, "{fault:?}");
        assert_eq!(answer.header("www-authenticate").is_empty(), status != 401, "{fault:?}");
        assert!(cloud.cloud_ips().is_empty(), "{fault:?}");
        assert_eq!(cloud.journal()[0].outcome.status(), Some(status), "{fault:?}");
        cloud.stop_faults();
        assert_eq!(post(&cloud, "/1.0/cloud_ips", Value::Null).await.status, 201, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_token_endpoint_fails_in_its_own_words() {
    let cloud = cloud(|_| {});
    for (code, error) in [(401, "invalid_client"), (500, "server_error"), (503, "server_error")] {
        let fault = Fault { operation: "token".to_owned(), times: Some(1), ..Fault::new(Harm::status(code)) };
        cloud.add_fault(fault);
        let answer = post(&cloud, "/token/", Value::Null).await;
        assert_eq!((answer.status, &answer.json()["error"]), (code, &json!(error)), "{answer:?}");
        assert_eq!(get(&cloud, "/1.0/servers").await.status, 200, "{code}: the API is not meant");
    }
    cloud.add_fault(Fault { times: Some(1), ..Fault::new(Harm::NotFound) });
    assert_eq!(post(&cloud, "/token/", Value::Null).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_mean_a_lost_request() {
    let table = [
        (Harm::LostCall, 0, Outcome::Dropped),
        (Harm::LostAnswer, 1, Outcome::Lost(201)),
        (Harm::Truncated, 1, Outcome::Lost(201)),
    ];
    for (fault, made, outcome) in table {
        let cloud = cloud(|_| {});
        cloud.add_fault(Fault { times: Some(1), ..Fault::new(fault.clone()) });
        let answer = send(&cloud, request("POST", "/1.0/cloud_ips", &json!({"name": "n"}))).await;
        assert!(answer.unwrap_err().contains("the connection broke"), "{fault:?}");
        assert_eq!(cloud.cloud_ips().len(), made, "{fault:?}");
        assert_eq!(cloud.journal().remove(0).outcome, outcome, "{fault:?}");
        assert_eq!(get(&cloud, "/1.0/cloud_ips").await.status, 200, "{fault:?}: only once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_may_answer_for_a_request_that_was_carried_out() {
    let table = [(504, false, "<html>"), (504, true, ""), (200, false, "<html>"), (202, true, "")];
    for (code, empty, fragment) in table {
        let cloud = cloud(|_| {});
        cloud.add_fault(Fault { times: Some(1), ..Fault::new(Harm::Masked { code, empty }) });
        let answer = post(&cloud, "/1.0/cloud_ips", json!({"name": "n"})).await;
        assert_eq!(answer.status, code, "{answer:?}");
        assert!(answer.text.contains(fragment) && answer.text.is_empty() == empty, "{answer:?}");
        assert_eq!(cloud.cloud_ips().len(), 1, "{code}: it was carried out");
        assert_eq!(cloud.journal()[0].outcome, Outcome::Lost(201), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_request_is_done_late_and_never_answered() {
    let cloud = cloud(|_| {});
    cloud.add_fault(Fault { times: Some(1), ..Fault::new(Harm::Stall { millis: 5_000 }) });
    let sent = send(&cloud, request("POST", "/1.0/cloud_ips", &Value::Null));
    assert!(tokio::time::timeout(secs(60), sent).await.is_err());
    let entry = cloud.journal().remove(0);
    assert_eq!((entry.outcome, entry.applied.since(entry.sent)), (Outcome::Lost(201), secs(5)));
    assert_eq!(cloud.cloud_ips().len(), 1);
    cloud.add_fault(Fault { times: Some(1), ..Fault::new(Harm::Latency { millis: 300 }) });
    let begun = cloud.now();
    assert_eq!(get(&cloud, "/1.0/servers").await.status, 200);
    assert_eq!(cloud.now().since(begun), Duration::from_millis(300));
    cloud.set_latency(secs(4));
    let begun = cloud.now();
    get(&cloud, "/1.0/servers").await;
    let entry = cloud.journal().pop().unwrap();
    assert_eq!((cloud.now().since(begun), entry.applied.since(entry.sent)), (secs(4), secs(2)));
}

#[tokio::test(start_paused = true)]
async fn listings_can_lie_and_answers_can_lack_parts() {
    let cloud = cloud(|settings| settings.instances = 5);
    for (fault, want) in [(Harm::EmptyList, 0), (Harm::ShortList, 2)] {
        cloud.add_fault(Fault { times: Some(1), ..Fault::new(fault.clone()) });
        let list = get(&cloud, "/1.0/servers").await.json();
        assert_eq!(list.as_array().unwrap().len(), want, "{fault:?}");
    }
    assert_eq!(cloud.servers().len(), 5, "nothing is really gone");
    cloud.edit_answers(|request, body| match request.operation.as_str() {
        "servers.list" => body[0]["zone"] = Value::Null,
        "token" => drop(body.as_object_mut().unwrap().remove("expires_in")),
        _ => {}
    });
    assert_eq!(get(&cloud, "/1.0/servers").await.json()[0]["zone"], Value::Null);
    let id = cloud.servers()[0].id.clone();
    assert_ne!(get(&cloud, &format!("/1.0/servers/{id}")).await.json()["zone"], Value::Null);
    let form = json!({"grant_type": "client_credentials", "client_id": "cli-x", "client_secret": "x"});
    let mut token = request("POST", "/token/", &form);
    token.headers_mut().remove("authorization");
    let token = send(&cloud, token).await.unwrap().json();
    assert!(token["access_token"].is_string() && token.get("expires_in").is_none(), "{token}");
    cloud.stop_faults();
    assert_ne!(get(&cloud, "/1.0/servers").await.json()[0]["zone"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn transitions_can_get_stuck() {
    let cloud = cloud(|settings| settings.delays.build = secs(5));
    let balancer = post(&cloud, "/1.0/load_balancers", balancer_body(&[])).await.id();
    let path = format!("/1.0/load_balancers/{balancer}");
    let status = async || get(&cloud, &path).await.json()["status"].as_str().unwrap().to_owned();
    cloud.stick(&balancer);
    pass(secs(500)).await;
    cloud.settle();
    assert_eq!(status().await, "creating");
    cloud.unstick(&balancer);
    assert_eq!(status().await, "active");
    cloud.stick(&balancer);
    delete(&cloud, &path).await;
    pass(secs(500)).await;
    assert_eq!(status().await, "deleting");
    cloud.unstick(&balancer);
    assert_eq!(status().await, "deleted");

    let (other, ip) = (seed_balancer(&cloud, &[]), seed_cloud_ip(&cloud, "n"));
    cloud.stick(&ip);
    for (word, shown) in [("map", "unmapped"), ("unmap", "mapped")] {
        post(&cloud, &format!("/1.0/cloud_ips/{ip}/{word}"), json!({"destination": other})).await;
        pass(secs(500)).await;
        assert_eq!(cloud.cloud_ips()[0].status(), shown, "{word}");
        cloud.unstick(&ip);
        assert_ne!(cloud.cloud_ips()[0].status(), shown, "{word}");
        cloud.stick(&ip);
    }
    let server = cloud.add_server("a", "gb1-a").id;
    cloud.stick(&server);
    cloud.stop_server(&server);
    assert_eq!(cloud.servers()[0].status, "active");
}

#[tokio::test(start_paused = true)]
async fn requests_above_the_rate_are_refused() {
    let cloud = cloud(|settings| settings.rate = Some(Rate { requests: 2, period: secs(10) }));
    pass(secs(3)).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(get(&cloud, "/1.0/servers").await.status);
    }
    assert_eq!(statuses, [200, 200, 429]);
    let refused = ask(&cloud, "POST", "/1.0/cloud_ips", Value::Null).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "7"));
    assert!(cloud.cloud_ips().is_empty());
    pass(secs(7)).await;
    assert_eq!(get(&cloud, "/1.0/servers").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_plan_sees_operation_and_sender() {
    let cloud = cloud(|_| {});
    let (tell, told) = std::sync::mpsc::channel();
    cloud.plan_faults(move |request| {
        tell.send(request.clone()).unwrap();
        (request.number == 1).then_some(Harm::LostAnswer)
    });
    get(&cloud, "/1.0/servers?account_id=acc-x").await;
    let mut second = request("POST", "/1.0/servers/x/stop", &Value::Null);
    second.headers_mut().insert("x-sim-client", "replica-2".parse().unwrap());
    assert!(send(&cloud, second).await.is_err());
    let third = request("POST", "/token", &Value::Null);
    assert!(cloud.service_as("replica-3").call(third).await.is_ok());
    let seen: Vec<_> = told.try_iter().collect();
    let facts: Vec<_> = seen
        .iter()
        .map(|r| {
            (r.number, r.who.as_str(), r.operation.as_str(), r.method.as_str(), r.path.as_str(), r.mutation)
        })
        .collect();
    let want = [
        (0, "tester/1", "servers.list", "GET", "/1.0/servers", false),
        (1, "replica-2", "servers.stop", "POST", "/1.0/servers/x/stop", true),
        (2, "replica-3", "token", "POST", "/token", false),
    ];
    assert_eq!(facts, want);
}
