use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_core::{ObjectKey, call::Unguarded, time::Tick};
use embedded_kube::KubeApi;
use jiff::Timestamp;
use serde_json::json;
use sim_kit::Surroundings;
use tokio::{sync::watch, time::Instant};

use super::*;
use crate::helm::{HelmDecision, ReleaseRecord, ReleaseState, decide, read_release};

const STALE: Duration = Duration::from_secs(900);

struct Virtual(Instant, Timestamp);

impl Clock for Virtual {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }
    fn wall(&self) -> Timestamp {
        self.1 + self.0.elapsed()
    }
}

struct World {
    api: KubeApi,
    clock: Arc<dyn Clock>,
    helm: StandInHelm,
    stop: watch::Sender<bool>,
}

impl World {
    fn new() -> Self {
        let (start, noon): (_, Timestamp) = (Instant::now(), "2026-03-02T12:00:00Z".parse().unwrap());
        let api = KubeApi::new(Surroundings::new(1, move || noon + start.elapsed()));
        let clock: Arc<dyn Clock> = Arc::new(Virtual(start, noon));
        let client = Client::new(api.service(), "default");
        let helm =
            StandInHelm::new(Arc::clone(&clock), move |config| (config == b"here").then(|| client.clone()));
        Self { api, clock, helm, stop: watch::Sender::new(false) }
    }

    fn leash(&self) -> Leash {
        let (clock, stop) = (Arc::clone(&self.clock), self.stop.subscribe());
        Leash::new(clock, Arc::new(Unguarded), Duration::from_secs(5), stop)
    }

    async fn run(&self, chart: &ChartRef, action: HelmAction) -> Result<(), HelmError> {
        self.helm.run(b"here", chart, &action, &self.leash()).await
    }

    fn state(&self) -> Option<ReleaseState> {
        let records: Vec<_> = self.api.objects("secrets").iter().map(|secret| trimmed(secret)).collect();
        read_release(&records).unwrap()
    }

    fn decide(&self, chart: &ChartRef, own_dead_child: bool) -> HelmDecision {
        decide(chart, self.state().as_ref(), None, self.clock.wall(), own_dead_child, STALE)
    }
}

fn trimmed(secret: &Value) -> ReleaseRecord {
    let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    ReleaseRecord {
        key: ObjectKey::new(&text("/metadata/namespace"), &text("/metadata/name")),
        uid: text("/metadata/uid"),
        resource_version: text("/metadata/resourceVersion"),
        created: text("/metadata/creationTimestamp").parse().ok(),
        release: text("/metadata/labels/name"),
        revision: text("/metadata/labels/version"),
        status: text("/metadata/labels/status"),
        modified_at: text("/metadata/labels/modifiedAt"),
        data: STANDARD.decode(text("/data/release")).unwrap(),
    }
}

fn chart(version: &str, values: &str) -> ChartRef {
    ChartRef::new("lb", "https://charts.example", version, "default", values)
}

#[tokio::test(start_paused = true)]
async fn it_writes_what_helm_writes() {
    let world = World::new();
    let first = chart("0.1.0", "a: 1");
    assert_eq!(world.decide(&first, false), HelmDecision::Run(HelmAction::Install));
    world.run(&first, HelmAction::Install).await.unwrap();
    assert_eq!(world.decide(&first, false), HelmDecision::Skip);
    let second = chart("0.2.0", "");
    assert_eq!(world.decide(&second, false), HelmDecision::Run(HelmAction::Upgrade));
    world.run(&second, HelmAction::Upgrade).await.unwrap();
    let state = world.state().unwrap();
    assert_eq!((state.revision, state.chart_version.as_str()), (2, "0.2.0"));
    assert_eq!(state.config, json!({"a": 1}), "values that are not configured are kept");
    assert_eq!(state.history, [(2, ReleaseStatus::Deployed), (1, ReleaseStatus::Superseded)]);
    assert_eq!(world.api.objects("deployments.apps").len(), 1);
    for n in 3..15 {
        world.run(&chart(&format!("0.{n}.0"), ""), HelmAction::Upgrade).await.unwrap();
    }
    assert_eq!(world.state().unwrap().history.len(), 10);
    world.run(&second, HelmAction::Uninstall).await.unwrap();
    assert!(world.state().is_none() && world.api.objects("deployments.apps").is_empty());
    let elsewhere = world.helm.run(b"elsewhere", &first, &HelmAction::Install, &world.leash()).await;
    assert_eq!(elsewhere.unwrap_err().failure, HelmFailure::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_in_the_middle_is_healed() {
    let world = World::new();
    let (old, new) = (chart("0.1.0", ""), chart("0.2.0", ""));
    // Killed while it installs.
    let cut = tokio::time::timeout(Duration::from_secs(5), world.run(&old, HelmAction::Install)).await;
    assert!(cut.is_err());
    assert_eq!(world.state().unwrap().status, ReleaseStatus::PendingInstall);
    assert_eq!(world.run(&old, HelmAction::Install).await.unwrap_err().failure, HelmFailure::Busy);
    assert!(matches!(world.decide(&old, false), HelmDecision::Wait { .. }));
    assert!(matches!(world.decide(&old, true), HelmDecision::DeleteRecord { .. }));
    sleep(STALE).await;
    let HelmDecision::DeleteRecord { record, .. } = world.decide(&old, false) else { panic!("it is stale") };
    let store = Store::new(Client::new(world.api.service(), "default"), &old, "lb".to_owned());
    assert_eq!(record.name, "sh.helm.release.v1.lb.v1");
    store.delete(&store.list().await.unwrap()[0]).await.unwrap();
    world.run(&old, HelmAction::Install).await.unwrap();

    // Killed while it upgrades.
    let cut = tokio::time::timeout(Duration::from_secs(5), world.run(&new, HelmAction::Upgrade)).await;
    assert!(cut.is_err());
    sleep(STALE).await;
    assert_eq!(world.decide(&new, false), HelmDecision::Run(HelmAction::Rollback { to: 1 }));
    world.run(&new, HelmAction::Rollback { to: 1 }).await.unwrap();
    assert_eq!(world.decide(&new, false), HelmDecision::Run(HelmAction::Upgrade));
    world.run(&new, HelmAction::Upgrade).await.unwrap();
    assert_eq!(world.decide(&new, false), HelmDecision::Skip);

    // Killed while it uninstalls.
    let cut = tokio::time::timeout(Duration::from_secs(5), world.run(&new, HelmAction::Uninstall)).await;
    assert!(cut.is_err());
    assert!(world.run(&new, HelmAction::Upgrade).await.is_err(), "Helm refuses it");
    assert_eq!(world.decide(&new, true), HelmDecision::Run(HelmAction::Uninstall));
}

#[tokio::test(start_paused = true)]
async fn told_to_end_it_leaves_a_failed_release() {
    let world = World::new();
    let chart = chart("0.1.0", "");
    let stop = async {
        sleep(Duration::from_secs(5)).await;
        world.stop.send_replace(true);
    };
    let (done, ()) = tokio::join!(world.run(&chart, HelmAction::Install), stop);
    assert_eq!(done.unwrap_err().failure, HelmFailure::Stopped);
    assert_eq!(world.state().unwrap().status, ReleaseStatus::Failed, "never left pending");
    assert_eq!(world.decide(&chart, false), HelmDecision::Run(HelmAction::Upgrade));
    assert_eq!(world.run(&chart, HelmAction::Upgrade).await.unwrap_err().failure, HelmFailure::Stopped);

    world.stop.send_replace(false);
    world.helm.takes(Duration::from_secs(9_999), Duration::from_secs(60));
    assert_eq!(world.run(&chart, HelmAction::Upgrade).await.unwrap_err().failure, HelmFailure::TimedOut);
    world.helm.fail([HelmFailure::Fetch]);
    assert_eq!(world.run(&chart, HelmAction::Upgrade).await.unwrap_err().failure, HelmFailure::Fetch);
    assert_eq!(world.helm.asked().len(), 3);
}
