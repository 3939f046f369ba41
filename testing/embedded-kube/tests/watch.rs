//! Watches under random writes: no event is lost, repeated or out of order, wherever a watch is cut off and resumed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod common;

use std::collections::BTreeMap;

use common::{call, cluster, next, next_now, watch};
use http::Method;
use proptest::prelude::*;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// One thing that happens to the cluster or to a watcher.
#[derive(Clone, Debug)]
enum Act {
    /// Sets an object's content and whether the selection of the second watcher sees it.
    Write {
        object: u8,
        content: u8,
        seen: bool,
    },
    Delete {
        object: u8,
    },
    /// A watcher reads what there is.
    Read {
        watcher: usize,
    },
    /// A watcher is cut off and resumes from the last version that it knows.
    Resume {
        watcher: usize,
    },
    Compact,
    Restart,
    /// Time passes, so that bookmarks are sent.
    Pass,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0u8..4, 0u8..3, any::<bool>()).prop_map(|(object, content, seen)| Act::Write { object, content, seen }),
        2 => (0u8..4).prop_map(|object| Act::Delete { object }),
        3 => (0usize..3).prop_map(|watcher| Act::Read { watcher }),
        2 => (0usize..3).prop_map(|watcher| Act::Resume { watcher }),
        1 => Just(Act::Compact),
        1 => Just(Act::Restart),
        1 => Just(Act::Pass),
    ]
}

/// The state that a client has built from the events.
struct Watcher {
    query: &'static str,
    body: Option<embedded_kube::Body>,
    state: BTreeMap<String, Value>,
    version: u64,
    relists: u32,
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

impl Watcher {
    async fn list(&mut self, api: &embedded_kube::KubeApi) {
        let (_, list) = call(api, Method::GET, &format!("{PATH}?{}", self.query), &Value::Null).await;
        self.version = version(&list);
        self.state.clear();
        for item in list["items"].as_array().unwrap() {
            self.state.insert(item["metadata"]["name"].as_str().unwrap().to_owned(), item["data"].clone());
        }
        self.relists += 1;
    }

    async fn open(&mut self, api: &embedded_kube::KubeApi) {
        let path = format!(
            "{PATH}?watch=true&allowWatchBookmarks=true&resourceVersion={}&{}",
            self.version, self.query
        );
        self.body = Some(watch(api, &path).await);
    }

    /// Reads all pending events and checks each of them.
    async fn read(&mut self, api: &embedded_kube::KubeApi) {
        while let Some(event) = match &mut self.body {
            Some(body) => next_now(body).await,
            None => None,
        } {
            let (kind, object) = (event["type"].as_str().unwrap(), &event["object"]);
            if kind == "ERROR" {
                assert_eq!(object["code"], 410);
                self.list(api).await;
                self.open(api).await;
                continue;
            }
            let at = version(object);
            if kind == "BOOKMARK" {
                assert!(at >= self.version, "a bookmark never goes back");
                self.version = at;
                continue;
            }
            assert!(at > self.version, "{kind} at {at} after {}", self.version);
            self.version = at;
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            match kind {
                "ADDED" => assert!(self.state.insert(name, object["data"].clone()).is_none(), "added twice"),
                "MODIFIED" => {
                    assert!(self.state.insert(name, object["data"].clone()).is_some(), "never added");
                }
                "DELETED" => assert!(self.state.remove(&name).is_some(), "deleted twice"),
                other => panic!("{other}"),
            }
        }
    }
}

async fn write(api: &embedded_kube::KubeApi, object: u8, content: u8, seen: bool) {
    let name = format!("o{object}");
    let body = json!({"metadata": {"name": name, "labels": {"seen": seen.to_string()}}, "data": {"x": content.to_string()}});
    let (status, _) = call(api, Method::PUT, &format!("{PATH}/{name}"), &body).await;
    if status == 404 {
        assert_eq!(call(api, Method::POST, PATH, &body).await.0, 201);
    }
}

async fn truth(api: &embedded_kube::KubeApi, query: &str) -> BTreeMap<String, Value> {
    let (_, list) = call(api, Method::GET, &format!("{PATH}?{query}"), &Value::Null).await;
    let items = list["items"].as_array().unwrap();
    items.iter().map(|i| (i["metadata"]["name"].as_str().unwrap().to_owned(), i["data"].clone())).collect()
}

async fn run(acts: Vec<Act>) {
    let api = cluster();
    let queries = ["", "labelSelector=seen%3Dtrue", "fieldSelector=metadata.name%3Do1"];
    let mut watchers = Vec::new();
    for query in queries {
        let mut watcher = Watcher { query, body: None, state: BTreeMap::new(), version: 0, relists: 0 };
        watcher.list(&api).await;
        watcher.open(&api).await;
        watchers.push(watcher);
    }
    for act in acts {
        match act {
            Act::Write { object, content, seen } => write(&api, object, content, seen).await,
            Act::Delete { object } => {
                call(&api, Method::DELETE, &format!("{PATH}/o{object}"), &Value::Null).await;
            }
            Act::Read { watcher } => watchers[watcher].read(&api).await,
            Act::Resume { watcher } => {
                watchers[watcher].body = None;
                watchers[watcher].open(&api).await;
            }
            Act::Compact => api.compact(),
            Act::Restart => {
                api.restart();
                for watcher in &mut watchers {
                    watcher.open(&api).await;
                }
            }
            Act::Pass => tokio::time::sleep(std::time::Duration::from_secs(61)).await,
        }
    }
    for watcher in &mut watchers {
        watcher.read(&api).await;
        assert_eq!(watcher.state, truth(&api, watcher.query).await, "{:?}", watcher.query);
    }
}

fn on_paused_time(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_watcher_ends_with_the_state_of_the_store(acts in prop::collection::vec(act(), 1..60)) {
        on_paused_time(run(acts));
    }
}

#[test]
fn a_watcher_that_is_too_slow_gets_410() {
    on_paused_time(async {
        let config = embedded_kube::Config { history: 5, ..embedded_kube::Config::default() };
        let world = sim_kit::Surroundings::new(1, || jiff::Timestamp::UNIX_EPOCH);
        let api = embedded_kube::KubeApi::with_config(&config, world);
        let mut slow = watch(&api, &format!("{PATH}?watch=true&resourceVersion={}", api.revision())).await;
        for content in 0..10 {
            write(&api, 0, content, true).await;
        }
        let event = next(&mut slow).await.unwrap();
        assert_eq!((&event["type"], &event["object"]["reason"]), (&json!("ERROR"), &json!("Expired")));
        assert!(next(&mut slow).await.is_none(), "and then it ends");
    });
}

#[test]
fn a_streaming_list_ends_with_a_bookmark_and_goes_on() {
    on_paused_time(async {
        let api = cluster();
        write(&api, 1, 1, true).await;
        let query =
            "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
        let mut body = watch(&api, &format!("{PATH}?{query}")).await;
        assert_eq!(next(&mut body).await.unwrap()["type"], "ADDED");
        let end = next(&mut body).await.unwrap();
        assert_eq!(end["type"], "BOOKMARK");
        assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
        write(&api, 1, 2, true).await;
        assert_eq!(next(&mut body).await.unwrap()["type"], "MODIFIED");
    });
}

#[test]
fn a_watch_ends_when_its_time_is_up() {
    on_paused_time(async {
        let api = cluster();
        let started = tokio::time::Instant::now();
        let mut body = watch(&api, &format!("{PATH}?watch=true&timeoutSeconds=7&resourceVersion=0")).await;
        assert!(next(&mut body).await.is_none());
        assert_eq!(started.elapsed().as_secs(), 7);
        assert_eq!(api.watches(), 1);
        drop(body);
        assert_eq!(api.watches(), 0, "nothing is left behind");
    });
}

#[test]
fn a_watch_that_moved_on_ends_with_a_bookmark() {
    on_paused_time(async {
        let api = cluster();
        let query = format!(
            "watch=true&allowWatchBookmarks=true&timeoutSeconds=7&resourceVersion={}",
            api.revision()
        );
        let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
        for moved in [false, true] {
            let started = tokio::time::Instant::now();
            let mut body = watch(&api, &format!("{PATH}?{query}")).await;
            if moved {
                call(&api, Method::POST, elsewhere, &json!({"metadata": {"name": "x"}})).await;
                let bookmark = next(&mut body).await.unwrap();
                assert_eq!((&bookmark["type"], started.elapsed().as_secs()), (&json!("BOOKMARK"), 5));
                assert_eq!(version(&bookmark["object"]), api.revision());
            }
            assert!(next(&mut body).await.is_none());
            assert_eq!(started.elapsed().as_secs(), 7);
        }
    });
}
