//! Answers that say less than they should: nothing is taken for absent that was only not told (law 1).

use cloudberth_core::decide::node::taints::UNINITIALISED;
use serde_json::{Value, json};

use super::{CloudFixture, CloudUnderTest};

/// This many ports of a Service, so that there is something to do; `from` is the first node port.
/// They are 80 and 443, which every cloud can forward.
fn ports(count: u16, from: u16) -> Value {
    let number = |at: u16| if at == 0 { 80 } else { 442 + at };
    let port =
        |at| json!({"name": format!("p{at}"), "port": number(at), "protocol": "TCP", "nodePort": from + at});
    json!({"spec": {"ports": (0..count).map(port).collect::<Vec<_>>()}})
}

/// The addresses that nodes show, by name.
async fn shown<C: CloudUnderTest>(fixture: &CloudFixture<C>, nodes: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for name in nodes {
        let node = fixture.cluster.node(name).await;
        let addresses = node.map(|node| node.addresses).unwrap_or_default();
        all.extend(addresses.iter().map(|address| format!("{name} {address}")));
    }
    all
}

/// Answers lack the addresses of instances. Nodes keep theirs, pools keep their members, nobody is deleted, and a node
/// that waits for its cloud goes on waiting; once the cloud tells again, everything goes on by itself.
pub async fn instances_without_addresses_change_nothing<C: CloudUnderTest>() {
    let mut fixture: CloudFixture<C> = CloudFixture::with_nodes(3).await;
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    let id = fixture.recorded("web").await.unwrap();
    let nodes = ["node-1", "node-2", "node-3"];
    let (addresses, state) = (shown(&fixture, &nodes).await, fixture.cloud.state_of(&id));
    assert!(addresses.len() >= 3, "nodes show the addresses of their instances: {addresses:?}");

    fixture.cloud.omit_instance_addresses(true);
    let name = "node-4";
    fixture.cloud.add_instance(name);
    fixture.join(name).await;
    fixture.cluster.set_ready("node-3", false).await;
    fixture.pass(400).await;
    assert_eq!(shown(&fixture, &nodes).await, addresses, "L1-401 nodes keep their addresses");
    assert_eq!(fixture.cloud.state_of(&id), state, "L1-402 the load balancer keeps its members");
    let waiting = fixture.cluster.node(name).await.unwrap();
    assert!(waiting.has_taint(UNINITIALISED), "L1-403 a node does not join without its addresses");

    // A program that starts now knows nothing of what was told before.
    fixture.restart();
    fixture.edit("web", json!({"metadata": {"labels": {"edited": "yes"}}})).await;
    fixture.pass(400).await;
    assert_eq!(shown(&fixture, &nodes).await, addresses, "L1-401 nodes keep their addresses after a restart");
    assert_eq!(
        fixture.cloud.state_of(&id),
        state,
        "L1-402 the load balancer keeps its members after a restart"
    );
    assert!(!fixture.ingress("web").await.is_empty(), "L1-402 the Service keeps its addresses");

    fixture.cloud.omit_instance_addresses(false);
    // A node that failed for so long waits up to five minutes and half as long again for its next try.
    fixture.pass(600).await;
    let joined = fixture.cluster.node(name).await.unwrap();
    assert!(!joined.has_taint(UNINITIALISED) && !joined.addresses.is_empty(), "L1-403 told again, it joins");
    fixture.assert_quiet(300, "L4-400 told again, it comes to rest").await;
}

/// Answers lack the addresses of load balancers: what a Service has published stays.
pub async fn balancers_without_addresses_change_nothing<C: CloudUnderTest>() {
    let mut fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    let id = fixture.recorded("web").await.unwrap();
    let (ingress, state) = (fixture.ingress("web").await, fixture.cloud.state_of(&id));
    assert!(!ingress.is_empty());

    fixture.cloud.omit_balancer_addresses(true);
    fixture.pass(300).await;
    assert_eq!(fixture.ingress("web").await, ingress, "L1-404 what is published stays");
    fixture.restart();
    fixture.edit("web", ports(2, 30_100)).await;
    fixture.pass(300).await;
    assert_eq!(fixture.ingress("web").await, ingress, "L1-404 what is published stays after a restart");
    assert_eq!(
        fixture.cloud.balancers(),
        std::slice::from_ref(&id),
        "L1-405 there is no second load balancer"
    );

    fixture.cloud.omit_balancer_addresses(false);
    fixture.pass(400).await;
    assert_eq!(fixture.ingress("web").await, ingress, "L1-404 the same addresses when they are told again");
    assert_ne!(fixture.cloud.state_of(&id), state, "the port that was added meanwhile is opened");
    fixture.assert_quiet(300, "L4-401 told again, it comes to rest").await;
}

/// A part of a load balancer cannot be read. Only the Service of that load balancer is held up, and its warning says
/// what cannot be read; everybody else is served.
pub async fn an_unreadable_part_stops_nobody_else<C: CloudUnderTest>() {
    let fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    let theirs = fixture.cloud.build_by_hand("theirs");
    let before = fixture.cloud.state_of(&theirs);
    fixture.create("web", ports(1, 30_100)).await;
    fixture.pass(60).await;
    let web = fixture.recorded("web").await.unwrap();

    // Somebody else's.
    fixture.cloud.garble_part_of(&theirs, true);
    let state = fixture.cloud.state_of(&web);
    fixture.edit("web", ports(2, 30_100)).await;
    fixture.create("shop", ports(1, 30_200)).await;
    fixture.pass(120).await;
    assert_ne!(fixture.cloud.state_of(&web), state, "L11-400 a Service goes on beside it");
    assert!(!fixture.ingress("shop").await.is_empty(), "L11-400 a new Service is served beside it");
    assert_eq!(fixture.warnings("web"), [""; 0], "L11-400 nobody is told of another's part");
    assert_eq!(fixture.cloud.state_of(&theirs), before, "L3-400 it is not touched");

    // Our own.
    fixture.cloud.garble_part_of(&web, true);
    let state = fixture.cloud.state_of(&web);
    fixture.edit("web", ports(1, 30_100)).await;
    fixture.edit("shop", ports(2, 30_200)).await;
    let shop = fixture.recorded("shop").await.unwrap();
    let shop_before = fixture.cloud.state_of(&shop);
    fixture.pass(120).await;
    assert_eq!(fixture.cloud.state_of(&web), state, "L1-406 what cannot be read is not changed");
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|text| text.contains(&web)), "L1-406 the warning says which: {warnings:?}");
    assert_ne!(fixture.cloud.state_of(&shop), shop_before, "L11-401 the other Service goes on");

    fixture.cloud.garble_part_of(&web, false);
    fixture.pass(400).await;
    assert_ne!(fixture.cloud.state_of(&web), state, "once it can be read the port is closed");
    assert_eq!(fixture.cloud.state_of(&theirs), before, "L3-400 it is not touched");
}

/// The credential becomes another account's while a deletion is under way, and the cloud denies the load balancer. That
/// is no deletion.
pub async fn a_denial_to_another_credential_deletes_nothing<C: CloudUnderTest>() {
    is_held_until_it_is_gone(C::swap_credential_during_next_delete).await;
}

/// The credential becomes another account's between the look at a load balancer and its deletion, which that account
/// answers with "not there", and is put right again. That is no deletion either.
pub async fn a_deletion_sent_to_another_account_deletes_nothing<C: CloudUnderTest>() {
    is_held_until_it_is_gone(C::send_next_delete_elsewhere).await;
}

/// A Service is deleted while something is wrong with the deletion of its load balancer: it is held until that is gone.
async fn is_held_until_it_is_gone<C: CloudUnderTest>(wrong: impl Fn(&C)) {
    let fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    let id = fixture.recorded("web").await.unwrap();
    wrong(&fixture.cloud);
    fixture.delete("web").await;
    for _ in 0..120 {
        fixture.pass(1).await;
        let there = fixture.cloud.balancers().contains(&id);
        let held = fixture.service("web").await.is_some();
        assert!(held || !there, "L5-400 the Service is let go of while its load balancer is there");
    }
    assert_eq!(fixture.cloud.balancers(), [""; 0], "L5-401 nothing is leaked");
    assert!(fixture.service("web").await.is_none(), "L5-401 the Service is let go of in the end");
}
