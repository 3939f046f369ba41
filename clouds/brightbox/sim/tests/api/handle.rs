//! The handle: the journal, seeds, the way back, and replay.

use brightbox_sim::{Cloud, Outcome, Tally};
use cloudberth_core::Tick;
use serde_json::json;

use crate::fixture::{cloud, get, pass, post, secs, seed_balancer, seed_cloud_ip};

#[tokio::test(start_paused = true)]
async fn the_journal_has_every_request() {
    let cloud = cloud(|settings| settings.instances = 1);
    pass(secs(3)).await;
    let query = format!("?account_id={}", cloud.account());
    get(&cloud, &format!("/1.0/servers{query}")).await;
    let body = json!({"name": 7});
    post(&cloud, "/1.0/cloud_ips", body.clone()).await;
    get(&cloud, "/1.0/nonsense").await;
    let journal = cloud.journal();
    let facts: Vec<_> = journal
        .iter()
        .map(|e| (e.number, e.operation.as_str(), e.path.as_str(), e.outcome.status(), e.mutation))
        .collect();
    let path = format!("/1.0/servers{query}");
    let want = [
        (0, "servers.list", path.as_str(), Some(200), false),
        (1, "cloud_ips.create", "/1.0/cloud_ips", Some(422), true),
        (2, "unknown", "/1.0/nonsense", Some(404), false),
    ];
    assert_eq!(facts, want);
    assert_eq!((journal[1].body.as_ref(), journal[0].body.as_ref()), (Some(&body), None));
    assert_eq!((journal[0].sent, journal[0].who.as_str()), (Tick::from_secs(3), "tester/1"));
    assert_eq!((journal[0].outcome, cloud.under_way()), (Outcome::Answered(200), 0));
    let tally = cloud.tally();
    assert_eq!(
        (tally.calls, tally.mutations, tally.count("servers.list"), tally.count("token")),
        (3, 1, 1, 0)
    );
    cloud.clear_journal();
    assert_eq!(cloud.tally(), Tally::default());
}

#[tokio::test(start_paused = true)]
async fn seeds_are_complete_and_leave_no_trace() {
    let cloud = cloud(|settings| {
        settings.delays.build = secs(99);
        settings.delays.map = secs(99);
    });
    let balancer = seed_balancer(&cloud, &[]);
    let ip = seed_cloud_ip(&cloud, "n");
    cloud.back_door("POST", &format!("/1.0/cloud_ips/{ip}/map"), &json!({"destination": balancer})).unwrap();
    assert_eq!(cloud.cloud_ips()[0].status(), "unmapped");
    cloud.settle();
    assert_eq!((cloud.cloud_ips()[0].status(), cloud.balancers()[0].status.as_str()), ("mapped", "active"));
    assert!(cloud.balancers()[0].alive() && cloud.journal().is_empty());
    let (status, body) = cloud.back_door("GET", "/1.0/cloud_ips/cip-none0", &json!(null)).unwrap_err();
    assert_eq!((status, &body["error_name"]), (404, &json!("missing_resource")));
    cloud.edit(|resources| {
        resources.cloud_ips.get_mut(&ip).unwrap().public_ipv4 = Some("nonsense".to_owned());
    });
    assert_eq!(get(&cloud, &format!("/1.0/cloud_ips/{ip}")).await.json()["public_ip"], json!("nonsense"));
}

#[tokio::test(start_paused = true)]
async fn a_reset_keeps_credentials_and_settings() {
    let cloud = cloud(|settings| settings.instances = 2);
    cloud.set_credentials("cli-mine0", "x");
    let (account, gone) = (cloud.account(), cloud.servers()[0].id.clone());
    cloud.delete_server(&gone);
    seed_balancer(&cloud, &[]);
    get(&cloud, "/1.0/servers").await;
    cloud.reset();
    assert_eq!((cloud.servers().len(), cloud.balancers().len(), cloud.journal().len()), (2, 0, 0));
    assert_eq!((cloud.account(), cloud.credentials().client.as_str()), (account, "cli-mine0"));
    assert_eq!((cloud.groups().len(), cloud.policies().len()), (1, 1));
    assert!(cloud.servers().iter().all(|server| server.id != gone), "ids are not used again");
}

/// What a cloud looks like after a few requests.
fn story(cloud: &Cloud) -> String {
    let server = cloud.add_server("a", "gb1-b").id;
    let balancer = seed_balancer(cloud, &[&server]);
    let ip = seed_cloud_ip(cloud, "n");
    cloud.back_door("POST", &format!("/1.0/cloud_ips/{ip}/map"), &json!({"destination": balancer})).unwrap();
    format!("{:?} {}", cloud.resources(), cloud.credentials().secret)
}

#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_story_again() {
    assert_eq!(story(&cloud(|_| {})), story(&cloud(|_| {})));
}
