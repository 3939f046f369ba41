//! Many clusters, some of which are not there.

use serde_json::json;

use super::world::{World, calls_so_far, ours, pass, simulate, writes};

const CLUSTERS: usize = 200;
const AWAY: usize = 20;

#[test]
fn clusters_that_are_not_there_do_not_hold_up_the_others() {
    simulate(async {
        let world = World::new().await;
        world.define_floating(&["v1beta1", "v1beta2"]).await;
        world.configure(&[]).await;
        for number in 0..CLUSTERS {
            let display = format!("metal{number:03}");
            world.bare_metal(&format!("c-m-{number:03}"), &display).await;
            world.pool(&format!("{display}--lan"), &display, "lan", "eth0", false).await;
        }
        // Clusters that did not opt in are never looked at.
        for number in 0..50 {
            world.management(&format!("c-m-off{number}"), &format!("off{number}"), &json!({})).await;
        }
        let away: Vec<_> = (0..AWAY).map(|number| format!("metal{:03}", number * 10)).collect();
        for host in &away {
            world.unplug(host);
        }
        world.helm.takes(std::time::Duration::from_secs(5), std::time::Duration::from_secs(720));
        let running = world.start();
        // Four Helm processes at once, two charts of five seconds each.
        pass(700).await;
        let there: Vec<_> = (0..CLUSTERS)
            .map(|number| format!("metal{number:03}"))
            .filter(|host| !away.contains(host))
            .collect();
        for host in &there {
            assert_eq!(world.map(host).await, json!({format!("{host}--lan"): "eth0"}), "{host}");
            assert!(world.deployment(host).await.is_some(), "{host}");
        }
        let marks: Vec<_> = there.iter().map(|host| calls_so_far(&world.api(host))).collect();
        pass(3_600).await;
        for (host, mark) in there.iter().zip(marks) {
            let calls = ours(&world.api(host), mark).len();
            assert!((4..=7).contains(&calls), "RF-197 {host}: {calls} calls in an hour");
            assert_eq!(writes(&world.api(host), mark), [""; 0], "law 4 {host}");
        }
        let off = ours(&world.local, 0)
            .into_iter()
            .filter(|call| call.name.starts_with("off") || call.name.starts_with("c-m-off"))
            .count();
        assert_eq!(off, 0, "RF-26 RF-197 nothing is read for those that did not opt in");
        drop(running);
    });
}
