//! The shipped program at a simulated cloudscale.ch, under the old name and with the rights of the manifest.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use cloudberth_core::Random;
use cloudberth_e2e::{Cluster, Program, eventually, shipped};
use cloudberth_http::surroundings::SystemClock;
use cloudscale_sim::{Access, Cloud, SimSettings, serve_on_loopback};
use serde_json::{Value, json};

use crate::Outcome;
use crate::fixture::SOON;

const MANIFEST: &str = include_str!("../../../../clouds/cloudscale/manifest.yaml");
const NAME: &str = "cloudscale-cloud-controller-manager";
const TOKEN: &str = "token-of-the-project-8d2f7c61";
const WEB: &str = "/api/v1/namespaces/default/services/web";

fn port(number: u16) -> Value {
    json!([{"name": "http", "port": number, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080}])
}

/// Ports of the cloud, each with the number of members behind it.
fn shape(cloud: &Cloud) -> Vec<(u16, usize)> {
    let resources = cloud.resources();
    let members = |pool: &Option<String>| {
        resources.members.values().filter(|member| Some(&member.pool) == pool.as_ref()).count()
    };
    resources.listeners.values().map(|listener| (listener.protocol_port, members(&listener.pool))).collect()
}

async fn until_shaped(cloud: &Cloud, want: &[(u16, usize)]) -> Outcome {
    let look = async || {
        let shape = shape(cloud);
        if shape == want { Ok(()) } else { Err(format!("{shape:?}")) }
    };
    Ok(eventually(SOON, &format!("the load balancer has {want:?}"), look).await?)
}

pub(crate) async fn a_service_lives_and_dies_under_the_rights_of_the_manifest(cluster: &Cluster) -> Outcome {
    let settings = SimSettings {
        latency: Duration::from_millis(5),
        build: Duration::from_millis(300),
        instances: 3,
        ..SimSettings::default()
    };
    let cloud = Cloud::new(Arc::new(SystemClock::new()), Random::seeded(7), settings);
    cloud.set_tokens([(TOKEN, Access::ReadWrite)]);
    let served = serve_on_loopback(&cloud).await?;
    let account = cluster.account("kube-system", "cloud-controller-manager", MANIFEST).await?;
    let taint = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"});
    for number in 1..=3 {
        let name = format!("node-{number}");
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]}});
        cluster.create("/api/v1/nodes", &node).await?;
    }

    let program = cluster.dir().join(NAME);
    symlink(shipped()?, &program)?;
    let kubeconfig = format!("--kubeconfig={}", account.kubeconfig.display());
    let args =
        ["--allow-untagged-cloud", "--v=3", "--concurrent-service-syncs=2", "--secure-port=0", &kubeconfig];
    let url = served.url();
    let env = [("CLOUDSCALE_ACCESS_TOKEN", TOKEN), ("CLOUDSCALE_API_URL", url.as_str())];
    let mut manager = Program::start_other(&program, &args, &env)?;
    eventually(SOON, "all nodes are initialised", async || {
        let nodes = cluster.get("/api/v1/nodes").await.map_err(|why| why.to_string())?;
        let done = |node: &Value| {
            let id = node["spec"]["providerID"].as_str().unwrap_or_default();
            id.starts_with("cloudscale://") && !node["spec"]["taints"].to_string().contains("uninitialized")
        };
        let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
        if nodes.len() == 3 && nodes.iter().all(done) { Ok(()) } else { Err(format!("{nodes:?}")) }
    })
    .await?;

    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": port(80), "selector": {"app": "web"}}});
    cluster.create("/api/v1/namespaces/default/services", &service).await?;
    eventually(SOON, "the Service has its addresses", async || {
        let service = cluster.get(WEB).await.map_err(|why| why.to_string())?;
        let shown = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
        let proxy = shown.iter().all(|entry| entry["ipMode"] == "Proxy");
        if shown.len() == 2 && proxy { Ok(()) } else { Err(service.to_string()) }
    })
    .await?;
    until_shaped(&cloud, &[(80, 3)]).await?;

    cluster.patch(WEB, &json!({"spec": {"ports": port(8080)}})).await?;
    until_shaped(&cloud, &[(8080, 3)]).await?;
    cluster.delete("/api/v1/nodes/node-2").await?;
    until_shaped(&cloud, &[(8080, 2)]).await?;

    // After a restart there is nothing to do.
    manager.kill();
    manager.ends(SOON).await?;
    cloud.clear_journal();
    manager.restart()?;
    eventually(SOON, "the load balancer is looked at", async || {
        let looked = cloud.tally().count("members.list");
        if looked > 0 { Ok(()) } else { Err(format!("{:?}", manager.log())) }
    })
    .await?;
    assert_eq!(cloud.tally().mutations, 0, "CS-153 {:?}", cloud.tally());

    cluster.delete(WEB).await?;
    eventually(SOON, "the Service is gone", async || match cluster.get(WEB).await {
        Err(_) => Ok(()),
        Ok(service) => Err(service.to_string()),
    })
    .await?;
    assert_eq!(cloud.balancers().len(), 0, "CS-148");
    let refused: Vec<_> =
        cluster.calls_of(&account.user).into_iter().filter(|row| row.status == 403).collect();
    assert!(refused.is_empty(), "the rights of the manifest suffice: {refused:?}");
    assert!(!manager.whole_log().join("\n").contains(TOKEN), "L10-811");
    manager.terminate();
    assert_eq!(manager.ends(SOON).await?, 0);
    Ok(())
}
