//! Writes of objects of any kind.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Category, Random,
    call::{Gate, ReadOnly},
    lookup::Lookup,
    time::Tick,
};
use cloudberth_runtime::{
    dynamic::DynamicView, informer::Informer, object::Watched, scope::WatchScope, writer::Writer,
};
use embedded_kube::{Fault, Harm};
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::fixture::{Fixture, pass};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PATIENCE: Duration = Duration::from_secs(5);

struct Until(u64);

impl Gate for Until {
    fn claim_until(&self) -> Option<Tick> {
        Some(Tick::from_secs(self.0))
    }
}

fn map(name: &str) -> Value {
    let applied = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": applied}, "data": {"a": "1"}})
}

fn maps(fixture: &Fixture) -> Arc<Informer<DynamicView>> {
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "ConfigMap"), "configmaps");
    Informer::new(WatchScope::all(resource, "watch-configmaps"), Arc::clone(&fixture.clock))
}

fn writes(fixture: &Fixture) -> usize {
    let writes = ["create", "update", "patch", "delete"];
    fixture.api.calls(0).iter().filter(|call| writes.contains(&call.verb.as_str())).count()
}

#[tokio::test(start_paused = true)]
async fn an_object_of_any_kind_is_created_merged_replaced_and_deleted() {
    let fixture = Fixture::new();
    let writer = fixture.cluster.writer();
    let call = writer.call(PATIENCE);
    assert!(writer.read::<DynamicView>(&call, MAPS, "m").await.is_absent());
    writer.create(&call, MAPS, &map("m")).await.unwrap();
    let again = writer.create(&call, MAPS, &map("m")).await.unwrap_err();
    assert_eq!(again.category(), Category::Conflict);
    let merged = writer.merge(&call, MAPS, "m", &json!({"data": {"b": "2"}})).await.unwrap();
    assert_eq!(merged["data"], json!({"a": "1", "b": "2"}));
    let Lookup::Present(read) = writer.read::<DynamicView>(&call, MAPS, "m").await else { panic!("gone") };
    let mut body = read.json().clone();
    body["data"] = json!({"c": "3"});
    let replaced = writer.replace(&call, MAPS, &body).await.unwrap();
    assert_eq!(replaced["data"], json!({"c": "3"}));
    assert_eq!(replaced["metadata"]["annotations"], map("m")["metadata"]["annotations"], "nothing got lost");
    let late = writer.replace(&call, MAPS, &body).await.unwrap_err();
    assert_eq!(late.category(), Category::Conflict, "it changed since it was read");
    let late = writer.delete(&call, MAPS, "m", &read).await.unwrap_err();
    assert_eq!(late.category(), Category::Conflict, "it changed since it was read");
    let read = DynamicView::read(replaced).unwrap();
    writer.delete(&call, MAPS, "m", &read).await.unwrap();
    writer.delete(&call, MAPS, "m", &read).await.unwrap();
    assert!(fixture.api.objects("configmaps").is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_without_the_claim_or_without_saying_what_it_is_for() {
    let fixture = Fixture::new();
    let made =
        fixture.cluster.writer().create(&fixture.cluster.call(PATIENCE), MAPS, &map("m")).await.unwrap();
    let read = DynamicView::read(made.clone()).unwrap();
    let before = writes(&fixture);
    // The claim ends in two seconds, and nothing is sent in its last three.
    let gates: [(Arc<dyn Gate>, Category); 2] =
        [(Arc::new(ReadOnly), Category::Cancelled), (Arc::new(Until(2)), Category::Temporary)];
    for (gate, want) in gates {
        let writer = Writer::new(fixture.client.clone(), Arc::clone(&fixture.clock), gate);
        let call = writer.call(PATIENCE);
        let refused = [
            writer.create(&call, MAPS, &map("n")).await.map(drop),
            writer.merge(&call, MAPS, "m", &json!({"data": {}})).await.map(drop),
            writer.replace(&call, MAPS, &made).await.map(drop),
            writer.delete(&call, MAPS, "m", &read).await,
            maps(&fixture).replace(&writer, &call, &made).await.map(drop),
        ];
        assert!(
            refused.iter().all(|answer| answer.as_ref().is_err_and(|why| why.category() == want)),
            "law 9: {refused:?}"
        );
        assert!(writer.read::<DynamicView>(&call, MAPS, "m").await.is_present(), "a read needs no claim");
    }
    let (writer, call) = (fixture.cluster.writer(), fixture.cluster.call(PATIENCE));
    for field in ["uid", "resourceVersion"] {
        let mut body = made.clone();
        body["metadata"].as_object_mut().unwrap().remove(field);
        for answer in [
            writer.replace(&call, MAPS, &body).await.map(drop),
            maps(&fixture).replace(writer, &call, &body).await.map(drop),
        ] {
            assert_eq!(answer.unwrap_err().category(), Category::Permanent, "{field}");
        }
    }
    assert_eq!(writes(&fixture), before);
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_replacement_is_known_before_the_watch_delivers_it() {
    let fixture = Fixture::new();
    let (writer, call) = (fixture.cluster.writer(), fixture.cluster.call(Duration::from_secs(60)));
    writer.create(&call, MAPS, &map("m")).await.unwrap();
    let maps = maps(&fixture);
    let _handle = maps.start(fixture.client.clone(), Arc::new(Random::seeded(1)));
    maps.until_synced().await;
    let unavailable = Harm::Status { code: 503, retry_after: None };
    fixture.api.add_fault(Fault::new(unavailable).on("watch", "configmaps").times(3));
    fixture.api.restart();
    let mut body = maps.all()[0].json().clone();
    body["data"] = json!({"b": "2"});
    let new = maps.replace(writer, &call, &body).await.unwrap();
    let known = maps.get(&new.key()).unwrap();
    assert_eq!((known.json(), &known.json()["data"]), (new.json(), &json!({"b": "2"})));
    assert_eq!(maps.replace(writer, &call, &body).await.unwrap_err().category(), Category::Conflict);
    pass(30).await;
    assert_eq!(maps.get(&new.key()).unwrap().resource_version(), new.resource_version());
}
