//! A replica as a whole, against an embedded cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_controllers::{
    controller_set::ControllerSettings, node::NodeSettings, service::ServiceSettings,
};
use cloudberth_core::{
    Call, Clock, Random, Result,
    decide::election::Config,
    provider::{Boxed, Provider},
};
use cloudberth_fake::{Cloud, FakeProvider, Fault, SimSettings};
use cloudberth_http::surroundings::SystemClock;
use cloudberth_manager::replica::{Parts, Replica};
use cloudberth_runtime::metrics::{Metrics, Registry, render};
use embedded_kube::{Action, KubeApi};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde_json::{Value, json};
use sim_kit::Surroundings;
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

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
    let controllers = ControllerSettings {
        node: Some(NodeSettings::default()),
        service: Some(ServiceSettings {
            drift: Some(Duration::from_millis(100)),
            ..ServiceSettings::default()
        }),
        ..ControllerSettings::default()
    };
    Replica::new(Parts {
        client: client.clone(),
        lease_client: client,
        clouds: vec![(cloud, BTreeSet::new())],
        default_cloud: None,
        cluster_name: "here".to_owned(),
        controllers,
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
        random: Arc::new(Random::seeded(1)),
    })
}

#[tokio::test]
async fn a_cloud_without_instances_leaves_only_the_node_controller_out() {
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
        let cloud = Cloud::new(Arc::clone(&clock), Random::seeded(1), SimSettings::default());
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

fn services(api: &KubeApi) -> Api<DynamicObject> {
    let kind = ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: "Service".into(),
        plural: "services".into(),
    };
    Api::namespaced_with(Client::new(api.service(), "default"), "default", &kind)
}

/// A Service that takes a step in the cloud for each of its ports.
async fn expose(api: &KubeApi, ports: u16) {
    let ports: Vec<_> = (0..ports).map(|n| json!({"name": format!("p{n}"), "port": 80 + n})).collect();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": ports},
    });
    let service = serde_json::from_value(service).unwrap();
    services(api).create(&PostParams::default(), &service).await.unwrap();
}

/// Whom the Lease names; empty if it was let go of.
fn holder(api: &KubeApi) -> String {
    let leases = api.objects("leases.coordination.k8s.io");
    leases[0].pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_outlives_the_grace_leaves_the_lease_to_run_out() {
    let api = KubeApi::new(Surroundings::of_this_machine());
    expose(&api, 1).await;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let cloud = Cloud::new(Arc::clone(&clock), Random::seeded(1), SimSettings::default());
    let sent = Arc::new(Notify::new());
    let seen = Arc::clone(&sent);
    cloud.plan_faults(move |request| {
        request.write.then(|| {
            seen.notify_one();
            Fault::Stall(Duration::from_secs(60))
        })
    });
    let provider = FakeProvider::new("alpha", &cloud, "manager", clock);
    let replica = replica(&api, Arc::new(provider), &mut Registry::default()).unwrap();
    let told = async { sent.notified().await };
    Box::pin(timeout(Duration::from_secs(60), replica.run(told))).await.expect("it ends all the same");
    assert_eq!(
        holder(&api),
        "me",
        "L9-500: the next leader waits until the write cannot be on its way any more"
    );
}

#[tokio::test(start_paused = true)]
async fn who_is_told_to_stop_begins_no_write_that_may_outlast_its_claim() {
    let api = KubeApi::new(Surroundings::of_this_machine());
    expose(&api, 16).await;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let latency = Duration::from_millis(600);
    let cloud =
        Cloud::new(Arc::clone(&clock), Random::seeded(1), SimSettings { latency, ..SimSettings::default() });
    let provider = FakeProvider::new("alpha", &cloud, "manager", Arc::clone(&clock));
    let replica = replica(&api, Arc::new(provider), &mut Registry::default()).unwrap();
    let told_at = Mutex::new(None);
    let told = async {
        while !cloud.calls().iter().any(|call| call.write) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        *told_at.lock().unwrap() = Some(clock.now());
    };
    Box::pin(timeout(Duration::from_secs(60), replica.run(told))).await.expect("it ends");
    let told_at = told_at.lock().unwrap().unwrap();
    let sent: Vec<_> = cloud.calls().into_iter().filter(|call| call.write).map(|call| call.sent).collect();
    let late = |after: u64| sent.iter().filter(|sent| **sent > told_at + Duration::from_secs(after)).count();
    assert_eq!(late(2), 0, "L9-501: sent so late that its answer may come after the claim is gone");
    assert!(late(0) > 0, "what was begun goes on for a while");
    assert_eq!(holder(&api), "", "L9-502: everything has ended, so the next leader need not wait");
    assert!(clock.now().since(told_at) < Duration::from_secs(5), "within the grace");
}

/// A cloud that drains for a while when it is stopped.
struct Draining {
    api: KubeApi,
    drain: Duration,
    /// Whom the Lease names when the draining begins and when it ends.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Provider for Draining {
    fn name(&self) -> &'static str {
        "draining"
    }

    fn scheme(&self) -> &'static str {
        "draining"
    }

    fn stop<'a>(&'a self, _call: &'a Call) -> Boxed<'a, ()> {
        Box::pin(async {
            self.seen.lock().unwrap().push(holder(&self.api));
            tokio::time::sleep(self.drain).await;
            self.seen.lock().unwrap().push(holder(&self.api));
        })
    }
}

#[tokio::test(start_paused = true)]
async fn clouds_are_stopped_before_the_lease_is_let_go() {
    let table: [(&str, u64, &[&str]); 2] =
        [("it drains", 1, &["me", "me"]), ("it takes too long", 3_600, &["me"])];
    for (case, drain, want) in table {
        let api = KubeApi::new(Surroundings::of_this_machine());
        let seen = Arc::default();
        let cloud = Draining { api: api.clone(), drain: Duration::from_secs(drain), seen: Arc::clone(&seen) };
        let replica = replica(&api, Arc::new(cloud), &mut Registry::default()).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let told_at = Mutex::new(None);
        let told = async {
            while !replica.election().unwrap().leads() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            *told_at.lock().unwrap() = Some(clock.now());
        };
        Box::pin(timeout(Duration::from_secs(60), replica.run(told))).await.expect("it ends");
        assert_eq!(*seen.lock().unwrap(), want, "L9-1502 {case}");
        assert_eq!(holder(&api), "", "L9-1503 {case}: then the next leader need not wait");
        let took = clock.now().since(told_at.lock().unwrap().unwrap());
        assert!(took < Duration::from_secs(6), "L12-1502 {case}: within the grace, not {took:?}");
    }
}
