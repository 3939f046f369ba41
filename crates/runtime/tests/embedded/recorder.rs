//! Events, as the API gets to see them.

use std::sync::Arc;

use crate::fixture::{Fixture, pass};
use cloudberth_core::{Random, call::ReadOnly, reason::ENSURED_LOAD_BALANCER};
use cloudberth_runtime::{
    cluster::Cluster,
    metrics::Counter,
    recorder::{Event, EventRecorder, ObjectRef},
};
use embedded_kube::{Fault, Harm};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

fn occurrence(message: &str) -> Event {
    let about = ObjectRef::core("Service", "default", "web", "u1");
    let (reason, message) = (ENSURED_LOAD_BALANCER, message.to_owned());
    Event { about, warning: false, reason, message, component: "service-controller" }
}

/// Runs until it is dropped.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn start(cluster: &Cluster) -> (Arc<EventRecorder>, Running) {
    let recorder = EventRecorder::new(cluster.writer().clone(), Arc::new(Random::seeded(1)));
    let writer = Arc::clone(&recorder);
    (recorder, Running(tokio::spawn(async move { writer.run().await })))
}

fn events(fixture: &Fixture) -> Vec<Value> {
    fixture.api.objects("events").iter().map(|event| Value::clone(event)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_says_who_what_and_when() {
    let fixture = Fixture::new();
    let (recorder, _running) = start(&fixture.cluster);
    pass(3).await;
    recorder.publish(occurrence("done"));
    pass(1).await;
    recorder.publish(occurrence("done"));
    let node = ObjectRef::core("Node", "", "n1", "u7");
    recorder.publish(Event { about: node, warning: true, ..occurrence("no") });
    pass(1).await;
    let mut events = events(&fixture);
    events.sort_by_key(|event| event["metadata"]["name"].to_string());
    assert_eq!(events.len(), 2);
    let service = &events[1];
    let parts =
        ["type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "reportingComponent"];
    let want = [
        json!("Normal"),
        json!("EnsuredLoadBalancer"),
        json!("done"),
        json!(2),
        json!("2023-11-14T22:13:23Z"),
        json!("2023-11-14T22:13:24Z"),
        json!("service-controller"),
    ];
    assert_eq!(parts.map(|part| service[part].clone()), want);
    assert_eq!(service["source"], json!({"component": "service-controller"}));
    let reference =
        json!({"apiVersion": "v1", "kind": "Service", "namespace": "default", "name": "web", "uid": "u1"});
    assert_eq!(service["involvedObject"], reference);
    let node = &events[0];
    assert_eq!((&node["type"], &node["metadata"]["namespace"]), (&json!("Warning"), &json!("default")));
    assert_eq!(
        node["involvedObject"],
        json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u7"})
    );
    assert_eq!((fixture.calls("create", "events").len(), fixture.calls("patch", "events").len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn what_stands_for_several_names_no_reporter() {
    let fixture = Fixture::new();
    let (recorder, _running) = start(&fixture.cluster);
    (0..12).for_each(|n| recorder.publish(occurrence(&format!("m{n}"))));
    pass(1).await;
    let events = events(&fixture);
    let combined: Vec<_> =
        events.iter().filter(|e| e["message"].to_string().contains("combined from")).collect();
    assert_eq!((events.len(), combined.len()), (10, 1));
    assert_eq!(combined[0]["message"], "(combined from similar events): m11");
    assert_eq!(combined[0]["count"], 3);
    assert!(combined[0]["reportingComponent"].as_str().unwrap_or_default().is_empty());
}

#[tokio::test(start_paused = true)]
async fn trouble_is_outlasted_if_that_can_help() {
    let status = |code| Harm::Status { code, retry_after: None };
    // The harm, how often, then: how many events there are, how often it was tried, how many were dropped.
    let table = [
        ("nothing", status(500), 0, 1, 1, 0),
        ("the call is lost", Harm::LostCall, 3, 1, 4, 0),
        ("the answer is lost: it is there already", Harm::LostAnswer, 2, 1, 3, 0),
        ("the server is in trouble", status(503), 11, 1, 12, 0),
        ("L12-25 in trouble for too long", status(503), 99, 0, 12, 1),
        ("L12-26 asked to wait", Harm::Status { code: 429, retry_after: Some(30) }, 1, 1, 2, 0),
        ("no right to write", status(403), 99, 0, 1, 1),
        ("not accepted", status(422), 99, 0, 1, 1),
    ];
    for (case, harm, times, there, tries, dropped) in table {
        let fixture = Fixture::new();
        let (recorder, _running) = start(&fixture.cluster);
        fixture.api.add_fault(Fault::new(harm.clone()).on("create", "events").times(times));
        recorder.publish(occurrence("done"));
        pass(200).await;
        let calls = fixture.calls("create", "events");
        assert_eq!(
            (events(&fixture).len(), calls.len(), recorder.dropped()),
            (there, tries, dropped),
            "{case}"
        );
        if harm == (Harm::Status { code: 429, retry_after: Some(30) }) {
            let waited = calls[1].at.duration_since(calls[0].at).as_secs();
            assert_eq!(waited, 30, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_may_write_no_events_drops_none_if_it_can_do_without() {
    // The verb, the answer, how often it was tried, how many were dropped.
    let table = [
        ("RF-192 no right to create", "create", 403, 1, 0),
        ("RF-192 no right to raise the count", "patch", 403, 2, 0),
        ("nobody knows us", "create", 401, 1, 1),
        ("nobody knows us any more", "patch", 401, 2, 1),
        ("not accepted", "create", 422, 1, 1),
        ("in trouble for too long", "create", 503, 12, 1),
    ];
    for (case, verb, code, tries, dropped) in table {
        let fixture = Fixture::new();
        let (writer, random) = (fixture.cluster.writer().clone(), Arc::new(Random::seeded(1)));
        let recorder = EventRecorder::optional(writer, random, Counter::default());
        let run = Arc::clone(&recorder);
        let _running = Running(tokio::spawn(async move { run.run().await }));
        fixture.api.add_fault(Fault::new(Harm::status(code)).on(verb, "events"));
        recorder.publish(occurrence("done"));
        pass(1).await;
        if verb == "patch" {
            recorder.publish(occurrence("done"));
        }
        pass(200).await;
        let calls = fixture.calls("create", "events").len() + fixture.calls("patch", "events").len();
        assert_eq!((calls, recorder.dropped()), (tries, dropped), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_forgotten_is_written_anew() {
    let fixture = Fixture::new();
    let (recorder, _running) = start(&fixture.cluster);
    recorder.publish(occurrence("done"));
    pass(1).await;
    let name = events(&fixture)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    fixture.send("DELETE", &format!("/api/v1/namespaces/default/events/{name}"), None).await;
    recorder.publish(occurrence("done"));
    pass(1).await;
    let events = events(&fixture);
    assert_eq!((events.len(), &events[0]["count"], recorder.dropped()), (1, &json!(2), 0));
    assert_eq!(events[0]["metadata"]["name"], json!(name));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_being_deleted_takes_no_events() {
    let fixture = Fixture::new();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}});
    fixture.send("POST", "/api/v1/namespaces", Some(namespace)).await;
    let held = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", "finalizers": ["a.example/b"]},
        "spec": {"ports": [{"port": 80}]}});
    fixture.send("POST", "/api/v1/namespaces/going/services", Some(held)).await;
    fixture.send("DELETE", "/api/v1/namespaces/going", None).await;
    let (recorder, _running) = start(&fixture.cluster);
    let about = ObjectRef::core("Service", "going", "x", "u1");
    recorder.publish(Event { about, ..occurrence("done") });
    recorder.publish(occurrence("the next one"));
    pass(1).await;
    assert_eq!(
        (events(&fixture).len(), fixture.calls("create", "events").len(), recorder.dropped()),
        (1, 2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_takes_no_events_holds_up_nobody_else() {
    let refuses = Harm::Status { code: 500, retry_after: None };
    for (case, harm) in [("refuses", refuses), ("hangs", Harm::Latency { millis: 60_000 })] {
        let fixture = Fixture::new();
        for name in ["bad", "good"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            fixture.send("POST", "/api/v1/namespaces", Some(namespace)).await;
        }
        let fault = Fault::new(harm).on("create", "events");
        fixture.api.add_fault(Fault { namespace: "bad".to_owned(), ..fault });
        let (recorder, _running) = start(&fixture.cluster);
        let about = |namespace: &str, name: &str| Event {
            about: ObjectRef::core("Service", namespace, name, "u1"),
            ..occurrence("done")
        };
        for number in 0..20 {
            recorder.publish(about("bad", &format!("s{number}")));
        }
        recorder.publish(about("good", "web"));
        recorder.publish(Event { about: ObjectRef::core("Node", "", "n1", "u7"), ..occurrence("joined") });
        pass(1).await;
        assert_eq!(events(&fixture).len(), 2, "L11-612 {case}: those of the others are there");
        recorder.publish(Event { message: "more".into(), ..about("bad", "s0") });
        fixture.api.clear_faults();
        pass(300).await;
        assert_eq!(
            (events(&fixture).len(), recorder.dropped()),
            (23, 0),
            "L11-613 {case}: and those in the end"
        );
        let mut mine: Vec<_> = events(&fixture);
        mine.retain(|event| event["involvedObject"]["name"] == "s0");
        mine.sort_by_key(|event| {
            event["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap()
        });
        let told: Vec<_> = mine.iter().map(|event| event["message"].clone()).collect();
        assert_eq!(told, ["done", "more"], "L4-703 {case}: in the order of telling");
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_nothing_is_said_by_itself() {
    let fixture = Fixture::new();
    let recorder = EventRecorder::new(fixture.cluster.writer().clone(), Arc::new(Random::seeded(1)));
    for n in 0..1_100 {
        let about = ObjectRef::core("Node", "", &format!("n{n}"), "");
        recorder.publish(Event { about, ..occurrence("ok") });
    }
    assert_eq!(recorder.dropped(), 100, "L12-27");
    let writer = Arc::clone(&recorder);
    let _running = Running(tokio::spawn(async move { writer.run().await }));
    pass(5).await;
    let calls = fixture.api.calls(0).len();
    assert_eq!((events(&fixture).len(), calls), (1_000, 1_000));
    pass(100_000).await;
    assert_eq!(fixture.api.calls(0).len(), calls, "L4-20");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_says_nothing() {
    let fixture = Fixture::new();
    let standby = Cluster::new(fixture.client.clone(), Arc::clone(&fixture.clock), Arc::new(ReadOnly));
    let (recorder, _running) = start(&standby);
    recorder.publish(occurrence("done"));
    pass(100).await;
    assert_eq!((fixture.api.calls(0).len(), recorder.dropped()), (0, 1), "L9-20");
}
