//! A cluster that the replaced program has brought to rest stays exactly as it is when cloudberth takes it over.

use cloudberth_core::ServiceView;
use serde_json::{Value, json};
use sim_kit::LeftBehind;

use crate::{
    People,
    checks::CloudFixture,
    seeded::{SeededCloud, Wishes},
};

/// A cloud with a program that cloudberth replaces.
pub trait TakenOver: SeededCloud {
    /// One way in which that program was used.
    type Variant: LeftBehind;

    /// All ways, as many as there are kinds of settings. The first is the plain one.
    fn variants() -> Vec<Self::Variant>;

    /// The load balancer of a Service. By default the one that is recorded on it, or the only one that there is.
    fn balancer_of(&self, service: &ServiceView) -> Option<String> {
        let only = || self.balancers().into_iter().next();
        service.annotations.get(self.id_annotation()).cloned().or_else(only)
    }

    /// Whether the id of a load balancer is recorded that was found by its name and where nothing had to be written.
    fn records_what_it_finds(&self) -> bool {
        true
    }

    /// The simulated cloud that a variant is built in.
    fn simulated(&self) -> &<Self::Variant as LeftBehind>::Cloud;
}

/// Builds in an empty cloud and an empty cluster what a variant left behind: nodes, and the Service `web` with its load
/// balancer if there is one, all at rest.
pub async fn leave<V: LeftBehind>(variant: &V, cloud: &V::Cloud, people: &People) {
    let service = before_the_program(variant, cloud, people).await;
    if service.is_null() {
        return;
    }
    let services = people.services();
    let mut wrote = variant.build(cloud, &service);
    let status = wrote["status"].take();
    people.merge(&services, "web", json!({"metadata": wrote["metadata"]})).await;
    people.merge_status(&services, "web", json!({"status": status})).await;
}

/// The nodes, and the Service as its user wrote it. Returns the Service, or null.
async fn before_the_program<V: LeftBehind>(variant: &V, cloud: &V::Cloud, people: &People) -> Value {
    let nodes = people.nodes();
    for (name, mut node) in variant.nodes(cloud) {
        let status = node["status"].take();
        let ready = json!({"type": "Ready", "status": "True", "reason": "Test"});
        let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.push(ready);
        let mut status = json!({"status": status});
        status["status"]["conditions"] = Value::Array(conditions);
        people.create(&nodes, "Node", &name, node).await;
        people.merge_status(&nodes, &name, status).await;
    }
    match variant.service(cloud) {
        Value::Null => Value::Null,
        service => people.create(&people.services(), "Service", "web", service).await,
    }
}

/// A cluster that a variant has left behind, and that nobody looks after now.
pub async fn left_behind<C: TakenOver>(variant: &C::Variant) -> CloudFixture<C> {
    let fixture: CloudFixture<C> = CloudFixture::looking_again(None);
    fixture.killer().abort();
    leave(variant, fixture.cloud.simulated(), &fixture.cluster).await;
    fixture
}

/// The load balancer of the Service.
async fn balancer<C: TakenOver>(fixture: &CloudFixture<C>) -> Option<String> {
    fixture.cloud.balancer_of(&fixture.service("web").await?)
}

/// Nothing is asked of the cloud and nothing written on the Service while the program looks after the cluster for a
/// quarter of an hour, but the id of its load balancer where the replaced program did not record it.
async fn assert_left_alone<C: TakenOver>(fixture: &mut CloudFixture<C>, case: &str) {
    let (id, recorded) = (balancer(fixture).await, fixture.recorded("web").await);
    let mut want = fixture.service("web").await;
    let state_of = |cloud: &C| id.as_ref().map(|id| cloud.state_of(id));
    let (state, parts) = (state_of(&fixture.cloud), fixture.cloud.parts());
    let (had, kube) = (fixture.cloud.reached().len(), fixture.kube_calls());
    fixture.restart();
    fixture.pass(900).await;
    assert!(fixture.cloud.reached().len() > had, "{case}: it was looked at");
    let events = fixture.cluster.events("web");
    assert_eq!(fixture.changes_since(had), [""; 0], "{case}: {events:?}");
    let mut writes = fixture.cluster.writes(kube);
    writes.retain(|call| call.resource == "services");
    let mut now = fixture.service("web").await;
    let records = recorded.is_none() && fixture.cloud.records_what_it_finds();
    if let (true, Some(id), Some(want), Some(now)) = (records, &id, &mut want, &mut now) {
        want.annotations.insert(fixture.cloud.id_annotation().to_owned(), id.clone());
        now.resource_version.clone_from(&want.resource_version);
        assert_eq!(writes.len(), 1, "{case}: the id is all that is written");
    } else {
        assert_eq!(writes, [], "{case}");
    }
    assert_eq!(now, want, "{case}");
    assert_eq!(fixture.cloud.parts(), parts, "{case}");
    assert_eq!(state_of(&fixture.cloud), state, "{case}");
}

/// Whatever the replaced program was told to do, the switch changes nothing. Returns how many ways were tried.
pub async fn nothing_is_changed_by_the_switch<C: TakenOver>(case: &str) -> usize {
    let variants = C::variants();
    for variant in &variants {
        let case = format!("{case} {}", variant.case());
        let mut fixture: CloudFixture<C> = left_behind(variant).await;
        if let Some(service) = fixture.service("web").await {
            let ours = service.annotations.keys().filter(|key| key.starts_with("cloudberth.dev/")).count();
            assert_eq!(ours, 0, "{case}: no annotation of ours on what we did not create");
        }
        assert_left_alone(&mut fixture, &case).await;
    }
    variants.len()
}

/// What was taken over is looked after: a node that joins takes traffic, and everything goes with the Service.
pub async fn what_was_taken_over_is_looked_after<C: TakenOver>(case: &str) {
    let mut fixture: CloudFixture<C> = left_behind(&C::variants()[0]).await;
    fixture.restart();
    fixture.pass(30).await;
    let id = balancer(&fixture).await.unwrap();
    let mut want = fixture.cloud.shape(&id);
    fixture.node("node-4").await;
    fixture.pass(30).await;
    for members in want.values_mut() {
        members.push("node-4".to_owned());
    }
    assert_eq!(fixture.cloud.shape(&id), want, "{case}: a node that joins takes traffic");
    assert_eq!(balancer(&fixture).await, Some(id), "{case}: it is still the same");
    // The new node gets its labels and addresses when nodes are looked at again, every five minutes.
    fixture.pass(400).await;
    fixture.assert_rest(300, case).await;
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert!(fixture.service("web").await.is_none(), "{case}: the Service is let go");
    Wishes::default().assert_fulfilled(&fixture, case).await;
}

/// A cluster can be switched back: what we build for a Service is what the replaced program would have built, under the
/// names by which it finds it. Nobody else has had a hand in the Services that this is tried with. Returns how many.
pub async fn what_we_build_is_what_was_built_before<C: TakenOver>(case: &str) -> usize {
    let variants: Vec<_> = C::variants().into_iter().filter(LeftBehind::is_usual).collect();
    for variant in &variants {
        let case = format!("{case} {}", variant.case());
        let theirs: CloudFixture<C> = left_behind(variant).await;
        let ours: CloudFixture<C> = CloudFixture::looking_again(None);
        before_the_program(variant, ours.cloud.simulated(), &ours.cluster).await;
        ours.pass(60).await;
        assert!(ours.recorded("web").await.is_some(), "{case}: {:?}", ours.cluster.events("web"));
        let (left, right) = (seen(&theirs).await, seen(&ours).await);
        assert_eq!(right, left, "{case}: {:?}", ours.cluster.events("web"));
    }
    variants.len()
}

/// What can be compared of a Service and its load balancer between two clusters.
async fn seen<C: TakenOver>(fixture: &CloudFixture<C>) -> Value {
    let service = fixture.service("web").await.unwrap();
    let id = balancer(fixture).await.unwrap();
    // Not every replaced program records the id that it reads.
    let ours = |key: &&String| key.starts_with("cloudberth.dev/") || *key == fixture.cloud.id_annotation();
    let annotations: Vec<_> = service.annotations.keys().filter(|key| !ours(key)).collect();
    json!({
        "annotations": annotations,
        "finalizers": service.finalizers,
        "ingress": service.ingress.len(),
        "shape": fixture.cloud.shape(&id),
        "parts": fixture.cloud.parts(),
    })
}
