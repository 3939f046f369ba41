//! Another cluster, reached over the network with a kubeconfig that was found in a Secret.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Category, Clock, Random,
    call::{ReadOnly, Unguarded},
};
use cloudberth_http::surroundings::SystemClock;
use cloudberth_runtime::{
    connect::{Dialler, Throttle, kubeconfig::from_bytes},
    dynamic::DynamicView,
    informer::Informer,
    metrics::RestMetrics,
    scope::WatchScope,
    writer::Writer,
};
use embedded_kube::{Config, KubeApi, Tls, serve};
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::json;
use sim_kit::Surroundings;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How long anything may take on the busiest of machines.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn it_is_watched_and_written_to_below_the_prefix_of_its_proxy() {
    let config = Config { path_prefix: "/k8s/clusters/c-1".to_owned(), ..Config::default() };
    let api = KubeApi::with_config(&config, Surroundings::new(1, || jiff::Timestamp::UNIX_EPOCH));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tls = Tls::for_loopback().unwrap();
    let served = serve(&api, listener, Some(tls), Some("t0ken".to_owned())).unwrap();

    let config = from_bytes(served.kubeconfig().as_bytes()).await.unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let dialler = Dialler { config: &config, ceiling: &Throttle::none(), metrics: &RestMetrics::default() };
    let client = dialler.client("another-manager/1.0", &clock).unwrap();
    let writer = Writer::new(client.clone(), Arc::clone(&clock), Arc::new(Unguarded));
    let kind = GroupVersionKind::gvk("", "v1", "ConfigMap");
    let scope = WatchScope {
        namespace: Some("default".to_owned()),
        ..WatchScope::all(ApiResource::from_gvk_with_plural(&kind, "configmaps"), "watch-configmaps")
    };
    let maps = Informer::<DynamicView>::new(scope, clock);
    let _handle = maps.start(client, Arc::new(Random::seeded(1)));
    tokio::time::timeout(PATIENCE, maps.until_synced()).await.unwrap();

    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let standby = writer.behind(Arc::new(ReadOnly));
    let refused = standby.create(&standby.call(PATIENCE), MAPS, &body).await.unwrap_err();
    assert_eq!(refused.category(), Category::Cancelled, "law 9");
    writer.create(&writer.call(PATIENCE), MAPS, &body).await.unwrap();
    let arrives = async {
        while maps.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, arrives).await.unwrap();
    assert_eq!(maps.all()[0].text("/metadata/name"), "m");
    let agents: Vec<_> = api.calls(0).into_iter().map(|call| call.user_agent).collect();
    assert!(!agents.is_empty() && agents.iter().all(|agent| agent == "another-manager/1.0"), "{agents:?}");
}
