//! What seeds and crashes look for is noticed where it is the case: somebody else does what the program must not do.

use serde_json::{Value, json};
use testing_kit::{
    checks::CloudFixture,
    seeded::{SeededCloud as _, Wishes},
};

use crate::under_test::BinaryLane;

type Fixture = CloudFixture<BinaryLane<true>>;

/// Two nodes with routes beside foreign entries, and a Service if it is wanted; then `harm`, and the checks.
async fn check_after(service: bool, harm: impl AsyncFnOnce(&Fixture)) {
    let fixture = Fixture::new();
    fixture.cloud.prepare();
    let mut wishes = Wishes::default();
    for name in ["node-1", "node-2"] {
        wishes.join(&fixture, name).await;
    }
    if service {
        wishes.create(&fixture, "web", json!({})).await;
    }
    fixture.pass(60).await;
    wishes.assert_fulfilled(&fixture, "before").await;
    fixture.killer().abort();
    harm(&fixture).await;
    wishes.assert_fulfilled(&fixture, "after").await;
}

fn twin(fixture: &Fixture) -> i64 {
    fixture.cloud.add_balancer("k8s-test-default-web", None, &[]).unwrap()
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "L6-807 after")]
async fn a_second_load_balancer() {
    check_after(true, async |fixture| assert!(twin(fixture) > 0)).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "L6-1605 after")]
async fn one_that_was_there_for_a_moment() {
    check_after(true, async |fixture| fixture.cloud.delete_balancer(twin(fixture))).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "L3-1601 after")]
async fn a_foreign_entry_that_is_gone() {
    let lose = async |fixture: &Fixture| {
        let vpc = fixture.cloud.first_vpc();
        fixture.cloud.edit(|all| all.vpcs.get_mut(&vpc).unwrap().route_entries.remove(0));
    };
    check_after(true, lose).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "L6-1604 after")]
async fn a_route_that_is_left_over() {
    let add = async |fixture: &Fixture| {
        let path = format!("/v2/vpcs/{}", fixture.cloud.first_vpc());
        let mut vpc = fixture.cloud.back_door("GET", &path, &Value::Null).unwrap();
        let entries = vpc["vpc"]["route_entries"].as_array_mut().unwrap();
        entries.push(json!({"router": "10.240.0.99", "destination": "10.244.99.0/24", "description": "cloudberth/test/gone"}));
        let body = json!({"route_entries": entries});
        fixture.cloud.back_door("PATCH", &path, &body).unwrap();
    };
    check_after(true, add).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "L2-820 after")]
async fn a_node_that_is_lost() {
    let lose = async |fixture: &Fixture| {
        fixture.cluster.delete(&fixture.cluster.nodes(), "node-1").await;
    };
    check_after(false, lose).await;
}
