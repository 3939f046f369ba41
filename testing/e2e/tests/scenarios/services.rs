//! Services of type `LoadBalancer`, from creation to deletion.

use std::time::Duration;

use cloudberth_e2e::{Cluster, eventually, throughout};
use serde_json::{Value, json};

use crate::clouds::cloudscale::{CREATION, NODE_SELECTOR};
use crate::fixture::{Fixture, SOON, is_served, text};
use crate::simulated_cloud::{Balancer, SimulatedCloud};
use crate::{Fallible, Outcome};

pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";
pub(crate) const WEB: &str = "/api/v1/namespaces/default/services/web";
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Long enough to see an action that should not happen.
pub(crate) const A_WHILE: Duration = Duration::from_secs(2);

/// A Service called `web` with these ports.
pub(crate) fn web(ports: &[u16]) -> Value {
    service("web", ports)
}

pub(crate) fn service(name: &str, ports: &[u16]) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": { "type": "LoadBalancer", "selector": { "app": "web" }, "ports": list(ports) } })
}

fn list(ports: &[u16]) -> Value {
    let port = |port: &u16| json!({ "name": format!("p{port}"), "port": port, "protocol": "TCP" });
    ports.iter().map(port).collect()
}

impl<C> Fixture<'_, C> {
    pub(crate) async fn nodes_join(&self, names: &[&str]) -> Outcome {
        for name in names {
            self.join(name, json!({})).await?;
        }
        for name in names {
            self.initialised(name).await?;
        }
        Ok(())
    }
}

impl<C: SimulatedCloud> Fixture<'_, C> {
    /// Waits until there is one load balancer, and it [serves](is_served) the Service `web`.
    pub(crate) async fn serves(&self, ports: &[u16], instances: &[&str]) -> Fallible<Balancer> {
        is_served(self.cluster, WEB, &self.cloud, ports, instances).await
    }

    /// Waits until no load balancer is left, and the Service, if it still exists, shows no trace of one.
    pub(crate) async fn serves_nothing(&self) -> Outcome {
        eventually(SOON, "no load balancer is left", async || {
            let all = self.cluster.get(SERVICES).await.map_err(|why| why.to_string())?;
            let items = all["items"].as_array().unwrap();
            let service = items.iter().find(|one| text(one, "/metadata/name") == "web");
            let held = service.is_some_and(|one| one.to_string().contains(FINALIZER));
            let shown = service.is_some_and(|one| one["status"]["loadBalancer"]["ingress"].is_array());
            let left = self.cloud.balancers();
            if left.is_empty() && !held && !shown { Ok(()) } else { Err(format!("{left:?} {service:?}")) }
        })
        .await?;
        Ok(())
    }
}

pub(crate) async fn a_service_follows_its_ports_and_its_nodes(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two", "three"]).await?;
    let manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one", "two"]).await?;

    let made = cluster.create(SERVICES, &web(&[80])).await?;
    let first = fixture.serves(&[80], &["one", "two"]).await?;
    let told = ["EnsuringLoadBalancer: Ensuring load balancer", "EnsuredLoadBalancer: Ensured load balancer"];
    fixture.has_events("Service", "web", &told).await?;
    let service = cluster.get(WEB).await?;
    assert_eq!(service["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(service["spec"], made["spec"], "what the user wrote is the user's");
    let shown = cluster.kubectl(&["describe", "service", "web"]).await?.stdout;
    for reason in ["EnsuringLoadBalancer", "EnsuredLoadBalancer"] {
        let line = shown.lines().find(|line| line.contains(reason)).unwrap_or_default();
        assert!(line.contains("Normal") && line.contains("service-controller"), "{reason} in\n{shown}");
    }
    fixture.rests(&[("Node", "one", "Synced", 1), ("Node", "two", "Synced", 1)]).await?;

    cluster.patch(WEB, &json!({ "spec": { "ports": list(&[80, 443]) } })).await?;
    fixture.serves(&[80, 443], &["one", "two"]).await?;
    cluster.patch(WEB, &json!({ "spec": { "ports": list(&[8443, 443]) } })).await?;
    fixture.serves(&[443, 8443], &["one", "two"]).await?;

    fixture.nodes_join(&["three"]).await?;
    fixture.serves(&[443, 8443], &["one", "two", "three"]).await?;
    let label = |value| json!({ "metadata": { "labels": { EXCLUDED: value } } });
    cluster.patch("/api/v1/nodes/two", &label(json!("true"))).await?;
    fixture.serves(&[443, 8443], &["one", "three"]).await?;
    cluster.patch("/api/v1/nodes/two", &label(Value::Null)).await?;
    fixture.serves(&[443, 8443], &["one", "two", "three"]).await?;

    // Only nodes with a label; then a node gets it.
    cluster.patch("/api/v1/nodes/one", &json!({ "metadata": { "labels": { "tier": "front" } } })).await?;
    let picks = json!({ "metadata": { "annotations": { NODE_SELECTOR: "tier=front" } } });
    cluster.patch(WEB, &picks).await?;
    fixture.serves(&[443, 8443], &["one"]).await?;
    cluster.patch("/api/v1/nodes/three", &json!({ "metadata": { "labels": { "tier": "front" } } })).await?;
    let last = fixture.serves(&[443, 8443], &["one", "three"]).await?;
    assert_eq!((&last.id, &last.addresses), (&first.id, &first.addresses), "it is the same all along");
    fixture.rests(&[("Service", "web", "UpdatedLoadBalancer", 1), ("Node", "three", "Synced", 1)]).await?;
    let events = fixture.events("Service", "web").await?;
    assert!(
        events.contains(&"UpdatedLoadBalancer: Updated load balancer with new hosts".to_owned()),
        "{events:#?}"
    );
    fixture.close(&mut [manager]).await
}

pub(crate) async fn a_service_changes_its_type_and_its_class_and_is_deleted(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two"]).await?;
    let manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one"]).await?;
    cluster.create(SERVICES, &web(&[80])).await?;
    fixture.serves(&[80], &["one"]).await?;

    cluster.patch(WEB, &json!({ "spec": { "type": "ClusterIP" } })).await?;
    fixture.serves_nothing().await?;
    let told = [
        "EnsuringLoadBalancer: Ensuring load balancer",
        "EnsuredLoadBalancer: Ensured load balancer",
        "DeletingLoadBalancer: Deleting load balancer",
        "DeletedLoadBalancer: Deleted load balancer",
    ];
    fixture.has_events("Service", "web", &told).await?;

    // It belongs to another controller from now on.
    let class = json!({ "spec": { "type": "LoadBalancer", "loadBalancerClass": "example.com/other" } });
    let foreign = cluster.patch(WEB, &class).await?;
    fixture.nodes_join(&["two"]).await?;
    throughout(A_WHILE, "a Service of another class is left alone", async || {
        let now = cluster.get(WEB).await.map_err(|why| why.to_string())?;
        let same = now["metadata"]["resourceVersion"] == foreign["metadata"]["resourceVersion"];
        if same && fixture.cloud.balancers().is_empty() { Ok(()) } else { Err(now.to_string()) }
    })
    .await?;
    fixture.has_events("Service", "web", &told).await?;

    cluster.patch(WEB, &json!({ "spec": { "type": "ClusterIP", "loadBalancerClass": null } })).await?;
    cluster.patch(WEB, &json!({ "spec": { "type": "LoadBalancer" } })).await?;
    fixture.serves(&[80], &["one", "two"]).await?;
    // A foreign finalizer stays.
    let theirs =
        json!({ "metadata": { "finalizers": ["example.com/before", FINALIZER, "example.com/after"] } });
    cluster.patch(WEB, &theirs).await?;
    cluster.delete(WEB).await?;
    fixture.serves_nothing().await?;
    let left = cluster.get(WEB).await?["metadata"]["finalizers"].clone();
    assert_eq!(left, json!(["example.com/before", "example.com/after"]), "L3-41");
    cluster.patch(WEB, &json!({ "metadata": { "finalizers": null } })).await?;
    eventually(SOON, "the Service is gone", async || match cluster.get(WEB).await {
        Err(_) => Ok(()),
        Ok(service) => Err(service.to_string()),
    })
    .await?;
    fixture.rests(&[("Service", "web", "DeletedLoadBalancer", 2), ("Node", "two", "Synced", 1)]).await?;
    fixture.close(&mut [manager]).await
}

pub(crate) async fn a_service_that_is_deleted_while_no_manager_runs_leaves_nothing(
    cluster: &Cluster,
) -> Outcome {
    let fixture = Fixture::new(cluster, &["one"]).await?;
    let mut manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one"]).await?;
    cluster.create(SERVICES, &web(&[80])).await?;
    fixture.serves(&[80], &["one"]).await?;
    manager.stop(SOON).await?;
    let going = cluster.delete(WEB).await?;
    assert_eq!(going["metadata"]["finalizers"], json!([FINALIZER]), "it waits for its load balancer's end");
    assert_eq!(fixture.cloud.balancers().len(), 1);
    manager.restart().await?;
    fixture.serves_nothing().await?;
    eventually(SOON, "the Service is gone", async || match cluster.get(WEB).await {
        Err(_) => Ok(()),
        Ok(service) => Err(service.to_string()),
    })
    .await?;
    fixture.close(&mut [manager]).await
}

pub(crate) async fn a_manager_killed_in_the_middle_of_a_create_makes_one_load_balancer(
    cluster: &Cluster,
) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two"]).await?;
    let mut manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one", "two"]).await?;
    // The cloud builds it, and the answer never arrives.
    fixture.cloud.never_answer_the_next_creation();
    cluster.create(SERVICES, &web(&[80])).await?;
    let built = eventually(SOON, "the cloud has built it", async || {
        fixture.cloud.balancers().pop().ok_or_else(|| "nothing yet".to_owned())
    })
    .await?;
    manager.kill();
    let service = cluster.get(WEB).await?;
    assert!(!service.to_string().contains(&built.id), "the Service does not know yet: {service}");
    assert!(service["metadata"]["annotations"]["cloudberth.dev/intent"].is_string(), "{service}");

    manager.restart().await?;
    let found = fixture.serves(&[80], &["one", "two"]).await?;
    assert_eq!(found.id, built.id, "L6-41");
    let created = fixture.cloud.mutations().iter().filter(|one| *one == CREATION).count();
    assert_eq!(created, 1, "L6-41");
    fixture.rests(&[("Service", "web", "EnsuredLoadBalancer", 1)]).await?;
    let service = cluster.get(WEB).await?;
    assert!(service["metadata"]["annotations"]["cloudberth.dev/intent"].is_null(), "{service}");
    fixture.close(&mut [manager]).await
}

pub(crate) async fn a_deleted_namespace_takes_its_load_balancer_with_it(cluster: &Cluster) -> Outcome {
    let mut fixture = Fixture::new(cluster, &["one"]).await?;
    let manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one"]).await?;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } });
    cluster.create("/api/v1/namespaces", &namespace).await?;
    let services = "/api/v1/namespaces/team/services";
    let web_in_team = format!("{services}/web");
    cluster.create(services, &web(&[80])).await?;
    eventually(SOON, "it has a load balancer", async || {
        let service = cluster.get(&web_in_team).await.map_err(|why| why.to_string())?;
        if service["status"]["loadBalancer"]["ingress"].is_array() {
            Ok(())
        } else {
            Err(service.to_string())
        }
    })
    .await?;
    let told = ["EnsuringLoadBalancer: Ensuring load balancer", "EnsuredLoadBalancer: Ensured load balancer"];
    fixture.has_events("Service", "web", &told).await?;
    // Nothing can be created there any more, events included: refused, though in the role.
    fixture.forgetful = true;
    cluster.delete("/api/v1/namespaces/team").await?;
    cluster.delete(&web_in_team).await?;
    eventually(SOON, "the Service is gone", async || match cluster.get(&web_in_team).await {
        Err(_) => Ok(()),
        Ok(service) => Err(service.to_string()),
    })
    .await?;
    assert_eq!(fixture.cloud.balancers(), []);
    // An event that cannot be written holds up no other object.
    cluster.create(SERVICES, &web(&[80])).await?;
    fixture.serves(&[80], &["one"]).await?;
    fixture.has_events("Service", "web", &[told, told].concat()).await?;
    fixture.close(&mut [manager]).await
}

pub(crate) async fn unsupported_fields_are_refused_and_reported_at_once(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one"]).await?;
    let manager = fixture.leader(&[]).await?;
    fixture.nodes_join(&["one"]).await?;
    let mut service = web(&[80]);
    service["metadata"]["annotations"] = json!({
        "k8s.cloudscale.ch/loadbalancer-pool-algorithm": "by_the_moon",
        "k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s": "soon",
    });
    service["spec"]["sessionAffinity"] = json!("ClientIP");
    cluster.create(SERVICES, &service).await?;
    let refusal = eventually(SOON, "the refusal is told", async || {
        let events = fixture.events("Service", "web").await.map_err(|why| why.to_string())?;
        let refusal = events.iter().find(|event| event.contains("pool-algorithm"));
        refusal.cloned().ok_or_else(|| format!("{events:#?}"))
    })
    .await?;
    for field in ["pool-algorithm", "health-monitor-delay-s", "sessionAffinity"] {
        assert!(refusal.contains(field), "L8-41 {field} is not in {refusal}");
    }
    fixture.rests(&[("Node", "one", "Synced", 1)]).await?;
    assert_eq!(fixture.cloud.balancers(), [], "L8-41");
    let shown = cluster.kubectl(&["describe", "service", "web"]).await?.stdout;
    assert!(shown.contains("Warning") && shown.contains("by_the_moon"), "{shown}");

    let mended = json!({
        "metadata": { "annotations": {
            "k8s.cloudscale.ch/loadbalancer-pool-algorithm": null,
            "k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s": null,
        } },
        "spec": { "sessionAffinity": "None" },
    });
    cluster.patch(WEB, &mended).await?;
    fixture.serves(&[80], &["one"]).await?;
    fixture.close(&mut [manager]).await
}
