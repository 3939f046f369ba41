//! The `kube` client on the embedded API, in memory and on a port.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod common;

use common::{call, cluster};
use embedded_kube::{Action, KubeApi, Tls, User, serve};
use futures_util::{StreamExt, TryStreamExt};
use http::Method;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use serde_json::{Value, json};

fn client(api: &KubeApi) -> Client {
    Client::new(api.service(), "default")
}

fn service(name: &str) -> Service {
    let spec = json!({"type": "LoadBalancer", "ports": [{"port": 80}]});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_made_changed_and_deleted() {
    let api = cluster();
    let services: Api<Service> = Api::default_namespaced(client(&api));
    let made = services.create(&PostParams::default(), &service("web")).await.unwrap();
    let spec = made.spec.as_ref().unwrap();
    assert!(spec.cluster_ip.as_ref().unwrap().starts_with("10.96."));
    assert!((30_000..=32_767).contains(&spec.ports.as_ref().unwrap()[0].node_port.unwrap()));

    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    let patched =
        services.patch_status("web", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let ingress = patched.status.unwrap().load_balancer.unwrap().ingress.unwrap();
    assert_eq!((ingress[0].ip.as_deref(), ingress[0].ip_mode.as_deref()), (Some("192.0.2.1"), Some("VIP")));

    let stale = services.replace("web", &PostParams::default(), &made).await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"));
    let finalizer = json!({"metadata": {"finalizers": ["a.b/c"]}});
    services.patch("web", &PatchParams::default(), &Patch::Strategic(&finalizer)).await.unwrap();
    services.delete("web", &DeleteParams::default()).await.unwrap();
    let going = services.get("web").await.unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    let free = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
    let free: Patch<()> = Patch::Json(serde_json::from_value(free).unwrap());
    services.patch("web", &PatchParams::default(), &free).await.unwrap();
    assert!(services.get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages() {
    let api = cluster();
    let nodes: Api<Node> = Api::all(client(&api));
    for n in 0..5 {
        let node = serde_json::from_value(
            json!({"metadata": {"name": format!("n{n}"), "labels": {"odd": (n % 2).to_string()}}}),
        )
        .unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut params = ListParams::default().limit(2);
    loop {
        let page = nodes.list(&params).await.unwrap();
        seen.extend(page.items.iter().map(|node| node.metadata.name.clone().unwrap()));
        // What is deleted meanwhile is still on the pages that follow.
        nodes.delete("n4", &DeleteParams::default()).await.ok();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(seen, ["n0", "n1", "n2", "n3", "n4"]);
    let odd = nodes.list(&ListParams::default().labels("odd=1")).await.unwrap();
    assert_eq!(odd.items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_follows_through_drops_and_compaction() {
    for streaming in [false, true] {
        let api = cluster();
        let nodes: Api<Node> = Api::all(client(&api));
        let config =
            if streaming { watcher::Config::default().streaming_lists() } else { watcher::Config::default() };
        let mut seen = Box::pin(watcher(nodes.clone(), config));
        let mut names = Vec::new();
        let mut step = 0;
        while names.len() < 3 {
            let event = seen.next().await.unwrap();
            match event {
                Ok(watcher::Event::InitDone) if step == 0 => {
                    step = 1;
                    call(&api, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "a"}})).await;
                }
                Ok(watcher::Event::Apply(node) | watcher::Event::InitApply(node)) => {
                    let name = node.metadata.name.unwrap();
                    if !names.contains(&name) {
                        names.push(name.clone());
                        let next = match name.as_str() {
                            "a" => "b",
                            "b" => "c",
                            _ => break,
                        };
                        call(&api, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": next}})).await;
                        api.compact();
                        api.restart();
                    }
                }
                _ => {}
            }
        }
        assert_eq!(names, ["a", "b", "c"], "streaming: {streaming}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_decides() {
    let api = cluster();
    api.add_token("t", User::plain("bob"));
    api.set_policy(Some(std::sync::Arc::new(|user: &User, action: &Action| {
        (user.name == "bob" && action.resource == "secrets").then(|| "not for bob".to_owned())
    })));
    let as_bob = |path: &str| {
        let request = http::Request::get(path).header("authorization", "Bearer t");
        request.body(http_body_util::Full::new(bytes::Bytes::new())).unwrap()
    };
    let mut service = api.service();
    let refused = tower::Service::call(&mut service, as_bob("/api/v1/secrets")).await.unwrap();
    assert_eq!(refused.status(), 403);
    let allowed = tower::Service::call(&mut service, as_bob("/api/v1/nodes")).await.unwrap();
    assert_eq!(allowed.status(), 200);
    assert_eq!(call(&api, Method::GET, "/api/v1/nodes", &Value::Null).await.0, 403, "strangers have no say");
    assert_eq!(call(&api, Method::GET, "/readyz", &Value::Null).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_data() {
    let api = cluster();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(call(&api, Method::POST, definitions, &definition).await.0, 201);
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"any": [1, {"thing": true}]}});
    let (status, made) = call(&api, Method::POST, path, &widget).await;
    assert_eq!((status.as_u16(), &made["spec"]), (201, &widget["spec"]));
    let change = json!({"spec": {"x": 1}, "status": {"ready": true}});
    let (_, patched) = call(&api, Method::PATCH, &format!("{path}/w/status"), &change).await;
    assert_eq!((&patched["spec"], &patched["status"]), (&widget["spec"], &json!({"ready": true})));
    let (_, list) = call(&api, Method::GET, path, &Value::Null).await;
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&json!("WidgetList"), &json!("Widget")));
    let (_, groups) = call(&api, Method::GET, "/apis/example.com/v1", &Value::Null).await;
    assert_eq!(groups["resources"][0]["name"], "widgets");
}

#[tokio::test(flavor = "current_thread")]
async fn the_same_on_a_port_with_tls_and_token() {
    let api = cluster();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let served = serve(&api, listener, Some(Tls::for_loopback().unwrap()), Some("t".to_owned())).unwrap();
    let config = served.kubeconfig();
    assert!(
        config.contains(&format!("https://{}", served.address)) && config.contains("token: \"t\""),
        "{config}"
    );
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&config).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
            .await
            .unwrap();
    let nodes: Api<Node> = Api::all(Client::try_from(config).unwrap());
    let node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let seen: Vec<_> = watcher(nodes, watcher::Config::default()).take(3).try_collect().await.unwrap();
    assert!(
        matches!(&seen[1], watcher::Event::InitApply(node) if node.metadata.name.as_deref() == Some("n"))
    );
    let log = api.calls(0);
    assert_eq!((log[0].user.as_str(), log[0].verb.as_str()), ("kubernetes-admin", "create"));
}

#[tokio::test(flavor = "current_thread")]
async fn a_cluster_behind_a_proxy_is_below_its_path() {
    let config =
        embedded_kube::Config { path_prefix: "/k8s/clusters/c-abc/".to_owned(), ..Default::default() };
    let api = KubeApi::with_config(&config, sim_kit::Surroundings::of_this_machine());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let served = serve(&api, listener, None, None).unwrap();
    let config = served.kubeconfig();
    assert!(config.contains(&format!("http://{}/k8s/clusters/c-abc\n", served.address)), "{config}");
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&config).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let nodes: Api<Node> = Api::all(Client::try_from(config).unwrap());
    let node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    assert_eq!(nodes.get("n").await.unwrap().metadata.name.as_deref(), Some("n"));
    assert_eq!(call(&api, Method::GET, "/api/v1/nodes", &Value::Null).await.0, 404);
    assert_eq!(call(&api, Method::GET, "/k8s/clusters/c-abc/api/v1/nodes", &Value::Null).await.0, 200);
}
