//! Brightbox. A node is called by the id of its server, which cannot be chosen.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brightbox_sim::{
    Cloud, CloudIp, Delays, Destination, Fault, Harm, Served, Server, SimSettings, serve_on_loopback,
};
use cloudberth_core::Random;
use cloudberth_e2e::{Cluster, eventually};
use cloudberth_http::surroundings::SystemClock;
use serde_json::json;

use crate::fixture::{Fixture, SOON};
use crate::services::{SERVICES, WEB, web};
use crate::simulated_cloud::{Balancer, Call, CardCloud, SimulatedCloud};
use crate::{Fallible, Outcome};

const CLOUD_IP: &str = "service.beta.kubernetes.io/brightbox-load-balancer-cloudip-allocations";
/// The operation that creates a load balancer.
const CREATION: &str = "load_balancers.create";
const ZONE: &str = "gb1-a";
/// Whatever the cloud takes its time for takes this long: long enough to be seen unfinished.
const WORK: Duration = Duration::from_millis(300);
/// Longer than anybody waits for an answer.
const NEVER: Duration = Duration::from_hours(1);

pub(crate) struct Brightbox {
    cloud: Cloud,
    served: Served,
}

impl CardCloud for Brightbox {
    const NAME: &'static str = "brightbox";
    /// Port 443 would need a certificate, and names that the name servers of the world know.
    const PORTS: [u16; 2] = [80, 8080];

    async fn over(_dir: &Path, instances: &[&str]) -> Fallible<Self> {
        let delays = Delays { build: WORK, removal: WORK, map: WORK, unmap: WORK, ..Delays::default() };
        let settings = SimSettings { delays, ..SimSettings::default() };
        let cloud = Cloud::new(Arc::new(SystemClock::new()), Random::seeded(1), settings);
        let served = serve_on_loopback(&cloud).await?;
        let cloud = Self { cloud, served };
        for name in instances {
            cloud.add(name);
        }
        Ok(cloud)
    }
}

/// Deleted servers are listed for a while.
fn is_there(server: &Server) -> bool {
    server.status != "deleted"
}

/// The names of a Cloud IP, as a Service shows them.
fn names(cloud_ip: &CloudIp) -> impl Iterator<Item = String> {
    cloud_ip.reverse_dns.iter().chain([&cloud_ip.fqdn]).cloned()
}

impl Brightbox {
    fn server(&self, instance: &str) -> Server {
        let mut all = self.cloud.servers().into_iter().filter(is_there);
        let found = all.find(|server| server.name == instance);
        found.unwrap_or_else(|| panic!("no instance is called {instance}"))
    }

    /// What a load balancer is made of, its Cloud IP aside: the load balancers, groups and policies of any Service.
    fn made(&self) -> Vec<String> {
        let groups = self.cloud.groups().into_iter().filter(|group| !group.default).map(|group| group.id);
        let policies = self.cloud.policies().into_iter().filter(|policy| !policy.default);
        let balancers = self.balancers().into_iter().map(|balancer| balancer.id);
        balancers.chain(groups).chain(policies.map(|policy| policy.id)).collect()
    }
}

impl SimulatedCloud for Brightbox {
    fn env(&self) -> Vec<(String, String)> {
        let own = |name: &str, value: String| (name.to_owned(), value);
        let credentials = self.cloud.credentials();
        vec![
            own("BRIGHTBOX_API_URL", self.served.url()),
            own("BRIGHTBOX_CLIENT", credentials.client),
            own("BRIGHTBOX_CLIENT_SECRET", credentials.secret),
            // By default all addresses of a node are external, as in the replaced program.
            own("BRIGHTBOX_INTERNAL_ADDRESSES", "on".to_owned()),
        ]
    }

    fn secrets(&self) -> Vec<String> {
        vec![self.cloud.credentials().secret]
    }

    fn add(&self, instance: &str) {
        self.cloud.add_server(instance, ZONE);
    }

    fn stop(&self, instance: &str) {
        self.cloud.stop_server(&self.server(instance).id);
    }

    fn start(&self, instance: &str) {
        self.cloud.start_server(&self.server(instance).id);
    }

    fn delete(&self, instance: &str) {
        self.cloud.delete_server(&self.server(instance).id);
    }

    fn has(&self, instance: &str) -> bool {
        self.cloud.servers().iter().any(|server| is_there(server) && server.name == instance)
    }

    fn node_name(&self, instance: &str) -> String {
        self.server(instance).hostname
    }

    fn provider_id(&self, instance: &str) -> String {
        format!("brightbox://{}", self.server(instance).id)
    }

    fn labels(&self, instance: &str) -> Vec<(&'static str, String)> {
        vec![
            ("node.kubernetes.io/instance-type", self.server(instance).server_type.expect("a type")),
            ("topology.kubernetes.io/region", ZONE.trim_end_matches("-a").to_owned()),
            ("topology.kubernetes.io/zone", ZONE.to_owned()),
        ]
    }

    fn private_address(&self, instance: &str) -> String {
        let server = self.server(instance);
        let mut addresses = server.interfaces.into_iter().filter_map(|interface| interface.ipv4_address);
        addresses.next().expect("a private address")
    }

    fn balancers(&self) -> Vec<Balancer> {
        let resources = self.cloud.resources();
        let instance = |id: &String| resources.servers.get(id).map_or(id, |server| &server.name).clone();
        let is_there = |balancer: &&brightbox_sim::Balancer| balancer.status != "deleted";
        let all = resources.balancers.values().filter(is_there).map(|balancer| {
            let mapped = resources.cloud_ips_of(&Destination::Balancer(balancer.id.clone()));
            let listeners = balancer.listeners.iter().map(|listener| {
                let nodes = balancer.nodes.iter().map(instance).collect();
                (listener.in_port, (nodes, [listener.out_port].into()))
            });
            Balancer {
                id: balancer.id.clone(),
                addresses: mapped.into_iter().flat_map(names).collect(),
                ports: listeners.collect(),
            }
        });
        all.collect()
    }

    fn calls(&self) -> Vec<Call> {
        let call = |entry: brightbox_sim::Entry| Call {
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

pub(crate) async fn a_cloud_ip_of_the_user_outlives_its_load_balancer(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::<Brightbox>::at(cluster, &["one"]).await?;
    let cloud = &fixture.cloud.cloud;
    let id = cloud.seed("cloud_ips", &json!({ "name": "given" })).expect("a Cloud IP");
    let before = cloud.cloud_ips();
    let mut manager = fixture.manager_by_its_old_name().await?;
    manager.leads(SOON).await?;
    let node = fixture.cloud.node_name("one");
    fixture.nodes_join(&[&node]).await?;
    let mut service = web(&[80]);
    service["metadata"]["annotations"] = json!({ CLOUD_IP: id });
    cluster.create(SERVICES, &service).await?;
    let built = fixture.serves(&[80], &["one"]).await?;
    assert_eq!(built.addresses, before.iter().flat_map(names).collect(), "the Service shows its names");
    let ends = [("Service", "web", "EnsuredLoadBalancer", 1), ("Node", node.as_str(), "Synced", 1)];
    fixture.rests(&ends).await?;
    let leads_to: Vec<_> = cloud.cloud_ips().into_iter().map(|ip| (ip.id, ip.destination)).collect();
    assert_eq!(leads_to, [(id, Some(Destination::Balancer(built.id)))], "none of its own beside it");
    assert_eq!(fixture.cloud.made().len(), 3, "a load balancer, a group and a policy");

    cluster.delete(WEB).await?;
    fixture.serves_nothing().await?;
    eventually(SOON, "the Service is gone", async || match cluster.get(WEB).await {
        Err(_) => Ok(()),
        Ok(service) => Err(service.to_string()),
    })
    .await?;
    assert_eq!(fixture.cloud.made(), [""; 0], "nothing is left when the Service is gone");
    let left: Vec<_> = cloud.cloud_ips().into_iter().map(|ip| (ip.id, ip.name, ip.destination)).collect();
    let given: Vec<_> = before.into_iter().map(|ip| (ip.id, ip.name, None)).collect();
    assert_eq!(left, given, "BB-147 it survives as it was, unmapped");
    fixture.over(&[("Service", "web", "DeletedLoadBalancer", 1)]).await?;
    fixture.close(&mut [manager]).await
}
