//! What a load balancer may know besides its Service: where the pods are, all nodes, and what others claim.

use std::sync::Mutex;

use cloudberth_core::{
    NodeView, ObjectKey,
    lb::{Desired, Goal, LockKey, LockKind},
};
use serde_json::{Value, json};
use testing_kit::{ClusterFixture, Hooks};

use crate::fixture::Fixture;

fn local() -> Value {
    json!({"spec": {"externalTrafficPolicy": "Local"}})
}

/// A slice of the endpoints of `web`, ready on these nodes.
fn slice(nodes: &[&str]) -> Value {
    let endpoint = |node: &&str| json!({"addresses": ["10.0.0.1"], "nodeName": node});
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": nodes.iter().map(endpoint).collect::<Vec<_>>(),
    })
}

#[tokio::test(start_paused = true)]
async fn traffic_that_stays_on_its_node_goes_where_pods_are() {
    let scene = Fixture::with(&["alpha"], |settings| settings.local_endpoints = true);
    let (one, two) = (scene.node("n1").await, scene.node("n2").await);
    let slices = scene.stage.endpoint_slices();
    scene.stage.create(&slices, "EndpointSlice", "web-a", slice(&["n1"])).await;
    scene.create("web", local()).await;
    scene.create("all", json!({})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&one]).await;
    scene.assert_served("all", &[80], &[&one, &two]).await;

    let (calls, all) = (scene.calls(), scene.balancer("all").await.id);
    scene.stage.merge(&slices, "web-a", json!({"endpoints": slice(&["n2"])["endpoints"]})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&two]).await;
    let looked: Vec<_> = scene.stage.clouds[0].calls().into_iter().skip(calls).collect();
    assert!(looked.iter().all(|call| call.subject != all), "the other is not even looked at: {looked:?}");

    let calls = scene.calls();
    scene.stage.create(&slices, "EndpointSlice", "web-b", slice(&["n2"])).await;
    scene.pass(60).await;
    assert_eq!(scene.calls(), calls, "one more pod on the same node changes nothing");

    scene.stage.create(&slices, "EndpointSlice", "web-c", slice(&["n1"])).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&one, &two]).await;
    for name in ["web-a", "web-b", "web-c"] {
        scene.stage.delete(&slices, name).await;
    }
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[]).await;

    scene.edit("web", json!({"spec": {"externalTrafficPolicy": "Cluster"}})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&one, &two]).await;
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_no_cloud_needs_are_not_watched() {
    for needed in [true, false] {
        let scene = Fixture::with(&["alpha"], |settings| settings.local_endpoints = needed);
        let (one, two) = (scene.node("n1").await, scene.node("n2").await);
        scene.create("web", local()).await;
        scene.pass(5).await;
        let asked = scene.stage.api.calls(0).iter().any(|call| call.resource == "endpointslices");
        assert_eq!(asked, needed);
        let served: &[&str] = if needed { &[] } else { &[&one, &two] };
        scene.assert_served("web", &[80], served).await;
    }
}

/// Takes in nodes of other clouds whose name says so, and keeps what it is asked for.
#[derive(Default)]
struct Open(Mutex<Vec<Desired>>);

impl Hooks for Open {
    fn accepts(&self, node: &NodeView, own: bool) -> bool {
        own || node.name.starts_with("guest")
    }

    fn begins(&self, want: &Desired) {
        self.0.lock().unwrap().push(want.clone());
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_sees_all_nodes_of_its_cloud_and_what_others_claim() {
    let mut stage = ClusterFixture::new();
    let open = stage.hook(Open::default());
    let scene = Fixture::on(
        stage,
        cloudberth_controllers::service::ServiceSettings {
            drift: None,
            ..cloudberth_controllers::service::ServiceSettings::default()
        },
    );
    scene.node("n1").await;
    for name in ["guest", "stranger"] {
        let body = json!({"spec": {"providerID": format!("other://{name}")}});
        scene.stage.create(&scene.stage.nodes(), "Node", name, body).await;
    }
    let edge = json!({"metadata": {"annotations": {"fake.cloudberth.dev/node-selector": "pool=edge"}}});
    scene.create("web", edge).await;
    scene.create("other", json!({})).await;
    scene.pass(5).await;
    let names = |want: &Desired| {
        let all = want.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
        (all, want.backends.len())
    };
    let last = |name: &str| open.0.lock().unwrap().iter().rfind(|w| w.service.name == name).unwrap().clone();
    let both = vec!["guest".to_owned(), "n1".to_owned()];
    assert_eq!(names(&last("web")), (both.clone(), 0), "those that it does not select too");
    assert_eq!(names(&last("other")), (both.clone(), 2), "a node of another cloud, as the provider says");

    let id = |balancer: String| LockKey::new(LockKind::Id, balancer);
    let (mine, others) = (scene.balancer("web").await.id, scene.balancer("other").await.id);
    let claims = last("web").claims;
    assert_eq!(claims.on(&id(others)), [ObjectKey::new("default", "other")]);
    assert_eq!(claims.on(&id(mine)), [], "its own claims are not others'");

    // A node that comes later and is accepted goes behind load balancers too.
    let late = json!({"spec": {"providerID": "other://late"}});
    scene.stage.create(&scene.stage.nodes(), "Node", "guest-late", late).await;
    scene.pass(5).await;
    assert_eq!(last("other").backends.len(), 3);

    scene.delete("web").await;
    scene.pass(5).await;
    let gone = last("web");
    assert_eq!((gone.goal, gone.backends.len(), gone.nodes.len()), (Goal::Gone, 0, 3), "also at the end");
}
