//! The memory of the floating-IP cluster manager with many downstream clusters, some of which do not answer.
//!
//! ```text
//!   this process, with all clusters ◄── cloudberth rancher-fip-cluster-manager
//! ```
//!
//! The clusters are as another program left them, with charts that are installed, so that no Helm has to run.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use cloudberth_core::Clock as _;
use cloudberth_http::surroundings::SystemClock;
use cloudberth_rancher_fip::helm::ReleaseStatus;
use cloudberth_rancher_fip::helm::stand_in::{Planted, record};
use embedded_kube::{KubeApi, Served, Tls, serve};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use sim_kit::Surroundings;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use crate::manager::report::row;
use crate::memory::MemoryUse;
use crate::programs::running::Running;
use crate::programs::{BenchError, build, unless_stopped};

/// The longest wait for all clusters to be looked at.
const PATIENCE: Duration = Duration::from_mins(10);
const APP: &str = "rancher-fip-manager";
const LB: &str = "rancher-fip-lb-controller";
/// The goal for the process, in megabytes.
const GOAL: u64 = 40;

/// How much there is to manage.
#[derive(Clone, Debug, Args)]
pub(crate) struct Extent {
    /// Downstream clusters.
    #[arg(long, default_value_t = 200)]
    clusters: usize,
    /// How many of them do not answer.
    #[arg(long, default_value_t = 20)]
    away: usize,
    /// Secrets of others in the management cluster, of 4 KB each.
    #[arg(long, default_value_t = 2_000)]
    secrets: usize,
    /// A program to be measured instead of the shipped one, which takes minutes to build.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// The results.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    extent: Extent,
    held: MemoryUse,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Extent { clusters, away, secrets, program } = &self.extent;
        let what =
            format!("resident, {clusters} clusters of which {away} do not answer, {secrets} foreign Secrets");
        writeln!(f, "| what | figure | peak | goal | holds |\n|---|---|---|---|---|")?;
        row(f, &what, self.held.now * 1024, Some(self.held.peak * 1024), GOAL)?;
        let measured =
            program.as_ref().map_or_else(|| build::SHIPPED.command_line(), |path| path.display().to_string());
        writeln!(f, "\nmeasured: `{measured}`")
    }
}

/// Builds, starts and measures.
pub(crate) async fn run(extent: Extent) -> Result<Report, BenchError> {
    unless_stopped(measure(extent)).await
}

async fn measure(extent: Extent) -> Result<Report, BenchError> {
    let place = tempfile::tempdir()?;
    let program = match &extent.program {
        Some(given) => given.clone(),
        None => build::SHIPPED.make(place.path()).await?,
    };
    eprintln!("filling {} clusters", extent.clusters);
    let clusters = Clusters::make(&extent).await?;
    let mut manager = clusters.manage(&program, place.path())?;
    eprintln!("started");
    let done = async {
        loop {
            let held = manager.until_quiet().await?;
            let left = clusters.left();
            if left == 0 {
                return Ok::<_, BenchError>(held);
            }
            eprintln!("quiet with {} KiB, but {left} clusters still wait", held.now);
        }
    };
    let done = timeout(PATIENCE, done).await;
    let held = done.map_err(|_| manager.lost("it is not done after ten minutes"))??;
    manager.stop().await?;
    Ok(Report { extent, held })
}

/// One cluster, on a port.
struct Cluster {
    api: KubeApi,
    client: Client,
    served: Served,
}

impl Cluster {
    async fn open(seed: u64, tls: &Tls) -> Result<Self, BenchError> {
        let clock = SystemClock::new();
        let api = KubeApi::new(Surroundings::new(seed, move || clock.wall()));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let served = serve(&api, listener, Some(tls.clone()), Some("t0ken".to_owned()));
        let served = served.map_err(|why| BenchError::Real(why.to_string()))?;
        let client = Client::new(
            tower::util::MapRequest::new(api.service(), with_token::<kube::client::Body>),
            "default",
        );
        Ok(Self { api, client, served })
    }

    async fn post(&self, path: &str, body: &Value) -> Result<(), BenchError> {
        let request = Request::post(path).header("content-type", "application/json");
        self.client.request::<Value>(request.body(body.to_string().into_bytes())?).await?;
        Ok(())
    }

    async fn namespace(&self, name: &str) -> Result<(), BenchError> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.post("/api/v1/namespaces", &body).await
    }
}

fn with_token<B>(mut request: Request<B>) -> Request<B> {
    request.headers_mut().insert("authorization", http::HeaderValue::from_static("Bearer t0ken"));
    request
}

/// The management cluster, and those that are managed.
struct Clusters {
    local: Cluster,
    downstream: Vec<Cluster>,
}

impl Clusters {
    async fn make(extent: &Extent) -> Result<Self, BenchError> {
        let tls = Tls::for_loopback().map_err(|why| BenchError::Real(why.to_string()))?;
        let local = Cluster::open(0, &tls).await?;
        for name in [APP, "fleet-default", "others"] {
            local.namespace(name).await?;
        }
        for definition in definitions() {
            local.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
        }
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rancher-fip-config"},
            "data": config()});
        local.post(&format!("/api/v1/namespaces/{APP}/configmaps"), &config).await?;
        for number in 0..extent.secrets {
            let body = secret(&format!("other-{number}"), &json!({"payload": "x".repeat(4_000)}));
            local.post("/api/v1/namespaces/others/secrets", &body).await?;
        }
        let mut clusters = Self { local, downstream: Vec::new() };
        for number in 0..extent.clusters {
            clusters.add(number, number < extent.away, &tls).await?;
        }
        Ok(clusters)
    }

    /// A cluster with its kubeconfig and its pool. Nobody listens on the port of one that is away.
    async fn add(&mut self, number: usize, is_away: bool, tls: &Tls) -> Result<(), BenchError> {
        let (id, display) = (format!("c-m-{number:05}"), format!("metal{number}"));
        let cluster = Cluster::open(number as u64 + 1, tls).await?;
        let (management, fip) = ("/apis/management.cattle.io/v3", "rancher.k8s.binbash.org/v1beta2");
        let object = json!({"apiVersion": "management.cattle.io/v3", "kind": "Cluster",
            "metadata": {"name": id, "labels": {"rancher-fip": "enabled"}}, "spec": {"displayName": display}});
        self.local.post(&format!("{management}/clusters"), &object).await?;
        let provisioning = json!({"apiVersion": "provisioning.cattle.io/v1", "kind": "Cluster", "metadata": {"name": display}, "spec": {}});
        self.local
            .post("/apis/provisioning.cattle.io/v1/namespaces/fleet-default/clusters", &provisioning)
            .await?;
        let kubeconfig = secret(&format!("{id}-kubeconfig"), &json!({"value": cluster.served.kubeconfig()}));
        self.local.post("/api/v1/namespaces/fleet-default/secrets", &kubeconfig).await?;
        let pool = json!({"apiVersion": fip, "kind": "FloatingIPPool", "metadata": {"name": format!("{display}--lan")},
            "spec": {"targetCluster": display, "targetNetwork": "lan", "targetNetworkInterface": "eth0"}});
        self.local.post(&format!("/apis/{fip}/floatingippools"), &pool).await?;
        if is_away {
            return Ok(());
        }
        for (release, namespace, version) in [(LB, APP, "0.2.0"), ("purelb", "purelb", "0.13.0")] {
            cluster.namespace(namespace).await?;
            let planted = Planted { version: version.to_owned(), ..Planted::default() };
            let body = record(namespace, release, 1, ReleaseStatus::Deployed, &planted);
            cluster.post(&format!("/api/v1/namespaces/{namespace}/secrets"), &body).await?;
        }
        self.downstream.push(cluster);
        Ok(())
    }

    /// Starts the program; its Helm only says which version it is.
    fn manage(&self, program: &Path, place: &Path) -> Result<Running, BenchError> {
        let (kubeconfig, helm) = (place.join("kubeconfig"), place.join("helm"));
        std::fs::write(&kubeconfig, self.local.served.kubeconfig())?;
        std::fs::write(&helm, "#!/bin/sh\necho v3.18.0\n")?;
        std::fs::set_permissions(&helm, std::fs::Permissions::from_mode(0o755))?;
        let mut command = Command::new(program);
        command.arg("rancher-fip-cluster-manager").arg("--serve-address=0");
        command.arg(format!("--kubeconfig={}", kubeconfig.display()));
        command.arg(format!("--helm={}", helm.display()));
        Running::start(&mut command, place.join("rancher.log"))
    }

    /// How many of the clusters that answer have not got their interface map yet.
    fn left(&self) -> usize {
        let has = |cluster: &&Cluster| {
            let maps = cluster.api.objects("configmaps");
            let name = |map: &Value| map.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
            maps.iter().any(|map| name(map).as_deref() == Some("network-interface-mappings"))
        };
        self.downstream.iter().filter(|cluster| !has(cluster)).count()
    }
}

fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

fn config() -> Value {
    let mut config = serde_json::Map::new();
    config.insert("RancherFipApiServerURL".to_owned(), json!("https://fip.example.com/v1"));
    let charts = [
        ("RancherFipLBController", LB, APP, "0.2.0"),
        ("PureLBController", "purelb", "purelb", "0.13.0"),
        ("MetalLBController", "metallb", "metallb", "0.15.2"),
    ];
    for (prefix, name, namespace, version) in charts {
        let reference = format!("oci://charts.example.com/{name}");
        let parts = [
            ("ChartName", name),
            ("ChartRef", &reference),
            ("ChartVersion", version),
            ("Namespace", namespace),
        ];
        config.extend(parts.map(|(key, value)| (format!("{prefix}{key}"), json!(value))));
    }
    config.into()
}

/// The kinds of Rancher and of rancher-fip-manager, which may hold anything.
fn definitions() -> Vec<Value> {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let kinds = [
        ("management.cattle.io", "v3", "Cluster", "clusters", "Cluster"),
        ("management.cattle.io", "v3", "Project", "projects", "Namespaced"),
        ("provisioning.cattle.io", "v1", "Cluster", "clusters", "Namespaced"),
        ("rke-machine-config.cattle.io", "v1", "HarvesterConfig", "harvesterconfigs", "Namespaced"),
        ("rancher.k8s.binbash.org", "v1beta2", "FloatingIPPool", "floatingippools", "Cluster"),
        (
            "rancher.k8s.binbash.org",
            "v1beta2",
            "FloatingIPProjectQuota",
            "floatingipprojectquotas",
            "Cluster",
        ),
        ("rancher.k8s.binbash.org", "v1beta2", "FloatingIP", "floatingips", "Namespaced"),
    ];
    let definition = |(group, version, kind, plural, scope): (&str, &str, &str, &str, &str)| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": scope,
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": version, "served": true, "storage": true, "schema": schema}]}})
    };
    kinds.map(definition).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_stands_beside_the_goal() {
        let extent = Extent { clusters: 3, away: 1, secrets: 9, program: Some(PathBuf::from("/p")) };
        let report = |now| Report { extent: extent.clone(), held: MemoryUse { now, peak: now } }.to_string();
        assert!(report(39_062).contains("| 40.0 MB | 40.0 MB | 40 MB | yes |"), "{}", report(39_062));
        assert!(report(39_100).contains("| 40 MB | NO |"), "{}", report(39_100));
        assert!(report(1).contains("3 clusters of which 1 do not answer"));
    }
}
