//! What the other scenarios rely on: servers and connections, without any program of ours.

use std::sync::Arc;

use cloudberth_e2e::{Cluster, Request, eventually};
use http::Method;
use serde_json::{Value, json};

use crate::Outcome;
use crate::fixture::SOON;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }] } })
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) async fn kubectl_creates_and_describes_a_service(cluster: &Cluster) -> Outcome {
    let made = cluster.kubectl(&["create", "service", "loadbalancer", "web", "--tcp=80:8080"]).await?;
    assert_eq!(made.stdout, "service/web created\n", "{}", made.stderr);
    let web = cluster.get(&format!("{SERVICES}/web")).await?;
    cluster
        .create(
            "/api/v1/namespaces/default/events",
            &json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "web.1" }, "type": "Normal",
                "involvedObject": { "kind": "Service", "namespace": "default", "name": "web",
                    "uid": text(&web, "/metadata/uid") },
                "reason": "EnsuredLoadBalancer", "message": "Ensured load balancer", "count": 1,
                "source": { "component": "service-controller" },
                "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z" }),
        )
        .await?;
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } } });
    cluster.patch(&format!("{SERVICES}/web/status"), &status).await?;
    let shown = cluster.kubectl(&["describe", "service", "web"]).await?;
    let lines: Vec<String> =
        shown.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for want in ["Type: LoadBalancer", "LoadBalancer Ingress: 192.0.2.7 (VIP)", "Port: 80-8080 80/TCP"] {
        assert!(lines.iter().any(|line| line == want), "{want:?} is not in\n{}", shown.stdout);
    }
    let event = |line: &String| {
        line.starts_with("Normal EnsuredLoadBalancer") && line.ends_with("Ensured load balancer")
    };
    assert!(lines.iter().any(event), "{}", shown.stdout);
    Ok(())
}

pub(crate) async fn a_dropped_watch_resumes_where_it_was(cluster: &Cluster) -> Outcome {
    let client = cluster.proxied_admin()?;
    let listed = cluster.get(SERVICES).await?;
    let from = |version: &str| Request::get(format!("{SERVICES}?watch=true&resourceVersion={version}"));
    let version = text(&listed, "/metadata/resourceVersion").to_owned();
    let mut watch = client.watch(&from(&version)).await?.expect("a watch");
    cluster.create(SERVICES, &service("before")).await?;
    let event = watch.next(SOON).await?.expect("an event");
    assert_eq!((text(&event, "/type"), text(&event, "/object/metadata/name")), ("ADDED", "before"));
    let version = text(&event, "/object/metadata/resourceVersion").to_owned();

    cluster.cut();
    let ended = watch.next(SOON).await;
    assert!(!matches!(ended, Ok(Some(_))), "cut off, it said {ended:?}");
    cluster.create(SERVICES, &service("meanwhile")).await?;
    let mut watch = client.watch(&from(&version)).await?.expect("a watch");
    let event = watch.next(SOON).await?.expect("an event");
    assert_eq!((text(&event, "/type"), text(&event, "/object/metadata/name")), ("ADDED", "meanwhile"));
    Ok(())
}

pub(crate) async fn an_api_server_that_was_killed_comes_back_with_everything(cluster: &Cluster) -> Outcome {
    let client = cluster.proxied_admin()?;
    let made = cluster.create(SERVICES, &service("web")).await?;
    let version = text(&made, "/metadata/resourceVersion");
    let watch = Request::get(format!("{SERVICES}?watch=true&resourceVersion={version}"));
    let mut watch = client.watch(&watch).await?.expect("a watch");

    cluster.stop_api();
    let ended = watch.next(SOON).await;
    assert!(!matches!(ended, Ok(Some(_))), "without a server, it said {ended:?}");
    assert!(client.send(&Request::get(SERVICES)).await.is_err(), "somebody answered");

    cluster.start_api().await?;
    let web = eventually(SOON, "the service is back", async || {
        let answer = client.send(&Request::get(format!("{SERVICES}/web"))).await;
        answer.map_err(|why| why.to_string()).and_then(|answer| match answer.status {
            200 => Ok(answer.json()),
            status => Err(format!("{status} {}", answer.json())),
        })
    })
    .await?;
    assert_eq!(web, made, "not the one that was stored");
    let listed = cluster.get(SERVICES).await?;
    let version = text(&listed, "/metadata/resourceVersion");
    let watch = Request::get(format!("{SERVICES}?watch=true&resourceVersion={version}"));
    let mut watch = client.watch(&watch).await?.expect("a watch");
    cluster.delete(&format!("{SERVICES}/web")).await?;
    let event = watch.next(SOON).await?.expect("an event");
    assert_eq!((text(&event, "/type"), text(&event, "/object/metadata/name")), ("DELETED", "web"));
    Ok(())
}

pub(crate) async fn a_closed_proxy_hides_a_server_that_runs(cluster: &Cluster) -> Outcome {
    let client = cluster.proxied_admin()?;
    let ask = Request::get("/api/v1/nodes");
    assert_eq!(client.send(&ask).await?.status, 200);
    cluster.close_proxy();
    assert!(client.send(&ask).await.is_err(), "the proxy is not closed");
    cluster.get("/api/v1/nodes").await?;
    cluster.open_proxy();
    assert_eq!(client.send(&ask).await?.status, 200);
    Ok(())
}

const WRITERS: u32 = 6;
const WRITES: u32 = 8;

pub(crate) async fn a_storm_of_conflicts_loses_no_write(cluster: &Cluster) -> Outcome {
    let node = json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "n1", "annotations": { "count": "0" } } });
    cluster.create("/api/v1/nodes", &node).await?;
    let mut writers = tokio::task::JoinSet::new();
    let all_have_read = Arc::new(tokio::sync::Barrier::new(WRITERS as usize));
    for _ in 0..WRITERS {
        let (client, all_have_read) = (cluster.admin().clone(), Arc::clone(&all_have_read));
        writers.spawn(async move {
            let (mut done, mut refused, mut first) = (0, 0_usize, true);
            while done < WRITES {
                let mut node = client.send(&Request::get("/api/v1/nodes/n1")).await.unwrap().json();
                // So that they conflict, however slowly they start.
                if std::mem::take(&mut first) {
                    all_have_read.wait().await;
                }
                let count: u32 = text(&node, "/metadata/annotations/count").parse().unwrap();
                node["metadata"]["annotations"]["count"] = json!((count + 1).to_string());
                let put = Request::new(Method::PUT, "/api/v1/nodes/n1").json(&node);
                match client.send(&put).await.unwrap().status {
                    200 => done += 1,
                    409 => refused += 1,
                    status => panic!("PUT answered {status}"),
                }
            }
            refused
        });
    }
    let refused: usize = writers.join_all().await.into_iter().sum();
    assert!(refused > 0, "there was no conflict");
    let node = cluster.get("/api/v1/nodes/n1").await?;
    assert_eq!(text(&node, "/metadata/annotations/count"), (WRITERS * WRITES).to_string());
    eventually(SOON, "the log has as many conflicts as the writers saw", async || {
        let rows = cluster.calls();
        let found = rows.iter().filter(|row| row.verb == "update" && row.name == "n1" && row.status == 409);
        let found = found.count();
        if found == refused { Ok(()) } else { Err(format!("{found} instead of {refused}")) }
    })
    .await?;
    Ok(())
}
