//! Whom the cluster says to trust.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod fixture;

use std::sync::Arc;

use cloudberth_core::Clock;
use cloudberth_http::surroundings::SystemClock;
use cloudberth_serving::Authentication;
use embedded_kube::{Fault, Harm, KubeApi};
use fixture::{Authority, Caller, Wants, cluster, delegated, guard, start, unusable};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

const NAME: &str = "extension-apiserver-authentication";

fn announcement(clients: &Authority, proxies: &Authority) -> Value {
    json!({"metadata": {"name": NAME}, "data": {
        "client-ca-file": clients.pem,
        "requestheader-client-ca-file": proxies.pem,
        "requestheader-allowed-names": "[\"front\"]",
        "requestheader-username-headers": "[\"X-Passed-User\"]",
        "requestheader-group-headers": "[\"X-Passed-Group\"]",
        "requestheader-extra-headers-prefix": "[\"X-Passed-Extra-\"]",
    }})
}

fn maps(client: &kube::Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "kube-system")
}

#[tokio::test]
async fn what_the_cluster_announces_is_followed() {
    let (_, client) = cluster();
    let (clients, proxies, next) =
        (Authority::new("clients"), Authority::new("proxies"), Authority::new("next"));
    let port = start(delegated(&client)).await;
    let masters = "system:masters";
    let old = Caller::with(&clients.client("a", masters));
    let new = Caller::with(&next.client("a", masters));
    let front = Caller::with(&proxies.client("front", ""))
        .header("x-passed-user", "b")
        .header("x-passed-group", masters);
    assert_eq!(port.status("/metrics", &old).await, 403, "no authority yet: a certificate means nothing");

    let map: ConfigMap = serde_json::from_value(announcement(&clients, &proxies)).unwrap();
    maps(&client).create(&PostParams::default(), &map).await.unwrap();
    port.until("/metrics", &old, 200).await;
    assert_eq!((port.status("/metrics", &front).await, port.status("/metrics", &new).await), (200, 401));

    // A broken part is left out, the other one counts.
    let change = json!({"data": {"client-ca-file": next.pem, "requestheader-group-headers": "rubbish"}});
    maps(&client).patch(NAME, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    port.until("/metrics", &new, 200).await;
    assert_eq!((port.status("/metrics", &front).await, port.status("/metrics", &old).await), (200, 401));

    maps(&client).delete(NAME, &kube::api::DeleteParams::default()).await.unwrap();
    assert_eq!(port.status("/metrics", &new).await, 200, "what was last said stays in force");
}

#[tokio::test]
async fn files_go_before_what_the_cluster_announces() {
    let (_, client) = cluster();
    let (clients, proxies, given) =
        (Authority::new("clients"), Authority::new("proxies"), Authority::new("given"));
    let map: ConfigMap = serde_json::from_value(announcement(&clients, &proxies)).unwrap();
    maps(&client).create(&PostParams::default(), &map).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("ca.pem");
    std::fs::write(&file, &given.pem).unwrap();
    let mut wants = delegated(&client);
    wants.authentication.client_ca_file = Some(file);
    let port = start(wants).await;
    let masters = "system:masters";
    let front = Caller::with(&proxies.client("front", ""))
        .header("x-passed-user", "b")
        .header("x-passed-group", masters);
    let table = [
        ("the file", Caller::with(&given.client("a", masters)), 200),
        ("not the announcement", Caller::with(&clients.client("a", masters)), 401),
        ("what no file says is announced, and there from the start", front, 200),
    ];
    for (case, caller, want) in table {
        assert_eq!(port.status("/metrics", &caller).await, want, "{case}");
    }
}

fn looked(api: &KubeApi) -> bool {
    api.calls(0).iter().any(|call| call.resource == "configmaps")
}

#[tokio::test]
async fn a_failed_look_is_fatal_unless_it_is_tolerated() {
    let files = |names: &[&str]| {
        let place = tempfile::tempdir().unwrap();
        let paths: Vec<_> = names.iter().map(|name| place.path().join(name)).collect();
        for path in &paths {
            std::fs::write(path, Authority::new("x").pem).unwrap();
        }
        (place, paths)
    };
    let (_place, paths) = files(&["clients.pem", "proxies.pem"]);
    let usual = Authentication::default;
    // Case, flags, whether it starts, whether the cluster is asked.
    let table = [
        ("refused", usual(), false, true),
        ("tolerated", Authentication { tolerate_lookup_failure: true, ..usual() }, true, true),
        ("not wanted", Authentication { skip_lookup: true, ..usual() }, true, false),
        (
            "only clients lack",
            Authentication { proxy_ca_file: Some(paths[1].clone()), ..usual() },
            true,
            true,
        ),
        (
            "only proxies lack",
            Authentication { client_ca_file: Some(paths[0].clone()), ..usual() },
            false,
            true,
        ),
        (
            "nothing lacks",
            Authentication {
                client_ca_file: Some(paths[0].clone()),
                proxy_ca_file: Some(paths[1].clone()),
                ..usual()
            },
            true,
            false,
        ),
    ];
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    for (case, authentication, starts, asks) in table {
        let (api, client) = cluster();
        let mut fault = Fault::new(Harm::Status { code: 403, retry_after: None });
        "configmaps".clone_into(&mut fault.resource);
        api.add_fault(fault);
        let authentication = Authentication { client: Some(client), ..authentication };
        let wants = Wants { authentication, ..Wants::default() };
        let opened = guard(&wants, &clock, &mut Registry::default()).await;
        assert_eq!((opened.is_ok(), looked(&api)), (starts, asks), "{case}: {opened:?}");
        if let Err(error) = opened {
            assert!(error.to_string().contains("--authentication-tolerate-lookup-failure"), "{error}");
        }
    }
    let wants =
        Wants { authentication: Authentication { client: Some(unusable()), ..usual() }, ..Wants::default() };
    assert!(guard(&wants, &clock, &mut Registry::default()).await.is_err(), "nobody listens");
    let lost = Authentication { client_ca_file: Some("/nonexistent/ca.pem".into()), ..usual() };
    let error =
        guard(&Wants { authentication: lost, ..Wants::default() }, &clock, &mut Registry::default()).await;
    assert!(error.unwrap_err().to_string().starts_with("--client-ca-file: cannot read /nonexistent/ca.pem"));
}
