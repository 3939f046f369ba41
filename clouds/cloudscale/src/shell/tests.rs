//! Which questions a look asks, and what it makes of the answers.

use cloudberth_core::{
    Category,
    lb::{Goal, Next},
};
use cloudberth_http::testing::{Reply, ScriptedCloud};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{Script, node, service, uuid, want};

fn balancer(number: u32, name: &str) -> Value {
    json!({"uuid": uuid(number), "name": name, "status": "running", "zone": {"slug": "rma1"},
           "flavor": {"slug": "lb-standard"}, "vip_addresses": [{"address": "203.0.113.9", "subnet": null}]})
}

fn server(number: u32, name: &str) -> Value {
    json!({"uuid": uuid(number), "name": name, "status": "running", "zone": {"slug": "rma1"}, "interfaces": [
        {"type": "public", "addresses": [{"address": "203.0.113.1", "subnet": {"uuid": uuid(90)}}]},
        {"type": "private", "addresses": [
            {"address": format!("10.0.0.{number}"), "subnet": {"uuid": uuid(91)}},
            {"address": "10.9.9.9", "subnet": null}]}]})
}

fn not_found() -> Reply {
    Reply::json(404, &json!({"detail": "Not found."}))
}

/// A project with these load balancers and nothing below them.
fn project(script: &Script, balancers: &[Value]) {
    let cloud = &script.cloud;
    cloud.always("GET /v1/load-balancers", Reply::json(200, &json!(balancers)));
    for balancer in balancers {
        let line = format!("GET /v1/load-balancers/{}", balancer["uuid"].as_str().unwrap());
        cloud.always(&line, Reply::json(200, balancer));
    }
    for kind in [
        "load-balancers/pools",
        "load-balancers/listeners",
        "load-balancers/health-monitors",
        "floating-ips",
        "servers",
    ] {
        cloud.always(&format!("GET /v1/{kind}"), Reply::json(200, &json!([])));
    }
}

async fn observe(script: &Script, want: &Desired) -> Result<Observed> {
    let balancers = script.balancers();
    let call = script.call();
    let survey = Survey::default();
    balancers.observe(&call, &*script.fleet(), &survey, want).await.known().map(Option::unwrap_or_default)
}

fn found(observed: &Observed) -> Option<&str> {
    observed.existing.as_ref().map(|existing| existing.balancer.uuid.as_str())
}

fn paths(cloud: &ScriptedCloud) -> Vec<String> {
    cloud.lines().iter().map(|line| line.replace("GET /v1/", "")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_found_by_its_id_and_its_name() {
    let default = "k8s-service-deadbeef";
    let one = || vec![balancer(1, "one"), balancer(2, "two")];
    let id = |number| ("uuid", uuid(number));
    let name = |text: &str| ("name", text.to_owned());
    let many = Err(Category::Conflict);
    let table = [
        ("CS-39 no match for the default name", one(), vec![], Ok(None)),
        ("CS-40 the default name", vec![balancer(1, default)], vec![], Ok(Some(1))),
        ("CS-40 a name", one(), vec![name("two")], Ok(Some(2))),
        ("CS-41 a name that two have", vec![balancer(1, "x"), balancer(2, "x")], vec![name("x")], many),
        ("CS-42 id and name of different ones", one(), vec![id(1), name("two")], many),
        ("CS-43 an id that nothing has", one(), vec![id(7), name("two")], Ok(Some(2))),
        ("CS-44 id and name of the same", one(), vec![id(2), name("two")], Ok(Some(2))),
        ("CS-45 by id, renamed by hand", one(), vec![id(1)], Ok(Some(1))),
        ("CS-48 neither is known", one(), vec![id(7), name("three")], Ok(None)),
        ("CS-47 no name and no id", one(), vec![name("")], Err(Category::UserInput)),
        (
            "an id in another spelling",
            one(),
            vec![("uuid", uuid(1).replace('-', "")), name("one")],
            Ok(Some(1)),
        ),
        ("an id that cannot be one", one(), vec![("uuid", "../x".to_owned()), name("one")], Ok(Some(1))),
    ];
    for (case, balancers, annotations, expected) in table {
        let annotations: Vec<_> = annotations.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let script = Script::new();
        project(&script, &balancers);
        script.cloud.always(&format!("GET /v1/load-balancers/{}", uuid(7)), not_found());
        let observed = observe(&script, &want(service(&annotations), Goal::Present, vec![])).await;
        let got =
            observed.as_ref().map(|observed| found(observed).map(str::to_owned)).map_err(Error::category);
        assert_eq!(got, expected.map(|number| number.map(uuid)), "{case}: {observed:?}");
        if case.starts_with("CS-47") {
            assert_eq!(paths(&script.cloud), [""; 0], "{case}");
        }
        if case.starts_with("CS-45") {
            let asked = paths(&script.cloud).iter().filter(|path| path.ends_with(&uuid(1))).count();
            assert_eq!(asked, 1, "{case}: what the source said is not asked again");
        }
        if let Err(why) = observed.filter_several() {
            assert!(why.contains(&uuid(1)) && why.contains(&uuid(2)), "{case}: {why}");
        }
    }
}

/// The text of an error about several load balancers.
trait Several {
    fn filter_several(self) -> Result<(), String>;
}

impl Several for Result<Observed> {
    fn filter_several(self) -> Result<(), String> {
        match self {
            Err(why) if why.category() == Category::Conflict => Err(why.message().to_owned()),
            _ => Ok(()),
        }
    }
}

/// Each of these load balancers has one pool without members.
fn pools(script: &Script, balancers: &[u32]) {
    let pool = |number: &u32| {
        json!({"uuid": uuid(number + 10), "name": "tcp", "load_balancer": {"uuid": uuid(*number)},
               "algorithm": "round_robin", "protocol": "tcp"})
    };
    let all: Vec<_> = balancers.iter().map(pool).collect();
    script.cloud.always("GET /v1/load-balancers/pools", Reply::json(200, &json!(all)));
    for number in balancers {
        let path = format!("GET /v1/load-balancers/pools/{}/members", uuid(number + 10));
        script.cloud.always(&path, Reply::json(200, &json!([])));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_is_not_an_absence() {
    let oops = || Reply::json(500, &json!({"detail": "oops"}));
    let line = format!("GET /v1/load-balancers/{}", uuid(1));
    let table = [
        ("CS-46 CS-157 the id and the listing", vec![line.as_str(), "GET /v1/load-balancers"], oops()),
        ("CS-46 the id alone", vec![line.as_str()], oops()),
        ("L1-810 refused", vec![line.as_str()], Reply::json(401, &json!({"detail": "Invalid token."}))),
        ("L1-811 a page", vec![line.as_str()], Reply::text(404, "<html>404</html>")),
    ];
    for (case, lines, reply) in table {
        for goal in [Goal::Present, Goal::Gone] {
            let script = Script::new();
            project(&script, &[]);
            for line in &lines {
                script.cloud.always(line, reply.clone());
            }
            let observed = observe(&script, &want(service(&[("uuid", &uuid(1))]), goal, vec![])).await;
            assert!(observed.is_err(), "{case} {goal:?}: {observed:?}");
        }
    }
    for kind in [
        "load-balancers",
        "load-balancers/pools",
        "load-balancers/listeners",
        "load-balancers/health-monitors",
    ] {
        for (case, reply) in
            [("an error", oops()), ("L1-812 a short listing", Reply::json(200, &json!([{"uuid": 7}])))]
        {
            let script = Script::new();
            project(&script, &[balancer(1, "k8s-service-deadbeef")]);
            pools(&script, &[1]);
            script.cloud.always(&format!("GET /v1/{kind}"), reply);
            let observed = observe(&script, &want(service(&[]), Goal::Present, vec![])).await;
            assert!(observed.is_err(), "CS-157 {kind}, {case}: {observed:?}");
        }
    }
}

/// Law 11: what cannot be read of somebody else's load balancer is none of our business; law 1: of our own nothing is
/// known then.
#[tokio::test(start_paused = true)]
async fn a_part_that_cannot_be_read_stops_only_its_own_load_balancer() {
    let stub = |number| json!({"uuid": uuid(number)});
    // Pool 11 is of load balancer 1, pool 12 of load balancer 2.
    let pool = |number: u32, algorithm: Value| {
        json!({"uuid": uuid(number), "name": "tcp", "load_balancer": stub(number - 10), "algorithm": algorithm,
               "protocol": "tcp"})
    };
    let pools = json!([pool(11, json!("round_robin")), pool(12, json!("round_robin"))]);
    let table = [
        (
            "load-balancers/pools",
            json!([pool(11, json!(null)), pool(12, json!("x"))]),
            "pool",
            "algorithm is null",
            1,
        ),
        (
            "load-balancers/pools",
            json!([pool(11, json!("x")), pool(12, json!(null))]),
            "pool",
            "algorithm is null",
            2,
        ),
        (
            "load-balancers/listeners",
            json!([{"uuid": uuid(21), "load_balancer": stub(1), "pool": null}]),
            "listener",
            "name is missing",
            1,
        ),
        (
            "load-balancers/listeners",
            json!([{"uuid": uuid(22), "pool": stub(12)}]),
            "listener",
            "name is missing",
            2,
        ),
        (
            "load-balancers/listeners",
            json!([{"uuid": uuid(21), "pool": stub(11)}]),
            "listener",
            "name is missing",
            1,
        ),
        (
            "load-balancers/health-monitors",
            json!([{"uuid": uuid(31), "load_balancer": stub(1), "type": "tcp", "http": null, "pool": null}]),
            "health monitor",
            "pool is null",
            1,
        ),
        (
            "load-balancers/health-monitors",
            json!([{"uuid": uuid(31), "type": "http", "http": null, "pool": stub(11)}]),
            "health monitor",
            "http is null",
            1,
        ),
        (
            "load-balancers/health-monitors",
            json!([{"uuid": uuid(32), "type": "http", "http": {}, "pool": stub(12)}]),
            "health monitor",
            "http.expected_codes is missing",
            2,
        ),
    ];
    for (path, listing, kind, why, owner) in table {
        let script = Script::new();
        project(&script, &[balancer(1, "one"), balancer(2, "two")]);
        script.cloud.always("GET /v1/load-balancers/pools", Reply::json(200, &pools));
        for number in [11, 12] {
            let line = format!("GET /v1/load-balancers/pools/{}/members", uuid(number));
            script.cloud.always(&line, Reply::json(200, &json!([])));
        }
        script.cloud.always(&format!("GET /v1/{path}"), Reply::json(200, &listing));
        for (number, name) in [(1, "one"), (2, "two")] {
            let case = format!("{path} {listing}: load balancer {number}");
            let id = uuid(number);
            let ours = want(service(&[("uuid", &id), ("name", name)]), Goal::Present, vec![]);
            match observe(&script, &ours).await {
                Ok(_) => assert_ne!(number, owner, "L1-434 {case}"),
                Err(text) => {
                    assert_eq!(number, owner, "L11-405 {case}: {text}");
                    let text = text.message();
                    assert!(
                        text.starts_with(kind) && text.contains(&id) && text.ends_with(why),
                        "L1-434 {case}: {text}"
                    );
                }
            }
            let goes = want(service(&[("uuid", &id), ("name", name)]), Goal::Gone, vec![]);
            assert!(observe(&script, &goes).await.is_ok(), "{case}: what goes needs no parts");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_or_a_floating_ip_that_cannot_be_read_is_not_missing() {
    let script = Script::new();
    project(&script, &[balancer(1, "k8s-service-deadbeef")]);
    let pool = json!([{"uuid": uuid(11), "name": "tcp", "load_balancer": {"uuid": uuid(1)}, "algorithm": "x", "protocol": "tcp"}]);
    script.cloud.always("GET /v1/load-balancers/pools", Reply::json(200, &pool));
    let members = format!("GET /v1/load-balancers/pools/{}/members", uuid(11));
    let member = json!([{"uuid": uuid(41), "name": "n", "address": "10.0.0.1", "protocol_port": 1, "monitor_port": 1, "subnet": null}]);
    script.cloud.always(&members, Reply::json(200, &member));
    let text = observe(&script, &want(service(&[]), Goal::Present, vec![])).await.unwrap_err();
    let said = text.message();
    assert!(
        said.starts_with("member ") && said.contains(&uuid(11)) && said.ends_with("subnet is null"),
        "L1-435 {said}"
    );

    script.cloud.always(&members, Reply::json(200, &json!([])));
    let ips = json!([{"network": "192.0.2.7/32", "server": null}]);
    script.cloud.always("GET /v1/floating-ips", Reply::json(200, &ips));
    for (case, named, known) in [("named", "192.0.2.7/32", false), ("another", "192.0.2.8/32", true)] {
        let annotation = format!("[\"{named}\"]");
        let ours = want(service(&[("floating-ips", &annotation)]), Goal::Present, vec![]);
        assert_eq!(observe(&script, &ours).await.is_ok(), known, "L1-436 {case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_cannot_be_read_is_there() {
    let mut odd = balancer(1, "one");
    odd.as_object_mut().unwrap().remove("vip_addresses");
    let mut nameless = odd.clone();
    nameless["name"] = json!(null);
    let id = uuid(1);
    let recorded = vec![("uuid", id.as_str()), ("name", "one")];
    let table = [
        ("L1-437 by its id", &odd, recorded, false),
        ("L1-437 by its name", &odd, vec![("name", "one")], false),
        ("L11-406 another is found", &odd, vec![("name", "two")], true),
        ("L11-406 another is denied", &odd, vec![("name", "three")], true),
        ("L1-438 it may have any name", &nameless, vec![("name", "three")], false),
    ];
    for (case, listed, annotations, known) in table {
        for goal in [Goal::Present, Goal::Gone] {
            let script = Script::new();
            project(&script, &[listed.clone(), balancer(2, "two")]);
            let observed = observe(&script, &want(service(&annotations), goal, vec![])).await;
            assert_eq!(observed.is_ok(), known, "{case} {goal:?}: {observed:?}");
            if let Err(why) = observed {
                assert!(why.message().contains(&id), "{case}: {why}");
            }
            let balancers = script.balancers();
            assert!(balancers.shows(&script.call(), &id).await.is_present(), "L1-439 {case}: it is there");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn as_few_questions_as_prove_it() {
    let changing = |number| {
        let mut body = balancer(number, "k8s-service-deadbeef");
        body["status"] = json!("changing");
        body
    };
    let settled = || balancer(1, "k8s-service-deadbeef");
    let one = format!("load-balancers/{}", uuid(1));
    let members = format!("load-balancers/pools/{}/members", uuid(11));
    let below = ["load-balancers/listeners", "load-balancers/health-monitors"];
    let nodes = || vec![node("n", Some(&format!("cloudscale://{}", uuid(5))))];
    let recorded = uuid(1);
    let id = ("uuid", recorded.as_str());
    let floating = ("floating-ips", r#"["192.0.2.7/32"]"#);
    let begin = [one.as_str(), "load-balancers/pools"];
    let table = [
        ("CS-150 changing", changing(1), Goal::Present, vec![id], vec![one.as_str()]),
        ("CS-148 to be deleted", settled(), Goal::Gone, vec![id], vec![one.as_str()]),
        ("CS-149 to be deleted by name", settled(), Goal::Gone, vec![], vec!["load-balancers", &one]),
        (
            "settled",
            settled(),
            Goal::Present,
            vec![id],
            [&begin[..], &below, &[&members, "servers"]].concat(),
        ),
        (
            "settled, found by name",
            settled(),
            Goal::Present,
            vec![],
            [&["load-balancers", &one, "servers", "load-balancers/pools"][..], &below, &[&members]].concat(),
        ),
        (
            "with floating IPs",
            settled(),
            Goal::Present,
            vec![id, floating],
            [&begin[..], &below, &["floating-ips", &members, "servers"]].concat(),
        ),
    ];
    for (case, there, goal, annotations, asked) in table {
        let script = Script::new();
        project(&script, &[there]);
        pools(&script, &[1]);
        script.cloud.always("GET /v1/servers", Reply::json(200, &json!([server(5, "n")])));
        let backends = if goal == Goal::Gone { vec![] } else { nodes() };
        observe(&script, &want(service(&annotations), goal, backends)).await.unwrap();
        assert_eq!(paths(&script.cloud), asked, "L7-802 {case}");
    }
    let script = Script::new();
    project(&script, &[settled()]);
    observe(&script, &want(service(&[id]), Goal::Present, vec![])).await.unwrap();
    assert_eq!(paths(&script.cloud), begin, "L7-1608 without a pool nothing is below one");
}

/// What was listed in this term is not listed again because a node came or a port changed.
#[tokio::test(start_paused = true)]
async fn monitors_are_listed_once_for_a_while() {
    let script = Script::new();
    project(&script, &[balancer(1, "k8s-service-deadbeef")]);
    pools(&script, &[1]);
    let (balancers, call, recorded) = (script.balancers(), script.call(), uuid(1));
    let want = want(service(&[("uuid", recorded.as_str())]), Goal::Present, vec![]);
    let listings = || paths(&script.cloud).iter().filter(|path| path.ends_with("health-monitors")).count();
    for _ in 0..3 {
        let survey = Survey::default();
        assert!(balancers.observe(&call, &*script.fleet(), &survey, &want).await.is_present());
    }
    assert_eq!(listings(), 1, "L7-1609");
}

#[tokio::test(start_paused = true)]
async fn all_services_of_a_pass_share_the_listings() {
    let script = Script::new();
    project(&script, &[balancer(1, "one"), balancer(2, "two")]);
    pools(&script, &[1, 2]);
    script.cloud.always("GET /v1/servers", Reply::json(200, &json!([server(5, "n")])));
    let balancers = script.balancers();
    let call = script.call();
    let (fleet, survey) = (script.fleet(), Survey::default());
    let ghost = format!("cloudscale://{}", uuid(6));
    script.cloud.always(&format!("GET /v1/servers/{}", uuid(6)), not_found());
    for name in ["one", "two"] {
        let backends =
            vec![node("n", Some(&format!("cloudscale://{}", uuid(5)))), node("ghost", Some(&ghost))];
        let want = want(service(&[("name", name)]), Goal::Present, backends);
        assert!(balancers.observe(&call, &*fleet, &survey, &want).await.is_present(), "{name}");
    }
    let mut counts = BTreeMap::new();
    for path in paths(&script.cloud) {
        *counts.entry(path).or_insert(0) += 1;
    }
    assert!(counts.values().all(|count| *count == 1), "L7-803 {counts:?}");
    assert_eq!(counts.len(), 10, "L7-803 {counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_server_is_left_out_and_told() {
    let id = |number| format!("cloudscale://{}", uuid(number));
    let there = || vec![server(5, "a"), server(6, "b"), server(7, "twin"), server(8, "twin")];
    let names =
        |observed: &Observed| observed.instances.found.iter().map(|m| m.node.clone()).collect::<Vec<_>>();
    let script = Script::new();
    project(&script, &[]);
    script.cloud.always("GET /v1/servers", Reply::json(200, &json!(there())));
    script.cloud.always(&format!("GET /v1/servers/{}", uuid(9)), not_found());
    script.cloud.always(&format!("GET /v1/servers/{}", uuid(10)), Reply::json(200, &server(10, "late")));
    let backends = vec![
        node("named-otherwise", Some(&id(5))),
        node("b", None),
        node("gone", Some(&id(9))),
        node("late", Some(&id(10))),
        node("twin", None),
        node("foreign", Some("other://1")),
        node("broken", Some("cloudscale://bad")),
        node("nobody", None),
    ];
    let observed = observe(&script, &want(service(&[]), Goal::Present, backends)).await.unwrap();
    assert_eq!(names(&observed), ["named-otherwise", "b", "late"], "CS-32 CS-29 CS-38");
    let missing: Vec<_> = observed.instances.missing.iter().map(|(node, _)| node.as_str()).collect();
    assert_eq!(missing, ["gone", "twin", "foreign", "broken", "nobody"], "CS-38 CS-31");
    let first = &observed.instances.found[0];
    let addresses: Vec<_> = first.addresses.iter().map(|a| (a.address.as_str(), a.subnet.as_str())).collect();
    assert_eq!(addresses, [("10.0.0.5", uuid(91).as_str())], "CS-66 CS-67");
    assert_eq!(first.zone.as_deref(), Some("rma1"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_asked_about_stops_the_look() {
    let id = |number| format!("cloudscale://{}", uuid(number));
    let table = [
        (
            "CS-38 the source does not answer",
            json!([server(5, "a")]),
            Some(id(9)),
            Reply::json(500, &json!({})),
        ),
        ("CS-38 L1-813 none of the nodes has a server", json!([server(6, "x")]), Some(id(9)), not_found()),
        ("CS-37 an empty project", json!([]), Some(id(9)), not_found()),
        (
            "L1-814 half a listing proves nothing about a name",
            json!([server(5, "a"), {"name": "?"}]),
            None,
            not_found(),
        ),
    ];
    for (case, servers, lacking, reply) in table {
        let script = Script::new();
        project(&script, &[balancer(1, "k8s-service-deadbeef")]);
        script.cloud.always("GET /v1/servers", Reply::json(200, &servers));
        script.cloud.always(&format!("GET /v1/servers/{}", uuid(9)), reply);
        let nodes = vec![node("a", Some(&id(5))), node("b", lacking.as_deref())];
        let observed = observe(&script, &want(service(&[]), Goal::Present, nodes)).await;
        assert!(observed.is_err(), "{case}: {observed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_do_not_grow_with_the_nodes() {
    let nodes = |count: u32| {
        (0..count)
            .map(|n| node(&format!("n{n}"), Some(&format!("cloudscale://{}", uuid(1_000 + n)))))
            .collect::<Vec<_>>()
    };
    let script = Script::new();
    project(&script, &[]);
    script.cloud.always("GET /v1/servers", Reply::json(200, &json!([server(1_000, "n0")])));
    for n in 1_001..1_100 {
        script.cloud.always(&format!("GET /v1/servers/{}", uuid(n)), not_found());
    }
    let observed = observe(&script, &want(service(&[]), Goal::Present, nodes(100))).await.unwrap();
    assert_eq!((observed.instances.found.len(), observed.instances.missing.len()), (1, 99));
    assert!(script.cloud.lines().len() <= 2 + 16, "L7-804 {}", script.cloud.lines().len());

    script.cloud.always(&format!("GET /v1/servers/{}", uuid(1_003)), Reply::json(200, &server(1_003, "n3")));
    let doubtful = observe(&script, &want(service(&[]), Goal::Present, nodes(100))).await;
    assert!(doubtful.is_err(), "L1-815 a listing that lacks what exists is not believed about the rest");
    let none = Script::new();
    project(&none, &[]);
    none.cloud.always("GET /v1/servers", Reply::json(200, &json!([server(1, "x")])));
    assert!(observe(&none, &want(service(&[]), Goal::Present, nodes(100))).await.is_err(), "L1-816");
    assert_eq!(none.cloud.lines().len(), 2, "L7-805 nobody is asked about nodes of another project");
}

#[tokio::test(start_paused = true)]
async fn how_long_it_has_been_changing_is_remembered() {
    let script = Script::new();
    let mut there = balancer(1, "k8s-service-deadbeef");
    there["status"] = json!("changing");
    project(&script, &[there]);
    let balancers = script.balancers();
    let want = want(service(&[("uuid", &uuid(1))]), Goal::Present, vec![]);
    let changing_for = async || {
        let call = script.call();
        let survey = Survey::default();
        let observed =
            balancers.observe(&call, &*script.fleet(), &survey, &want).await.known().unwrap().unwrap();
        observed.existing.unwrap().changing_for
    };
    assert_eq!(changing_for().await, Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(changing_for().await, Duration::from_secs(7));
    let line = format!("GET /v1/load-balancers/{}", uuid(1));
    script.cloud.on(&line, [Reply::json(200, &balancer(1, "k8s-service-deadbeef"))]);
    assert_eq!(changing_for().await, Duration::ZERO);
    assert!(balancers.changing.lock().unwrap().is_empty());
    assert_eq!(changing_for().await, Duration::ZERO, "it begins anew");
    script.cloud.always(&line, not_found());
    script.cloud.always("GET /v1/load-balancers", Reply::json(200, &json!([])));
    let call = script.call();
    let survey = Survey::default();
    assert!(balancers.observe(&call, &*script.fleet(), &survey, &want).await.is_present());
    assert!(balancers.changing.lock().unwrap().is_empty(), "what is gone is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_recorded_id_is_shown_by_the_source() {
    let script = Script::new();
    project(&script, &[balancer(1, "x")]);
    script.cloud.always(&format!("GET /v1/load-balancers/{}", uuid(7)), not_found());
    let balancers = script.balancers();
    let call = script.call();
    assert!(balancers.shows(&call, &uuid(1)).await.is_present());
    assert!(balancers.shows(&call, &uuid(7)).await.is_absent());
    assert!(balancers.shows(&call, "../servers").await.known().is_err());
    assert_eq!(balancers.marks(), ["k8s.cloudscale.ch/loadbalancer-uuid"]);
}

/// The framework asks the shell; what it is told is what was decided.
#[tokio::test(start_paused = true)]
async fn the_shell_hands_on_what_the_decisions_say() {
    let script = Script::new();
    let shell = script.balancers();
    let service = service(&[("node-selector", "pick=me"), ("name", "front")]);
    assert_eq!(shell.selector(&service).unwrap(), plan::selector(&service).unwrap());
    assert!(shell.selector(&service).unwrap().is_some_and(|selector| selector != Selector::default()));
    let keys = shell.lock_keys(&service, "kubernetes");
    assert!(keys.iter().any(|key| key.value == "front"), "{keys:?}");
    let want = want(service, Goal::Present, vec![]);
    let Next::Act(steps) = shell.decide(&want, None).next else { panic!("something is to be created") };
    let act = &steps[0].act;
    let observed = shell.fold(Some(Observed::default()), act, &shell.assume(act));
    assert!(
        observed.is_some_and(|observed| found(&observed).is_some()),
        "what was answered is not looked for again"
    );
}
