//! Three clusters, chart servers and the manager.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_e2e::{
    Account, Chart, ChartServer, Cluster, ClusterFactory, ClusterKind, Program, Row, eventually,
};
use kube_assets::NEWEST;
use serde_json::{Value, json};

use crate::objects::{
    APP, EVERYTHING, MANAGEMENT, MANIFEST, READER, ROLE_OF_THE_GO_PROGRAM, definitions, management, namespace,
};

/// Much longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) struct World {
    // Dropped first: it uses all the others.
    pub(crate) manager: Program,
    pub(crate) local: Cluster,
    pub(crate) guest: Cluster,
    /// They are asked for as long as they live.
    _harvester: Cluster,
    _http: ChartServer,
    pub(crate) oci: ChartServer,
    /// The manager in the management cluster: with the role of the Go program, and later with ours.
    pub(crate) accounts: Vec<Account>,
    /// The manager in the guest.
    pub(crate) downstream: Account,
    /// Whoever asks for a plan: it may only read.
    pub(crate) previewer: Account,
    pub(crate) helm: PathBuf,
    pub(crate) guest_kubeconfig: String,
    config: Value,
}

impl World {
    /// The world of the reference fixture, in which the manager has just started.
    pub(crate) async fn begin(kind: ClusterKind) -> Self {
        let mut progress = |line: &str| eprintln!("{line}");
        let assets = kube_assets::ensure(NEWEST, &mut progress).unwrap();
        let helm = kube_assets::helm(&mut progress).unwrap();
        let factory = ClusterFactory::start(kind, &assets, None).await.unwrap();
        let clusters = [factory.cluster().await, factory.cluster().await, factory.cluster().await];
        let [local, guest, harvester] = clusters.map(Result::unwrap);
        let (http, oci) = (ChartServer::plain().await.unwrap(), ChartServer::with_tls().await.unwrap());
        for chart in [
            Chart::new(LB, "0.1.0").with_deployment(),
            Chart::new(LB, "0.2.0").with_deployment(),
            Chart::new("purelb", "1.0.0"),
            Chart::new("metallb", "2.0.0"),
        ] {
            http.publish(chart.clone());
            oci.publish(chart);
        }
        let downstream = guest.account("kube-system", "rancher", EVERYTHING).await.unwrap();
        let team = namespace("team-a", &json!({"field.cattle.io/projectId": "c-m-harv01:p-abcde"}));
        harvester.create("/api/v1/namespaces", &team).await.unwrap();
        for definition in definitions() {
            local
                .create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)
                .await
                .unwrap();
        }
        // RF-45 A token for the guest; for Harvester what its administrator has, which on a real server is a client certificate.
        let (guests, harvesters) = (inline(&downstream.kubeconfig), inline(&harvester.kubeconfig()));
        if kind == ClusterKind::Real {
            assert!(harvesters.contains("client-certificate-data"), "RF-45");
        }
        for (path, object) in management(&guests, &harvesters) {
            // A new kind is served a moment after it was defined.
            let create = async || local.create(&path, &object).await.map_err(|why| why.to_string());
            eventually(PATIENCE, &path, create).await.unwrap();
        }
        let previewer = local.account(APP, "previewer", READER).await.unwrap();
        let account = local.account(APP, "go-cluster-manager", ROLE_OF_THE_GO_PROGRAM).await.unwrap();
        let authority = local.dir().join("registry.crt");
        fs::write(&authority, oci.authority_pem()).unwrap();
        let scratch = local.dir().join("scratch");
        fs::create_dir(&scratch).unwrap();
        let args = [
            "rancher-fip-cluster-manager".to_owned(),
            format!("--kubeconfig={}", account.kubeconfig.display()),
            format!("--helm={}", helm.display()),
            "--serve-address=0".to_owned(),
            "--config-poll-period=1s".to_owned(),
            "--resync-period=3s".to_owned(),
            "--retry-soon=2s".to_owned(),
            "--retry-unreachable=2s".to_owned(),
            "--retry-slow=2s".to_owned(),
            "--backoff-first=1s".to_owned(),
            "--backoff-longest=2s".to_owned(),
            "--helm-timeout=240s".to_owned(),
            format!("--helm-stale-after={}s", STALE.as_secs()),
        ];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let env = [
            ("SSL_CERT_FILE", authority.to_str().unwrap()),
            ("TMPDIR", scratch.to_str().unwrap()),
            ("LOGLEVEL", "debug"),
        ];
        let manager = Program::start(&args, &env).unwrap();
        let config = config(&http, &oci);
        Self {
            manager,
            local,
            guest,
            _harvester: harvester,
            _http: http,
            oci,
            accounts: vec![account],
            downstream,
            previewer,
            helm,
            guest_kubeconfig: guests,
            config,
        }
    }

    /// The configuration of a plan, in a namespace of its own: these balancers, both looked for in the namespace `place`.
    pub(crate) async fn preview(&self, app_namespace: &str, balancers: &[&str], place: &str) {
        let mut config = self.config.clone();
        for (prefix, name, version) in
            [("PureLBController", "purelb", "1.0.0"), ("MetalLBController", "metallb", "2.0.0")]
        {
            config[format!("{prefix}ChartVersion")] = json!(version);
            config[format!("{prefix}Namespace")] = json!(place);
            if !balancers.contains(&name) {
                for key in ["ChartName", "ChartRef", "ChartVersion", "Namespace", "Values"] {
                    config.as_object_mut().unwrap().remove(&format!("{prefix}{key}"));
                }
            }
        }
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rancher-fip-config"}, "data": config});
        self.local.create(&format!("/api/v1/namespaces/{app_namespace}/configmaps"), &map).await.unwrap();
    }

    /// Changes the manager's configuration; the first time, it creates it.
    pub(crate) async fn configure(&mut self, changes: &[(&str, &str)]) {
        for (key, value) in changes {
            self.config[*key] = json!(value);
        }
        let path = format!("/api/v1/namespaces/{APP}/configmaps");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rancher-fip-config"},
            "data": self.config});
        if self.local.create(&path, &map).await.is_err() {
            self.local.patch(&format!("{path}/rancher-fip-config"), &map).await.unwrap();
        }
    }

    /// Labels the guest's management Cluster.
    pub(crate) async fn label(&self, labels: &Value) {
        let path = format!("{MANAGEMENT}/clusters/c-m-guest01");
        self.local.patch(&path, &json!({"metadata": {"labels": labels}})).await.unwrap();
    }

    /// Waits until an object is as it should be, and gives it.
    pub(crate) async fn until(
        &self,
        cluster: &Cluster,
        what: &str,
        path: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Value {
        let look = async || {
            let object = cluster.get(path).await.map_err(|why| why.to_string())?;
            if is(&object) { Ok(object) } else { Err(object.to_string()) }
        };
        let found = eventually(PATIENCE, what, look).await;
        found.unwrap_or_else(|why| panic!("{why}\n\nthe end of the manager's log:\n{}", self.log_tail()))
    }

    pub(crate) fn log_tail(&self) -> String {
        let log = self.manager.log();
        log.iter().skip(log.len().saturating_sub(60)).cloned().collect::<Vec<_>>().join("\n")
    }

    /// The newest revision of a release in the guest: number, status, version of the chart.
    pub(crate) async fn release(&self, name: &str) -> Option<(u32, String)> {
        let path = format!("/api/v1/namespaces/{APP}/secrets?labelSelector=owner%3Dhelm,name%3D{name}");
        let list = self.guest.get(&path).await.unwrap();
        let newest = list["items"].as_array().unwrap().iter().map(|secret| {
            let label = |key: &str| secret["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
            (label("version").parse::<u32>().unwrap(), label("status"))
        });
        newest.max()
    }

    /// Waits until a release is so.
    pub(crate) async fn until_release(&self, what: &str, name: &str, is: impl Fn(u32, &str) -> bool) {
        let look = async || match self.release(name).await {
            Some((revision, status)) if is(revision, &status) => Ok(()),
            other => Err(format!("{other:?}")),
        };
        let found = eventually(PATIENCE, what, look).await;
        found.unwrap_or_else(|why| panic!("{why}\n\nthe end of the manager's log:\n{}", self.log_tail()));
    }

    /// From its next start the manager has the role that we ship.
    pub(crate) async fn switch_role(&mut self) {
        let account = self.local.account(APP, "rancher-fip-cluster-manager", MANIFEST).await.unwrap();
        fs::copy(&account.kubeconfig, &self.accounts[0].kubeconfig).unwrap();
        self.accounts.push(account);
    }

    /// The calls of the manager in the management cluster so far, under each of its roles.
    pub(crate) async fn calls(&self) -> Vec<Vec<Row>> {
        let mut all = Vec::new();
        for account in &self.accounts {
            all.push(self.local.settled_calls_of(&account.user).await.unwrap());
        }
        all
    }

    /// The writes of the manager so far: in the management cluster without Leases and events, in the guest all of them.
    pub(crate) async fn writes(&self) -> (Vec<Row>, Vec<Row>) {
        let counts = |row: &Row| row.is_write() && row.resource != "leases" && row.resource != "events";
        let here = self.calls().await.into_iter().flatten().filter(counts).collect();
        let there = self.guest.settled_calls_of(&self.downstream.user).await.unwrap();
        (here, there.into_iter().filter(counts).collect())
    }

    /// The Helm processes of this world.
    pub(crate) fn helm_processes(&self) -> Vec<u32> {
        let scratch = self.local.dir().join("scratch").display().to_string();
        let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
        let ours = entries.filter_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let pid = entry.file_name().to_str()?.parse().ok()?;
            (line.contains(&scratch) && line.contains("--kubeconfig=")).then_some(pid)
        });
        ours.collect()
    }

    /// Kills the manager and Helm with it, as a container that is killed.
    pub(crate) fn kill(&mut self) {
        self.manager.kill();
        let helm = self.helm_processes();
        assert_eq!(helm.len(), 1, "one Helm for one release");
        for pid in helm {
            std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
        }
    }
}

/// An operation of Helm that nobody carries on is given up after this long.
pub(crate) const STALE: Duration = Duration::from_secs(20);
/// The chart and the release of the load-balancer controller.
pub(crate) const LB: &str = "rancher-fip-lb-controller";

/// The 16 settings: the load-balancer controller from the registry, the balancers from the repository.
fn config(http: &ChartServer, oci: &ChartServer) -> Value {
    let mut config = json!({"RancherFipApiServerURL": "https://fip-api.example.com/v1/"});
    let mut chart = |prefix: &str, name: &str, reference: String, version: &str, values: &str| {
        for (key, value) in [
            ("ChartName", name),
            ("ChartRef", &reference),
            ("ChartVersion", version),
            ("Namespace", APP),
            ("Values", values),
        ] {
            config[format!("{prefix}{key}")] = json!(value);
        }
    };
    chart("RancherFipLBController", LB, oci.reference(LB), "0.1.0", "greeting: hello\n");
    chart("PureLBController", "purelb", http.repository(), "~1.0", "");
    chart("MetalLBController", "metallb", http.repository(), "2.0.0", "");
    config
}

/// A kubeconfig that names no files, as Rancher's are.
pub(crate) fn inline(path: &Path) -> String {
    let mut config: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for pointer in ["/clusters/0/cluster", "/users/0/user"] {
        let part = config.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        for name in ["certificate-authority", "client-certificate", "client-key"] {
            if let Some(file) = part.remove(name) {
                let content = fs::read(file.as_str().unwrap()).unwrap();
                part.insert(format!("{name}-data"), STANDARD.encode(content).into());
            }
        }
    }
    config.to_string()
}
