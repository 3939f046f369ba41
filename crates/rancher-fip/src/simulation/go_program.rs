//! A model of the Go program, as far as it writes: what it compares, and what follows. It is made from its description and
//! shares no decision with ours.

use std::{io::Read as _, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_core::call::Unguarded;
use embedded_kube::KubeApi;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::world::{World, get, kubeconfig, send};
use crate::{
    helm::{ChartRef, Helm as _, HelmAction, Leash},
    plan::data,
};

const LABEL: &str = "rancher.k8s.binbash.org/project-name";
const FIP: &str = "rancher.k8s.binbash.org";

/// One run of the Go program, as after its start: the full pass over each enabled cluster and each quota.
pub(super) struct GoProgram<'a> {
    world: &'a World,
    /// Whether it really writes.
    live: bool,
    wrote: Vec<String>,
}

/// What a secret downstream is made from.
struct Delivery<'a> {
    cluster: &'a str,
    project: &'a str,
    /// The namespace of the Project.
    home: &'a str,
    pool: String,
    balancer: &'a str,
}

impl<'a> GoProgram<'a> {
    /// Runs it; returns what it wrote.
    pub(super) async fn run(world: &'a World) -> Vec<String> {
        Self::pass(world, true).await
    }

    /// What it would write, were it run now.
    pub(super) async fn would_write(world: &'a World) -> Vec<String> {
        Self::pass(world, false).await
    }

    async fn pass(world: &'a World, live: bool) -> Vec<String> {
        let mut go = Self { world, live, wrote: Vec::new() };
        let clusters = go.all("clusters.management.cattle.io");
        for cluster in &clusters {
            let labels = &cluster["metadata"]["labels"];
            let skipped = cluster["metadata"]["name"] == "local"
                || labels["provider.cattle.io"] == "harvester"
                || labels["rancher-fip"] != "enabled";
            if !skipped {
                go.cluster(cluster).await;
            }
        }
        for quota in go.all(&format!("floatingipprojectquotas.{FIP}")) {
            go.quota(text(&quota["metadata"]["name"])).await;
        }
        go.wrote
    }

    fn all(&self, table: &str) -> Vec<Value> {
        self.world.local.objects(table).iter().map(|object| Value::clone(object)).collect()
    }

    fn find(&self, table: &str, name: &str) -> Option<Value> {
        self.all(table).into_iter().find(|object| object["metadata"]["name"] == name)
    }

    fn config(&self, key: &str) -> String {
        let map = self.find("configmaps", "rancher-fip-config").unwrap();
        text(&map["data"][key]).to_owned()
    }

    async fn write(&mut self, api: &KubeApi, host: &str, method: &str, path: &str, body: Value) {
        self.wrote.push(format!("{host}: {method} {path} {}", text(&body["metadata"]["name"])));
        if self.live {
            send(api, method, path, Some(body)).await;
        }
    }

    /// The host of a cluster, whose kubeconfig has one of two names.
    fn host(&self, cluster: &Value) -> String {
        let names = [text(&cluster["metadata"]["name"]), text(&cluster["spec"]["displayName"])];
        let secret =
            names.iter().find_map(|name| self.find("secrets", &format!("{name}-kubeconfig"))).unwrap();
        let value = data::text(&secret, "value");
        value.split("https://").nth(1).unwrap().split('\'').next().unwrap().to_owned()
    }

    async fn cluster(&mut self, cluster: &Value) {
        let (name, host) = (text(&cluster["metadata"]["name"]), self.host(cluster));
        let api = self.world.api(&host);
        let target = self.config("RancherFipLBControllerNamespace");
        self.namespace(&api, &host, &target).await;
        self.chart(&api, &host, "RancherFipLBController").await;
        let metal = cluster["metadata"]["labels"]["rancher-fip-lbtype"] == "metallb";
        let (prefix, other, balancer) = if metal {
            ("MetalLBController", "PureLBController", "metallb")
        } else {
            ("PureLBController", "MetalLBController", "purelb")
        };
        let there = history(&api, &self.config(&format!("{other}ChartName")));
        if !there.is_empty() {
            return;
        }
        let namespace = self.config(&format!("{prefix}Namespace"));
        self.namespace(&api, &host, &namespace).await;
        self.chart(&api, &host, prefix).await;
        let Some((project, harvester, network)) = self.chain(cluster).await else { return };
        let (id, home) = (text(&project["metadata"]["name"]), text(&project["metadata"]["namespace"]));
        self.label(&api, &host, &target, id).await;
        self.map(&api, &host, &target, &[harvester.as_str()]).await;
        let pool = format!("{harvester}--{network}");
        self.secrets(
            Some((&api, &host)),
            &target,
            &Delivery { cluster: name, project: id, home, pool, balancer },
        )
        .await;
    }

    /// From a guest to the Project, the display name of its Harvester and its network.
    async fn chain(&self, cluster: &Value) -> Option<(Value, String, String)> {
        let names = [text(&cluster["metadata"]["name"]), text(&cluster["spec"]["displayName"])];
        let provisioning =
            names.iter().find_map(|name| self.find("clusters.provisioning.cattle.io", name))?;
        let credential = text(&provisioning["spec"]["cloudCredentialSecretName"]).split(':').nth(1)?;
        let pools = provisioning["spec"]["rkeConfig"]["machinePools"].as_array()?;
        let pool = pools.iter().find(|pool| {
            pool["controlPlaneRole"] == true && pool["machineConfigRef"]["kind"] == "HarvesterConfig"
        })?;
        let config = text(&pool["machineConfigRef"]["name"]);
        let config = self.find("harvesterconfigs.rke-machine-config.cattle.io", config)?;
        let networks: Value = serde_json::from_str(text(&config["networkInfo"])).unwrap();
        let network = text(&networks["interfaces"][0]["networkName"]).split('/').nth(1)?.to_owned();
        let id = data::text(&self.find("secrets", credential)?, "harvestercredentialConfig-clusterId");
        let harvester = self.find("clusters.management.cattle.io", &id)?;
        let below = self.world.api(&self.host(&harvester));
        let namespace = get(&below, &format!("/api/v1/namespaces/{}", text(&config["vmNamespace"]))).await?;
        let annotation = text(&namespace["metadata"]["annotations"]["field.cattle.io/projectId"]).to_owned();
        let project = annotation.rsplit(':').next()?;
        let project = self.find("projects.management.cattle.io", project)?;
        Some((project, text(&harvester["spec"]["displayName"]).to_owned(), network))
    }

    async fn quota(&mut self, name: &str) {
        let Some(project) = self.find("projects.management.cattle.io", name) else { return };
        let Some(cluster) = self.find("clusters.management.cattle.io", text(&project["spec"]["clusterName"]))
        else {
            return;
        };
        let labels = &cluster["metadata"]["labels"];
        let balancer = if labels["rancher-fip-lbtype"] == "metallb" { "metallb" } else { "purelb" };
        let (id, display) = (text(&cluster["metadata"]["name"]), text(&cluster["spec"]["displayName"]));
        let home = text(&project["metadata"]["namespace"]);
        let mut delivery = Delivery { cluster: id, project: name, home, pool: String::new(), balancer };
        let target = self.config("RancherFipLBControllerNamespace");
        if labels["provider.cattle.io"] == "harvester" {
            return self.secrets(None, &target, &delivery).await;
        }
        if labels["rancher-fip"] != "enabled" {
            return;
        }
        let pools = self.all(&format!("floatingippools.{FIP}"));
        let default = pools.iter().find(|pool| {
            [id, display].contains(&text(&pool["spec"]["targetCluster"]))
                && pool["metadata"]["annotations"]["rancher-fip-default-network"] == "true"
        });
        let Some(default) = default else { return };
        delivery.pool = format!("{display}--{}", text(&default["spec"]["targetNetwork"]));
        let host = self.host(&cluster);
        let api = self.world.api(&host);
        self.map(&api, &host, &target, &[display]).await;
        self.secrets(Some((&api, &host)), &target, &delivery).await;
    }

    async fn namespace(&mut self, api: &KubeApi, host: &str, name: &str) {
        if get(api, &format!("/api/v1/namespaces/{name}")).await.is_none() {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.write(api, host, "POST", "/api/v1/namespaces", body).await;
        }
    }

    /// Installs where there is no history, upgrades where the newest version is another, and skips otherwise, whatever the
    /// status and the values.
    async fn chart(&mut self, api: &KubeApi, host: &str, prefix: &str) {
        let part = |name: &str| self.config(&format!("{prefix}{name}"));
        let (name, version) = (part("ChartName"), part("ChartVersion"));
        let action = match history(api, &name).last() {
            None => HelmAction::Install,
            Some(newest) if *newest != version => HelmAction::Upgrade,
            Some(_) => return,
        };
        let chart = ChartRef::new(&name, &part("ChartRef"), &version, &part("Namespace"), &part("Values"));
        self.wrote.push(format!("{host}: helm {} {name} {version}", action.name()));
        if self.live {
            let (_stop, told) = watch::channel(false);
            let clock = Arc::clone(&self.world.clock);
            let leash = Leash::new(clock, Arc::new(Unguarded), Duration::from_secs(5), told);
            let config = kubeconfig(host);
            self.world.helm.run(config.as_bytes(), &chart, &action, &leash).await.unwrap();
        }
    }

    async fn label(&mut self, api: &KubeApi, host: &str, target: &str, project: &str) {
        let path = format!("/api/v1/namespaces/{target}");
        let namespace = get(api, &path).await.unwrap_or_default();
        if namespace["metadata"]["labels"][LABEL] == project {
            return;
        }
        self.write(api, host, "PATCH", &path, json!({"metadata": {"labels": {LABEL: project}}})).await;
        let path = format!("/apis/apps/v1/namespaces/{target}/deployments/rancher-fip-lb-controller");
        if get(api, &path).await.is_some() {
            let key = "rancher.k8s.binbash.org/lb-controller-restarted-at";
            let template = json!({"metadata": {"annotations": {key: self.world.clock.wall().to_string()}}});
            self.write(api, host, "PATCH", &path, json!({"spec": {"template": template}})).await;
        }
    }

    /// The data is replaced as a whole. What is equal is put all the same, which changes nothing.
    async fn map(&mut self, api: &KubeApi, host: &str, target: &str, displays: &[&str]) {
        let pools = self.all(&format!("floatingippools.{FIP}"));
        let pools = pools.iter().filter(|pool| displays.contains(&text(&pool["spec"]["targetCluster"])));
        let entries: serde_json::Map<_, _> = pools
            .map(|pool| {
                (text(&pool["metadata"]["name"]).to_owned(), pool["spec"]["targetNetworkInterface"].clone())
            })
            .collect();
        if entries.is_empty() {
            return;
        }
        let all = format!("/api/v1/namespaces/{target}/configmaps");
        let path = format!("{all}/network-interface-mappings");
        match get(api, &path).await {
            None => {
                let body = json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "network-interface-mappings"}, "data": entries});
                self.write(api, host, "POST", &all, body).await;
            }
            Some(mut map) if map["data"].as_object() != Some(&entries) => {
                map["data"] = entries.into();
                self.write(api, host, "PUT", &path, map).await;
            }
            Some(_) => {}
        }
    }

    /// Every write is a creation: what is there stays, whatever it says.
    async fn secrets(&mut self, downstream: Option<(&KubeApi, &str)>, target: &str, delivery: &Delivery<'_>) {
        let name = format!("rancher-fip-config-{}", delivery.project);
        let secret = |name: &str, values: &[(&str, &str)]| {
            let values: serde_json::Map<_, _> =
                values.iter().map(|(key, value)| ((*key).to_owned(), data::encode(value))).collect();
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": name}, "data": values})
        };
        let all = format!("/api/v1/namespaces/{}/secrets", delivery.home);
        let token = if let Some(local) = self.world.get(&format!("{all}/{name}")).await {
            data::text(&local, "clientSecret")
        } else {
            let token = "0123456789abcdef0123456789abcdef";
            let local = self.world.local.clone();
            let body = secret(&name, &[("clientSecret", token), ("project", delivery.project)]);
            self.write(&local, "local", "POST", &all, body).await;
            token.to_owned()
        };
        let Some((api, host)) = downstream else { return };
        self.namespace(api, host, target).await;
        let all = format!("/api/v1/namespaces/{target}/secrets");
        let ours = self.world.get("/api/v1/namespaces/rancher-fip-manager/secrets/cacerts").await;
        if let Some(authority) = ours
            && get(api, &format!("{all}/cacerts")).await.is_none()
        {
            let body = secret("cacerts", &[("ca.crt", &data::text(&authority, "ca.crt"))]);
            self.write(api, host, "POST", &all, body).await;
        }
        if get(api, &format!("{all}/{name}")).await.is_none() {
            let url = self.config("RancherFipApiServerURL");
            let values = [
                ("apiUrl", url.as_str()),
                ("cluster", delivery.cluster),
                ("clientSecret", &token),
                ("project", delivery.project),
                ("floatingIPPool", &delivery.pool),
                ("loadBalancerType", delivery.balancer),
            ];
            self.write(api, host, "POST", &all, secret(&name, &values)).await;
        }
    }
}

/// The versions of the charts of a release, the newest last. Every record counts, whatever its status.
fn history(api: &KubeApi, release: &str) -> Vec<String> {
    let secrets = api.objects("secrets");
    let of_this = |secret: &&Arc<Value>| {
        let labels = &secret["metadata"]["labels"];
        labels["owner"] == "helm" && labels["name"] == release
    };
    let mut revisions: Vec<_> = secrets
        .iter()
        .filter(of_this)
        .map(|secret| {
            let revision: u32 = text(&secret["metadata"]["labels"]["version"]).parse().unwrap();
            let zipped = STANDARD.decode(data::text(secret, "release")).unwrap();
            let mut plain = String::new();
            GzDecoder::new(zipped.as_slice()).read_to_string(&mut plain).unwrap();
            let release: Value = serde_json::from_str(&plain).unwrap();
            (revision, text(&release["chart"]["metadata"]["version"]).to_owned())
        })
        .collect();
    revisions.sort_unstable();
    revisions.into_iter().map(|(_, version)| version).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
