//! Programs that are careless on purpose, to show that the witness notices. The program is the same; its wire shows it what
//! one would see that does not look properly.

use std::sync::Arc;

use embedded_kube::KubeApi;
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};

use super::{
    seeds::live,
    wire::Tamper,
    witness::{LEAKED, TAKEN, TOKEN_REPLACED},
    world::{GUEST, PROJECT_SECRET, simulate},
};

fn stored(api: &KubeApi, table: &str, name: &str) -> Option<Value> {
    let all = api.objects(table);
    all.iter().find(|object| object["metadata"]["name"] == name).map(|object| Value::clone(object))
}

/// A token that it cannot read is none.
fn forgets_the_token(api: &KubeApi, request: &Request<Body>) -> Option<(u16, Value)> {
    let asks = request.method() == Method::GET && request.uri().path().ends_with(PROJECT_SECRET);
    let mut secret = stored(api, "secrets", PROJECT_SECRET).filter(|_| asks)?;
    secret["data"]["clientSecret"] = json!("");
    secret["kind"] = json!("Secret");
    secret["apiVersion"] = json!("v1");
    Some((200, secret))
}

/// A cluster that is missing from a listing is gone.
fn overlooks_a_cluster(api: &KubeApi, request: &Request<Body>) -> Option<(u16, Value)> {
    let all = "/apis/management.cattle.io/v3/clusters";
    let path = request.uri().path();
    if request.method() != Method::GET || request.uri().query().unwrap_or_default().contains("watch") {
        return None;
    }
    if path == format!("{all}/{GUEST}") {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
            "reason": "NotFound", "message": "not found", "details": {"name": GUEST, "kind": "clusters"}});
        return Some((404, status));
    }
    let items = api.objects("clusters.management.cattle.io");
    let items: Vec<&Value> = items
        .iter()
        .map(|cluster| &**cluster)
        .filter(|cluster| cluster["metadata"]["name"] != GUEST)
        .collect();
    let version = api.revision().to_string();
    let list = json!({"apiVersion": "management.cattle.io/v3", "kind": "ClusterList",
        "metadata": {"resourceVersion": version}, "items": items});
    (path == all).then_some((200, list))
}

/// An address is released when it was asked for.
fn believes_that_it_released(api: &KubeApi, request: &Request<Body>) -> Option<(u16, Value)> {
    let (path, name) = request.uri().path().rsplit_once('/')?;
    let writes = request.method() == Method::PUT && path.ends_with("/floatingips");
    let address = stored(api, "floatingips.rancher.k8s.binbash.org", name).filter(|_| writes)?;
    Some((200, address))
}

#[test]
fn a_careless_program_is_noticed() {
    type Careless = fn(&KubeApi, &Request<Body>) -> Option<(u16, Value)>;
    let table: [(&str, Careless, &str); 3] = [
        ("a token that it cannot read is none", forgets_the_token, TOKEN_REPLACED),
        ("a cluster that is missing from a listing is gone", overlooks_a_cluster, TAKEN),
        ("an address is released when that was asked for", believes_that_it_released, LEAKED),
    ];
    for (program, careless, wrong) in table {
        let mut found = Vec::new();
        for seed in 0..8 {
            let tamper: Tamper = Arc::new(careless);
            simulate(async { found.extend(live(seed, Some(tamper)).await.err()) });
            if found.iter().any(|found| found.starts_with(wrong)) {
                break;
            }
        }
        assert!(found.iter().any(|found| found.starts_with(wrong)), "{program}: {found:?}");
    }
}
