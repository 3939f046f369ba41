//! A replica as a whole, against an embedded cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cloudberth_controllers::{node::NodeSettings, service::ServiceSettings, team::TeamSettings};
use cloudberth_core::{Dice, decide::election::Config, provider::Provider};
use cloudberth_http::surroundings::SystemClock;
use cloudberth_manager::replica::{Parts, Replica};
use cloudberth_runtime::metrics::{Metrics, Registry, render};
use cloudberth_sim::{Surroundings, kube::KubeApi};
use kube::Client;
use tokio::{sync::oneshot, time::timeout};

/// A cloud that has a name and nothing else.
struct Bare;

impl Provider for Bare {
    fn name(&self) -> &'static str {
        "bare"
    }

    fn scheme(&self) -> &'static str {
        "bare"
    }
}

#[tokio::test]
async fn a_cloud_without_machines_leaves_only_the_node_controller_out() {
    let api = KubeApi::new(Surroundings::of_this_machine());
    let client = Client::new(api.service(), "default");
    let mut registry = Registry::default();
    let team = TeamSettings {
        node: Some(NodeSettings::default()),
        service: Some(ServiceSettings::default()),
        ..TeamSettings::default()
    };
    let replica = Replica::new(Parts {
        client: client.clone(),
        lease_client: client,
        clouds: vec![(Arc::new(Bare), BTreeSet::new())],
        default_cloud: None,
        cluster_name: "here".to_owned(),
        team,
        election: Some(Config {
            namespace: "kube-system".to_owned(),
            name: "cloud-controller-manager".to_owned(),
            identity: "me".to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }),
        migration: None,
        metrics: Metrics::new(&mut registry),
        clock: Arc::new(SystemClock::new()),
        dice: Arc::new(Dice::seeded(1)),
    })
    .expect("FW-38: the manager goes on");

    let (stop, stopped) = oneshot::channel::<()>();
    let watch = async {
        let running = || {
            let page = render(&registry);
            let lines = page.lines().filter(|line| line.starts_with("running_managed_controllers{"));
            lines.filter(|line| line.ends_with(" 1")).map(str::to_owned).collect::<Vec<_>>()
        };
        while running().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let running = running();
        assert!(running.len() == 1 && running[0].contains("name=\"service\""), "FW-38: {running:?}");
        drop(stop);
    };
    let work = replica.run(async {
        let _ = stopped.await;
    });
    Box::pin(timeout(Duration::from_secs(20), async { tokio::join!(watch, work) }))
        .await
        .expect("it leads and stops");
    assert!(!replica.election().unwrap().leads());
}
