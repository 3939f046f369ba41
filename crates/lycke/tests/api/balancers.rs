//! Load balancers: made, changed, deleted, restored.

use std::sync::Arc;

use cloudberth_lycke::{addresses::Pools, inventory, plane::ListenerFault, state::Persisted};
use serde_json::{Value, json};

use crate::fixture::{Fixture, demo, key, lb, service, service_with, spec};

impl Fixture {
    /// A load balancer to look at.
    pub(crate) async fn put_demo(&self) {
        assert_eq!(self.put("web", &spec("u")).await.status, 201);
    }
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_made_with_one_call() {
    let it = service().await;
    let made = it.put("web", &spec("u")).await;
    assert_eq!(made.status, 201, "CL-32");
    let body = made.json();
    let address = body["address"].as_str().unwrap().to_owned();
    assert!(address.starts_with("127.77."), "CL-32 {address}");
    assert_eq!(body["addresses"], json!([address]));
    assert_eq!((&body["state"], &body["generation"]), (&json!("active"), &json!(1)));
    assert_eq!(
        (&body["cluster"], &body["namespace"], &body["name"], &body["uid"]),
        (&json!("c2"), &json!("default"), &json!("web"), &json!("u"))
    );
    assert_eq!(
        body["listeners"],
        json!([
            {"protocol": "TCP", "port": 8080, "bound": format!("{address}:8080")},
            {"protocol": "UDP", "port": 53, "bound": format!("{address}:53")},
        ]),
        "CL-32"
    );
    assert_eq!(
        body["backends"],
        json!([
            {"machine": "n-c2-1", "healthy": null, "since": "2024-05-02T08:00:00Z"},
            {"machine": "n-c2-2", "healthy": null, "since": "2024-05-02T08:00:00Z"},
        ])
    );
    assert_eq!(body["spec"]["idleTimeoutSeconds"], 600, "the defaults are filled in");
    assert_eq!(it.get(&lb("web")).await.json(), body);
    assert_eq!(it.get("/v1/loadbalancers?cluster=c2").await.json(), json!({"items": [body]}));
    assert_eq!(it.get("/v1/loadbalancers?cluster=c1").await.json(), json!({"items": []}));
    let config = it.plane.config(&key("web")).unwrap();
    assert_eq!(config.addresses[0].to_string(), address);
    assert_eq!(config.backends.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_same_wish_changes_nothing() {
    let it = service().await;
    let first = it.put("web", &spec("u")).await.json();
    it.store.text.lock().unwrap().take();
    let mut other = spec("u");
    for list in ["listeners", "backends"] {
        other[list].as_array_mut().unwrap().reverse();
    }
    other["policy"] = json!("round-robin");
    other["addressMode"] = json!("loopback");
    let again = it.put("web", &other).await;
    assert_eq!((again.status, again.json()), (200, first), "CL-33 CL-79");
    assert_eq!(*it.store.text.lock().unwrap(), None, "nothing had to be written down");
    other["policy"] = json!("source-hash");
    let changed = it.put("web", &other).await;
    assert_eq!((changed.status, &changed.json()["generation"]), (200, &json!(2)), "CL-79");
}

#[tokio::test(start_paused = true)]
async fn refused_specs_change_nothing() {
    let it = service().await;
    it.put_demo().await;
    let before = it.get(&lb("web")).await.text;
    let applies = it.plane.applies();
    let with = |field: &str, value: Value| {
        let mut spec = spec("u");
        spec[field] = value;
        spec.to_string().into_bytes()
    };
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let table = [
        ("CL-91 an unknown field", with("colour", json!(1)), 400, "invalid_spec"),
        ("CL-91 a wrong type", with("uid", json!(1)), 400, "invalid_spec"),
        ("CL-91 no JSON", b"uid: u".to_vec(), 400, "invalid_spec"),
        ("CL-91 nothing", Vec::new(), 400, "invalid_spec"),
        ("CL-91 2 MiB", vec![b' '; 2 << 20], 413, "invalid_spec"),
        ("CL-91 deeply nested", nested.into_bytes(), 400, "invalid_spec"),
        (
            "CL-45 SCTP",
            with("listeners", json!([{"protocol": "SCTP", "port": 1, "nodePort": 1}])),
            400,
            "invalid_spec",
        ),
        (
            "CL-46 node port 0",
            with("listeners", json!([{"protocol": "TCP", "port": 1, "nodePort": 0}])),
            400,
            "invalid_spec",
        ),
        ("CL-42 no address", with("requestedAddress", json!("x")), 400, "invalid_spec"),
        (
            "CL-42 outside of the pool",
            with("requestedAddress", json!("10.0.0.1")),
            422,
            "address_not_in_pool",
        ),
        ("CL-49 two faults", with("policy", json!("x")), 400, "invalid_spec"),
        (
            "CL-68 IPv6 has one loopback address",
            with("families", json!(["IPv6"])),
            422,
            "family_not_available",
        ),
        ("CL-68 both families", with("families", json!(["IPv4", "IPv6"])), 422, "family_not_available"),
        ("a pool that there is not", with("addressMode", json!("pool")), 400, "invalid_spec"),
    ];
    for (case, body, status, code) in table {
        let refused = it.send("PUT", &lb("web"), &[], body).await;
        assert_eq!(refused.code(), (status, code.to_owned()), "{case}: {}", refused.message());
        assert_eq!(it.get(&lb("web")).await.text, before, "{case}");
    }
    let message = it.put("web", &json!({"uid": "", "listeners": 1, "x": 2})).await.message();
    for part in ["uid: \"\"", "listeners: 1", "x: there is no such field"] {
        assert!(message.contains(part), "CL-91 CL-49 {part} in {message}");
    }
    let both = json!({"uid": "", "listeners": [], "families": ["IPv6"]});
    let message = it.put("web", &both).await.message();
    assert!(message.contains("uid: ") && message.contains("families: IPv6"), "CL-91 all at once: {message}");
    let sctp = it
        .put("web", &json!({"uid": "u", "listeners": [{"protocol": "SCTP", "port": 1, "nodePort": 1}]}))
        .await;
    assert!(sctp.message().contains("SCTP"), "CL-45");
    let unknown = it.send_json("PUT", "/v1/loadbalancers/c9/default/web", &spec("u")).await;
    assert_eq!(unknown.code(), (404, "cluster_not_found".into()), "CL-81");
    let list = it.get("/v1/loadbalancers?cluster=c9").await;
    assert_eq!(list.code(), (404, "cluster_not_found".into()), "CL-81");
    assert_eq!(it.plane.applies(), applies, "the plane has heard of none of it");
}

#[tokio::test(start_paused = true)]
async fn addresses_are_kept_asked_for_and_used_up() {
    let it = service_with(&format!("{}loadBalancers: {{ pool: 127.77.0.8/30 }}\n", demo()), None).await;
    let address = |reply: Value| reply["address"].as_str().unwrap().to_owned();
    let mut asking = spec("a");
    asking["requestedAddress"] = json!("127.77.0.9");
    assert_eq!(address(it.put("a", &asking).await.json()), "127.77.0.9", "CL-42");
    let taken = it.put("b", &asking).await;
    assert_eq!(taken.code(), (409, "address_taken".into()), "CL-42");
    assert!(taken.message().contains("c2/default/a"), "CL-42 {}", taken.message());
    assert_eq!(it.get(&lb("b")).await.code(), (404, "load_balancer_not_found".into()), "CL-42");
    assert_eq!(address(it.put("b", &spec("b")).await.json()), "127.77.0.10");
    assert_eq!(it.put("c", &spec("c")).await.code(), (503, "pool_exhausted".into()), "CL-43");
    assert_eq!(it.delete(&lb("b")).await.json(), json!({"deleted": true}), "CL-38");
    assert_eq!(address(it.put("b", &spec("b2")).await.json()), "127.77.0.10", "CL-40");
    it.delete(&lb("b")).await;
    assert_eq!(address(it.put("c", &spec("c")).await.json()), "127.77.0.10", "CL-43 the next try succeeds");
    it.delete(&lb("c")).await;
    asking["requestedAddress"] = json!("127.77.0.10");
    let moved = it.put("a", &asking).await.json();
    assert_eq!((address(moved.clone()), &moved["generation"]), ("127.77.0.10".into(), &json!(2)), "CL-94");
    assert_eq!(moved["listeners"][0]["bound"], "127.77.0.10:8080", "CL-94");
    let stays = it.put("a", &spec("a")).await.json();
    assert_eq!((address(stays.clone()), &stays["generation"]), ("127.77.0.10".into(), &json!(3)), "CL-94");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_can_be_bound_to_a_uid() {
    let it = service().await;
    it.put("web", &spec("old")).await;
    let renewed = it.put("web", &spec("new")).await.json();
    assert_eq!((&renewed["uid"], &renewed["generation"]), (&json!("new"), &json!(2)), "CL-70");
    let refused = it.delete(&format!("{}?uid=old", lb("web"))).await;
    assert_eq!(refused.code(), (409, "uid_conflict".into()), "CL-80");
    assert_eq!(it.get(&lb("web")).await.json(), renewed, "CL-80");
    assert!(it.plane.config(&key("web")).is_some(), "CL-80");
    assert_eq!(it.delete(&format!("{}?uid=new", lb("web"))).await.json(), json!({"deleted": true}));
    assert!(it.plane.keys().is_empty(), "CL-38");
    assert_eq!(it.get(&lb("web")).await.status, 404, "CL-38");
    let again = it.delete(&lb("web")).await;
    assert_eq!((again.status, again.json()), (200, json!({"deleted": false})), "CL-38");
    assert_eq!(it.put("web", &spec("new")).await.json()["generation"], 1);
}

#[tokio::test(start_paused = true)]
async fn counters_belong_to_a_uid() {
    let it = service().await;
    it.put("web", &spec("old")).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let path = format!("{}/stats", lb("web"));
    assert_eq!(it.get(&path).await.json()["since"], "2024-05-02T08:00:00Z");
    let address = it.get(&lb("web")).await.json()["address"].clone();
    let renewed = it.put("web", &spec("new")).await;
    assert_eq!((renewed.status, &renewed.json()["address"]), (200, &address), "CL-70");
    let stats = it.get(&path).await.json();
    assert_eq!((&stats["uid"], &stats["since"]), (&json!("new"), &json!("2024-05-02T08:01:00Z")), "CL-70");
    let mut ranged = spec("new");
    ranged["sourceRanges"] = json!(["127.0.0.0/8"]);
    it.put("web", &ranged).await;
    let stats = it.get(&path).await.json();
    let want = json!({
        "uid": "new", "since": "2024-05-02T08:01:00Z",
        "connections": {"open": 0, "accepted": 0, "refusedSource": 0, "refusedLimit": 0, "noBackend": 0, "failed": 0},
        "bytes": {"in": 0, "out": 0},
        "udp": {"flows": 0, "datagramsIn": 0, "datagramsOut": 0, "dropped": 0},
        "backends": [
            {"machine": "n-c2-1", "healthy": null, "open": 0, "connections": 0, "failures": 0},
            {"machine": "n-c2-2", "healthy": null, "open": 0, "connections": 0, "failures": 0},
        ],
        "sourceRanges": [{"range": "127.0.0.0/8", "hits": 0}],
    });
    assert_eq!(stats, want);
    assert_eq!(it.get(&format!("{}/stats", lb("no"))).await.code(), (404, "load_balancer_not_found".into()));
}

#[tokio::test(start_paused = true)]
async fn listeners_and_backends_say_what_is_wrong() {
    let it = service().await;
    it.plane.set_fault(53, Some(ListenerFault::AddressInUse(Some(key("dns")))));
    let made = it.put("web", &spec("u")).await.json();
    assert_eq!(made["state"], "active", "CL-63 the other port serves");
    assert_eq!(
        made["listeners"][1],
        json!({"protocol": "UDP", "port": 53, "bound": null, "error": "AddressInUse", "message": "the port belongs to c2/default/dns"}),
        "CL-67"
    );
    it.plane.set_fault(8080, Some(ListenerFault::PermissionDenied));
    assert_eq!(it.get(&lb("web")).await.json()["state"], "failed");
    it.plane.set_fault(8080, Some(ListenerFault::Shifted));
    let shifted = it.get(&lb("web")).await.json();
    assert_eq!(shifted["state"], "active", "CL-64");
    assert_eq!(shifted["listeners"][0]["error"], "Shifted", "CL-64");
    assert!(shifted["listeners"][0]["bound"].as_str().unwrap().ends_with(":18080"), "CL-64");
    it.plane.set_health(&key("web"), "n-c2-1", Err("node port 30080 refuses"));
    it.plane.set_health(&key("web"), "n-c2-2", Ok(()));
    let backends = it.get(&lb("web")).await.json()["backends"].clone();
    assert_eq!(
        backends[0],
        json!({"machine": "n-c2-1", "healthy": false, "reason": "node port 30080 refuses", "since": "2024-05-02T08:00:00Z"}),
        "CL-97"
    );
    assert_eq!(backends[1], json!({"machine": "n-c2-2", "healthy": true, "since": "2024-05-02T08:00:00Z"}));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_machine_takes_no_traffic() {
    let it = service().await;
    it.put_demo().await;
    let down = |machine: usize| it.plane.config(&key("web")).unwrap().backends[machine].down.clone();
    it.send_json("PATCH", "/v1/machines/n-c2-1", &json!({"state": "stopped"})).await;
    assert_eq!((down(0).as_deref(), down(1)), (Some("machine stopped"), None), "CL-82");
    assert_eq!(it.get(&lb("web")).await.json()["backends"][0]["reason"], "machine stopped", "CL-82");
    let applies = it.plane.applies();
    it.send_json("PATCH", "/v1/machines/n-c1-1", &json!({"state": "stopped"})).await;
    assert_eq!(it.plane.applies(), applies, "another machine is no concern of this load balancer");
    it.send_json("PATCH", "/v1/machines/n-c2-1", &json!({"state": "running"})).await;
    assert_eq!(down(0), None, "CL-82");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_down_does_not_happen() {
    let it = service().await;
    it.put_demo().await;
    let before = it.get(&lb("web")).await.text;
    *it.store.fails.lock().unwrap() = true;
    assert_eq!(it.put("web", &spec("other")).await.status, 500, "CL-89");
    assert_eq!(it.put("new", &spec("new")).await.status, 500, "CL-89");
    assert_eq!(it.delete(&lb("web")).await.status, 500, "CL-89");
    assert_eq!(it.get(&lb("web")).await.text, before, "CL-89");
    assert_eq!(it.plane.keys(), [key("web")], "CL-89");
    *it.store.fails.lock().unwrap() = false;
    assert_eq!(it.put("new", &spec("new")).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_in_force_after_a_crash() {
    let it = service().await;
    it.put_demo().await;
    it.put("web", &spec("v")).await;
    it.put("gone", &spec("g")).await;
    it.delete(&lb("gone")).await;
    let before = it.get(&lb("web")).await.json();
    let text = it.store.text.lock().unwrap().clone().unwrap();
    let settings = inventory::read(&demo(), "inv.yaml".as_ref()).unwrap().balancers;
    let restored = Persisted::restore(&text, &Pools::new(&settings)).unwrap().balancers;
    let keys: Vec<_> = restored.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(keys, [key("web")], "CL-89");
    let balancer = restored.get(&key("web")).unwrap();
    assert_eq!(
        (json!(balancer.generation), json!(balancer.addresses)),
        (before["generation"].clone(), before["addresses"].clone()),
        "CL-89"
    );
}

#[tokio::test(start_paused = true)]
async fn changes_of_one_key_come_one_after_the_other() {
    let it = Arc::new(service().await);
    let puts: Vec<_> = (0..20)
        .map(|n| {
            let it = Arc::clone(&it);
            tokio::spawn(async move { it.put("web", &spec(&n.to_string())).await })
        })
        .collect();
    let mut generations = Vec::new();
    let mut created = 0;
    for put in puts {
        let reply = put.await.unwrap();
        created += usize::from(reply.status == 201);
        generations.push(reply.json()["generation"].as_u64().unwrap());
    }
    generations.sort_unstable();
    assert_eq!((created, generations), (1, (1..=20).collect()));
}

#[tokio::test(start_paused = true)]
async fn each_family_has_an_entry() {
    let it = service_with(&format!("{}loadBalancers: {{ mode: shared }}\n", demo()), None).await;
    let mut dual = spec("u");
    dual["families"] = json!(["IPv6", "IPv4"]);
    let made = it.put("web", &dual).await.json();
    assert_eq!(
        (&made["address"], &made["addresses"]),
        (&json!("::1"), &json!(["::1", "127.0.0.1"])),
        "CL-68"
    );
    let bound: Vec<_> =
        made["listeners"].as_array().unwrap().iter().map(|one| one["bound"].clone()).collect();
    assert_eq!(json!(bound), json!(["[::1]:8080", "127.0.0.1:8080", "[::1]:53", "127.0.0.1:53"]), "CL-68");
}

#[tokio::test(start_paused = true)]
async fn two_clusters_do_not_meet() {
    let it = service().await;
    let one = it.put("web", &spec("u")).await.json();
    let two = it.send_json("PUT", "/v1/loadbalancers/c1/default/web", &spec("u")).await.json();
    assert_ne!(one["address"], two["address"], "CL-44");
    let list = it.get("/v1/loadbalancers").await.json();
    assert_eq!(list, json!({"items": [two, one]}), "CL-44 by cluster, namespace and name");
}
