//! The clusters, and the program among them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_core::{Clock, Error, Random, Result, Tick, provider::Boxed};
use cloudberth_runtime::{
    connect::kubeconfig::from_bytes,
    metrics::{Counter, QueueMetrics},
};
use embedded_kube::{Call, KubeApi};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sim_kit::Surroundings;
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

use super::wire::{HELM, PROGRAM, Tamper, client};
use crate::{
    helm::stand_in::StandInHelm,
    metrics::FipMetrics,
    options::Options,
    plan::data,
    shell::{Dial, Ended, Parts, Plan, Replica},
};

pub(super) const TARGET: &str = "rancher-fip-manager";
pub(super) const GUEST: &str = "c-m-guest01";
pub(super) const PROJECT_SECRET: &str = "rancher-fip-config-p-abcde";

struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_760_000_000).unwrap() + self.0.elapsed()
    }
}

/// The downstream APIs by the host in their kubeconfig.
type Hosts = Arc<Mutex<BTreeMap<String, KubeApi>>>;

struct InMemory(Hosts);

impl Dial for InMemory {
    fn dial<'a>(&'a self, kubeconfig: &'a [u8]) -> Boxed<'a, Result<Client>> {
        Box::pin(async move {
            let config = from_bytes(kubeconfig).await?;
            let host = config.cluster_url.host().unwrap_or_default().to_owned();
            let api = self.0.lock().unwrap().get(&host).cloned();
            let api = api.ok_or_else(|| Error::temporary(format!("no such host: {host}")))?;
            Ok(client(&api, PROGRAM, None))
        })
    }
}

/// The token in every kubeconfig.
pub(super) const KUBECONFIG_TOKEN: &str = "kubeconfig-t0ken";

/// A kubeconfig for a host.
pub(super) fn kubeconfig(host: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{server: 'https://{host}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {{token: {KUBECONFIG_TOKEN}}}}}]\n"
    )
}

/// All clusters.
pub(super) struct World {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) local: KubeApi,
    pub(super) helm: Arc<StandInHelm>,
    hosts: Hosts,
    tokens: Arc<Mutex<u64>>,
    replicas: Mutex<u64>,
    /// What the program sees in place of what there is in the management cluster, if it is careless.
    pub(super) tamper: Option<Tamper>,
}

impl World {
    /// A management cluster with the kinds of Rancher, and nothing else.
    pub(super) async fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Paused(Instant::now()));
        let hosts: Hosts = Arc::default();
        let known = Arc::clone(&hosts);
        let reach = move |kubeconfig: &[u8]| {
            let text = String::from_utf8_lossy(kubeconfig).into_owned();
            let host = text.split("https://").nth(1)?.split('\'').next()?.to_owned();
            let api = known.lock().unwrap().get(&host).cloned()?;
            Some(client(&api, HELM, None))
        };
        let helm = Arc::new(StandInHelm::new(Arc::clone(&clock), reach));
        let world = Self {
            local: api(&clock, 1),
            helm,
            clock,
            hosts,
            tokens: Arc::default(),
            replicas: Mutex::new(0),
            tamper: None,
        };
        for namespace in ["fleet-default", "cattle-global-data", "rancher-fip-manager"] {
            world.namespace(namespace).await;
        }
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        for (kind, plural, group, version, scope) in [
            ("Cluster", "clusters", "management.cattle.io", "v3", "Cluster"),
            ("Project", "projects", "management.cattle.io", "v3", "Namespaced"),
            ("Cluster", "clusters", "provisioning.cattle.io", "v1", "Namespaced"),
            ("HarvesterConfig", "harvesterconfigs", "rke-machine-config.cattle.io", "v1", "Namespaced"),
        ] {
            let version = json!({"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": open}});
            world.define(kind, plural, group, scope, &[version]).await;
        }
        world
    }

    /// The floating-IP kinds, in these versions, the last of which is stored.
    pub(super) async fn define_floating(&self, versions: &[&str]) {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let both = |schema: &dyn Fn(&str) -> Value| {
            let of = |name: &&str| {
                json!({"name": name, "served": true, "storage": Some(name) == versions.last(),
                    "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema(name)}})
            };
            versions.iter().map(of).collect::<Vec<_>>()
        };
        let group = "rancher.k8s.binbash.org";
        let plain = |_: &str| open.clone();
        self.define("FloatingIPPool", "floatingippools", group, "Cluster", &both(&plain)).await;
        self.define("FloatingIPProjectQuota", "floatingipprojectquotas", group, "Cluster", &both(&plain))
            .await;
        let text = json!({"type": "string"});
        // The older version does not know the list of Services: a write through it would prune them.
        let strict = |name: &str| {
            let mut assigned = json!({"clusterName": text, "projectName": text});
            if name == "v1beta2" {
                assigned["services"] = json!({"type": "array", "items": {"type": "object", "properties": {"serviceName": text}}});
            }
            json!({"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"ipAddr": text, "floatingIPPool": text}},
                "status": {"type": "object", "properties": {"assigned": {"type": "object", "properties": assigned}}}}})
        };
        self.define("FloatingIP", "floatingips", group, "Namespaced", &both(&strict)).await;
    }

    async fn define(&self, kind: &str, plural: &str, group: &str, scope: &str, versions: &[Value]) {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": scope, "versions": versions,
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()}},
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let old = self.get(&format!("{path}/{plural}.{group}")).await;
        match old {
            Some(mut old) => {
                old["spec"]["versions"] = versions.into();
                self.send("PUT", &format!("{path}/{plural}.{group}"), Some(old)).await;
            }
            None => {
                self.send("POST", path, Some(definition)).await;
            }
        }
    }

    /// The reference fixture: a guest on Harvester.
    pub(super) async fn reference() -> Self {
        let world = Self::new().await;
        world.define_floating(&["v1beta1", "v1beta2"]).await;
        world.configure(&[]).await;
        world.management("c-m-harv01", "harv01", &json!({"provider.cattle.io": "harvester"})).await;
        world.downstream("harv01");
        world.kubeconfig("c-m-harv01-kubeconfig", "harv01").await;
        world.guest(GUEST, "guest01").await;
        let credential = json!({"harvestercredentialConfig-clusterId": STANDARD.encode("c-m-harv01")});
        world.secret("cattle-global-data", "cc-hv1", credential).await;
        world.project("c-m-harv01", "p-abcde").await;
        world.pool("harv01--vlan10", "harv01", "vlan10", "eth1", false).await;
        let annotations = json!({"field.cattle.io/projectId": "c-m-harv01:p-abcde"});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "annotations": annotations}});
        send(&world.api("harv01"), "POST", "/api/v1/namespaces", Some(namespace)).await;
        world
    }

    /// An enabled guest of the Harvester in the fixture, with its API.
    pub(super) async fn guest(&self, id: &str, display: &str) {
        self.management(id, display, &json!({"rancher-fip": "enabled"})).await;
        self.downstream(display);
        self.kubeconfig(&format!("{display}-kubeconfig"), display).await;
        let pool = json!({"controlPlaneRole": true, "machineConfigRef": {"kind": "HarvesterConfig", "name": "nc-guest01-cp"}});
        let spec = json!({"cloudCredentialSecretName": "cattle-global-data:cc-hv1", "rkeConfig": {"machinePools": [pool]}});
        self.provisioning(display, spec).await;
        let network = r#"{"interfaces":[{"networkName":"team-a/vlan10"}]}"#;
        let config = json!({"apiVersion": "rke-machine-config.cattle.io/v1", "kind": "HarvesterConfig",
            "metadata": {"name": "nc-guest01-cp"}, "vmNamespace": "team-a", "networkInfo": network});
        let path = "/apis/rke-machine-config.cattle.io/v1/namespaces/fleet-default/harvesterconfigs";
        if self.get(&format!("{path}/nc-guest01-cp")).await.is_none() {
            self.send("POST", path, Some(config)).await;
        }
    }

    /// An enabled cluster on bare metal, with its API.
    pub(super) async fn bare_metal(&self, id: &str, display: &str) {
        self.management(id, display, &json!({"rancher-fip": "enabled"})).await;
        self.downstream(display);
        self.kubeconfig(&format!("{id}-kubeconfig"), display).await;
        self.provisioning(display, json!({})).await;
    }

    pub(super) async fn provisioning(&self, name: &str, spec: Value) {
        let body = json!({"apiVersion": "provisioning.cattle.io/v1", "kind": "Cluster", "metadata": {"name": name}, "spec": spec});
        self.send("POST", "/apis/provisioning.cattle.io/v1/namespaces/fleet-default/clusters", Some(body))
            .await;
    }

    pub(super) async fn management(&self, id: &str, display: &str, labels: &Value) {
        let body = json!({"apiVersion": "management.cattle.io/v3", "kind": "Cluster",
            "metadata": {"name": id, "labels": labels}, "spec": {"displayName": display}});
        self.send("POST", "/apis/management.cattle.io/v3/clusters", Some(body)).await;
        self.namespace(id).await;
    }

    pub(super) async fn namespace(&self, name: &str) {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.send("POST", "/api/v1/namespaces", Some(body)).await;
    }

    pub(super) async fn project(&self, cluster: &str, name: &str) {
        let body = json!({"apiVersion": "management.cattle.io/v3", "kind": "Project",
            "metadata": {"name": name, "namespace": cluster}, "spec": {"clusterName": cluster}});
        self.send(
            "POST",
            &format!("/apis/management.cattle.io/v3/namespaces/{cluster}/projects"),
            Some(body),
        )
        .await;
    }

    pub(super) async fn quota(&self, name: &str) {
        let body = json!({"apiVersion": "rancher.k8s.binbash.org/v1beta2", "kind": "FloatingIPProjectQuota", "metadata": {"name": name}});
        self.send("POST", "/apis/rancher.k8s.binbash.org/v1beta2/floatingipprojectquotas", Some(body)).await;
    }

    pub(super) async fn pool(
        &self,
        name: &str,
        cluster: &str,
        network: &str,
        interface: &str,
        default: bool,
    ) {
        let annotations = if default { json!({"rancher-fip-default-network": "true"}) } else { json!({}) };
        let body = json!({"apiVersion": "rancher.k8s.binbash.org/v1beta2", "kind": "FloatingIPPool",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"targetCluster": cluster, "targetNetwork": network, "targetNetworkInterface": interface}});
        self.send("POST", "/apis/rancher.k8s.binbash.org/v1beta2/floatingippools", Some(body)).await;
    }

    pub(super) async fn floating_ip(&self, namespace: &str, name: &str, cluster: &str) {
        let labels = json!({"rancher.k8s.binbash.org/cluster-name": cluster, "rancher.k8s.binbash.org/project-name": "p-abcde",
            "rancher.k8s.binbash.org/service-0-name": "web", "rancher.k8s.binbash.org/service-0-namespace": "shop"});
        let path = format!("/apis/rancher.k8s.binbash.org/v1beta2/namespaces/{namespace}/floatingips");
        let body = json!({"apiVersion": "rancher.k8s.binbash.org/v1beta2", "kind": "FloatingIP",
            "metadata": {"name": name, "labels": labels}, "spec": {"floatingIPPool": "harv01--vlan10"}});
        self.send("POST", &path, Some(body)).await;
        let status =
            json!({"status": {"assigned": {"clusterName": cluster, "services": [{"serviceName": "web"}]}}});
        self.send("PATCH", &format!("{path}/{name}/status"), Some(status)).await;
    }

    pub(super) async fn secret(&self, namespace: &str, name: &str, data: Value) {
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
        self.send("POST", &format!("/api/v1/namespaces/{namespace}/secrets"), Some(body)).await;
    }

    pub(super) async fn kubeconfig(&self, name: &str, host: &str) {
        self.secret("fleet-default", name, json!({"value": STANDARD.encode(kubeconfig(host))})).await;
    }

    /// An empty downstream API.
    pub(super) fn downstream(&self, host: &str) {
        let seed = 100 + self.hosts.lock().unwrap().len() as u64;
        self.hosts.lock().unwrap().insert(host.to_owned(), api(&self.clock, seed));
    }

    pub(super) fn api(&self, host: &str) -> KubeApi {
        self.hosts.lock().unwrap()[host].clone()
    }

    /// Takes a downstream API away; returns it.
    pub(super) fn unplug(&self, host: &str) -> KubeApi {
        self.hosts.lock().unwrap().remove(host).unwrap()
    }

    pub(super) fn plug(&self, host: &str, api: KubeApi) {
        self.hosts.lock().unwrap().insert(host.to_owned(), api);
    }

    /// Writes the configuration, with these changes.
    pub(super) async fn configure(&self, changes: &[(&str, &str)]) {
        let mut data = json!({
            "RancherFipApiServerURL": "https://fip.example.com/v1",
            "RancherFipLBControllerChartName": "rancher-fip-lb-controller",
            "RancherFipLBControllerChartRef": "oci://registry.example.com/p/rancher-fip-lb-controller",
            "RancherFipLBControllerChartVersion": "0.2.0",
            "RancherFipLBControllerNamespace": TARGET,
            "PureLBControllerChartName": "purelb", "PureLBControllerChartRef": "https://purelb.example.com",
            "PureLBControllerChartVersion": "0.13.0", "PureLBControllerNamespace": "purelb",
            "MetalLBControllerChartName": "metallb", "MetalLBControllerChartRef": "https://metallb.example.com",
            "MetalLBControllerChartVersion": "0.15.2", "MetalLBControllerNamespace": "metallb",
        });
        for (key, value) in changes {
            data[*key] = (*value).into();
        }
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rancher-fip-config"}, "data": data});
        let path = "/api/v1/namespaces/rancher-fip-manager/configmaps";
        match self.get(&format!("{path}/rancher-fip-config")).await {
            Some(mut old) => {
                old["data"] = body["data"].clone();
                self.send("PUT", &format!("{path}/rancher-fip-config"), Some(old)).await;
            }
            None => {
                self.send("POST", path, Some(body)).await;
            }
        }
    }

    pub(super) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        send(&self.local, method, path, body).await
    }

    pub(super) async fn get(&self, path: &str) -> Option<Value> {
        get(&self.local, path).await
    }

    pub(super) async fn label(&self, cluster: &str, labels: Value) {
        let path = format!("/apis/management.cattle.io/v3/clusters/{cluster}");
        self.send("PATCH", &path, Some(json!({"metadata": {"labels": labels}}))).await;
    }

    /// Starts the program.
    pub(super) fn start(&self) -> Running {
        self.start_with(Options::default())
    }

    fn replica(&self, options: Options) -> Replica {
        let number = {
            let mut replicas = self.replicas.lock().unwrap();
            *replicas += 1;
            *replicas
        };
        let tokens = Arc::clone(&self.tokens);
        let draw = move || {
            let mut drawn = tokens.lock().unwrap();
            *drawn += 1;
            Ok(u128::from(*drawn).to_be_bytes())
        };
        let client = || client(&self.local, PROGRAM, self.tamper.clone());
        let metrics = FipMetrics::default();
        Replica::new(Parts {
            client: client(),
            lease_client: client(),
            identity: format!("replica-{number}"),
            dial: Arc::new(InMemory(Arc::clone(&self.hosts))),
            helm: Arc::clone(&self.helm) as _,
            clock: Arc::clone(&self.clock),
            random: Arc::new(Random::seeded(number)),
            tokens: Arc::new(draw),
            metrics,
            queues: QueueMetrics::default(),
            events_dropped: Counter::default(),
            options,
        })
    }

    /// What the program would do.
    pub(super) async fn plan(&self) -> Plan {
        let options = Options { leader_elect: false, ..Options::default() };
        self.replica(options).dry_run(Duration::from_secs(60)).await
    }

    pub(super) fn start_with(&self, options: Options) -> Running {
        let replica = Arc::new(self.replica(options));
        let (stop, stopped) = oneshot::channel::<()>();
        let work = Arc::clone(&replica);
        let task = tokio::task::spawn_local(async move {
            work.run(async {
                let _ = stopped.await;
            })
            .await
        });
        Running { replica, stop: Some(stop), task }
    }

    /// How many tokens were drawn.
    pub(super) fn drawn(&self) -> u64 {
        *self.tokens.lock().unwrap()
    }

    /// A key of a downstream Secret.
    pub(super) async fn delivered(&self, host: &str, name: &str, key: &str) -> String {
        let secret = get(&self.api(host), &format!("/api/v1/namespaces/{TARGET}/secrets/{name}")).await;
        secret.map(|secret| data::text(&secret, key)).unwrap_or_default()
    }

    /// The `data` of the downstream interface map.
    pub(super) async fn map(&self, host: &str) -> Value {
        let map = get(
            &self.api(host),
            &format!("/api/v1/namespaces/{TARGET}/configmaps/network-interface-mappings"),
        )
        .await;
        map.map(|map| map["data"].clone()).unwrap_or_default()
    }

    pub(super) async fn deployment(&self, host: &str) -> Option<Value> {
        get(
            &self.api(host),
            &format!("/apis/apps/v1/namespaces/{TARGET}/deployments/rancher-fip-lb-controller"),
        )
        .await
    }

    /// When the controller was restarted last.
    pub(super) async fn restarted(&self, host: &str) -> Value {
        let pointer =
            "/spec/template/metadata/annotations/rancher.k8s.binbash.org~1lb-controller-restarted-at";
        self.deployment(host).await.and_then(|found| found.pointer(pointer).cloned()).unwrap_or_default()
    }

    /// The reasons of the events so far.
    pub(super) fn events(&self) -> Vec<String> {
        self.local
            .objects("events")
            .iter()
            .map(|event| event["reason"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The local token.
    pub(super) async fn token(&self) -> Option<String> {
        let secret = self.get(&format!("/api/v1/namespaces/c-m-harv01/secrets/{PROJECT_SECRET}")).await?;
        Some(data::text(&secret, "clientSecret"))
    }
}

/// The program, as it runs.
pub(super) struct Running {
    pub(super) replica: Arc<Replica>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Ended>,
}

impl Running {
    /// Tells it to stop, and waits.
    pub(super) async fn stop(mut self) -> Ended {
        drop(self.stop.take());
        (&mut self.task).await.unwrap()
    }

    /// Whether it ended by itself.
    pub(super) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until it ends by itself.
    pub(super) async fn ended(mut self) -> Ended {
        (&mut self.task).await.unwrap()
    }
}

/// Dropping it is a crash.
impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn api(clock: &Arc<dyn Clock>, seed: u64) -> KubeApi {
    let wall = Arc::clone(clock);
    KubeApi::new(Surroundings::new(seed, move || wall.wall()))
}

pub(super) async fn request(
    api: &KubeApi,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> std::result::Result<Value, kube::Error> {
    let bytes = body.map_or_else(Vec::new, |body| serde_json::to_vec(&body).unwrap());
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .header("user-agent", "person");
    Client::new(api.service(), "default").request(request.body(bytes).unwrap()).await
}

pub(super) async fn send(api: &KubeApi, method: &str, path: &str, body: Option<Value>) -> Value {
    request(api, method, path, body).await.unwrap_or_else(|why| panic!("{method} {path}: {why}"))
}

pub(super) async fn get(api: &KubeApi, path: &str) -> Option<Value> {
    request(api, "GET", path, None).await.ok()
}

/// What the program (not a person) sent since `number`, Lease and events aside.
pub(super) fn ours(api: &KubeApi, since: u64) -> Vec<Call> {
    let aside =
        |call: &Call| call.user_agent == "person" || call.resource == "leases" || call.resource == "events";
    api.calls(since).into_iter().filter(|call| !aside(call)).collect()
}

/// The writes among them.
pub(super) fn writes(api: &KubeApi, since: u64) -> Vec<String> {
    let calls = ours(api, since).into_iter().filter(Call::is_write);
    calls.map(|call| format!("{} {} {}/{}", call.verb, call.resource, call.namespace, call.name)).collect()
}

pub(super) fn calls_so_far(api: &KubeApi) -> u64 {
    api.calls(0).last().map_or(0, |call| call.number + 1)
}

pub(super) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Runs a scenario in virtual time, on one thread.
pub(super) fn simulate<F: Future<Output = ()>>(scenario: F) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, scenario);
}
