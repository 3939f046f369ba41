//! Load balancers whose manager does not come back.

use std::time::Duration;

use crate::fixture::{demo, service_with, spec};

async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn load_balancers_of_a_silent_manager_go_only_if_the_inventory_says_so() {
    for (settings, stays) in [("", true), ("loadBalancers: { reapAfter: 1h }\n", false)] {
        let it = service_with(&format!("{}{settings}", demo()), None).await;
        it.put("web", &spec("u")).await;
        it.send_json("PUT", "/v1/loadbalancers/c1/default/other", &spec("u")).await;
        let there = |cluster: &str| it.control.balancers(Some(cluster)).len();
        // The manager of one cluster asks now and then, that of the other does not.
        for _ in 0..8 {
            wait(600).await;
            it.get("/v1/machines?cluster=c2").await;
            it.control.reap().await;
        }
        assert_eq!(there("c2"), 1, "its manager is there: {settings}");
        assert_eq!(there("c1") == 1, stays, "nobody asks about it: {settings}");
        // Who asks about all clusters, or about one load balancer, is a person.
        for _ in 0..8 {
            wait(600).await;
            it.get("/v1/machines").await;
            it.get("/v1/loadbalancers/c2/default/web").await;
            it.control.reap().await;
        }
        assert_eq!(there("c2") == 1, stays, "{settings}");
        let told = it.control.events().after(0).0;
        let deleted = told.iter().filter(|event| event.message == "load balancer deleted").count();
        assert_eq!(deleted, if stays { 0 } else { 2 }, "it is told");
    }
}
