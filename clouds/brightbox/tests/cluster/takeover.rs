//! What the replaced program has brought to rest stays exactly as it is, and it would find nothing to write afterwards.

use serde_json::{Value, json};

use crate::under_test::{APPLIED, Fixture, PREFIX, annotated};

/// What the replaced program was asked for.
struct Variant {
    case: &'static str,
    /// Annotations without their prefix.
    annotations: &'static [(&'static str, &'static str)],
    /// Port, node port, and what the listener speaks.
    ports: &'static [(u16, u16, &'static str)],
    local: bool,
    /// The name of the Cloud IP, where it was given.
    given: bool,
    nodes: usize,
    /// What differs in the load balancer from what the Service says, because the old program never wrote it.
    left: fn(&mut Value),
    acme_in_lists: bool,
}

const fn variant(case: &'static str) -> Variant {
    Variant {
        case,
        annotations: &[],
        ports: &[(80, 30080, "http")],
        local: false,
        given: false,
        nodes: 2,
        left: |_| {},
        acme_in_lists: false,
    }
}

fn variants() -> Vec<Variant> {
    let tcp: &[(u16, u16, &str)] = &[(80, 30080, "tcp")];
    let both: &[(u16, u16, &str)] = &[(443, 30443, "https"), (80, 30080, "http")];
    vec![
        variant("http"),
        Variant { annotations: &[("listener-protocol", "tcp")], ports: tcp, ..variant("tcp") },
        Variant { ports: both, ..variant("https, acme in the detail only") },
        Variant { ports: both, acme_in_lists: true, nodes: 1, ..variant("https, acme in lists") },
        Variant { local: true, ..variant("Local") },
        Variant {
            given: true,
            annotations: &[("cloudip-allocations", "")],
            ..variant("a Cloud IP of its own choice")
        },
        Variant { nodes: 5, ..variant("five nodes") },
        Variant { nodes: 1, ..variant("one node") },
        Variant { annotations: &[("policy", "round-robin")], ..variant("a policy") },
        Variant {
            annotations: &[("policy", "round-robin")],
            left: |body| body["policy"] = json!("least-connections"),
            ..variant("BB-182 a policy that was edited without effect")
        },
        Variant { annotations: &[("listener-idle-timeout", "60000")], ..variant("an idle time-out") },
        Variant {
            left: |body| body["listeners"][0]["timeout"] = json!(60_000),
            ..variant("an idle time-out that was removed without effect")
        },
        Variant {
            annotations: &[
                ("healthcheck-interval", "4000"),
                ("idle-timeout", "60000"),
                ("buffer-size", "4096"),
            ],
            left: |body| {
                body["listeners"][0]["timeout"] = json!(50_000);
                body["healthcheck"]["interval"] = json!(5_000);
            },
            ..variant("the vendor's sample")
        },
        Variant { annotations: &[("listener-proxy-protocol", "v2")], ..variant("proxy protocol") },
        Variant { annotations: &[("healthcheck-protocol", "tcp")], ..variant("a check over tcp") },
        Variant { annotations: &[("healthcheck-request", "/x")], ..variant("another path") },
        Variant {
            annotations: &[("healthcheck-request", "")],
            left: |body| body["healthcheck"]["request"] = json!("/healthz"),
            ..variant("no path")
        },
        Variant {
            annotations: &[
                ("healthcheck-timeout", "4000"),
                ("healthcheck-healthy-threshold", "4"),
                ("healthcheck-unhealthy-threshold", "5"),
            ],
            ..variant("check timing")
        },
        Variant {
            ports: both,
            annotations: &[("ssl-ports", "443, 80"), ("ssl-domains", "")],
            ..variant("BB-185 ssl-ports with blanks")
        },
        Variant {
            ports: both,
            annotations: &[("ssl-ports", "*"), ("ssl-domains", "")],
            ..variant("BB-185 ssl-ports with a star")
        },
        Variant {
            ports: &[(80, 30080, "http"), (8080, 30081, "http"), (9090, 30082, "http")],
            ..variant("three ports")
        },
    ]
}

/// A cluster that the replaced program has brought to rest, and that nobody looks after now.
async fn left_behind(variant: &Variant) -> Fixture {
    let fixture = Fixture::with_nodes(variant.nodes).await;
    fixture.pass(30).await;
    fixture.killer().abort();
    let cloud = &fixture.cloud.cloud;
    cloud.change_settings(|settings| settings.acme_in_lists = variant.acme_in_lists);
    let name = "web.default.test";
    let cloud_ip =
        cloud.seed("cloud_ips", &json!({"name": if variant.given { "theirs" } else { name }})).unwrap();
    let group = cloud.seed("server_groups", &json!({"name": name})).unwrap();
    let ids: Vec<String> = (1..=variant.nodes).rev().map(|number| format!("node-{number}")).collect();
    let members: Vec<_> = ids.iter().map(|id| json!({"server": id})).collect();
    cloud
        .back_door("POST", &format!("/1.0/server_groups/{group}/add_servers"), &json!({"servers": members}))
        .unwrap();
    let policy = cloud.seed("firewall_policies", &json!({"name": name, "server_group": group})).unwrap();
    let mut open: Vec<_> = variant.ports.iter().map(|(_, node, _)| node.to_string()).collect();
    if variant.local {
        open.push("31999".to_owned());
    }
    let rule = json!({"firewall_policy": policy, "protocol": "tcp", "source": "10.0.0.0/8", "destination_port": open.join(","), "description": name});
    cloud.seed("firewall_rules", &rule).unwrap();
    cloud.seed("firewall_rules", &json!({"firewall_policy": policy, "protocol": "tcp", "source": "any", "destination_port": "22", "description": "by hand"})).unwrap();
    let own = cloud.cloud_ips()[0].clone();
    let said = |key: &str| variant.annotations.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let https = variant.ports.iter().any(|(_, _, speaks)| *speaks == "https");
    let tcp = variant.ports[0].2 == "tcp" || said("healthcheck-protocol") == Some("tcp");
    let listeners: Vec<_> = variant
        .ports
        .iter()
        .map(|(port, node, speaks)| {
            let mut listener = json!({"protocol": speaks, "in": port, "out": node});
            if let Some(ms) = said("listener-idle-timeout") {
                listener["timeout"] = json!(ms.parse::<u32>().unwrap());
            }
            if let Some(version) = said("listener-proxy-protocol") {
                listener["proxy_protocol"] = json!(version);
            }
            listener
        })
        .collect();
    let path = said("healthcheck-request").filter(|path| !path.is_empty()).unwrap_or("/healthz");
    let mut body = json!({
        "name": name, "nodes": ids.iter().map(|id| json!({"node": id})).collect::<Vec<_>>(), "listeners": listeners,
        "healthcheck": {"type": if tcp { "tcp" } else { "http" }, "port": if variant.local { 31999 } else { variant.ports[0].1 },
                        "request": if tcp { "/" } else { path }},
        "https_redirect": https,
    });
    for (key, field) in [
        ("healthcheck-timeout", "timeout"),
        ("healthcheck-healthy-threshold", "threshold_up"),
        ("healthcheck-unhealthy-threshold", "threshold_down"),
    ] {
        if let Some(number) = said(key) {
            body["healthcheck"][field] = json!(number.parse::<u32>().unwrap());
        }
    }
    if let Some(word) = said("policy") {
        body["policy"] = json!(word);
    }
    if https {
        body["domains"] = json!([own.fqdn, own.reverse_dns]);
    }
    (variant.left)(&mut body);
    let balancer = cloud.seed("load_balancers", &body).unwrap();
    cloud
        .back_door("POST", &format!("/1.0/cloud_ips/{cloud_ip}/map"), &json!({"destination": balancer}))
        .unwrap();
    cloud.settle();
    let mut annotations: Vec<(&str, &str)> = variant.annotations.to_vec();
    annotations
        .iter_mut()
        .filter(|(key, _)| *key == "cloudip-allocations")
        .for_each(|(_, value)| *value = &cloud_ip);
    let mut service = annotated(&annotations);
    service["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    let port = |(port, node, _): &(u16, u16, &str)| json!({"name": format!("p{port}"), "port": port, "nodePort": node, "protocol": "TCP"});
    service["spec"] = json!({"ports": variant.ports.iter().map(port).collect::<Vec<_>>()});
    if variant.local {
        service["spec"]["externalTrafficPolicy"] = json!("Local");
        service["spec"]["healthCheckNodePort"] = json!(31999);
    }
    fixture.create("web", service).await;
    let names = [own.reverse_dns.unwrap(), own.fqdn];
    let ingress: Vec<_> = names.iter().map(|name| json!({"hostname": name})).collect();
    fixture
        .cluster
        .merge_status(
            &fixture.cluster.services(),
            "web",
            json!({"status": {"loadBalancer": {"ingress": ingress}}}),
        )
        .await;
    cloud.clear_journal();
    fixture
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_by_the_switch() {
    let variants = variants();
    assert!(variants.len() >= 20);
    for variant in &variants {
        let case = variant.case;
        let mut fixture = left_behind(variant).await;
        let (before, stock) = (fixture.service("web").await.unwrap(), fixture.cloud.cloud.resources());
        let kube = fixture.kube_calls();
        fixture.restart();
        fixture.pass(600).await;
        assert!(!fixture.cloud.calls().is_empty(), "BB-181 {case}: it was looked at");
        assert_eq!(fixture.cloud.changes(), [""; 0], "BB-181 {case}: {:?}", fixture.cluster.events("web"));
        let writes: Vec<_> =
            fixture.cluster.writes(kube).into_iter().filter(|call| call.resource == "services").collect();
        assert_eq!(writes, [], "BB-181 {case}");
        assert_eq!(fixture.service("web").await.unwrap(), before, "BB-181 {case}");
        // The way back: what the old program compares is what it left.
        assert_eq!(fixture.cloud.cloud.resources(), stock, "BB-184 {case}");
    }
    println!("{} variants", variants.len());
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_looked_after() {
    let variants = variants();
    let edited = variants.iter().find(|variant| variant.case.starts_with("BB-182")).unwrap();
    let mut fixture = left_behind(edited).await;
    fixture.restart();
    fixture.pass(60).await;
    let said = fixture.warnings("web");
    assert!(said.iter().any(|line| line.contains("policy")), "BB-182 it is reported {said:?}");
    fixture.annotate("web", &format!("{PREFIX}healthcheck-timeout"), json!("4000")).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.changes(), ["load_balancers.update"], "BB-182 one PUT carries it");
    let balancer = fixture.cloud.alive()[0].clone();
    assert_eq!((balancer.policy.as_str(), balancer.healthcheck.timeout), ("round-robin", 4_000), "BB-182");
    assert!(
        fixture.service("web").await.unwrap().annotations.contains_key(APPLIED),
        "BB-182 and it is recorded"
    );
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "BB-181");
}

#[tokio::test(start_paused = true)]
async fn a_failed_twin_and_a_rule_by_hand_stay() {
    let mut fixture = left_behind(&variant("twin")).await;
    let cloud = &fixture.cloud.cloud;
    let live = fixture.cloud.alive()[0].clone();
    cloud.edit(|resources| {
        let mut twin = live.clone();
        "lba-twin0".clone_into(&mut twin.id);
        "failed".clone_into(&mut twin.status);
        resources.balancers.insert(twin.id.clone(), twin);
    });
    fixture.restart();
    fixture.pass(300).await;
    assert_eq!(fixture.cloud.changes(), [""; 0], "BB-183 {:?}", fixture.cluster.events("web"));
    assert_eq!(fixture.cloud.cloud.resources().balancers.len(), 2, "BB-183");
}
