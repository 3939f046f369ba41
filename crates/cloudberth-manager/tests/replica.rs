//! A replica as a whole, against an embedded cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cloudberth_controllers::{node::NodeSettings, service::ServiceSettings, team::TeamSettings};
use cloudberth_core::{Clock, Dice, Result, decide::election::Config, provider::Provider};
use cloudberth_fake::{Cloud, FakeProvider, Manners};
use cloudberth_http::surroundings::SystemClock;
use cloudberth_manager::replica::{Parts, Replica};
use cloudberth_runtime::metrics::{Metrics, Registry, render};
use cloudberth_sim::{
    Surroundings,
    kube::{Action, KubeApi},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, time::timeout};

/// A cloud that has a name and nothing else.
struct Bare;

impl Provider for Bare {
    fn name(&self) -> &'static str {
        "bare"
    }

    fn scheme(&self) -> &'static str {
        "bare"
    }
}

fn replica(api: &KubeApi, cloud: Arc<dyn Provider>, registry: &mut Registry) -> Result<Replica> {
    let client = Client::new(api.service(), "default");
    let team = TeamSettings {
        node: Some(NodeSettings::default()),
        service: Some(ServiceSettings {
            drift: Some(Duration::from_millis(100)),
            ..ServiceSettings::default()
        }),
        ..TeamSettings::default()
    };
    Replica::new(Parts {
        client: client.clone(),
        lease_client: client,
        clouds: vec![(cloud, BTreeSet::new())],
        default_cloud: None,
        cluster_name: "here".to_owned(),
        team,
        election: Some(Config {
            namespace: "kube-system".to_owned(),
            name: "cloud-controller-manager".to_owned(),
            identity: "me".to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }),
        migration: None,
        metrics: Metrics::new(registry),
        clock: Arc::new(SystemClock::new()),
        dice: Arc::new(Dice::seeded(1)),
    })
}

#[tokio::test]
async fn a_cloud_without_machines_leaves_only_the_node_controller_out() {
    let api = KubeApi::new(Surroundings::of_this_machine());
    let mut registry = Registry::default();
    let replica = replica(&api, Arc::new(Bare), &mut registry).expect("FW-38: the manager goes on");

    let (stop, stopped) = oneshot::channel::<()>();
    let watch = async {
        let running = || {
            let page = render(&registry);
            let lines = page.lines().filter(|line| line.starts_with("running_managed_controllers{"));
            lines.filter(|line| line.ends_with(" 1")).map(str::to_owned).collect::<Vec<_>>()
        };
        while running().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let running = running();
        assert!(running.len() == 1 && running[0].contains("name=\"service\""), "FW-38: {running:?}");
        drop(stop);
    };
    let work = replica.run(async {
        let _ = stopped.await;
    });
    Box::pin(timeout(Duration::from_secs(120), async { tokio::join!(watch, work) }))
        .await
        .expect("it leads and stops");
    assert!(!replica.election().unwrap().leads());
}

#[tokio::test]
async fn the_version_of_the_cluster_decides_what_is_published_and_holds_nobody_up() {
    let refuse = |_: &_, action: &Action| (action.path == "/version").then(|| "no".to_owned());
    for (case, version, refused, want) in [
        ("CS-123", "v1.30.2", false, json!("Proxy")),
        ("CS-125", "v1.29.14", false, Value::Null),
        ("nobody says", "v1.30.2", true, json!("Proxy")),
    ] {
        let api = KubeApi::new(Surroundings::of_this_machine());
        api.set_version(version);
        api.set_policy(refused.then(|| Arc::new(refuse) as _));
        let people = Client::new(api.service(), "default");
        let kind = ApiResource {
            group: String::new(),
            version: "v1".into(),
            api_version: "v1".into(),
            kind: "Service".into(),
            plural: "services".into(),
        };
        let services: Api<DynamicObject> = Api::namespaced_with(people, "default", &kind);
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        });
        services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();

        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let cloud = Cloud::new(Arc::clone(&clock), Dice::seeded(1), Manners::default());
        let provider = FakeProvider::new("alpha", &cloud, "manager", clock);
        let replica = replica(&api, Arc::new(provider), &mut Registry::default()).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let watch = async {
            let entry = loop {
                let found = services.get("web").await.unwrap();
                if let Some(entry) = found.data.pointer("/status/loadBalancer/ingress/0") {
                    break entry.clone();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            };
            assert_eq!(entry["ipMode"], want, "{case}: {entry}");
            let patches = || {
                api.calls(0).iter().filter(|call| call.verb == "patch" && call.resource == "services").count()
            };
            let looked_again = async || {
                let looks = cloud.calls().len();
                while cloud.calls().len() < looks + 6 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            // What the first pass still had to write is written by then.
            looked_again().await;
            let before = patches();
            looked_again().await;
            assert_eq!(patches(), before, "L4-810 {case}: what is not kept is not written again and again");
            drop(stop);
        };
        let work = replica.run(async {
            let _ = stopped.await;
        });
        Box::pin(timeout(Duration::from_secs(120), async { tokio::join!(watch, work) })).await.expect(case);
        let asked = api.calls(0).iter().filter(|call| call.resource == "/version").count();
        assert!(asked == 1 || refused, "{case}: asked {asked} times");
    }
}
