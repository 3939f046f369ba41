//! Waiting for what happens.

use std::{sync::Arc, time::Duration};

use cloudberth_lycke::events::EventKind;
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::{key, service, spec};

#[tokio::test(start_paused = true)]
async fn every_kind_of_change_is_told() {
    let it = service().await;
    it.put("web", &spec("u")).await;
    it.plane.set_health(&key("web"), "n-c2-1", Err("refused"));
    it.plane.set_health(&key("web"), "n-c2-1", Ok(()));
    it.plane.set_fault(53, Some(cloudberth_lycke::plane::ListenerFault::TooManyFiles));
    it.send_json("PATCH", "/v1/machines/n-c2-1", &json!({"state": "stopped"})).await;
    it.delete(&crate::fixture::lb("web")).await;
    let told = it.events(0).await;
    let items = told["items"].as_array().unwrap();
    let kinds: Vec<_> = items.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    let want = [
        "ListenerBound",
        "ListenerBound",
        "BalancerChanged",
        "BackendDown",
        "BackendUp",
        "ListenerFailed",
        "MachineState",
        "BalancerDeleted",
    ];
    assert_eq!(kinds, want);
    assert_eq!(items[3]["object"], "c2/default/web");
    assert_eq!(items[6]["object"], "n-c2-1");
    let ids: Vec<_> = items.iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=8).collect::<Vec<_>>());
    assert_eq!(told["next"], 8);
    assert_eq!(items[0]["time"], "2024-05-02T08:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_for_the_answer() {
    let it = Arc::new(service().await);
    let log = it.control.events().clone();
    log.publish(EventKind::MachineState, "before", "");
    let begun = Instant::now();
    let none = it.get("/v1/events?timeout=5").await.json();
    assert_eq!(
        (none, begun.elapsed()),
        (json!({"next": 1, "items": []}), Duration::from_secs(5)),
        "only from now on"
    );
    let begun = Instant::now();
    it.get("/v1/events").await;
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
    let begun = Instant::now();
    it.get("/v1/events?since=1&timeout=1000").await;
    assert_eq!(begun.elapsed(), Duration::from_secs(60));

    let begun = Instant::now();
    let waiting = tokio::spawn({
        let it = Arc::clone(&it);
        async move { it.get("/v1/events?since=1").await.json() }
    });
    tokio::time::sleep(Duration::from_secs(3)).await;
    log.publish(EventKind::MachineState, "n-c2-1", "stopped");
    let told = waiting.await.unwrap();
    assert_eq!((begun.elapsed(), &told["next"]), (Duration::from_secs(3), &json!(2)));
    assert_eq!(told["items"].as_array().unwrap().len(), 1);

    let begun = Instant::now();
    assert_eq!(
        it.get("/v1/events?since=99").await.json(),
        json!({"next": 2, "items": []}),
        "from another life"
    );
    assert_eq!(it.get("/v1/events?since=0").await.json()["items"].as_array().unwrap().len(), 2);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(it.get("/v1/events?since=x").await.code(), (400, "invalid_spec".into()));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_events_are_kept() {
    let it = service().await;
    for n in 0..1_500 {
        it.control.events().publish(EventKind::MachineState, n.to_string(), "");
    }
    let told = it.events(0).await;
    let items = told["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["id"], &told["next"]), (1_000, &json!(501), &json!(1_500)));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_service_that_ends() {
    let it = Arc::new(service().await);
    let waiting = tokio::spawn({
        let it = Arc::clone(&it);
        async move { it.get("/v1/events").await.status }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    it.control.close().await;
    assert_eq!((waiting.await.unwrap(), begun.elapsed()), (200, Duration::ZERO), "CL-73");
    assert!(it.plane.is_closed(), "CL-73");
    assert_eq!(it.get("/readyz").await.status, 503, "CL-73");
    assert_eq!(it.put("web", &spec("u")).await.status, 503, "CL-73 nothing is opened any more");
}
