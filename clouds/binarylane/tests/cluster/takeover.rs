//! A cluster that one of the replaced programs has brought to rest stays as it is: nothing is changed in the cloud.
//!
//! What is there is built from the names, defaults and bodies of those programs, without a line of the planner.

use serde_json::{Value, json};

use crate::fixture::{FINALIZER, Fixture, ID, Setup, annotated, ports};
use binarylane_sim::RouteEntry;
use sim_kit::merge;

/// What the program of the seed leaves for a Service: a load balancer of its name, whose id stands nowhere.
struct Variant {
    case: &'static str,
    service: Value,
    /// The body of its creation, without name and servers.
    body: Value,
    /// What it called the load balancer.
    name: &'static str,
    /// Whether somebody wrote the id on the Service by hand, so that updates worked.
    recorded: bool,
}

fn variants() -> Vec<Variant> {
    let rules = |words: &[&str]| words.iter().map(|word| json!({"entry_protocol": word})).collect::<Value>();
    let body = |words: &[&str], protocol: &str, path: &str, region: Option<&str>| json!({"forwarding_rules": rules(words), "health_check": {"protocol": protocol, "path": path}, "region": region});
    let name = "k8s-test-default-web";
    vec![
        Variant {
            case: "plain",
            service: json!({}),
            body: body(&["http"], "http", "/", None),
            name,
            recorded: false,
        },
        Variant {
            case: "regional",
            service: json!({}),
            body: body(&["http"], "http", "/", Some("bne")),
            name,
            recorded: false,
        },
        Variant {
            case: "recorded by hand",
            service: json!({}),
            body: body(&["http"], "http", "/", None),
            name,
            recorded: true,
        },
        Variant {
            case: "another spelling of the cluster",
            service: json!({}),
            body: body(&["http"], "http", "/", None),
            name: "k8s-Test-default-web",
            recorded: false,
        },
        Variant {
            case: "a path in the old spelling",
            service: annotated(&[("healthcheck-path", json!("/up"))]),
            body: body(&["http"], "http", "/up", None),
            name,
            recorded: false,
        },
        Variant {
            case: "https",
            service: {
                let mut service =
                    annotated(&[("protocol", json!("https")), ("healthcheck-protocol", json!("http"))]);
                merge(&mut service, ports(&[443]));
                service
            },
            body: body(&["https"], "http", "/", None),
            name,
            recorded: false,
        },
        Variant {
            case: "a port that it never forwarded",
            service: ports(&[5432]),
            body: body(&["http"], "http", "/", None),
            name,
            recorded: false,
        },
    ]
}

async fn left_behind(variant: &Variant) -> Fixture {
    let fixture = Fixture::new();
    fixture.killer().abort();
    let servers = fixture.nodes(2).await;
    let mut body = variant.body.clone();
    merge(&mut body, json!({"name": variant.name, "server_ids": servers}));
    let id = fixture.cloud.seed("load_balancers", &body).unwrap();
    let ip = fixture.cloud.balancer(id).unwrap().ip.unwrap().to_string();
    let mut service = variant.service.clone();
    merge(&mut service, json!({"metadata": {"finalizers": [FINALIZER]}}));
    if variant.recorded {
        merge(&mut service, json!({"metadata": {"annotations": {ID: id.to_string()}}}));
    }
    fixture.create("web", service).await;
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}});
    fixture.cluster.merge_status(&fixture.cluster.services(), "web", status).await;
    fixture.cloud.clear_journal();
    fixture
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_in_the_cloud_by_the_switch() {
    let variants = variants();
    for variant in &variants {
        let case = variant.case;
        let mut fixture = left_behind(variant).await;
        let (balancers, before) = (fixture.cloud.balancers(), fixture.get("web").await);
        fixture.restart();
        fixture.pass(900).await;
        assert!(!fixture.cloud.journal().is_empty(), "{case}: it was looked at");
        assert_eq!(fixture.changes(), [""; 0], "BL-139 L4-1604 {case}: {:?}", fixture.cluster.events("web"));
        assert_eq!(fixture.cloud.balancers(), balancers, "{case}");
        let after = fixture.get("web").await;
        assert_eq!(after.ingress.len(), 1, "{case}");
        assert_eq!(after.ingress[0].ip, before.ingress[0].ip, "{case}");
        // The id is all that is written: with it the replaced program finds the load balancer again, which is the way back.
        let mut expected = before.annotations.clone();
        expected.insert(ID.to_owned(), balancers[0].id.to_string());
        assert_eq!(after.annotations, expected, "{case}");
        fixture.assert_quiet(900, case).await;
    }
    println!("{} variants", variants.len());
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_looked_after() {
    let mut fixture = left_behind(&variants()[0]).await;
    fixture.restart();
    fixture.pass(30).await;
    fixture.node("node-03").await;
    fixture.pass(30).await;
    assert_eq!(fixture.changes(), ["load_balancers.add_servers"], "a node that joins costs one call");
    fixture.delete("web").await;
    fixture.pass(30).await;
    assert!(fixture.cloud.balancers().is_empty() && fixture.is_gone("web").await);
}

#[tokio::test(start_paused = true)]
async fn nodes_and_routes_of_the_later_program_stay() {
    let mut fixture = Fixture::with(Setup { routes: true, ..Setup::default() }, |_| {});
    fixture.killer().abort();
    let mut entries = Vec::new();
    for number in 1..=3 {
        let name = format!("test-worker-{number}");
        let server = fixture.cloud.add_server(&name, "bne");
        let cidr = format!("10.244.{number}.0/24");
        entries.push(RouteEntry {
            router: server.private_address().unwrap().to_string(),
            destination: cidr.clone(),
            description: Some(format!("Kubernetes route for node {name}")),
        });
        let labels: Value = [
            ("node.kubernetes.io/instance-type", server.size.as_str()),
            ("beta.kubernetes.io/instance-type", &server.size),
            ("topology.kubernetes.io/region", "bne"),
            ("topology.kubernetes.io/zone", "bne"),
            ("failure-domain.beta.kubernetes.io/region", "bne"),
            ("failure-domain.beta.kubernetes.io/zone", "bne"),
            ("binarylane.com/host", &server.host),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
        let spec =
            json!({"providerID": format!("binarylane://{}", server.id), "podCIDR": cidr, "podCIDRs": [cidr]});
        let body = json!({"metadata": {"labels": labels}, "spec": spec});
        fixture.cluster.create(&fixture.cluster.nodes(), "Node", &name, body).await;
        let address = |kind: &str, text: String| json!({"type": kind, "address": text});
        let status = json!({"addresses": [
            address("Hostname", name.clone()),
            address("ExternalIP", server.public_address().unwrap().to_string()),
            address("InternalIP", server.private_address().unwrap().to_string()),
            address("ExternalIP", server.v6[0].to_string()),
        ], "conditions": [
            {"type": "Ready", "status": "True", "reason": "Test"},
            {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated", "message": "RouteController created a route"},
        ]});
        fixture.cluster.merge_status(&fixture.cluster.nodes(), &name, json!({"status": status})).await;
    }
    let vpc = fixture.cloud.first_vpc();
    fixture.cloud.edit(|all| all.vpcs.get_mut(&vpc).unwrap().route_entries.clone_from(&entries));
    fixture.restart();
    let kube = fixture.kube_calls();
    fixture.pass(900).await;
    assert!(fixture.tally().count("vpcs.get") > 0, "it was looked at");
    assert_eq!(fixture.changes(), [""; 0], "BL-145 L4-1605");
    assert_eq!(fixture.routes(), entries, "BL-145");
    assert_eq!(fixture.cluster.writes(kube), [], "L4-1605");
}
