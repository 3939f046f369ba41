//! Watches of kinds, versions, namespaces and selectors that are chosen while the program runs.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use cloudberth_core::{ObjectKey, Random, Result};
use cloudberth_runtime::{
    dynamic::DynamicView,
    informer::{Change, Informer, Listener, WatchHandle},
    object::Watched,
    scope::WatchScope,
};
use embedded_kube::{Fault, Harm};
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::fixture::{Fixture, pass};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A cluster with a namespaced kind in two versions, and a namespace `other`.
async fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pools.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Pool", "plural": "pools"},
            "versions": [version("v1beta1", false), version("v1beta2", true)],
        },
    });
    fixture.send("POST", DEFINITIONS, Some(definition)).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    fixture.send("POST", "/api/v1/namespaces", Some(namespace)).await;
    fixture
}

fn path(namespace: &str) -> String {
    format!("/apis/example.com/v1beta2/namespaces/{namespace}/pools")
}

async fn create(fixture: &Fixture, namespace: &str, name: &str, team: &str) {
    let metadata = json!({"name": name, "labels": {"team": team}});
    let pool = json!({"apiVersion": "example.com/v1beta2", "kind": "Pool", "metadata": metadata, "spec": {"size": 3}});
    fixture.send("POST", &path(namespace), Some(pool)).await;
}

fn pools(version: &str) -> WatchScope {
    let kind = GroupVersionKind::gvk("example.com", version, "Pool");
    WatchScope::all(ApiResource::from_gvk_with_plural(&kind, "pools"), "watch-pools")
}

fn started<V: Watched>(fixture: &Fixture, scope: WatchScope) -> (Arc<Informer<V>>, WatchHandle) {
    let informer = Informer::new(scope, Arc::clone(&fixture.clock));
    let handle = informer.start(fixture.client.clone(), Arc::new(Random::seeded(5)));
    (informer, handle)
}

fn keys(informer: &Informer<DynamicView>) -> Vec<String> {
    informer.all().iter().map(|view| view.key().to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn version_namespace_and_selectors_are_chosen_at_run_time() {
    let fixture = fixture().await;
    for (namespace, name, team) in
        [("default", "a", "red"), ("default", "b", "blue"), ("other", "c", "red"), ("other", "d", "blue")]
    {
        create(&fixture, namespace, name, team).await;
    }
    let default = Some("default".to_owned());
    let table = [
        ("all", pools("v1beta2"), vec!["default/a", "default/b", "other/c", "other/d"]),
        (
            "another version of the same",
            pools("v1beta1"),
            vec!["default/a", "default/b", "other/c", "other/d"],
        ),
        (
            "a namespace",
            WatchScope { namespace: default.clone(), ..pools("v1beta2") },
            vec!["default/a", "default/b"],
        ),
        (
            "a label",
            WatchScope { labels: "team=red".to_owned(), ..pools("v1beta2") },
            vec!["default/a", "other/c"],
        ),
        (
            "a field",
            WatchScope { fields: "metadata.name=b".to_owned(), ..pools("v1beta2") },
            vec!["default/b"],
        ),
        (
            "all at once",
            WatchScope {
                namespace: default,
                labels: "team in (red,green)".to_owned(),
                fields: "metadata.name!=b".to_owned(),
                ..pools("v1beta1")
            },
            vec!["default/a"],
        ),
    ];
    for (case, scope, want) in table {
        let version = scope.resource.api_version.clone();
        let (informer, _handle) = started::<DynamicView>(&fixture, scope);
        informer.until_synced().await;
        assert_eq!(keys(&informer), want, "{case}");
        let first = informer.all()[0].clone();
        assert_eq!(
            (first.text("/apiVersion"), &first.json()["spec"]["size"]),
            (version.as_str(), &json!(3)),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_longer_matches_goes_and_what_begins_to_match_comes() {
    let fixture = fixture().await;
    create(&fixture, "default", "a", "red").await;
    create(&fixture, "default", "b", "blue").await;
    let (informer, _handle) =
        started::<DynamicView>(&fixture, WatchScope { labels: "team=red".to_owned(), ..pools("v1beta2") });
    pass(1).await;
    for (name, team) in [("a", "blue"), ("b", "red")] {
        let body = json!({"metadata": {"labels": {"team": team}}});
        fixture.send("PATCH", &format!("{}/{name}", path("default")), Some(body)).await;
    }
    pass(1).await;
    assert_eq!(keys(&informer), ["default/b"]);
}

#[tokio::test(start_paused = true)]
async fn it_catches_up_as_every_watch_does() {
    type Trouble = fn(&Fixture);
    let table: [(&str, Trouble); 3] = [
        ("410: what was missed is forgotten", |fixture| fixture.api.compact()),
        ("and the listing breaks twice", |fixture| {
            fixture.api.compact();
            fixture.api.add_fault(Fault::new(Harm::LostAnswer).on("list", "pools").times(2));
        }),
        ("the next watch goes silent", |fixture| {
            fixture
                .api
                .add_fault(Fault::new(Harm::StallWatch { after_events: 0 }).on("watch", "pools").times(1));
        }),
    ];
    for (case, trouble) in table {
        let fixture = fixture().await;
        create(&fixture, "default", "a", "red").await;
        let (informer, _handle) = started::<DynamicView>(&fixture, pools("v1beta2"));
        pass(1).await;
        let away = Harm::Status { code: 503, retry_after: None };
        fixture.api.add_fault(Fault::new(away).on("watch", "pools").times(1));
        fixture.api.restart();
        create(&fixture, "other", "b", "red").await;
        fixture.send("DELETE", &format!("{}/a", path("default")), None).await;
        trouble(&fixture);
        pass(200).await;
        assert_eq!((keys(&informer), informer.broken_since()), (vec!["other/b".to_owned()], None), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_gone_takes_nothing_away_and_counts_as_broken() {
    let fixture = fixture().await;
    create(&fixture, "default", "a", "red").await;
    let (informer, _handle) = started::<DynamicView>(&fixture, pools("v1beta2"));
    let (never, _other) = started::<DynamicView>(&fixture, pools("v9"));
    pass(1).await;
    fixture.api.add_fault(Fault::new(Harm::Status { code: 404, retry_after: None }).on("watch", "pools"));
    fixture.api.add_fault(Fault::new(Harm::Status { code: 404, retry_after: None }).on("list", "pools"));
    fixture.api.restart();
    pass(60).await;
    assert_eq!(keys(&informer), ["default/a"], "unknown is not absent");
    assert!(informer.broken_since().is_some() && never.broken_since().is_some());
    assert!(!never.is_synced());
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_its_handle_and_can_begin_again() {
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener<DynamicView> for Heard {
        fn changed(&self, change: &Change<DynamicView>) {
            let sign = if change.new.is_some() { '+' } else { '-' };
            let view = change.new.as_ref().or(change.old.as_ref()).unwrap();
            self.0.lock().unwrap().push(format!("{sign}{}", view.text("/metadata/name")));
        }
    }

    let fixture = fixture().await;
    create(&fixture, "default", "a", "red").await;
    let (informer, handle) = started::<DynamicView>(&fixture, pools("v1beta2"));
    let heard = Arc::new(Heard::default());
    let listener: Arc<dyn Listener<DynamicView>> = Arc::clone(&heard) as _;
    informer.follow(Arc::clone(&listener)).await;
    pass(1).await;
    assert_eq!(fixture.api.watches(), 1);
    drop(handle);
    pass(1).await;
    assert_eq!(fixture.api.watches(), 0);
    let calls = fixture.api.calls(0).len();
    create(&fixture, "default", "b", "red").await;
    fixture.send("DELETE", &format!("{}/a", path("default")), None).await;
    pass(600).await;
    assert_eq!(fixture.api.calls(0).len(), calls + 2, "nobody asks any more");
    assert_eq!(keys(&informer), ["default/a"], "the store is kept");
    let _handle = informer.start(fixture.client.clone(), Arc::new(Random::seeded(6)));
    pass(1).await;
    assert_eq!(keys(&informer), ["default/b"]);
    assert_eq!(*heard.0.lock().unwrap(), ["+a", "+b", "-a"]);
}

/// How many more times [`Touchy::uid`] panics.
static BUGS: AtomicU32 = AtomicU32::new(0);

/// A view with two bugs: one in reading an object called `bad`, one that goes away.
#[derive(Clone, Debug)]
struct Touchy(DynamicView);

impl Watched for Touchy {
    type Key = ObjectKey;

    fn read(json: Value) -> Result<Self> {
        assert_ne!(json["metadata"]["name"], "bad", "a bug");
        DynamicView::read(json).map(Self)
    }

    fn key_of(namespace: &str, name: &str) -> ObjectKey {
        DynamicView::key_of(namespace, name)
    }

    fn key(&self) -> ObjectKey {
        self.0.key()
    }

    fn uid(&self) -> &str {
        let lower = |left: u32| left.checked_sub(1);
        assert!(BUGS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower).is_err(), "a bug");
        self.0.uid()
    }

    fn resource_version(&self) -> &str {
        self.0.resource_version()
    }
}

#[tokio::test(start_paused = true)]
async fn a_bug_ends_neither_the_watch_nor_the_view_of_other_objects() {
    let fixture = fixture().await;
    for name in ["a", "bad", "c"] {
        create(&fixture, "default", name, "red").await;
    }
    let (informer, _handle) = started::<Touchy>(&fixture, pools("v1beta2"));
    informer.until_synced().await;
    let names = || informer.all().iter().map(|view| view.key().name).collect::<Vec<_>>();
    assert_eq!((names(), informer.panics()), (vec!["a".to_owned(), "c".to_owned()], 0), "law 11");
    BUGS.store(1, Ordering::Relaxed);
    let body = json!({"metadata": {"labels": {"team": "blue"}}});
    fixture.send("PATCH", &format!("{}/a", path("default")), Some(body)).await;
    pass(5).await;
    create(&fixture, "default", "d", "red").await;
    pass(1).await;
    assert_eq!((names().len(), informer.panics()), (3, 1), "law 11: it watches again");
    assert_eq!(informer.broken_since(), None);
}
