//! Time: latency, and the queue in front of each balancer.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fixture::{ask, balancer_and_pool, cloud, get, member_body, request, secs, send};

#[tokio::test(start_paused = true)]
async fn changes_to_one_balancer_wait_for_each_other() {
    let cloud = cloud(|_| {});
    let servers: Vec<_> = (0..5).map(|n| cloud.add_server(&format!("s{n}"), "rma1").uuid).collect();
    let (_, first) = balancer_and_pool(&cloud).await;
    let (_, second) = balancer_and_pool(&cloud).await;
    cloud.set_latency(Duration::from_millis(20));
    cloud.clear_journal();
    let begun = cloud.now();
    let posts = servers.iter().flat_map(|server| [&first, &second].map(|pool| (server, pool)));
    let answers = join_all(posts.map(|(server, pool)| {
        let path = format!("/v1/load-balancers/pools/{pool}/members");
        let body = member_body(&cloud, server, 80);
        let cloud = &cloud;
        async move { ask(cloud, "POST", &path, body).await.status }
    }))
    .await;
    assert!(answers.iter().all(|status| *status == 201), "{answers:?}");
    assert_eq!(
        cloud.now().since(begun),
        Duration::from_millis(100),
        "five after each other, twice at the same time"
    );
    let journal = cloud.journal();
    let times = |pool: &str| {
        let of_pool = journal.iter().filter(|entry| entry.path.contains(pool));
        of_pool.map(|entry| entry.applied.since(begun).as_millis()).collect::<Vec<_>>()
    };
    assert_eq!(times(&first), [10, 30, 50, 70, 90]);
    assert_eq!(times(&second), [10, 30, 50, 70, 90]);
    assert!(journal.iter().all(|entry| entry.sent == begun));

    let begun = cloud.now();
    join_all((0..5).map(|_| get(&cloud, "/v1/load-balancers"))).await;
    assert_eq!(cloud.now().since(begun), Duration::from_millis(20), "those who only look do not wait");
}

#[tokio::test(start_paused = true)]
async fn random_latency_stays_within_bounds() {
    let cloud = cloud(|settings| {
        settings.latency = Duration::from_millis(100);
        settings.jitter = 0.5;
    });
    let mut waits = Vec::new();
    for _ in 0..50 {
        let begun = cloud.now();
        get(&cloud, "/v1/servers").await;
        waits.push(cloud.now().since(begun));
    }
    // The runtime's timers count in milliseconds.
    assert!(waits.iter().all(|wait| (50..=102).contains(&wait.as_millis())), "{waits:?}");
    assert!(waits.iter().any(|wait| wait.as_millis() < 65) && waits.iter().any(|wait| wait.as_millis() > 85));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_undoes_nothing() {
    let cloud = cloud(|settings| settings.latency = secs(1));
    let body = json!({"name": "web", "flavor": "lb-standard"});
    let sent = send(&cloud, request("POST", "/v1/load-balancers", &body));
    let answer = tokio::time::timeout(Duration::from_millis(100), sent).await;
    assert!(answer.is_err() && cloud.balancers().is_empty());
    assert_eq!(cloud.under_way(), 1);
    tokio::time::sleep(secs(2)).await;
    assert_eq!((cloud.under_way(), cloud.balancers().len()), (0, 1));
    assert_eq!(cloud.journal()[0].outcome.status(), Some(201));
}

#[tokio::test(start_paused = true)]
async fn early_deletion_can_be_refused() {
    for refuse in [false, true] {
        let cloud = cloud(|settings| {
            settings.build = secs(10);
            settings.refuse_early_delete = refuse;
        });
        let body = json!({"name": "web", "flavor": "lb-standard"});
        let path =
            format!("/v1/load-balancers/{}", ask(&cloud, "POST", "/v1/load-balancers", body).await.uuid());
        let early = ask(&cloud, "DELETE", &path, Value::Null).await;
        assert_eq!(early.status, if refuse { 400 } else { 204 });
        tokio::time::sleep(secs(10)).await;
        let late = ask(&cloud, "DELETE", &path, Value::Null).await;
        assert_eq!(late.status, if refuse { 204 } else { 404 });
    }
}
