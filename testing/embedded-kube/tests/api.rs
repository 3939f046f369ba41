//! What the API does beyond storing: namespaces, names, dry runs, preconditions, views, reviews.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod common;

use bytes::Bytes;
use common::{call, cluster, send};
use embedded_kube::KubeApi;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::Service;

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "1"}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn a_namespace_lives_and_dies() {
    let api = cluster();
    let inside = "/api/v1/namespaces/team/configmaps";
    let (status, body) = call(&api, Method::POST, inside, &map("a")).await;
    assert_eq!((status.as_u16(), &body["message"]), (404, &json!("namespaces \"team\" not found")));
    let (_, made) =
        call(&api, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await;
    assert_eq!(made["metadata"]["labels"]["kubernetes.io/metadata.name"], "team");
    assert_eq!(
        (&made["status"]["phase"], &made["spec"]["finalizers"]),
        (&json!("Active"), &json!(["kubernetes"]))
    );
    assert_eq!(call(&api, Method::POST, inside, &map("a")).await.0, 201);

    let (_, going) = call(&api, Method::DELETE, "/api/v1/namespaces/team", &Value::Null).await;
    assert_eq!(going["status"]["phase"], "Terminating");
    let (status, body) = call(&api, Method::POST, inside, &map("b")).await;
    assert_eq!(
        (status.as_u16(), &body["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    let mut finalized = going.clone();
    finalized["spec"]["finalizers"] = json!([]);
    assert_eq!(call(&api, Method::PUT, "/api/v1/namespaces/team/finalize", &finalized).await.0, 200);
    assert_eq!(call(&api, Method::GET, "/api/v1/namespaces/team", &Value::Null).await.0, 404);
    let (status, body) = call(&api, Method::DELETE, "/api/v1/namespaces/default", &Value::Null).await;
    assert_eq!((status.as_u16(), &body["reason"]), (403, &json!("Forbidden")));
}

#[tokio::test(start_paused = true)]
async fn names_can_be_generated_and_dry_runs_leave_nothing() {
    let api = cluster();
    let before = api.revision();
    let (status, dry) = call(&api, Method::POST, &format!("{MAPS}?dryRun=All"), &map("a")).await;
    assert_eq!((status.as_u16(), dry["metadata"].get("resourceVersion")), (201, None));
    assert_eq!(api.revision(), before);
    let body = json!({"metadata": {"generateName": "box-"}});
    let (_, one) = call(&api, Method::POST, MAPS, &body).await;
    let (_, two) = call(&api, Method::POST, MAPS, &body).await;
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name(&one).starts_with("box-") && name(&one).len() == 9 && name(&one) != name(&two));
    let (_, set) =
        call(&api, Method::POST, MAPS, &json!({"metadata": {"name": "x", "resourceVersion": "7"}})).await;
    assert_eq!(set["message"], "resourceVersion should not be set on objects to be created");
}

#[tokio::test(start_paused = true)]
async fn preconditions_guard_deletion() {
    let api = cluster();
    let (_, made) = call(&api, Method::POST, MAPS, &map("a")).await;
    let path = format!("{MAPS}/a");
    for wrong in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        let (status, body) = call(&api, Method::DELETE, &path, &json!({"preconditions": wrong})).await;
        assert_eq!((status.as_u16(), &body["reason"]), (409, &json!("Conflict")), "{wrong}");
    }
    let right = json!({"preconditions": {"uid": made["metadata"]["uid"]}});
    let (status, body) = call(&api, Method::DELETE, &path, &right).await;
    assert_eq!((status.as_u16(), &body["status"]), (200, &json!("Success")));
}

#[tokio::test(start_paused = true)]
async fn an_expired_page_can_be_continued() {
    let api = cluster();
    for name in ["a", "b", "c"] {
        call(&api, Method::POST, MAPS, &map(name)).await;
    }
    let (_, first) = call(&api, Method::GET, &format!("{MAPS}?limit=1"), &Value::Null).await;
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let token = first["metadata"]["continue"].as_str().unwrap();
    call(&api, Method::DELETE, &format!("{MAPS}/b"), &Value::Null).await;
    let names = |list: &Value| -> Vec<String> {
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, second) =
        call(&api, Method::GET, &format!("{MAPS}?limit=1&continue={token}"), &Value::Null).await;
    assert_eq!(names(&second), ["b"], "the list as it was");
    api.compact();
    let (status, gone) =
        call(&api, Method::GET, &format!("{MAPS}?limit=1&continue={token}"), &Value::Null).await;
    assert_eq!((status.as_u16(), &gone["reason"]), (410, &json!("Expired")));
    let fresh = gone["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = call(&api, Method::GET, &format!("{MAPS}?continue={fresh}"), &Value::Null).await;
    assert_eq!(names(&rest), ["c"], "what is there now");
}

async fn viewed(api: &KubeApi, path: &str, accept: &str) -> Value {
    let request = Request::get(path).header("accept", accept).body(Full::new(Bytes::new())).unwrap();
    let response = api.service().call(request).await.unwrap();
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_same_list_in_several_forms() {
    let api = cluster();
    call(&api, Method::POST, MAPS, &map("a")).await;
    let table = viewed(&api, MAPS, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    assert_eq!((&table["kind"], &table["rows"][0]["cells"]), (&json!("Table"), &json!(["a", 1, "0s"])));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let metadata =
        viewed(&api, MAPS, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").await;
    assert_eq!(
        (&metadata["kind"], metadata["items"][0].get("data")),
        (&json!("PartialObjectMetadataList"), None)
    );
    let plain = viewed(&api, MAPS, "application/vnd.kubernetes.protobuf,application/json").await;
    assert_eq!(plain["kind"], "ConfigMapList");
    let all = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let groups = viewed(&api, "/apis", all).await;
    assert_eq!(groups["kind"], "APIGroupDiscoveryList");
}

#[tokio::test(start_paused = true)]
async fn one_event_through_two_apis() {
    let api = cluster();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": "n"}, "message": "m", "reason": "R", "type": "Normal"});
    call(&api, Method::POST, "/api/v1/namespaces/default/events", &event).await;
    let (_, new) =
        call(&api, Method::GET, "/apis/events.k8s.io/v1/namespaces/default/events/e", &Value::Null).await;
    assert_eq!((&new["note"], &new["regarding"]["name"]), (&json!("m"), &json!("n")));
    let query = "/apis/events.k8s.io/v1/events?fieldSelector=regarding.kind%3DNode";
    let (_, found) = call(&api, Method::GET, query, &Value::Null).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_paths_and_methods_are_refused() {
    let api = cluster();
    let table = [
        (Method::GET, "/api/v1/teapots", 404),
        (Method::GET, "/apis/none.example.com/v1/things", 404),
        (Method::PUT, "/api/v1/nodes", 405),
        (Method::POST, "/api/v1/nodes/x", 405),
        (Method::GET, "/api/v1/namespaces/default/nodes", 404),
        (Method::GET, "/api/v1/nodes/x/scale", 404),
        (Method::GET, "/openapi/v3/api/v1", 200),
        (Method::GET, "/api/v1/nodes?labelSelector=%3D", 400),
        (Method::GET, "/api/v1/nodes?fieldSelector=spec.nope%3D1", 400),
        (Method::GET, "/api/v1/nodes?resourceVersion=999999", 504),
    ];
    for (method, path, code) in table {
        assert_eq!(call(&api, method, path, &json!({})).await.0.as_u16(), code, "{path}");
    }
    call(&api, Method::POST, MAPS, &map("a")).await;
    let applied =
        send(&api, Method::PATCH, &format!("{MAPS}/a"), "application/apply-patch+yaml", &json!({})).await;
    assert_eq!(applied.unwrap().status(), 415, "server-side apply is refused clearly");
}

#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_history_every_time() {
    let history = || async {
        let api = cluster();
        for name in ["a", "b"] {
            let service = json!({"metadata": {"generateName": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
            call(&api, Method::POST, "/api/v1/namespaces/default/services", &service).await;
        }
        format!("{:?}", api.objects("services"))
    };
    assert_eq!(history().await, history().await);
}

#[tokio::test(start_paused = true)]
async fn yaml_is_read_and_written() {
    let api = cluster();
    let ask = async |method: Method, path: &str, accept: &str, body: &'static str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/yaml")
            .header("accept", accept)
            .body(Full::new(Bytes::from_static(body.as_bytes())))
            .unwrap();
        let response = api.service().call(request).await.unwrap();
        let (status, kind) = (response.status().as_u16(), response.headers()["content-type"].clone());
        let text = response.into_body().collect().await.unwrap().to_bytes();
        (status, kind, String::from_utf8(text.to_vec()).unwrap())
    };
    let yaml = "application/yaml";
    let (status, kind, text) =
        ask(Method::POST, MAPS, yaml, "metadata: {name: box}\ndata:\n  a: \"1\"\n").await;
    assert_eq!((status, kind.to_str().unwrap()), (201, yaml), "{text}");
    assert!(text.contains("kind: ConfigMap\n") && text.contains("\n  name: box\n"), "{text}");
    let (status, kind, text) = ask(Method::GET, &format!("{MAPS}/box"), "application/json", "").await;
    assert_eq!((status, kind.to_str().unwrap()), (200, "application/json"));
    assert!(text.ends_with("}\n"), "a whole line");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["data"], json!({"a": "1"}));
    let (status, kind, text) = ask(Method::GET, &format!("{MAPS}/none"), yaml, "").await;
    assert_eq!((status, kind.to_str().unwrap()), (404, yaml), "{text}");
    let (status, _, text) = ask(Method::POST, MAPS, yaml, "a: [1").await;
    assert_eq!(status, 400, "{text}");
    assert_eq!(ask(Method::GET, &format!("{MAPS}?watch=true"), yaml, "").await.0, 406);
}
