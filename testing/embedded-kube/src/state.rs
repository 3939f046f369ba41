//! Everything the server knows, behind one lock.

use std::sync::Arc;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::calls::Call;
use super::definitions;
use super::discovery;
use super::faults::Fault;
use super::kinds::Ranges;
use super::resource::{self, Resource};
use super::shape::Shapes;
use super::store::Store;
use super::time;
use super::users::Users;
use super::value::{at_mut, unset};
use super::watch::Watchers;
use sim_kit::{CallLog, Rules, Surroundings};

/// How the cluster is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many events are remembered for each resource. A watch that resumes from an older one gets 410.
    pub history: usize,
    /// Ranges for cluster addresses, one for each family; the first is the default family.
    pub service_ranges: Vec<IpNet>,
    /// First and last node port.
    pub node_ports: (u16, u16),
    /// The path below which everything is served, such as `/k8s/clusters/c-abc` of a proxy in front of many clusters.
    /// Empty for a server of its own.
    pub path_prefix: String,
}

impl Default for Config {
    fn default() -> Self {
        let four = ipnet::Ipv4Net::new_assert([10, 96, 0, 0].into(), 16);
        Self {
            history: 10_000,
            service_ranges: vec![four.into()],
            node_ports: (30_000, 32_767),
            path_prefix: String::new(),
        }
    }
}

impl Config {
    /// A cluster with addresses of both families, IPv4 first.
    pub fn dual_stack() -> Self {
        let mut config = Self::default();
        let six = ipnet::Ipv6Net::new_assert([0xfd00, 0x10, 0x96, 0, 0, 0, 0, 0].into(), 112);
        config.service_ranges.push(six.into());
        config
    }
}

/// The server's state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) resources: Vec<Arc<Resource>>,
    pub(crate) shapes: Arc<Shapes>,
    pub(crate) world: Surroundings,
    /// The version that the server reports.
    pub(crate) version: String,
    pub(crate) ranges: Ranges,
    /// Begins with a slash and ends without one, or is empty.
    pub(crate) path_prefix: String,
    pub(crate) users: Users,
    pub(crate) faults: Rules<Fault>,
    pub(crate) calls: CallLog<Call>,
    pub(crate) watchers: Watchers,
}

impl State {
    pub(crate) fn new(config: &Config, world: Surroundings) -> Self {
        let ranges = Ranges {
            cluster: config.service_ranges.clone(),
            ports: i64::from(config.node_ports.0)..=i64::from(config.node_ports.1),
        };
        let mut state = Self {
            store: Store::new(config.history),
            resources: resource::builtin(),
            shapes: Arc::new(Shapes::kubernetes()),
            world,
            version: discovery::VERSION.to_owned(),
            ranges,
            path_prefix: match config.path_prefix.trim_matches('/') {
                "" => String::new(),
                prefix => format!("/{prefix}"),
            },
            users: Users::default(),
            faults: Rules::default(),
            calls: CallLog::default(),
            watchers: Watchers::default(),
        };
        state.seed();
        state
    }

    /// Makes what every new cluster has: four namespaces and the API server's own Service.
    fn seed(&mut self) {
        for name in ["kube-system", "kube-public", "kube-node-lease", "default"] {
            let namespace = json!({
                "metadata": {"name": name, "uid": self.world.uuid(), "creationTimestamp": time::seconds(self.world.now()),
                             "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            self.store.put("namespaces", name, namespace);
        }
        self.seed_service();
        // Watches and old revisions begin after the set-up.
        self.store.compact();
    }

    fn seed_service(&mut self) {
        let Some(first) = self.ranges.cluster.first().and_then(|range| range.hosts().next()) else {
            return;
        };
        let family = if first.is_ipv4() { "IPv4" } else { "IPv6" };
        let service = json!({
            "metadata": {"name": "kubernetes", "namespace": "default", "uid": self.world.uuid(),
                         "creationTimestamp": time::seconds(self.world.now()),
                         "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"clusterIP": first.to_string(), "clusterIPs": [first.to_string()], "type": "ClusterIP",
                     "ipFamilies": [family], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
                     "internalTrafficPolicy": "Cluster",
                     "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
            "status": {"loadBalancer": {}},
        });
        self.store.put("services", "default/kubernetes", service);
    }

    /// Back to an empty cluster. Watches end; revisions go on, so nothing old can be mistaken for something new.
    pub(crate) fn reset(&mut self) {
        let tables: Vec<String> = self.store.tables().map(str::to_owned).collect();
        for table in tables {
            let keys: Vec<String> = self.store.all(&table).map(|(key, _)| key.clone()).collect();
            for key in keys {
                self.store.remove(&table, &key);
            }
        }
        self.store.compact();
        self.serve_definitions();
        self.watchers.cut_all();
        self.faults.clear();
        self.calls = CallLog::default();
        self.seed();
    }

    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let is = |r: &&Arc<Resource>| r.group == group && r.version == version && r.plural == plural;
        self.resources.iter().find(is).cloned()
    }

    fn is_terminating(&self, table: &str) -> bool {
        let going = |r: &Arc<Resource>| r.table == table && r.custom.as_ref().is_some_and(|c| c.terminating);
        self.resources.iter().any(going)
    }

    pub(crate) fn put(&mut self, table: &str, key: &str, mut object: Value) -> Arc<Value> {
        if table == "services" && !discovery::keeps_ip_mode(&self.version) {
            let ingress = at_mut(&mut object, "status.loadBalancer.ingress").and_then(Value::as_array_mut);
            ingress.into_iter().flatten().for_each(|entry| unset(entry, "ipMode"));
        }
        let stored = self.store.put(table, key, object);
        self.watchers.wake(table);
        if table == definitions::TABLE {
            self.settle_definitions();
        }
        stored
    }

    pub(crate) fn remove(&mut self, table: &str, key: &str) -> Option<Arc<Value>> {
        let last = self.store.remove(table, key);
        self.watchers.wake(table);
        // A definition waits for the last of its objects, and others may wait for its names.
        if table == definitions::TABLE || self.is_terminating(table) {
            self.settle_definitions();
        }
        last
    }
}
