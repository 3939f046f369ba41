//! A guest on Harvester, from nothing to the end state and through every change.

use cloudberth_core::lb::Severity;
use serde_json::json;

use super::world::{
    GUEST, PROJECT_SECRET, TARGET, World, calls_so_far, get, ours, pass, send, simulate, writes,
};
use crate::{helm::HelmAction, plan::data, reasons::REASONS};

async fn settled() -> World {
    World::reference().await
}

#[test]
fn the_reference_fixture_reaches_its_end_state_and_then_nothing_is_written() {
    simulate(async {
        let world = settled().await;
        let running = world.start();
        pass(180).await;
        let guest = world.api("guest01");
        let asked: Vec<_> = world
            .helm
            .asked()
            .into_iter()
            .map(|asked| (asked.release, asked.namespace, asked.action))
            .collect();
        let install =
            |name: &str, namespace: &str| (name.to_owned(), namespace.to_owned(), Some(HelmAction::Install));
        assert_eq!(
            asked,
            [install("rancher-fip-lb-controller", TARGET), install("purelb", "purelb")],
            "RF-57 RF-74 RF-77 RF-91"
        );
        let token = world.token().await.unwrap();
        assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "RF-133 {token}");
        let keys = ["apiUrl", "cluster", "clientSecret", "project", "floatingIPPool", "loadBalancerType"];
        let mut delivered = Vec::new();
        for key in keys {
            delivered.push(world.delivered("guest01", PROJECT_SECRET, key).await);
        }
        let want = ["https://fip.example.com/v1", GUEST, &token, "p-abcde", "harv01--vlan10", "purelb"];
        assert_eq!(delivered, want, "RF-91 RF-79 RF-133");
        assert_eq!(world.map("guest01").await, json!({"harv01--vlan10": "eth1"}), "RF-91");
        let namespace = get(&guest, &format!("/api/v1/namespaces/{TARGET}")).await.unwrap();
        assert_eq!(
            namespace["metadata"]["labels"]["rancher.k8s.binbash.org/project-name"], "p-abcde",
            "RF-115"
        );
        let restarted = world.restarted("guest01").await;
        assert!(restarted.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "RF-115 RFC 3339");
        // The Secret and the map were there when the controller was restarted.
        let order: Vec<_> =
            writes(&guest, 0).into_iter().filter(|line| !line.contains("sh.helm.release")).collect();
        let at = |text: &str| {
            order.iter().rposition(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {order:?}"))
        };
        let restart = at("patch deployments");
        assert!(
            at("create secrets rancher-fip-manager") < restart && at("create configmaps") < restart,
            "RF-121 {order:?}"
        );
        assert!(world.events().contains(&"FloatingIPsReady".to_owned()), "{:?}", world.events());

        let marks = (calls_so_far(&guest), calls_so_far(&world.local), calls_so_far(&world.api("harv01")));
        pass(4 * 3_600).await;
        assert_eq!(writes(&guest, marks.0), [""; 0], "RF-58 RF-116 RF-129 RF-136 law 4");
        assert_eq!(writes(&world.local, marks.1), [""; 0], "RF-136 law 4");
        assert_eq!(world.helm.asked(), [], "RF-58 RF-59");
        let calls = ours(&guest, marks.0).len() + ours(&world.api("harv01"), marks.2).len();
        assert!(calls <= 4 * 6 + 1, "one call in ten minutes: {calls}");
        assert!(calls >= 15, "but it is looked at: {calls}");

        // Heartbeats cost nothing.
        let mark = calls_so_far(&guest);
        for beat in 0..100 {
            let path = format!("/apis/management.cattle.io/v3/clusters/{GUEST}");
            world.send("PATCH", &path, Some(json!({"status": {"beat": beat}}))).await;
        }
        pass(30).await;
        assert_eq!((ours(&guest, mark).len(), world.helm.asked().len()), (0, 0), "RF-30");

        // A new process looks once at everything and changes nothing.
        drop(running);
        let mark = (calls_so_far(&guest), calls_so_far(&world.local));
        let _running = world.start();
        pass(120).await;
        assert!(!ours(&guest, mark.0).is_empty(), "RF-31 one run");
        assert_eq!((writes(&guest, mark.0), writes(&world.local, mark.1)), (vec![], vec![]), "RF-31");
        assert_eq!(world.drawn(), 1, "one token for ever");
    });
}

#[test]
fn every_change_converges() {
    simulate(async {
        let world = settled().await;
        let _running = world.start();
        pass(180).await;
        world.helm.asked();
        let guest = world.api("guest01");
        let token = world.token().await.unwrap();

        let restarted = world.restarted("guest01").await;
        world.configure(&[("RancherFipLBControllerChartVersion", "0.3.0")]).await;
        pass(120).await;
        let upgraded: Vec<_> =
            world.helm.asked().into_iter().map(|asked| (asked.release, asked.action)).collect();
        assert_eq!(
            upgraded,
            [("rancher-fip-lb-controller".to_owned(), Some(HelmAction::Upgrade))],
            "RF-19 RF-60"
        );
        assert_eq!(world.restarted("guest01").await, restarted, "RF-213 the upgrade keeps what is recorded");

        let restarted = world.restarted("guest01").await;
        world
            .configure(&[
                ("RancherFipLBControllerChartVersion", "0.3.0"),
                ("RancherFipApiServerURL", "https://new.example.com/v1"),
            ])
            .await;
        pass(120).await;
        assert_eq!(
            world.delivered("guest01", PROJECT_SECRET, "apiUrl").await,
            "https://new.example.com/v1",
            "RF-145"
        );
        let second = world.restarted("guest01").await;
        assert_ne!(second, restarted, "RF-123 RF-145");

        world.secret("rancher-fip-manager", "cacerts", json!({"ca.crt": data::encode("one")})).await;
        pass(120).await;
        assert_eq!(world.delivered("guest01", "cacerts", "ca.crt").await, "one", "RF-149");
        assert_ne!(world.restarted("guest01").await, second, "RF-123");
        let third = world.restarted("guest01").await;
        world.send("DELETE", "/api/v1/namespaces/rancher-fip-manager/secrets/cacerts", None).await;
        pass(1_300).await;
        assert_eq!(world.delivered("guest01", "cacerts", "ca.crt").await, "one", "RF-149 the copy stays");
        assert_eq!(world.restarted("guest01").await, third, "RF-123 an unchanged resync restarts nothing");
        assert!(world.events().contains(&"CAKeptDownstream".to_owned()));

        world.pool("more", "c-m-harv01", "vlan20", "eth2", false).await;
        pass(30).await;
        assert_eq!(
            world.map("guest01").await,
            json!({"harv01--vlan10": "eth1", "more": "eth2"}),
            "RF-127 RF-130"
        );
        world.send("DELETE", "/apis/rancher.k8s.binbash.org/v1beta2/floatingippools/more", None).await;
        pass(30).await;
        assert_eq!(world.map("guest01").await, json!({"harv01--vlan10": "eth1"}), "RF-127");

        // The local Secret is deleted: a new token, and downstream follows.
        world.send("DELETE", &format!("/api/v1/namespaces/c-m-harv01/secrets/{PROJECT_SECRET}"), None).await;
        pass(700).await;
        let new = world.token().await.unwrap();
        assert!(
            new != token && world.delivered("guest01", PROJECT_SECRET, "clientSecret").await == new,
            "RF-139"
        );
        assert_eq!(world.drawn(), 2, "RF-139");

        // Downstream drift is found when its turn comes.
        send(&guest, "DELETE", &format!("/api/v1/namespaces/{TARGET}/secrets/{PROJECT_SECRET}"), None).await;
        pass(6_600).await;
        assert_eq!(world.delivered("guest01", PROJECT_SECRET, "clientSecret").await, new, "RF-138 RF-140");
        assert_eq!(world.drawn(), 2, "RF-138 the same token");

        // Opting out leaves everything; opting in again changes nothing.
        world.label(GUEST, json!({"rancher-fip": null})).await;
        pass(30).await;
        assert!(world.events().contains(&"FloatingIPsOptedOut".to_owned()));
        assert_eq!(world.delivered("guest01", PROJECT_SECRET, "clientSecret").await, new, "RF-28");
        world.helm.asked();
        let mark = calls_so_far(&guest);
        world.label(GUEST, json!({"rancher-fip": "enabled"})).await;
        pass(60).await;
        assert!(!ours(&guest, mark).is_empty(), "RF-27 RF-29 a full run");
        assert_eq!((writes(&guest, mark), world.helm.asked()), (vec![], vec![]), "RF-29");
    });
}

#[test]
fn an_invalid_configuration_changes_nothing_until_it_is_corrected() {
    simulate(async {
        let world = settled().await;
        let running = world.start();
        pass(180).await;
        world.helm.asked();
        assert_eq!(running.replica.not_ready(), Ok(()), "RF-194");
        world
            .configure(&[("RancherFipLBControllerChartVersion", "9.9.9"), ("PureLBControllerValues", "- a")])
            .await;
        pass(120).await;
        assert_eq!(world.helm.asked(), [], "RF-16 RF-20");
        assert!(running.replica.not_ready().unwrap_err().contains("PureLBControllerValues"), "RF-194");
        world.configure(&[("RancherFipLBControllerChartVersion", "9.9.9")]).await;
        pass(120).await;
        assert_eq!(world.helm.asked().len(), 1, "RF-20");
        assert_eq!(running.replica.not_ready(), Ok(()), "RF-194");
    });
}

#[test]
fn two_guests_of_one_project_share_its_token() {
    simulate(async {
        let world = settled().await;
        world.guest("c-m-guest02", "guest02").await;
        let _running = world.start();
        pass(240).await;
        let token = world.token().await.unwrap();
        for (host, id) in [("guest01", GUEST), ("guest02", "c-m-guest02")] {
            assert_eq!(world.delivered(host, PROJECT_SECRET, "clientSecret").await, token, "RF-137 {host}");
            assert_eq!(world.delivered(host, PROJECT_SECRET, "cluster").await, id, "RF-137");
        }
        let all = world.local.objects("secrets");
        let here = all.iter().filter(|secret| secret["metadata"]["name"] == PROJECT_SECRET).count();
        assert_eq!(here, 1, "RF-137 RF-143 whoever is second uses the token of the first");
    });
}

#[test]
fn every_reason_has_a_name_of_its_own_and_says_what_to_do() {
    let mut names: Vec<_> = REASONS.iter().map(|reason| reason.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), REASONS.len());
    for reason in REASONS {
        let row = reason.row();
        assert!(row.when.ends_with('.') && row.advice.ends_with('.'), "{}", row.name);
        assert!(
            row.severity == Severity::Warning
                || row.advice.starts_with("Nothing")
                || row.advice.starts_with("Delete"),
            "{}",
            row.name
        );
    }
}
