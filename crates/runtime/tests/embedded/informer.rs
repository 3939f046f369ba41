//! The store, whatever happens to the watch that fills it.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;

use cloudberth_core::{NodeView, Random, decide::node::patch::NodePatch};
use cloudberth_runtime::informer::{Change, Informer, Listener};
use embedded_kube::{Fault, Harm};
use http_body::{Body, Frame};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::fixture::{Fixture, pass};

/// Writes down what it is told: `+n1`, `~n1`, `-n1`.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Listener<NodeView> for Diary {
    fn changed(&self, change: &Change<NodeView>) {
        let line = match (&change.old, &change.new) {
            (None, Some(new)) => format!("+{}", new.name),
            (Some(_), Some(new)) => format!("~{}", new.name),
            (Some(old), None) => format!("-{}", old.name),
            (None, None) => "nothing".to_owned(),
        };
        self.0.lock().unwrap().push(line);
    }
}

impl Diary {
    fn read(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Aborts what it runs when it is dropped.
struct Watch {
    nodes: Arc<Informer<NodeView>>,
    diary: Arc<Diary>,
    running: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Watches, as a part of the program does.
fn watch(fixture: &Fixture) -> Watch {
    let (nodes, client) = (Arc::clone(&fixture.cluster.nodes), fixture.client.clone());
    let diary = Arc::new(Diary::default());
    nodes.subscribe(&(Arc::clone(&diary) as Arc<dyn Listener<NodeView>>));
    let informer = Arc::clone(&nodes);
    let running = tokio::spawn(async move { informer.run(client, Arc::new(Random::seeded(3))).await });
    Watch { nodes, diary, running }
}

/// What the store holds, compared with what the API holds: names and versions.
fn agrees(fixture: &Fixture, nodes: &Informer<NodeView>) -> bool {
    let line = |name: &str, version: &str| format!("{name} {version}");
    let mut there: Vec<_> = fixture
        .api
        .objects("nodes")
        .iter()
        .map(|node| {
            let meta = &node["metadata"];
            line(meta["name"].as_str().unwrap(), meta["resourceVersion"].as_str().unwrap())
        })
        .collect();
    there.sort();
    let known: Vec<_> = nodes.all().iter().map(|node| line(&node.name, &node.resource_version)).collect();
    there == known
}

/// The calls of this verb on nodes go wrong so often.
fn harm(fixture: &Fixture, verb: &str, harm: Harm, times: u64) {
    fixture.api.add_fault(Fault::new(harm).on(verb, "nodes").times(times));
}

const UNAVAILABLE: Harm = Harm::Status { code: 503, retry_after: None };
const HANGS: Harm = Harm::Latency { millis: 1_000_000_000 };

#[tokio::test(start_paused = true)]
async fn the_store_catches_up_whatever_happens_to_the_watch() {
    type Trouble = fn(&Fixture);
    // What happens before things change, and what after: the watch learns of them late, or never by itself.
    let table: [(&str, Trouble, Trouble); 10] = [
        ("nothing", |_| (), |_| ()),
        ("the API server starts anew", |_| (), |s| s.api.restart()),
        (
            "changes are missed",
            |s| {
                harm(s, "watch", UNAVAILABLE, 1);
                s.api.restart();
            },
            |_| (),
        ),
        (
            "410: what was missed is forgotten",
            |s| {
                harm(s, "watch", UNAVAILABLE, 1);
                s.api.restart();
            },
            |s| s.api.compact(),
        ),
        (
            "410, and the listing breaks twice",
            |s| {
                harm(s, "watch", UNAVAILABLE, 1);
                s.api.restart();
            },
            |s| {
                s.api.compact();
                harm(s, "list", Harm::LostAnswer, 2);
            },
        ),
        (
            "410, and the listing never answers",
            |s| {
                harm(s, "watch", UNAVAILABLE, 1);
                s.api.restart();
            },
            |s| {
                s.api.compact();
                harm(s, "list", HANGS, 1);
            },
        ),
        (
            "the watch is cut off after each event",
            |s| {
                harm(s, "watch", Harm::DropWatch { after_events: 1 }, 2);
                s.api.restart();
            },
            |_| (),
        ),
        (
            "the watch goes silent",
            |s| {
                harm(s, "watch", Harm::StallWatch { after_events: 1 }, 1);
                s.api.restart();
            },
            |_| (),
        ),
        (
            "the watch never answers",
            |s| {
                harm(s, "watch", HANGS, 1);
                s.api.restart();
            },
            |_| (),
        ),
        (
            "the API is away for a while",
            |s| {
                harm(s, "watch", UNAVAILABLE, 5);
                harm(s, "list", UNAVAILABLE, 5);
                s.api.restart();
            },
            |_| (),
        ),
    ];
    for (case, before, after) in table {
        let fixture = Fixture::new();
        for name in ["n1", "n2", "n3"] {
            fixture.create_node(name).await;
        }
        let watch = watch(&fixture);
        pass(1).await;
        assert_eq!(watch.diary.read(), ["+n1", "+n2", "+n3"], "{case}");
        before(&fixture);
        fixture.delete_node("n1").await;
        fixture.label_node("n2", "new").await;
        fixture.create_node("n4").await;
        after(&fixture);
        pass(400).await;
        assert!(agrees(&fixture, &watch.nodes), "L12-28 {case}: {:?}", watch.diary.read());
        let mut told = watch.diary.read();
        told.sort();
        assert_eq!(told, ["+n4", "-n1", "~n2"], "{case}: each once");
        assert_eq!(watch.nodes.broken_since(), None, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_is_known_to_be_broken_and_takes_nothing_away() {
    let fixture = Fixture::new();
    fixture.create_node("n1").await;
    let watch = watch(&fixture);
    pass(1).await;
    harm(&fixture, "watch", UNAVAILABLE, 1_000);
    harm(&fixture, "list", UNAVAILABLE, 1_000);
    fixture.api.restart();
    let cut_off = fixture.clock.now();
    pass(100).await;
    assert_eq!((watch.nodes.len(), watch.nodes.is_synced()), (1, true), "L1-23");
    assert!(watch.nodes.broken_since().is_some_and(|since| since.since(cut_off) < Duration::from_secs(5)));
    let tries = fixture.calls("watch", "nodes").len() + fixture.calls("list", "nodes").len();
    assert!((3..20).contains(&tries), "L12-29 {tries} tries in 100 s");
    fixture.api.clear_faults();
    pass(70).await;
    assert_eq!(watch.nodes.broken_since(), None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_off_each_time_is_known_to_be_broken() {
    let fixture = Fixture::new();
    fixture.create_node("n1").await;
    let watch = watch(&fixture);
    pass(1).await;
    harm(&fixture, "watch", Harm::DropWatch { after_events: 0 }, 1_000_000);
    fixture.api.restart();
    let cut_off = fixture.clock.now();
    pass(400).await;
    let since = watch.nodes.broken_since();
    assert!(since.is_some_and(|since| since.since(cut_off) < Duration::from_secs(5)), "L12-603 {since:?}");
    let tries = fixture.calls("watch", "nodes").len();
    assert!(tries < 45, "L12-604 {tries} tries in 400 s");
    fixture.api.clear_faults();
    pass(90).await;
    assert_eq!(watch.nodes.broken_since(), None, "it lasts again");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_dies_silently_is_noticed_within_45_seconds() {
    // After so many seconds of a watch's life, and with it, what follows it may be dead too: the next watch never answers.
    for (age, next) in [(0, false), (7, false), (29, false), (30, false), (7, true)] {
        let fixture = Fixture::new();
        fixture.create_node("n1").await;
        harm(&fixture, "watch", Harm::StallWatch { after_events: 1 }, 1);
        let watch = watch(&fixture);
        pass(age).await;
        fixture.label_node("n1", "heard").await;
        pass(1).await;
        if next {
            harm(&fixture, "watch", HANGS, 1);
        }
        fixture.label_node("n1", "unheard").await;
        pass(if next { 90 } else { 45 }).await;
        assert!(agrees(&fixture, &watch.nodes), "L12-605 after {age} s, {next}");
    }
}

/// A body that says one thing; that of a watch then stays open.
struct Said {
    text: Option<Bytes>,
    open: bool,
}

impl Body for Said {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.text.take() {
            Some(text) => Poll::Ready(Some(Ok(Frame::data(text)))),
            None if self.open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restore_of_etcd_the_store_follows() {
    let node = |name: &str, version: u64| {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()}})
    };
    let list = |version: u64, items: Vec<Value>| {
        let metadata = json!({"resourceVersion": version.to_string()});
        json!({"apiVersion": "v1", "kind": "NodeList", "metadata": metadata, "items": items})
    };
    // The API server keeps the watch open over the restore, as a proxy in between can. Its data is that of an hour ago:
    // b was not there yet, and c still was.
    let before = list(103, vec![node("a", 101), node("b", 102)]);
    let after = list(53, vec![node("a", 53), node("c", 51)]);
    let event = json!({"type": "MODIFIED", "object": node("a", 53)});
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let api = move |request: http::Request<kube::client::Body>| {
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let mut calls = noted.lock().unwrap();
        calls.push(if watches { "watch" } else { "list" });
        let times = |what: &str| calls.iter().filter(|call| **call == what).count();
        let answer = if watches {
            let line = format!("{event}\n");
            Said { text: (times("watch") == 1).then(|| line.into()), open: true }
        } else {
            let all = if times("list") == 1 { &before } else { &after };
            Said { text: Some(all.to_string().into()), open: false }
        };
        std::future::ready(Ok::<_, Infallible>(http::Response::new(answer)))
    };
    let fixture = Fixture::new();
    let client = kube::Client::new(tower::service_fn(api), "");
    let nodes = Arc::clone(&fixture.cluster.nodes);
    let running = tokio::spawn(async move { nodes.run(client, Arc::new(Random::seeded(3))).await });
    pass(5).await;
    running.abort();
    let known: Vec<_> =
        fixture.cluster.nodes.all().iter().map(|n| format!("{}{}", n.name, n.resource_version)).collect();
    assert_eq!(known, ["a53", "c51"], "L1-606 {:?}", calls.lock().unwrap());
    assert_eq!(*calls.lock().unwrap(), ["list", "watch", "list", "watch"], "L1-607 listed again once");
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_about_one_object_ends_nothing() {
    struct Touchy(Diary);

    impl Listener<NodeView> for Touchy {
        fn changed(&self, change: &Change<NodeView>) {
            self.0.changed(change);
            assert!(change.new.as_ref().is_none_or(|node| node.name != "n2"), "a bug");
        }
    }

    let fixture = Fixture::new();
    fixture.create_node("n1").await;
    fixture.create_node("n2").await;
    let touchy = Arc::new(Touchy(Diary::default()));
    fixture.cluster.nodes.subscribe(&(Arc::clone(&touchy) as Arc<dyn Listener<NodeView>>));
    let watch = watch(&fixture);
    pass(1).await;
    fixture.label_node("n2", "x").await;
    fixture.create_node("n3").await;
    pass(1).await;
    assert_eq!(touchy.0.read(), ["+n1", "+n2", "~n2", "+n3"], "L11-606 the listener hears of the others");
    assert_eq!(watch.diary.read(), ["+n1", "+n2", "~n2", "+n3"], "L11-607 and so do the other listeners");
    assert_eq!(watch.nodes.panics(), 2, "L11-608 counted");
    let late = Arc::new(Touchy(Diary::default()));
    watch.nodes.subscribe(&(Arc::clone(&late) as Arc<dyn Listener<NodeView>>));
    assert_eq!(late.0.read(), ["+n1", "+n2", "+n3"], "L11-609 who comes later too");
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_write_is_known_before_the_watch_tells() {
    let fixture = Fixture::new();
    fixture.create_node("n1").await;
    let watch = watch(&fixture);
    pass(1).await;
    harm(&fixture, "watch", UNAVAILABLE, 3);
    fixture.api.restart();
    watch.diary.read();
    let labels = json!({"labels": {"a": "b"}}).as_object().cloned().unwrap();
    let node = watch.nodes.get(&"n1".to_owned()).unwrap();
    let patch = NodePatch::main(&node, labels, Map::new());
    let call = fixture.cluster.call(Duration::from_secs(5));
    fixture.cluster.patch_node(&call, "n1", &patch).await.unwrap();
    assert!(agrees(&fixture, &watch.nodes), "nobody has watched since");
    assert_eq!(watch.diary.read(), ["~n1"]);
    pass(100).await;
    assert!(watch.diary.read().is_empty(), "L4-21 the watch brings no news");
    fixture.delete_node("n1").await;
    assert!(fixture.cluster.patch_node(&call, "n1", &patch).await.is_err());
    pass(1).await;
    assert_eq!(watch.diary.read(), ["-n1"], "an answer brings nothing back");
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_is_told_everything_and_who_is_gone_nothing() {
    let fixture = Fixture::new();
    fixture.create_node("n1").await;
    let watch = watch(&fixture);
    pass(1).await;
    let late = Arc::new(Diary::default());
    let listener: Arc<dyn Listener<NodeView>> = Arc::clone(&late) as Arc<dyn Listener<NodeView>>;
    watch.nodes.subscribe(&listener);
    assert_eq!(late.read(), ["+n1"]);
    drop(listener);
    fixture.create_node("n2").await;
    pass(1).await;
    assert_eq!(late.read(), ["+n2"]);
    assert_eq!(Arc::strong_count(&late), 1, "the informer keeps nobody alive");
}

#[tokio::test(start_paused = true)]
async fn who_follows_waits_for_the_first_complete_listing() {
    let fixture = Fixture::new();
    fixture.create_node("n1").await;
    let (early, late) = (Arc::new(Diary::default()), Arc::new(Diary::default()));
    let nodes = Arc::clone(&fixture.cluster.nodes);
    let second = Duration::from_secs(1);
    let waits = tokio::time::timeout(second, nodes.follow(Arc::clone(&early) as _)).await;
    assert!(waits.is_err(), "nothing was listed yet");
    let _watch = watch(&fixture);
    tokio::time::timeout(second, nodes.until_synced()).await.unwrap();
    assert_eq!(early.read(), ["+n1"]);
    tokio::time::timeout(second, nodes.follow(Arc::clone(&late) as _)).await.unwrap();
    assert_eq!(late.read(), ["+n1"], "who comes later does not wait");
}

/// What people and the cluster can do, and what can go wrong meanwhile.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Create(u8),
    Label(u8, u8),
    Delete(u8),
    Restart,
    Compact,
    Fault(&'static str, u8),
    Pass(u8),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (0..4_u8).prop_map(Happening::Create),
        3 => (0..4_u8, any::<u8>()).prop_map(|(node, value)| Happening::Label(node, value)),
        2 => (0..4_u8).prop_map(Happening::Delete),
        2 => Just(Happening::Restart),
        1 => Just(Happening::Compact),
        2 => (prop_oneof![Just("watch"), Just("list")], 0..5_u8).prop_map(|(verb, kind)| Happening::Fault(verb, kind)),
        2 => (0..40_u8).prop_map(Happening::Pass),
    ]
}

async fn happens(fixture: &Fixture, what: Happening) {
    let name = |n: u8| format!("n{n}");
    let there =
        |n: u8| fixture.api.objects("nodes").iter().any(|node| node["metadata"]["name"] == json!(name(n)));
    match what {
        Happening::Create(n) if !there(n) => drop(fixture.create_node(&name(n)).await),
        Happening::Label(n, value) if there(n) => fixture.label_node(&name(n), &value.to_string()).await,
        Happening::Delete(n) if there(n) => fixture.delete_node(&name(n)).await,
        Happening::Create(_) | Happening::Label(..) | Happening::Delete(_) => {}
        Happening::Restart => fixture.api.restart(),
        Happening::Compact => fixture.api.compact(),
        Happening::Fault(verb, kind) => {
            let kinds =
                [UNAVAILABLE, Harm::LostAnswer, Harm::LostCall, HANGS, Harm::DropWatch { after_events: 1 }];
            harm(fixture, verb, kinds[usize::from(kind)].clone(), 1);
        }
        Happening::Pass(seconds) => pass(seconds.into()).await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happened_the_store_agrees_in_the_end(story in proptest::collection::vec(happening(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (agreed, replayed) = runtime.block_on(async {
            let fixture = Fixture::new();
            let watch = watch(&fixture);
            let mut seen = std::collections::BTreeSet::new();
            for what in story {
                happens(&fixture, what).await;
            }
            pass(2_000).await;
            for line in watch.diary.read() {
                match line.split_at(1) {
                    ("+", name) => assert!(seen.insert(name.to_owned()), "{name} came twice"),
                    ("-", name) => assert!(seen.remove(name), "{name} went twice"),
                    ("~", name) => assert!(seen.contains(name), "{name} changed without being there"),
                    _ => {}
                }
            }
            let known: std::collections::BTreeSet<_> = watch.nodes.all().iter().map(|n| n.name.clone()).collect();
            (agrees(&fixture, &watch.nodes), seen == known)
        });
        prop_assert!(agreed, "the store and the API differ");
        prop_assert!(replayed, "what was told and the store differ");
    }
}
