//! A cluster, chart servers and Helm.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_core::{Clock, ObjectKey, call::Unguarded};
use cloudberth_e2e::{Chart, ChartServer, Cluster, ClusterFactory, ClusterKind, eventually};
use cloudberth_http::surroundings::SystemClock;
use cloudberth_rancher_fip::helm::{
    BinaryHelm, ChartRef, Helm as _, HelmAction, HelmDecision, HelmError, HelmSettings, Leash, ReleaseRecord,
    ReleaseState, ReleaseStatus, decide, read_release,
};
use kube_assets::NEWEST;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::world::inline;

/// Where all releases live.
pub(crate) const NAMESPACE: &str = "fip";
const SECRETS: &str = "/api/v1/namespaces/fip/secrets";
/// Much longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(4);

pub(crate) struct Fixture {
    pub(crate) helm: BinaryHelm,
    pub(crate) http: ChartServer,
    pub(crate) oci: ChartServer,
    pub(crate) kubeconfig: Vec<u8>,
    pub(crate) stop: watch::Sender<bool>,
    settings: HelmSettings,
    clock: Arc<dyn Clock>,
    cluster: Cluster,
}

impl Fixture {
    pub(crate) async fn start(kind: ClusterKind) -> Self {
        let mut progress = |line: &str| eprintln!("{line}");
        let assets = kube_assets::ensure(NEWEST, &mut progress).unwrap();
        let program = kube_assets::helm(&mut progress).unwrap();
        let factory = ClusterFactory::start(kind, &assets, None).await.unwrap();
        let cluster = factory.cluster().await.unwrap();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        cluster.create("/api/v1/namespaces", &namespace).await.unwrap();
        let (http, oci) = (ChartServer::plain().await.unwrap(), ChartServer::with_tls().await.unwrap());
        let dir = cluster.dir().to_path_buf();
        let authority = dir.join("registry.crt");
        fs::write(&authority, oci.authority_pem()).unwrap();
        // The directory of this program has one named like the chart, which Helm must not take.
        let (scratch, here) = (dir.join("scratch"), dir.join("here"));
        fs::create_dir(&scratch).unwrap();
        fs::create_dir_all(here.join("lb")).unwrap();
        let environment = [
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("HOME", dir.clone().into()),
            ("SSL_CERT_FILE", authority.into()),
            // None of these may reach Helm.
            ("KUBECONFIG", "/nowhere".into()),
            ("HELM_NAMESPACE", "elsewhere".into()),
            ("HELM_DRIVER", "memory".into()),
        ];
        let environment = environment.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let settings = HelmSettings { program, ..HelmSettings::new(scratch, here, environment) };
        let settings = HelmSettings { fetch_timeout: PATIENCE, grace: PATIENCE, ..settings };
        let fixture = Self {
            helm: BinaryHelm::new(settings.clone()),
            http,
            oci,
            kubeconfig: inline(&cluster.kubeconfig()).into_bytes(),
            stop: watch::Sender::new(false),
            settings,
            clock: Arc::new(SystemClock::new()),
            cluster,
        };
        fixture.publish(Chart::new("lb", "0.1.0"));
        fixture.publish(Chart::new("lb", "0.2.0"));
        println!("with helm {}", fixture.helm.check().await.unwrap());
        fixture
    }

    /// In the repository and in the registry.
    pub(crate) fn publish(&self, chart: Chart) {
        self.http.publish(chart.clone());
        self.oci.publish(chart);
    }

    pub(crate) fn http(&self, name: &str, version: &str, values: &str) -> ChartRef {
        ChartRef::new(name, &self.http.repository(), version, NAMESPACE, values)
    }

    pub(crate) fn oci(&self, name: &str, version: &str, values: &str) -> ChartRef {
        ChartRef::new(name, &self.oci.reference(name), version, NAMESPACE, values)
    }

    pub(crate) fn leash(&self) -> Leash {
        let (clock, stop) = (Arc::clone(&self.clock), self.stop.subscribe());
        Leash::new(clock, Arc::new(Unguarded), Duration::from_secs(5), stop)
    }

    pub(crate) async fn run(&self, chart: &ChartRef, action: HelmAction) -> Result<(), HelmError> {
        self.helm.run(&self.kubeconfig, chart, &action, &self.leash()).await
    }

    /// Runs Helm as a person does.
    pub(crate) async fn helm_itself(&self, args: &[&str]) {
        let dir = self.cluster.dir();
        let output = tokio::process::Command::new(&self.settings.program)
            .args(args)
            .args(["--namespace", NAMESPACE, "--kubeconfig"])
            .arg(self.cluster.kubeconfig())
            .current_dir(dir)
            .env("HOME", dir)
            .env("SSL_CERT_FILE", dir.join("registry.crt"))
            .output()
            .await
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) async fn state(&self, release: &str) -> Option<ReleaseState> {
        let list = self
            .cluster
            .get(&format!("{SECRETS}?labelSelector=owner%3Dhelm,name%3D{release}"))
            .await
            .unwrap();
        let records: Vec<_> = list["items"].as_array().unwrap().iter().map(trimmed).collect();
        read_release(&records).unwrap()
    }

    pub(crate) async fn status(&self, release: &str) -> Option<ReleaseStatus> {
        self.state(release).await.map(|state| state.status)
    }

    pub(crate) async fn decide(&self, chart: &ChartRef) -> HelmDecision {
        self.decide_if_stale(chart, Duration::from_secs(900)).await
    }

    async fn decide_if_stale(&self, chart: &ChartRef, stale_after: Duration) -> HelmDecision {
        let state = self.state(&chart.release).await;
        decide(chart, state.as_ref(), None, self.clock.wall(), false, stale_after)
    }

    /// Does what is decided until nothing is, with everything that is under way being stale; what that was.
    pub(crate) async fn heal(&self, chart: &ChartRef) -> Vec<HelmDecision> {
        let mut steps = Vec::new();
        loop {
            let decision = self.decide_if_stale(chart, Duration::ZERO).await;
            match &decision {
                HelmDecision::Skip => return steps,
                HelmDecision::Run(action) => self.run(chart, *action).await.unwrap(),
                HelmDecision::DeleteRecord { record, .. } => {
                    self.cluster.delete(&format!("{SECRETS}/{}", record.name)).await.unwrap();
                }
                other => panic!("{other:?}"),
            }
            steps.push(decision);
            assert!(steps.len() <= 4, "{steps:?}");
        }
    }

    /// What the chart's `ConfigMap` says.
    pub(crate) async fn settings(&self, release: &str) -> Value {
        let map = self.cluster.get(&format!("/api/v1/namespaces/fip/configmaps/{release}")).await.unwrap();
        map["data"].clone()
    }

    pub(crate) async fn until_status(&self, release: &str, status: ReleaseStatus) {
        let what = format!("{release} is {}", status.name());
        let look = async || match self.status(release).await {
            Some(found) if found == status => Ok(()),
            found => Err(format!("{found:?}")),
        };
        eventually(PATIENCE, &what, look).await.unwrap();
    }

    /// Waits for the pod of a chart that hangs: from then on Helm waits for it.
    pub(crate) async fn until_pod(&self, name: &str) {
        let path = format!("/api/v1/namespaces/fip/pods/{name}");
        let look = async || self.cluster.get(&path).await.map_err(|why| why.to_string());
        eventually(PATIENCE, "the pod of the chart", look).await.unwrap();
    }

    pub(crate) async fn create_secret(&self, secret: &Value) {
        self.cluster.create(SECRETS, secret).await.unwrap();
    }

    pub(crate) async fn delete_secret(&self, name: &str) {
        self.cluster.delete(&format!("{SECRETS}/{name}")).await.unwrap();
    }

    /// A kubeconfig whose token nobody knows.
    pub(crate) fn kubeconfig_of_a_stranger(&self) -> Vec<u8> {
        let mut config: Value = serde_json::from_slice(&self.kubeconfig).unwrap();
        config["users"][0]["user"] = json!({"token": "nobody"});
        config.to_string().into_bytes()
    }

    /// How many private directories of runs there are.
    pub(crate) fn left_in_scratch(&self) -> usize {
        let ours = fs::read_dir(&self.settings.scratch).unwrap().map(|entry| entry.unwrap().path());
        // One entry is the lock.
        ours.map(|dir| fs::read_dir(dir).unwrap().count() - 1).sum()
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
