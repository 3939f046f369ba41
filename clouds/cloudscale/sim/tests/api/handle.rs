//! The handle: the journal, the history of pools, seeds and the way back.

use std::collections::BTreeMap;

use cloudberth_core::Tick;
use cloudscale_sim::{Balancer, Fault, Harm, Outcome, Tally, Target, Vip};
use serde_json::{Value, json};

use crate::fixture::{ask, balancer_and_pool, cloud, get, member_body, request, secs, send};

#[tokio::test(start_paused = true)]
async fn the_journal_has_every_request() {
    let cloud = cloud(|settings| settings.instances = 1);
    tokio::time::sleep(secs(3)).await;
    get(&cloud, "/v1/servers?tag:a=b").await;
    let body = json!({"name": "web", "flavor": "none"});
    ask(&cloud, "POST", "/v1/load-balancers", body.clone()).await;
    get(&cloud, "/v1/nonsense").await;
    let journal = cloud.journal();
    let facts: Vec<_> = journal
        .iter()
        .map(|e| {
            (
                e.number,
                e.operation.as_str(),
                e.method.as_str(),
                e.path.as_str(),
                e.outcome.status(),
                e.mutation,
            )
        })
        .collect();
    let want = [
        (0, "servers.list", "GET", "/v1/servers?tag:a=b", Some(200), false),
        (1, "load-balancers.create", "POST", "/v1/load-balancers", Some(400), true),
        (2, "unknown", "GET", "/v1/nonsense", Some(404), false),
    ];
    assert_eq!(facts, want);
    assert_eq!((journal[1].body.as_ref(), journal[0].body.as_ref()), (Some(&body), None));
    assert_eq!(
        (journal[0].sent, journal[0].applied, journal[0].who.as_str()),
        (Tick::from_secs(3), Tick::from_secs(3), "tester/1")
    );
    assert!(journal[0].outcome.succeeded() && !journal[1].outcome.succeeded());
    assert_eq!(journal[0].outcome, Outcome::Answered(200));
    let tally = cloud.tally();
    assert_eq!(
        (tally.calls, tally.mutations, tally.count("servers.list"), tally.count("pools.list")),
        (3, 1, 1, 0)
    );
    assert_eq!(Tally::of(journal.iter().filter(|e| e.mutation)).calls, 1);
    cloud.clear_journal();
    assert_eq!(cloud.tally(), Tally::default());
}

#[tokio::test(start_paused = true)]
async fn the_history_shows_when_a_pool_lost_its_last_healthy_member() {
    let cloud = cloud(|_| {});
    let servers = ["a", "b"].map(|name| cloud.add_server(name, "rma1").uuid);
    let (balancer, pool) = balancer_and_pool(&cloud).await;
    ask(&cloud, "POST", "/v1/load-balancers/health-monitors", json!({"pool": pool, "type": "tcp"})).await;
    let members = format!("/v1/load-balancers/pools/{pool}/members");
    let mut ids = Vec::new();
    for server in &servers {
        ids.push(ask(&cloud, "POST", &members, member_body(&cloud, server, 80)).await.uuid());
    }
    let remove = async |id: &str| ask(&cloud, "DELETE", &format!("{members}/{id}"), Value::Null).await;
    remove(&ids[0]).await;
    let counts: Vec<_> = cloud.pool_changes().iter().map(|change| (change.before, change.after)).collect();
    assert_eq!((counts, cloud.emptied_pools()), (vec![(0, 1), (1, 2), (2, 1)], vec![]));
    ask(&cloud, "PATCH", &format!("{members}/{}", ids[1]), json!({"name": "renamed"})).await;
    assert_eq!(cloud.pool_changes().len(), 3, "a new name changes no count");
    ask(&cloud, "PATCH", &format!("{members}/{}", ids[1]), json!({"enabled": false})).await;
    assert_eq!(cloud.emptied_pools().len(), 1, "a member that takes no part is none");
    ask(&cloud, "PATCH", &format!("{members}/{}", ids[1]), json!({"enabled": true})).await;
    remove(&ids[1]).await;
    let emptied = cloud.emptied_pools();
    assert_eq!(
        (emptied.len(), emptied[1].pool.as_str(), emptied[1].balancer.as_str()),
        (2, pool.as_str(), balancer.as_str())
    );
    let down = ask(&cloud, "POST", &members, member_body(&cloud, &servers[0], 80)).await.uuid();
    cloud.stop_server(&servers[0]);
    remove(&down).await;
    assert_eq!(cloud.emptied_pools().len(), 2, "traffic had nowhere to go before");
    ask(&cloud, "POST", &members, member_body(&cloud, &servers[1], 80)).await;
    ask(&cloud, "DELETE", &format!("/v1/load-balancers/pools/{pool}"), Value::Null).await;
    assert_eq!(cloud.emptied_pools().len(), 2, "the pool went altogether");
    assert!(cloud.pool_changes().last().unwrap().gone);
    let empty =
        json!({"name": "empty", "load_balancer": balancer, "algorithm": "source_ip", "protocol": "tcp"});
    let empty = cloud.seed("load-balancers/pools", &empty).unwrap();
    ask(&cloud, "DELETE", &format!("/v1/load-balancers/pools/{empty}"), Value::Null).await;
    let last = cloud.pool_changes().pop().unwrap();
    assert_eq!((last.pool, last.gone), (empty, true), "also one that never had any");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_pool_deletes_its_children_and_no_others() {
    let cloud = cloud(|_| {});
    let server = cloud.add_server("a", "rma1").uuid;
    let (_, first) = balancer_and_pool(&cloud).await;
    let (_, second) = balancer_and_pool(&cloud).await;
    for pool in [&first, &second] {
        ask(
            &cloud,
            "POST",
            &format!("/v1/load-balancers/pools/{pool}/members"),
            member_body(&cloud, &server, 80),
        )
        .await;
        let listener = json!({"name": "tcp/80", "pool": pool, "protocol": "tcp", "protocol_port": 80});
        ask(&cloud, "POST", "/v1/load-balancers/listeners", listener).await;
        ask(&cloud, "POST", "/v1/load-balancers/health-monitors", json!({"pool": pool, "type": "tcp"})).await;
    }
    let of_first = get(&cloud, &format!("/v1/load-balancers/pools/{first}/members")).await.json();
    assert_eq!(of_first.as_array().unwrap().len(), 1, "a pool shows its own members");
    assert_eq!(of_first[0]["pool"]["uuid"], json!(first));
    let member = of_first[0]["uuid"].as_str().unwrap();
    for (pool, status) in [(&first, 200), (&second, 404)] {
        let path = format!("/v1/load-balancers/pools/{pool}/members/{member}");
        assert_eq!(get(&cloud, &path).await.status, status, "a member is one of its pool");
    }
    assert_eq!(
        ask(&cloud, "DELETE", &format!("/v1/load-balancers/pools/{first}"), Value::Null).await.status,
        204
    );
    let pools = [
        cloud.pools().into_iter().map(|pool| pool.uuid).collect::<Vec<_>>(),
        cloud.members().into_iter().map(|member| member.pool).collect(),
        cloud.listeners().into_iter().filter_map(|listener| listener.pool).collect(),
        cloud.monitors().into_iter().map(|monitor| monitor.pool).collect(),
    ];
    assert_eq!(pools, [(); 4].map(|()| vec![second.clone()]));
    assert_eq!(cloud.balancers().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn any_state_can_be_seeded() {
    let cloud = cloud(|settings| settings.build = secs(60));
    cloud.add_fault(Fault::new(Harm::status(500)));
    let made = cloud
        .back_door("POST", "/v1/load-balancers", &json!({"name": "web", "flavor": "lb-standard"}))
        .unwrap();
    let balancer = made["uuid"].as_str().unwrap().to_owned();
    let pool =
        json!({"name": "tcp", "load_balancer": balancer, "algorithm": "round_robin", "protocol": "tcp"});
    let early = cloud.back_door("POST", "/v1/load-balancers/pools", &pool);
    assert_eq!(early.unwrap_err().0, 400, "the rules hold at the back door");
    cloud.settle();
    assert_eq!(cloud.status_of(&balancer).unwrap(), "running");
    cloud.back_door("POST", "/v1/load-balancers/pools", &pool).unwrap();
    assert!(cloud.journal().is_empty(), "and nobody sees it");
    let twin = cloud.edit(|resources| {
        let Balancer { vips, .. } = resources.balancers[&balancer].clone();
        let vips: Vec<Vip> = vips;
        let mut twin = resources.balancers[&balancer].clone();
        (twin.uuid, twin.vips, twin.tags) = ("twin".to_owned(), vips, BTreeMap::new());
        resources.balancers.insert("twin".to_owned(), twin.clone());
        twin
    });
    assert_eq!(twin.name, "web");
    let seeded = cloud.seed("load-balancers", &json!({"name": "old", "flavor": "lb-standard"})).unwrap();
    assert_eq!(cloud.status_of(&seeded).unwrap(), "running", "a seed is there at once");
    cloud.delete_balancer(&seeded);
    assert_eq!(cloud.seed("floating-ips", &json!({"ip_version": 4})).unwrap(), "203.0.113.1");
    assert_eq!(cloud.seed("load-balancers", &json!({})).unwrap_err().0, 400);
    cloud.add_floating_ip("192.0.2.7/32".parse().unwrap(), None);
    cloud.edit(|resources| {
        let ip = resources.floating_ips.get_mut(&"192.0.2.7".parse().unwrap()).unwrap();
        ip.target = Some(Target::Balancer("twin".to_owned()));
    });
    cloud.stop_faults();
    assert_eq!(get(&cloud, "/v1/load-balancers").await.json().as_array().unwrap().len(), 2);
    let ip = get(&cloud, "/v1/floating-ips/192.0.2.7").await.json();
    assert_eq!(ip["load_balancer"]["uuid"], "twin");
    let pool = cloud.pools()[0].uuid.clone();
    let listener = json!({"name": "tcp/80", "pool": pool, "protocol": "tcp", "protocol_port": 80});
    let listener = cloud.seed("load-balancers/listeners", &listener).unwrap();
    cloud.edit(|resources| {
        let listener = resources.listeners.get_mut(&listener).unwrap();
        (listener.pool, listener.balancer) = (None, "twin".to_owned());
    });
    let shown = get(&cloud, &format!("/v1/load-balancers/listeners/{listener}")).await.json();
    assert_eq!((&shown["pool"], &shown["load_balancer"]["uuid"]), (&Value::Null, &json!("twin")));
    cloud.delete_balancer("twin");
    assert!(cloud.listeners().is_empty(), "a listener without a pool goes with its balancer");
    assert_eq!(cloud.target_of("192.0.2.7".parse().unwrap()), None);
}

#[tokio::test(start_paused = true)]
async fn a_reset_restores_the_initial_state() {
    let cloud = cloud(|settings| settings.instances = 2);
    cloud.add_server("extra", "lpg1");
    balancer_and_pool(&cloud).await;
    cloud.plan_faults(|_| Some(Harm::LostCall));
    cloud.add_fault(Fault::new(Harm::status(500)));
    assert!(send(&cloud, request("GET", "/v1/servers", &Value::Null)).await.is_err());
    cloud.reset();
    assert_eq!((cloud.servers().len(), cloud.balancers().len(), cloud.pools().len()), (2, 0, 0));
    assert!(cloud.journal().is_empty() && cloud.pool_changes().is_empty());
    assert_eq!(get(&cloud, "/v1/servers").await.status, 200);
    assert_eq!(cloud.journal()[0].number, 0);
}

#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_history_every_time() {
    let ids = |cloud: &cloudscale_sim::Cloud| cloud.servers().into_iter().map(|s| s.uuid).collect::<Vec<_>>();
    let (first, second) = (cloud(|m| m.instances = 3), cloud(|m| m.instances = 3));
    assert_eq!(ids(&first), ids(&second));
    assert_eq!(ids(&first).len(), 3);
}
