//! `cloudberth plan` shows what the manager then does.

use cloudberth_e2e::Cluster;
use embedded_kube::{Fault, Harm};
use serde_json::json;

use crate::Outcome;
use crate::fixture::Fixture;
use crate::services::web;
use crate::simulated_cloud::SimulatedCloud as _;

pub(crate) async fn a_plan_says_what_the_manager_then_does(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one"]).await?;
    fixture.join("one", json!({})).await?;
    cluster.create("/api/v1/namespaces/default/services", &web(&[80])).await?;

    let (code, said) = fixture.plan().await?;
    assert_eq!(code, 2, "there is something to do:\n{said}");
    let steps = ["one", "create load balancer", "open port tcp/80"];
    for step in steps {
        assert!(said.contains(step), "{step:?} is not in\n{said}");
    }
    assert_eq!(fixture.cloud.mutations(), Vec::<String>::new(), "a plan changes nothing");
    assert_eq!(fixture.writes(|_| true).await?, Vec::<String>::new(), "a plan writes nothing");

    // On a busy machine events are written late. On the embedded API we can make that happen.
    if let Some(api) = cluster.embedded() {
        api.add_fault(Fault::new(Harm::Latency { millis: 1_500 }).on("create", "events"));
    }
    let manager = fixture.leader(&[]).await?;
    fixture.initialised("one").await?;
    fixture.serves(&[80], &["one"]).await?;
    fixture.rests(&[("Node", "one", "Synced", 1), ("Service", "web", "EnsuredLoadBalancer", 1)]).await?;
    let log = manager.log().join("\n");
    for step in &steps[1..] {
        assert!(log.contains(step), "{step:?} was not done:\n{log}");
    }
    let (code, said) = fixture.plan().await?;
    assert_eq!(code, 0, "nothing is left to do:\n{said}");
    fixture.close(&mut [manager]).await
}
