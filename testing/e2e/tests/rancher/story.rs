//! What happens to the manager, from its first start to its end.

use cloudberth_e2e::{Chart, ClusterKind, throughout};
use serde_json::{Value, json};

use crate::objects::{APP, FIP, MANAGEMENT, address, pool, secret};
use crate::plans::{plan, the_rules_about_balancers_are_planned, there_is_nothing_to_plan};
use crate::world::{LB, PATIENCE, STALE, World};

const MAP: &str = "/api/v1/namespaces/rancher-fip-manager/configmaps/network-interface-mappings";
const THEIRS: &str = "/api/v1/namespaces/rancher-fip-manager/secrets/rancher-fip-config-p-abcde";
const OURS: &str = "/api/v1/namespaces/c-m-harv01/secrets/rancher-fip-config-p-abcde";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/rancher-fip-manager/deployments/rancher-fip-lb-controller";
const CA: &str = "/api/v1/namespaces/rancher-fip-manager/secrets/cacerts";

pub(crate) async fn tell(kind: ClusterKind) {
    let mut world = World::begin(kind).await;
    the_rules_about_balancers_are_planned(&world).await;
    the_fixture_reaches_its_end_state(&mut world).await;
    a_second_pass_writes_nothing(&mut world).await;
    there_is_nothing_to_plan(&world).await;
    what_changes_is_followed(&mut world).await;
    balancers_are_not_mixed(&world).await;
    without_its_lease_it_ends_and_takes_helm_along(&mut world).await;
    killed_in_the_middle_of_an_upgrade_it_heals(&mut world).await;
    a_cluster_that_is_gone_lets_go_of_its_addresses(&world).await;
    it_ends_when_told_to(world).await;
}

async fn the_fixture_reaches_its_end_state(world: &mut World) {
    // Nothing is touched before there is a configuration.
    world.configure(&[]).await;
    world.until_release("RF-91 the controller's release", LB, |_, status| status == "deployed").await;
    world.until_release("RF-79 the balancer's release", "purelb", |_, status| status == "deployed").await;
    let theirs = world.until(&world.guest, "RF-91 the secret downstream", THEIRS, |_| true).await;
    let ours = world.until(&world.local, "RF-91 the local secret", OURS, |_| true).await;
    let token = text(&ours, "clientSecret");
    assert!(
        token.len() == 32 && token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
        "RF-133"
    );
    assert_eq!(text(&ours, "project"), "p-abcde", "RF-91");
    for (key, want) in [
        ("apiUrl", "https://fip-api.example.com/v1"),
        ("cluster", "c-m-guest01"),
        ("clientSecret", &token),
        ("project", "p-abcde"),
        ("floatingIPPool", "harv01--vlan10"),
        ("loadBalancerType", "purelb"),
    ] {
        assert_eq!(text(&theirs, key), want, "RF-91 RF-18 {key}");
    }
    let map = world.until(&world.guest, "RF-91 the interface map", MAP, |_| true).await;
    assert_eq!(map["data"], json!({"harv01--vlan10": "eth1"}), "RF-91 RF-124");
    let path = format!("/api/v1/namespaces/{APP}");
    let labelled = |namespace: &Value| {
        namespace["metadata"]["labels"]["rancher.k8s.binbash.org/project-name"] == "p-abcde"
    };
    world.until(&world.guest, "RF-115 the label of the namespace", &path, labelled).await;
    assert!(world.release("metallb").await.is_none(), "RF-79 one balancer only");
}

/// A new process looks at everything once, and has nothing to do.
async fn a_second_pass_writes_nothing(world: &mut World) {
    rest(world).await;
    let before = world.writes().await;
    let reads = world.guest.settled_calls_of(&world.downstream.user).await.unwrap().len();
    world.manager.terminate();
    assert_eq!(world.manager.ends(PATIENCE).await.unwrap(), 0, "RF-191");
    world.manager.restart().unwrap();
    let looked = async || {
        let now = world.guest.settled_calls_of(&world.downstream.user).await.unwrap().len();
        if now > reads + 3 { Ok(()) } else { Err(format!("{} calls", now - reads)) }
    };
    let looked = cloudberth_e2e::eventually(PATIENCE, "a new process looks at the guest", looked).await;
    looked.unwrap_or_else(|why| panic!("{why}\n{}", world.log_tail()));
    rest(world).await;
    assert_eq!(world.writes().await, before, "RF-31 RF-136 law 4");
}

/// Waits until the manager has written nothing for a few seconds, in which it looked at everything again.
async fn rest(world: &World) {
    let settled = async || {
        let before = world.writes().await;
        tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        let after = world.writes().await;
        if before == after { Ok(()) } else { Err(format!("{:?}", after.1.last())) }
    };
    cloudberth_e2e::eventually(PATIENCE, "the manager rests", settled).await.unwrap();
}

async fn what_changes_is_followed(world: &mut World) {
    // The configuration.
    let first = world.release(LB).await.unwrap().0;
    world
        .configure(&[
            ("RancherFipLBControllerChartVersion", "0.2.0"),
            ("RancherFipLBControllerValues", "greeting: moin\n"),
        ])
        .await;
    world
        .until_release("RF-19 the controller is upgraded", LB, |revision, status| {
            revision > first && status == "deployed"
        })
        .await;
    let settings = format!("/api/v1/namespaces/{APP}/configmaps/{LB}");
    let data =
        world.until(&world.guest, "the chart", &settings, |map| map["data"]["version"] == "0.2.0").await;
    assert_eq!(data["data"]["greeting"], "moin", "RF-61");
    world.configure(&[("RancherFipApiServerURL", "https://other.example.com/v1")]).await;
    let moved = |secret: &Value| text(secret, "apiUrl") == "https://other.example.com/v1";
    world.until(&world.guest, "RF-145 the address of the API", THEIRS, moved).await;
    rest(world).await;

    // The CA.
    let restarted = restarts(world).await;
    let ca = |text: &str| secret("cacerts", &[("ca.crt", text)]);
    world.local.create(&format!("/api/v1/namespaces/{APP}/secrets"), &ca("first")).await.unwrap();
    world.until(&world.guest, "RF-149 the CA", CA, |secret| text(secret, "ca.crt") == "first").await;
    let again = |deployment: &Value| restart(deployment) != restarted;
    world.until(&world.guest, "RF-123 a restart", DEPLOYMENT, again).await;
    world.local.patch(CA, &ca("second")).await.unwrap();
    world.until(&world.guest, "RF-149 another CA", CA, |secret| text(secret, "ca.crt") == "second").await;
    rest(world).await;

    // The token.
    let token = text(&world.local.get(OURS).await.unwrap(), "clientSecret");
    world.guest.delete(THEIRS).await.unwrap();
    let same = |secret: &Value| text(secret, "clientSecret") == token;
    world.until(&world.guest, "RF-138 the secret is back, with the same token", THEIRS, same).await;
    world.guest.patch(THEIRS, &json!({"stringData": {"clientSecret": "edited"}})).await.unwrap();
    world.until(&world.guest, "RF-140 an edited token is repaired", THEIRS, same).await;
    rest(world).await;
    let restarted = restarts(world).await;
    world.local.delete(OURS).await.unwrap();
    let fresh =
        |secret: &Value| text(secret, "clientSecret") != token && !text(secret, "clientSecret").is_empty();
    let ours = world.until(&world.local, "RF-139 a new token", OURS, fresh).await;
    let follows = |secret: &Value| text(secret, "clientSecret") == text(&ours, "clientSecret");
    world.until(&world.guest, "RF-139 it arrives downstream", THEIRS, follows).await;
    world
        .until(&world.guest, "RF-139 a restart", DEPLOYMENT, |deployment| restart(deployment) != restarted)
        .await;

    // Pools.
    let pools = format!("{FIP}/floatingippools");
    let change = json!({"spec": {"targetNetworkInterface": "eth7"}});
    world.local.patch(&format!("{pools}/harv01--vlan10"), &change).await.unwrap();
    world
        .until(&world.guest, "RF-127 the interface", MAP, |map| map["data"]["harv01--vlan10"] == "eth7")
        .await;
    world.local.create(&pools, &pool("harv01--vlan20", "harv01", "vlan20", "eth2")).await.unwrap();
    world
        .until(&world.guest, "RF-127 another pool", MAP, |map| map["data"]["harv01--vlan20"] == "eth2")
        .await;

    // What people change by hand.
    let path = format!("/api/v1/namespaces/{APP}");
    let label = "rancher.k8s.binbash.org/project-name";
    let other = json!({"metadata": {"labels": {label: "p-other", "mine": "kept"}}});
    world.guest.patch(&path, &other).await.unwrap();
    let back = |namespace: &Value| namespace["metadata"]["labels"][label] == "p-abcde";
    let namespace = world.until(&world.guest, "RF-117 the label", &path, back).await;
    assert_eq!(namespace["metadata"]["labels"]["mine"], "kept", "RF-118");
    rest(world).await;
}

/// When the pods of the controller were last told to restart.
async fn restarts(world: &World) -> String {
    restart(&world.guest.get(DEPLOYMENT).await.unwrap())
}

fn restart(deployment: &Value) -> String {
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    annotations["rancher.k8s.binbash.org/lb-controller-restarted-at"].as_str().unwrap_or_default().to_owned()
}

async fn balancers_are_not_mixed(world: &World) {
    let balancer = world.release("purelb").await;
    world.label(&json!({"rancher-fip-lbtype": "metallb"})).await;
    let calm = async || match world.release("metallb").await {
        None => Ok(()),
        found => Err(format!("RF-85 {found:?}")),
    };
    throughout(std::time::Duration::from_secs(6), "no second balancer", calm).await.unwrap();
    assert_eq!(world.release("purelb").await, balancer, "RF-85 untouched");
    let kept = text(&world.guest.get(THEIRS).await.unwrap(), "loadBalancerType");
    assert_eq!(kept, "purelb", "RF-85 the installed one");

    // Somebody uninstalls it.
    let path = format!("/api/v1/namespaces/{APP}/secrets?labelSelector=owner%3Dhelm,name%3Dpurelb");
    for record in world.guest.get(&path).await.unwrap()["items"].as_array().unwrap() {
        let name = record["metadata"]["name"].as_str().unwrap();
        world.guest.delete(&format!("/api/v1/namespaces/{APP}/secrets/{name}")).await.unwrap();
    }
    world.until_release("RF-88 the other one follows", "metallb", |_, status| status == "deployed").await;
    let follows = |secret: &Value| text(secret, "loadBalancerType") == "metallb";
    world.until(&world.guest, "RF-80 the secret says so", THEIRS, follows).await;
    let installed = world.release("metallb").await;
    world.label(&json!({"rancher-fip-lbtype": "purelb"})).await;
    let (code, said, _) = plan(world, APP, "text").await;
    assert!(
        code == 0 && said.contains("  ! LoadBalancerConflict: purelb is to be installed, but metallb is"),
        "RF-86 {said}"
    );
    let calm = async || match world.release("purelb").await {
        None => Ok(()),
        found => Err(format!("RF-86 {found:?}")),
    };
    throughout(std::time::Duration::from_secs(3), "no second balancer by name either", calm).await.unwrap();
    let kept = text(&world.guest.get(THEIRS).await.unwrap(), "loadBalancerType");
    assert_eq!((kept.as_str(), world.release("metallb").await), ("metallb", installed), "RF-86");
    world.label(&json!({"rancher-fip-lbtype": null})).await;
    rest(world).await;
    assert!(world.release("purelb").await.is_none(), "RF-87 it stays with what is there");
}

/// The management cluster falls silent while Helm waits.
async fn without_its_lease_it_ends_and_takes_helm_along(world: &mut World) {
    world.oci.publish(Chart::new(LB, "0.3.0").with_deployment().that_hangs());
    world.oci.publish(Chart::new(LB, "0.4.0").with_deployment());
    world.configure(&[("RancherFipLBControllerChartVersion", "0.3.0")]).await;
    let pod = format!("/api/v1/namespaces/{APP}/pods/{LB}");
    world.until(&world.guest, "an upgrade that hangs", &pod, |_| true).await;
    world.local.hold_proxy();
    assert_eq!(world.manager.ends(PATIENCE).await.unwrap(), 1, "RF-189");
    assert_eq!(world.helm_processes(), Vec::<u32>::new(), "RF-189 nothing writes without a Lease");
    println!("without a Lease the release was left {}", world.release(LB).await.unwrap().1);
    world.local.open_proxy();
}

async fn killed_in_the_middle_of_an_upgrade_it_heals(world: &mut World) {
    let before = world.release(LB).await.unwrap().0;
    world.manager.restart().unwrap();
    let under_way = |revision, status: &str| revision > before && status == "pending-upgrade";
    world.until_release("it is tried again", LB, under_way).await;
    world.kill();
    assert_eq!(world.release(LB).await.unwrap().1, "pending-upgrade");

    world.configure(&[("RancherFipLBControllerChartVersion", "0.4.0")]).await;
    let killed = tokio::time::Instant::now();
    world.switch_role().await;
    world.manager.restart().unwrap();
    world.until_release("RF-68 it heals", LB, |_, status| status == "deployed").await;
    let settings = format!("/api/v1/namespaces/{APP}/configmaps/{LB}");
    world
        .until(&world.guest, "RF-68 the new chart", &settings, |map| map["data"]["version"] == "0.4.0")
        .await;
    println!("healed {:?} after the kill; stale after {STALE:?}", killed.elapsed());
    rest(world).await;
}

async fn a_cluster_that_is_gone_lets_go_of_its_addresses(world: &World) {
    let addresses = format!("{FIP}/namespaces/fleet-default/floatingips");
    for (name, cluster) in [("one", "c-m-guest01"), ("two", "c-m-guest01"), ("other", "c-m-harv01")] {
        world.local.create(&addresses, &address(name, cluster)).await.unwrap();
    }
    let assigned = json!({"status": {"assigned": {"clusterName": "c-m-guest01", "floatingIPGroup": "g",
        "services": [{"serviceNamespace": "shop", "serviceName": "web"}]}}});
    let status = world.local.patch(&format!("{addresses}/one/status"), &assigned).await.unwrap();
    world.local.delete(&format!("{MANAGEMENT}/clusters/c-m-guest01")).await.unwrap();
    for name in ["one", "two"] {
        let free = |address: &Value| {
            address["metadata"]["labels"]
                == json!({"rancher.k8s.binbash.org/project-name": "p-abcde", "mine": "kept"})
        };
        let what = format!("RF-172 RF-173 RF-174 {name} is released");
        world.until(&world.local, &what, &format!("{addresses}/{name}"), free).await;
    }
    let one = world.local.get(&format!("{addresses}/one")).await.unwrap();
    assert_eq!(one["status"], status["status"], "RF-176");
    let other = world.local.get(&format!("{addresses}/other")).await.unwrap();
    assert_eq!(other["metadata"]["labels"]["rancher.k8s.binbash.org/cluster-name"], "c-m-harv01", "RF-172");
    world.local.get(OURS).await.expect("RF-184 the secret of the project stays");
}

async fn it_ends_when_told_to(mut world: World) {
    let token = text(&world.local.get(OURS).await.unwrap(), "clientSecret");
    world.manager.terminate();
    assert_eq!(world.manager.ends(PATIENCE).await.unwrap(), 0, "RF-191");
    let log = world.manager.whole_log().join("\n");
    let ours = world.accounts.iter().map(|account| account.token.as_str());
    for hidden in ours.chain([token.as_str(), world.downstream.token.as_str()]) {
        assert!(!log.contains(hidden), "RF-152 a secret is in the log");
    }
    assert!(!log.contains("panicked"), "{log}");
    let refused = world.calls().await.into_iter().map(|mut rows| {
        rows.retain(|row| row.status == 403);
        rows
    });
    let [mut go, ours] = <[_; 2]>::try_from(refused.collect::<Vec<_>>()).unwrap();
    go.retain(|row| row.resource != "events");
    assert!(go.is_empty(), "RF-192 the Go program's role was not enough: {go:?}");
    assert!(ours.is_empty(), "RF-193 our role was not enough: {ours:?}");
    let lease =
        "/apis/coordination.k8s.io/v1/namespaces/rancher-fip-manager/leases/rancher-fip-cluster-manager-lock";
    let lease = world.local.get(lease).await.unwrap();
    assert_eq!(lease["spec"]["holderIdentity"].as_str().unwrap_or_default(), "", "RF-187");
    drop(world);
}

/// A value of a Secret.
fn text(secret: &Value, key: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let value = secret["data"][key].as_str().unwrap_or_default();
    String::from_utf8(STANDARD.decode(value).unwrap()).unwrap()
}
