//! The cloud of a scenario. It runs in this process, on a port of its own, and outlives every manager.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use cloudberth_core::Random;
use cloudberth_e2e::Cluster;
use cloudberth_http::surroundings::SystemClock;
use cloudscale_sim::{Access, Cloud, Entry, Fault, Harm, Served, Server, SimSettings, serve_on_loopback};

use crate::Fallible;

const ZONE: &str = "rma1";
const FIRST_TOKEN: &str = "first-token-0123456789abcdefghij";

/// A cloud, and the configuration that leads a manager to it.
pub(crate) struct SimulatedCloud {
    cloud: Cloud,
    served: Served,
    token_file: PathBuf,
}

/// A load balancer with its ports and addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Balancer {
    pub(crate) id: String,
    pub(crate) addresses: BTreeSet<String>,
    /// The ports for clients, and the instances and their ports behind each.
    pub(crate) ports: BTreeMap<u16, (BTreeSet<String>, BTreeSet<u16>)>,
}

impl SimulatedCloud {
    /// A cloud with running instances of these names.
    pub(crate) async fn over(cluster: &Cluster, instances: &[&str]) -> Fallible<Self> {
        let cloud = Cloud::new(Arc::new(SystemClock::new()), Random::seeded(1), SimSettings::default());
        cloud.set_tokens([(FIRST_TOKEN, Access::ReadWrite)]);
        let served = serve_on_loopback(&cloud).await?;
        let token_file = cluster.dir().join("cloud-token");
        fs::write(&token_file, FIRST_TOKEN)?;
        let cloud = Self { cloud, served, token_file };
        for name in instances {
            cloud.add(name);
        }
        Ok(cloud)
    }

    /// The manifests that come with this cloud.
    pub(crate) const MANIFESTS: &str = "cloudscale";
    /// The command in them.
    pub(crate) const COMMAND: &str = "cloudscale-cloud-controller-manager";
    /// The annotation by which a Service picks its nodes.
    pub(crate) const NODE_SELECTOR: &str = "k8s.cloudscale.ch/loadbalancer-node-selector";

    pub(crate) const FLAGS: [&str; 1] = ["--cloud-provider=cloudscale"];

    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let own = |name: &str, value: String| (name.to_owned(), value);
        vec![
            own("CLOUDSCALE_API_URL", self.served.url()),
            own("CLOUDSCALE_ACCESS_TOKEN_FILE", self.token_file.display().to_string()),
        ]
    }

    /// Secrets that no log may contain.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let now = fs::read_to_string(&self.token_file).unwrap();
        vec![FIRST_TOKEN.to_owned(), now]
    }

    fn server(&self, instance: &str) -> Server {
        let found = self.cloud.servers().into_iter().find(|server| server.name == instance);
        found.unwrap_or_else(|| panic!("no instance is called {instance}"))
    }

    /// Whether there is such an instance.
    pub(crate) fn has(&self, instance: &str) -> bool {
        self.cloud.servers().iter().any(|server| server.name == instance)
    }

    /// The provider id of an instance.
    pub(crate) fn provider_id(&self, instance: &str) -> String {
        format!("cloudscale://{}", self.server(instance).uuid)
    }

    /// The labels of an instance's node: its size, region and zone.
    pub(crate) fn labels(&self, instance: &str) -> [(&'static str, String); 3] {
        [
            ("node.kubernetes.io/instance-type", self.server(instance).flavor),
            ("topology.kubernetes.io/region", ZONE.trim_end_matches('1').to_owned()),
            ("topology.kubernetes.io/zone", ZONE.to_owned()),
        ]
    }

    /// The address by which instances reach each other.
    pub(crate) fn private_address(&self, instance: &str) -> String {
        self.server(instance).private_address().expect("a private address").address.to_string()
    }

    pub(crate) fn add(&self, instance: &str) {
        self.cloud.add_server(instance, ZONE);
    }

    pub(crate) fn stop(&self, instance: &str) {
        self.cloud.stop_server(&self.server(instance).uuid);
    }

    pub(crate) fn start(&self, instance: &str) {
        self.cloud.start_server(&self.server(instance).uuid);
    }

    pub(crate) fn delete(&self, instance: &str) {
        self.cloud.delete_server(&self.server(instance).uuid);
    }

    /// Every request is answered with 503 from now on.
    pub(crate) fn go_down(&self) {
        self.cloud.add_fault(Fault::new(Harm::status(503)));
    }

    /// Ends all faults.
    pub(crate) fn come_back(&self) {
        self.cloud.stop_faults();
    }

    /// The next load balancer is built, but the request is never answered.
    pub(crate) fn never_answer_the_next_creation(&self) {
        let operation = "load-balancers.create".to_owned();
        let harm = Harm::Stall { millis: 1 };
        self.cloud.add_fault(Fault { operation, times: Some(1), ..Fault::new(harm) });
    }

    /// Accepts only this token from now on; the manager does not have it yet.
    pub(crate) fn revoke_all_tokens_but(&self, token: &str) {
        self.cloud.set_tokens([(token, Access::ReadWrite)]);
    }

    /// Replaces the manager's token file atomically, as the kubelet replaces a mounted file.
    pub(crate) fn hand_over(&self, token: &str) -> Fallible<()> {
        let beside = self.token_file.with_extension("new");
        fs::write(&beside, token)?;
        Ok(fs::rename(&beside, &self.token_file)?)
    }

    /// Every request so far.
    pub(crate) fn journal(&self) -> Vec<Entry> {
        self.cloud.journal()
    }

    /// The changes that were carried out so far, by the names of their operations.
    pub(crate) fn mutations(&self) -> Vec<String> {
        let made = self.journal().into_iter().filter(|entry| entry.mutation && entry.outcome.succeeded());
        made.map(|entry| entry.operation).collect()
    }

    /// The load balancers.
    pub(crate) fn balancers(&self) -> Vec<Balancer> {
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
}
