//! cloudscale.ch. The scenarios about the framework run on it too.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cloudberth_core::Random;
use cloudberth_e2e::{Cluster, eventually};
use cloudberth_http::surroundings::SystemClock;
use cloudscale_sim::{Access, Cloud, Fault, Harm, Served, Server, SimSettings, Target, serve_on_loopback};
use serde_json::json;

use crate::fixture::{Fixture, SOON, text};
use crate::services::{SERVICES, WEB, web};
use crate::simulated_cloud::{Balancer, Call, CardCloud, SimulatedCloud, Tokens};
use crate::{Fallible, Outcome};

/// The annotation by which a Service picks its nodes.
pub(crate) const NODE_SELECTOR: &str = "k8s.cloudscale.ch/loadbalancer-node-selector";
/// The operation that creates a load balancer.
pub(crate) const CREATION: &str = "load-balancers.create";
const FLOATING_IPS: &str = "k8s.cloudscale.ch/loadbalancer-floating-ips";
const ZONE: &str = "rma1";
const FIRST_TOKEN: &str = "first-token-0123456789abcdefghij";
/// Longer than anybody waits for an answer.
const NEVER: Duration = Duration::from_hours(1);

pub(crate) struct Cloudscale {
    cloud: Cloud,
    served: Served,
    token_file: PathBuf,
}

impl CardCloud for Cloudscale {
    const NAME: &'static str = "cloudscale";

    async fn over(dir: &Path, instances: &[&str]) -> Fallible<Self> {
        let cloud = Cloud::new(Arc::new(SystemClock::new()), Random::seeded(1), SimSettings::default());
        cloud.set_tokens([(FIRST_TOKEN, Access::ReadWrite)]);
        let served = serve_on_loopback(&cloud).await?;
        let token_file = dir.join("cloudscale-token");
        fs::write(&token_file, FIRST_TOKEN)?;
        let cloud = Self { cloud, served, token_file };
        for name in instances {
            cloud.add(name);
        }
        Ok(cloud)
    }
}

impl Cloudscale {
    fn server(&self, instance: &str) -> Server {
        let found = self.cloud.servers().into_iter().find(|server| server.name == instance);
        found.unwrap_or_else(|| panic!("no instance is called {instance}"))
    }
}

impl SimulatedCloud for Cloudscale {
    fn env(&self) -> Vec<(String, String)> {
        let own = |name: &str, value: String| (name.to_owned(), value);
        vec![
            own("CLOUDSCALE_API_URL", self.served.url()),
            own("CLOUDSCALE_ACCESS_TOKEN_FILE", self.token_file.display().to_string()),
        ]
    }

    fn secrets(&self) -> Vec<String> {
        let now = fs::read_to_string(&self.token_file).unwrap();
        vec![FIRST_TOKEN.to_owned(), now]
    }

    fn add(&self, instance: &str) {
        self.cloud.add_server(instance, ZONE);
    }

    fn stop(&self, instance: &str) {
        self.cloud.stop_server(&self.server(instance).uuid);
    }

    fn start(&self, instance: &str) {
        self.cloud.start_server(&self.server(instance).uuid);
    }

    fn delete(&self, instance: &str) {
        self.cloud.delete_server(&self.server(instance).uuid);
    }

    fn has(&self, instance: &str) -> bool {
        self.cloud.servers().iter().any(|server| server.name == instance)
    }

    fn provider_id(&self, instance: &str) -> String {
        format!("cloudscale://{}", self.server(instance).uuid)
    }

    fn labels(&self, instance: &str) -> Vec<(&'static str, String)> {
        vec![
            ("node.kubernetes.io/instance-type", self.server(instance).flavor),
            ("topology.kubernetes.io/region", ZONE.trim_end_matches('1').to_owned()),
            ("topology.kubernetes.io/zone", ZONE.to_owned()),
        ]
    }

    fn private_address(&self, instance: &str) -> String {
        self.server(instance).private_address().expect("a private address").address.to_string()
    }

    fn balancers(&self) -> Vec<Balancer> {
        let resources = self.cloud.resources();
        let instance = |address| {
            let has = |server: &&Server| server.addresses().any(|own| own.address == address);
            resources
                .servers
                .values()
                .find(has)
                .map_or_else(|| format!("{address}"), |server| server.name.clone())
        };
        let ports = |balancer: &str| {
            let listeners = resources.listeners.values().filter(|listener| listener.balancer == balancer);
            listeners
                .map(|listener| {
                    let pool = listener.pool.clone().unwrap_or_default();
                    let members: Vec<_> = resources.members_of(&pool).collect();
                    let names = members.iter().map(|member| instance(member.address)).collect();
                    let node_ports = members.iter().map(|member| member.protocol_port).collect();
                    (listener.protocol_port, (names, node_ports))
                })
                .collect()
        };
        let all = resources.balancers.values().map(|balancer| Balancer {
            id: balancer.uuid.clone(),
            addresses: balancer.vips.iter().map(|vip| vip.address.to_string()).collect(),
            ports: ports(&balancer.uuid),
        });
        all.collect()
    }

    fn calls(&self) -> Vec<Call> {
        let call = |entry: cloudscale_sim::Entry| Call {
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
        let harm = Harm::Stall { millis: 1 };
        self.cloud.add_fault(Fault { operation: CREATION.to_owned(), times: Some(1), ..Fault::new(harm) });
    }
}

impl Tokens for Cloudscale {
    fn revoke_all_tokens_but(&self, token: &str) {
        self.cloud.set_tokens([(token, Access::ReadWrite)]);
    }

    fn hand_over(&self, token: &str) -> Fallible<()> {
        let beside = self.token_file.with_extension("new");
        fs::write(&beside, token)?;
        Ok(fs::rename(&beside, &self.token_file)?)
    }
}

/// The load balancer that a floating IP leads to.
fn leads_to(fixture: &Fixture<'_>, address: &str) -> Option<String> {
    match fixture.cloud.cloud.target_of(address.parse().unwrap())? {
        Target::Balancer(id) => Some(id),
        Target::Server(id) => panic!("{address} leads to server {id}"),
    }
}

async fn leads_to_the_load_balancer(fixture: &Fixture<'_>, address: &str) -> Fallible<Balancer> {
    let built = fixture.serves(&[80], &["one"]).await?;
    eventually(SOON, &format!("{address} leads to the load balancer"), async || {
        let found = leads_to(fixture, address);
        if found.as_ref() == Some(&built.id) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await?;
    Ok(built)
}

pub(crate) async fn a_floating_ip_outlives_its_load_balancer(cluster: &Cluster) -> Outcome {
    const FLOATING: &str = "192.0.2.7";
    let fixture = Fixture::new(cluster, &["one"]).await?;
    fixture.cloud.cloud.add_floating_ip(format!("{FLOATING}/32").parse()?, Some("rma"));
    let mut manager = fixture.manager_by_its_old_name().await?;
    manager.leads(SOON).await?;
    fixture.nodes_join(&["one"]).await?;
    let mut service = web(&[80]);
    service["metadata"]["annotations"] = json!({ FLOATING_IPS: json!([FLOATING]).to_string() });
    cluster.create(SERVICES, &service).await?;
    let first = leads_to_the_load_balancer(&fixture, FLOATING).await?;
    fixture.rests(&[("Service", "web", "EnsuredLoadBalancer", 1), ("Node", "one", "Synced", 1)]).await?;
    let stored = cluster.get(WEB).await?;
    assert_eq!(text(&stored, "/metadata/annotations/k8s.cloudscale.ch~1loadbalancer-uuid"), first.id);
    let shown = stored["status"]["loadBalancer"]["ingress"].as_array().unwrap();
    assert!(shown.len() == 2 && shown.iter().all(|entry| entry["ipMode"] == "Proxy"), "{stored}");

    cluster.delete(WEB).await?;
    fixture.serves_nothing().await?;
    assert_eq!(leads_to(&fixture, FLOATING), None, "CS-148 it survives, unassigned");
    assert_eq!(fixture.cloud.cloud.floating_ips().len(), 1, "CS-148");
    cluster.create(SERVICES, &service).await?;
    let second = leads_to_the_load_balancer(&fixture, FLOATING).await?;
    assert_ne!(second.id, first.id);
    fixture.close(&mut [manager]).await
}
