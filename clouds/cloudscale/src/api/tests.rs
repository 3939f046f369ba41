//! Every mutation as it goes over the wire, and what follows from every kind of answer.

use cloudberth_core::lb::{Balancers, Outcome};
use cloudberth_http::testing::Reply;
use serde_json::{Value, json};

use super::*;
use crate::{
    Answer,
    annotations::Floating,
    fixture::{Script, uuid},
    wire::{
        HttpChange, ListenerChange, MonitorChange, NewBalancer, NewHttp, NewListener, NewMember, NewMonitor,
        NewPool, NewVip,
    },
};

fn listener_change(change: ListenerChange) -> Action {
    Action::UpdateListener { listener: uuid(4), change }
}

fn monitor_change(change: MonitorChange) -> Action {
    Action::UpdateMonitor { monitor: uuid(5), change }
}

async fn send(act: &Action, replies: impl IntoIterator<Item = Reply>) -> (Outcome<Answer>, Script) {
    let script = Script::new();
    let request = act.request();
    let method = match request.method {
        Method::Post => "POST",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    };
    script.cloud.on(&format!("{method} /v1/{}", request.path.join("/")), replies);
    (script.balancers().execute(&script.call(), act).await, script)
}

fn creations() -> [(&'static str, Action, String, Value); 6] {
    let vip = NewVip { address: Some("10.0.0.5".to_owned()), subnet: Some(uuid(9)) };
    let balancer = NewBalancer {
        name: "k8s-service-deadbeef".to_owned(),
        flavor: "lb-standard".to_owned(),
        zone: Some("lpg1".to_owned()),
        vip_addresses: vec![vip],
    };
    let pool = NewPool {
        name: "tcp/http".to_owned(),
        load_balancer: uuid(1),
        algorithm: "round_robin".to_owned(),
        protocol: "tcp".to_owned(),
    };
    let member = NewMember {
        name: "10.0.0.1:30080".to_owned(),
        protocol_port: 30_080,
        monitor_port: 32_000,
        address: "10.0.0.1".to_owned(),
        subnet: uuid(9),
    };
    let listener = NewListener {
        name: "tcp/80".to_owned(),
        pool: uuid(2),
        protocol: "tcp".to_owned(),
        protocol_port: 80,
        allowed_cidrs: vec!["10.0.0.0/8".to_owned()],
        timeout_client_data_ms: 50_000,
        timeout_member_connect_ms: 5_000,
        timeout_member_data_ms: 50_000,
    };
    let http = NewHttp {
        expected_codes: vec!["200".to_owned(), "202".to_owned()],
        method: "HEAD".to_owned(),
        url_path: "/x".to_owned(),
        version: "1.1".to_owned(),
        host: Some("h".to_owned()),
    };
    let monitor = NewMonitor {
        pool: uuid(2),
        kind: "https".to_owned(),
        delay_s: 2,
        timeout_s: 1,
        up_threshold: 2,
        down_threshold: 3,
        http,
    };
    let plain = NewMonitor { kind: "tcp".to_owned(), http: NewHttp::default(), ..monitor.clone() };
    [
        (
            "CS-103",
            Action::CreateBalancer(balancer),
            "POST /v1/load-balancers".to_owned(),
            json!({"name": "k8s-service-deadbeef", "flavor": "lb-standard", "zone": "lpg1",
                   "vip_addresses": [{"address": "10.0.0.5", "subnet": uuid(9)}]}),
        ),
        (
            "CS-108",
            Action::CreatePool(pool),
            "POST /v1/load-balancers/pools".to_owned(),
            json!({"name": "tcp/http", "load_balancer": uuid(1), "algorithm": "round_robin", "protocol": "tcp"}),
        ),
        (
            "CS-109",
            Action::CreateMember { pool: uuid(2), member },
            format!("POST /v1/load-balancers/pools/{}/members", uuid(2)),
            json!({"name": "10.0.0.1:30080", "protocol_port": 30080, "monitor_port": 32000, "address": "10.0.0.1",
                   "subnet": uuid(9)}),
        ),
        (
            "CS-110",
            Action::CreateListener(listener),
            "POST /v1/load-balancers/listeners".to_owned(),
            json!({"name": "tcp/80", "pool": uuid(2), "protocol": "tcp", "protocol_port": 80,
                   "allowed_cidrs": ["10.0.0.0/8"], "timeout_client_data_ms": 50000,
                   "timeout_member_connect_ms": 5000, "timeout_member_data_ms": 50000}),
        ),
        (
            "CS-112",
            Action::CreateMonitor(monitor),
            "POST /v1/load-balancers/health-monitors".to_owned(),
            json!({"pool": uuid(2), "type": "https", "delay_s": 2, "timeout_s": 1, "up_threshold": 2,
                   "down_threshold": 3, "http": {"expected_codes": ["200", "202"], "method": "HEAD",
                   "url_path": "/x", "version": "1.1", "host": "h"}}),
        ),
        (
            "CS-112 without HTTP it is sent empty",
            Action::CreateMonitor(plain),
            "POST /v1/load-balancers/health-monitors".to_owned(),
            json!({"pool": uuid(2), "type": "tcp", "delay_s": 2, "timeout_s": 1, "up_threshold": 2,
                   "down_threshold": 3, "http": {}}),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_is_created_is_sent_whole_and_read_whole() {
    for (case, act, line, body) in creations() {
        let mut full = body.clone();
        full["uuid"] = json!(uuid(77));
        full["load_balancer"] = json!({"uuid": uuid(1)});
        full["pool"] = json!({"uuid": uuid(2)});
        full["subnet"] = json!({"uuid": uuid(9), "cidr": "10.0.0.0/24"});
        full["flavor"] = json!({"slug": "lb-standard"});
        full["zone"] = json!({"slug": "lpg1"});
        full["vip_addresses"] = json!([{"address": "10.0.0.5", "subnet": null}]);
        full["status"] = json!("changing");
        full["http"] = match &body["http"] {
            http if http["version"].is_string() => http.clone(),
            _ => json!(null),
        };
        let (outcome, script) = send(&act, [Reply::json(201, &full)]).await;
        let Outcome::Done(answer) = outcome else { panic!("{case}: {outcome:?}") };
        let id = match answer {
            Answer::Balancer(new) => new.uuid,
            Answer::Pool(new) => new.uuid,
            Answer::Member(new) => new.uuid,
            Answer::Listener(new) => new.uuid,
            Answer::Monitor(new) => new.uuid,
            Answer::Done => panic!("{case}: the new thing has an id"),
        };
        assert_eq!(id, uuid(77), "{case}");
        let received = script.cloud.received();
        assert_eq!(received[0].line, line, "{case}");
        assert_eq!(serde_json::from_str::<Value>(&received[0].body).unwrap(), body, "{case}");
        assert_eq!(received[0].header("content-type"), "application/json", "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_attribute_is_changed_at_a_time() {
    let floating = Floating::parse("100.1.1.1/24").unwrap();
    let assign = Action::AssignFloatingIp {
        address: floating.address.to_string(),
        network: floating.network.to_string(),
        balancer: uuid(1),
    };
    let http = |change| monitor_change(MonitorChange::Http(change));
    let table = [
        (
            "CS-104",
            Action::RenameBalancer { balancer: uuid(1), name: "new".to_owned() },
            json!({"name": "new"}),
        ),
        ("CS-111", listener_change(ListenerChange::AllowedCidrs(vec![])), json!({"allowed_cidrs": []})),
        (
            "CS-111",
            listener_change(ListenerChange::TimeoutClientData(1)),
            json!({"timeout_client_data_ms": 1}),
        ),
        (
            "CS-111",
            listener_change(ListenerChange::TimeoutMemberConnect(2)),
            json!({"timeout_member_connect_ms": 2}),
        ),
        (
            "CS-111",
            listener_change(ListenerChange::TimeoutMemberData(3)),
            json!({"timeout_member_data_ms": 3}),
        ),
        ("CS-113", http(HttpChange::Method("HEAD".to_owned())), json!({"http": {"method": "HEAD"}})),
        ("CS-113", http(HttpChange::Host("h".to_owned())), json!({"http": {"host": "h"}})),
        ("CS-113", http(HttpChange::UrlPath("/x".to_owned())), json!({"http": {"url_path": "/x"}})),
        (
            "CS-113",
            http(HttpChange::ExpectedCodes(vec!["204".to_owned()])),
            json!({"http": {"expected_codes": ["204"]}}),
        ),
        ("CS-113", monitor_change(MonitorChange::Delay(4)), json!({"delay_s": 4})),
        ("CS-113", monitor_change(MonitorChange::Timeout(5)), json!({"timeout_s": 5})),
        ("CS-113", monitor_change(MonitorChange::UpThreshold(6)), json!({"up_threshold": 6})),
        ("CS-113", monitor_change(MonitorChange::DownThreshold(7)), json!({"down_threshold": 7})),
        ("CS-114", assign, json!({"load_balancer": uuid(1)})),
    ];
    for (case, act, body) in table {
        let (outcome, script) = send(&act, [Reply::empty(204)]).await;
        assert_eq!(outcome, Outcome::Done(Answer::Done), "{case}");
        let received = script.cloud.received();
        let line = match &act {
            Action::RenameBalancer { .. } => format!("PATCH /v1/load-balancers/{}", uuid(1)),
            Action::UpdateListener { .. } => format!("PATCH /v1/load-balancers/listeners/{}", uuid(4)),
            Action::UpdateMonitor { .. } => format!("PATCH /v1/load-balancers/health-monitors/{}", uuid(5)),
            _ => "PATCH /v1/floating-ips/100.1.1.1".to_owned(),
        };
        assert_eq!(received.len(), 1, "{case}");
        assert_eq!(received[0].line, line, "{case}");
        assert_eq!(serde_json::from_str::<Value>(&received[0].body).unwrap(), body, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_deleted() {
    let not_found = || Reply::json(404, &json!({"detail": "Not found."}));
    let acts = [
        (Action::DeleteBalancer { balancer: uuid(1) }, format!("/v1/load-balancers/{}", uuid(1))),
        (Action::DeletePool { pool: uuid(2) }, format!("/v1/load-balancers/pools/{}", uuid(2))),
        (
            Action::DeleteMember { pool: uuid(2), member: uuid(3) },
            format!("/v1/load-balancers/pools/{}/members/{}", uuid(2), uuid(3)),
        ),
        (Action::DeleteListener { listener: uuid(4) }, format!("/v1/load-balancers/listeners/{}", uuid(4))),
        (
            Action::DeleteMonitor { monitor: uuid(5) },
            format!("/v1/load-balancers/health-monitors/{}", uuid(5)),
        ),
    ];
    for (act, path) in acts {
        let table = [
            ("CS-106", Reply::empty(204), Outcome::Done(Answer::Done)),
            ("CS-152", not_found(), Outcome::NotThere),
        ];
        for (case, reply, want) in table {
            let (outcome, script) = send(&act, [reply]).await;
            assert_eq!(outcome, want, "{case} {path}");
            assert_eq!(script.cloud.lines(), [format!("DELETE {path}")], "{case}");
        }
        let (outcome, _) = send(&act, [Reply::json(403, &json!({"detail": "read only"}))]).await;
        let Outcome::Failed(why) = outcome else { panic!("CS-106 {outcome:?}") };
        assert_eq!(why.category(), Category::Unauthorised, "CS-106 {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_did_nothing_and_a_lost_answer_may_have() {
    let create = Action::CreatePool(NewPool {
        name: "tcp".to_owned(),
        load_balancer: uuid(1),
        algorithm: "round_robin".to_owned(),
        protocol: "tcp".to_owned(),
    });
    let delete = Action::DeleteBalancer { balancer: uuid(1) };
    let oops = || Reply::json(500, &json!({"detail": "oops"}));
    let down = || Reply::json(503, &json!({"detail": "maintenance"}));
    let busy = || Reply::json(429, &json!({"detail": "slow down"})).header("retry-after", "5");
    let table = [
        (
            "a value that the API refuses",
            &create,
            vec![Reply::json(400, &json!({"name": ["no"]}))],
            Some(Category::UserInput),
            1,
        ),
        (
            "L12-803 too many",
            &create,
            vec![busy()],
            Some(Category::Throttled { retry_after: Some(Duration::from_secs(5)) }),
            1,
        ),
        (
            "nobody there",
            &create,
            vec![Reply::refused(), Reply::refused(), Reply::refused(), Reply::refused()],
            Some(Category::Temporary),
            0,
        ),
        (
            "L6-828 maintenance is got over, and did nothing",
            &create,
            vec![down(), down(), down(), down()],
            Some(Category::Temporary),
            4,
        ),
        (
            "L6-829 maintenance of something in between",
            &create,
            vec![Reply::text(503, "<html>down</html>")],
            None,
            1,
        ),
        ("L6-801 an error inside", &create, vec![oops()], None, 1),
        ("L6-802 no answer", &create, vec![Reply::dropped()], None, 1),
        ("L6-803 half an answer", &create, vec![Reply::json(201, &json!({"uuid": uuid(7)})).cut()], None, 1),
        ("L6-804 a page", &create, vec![Reply::text(200, "<html>ok</html>")], None, 1),
        (
            "L6-805 an answer that says too little",
            &create,
            vec![Reply::json(201, &json!({"uuid": uuid(7)}))],
            None,
            1,
        ),
        (
            "still being built",
            &delete,
            vec![Reply::json(400, &json!({"detail": "being created"}))],
            Some(Category::Conflict),
            1,
        ),
        ("CS-157 a removal is repeated", &delete, vec![oops(), oops(), oops(), oops()], None, 4),
    ];
    for (case, act, replies, failed, sent) in table {
        let (outcome, script) = send(act, replies).await;
        let category = match &outcome {
            Outcome::Failed(why) => Some(why.category()),
            Outcome::Unknown(_) => None,
            Outcome::Done(_) | Outcome::NotThere | Outcome::Refused { .. } => panic!("{case}: {outcome:?}"),
        };
        assert_eq!(category, failed, "{case}: {outcome:?}");
        assert_eq!(script.cloud.lines().len(), sent, "{case}");
    }
    let (outcome, _) =
        send(&delete, [Reply::dropped(), Reply::json(404, &json!({"detail": "Not found."}))]).await;
    assert_eq!(outcome, Outcome::NotThere, "L6-806 the first one was heard");
}

#[tokio::test(start_paused = true)]
async fn no_id_leads_out_of_its_place() {
    for id in ["", ".", ".."] {
        let (outcome, script) = send(&Action::DeletePool { pool: id.to_owned() }, []).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{id:?}");
        assert_eq!(script.cloud.lines(), Vec::<String>::new(), "{id:?}");
    }
    let act = Action::DeletePool { pool: "../../servers/x?y#z".to_owned() };
    let script = Script::new();
    let _ = script.balancers().execute(&script.call(), &act).await;
    assert_eq!(script.cloud.lines(), ["DELETE /v1/load-balancers/pools/..%2F..%2Fservers%2Fx%3Fy%23z"]);
}

#[tokio::test(start_paused = true)]
async fn the_links_of_an_answer_are_not_followed() {
    let script = Script::new();
    let elsewhere = json!({"uuid": uuid(1), "name": "n", "status": "running", "vip_addresses": [],
        "href": "https://evil.example/v1/load-balancers/1"});
    let line = format!("GET /v1/load-balancers/{}", uuid(1));
    script.cloud.always(&line, Reply::json(200, &elsewhere));
    let found = script.api.balancer(&script.call(), &uuid(1)).await.known().unwrap().unwrap();
    let act = Action::DeleteBalancer { balancer: found.uuid };
    let gone = format!("DELETE /v1/load-balancers/{}", uuid(1));
    script.cloud.on(&gone, [Reply::empty(204)]);
    assert_eq!(
        script.balancers().execute(&script.call(), &act).await,
        Outcome::Done(Answer::Done),
        "L10-808"
    );
    let hosts: Vec<_> = script.cloud.received().iter().map(|r| r.header("host").to_owned()).collect();
    assert!(hosts.iter().all(|host| !host.contains("evil")), "L10-808 {hosts:?}");
    assert_eq!(script.cloud.lines(), [line, gone], "L10-808");
}
