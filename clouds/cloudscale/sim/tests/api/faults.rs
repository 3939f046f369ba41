//! Faults, planned from Rust: what the client hears, and what became of the request.

use std::time::Duration;

use cloudscale_sim::{Fault, Harm, Outcome};
use serde_json::{Value, json};
use tower::Service as _;

use crate::fixture::{ask, cloud, get, request, secs, send};

#[tokio::test(start_paused = true)]
async fn injected_errors_change_nothing() {
    let table = [
        (Harm::Status { code: 429, retry_after: Some(7) }, 429, "detail"),
        (Harm::status(401), 401, "detail"),
        (Harm::status(500), 500, "detail"),
        (Harm::status(502), 502, "<html>"),
        (Harm::Status { code: 503, retry_after: None }, 503, "detail"),
        (Harm::NotFound, 404, "Not found."),
    ];
    for (fault, status, fragment) in table {
        let cloud = cloud(|_| {});
        let wanted = fault.clone();
        cloud.plan_faults(move |request| request.mutation.then(|| wanted.clone()));
        let body = json!({"name": "web", "flavor": "lb-standard"});
        let answer = ask(&cloud, "POST", "/v1/load-balancers", body.clone()).await;
        assert_eq!(answer.status, status, "{fault:?}");
        assert!(answer.text.contains(fragment), "{fault:?}: {answer:?}");
        let wait = answer.headers.get("retry-after").map(|seconds| seconds.to_str().unwrap().to_owned());
        assert_eq!(wait, (status == 429).then(|| "7".to_owned()), "{fault:?}");
        let html = answer.headers["content-type"] == "text/html";
        assert_eq!(html, status == 502, "{fault:?}");
        assert!(cloud.balancers().is_empty(), "{fault:?}");
        assert_eq!(cloud.journal()[0].outcome.status(), Some(status), "{fault:?}");
        cloud.stop_faults();
        assert_eq!(ask(&cloud, "POST", "/v1/load-balancers", body).await.status, 201, "{fault:?}");
    }
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
        let body = json!({"name": "web", "flavor": "lb-standard"});
        let answer = send(&cloud, request("POST", "/v1/load-balancers", &body)).await;
        assert!(answer.unwrap_err().contains("the connection broke"), "{fault:?}");
        assert_eq!(cloud.balancers().len(), made, "{fault:?}");
        let entry = cloud.journal().remove(0);
        assert_eq!(entry.outcome, outcome, "{fault:?}");
        assert_eq!(get(&cloud, "/v1/load-balancers").await.status, 200, "{fault:?}: only once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_answers_in_place_of_the_cloud() {
    for (code, empty) in [(504, false), (504, true), (200, false)] {
        let cloud = cloud(|settings| settings.instances = 1);
        cloud.add_fault(Fault::new(Harm::Masked { code, empty }));
        let body = json!({"name": "web", "flavor": "lb-standard"});
        let id = cloud.servers()[0].uuid.clone();
        let made = ask(&cloud, "POST", "/v1/load-balancers", body).await;
        let deleted = ask(&cloud, "DELETE", &format!("/v1/servers/{id}"), Value::Null).await;
        for answer in [made, deleted] {
            assert_eq!((answer.status, answer.text.is_empty()), (code, empty), "{answer:?}");
            assert_eq!(answer.text.contains("<html>"), !empty, "{answer:?}");
        }
        assert_eq!((cloud.balancers().len(), cloud.servers().len()), (1, 0), "both were carried out");
        let outcomes: Vec<_> = cloud.journal().into_iter().map(|entry| entry.outcome).collect();
        assert_eq!(outcomes, [Outcome::Lost(201), Outcome::Lost(204)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_request_is_done_late_and_never_answered() {
    let cloud = cloud(|_| {});
    cloud.add_fault(Fault { times: Some(1), ..Fault::new(Harm::Stall { millis: 5_000 }) });
    let body = json!({"name": "web", "flavor": "lb-standard"});
    let sent = send(&cloud, request("POST", "/v1/load-balancers", &body));
    assert!(tokio::time::timeout(secs(60), sent).await.is_err());
    let entry = cloud.journal().remove(0);
    assert_eq!((entry.outcome, entry.applied.since(entry.sent)), (Outcome::Lost(201), secs(5)));
    assert_eq!(cloud.balancers().len(), 1);

    cloud.add_fault(Fault { times: Some(1), ..Fault::new(Harm::Latency { millis: 300 }) });
    let begun = cloud.now();
    assert_eq!(get(&cloud, "/v1/servers").await.status, 200);
    assert_eq!(cloud.now().since(begun), Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn listings_can_lie() {
    let cloud = cloud(|settings| settings.instances = 5);
    for (fault, want) in [(Harm::EmptyList, 0), (Harm::ShortList, 2)] {
        cloud.add_fault(Fault { times: Some(2), ..Fault::new(fault.clone()) });
        let list = get(&cloud, "/v1/servers").await.json();
        assert_eq!(list.as_array().unwrap().len(), want, "{fault:?}");
        let path = format!("/v1/servers/{}", cloud.servers()[0].uuid);
        assert_eq!(get(&cloud, &path).await.status, 200, "{fault:?}: what is no listing tells the truth");
    }
    assert_eq!(cloud.servers().len(), 5, "nothing is really gone");
}

#[tokio::test(start_paused = true)]
async fn a_plan_sees_operation_and_sender() {
    let cloud = cloud(|_| {});
    let (tell, told) = std::sync::mpsc::channel();
    cloud.plan_faults(move |request| {
        tell.send(request.clone()).unwrap();
        (request.number == 1).then_some(Harm::LostAnswer)
    });
    get(&cloud, "/v1/servers?tag:a").await;
    let mut second = request("POST", "/v1/servers/x/stop", &Value::Null);
    second.headers_mut().insert("x-sim-client", "replica-2".parse().unwrap());
    assert!(send(&cloud, second).await.is_err());
    let third = request("GET", "/v1/regions", &Value::Null);
    assert!(cloud.service_as("replica-3").call(third).await.is_ok());
    let seen: Vec<_> = told.try_iter().collect();
    let facts: Vec<_> = seen
        .iter()
        .map(|r| {
            (r.number, r.who.as_str(), r.operation.as_str(), r.method.as_str(), r.path.as_str(), r.mutation)
        })
        .collect();
    let want = [
        (0, "tester/1", "servers.list", "GET", "/v1/servers", false),
        (1, "replica-2", "servers.stop", "POST", "/v1/servers/x/stop", true),
        (2, "replica-3", "regions.list", "GET", "/v1/regions", false),
    ];
    assert_eq!(facts, want);
}

#[tokio::test(start_paused = true)]
async fn answers_can_be_edited_before_they_are_sent() {
    let cloud = cloud(|settings| settings.instances = 1);
    cloud.edit_answers(|request, body| {
        if request.operation == "servers.list" {
            body[0]["interfaces"] = Value::Null;
        }
    });
    assert_eq!(get(&cloud, "/v1/servers").await.json()[0]["interfaces"], Value::Null);
    let id = cloud.servers()[0].uuid.clone();
    assert_ne!(get(&cloud, &format!("/v1/servers/{id}")).await.json()["interfaces"], Value::Null);
    cloud.stop_faults();
    assert_ne!(get(&cloud, "/v1/servers").await.json()[0]["interfaces"], Value::Null);
}
