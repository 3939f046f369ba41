//! What would be done, before anybody does it.

use cloudberth_e2e::World;
use embedded_kube::{Fault, Harm};
use serde_json::json;

use crate::Outcome;
use crate::services::web;
use crate::stage::Stage;

pub(crate) async fn a_plan_says_what_the_manager_then_does(world: &World) -> Outcome {
    let stage = Stage::set(world, &["one"]).await?;
    stage.join("one", json!({})).await?;
    world.create("/api/v1/namespaces/default/services", &web(&[80])).await?;

    let (code, said) = stage.plan().await?;
    assert_eq!(code, 2, "there is something to do:\n{said}");
    let steps = ["one", "create load balancer", "open port tcp/80"];
    for step in steps {
        assert!(said.contains(step), "{step:?} is not in\n{said}");
    }
    assert_eq!(stage.cloud.mutations(), Vec::<String>::new(), "a plan changes nothing");
    assert_eq!(stage.writes(|_| true).await?, Vec::<String>::new(), "a plan writes nothing");

    // On a busy machine what is told is written late. Where that can be had for the asking, it is.
    if let Some(api) = world.embedded() {
        api.add_fault(Fault::new(Harm::Latency { millis: 1_500 }).on("create", "events"));
    }
    let manager = stage.leader(&[]).await?;
    stage.initialised("one").await?;
    stage.serves(&[80], &["one"]).await?;
    stage.rests(&[("Node", "one", "Synced", 1), ("Service", "web", "EnsuredLoadBalancer", 1)]).await?;
    let log = manager.log().join("\n");
    for step in &steps[1..] {
        assert!(log.contains(step), "{step:?} was not done:\n{log}");
    }
    let (code, said) = stage.plan().await?;
    assert_eq!(code, 0, "nothing is left to do:\n{said}");
    stage.close(&mut [manager]).await
}
