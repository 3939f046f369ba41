//! BinaryLane.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use binarylane_sim::{Access, Cloud, Entry, Fault, Harm, Served, Server, SimSettings, serve_on_loopback};
use cloudberth_core::Random;
use cloudberth_e2e::Cluster;
use cloudberth_http::surroundings::SystemClock;
use serde_json::{Value, json};

use crate::fixture::{Fixture, SOON};
use crate::services::{SERVICES, service};
use crate::simulated_cloud::{Balancer, Call, CardCloud, SimulatedCloud};
use crate::{Fallible, Outcome};

const REGION: &str = "bne";
const TOKEN: &str = "token-of-the-account-5e1b09c7";
/// Longer than anybody waits for an answer.
const NEVER: Duration = Duration::from_hours(1);

pub(crate) struct BinaryLane {
    cloud: Cloud,
    served: Served,
}

impl CardCloud for BinaryLane {
    const NAME: &'static str = "binarylane";

    async fn over(_: &Path, instances: &[&str]) -> Fallible<Self> {
        let settings = SimSettings { build: Duration::from_millis(300), ..SimSettings::default() };
        let cloud = Cloud::new(Arc::new(SystemClock::new()), Random::seeded(1), settings);
        cloud.set_tokens([(TOKEN, Access::Own)]);
        let served = serve_on_loopback(&cloud).await?;
        let cloud = Self { cloud, served };
        for name in instances {
            cloud.add(name);
        }
        Ok(cloud)
    }
}

impl BinaryLane {
    fn server(&self, instance: &str) -> Server {
        let found = self.cloud.servers().into_iter().find(|server| server.name == instance);
        found.unwrap_or_else(|| panic!("no instance is called {instance}"))
    }
}

impl SimulatedCloud for BinaryLane {
    fn env(&self) -> Vec<(String, String)> {
        vec![
            ("BINARYLANE_API_URL".to_owned(), self.served.url()),
            ("BINARYLANE_API_TOKEN".to_owned(), TOKEN.to_owned()),
        ]
    }

    fn secrets(&self) -> Vec<String> {
        vec![TOKEN.to_owned()]
    }

    fn add(&self, instance: &str) {
        self.cloud.add_server(instance, REGION);
    }

    fn stop(&self, instance: &str) {
        self.cloud.stop_server(self.server(instance).id);
    }

    fn start(&self, instance: &str) {
        self.cloud.start_server(self.server(instance).id);
    }

    fn delete(&self, instance: &str) {
        self.cloud.delete_server(self.server(instance).id);
    }

    fn has(&self, instance: &str) -> bool {
        self.cloud.servers().iter().any(|server| server.name == instance)
    }

    fn provider_id(&self, instance: &str) -> String {
        format!("binarylane://{}", self.server(instance).id)
    }

    fn labels(&self, instance: &str) -> Vec<(&'static str, String)> {
        vec![
            ("node.kubernetes.io/instance-type", self.server(instance).size),
            ("topology.kubernetes.io/region", REGION.to_owned()),
            ("topology.kubernetes.io/zone", REGION.to_owned()),
        ]
    }

    fn private_address(&self, instance: &str) -> String {
        self.server(instance).private_address().expect("a private address").to_string()
    }

    fn balancers(&self) -> Vec<Balancer> {
        let resources = self.cloud.resources();
        let all = resources.balancers.values().map(|balancer| {
            let name = |id: &i64| {
                resources.servers.get(id).map_or_else(|| id.to_string(), |server| server.name.clone())
            };
            let members: BTreeSet<String> = balancer.server_ids.iter().map(name).collect();
            let port = |rule: &String| if rule == "https" { 443 } else { 80 };
            Balancer {
                id: balancer.id.to_string(),
                addresses: balancer.ip.iter().map(ToString::to_string).collect(),
                ports: balancer
                    .rules
                    .iter()
                    .map(|rule| (port(rule), (members.clone(), BTreeSet::from([port(rule)]))))
                    .collect(),
            }
        });
        all.collect()
    }

    /// A port leads to the same port of a server.
    fn target(&self, port: u16, _: u16) -> u16 {
        port
    }

    fn calls(&self) -> Vec<Call> {
        let call = |entry: Entry| Call {
            status: entry.outcome.status(),
            succeeded: entry.outcome.succeeded(),
            operation: entry.operation,
            mutation: entry.mutation,
        };
        self.cloud.journal().into_iter().map(call).collect()
    }

    fn under_way(&self) -> usize {
        self.cloud.under_way()
    }

    fn go_down(&self) {
        self.cloud.add_fault(Fault::new(Harm::status(503)));
    }

    fn fall_silent(&self) {
        let millis = u64::try_from(NEVER.as_millis()).unwrap();
        self.cloud.add_fault(Fault::new(Harm::Latency { millis }));
    }

    fn come_back(&self) {
        self.cloud.stop_faults();
    }

    fn never_answer_the_next_creation(&self) {
        let creation = "load_balancers.create".to_owned();
        let harm = Harm::Stall { millis: 1 };
        self.cloud.add_fault(Fault { operation: creation, times: Some(1), ..Fault::new(harm) });
    }
}

/// A Service that BinaryLane cannot serve: what is wrong with it, and the reason of its event.
fn unservable() -> [(&'static str, Value, &'static str); 3] {
    let udp = json!({ "ports": [{ "name": "dns", "port": 53, "protocol": "UDP" }] });
    [
        (
            "port",
            json!({ "ports": [{ "name": "alt", "port": 8080, "protocol": "TCP" }] }),
            "UnsupportedServicePort",
        ),
        ("protocol", udp, "UnsupportedServicePort"),
        ("affinity", json!({ "sessionAffinity": "ClientIP" }), "UnsupportedSessionAffinity"),
    ]
}

pub(crate) async fn what_cannot_be_forwarded_is_refused_without_a_trace(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::<BinaryLane>::at(cluster, &["one"]).await?;
    let mut manager = fixture.manager_by_its_old_name().await?;
    manager.leads(SOON).await?;
    fixture.nodes_join(&["one"]).await?;
    fixture.over(&[("Node", "one", "Synced", 1)]).await?;
    for (name, spec, _) in unservable() {
        let mut bad = service(name, &[80]);
        for (field, value) in spec.as_object().unwrap() {
            bad["spec"][field] = value.clone();
        }
        cluster.create(SERVICES, &bad).await?;
    }
    let told = unservable().map(|(name, _, reason)| ("Service", name, reason, 1));
    fixture.rests(&told).await?;
    for (name, _, reason) in unservable() {
        let events = fixture.events("Service", name).await?;
        assert!(events.len() == 1 && events[0].starts_with(reason), "BL-55 BL-57 {events:?}");
        let stored = cluster.get(&format!("{SERVICES}/{name}")).await?;
        let meta = &stored["metadata"];
        assert!(meta["finalizers"].is_null() && meta["annotations"].is_null(), "L8-1601 {stored}");
    }
    let asked = fixture.cloud.calls().into_iter().filter(|call| call.operation.starts_with("load_balancers"));
    assert_eq!(asked.collect::<Vec<_>>(), [], "L8-1602 the cloud is not asked for load balancers");

    // What can be served is served beside them.
    cluster.create(SERVICES, &service("web", &[80])).await?;
    fixture.serves(&[80], &["one"]).await?;
    fixture.close(&mut [manager]).await
}
