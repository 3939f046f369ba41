//! `cloudberth plan` as a person calls it who is about to switch a cluster over: whatever the replaced program was told to
//! do, there is nothing left to do, and looking changes nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, reason = "how many variants were looked at is worth reading")]
#![cfg(feature = "sim")]

mod fixture;

use std::{path::Path, sync::Arc};

use cloudberth_core::Random;
use cloudberth_http::surroundings::SystemClock;
use cloudscale_sim::{
    Cloud, SimSettings,
    replaced::{Variant, annotated, plain, variants},
};
use embedded_kube::{Call, KubeApi};
use fixture::{PROGRAM, Place, text};
use serde_json::json;
use sim_kit::Surroundings;
use testing_kit::{People, takeover::leave};
use tokio::net::TcpListener;

/// A cluster that was left behind, and its cloud, both on a port.
struct Site {
    api: KubeApi,
    people: People,
    cloud: Cloud,
    place: Place,
    on_ports: (embedded_kube::Served, cloudscale_sim::Served),
}

/// What a plan came to.
struct PlanOutput {
    code: Option<i32>,
    text: String,
    /// What it wrote, in the cluster or in the cloud.
    writes: Vec<String>,
    /// How often it asked the cloud.
    looks: usize,
}

impl Site {
    async fn left(variant: &Variant) -> Self {
        let api = KubeApi::new(Surroundings::of_this_machine());
        let cloud = Cloud::new(Arc::new(SystemClock::new()), Random::seeded(1), SimSettings::default());
        let people = People::of(&api);
        leave(variant, &cloud, &people).await;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let served = embedded_kube::serve(&api, listener, None, None).unwrap();
        let on_ports = (served, cloudscale_sim::serve_on_loopback(&cloud).await.unwrap());
        let place = Place::new();
        place.write("admin", &on_ports.0.kubeconfig());
        Self { api, people, cloud, place, on_ports }
    }

    async fn plan(&self) -> PlanOutput {
        let calls = self.api.calls(0).len();
        self.cloud.clear_journal();
        let mut command = self.place.command(Path::new(PROGRAM));
        command.env("CLOUDSCALE_ACCESS_TOKEN", "any").env("CLOUDSCALE_API_URL", self.on_ports.1.url());
        command.args(["plan", "--cloud-provider=cloudscale", "--kubeconfig=admin"]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let wrote = self.api.calls(0).into_iter().skip(calls).filter(Call::is_write);
        let wrote = wrote.map(|call| format!("{} {} {}", call.verb, call.resource, call.name));
        let changed = self.cloud.journal().into_iter().filter(|entry| entry.mutation);
        let changed = changed.map(|entry| entry.operation);
        PlanOutput {
            code: output.status.code(),
            text: format!("{}{}", text(&output.stdout), text(&output.stderr)),
            writes: wrote.chain(changed).collect(),
            looks: self.cloud.tally().calls,
        }
    }
}

#[tokio::test]
async fn nothing_is_left_to_do_for_whoever_switches_over() {
    let variants = variants();
    assert!(variants.len() >= 20, "{}", variants.len());
    for variant in &variants {
        let case = variant.case;
        let told = Site::left(variant).await.plan().await;
        assert_eq!(told.code, Some(0), "CS-153 {case}:\n{}", told.text);
        assert_eq!(told.writes, [""; 0], "CS-153 {case}");
        assert!(told.looks > 0, "CS-153 {case}: it looked");
    }
    println!("{} variants, each with an empty plan", variants.len());
}

/// What the fixture does not notice, the test above would not either.
#[tokio::test]
async fn what_was_changed_meanwhile_is_told_and_not_done() {
    let table = [
        ("the algorithm", annotated(&[("pool-algorithm", json!("source_ip"))]), "source_ip"),
        (
            "a timeout",
            annotated(&[("timeout-client-data-ms", json!("1234"))]),
            "set the time-out of clients on port tcp/80",
        ),
        (
            "who may connect",
            annotated(&[("listener-allowed-cidrs", json!("[\"10.0.0.0/8\"]"))]),
            "set who may connect on port tcp/80",
        ),
        ("a port", json!({"spec": {"ports": [{"port": 81, "protocol": "TCP"}]}}), "tcp/81"),
    ];
    let site = Site::left(&plain("plain TCP")).await;
    assert_eq!(site.plan().await.code, Some(0), "CS-153");
    for (case, edit, want) in table {
        let site = Site::left(&plain(case)).await;
        site.people.merge(&site.people.services(), "web", edit).await;
        let told = site.plan().await;
        assert_eq!(told.code, Some(2), "CS-153 {case}:\n{}", told.text);
        assert!(told.text.contains(want), "CS-153 {case}:\n{}", told.text);
        assert_eq!(told.writes, [""; 0], "CS-153 {case}");
    }
}
