//! What Cloudlycke shows to somebody who tries it: the walk through its two clusters, and a cloud that is one process.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use cloudberth_e2e::{Cluster, PodPrograms, eventually, manifests_of, throughout};
use cloudberth_lycke::inventory::Demo;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::clouds::cloudlycke::{answer_at, get, next_address, next_pool};
use crate::fixture::{Fixture, SOON, UNINITIALISED, taints, text};
use crate::pods::{IN_TIME, has_no_place, is_ready, is_running, node_of};
use crate::services::{SERVICES, WEB};
use crate::{Fallible, Outcome};

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
const A_WHILE: Duration = Duration::from_secs(2);

/// The environment of a manager that is the cloud as well, with this inventory.
fn all_in_one(dir: &Path, inventory: &str) -> Fallible<Vec<(String, String)>> {
    let file = dir.join("inventory.yaml");
    std::fs::write(&file, inventory)?;
    let path = |path: &Path| path.display().to_string();
    Ok(vec![
        ("CLOUDLYCKE_INVENTORY".to_owned(), path(&file)),
        ("CLOUDLYCKE_STATE_DIR".to_owned(), path(&dir.join("state"))),
    ])
}

/// What runs in the clusters.
struct App {
    namespace: &'static str,
    kind: &'static str,
    name: &'static str,
    pods: usize,
    tolerates: fn() -> Value,
}

/// What somebody tries the cluster with.
const NGINX: App =
    App { namespace: "default", kind: "Deployment", name: "nginx", pods: 3, tolerates: || json!([]) };
/// What may run on the control plane as well.
const COREDNS: App = App {
    namespace: "kube-system",
    kind: "Deployment",
    name: "coredns",
    pods: 2,
    tolerates: || json!([{ "key": CONTROL_PLANE, "effect": "NoSchedule" }]),
};
/// What runs on every node, whatever its taints are.
const KUBE_PROXY: App = App {
    namespace: "kube-system",
    kind: "DaemonSet",
    name: "kube-proxy",
    pods: 2,
    tolerates: || json!([{ "operator": "Exists" }]),
};

impl App {
    async fn install(&self, cluster: &Cluster) -> Outcome {
        let Self { namespace, kind, name, pods, tolerates } = self;
        let labels = json!({ "app": name });
        let mut app = json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name },
            "spec": { "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels },
                    "spec": { "tolerations": tolerates(),
                        "containers": [{ "name": name, "image": format!("example.com/{name}") }] } } } });
        if *kind == "Deployment" {
            app["spec"]["replicas"] = json!(pods);
        }
        let path = format!("/apis/apps/v1/namespaces/{namespace}/{}s", kind.to_lowercase());
        cluster.create(&path, &app).await?;
        Ok(())
    }
}

/// One of the two clusters: a node of the control plane, a worker and pods.
struct DemoCluster<'w> {
    number: u8,
    fixture: Fixture<'w, ()>,
    programs: PodPrograms,
}

impl<'w> DemoCluster<'w> {
    /// In a cluster with a cloud, kubelets say their provider ids and wait for it.
    async fn start(cluster: &'w Cluster, number: u8, has_cloud: bool) -> Fallible<Self> {
        let fixture = Fixture::with(cluster, (), &manifests_of(&["cloudlycke"])?).await?;
        let mut programs = PodPrograms::start(cluster)?;
        let waits = json!({ "key": UNINITIALISED, "value": "true", "effect": "NoSchedule" });
        let own = json!({ "key": CONTROL_PLANE, "effect": "NoSchedule" });
        for (role, id) in [("master", "m"), ("node", "n")] {
            let mut all = Vec::new();
            all.extend((role == "master").then(|| own.clone()));
            all.extend(has_cloud.then(|| waits.clone()));
            let mut spec = json!({ "taints": all });
            if has_cloud {
                spec["providerID"] = json!(format!("cloudlycke://{id}-c{number}-1"));
            }
            let name = format!("{role}-c{number}-1");
            fixture.join(&name, json!({ "spec": spec })).await?;
            programs.start_kubelet(&name)?;
        }
        for app in [&KUBE_PROXY, &COREDNS, &NGINX] {
            app.install(cluster).await?;
        }
        Ok(Self { number, fixture, programs })
    }

    fn node_name(&self, role: &str) -> String {
        format!("{role}-c{}-1", self.number)
    }

    /// Waits until both nodes are ready with these taints, those of the control plane and those of the worker.
    async fn ready_with(&self, master: &[&str], worker: &[&str]) -> Outcome {
        for (role, want) in [("master", master), ("node", worker)] {
            let name = self.node_name(role);
            eventually(IN_TIME, &format!("CL-1 CL-2 {name} is ready with the taints {want:?}"), async || {
                let node = self.fixture.node(&name).await.map_err(|why| why.to_string())?;
                if is_ready(&node) && taints(&node) == want { Ok(()) } else { Err(node.to_string()) }
            })
            .await?;
        }
        Ok(())
    }

    async fn pods(&self, app: &App, so: impl Fn(&Value) -> bool) -> Result<(), String> {
        let path = format!("/api/v1/namespaces/{}/pods", app.namespace);
        let listed = self.fixture.cluster.get(&path).await.map_err(|why| why.to_string())?;
        let all = listed["items"].as_array().map_or(&[][..], Vec::as_slice);
        let pods: Vec<_> = all.iter().filter(|pod| text(pod, "/metadata/labels/app") == app.name).collect();
        if pods.len() == app.pods && pods.iter().all(|pod| so(pod)) {
            Ok(())
        } else {
            Err(format!("{pods:#?}"))
        }
    }

    /// Waits until all pods run, those of nginx on the worker: the other node has its own taint.
    async fn pods_run(&self) -> Outcome {
        let worker = self.node_name("node");
        for app in [&KUBE_PROXY, &COREDNS, &NGINX] {
            let runs = |pod: &Value| is_running(pod) && (app.name != NGINX.name || node_of(pod) == worker);
            let what = format!("the pods of {} run, in cluster {}", app.name, self.number);
            eventually(IN_TIME, &what, async || self.pods(app, runs).await).await?;
        }
        Ok(())
    }

    /// Only what tolerates every taint runs; the others have no node.
    async fn pods_wait(&self) -> Result<(), String> {
        self.pods(&KUBE_PROXY, is_running).await?;
        self.pods(&COREDNS, has_no_place).await?;
        self.pods(&NGINX, has_no_place).await
    }
}

/// The walk-through of the program that was replaced: two clusters, of which the second has a cloud.
pub(crate) async fn the_pods_of_the_walk_through_wait_for_their_cloud(cluster: &Cluster) -> Outcome {
    let beside = cluster.beside().await?;
    let first = DemoCluster::start(&beside, 1, false).await?;
    first.ready_with(&[CONTROL_PLANE], &[]).await?;
    first.pods_run().await?;

    let second = DemoCluster::start(cluster, 2, true).await?;
    second.ready_with(&[CONTROL_PLANE, UNINITIALISED], &[UNINITIALISED]).await?;
    eventually(IN_TIME, "pods are Pending", async || second.pods_wait().await).await?;
    throughout(A_WHILE, "the pods are Pending", async || second.pods_wait().await).await?;

    let inventory = Demo { clusters: 2, workers: 1, loopback: false }.inventory()?;
    let env = all_in_one(cluster.dir(), &inventory)?;
    // The arguments of the manifest that was replaced.
    let flags = [
        "--v=5",
        "--cloud-provider=cloudlycke",
        "--cluster-name=kubernetes-2",
        "--use-service-account-credentials",
        "--address=127.0.0.1",
    ];
    let flags = flags.map(str::to_owned);
    let mut manager = second.fixture.manager_with("cloudlycke", &flags, &env).await?;
    manager.leads(SOON).await?;
    let warned = manager
        .log()
        .iter()
        .any(|line| line.contains("is deprecated and has no effect") && line.contains("flag=\"address\""));
    assert!(warned, "CL-78 {:#?}", manager.log());
    second.ready_with(&[CONTROL_PLANE], &[]).await?;
    for (case, role, kind, address) in [
        ("CL-1", "node", "vbox.vm.1g.2cpu", "192.168.20.11"),
        ("CL-2", "master", "vbox.vm.512mb.1cpu", "192.168.20.10"),
    ] {
        let name = second.node_name(role);
        let node = second.fixture.node(&name).await?;
        for (label, value) in [
            ("node.kubernetes.io/instance-type", kind),
            ("beta.kubernetes.io/instance-type", kind),
            ("topology.kubernetes.io/region", "virtualbox"),
            ("failure-domain.beta.kubernetes.io/region", "virtualbox"),
            ("topology.kubernetes.io/zone", "virtualbox"),
            ("failure-domain.beta.kubernetes.io/zone", "virtualbox"),
        ] {
            assert_eq!(node["metadata"]["labels"][label], json!(value), "{case} CL-3 {label} of {name}");
        }
        let want = json!([{ "type": "InternalIP", "address": address },
            { "type": "ExternalIP", "address": address }, { "type": "Hostname", "address": name }]);
        assert_eq!(node["status"]["addresses"], want, "{case}");
    }
    second.pods_run().await?;

    // Nothing happened to the cluster without a cloud.
    let other = first.fixture.node("node-c1-1").await?;
    assert_eq!(other["metadata"]["labels"]["topology.kubernetes.io/zone"], Value::Null, "{other}");
    first.pods_run().await?;
    second.fixture.close_with(&mut [manager], &[]).await?;
    first.programs.end();
    second.programs.end();
    Ok(())
}

/// The address of the Service `web`, once it has one.
async fn address_of_web(cluster: &Cluster) -> Fallible<IpAddr> {
    let address = eventually(SOON, "the Service has its address", async || {
        let service = cluster.get(WEB).await.map_err(|why| why.to_string())?;
        let address = text(&service, "/status/loadBalancer/ingress/0/ip").parse::<IpAddr>();
        address.map_err(|_| service.to_string())
    });
    Ok(address.await?)
}

async fn both_answer(address: IpAddr, case: &str) -> Outcome {
    eventually(SOON, &format!("{case}: both nodes answer"), async || {
        let mut heard = BTreeSet::new();
        for _ in 0..4 {
            heard.insert(get(SocketAddr::new(address, 8080)).await?);
        }
        let both: BTreeSet<String> = ["one", "two"].map(str::to_owned).into();
        if heard == both { Ok(()) } else { Err(format!("{heard:?}")) }
    })
    .await?;
    Ok(())
}

async fn nobody_listens(address: IpAddr, case: &str) -> Outcome {
    eventually(SOON, &format!("{case}: nobody listens"), async || {
        match get(SocketAddr::new(address, 8080)).await {
            Err(_) => Ok(()),
            Ok(answer) => Err(answer),
        }
    })
    .await?;
    Ok(())
}

/// One command, one inventory file, and nothing else: nodes, an address, traffic, and all of it again after a kill.
pub(crate) async fn one_process_is_the_cloud_and_its_manager(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::with(cluster, (), &manifests_of(&["cloudlycke"])?).await?;
    let machines = [("one", next_address()), ("two", next_address())];
    let mut inventory = format!(
        "version: 1\ndefaults: {{ region: virtualbox, zone: virtualbox }}\nclusters: {{ c2: {{ kubernetesName: \
         kubernetes }} }}\ntypes: {{ small: {{ cpus: 1 }} }}\nloadBalancers: {{ pool: {} }}\nmachines:\n",
        next_pool()
    );
    for (name, address) in &machines {
        let line =
            format!("  - {{ id: {name}, name: {name}, cluster: c2, type: small, internal: [{address}] }}\n");
        inventory.push_str(&line);
    }
    let env = all_in_one(cluster.dir(), &inventory)?;
    let mut manager =
        fixture.manager_with("all-in-one", &["--cloud-provider=cloudlycke".to_owned()], &env).await?;
    manager.leads(SOON).await?;
    for (name, _) in &machines {
        fixture.join(name, json!({})).await?;
        fixture.say_ready(name, true).await?;
        let node = fixture.initialised(name).await?;
        assert_eq!(node["spec"]["providerID"], json!(format!("cloudlycke://{name}")), "CL-77 CL-1");
        assert_eq!(node["metadata"]["labels"]["topology.kubernetes.io/zone"], "virtualbox", "CL-77 CL-1");
    }
    let web = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "type": "LoadBalancer", "selector": { "app": "web" },
            "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }] } });
    cluster.create(SERVICES, &web).await?;
    let address = address_of_web(cluster).await?;
    let service = cluster.get(WEB).await?;
    let node_port = u16::try_from(service["spec"]["ports"][0]["nodePort"].as_u64().unwrap_or_default())?;
    let mut tasks = JoinSet::new();
    for (name, at) in machines {
        answer_at(at.into(), node_port, node_port, name, &mut tasks).await?;
    }
    both_answer(address, "CL-77 CL-32").await?;

    manager.kill();
    nobody_listens(address, "CL-74").await?;
    manager.restart().await?;
    both_answer(address, "CL-77 CL-41 after a kill").await?;
    manager.leads(SOON).await?;
    assert_eq!(address_of_web(cluster).await?, address, "CL-77 CL-41 the address is the same");

    cluster.delete(WEB).await?;
    eventually(SOON, "CL-77 CL-38 the Service is gone", async || match cluster.get(WEB).await {
        Err(_) => Ok(()),
        Ok(service) => Err(service.to_string()),
    })
    .await?;
    nobody_listens(address, "CL-77 CL-38").await?;
    fixture.close_with(&mut [manager], &[]).await
}
