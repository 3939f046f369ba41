//! A plan tells what would be done, and nothing is done.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{sync::Arc, time::Duration};

use cloudberth_controllers::{
    controller_set::ControllerSet, controller_set::ControllerSettings, lifecycle::LifecycleSettings,
    node::NodeSettings, routes::RouteSettings, service::ServiceSettings,
};
use cloudberth_core::call::Unguarded;
use cloudberth_fake::{Fault, PowerState};
use cloudberth_manager::plan::{Entry, Plan, run_plan};
use embedded_kube::{Fault as ApiFault, Harm};
use serde_json::{Value, json};
use testing_kit::ClusterFixture;

fn settings() -> ControllerSettings {
    ControllerSettings {
        node: Some(NodeSettings::default()),
        lifecycle: Some(LifecycleSettings::default()),
        service: Some(ServiceSettings { drift: None, ..ServiceSettings::default() }),
        routes: None,
    }
}

/// A plan made by a program that knows nothing and could write; both call logs prove that it did not.
async fn plan(fixture: &ClusterFixture) -> Plan {
    plan_with(fixture, &settings()).await
}

async fn plan_with(fixture: &ClusterFixture, settings: &ControllerSettings) -> Plan {
    let revision = fixture.api.calls(0).len();
    let mutations = |fixture: &ClusterFixture| {
        fixture
            .clouds
            .iter()
            .map(|cloud| cloud.calls().iter().filter(|call| call.write).count())
            .sum::<usize>()
    };
    let before = mutations(fixture);
    let ctx = fixture.another_context(Arc::new(Unguarded));
    let plan = run_plan(&ctx, settings, Duration::from_secs(30)).await;
    let calls = fixture.api.calls(0);
    let writes: Vec<_> = calls.iter().skip(revision).filter(|call| call.is_write()).collect();
    assert!(writes.is_empty(), "a plan wrote to the cluster: {writes:?}");
    assert!(calls.len() > revision, "the log shows the plan's reads");
    assert_eq!(mutations(fixture), before, "a plan wrote to a cloud");
    let json: Value = serde_json::from_str(&plan.to_json()).unwrap();
    assert_eq!(json["services"].as_array().unwrap().len(), plan.services.len());
    plan
}

async fn service(fixture: &ClusterFixture, name: &str, annotations: Value) {
    let body = json!({
        "metadata": {"annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
    });
    fixture.create(&fixture.services(), "Service", name, body).await;
}

/// Three nodes that wait, and two Services.
async fn fresh() -> ClusterFixture {
    let fixture = ClusterFixture::new();
    for name in ["n1", "n2", "n3"] {
        fixture.join(name).await;
        fixture.set_ready(name, true).await;
    }
    for name in ["web", "shop"] {
        service(&fixture, name, json!({})).await;
    }
    fixture
}

/// The program works until nothing is left to do.
async fn work(fixture: &mut ClusterFixture) {
    fixture.run_watches();
    let controllers = ControllerSet::new(&fixture.ctx, &settings()).unwrap();
    fixture.run(async move { controllers.run().await });
    fixture.pass(120).await;
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

fn labels(entry: &Entry) -> Vec<&str> {
    entry.steps.iter().map(|step| step.label.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fresh_cluster_is_told_in_full() {
    let fixture = fresh().await;
    let plan = plan(&fixture).await;
    assert_eq!(names(&plan.nodes), ["n1", "n2", "n3"]);
    assert_eq!(names(&plan.services), ["default/shop", "default/web"]);
    assert_eq!((plan.unknown.len(), plan.exit_code()), (0, 2), "{}", plan.to_text());
    let instances: Vec<_> = fixture.clouds[0].instances().into_iter().map(|instance| instance.id).collect();
    for entry in &plan.services {
        assert_eq!(entry.cloud.as_deref(), Some("alpha"));
        let labels = labels(entry);
        let [finalizer, create, port, members @ .., record] = labels.as_slice() else { panic!("{labels:?}") };
        assert_eq!(*finalizer, "add the finalizer service.kubernetes.io/load-balancer-cleanup");
        assert!(create.starts_with("create load balancer test-"), "{create}");
        assert_eq!(*port, "open port 80");
        let want: Vec<_> = instances.iter().map(|id| format!("add instance {id}")).collect();
        assert_eq!(members, want, "the nodes as they will be once they are initialised");
        assert!(record.ends_with("publish the addresses of the load balancer"), "{record}");
    }
    let labels = labels(&plan.nodes[0]);
    assert_eq!(labels[0], "set the addresses InternalIP 10.0.0.1, Hostname n1");
    assert!(labels[1].starts_with("set the provider id alpha://m-0001; set the labels "), "{labels:?}");
    assert!(labels[1].ends_with("remove the taint node.cloudprovider.kubernetes.io/uninitialized"));
    assert_eq!(labels.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_has_nothing_to_do() {
    let mut fixture = fresh().await;
    work(&mut fixture).await;
    let plan = plan(&fixture).await;
    assert_eq!(plan, Plan::default(), "{}", plan.to_text());
    assert_eq!(plan.exit_code(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hand_edit_in_the_cloud_gets_exactly_its_repair() {
    let mut fixture = fresh().await;
    work(&mut fixture).await;
    let instance = fixture.clouds[0].instances()[1].id.clone();
    fixture.clouds[0].resize(&instance, "huge");
    let resized = plan(&fixture).await;
    assert_eq!((names(&resized.nodes), names(&resized.services)), (vec!["n2"], vec![]));
    let label = "set the labels beta.kubernetes.io/instance-type=huge, node.kubernetes.io/instance-type=huge; set the \
                 annotation cloudberth.dev/applied-labels";
    assert_eq!(labels(&resized.nodes[0]), [label]);
    assert_eq!(resized.nodes[0].steps[0].impact, "none");
    assert_eq!(resized.exit_code(), 2);
    fixture.clouds[0].resize(&instance, "small");

    let web = fixture.service("web").await.unwrap();
    let id = &web.annotations["fake.cloudberth.dev/balancer-id"];
    fixture.clouds[0].delete_balancer(id);
    let deleted = plan(&fixture).await;
    assert_eq!((names(&deleted.nodes), names(&deleted.services)), (vec![], vec!["default/web"]));
    let labels = labels(&deleted.services[0]);
    assert!(labels[0].starts_with("create load balancer "), "{labels:?}");
    assert_eq!(deleted.exit_code(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_is_cleaned_up_first() {
    let mut fixture = fresh().await;
    work(&mut fixture).await;
    fixture.reboot();
    fixture.delete(&fixture.services(), "web").await;
    let plan = plan(&fixture).await;
    assert_eq!(names(&plan.services), ["default/web"]);
    let labels = labels(&plan.services[0]);
    assert!(labels[0].starts_with("delete "), "{labels:?}");
    let last = "remove the finalizer service.kubernetes.io/load-balancer-cleanup; \
        remove the annotation fake.cloudberth.dev/balancer-id; withdraw the published addresses";
    assert_eq!(labels.last(), Some(&last));
    assert!(plan.services[0].steps.iter().any(|step| step.impact == "major"), "{}", plan.to_text());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_shown_and_is_nothing_to_do() {
    let mut fixture = fresh().await;
    service(&fixture, "odd", json!({"fake.cloudberth.dev/algorithm": "coin"})).await;
    work(&mut fixture).await;
    let plan = plan(&fixture).await;
    assert_eq!((names(&plan.services), plan.exit_code()), (vec!["default/odd"], 0), "{}", plan.to_text());
    assert_eq!(plan.services[0].steps, []);
    let remark = &plan.services[0].remarks[0];
    assert!(remark.starts_with("fake.cloudberth.dev/algorithm: "), "{remark}");
    assert!(plan.to_text().contains(remark) && plan.to_text().ends_with("Nothing to do.\n"));
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_does_not_answer_is_named() {
    let mut fixture = fresh().await;
    work(&mut fixture).await;
    fixture.clouds[0].plan_faults(|_| Some(Fault::RequestLost));
    let plan = plan(&fixture).await;
    assert_eq!(plan.exit_code(), 1);
    let about: Vec<_> = plan.unknown.iter().map(|unknown| unknown.what.as_str()).collect();
    assert_eq!(about, ["node n1", "node n2", "node n3", "Service default/shop", "Service default/web"]);
    assert!(plan.unknown.iter().all(|unknown| unknown.cloud.as_deref() == Some("alpha")));
    assert!(plan.to_text().contains("  node n1 (alpha): alpha: list instances: "), "{}", plan.to_text());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_could_not_be_told() {
    let fixture = fresh().await;
    fixture.api.add_fault(ApiFault::new(Harm::LostCall).on("", "services"));
    let ctx = fixture.another_context(Arc::new(Unguarded));
    let plan = run_plan(&ctx, &settings(), Duration::from_secs(30)).await;
    assert_eq!(plan.exit_code(), 1);
    assert_eq!(plan.unknown.len(), 1, "{}", plan.to_text());
    assert_eq!(plan.unknown[0].what, "all Services");
}

#[tokio::test(start_paused = true)]
async fn nodes_of_stopped_and_of_lost_instances_are_told() {
    let mut fixture = fresh().await;
    work(&mut fixture).await;
    fixture.reboot();
    let cloud = fixture.clouds[0].clone();
    let ids: Vec<_> = cloud.instances().into_iter().map(|instance| instance.id).collect();
    cloud.set_state(&ids[0], PowerState::Stopped);
    cloud.delete_instance(&ids[1]);
    for name in ["n1", "n2"] {
        fixture.set_ready(name, false).await;
    }
    let gone = plan(&fixture).await;
    assert_eq!((names(&gone.nodes), gone.exit_code()), (vec!["n1", "n2"], 2), "{}", gone.to_text());
    assert_eq!(labels(&gone.nodes[0]), ["add the taint node.cloudprovider.kubernetes.io/shutdown"]);
    let label = "delete the node after a second confirmation that its instance is gone";
    assert_eq!(labels(&gone.nodes[1]), [label]);

    // A token of the wrong project sees neither the instances nor the load balancers that are on record.
    cloud.plan_faults(|_| Some(Fault::Deny));
    let doubtful = plan(&fixture).await;
    let about = doubtful.unknown.iter().map(|unknown| unknown.what.as_str());
    let about: Vec<_> = about.filter(|what| what.starts_with("node ")).collect();
    assert_eq!((about, doubtful.exit_code()), (vec!["node n1", "node n2"], 1), "{}", doubtful.to_text());
    // The next round would publish the warning that names the way out.
    let remarks: Vec<_> = doubtful.nodes.iter().flat_map(|entry| &entry.remarks).collect();
    assert!(remarks.iter().any(|text| text.contains("because the listing is in doubt")), "{remarks:?}");
}

#[tokio::test(start_paused = true)]
async fn routes_are_told_where_they_would_be_made() {
    let fixture = ClusterFixture::new();
    fixture.member(0, "n1").await;
    fixture.merge(&fixture.nodes(), "n1", json!({"spec": {"podCIDRs": ["10.244.1.0/24"]}})).await;
    let routes = |cidr: &str| RouteSettings {
        configure_cloud_routes: true,
        cluster_cidr: cidr.to_owned(),
        period: Duration::from_secs(10),
    };
    let only = |routes| ControllerSettings { routes: Some(routes), ..ControllerSettings::default() };
    let told = plan_with(&fixture, &only(routes("10.244.0.0/16"))).await;
    let want = [
        "create a route of 10.244.1.0/24 to n1",
        "on node n1, set the condition NetworkUnavailable to False (RouteCreated)",
    ];
    assert_eq!(labels(&told.routes[0]), want);
    assert_eq!(told.exit_code(), 2);
    assert!(told.to_text().contains("Routes\n  routes (alpha)\n    - create a route"), "{}", told.to_text());
    assert_eq!(plan_with(&fixture, &only(routes("nonsense"))).await.exit_code(), 1);
    fixture.clouds[0].plan_faults(|_| Some(Fault::RequestLost));
    let lost = plan_with(&fixture, &only(routes("10.244.0.0/16"))).await;
    assert_eq!((lost.exit_code(), lost.unknown[0].what.as_str()), (1, "the routes"));
}

#[tokio::test(start_paused = true)]
async fn an_old_cluster_that_is_at_rest_stays_so() {
    let mut fixture = fresh().await;
    fixture.api.set_version("v1.29.14");
    fixture.ctx.cluster.ask_version().await.unwrap();
    work(&mut fixture).await;
    let plan = plan(&fixture).await;
    assert_eq!((plan.services.len(), plan.exit_code()), (0, 0), "CS-125 {}", plan.to_text());
    fixture.api.set_version("v1.30.0");
    let plan = plan_with(&fixture, &settings()).await;
    assert_eq!(names(&plan.services), ["default/shop", "default/web"], "CS-123 a new one keeps the mode");
}
