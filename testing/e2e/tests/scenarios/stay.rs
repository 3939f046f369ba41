//! `cargo xtask cluster`: the cluster of the scenario with pods, left running for a person.

use std::time::Duration;

use cloudberth_e2e::{Cluster, ClusterFactory, ClusterKind, shipped};
use kube_assets::{Assets, PodAssets};
use tokio::signal::ctrl_c;
use tokio::time::sleep;

use crate::Outcome;
use crate::fixture::SOON;
use crate::pods::Pods;
use crate::simulated_cloud::SimulatedCloud as _;

const NODES: [&str; 3] = ["one", "two", "three"];
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs until somebody presses Ctrl-C, and leaves nothing behind.
pub(crate) async fn until_interrupted(version: &str, assets: &Assets, pods: PodAssets) -> Outcome {
    println!("Building cloudberth, if it has changed …");
    shipped()?;
    println!("Starting a cluster; this takes half a minute …");
    let factory = ClusterFactory::start(ClusterKind::Real, assets, Some(pods)).await?;
    let cluster = factory.cluster().await?;
    show(&cluster, version, assets).await?;
    drop((cluster, factory));
    println!("Everything has ended, and its files are gone.");
    Ok(())
}

async fn show(cluster: &Cluster, version: &str, assets: &Assets) -> Outcome {
    let mut pods = Pods::new(cluster, &NODES).await?;
    let mut manager = pods.fixture.leader(&["--node-monitor-period=1s"]).await?;
    pods.run().await?;
    let log = manager.program().dir().join("life-0.log");
    let env = pods.fixture.cloud.env();
    println!(
        r#"
A cluster of Kubernetes {version} runs: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, and kwok in place of
{} kubelets. cloudberth leads, with the rights of its manifest, and has initialised the nodes of a simulated cloudscale.ch.
Three pods of a Deployment are Running, because kwok says so: no container runs.

  export KUBECONFIG={} PATH={}:$PATH
  kubectl get nodes -o wide
  kubectl get pods -o wide
  kubectl expose deployment web --type=LoadBalancer --port=80; kubectl get service web -w
  tail -f {}

The cloud, and how to lose an instance: its kubelet goes with it, cloudberth deletes the node within two minutes, and the
pods move a minute later.

  {}
  curl -H "Authorization: Bearer $(cat $CLOUDSCALE_ACCESS_TOKEN_FILE)" ${{CLOUDSCALE_API_URL}}v1/servers
  id=$(kubectl get node one -o 'jsonpath={{.spec.providerID}}')
  curl -X DELETE -H "Authorization: Bearer $(cat $CLOUDSCALE_ACCESS_TOKEN_FILE)" ${{CLOUDSCALE_API_URL}}v1/servers/${{id##*/}}

Ctrl-C ends everything and removes its files."#,
        NODES.len(),
        cluster.kubeconfig().display(),
        assets.dir().display(),
        log.display(),
        env.iter().fold("export".to_owned(), |line, (name, value)| format!("{line} {name}={value}")),
    );
    loop {
        tokio::select! {
            pressed = ctrl_c() => break pressed?,
            () = sleep(LOOK_EVERY) => {}
        }
        for node in NODES.into_iter().filter(|node| !pods.fixture.cloud.has(node)) {
            pods.programs.stop_kubelet(node);
        }
    }
    println!("\nEnding …");
    manager.stop(SOON).await?;
    pods.programs.end();
    Ok(())
}
