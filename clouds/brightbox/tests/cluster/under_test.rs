//! The simulated Brightbox, as the checks that hold for every cloud want it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use brightbox_sim::{
    Balancer, Cloud, CloudIp, Destination, Entry, Fault, Harm, Request, SimSettings, replaced,
};
use cloudberth_brightbox::{BrightboxProvider, Settings, Surroundings, balancer_name};
use cloudberth_core::{Call, Clock, Lookup, Provider, Random, Secret, ServiceView, provider::Boxed};
use cloudberth_http::{Resolver, TokenSource, Transport, Unobserved, testing::Door};
use serde_json::{Value, json};
use testing_kit::{
    TokenFile,
    checks::{CloudFixture, CloudUnderTest},
    first_sent_elsewhere,
};

pub(crate) const APPLIED: &str = "cloudberth.dev/applied";
/// The operation that deletes a load balancer.
const DELETION: &str = "load_balancers.delete";

pub(crate) type Fixture = CloudFixture<Brightbox>;

/// The name server of the simulated world.
struct SimResolver(Cloud);

impl Resolver for SimResolver {
    fn resolve<'a>(&'a self, _call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Vec<IpAddr>>> {
        let found = self.0.resolve(name);
        let answer = if found.is_empty() { Lookup::Absent } else { Lookup::Present(found) };
        Box::pin(std::future::ready(answer))
    }
}

/// Clones are the same cloud.
#[derive(Clone)]
pub(crate) struct Brightbox {
    pub(crate) cloud: Cloud,
    /// The way to the cloud.
    pub(crate) door: Door,
    /// The Cloud IPs that people own: one that Services name by its id, one that they name by its address.
    pub(crate) given: Arc<OnceLock<[String; 2]>>,
    /// The id of the API client, which can be replaced as a mounted Secret is.
    client: TokenFile,
    /// Variables beside the credential, for the next program that starts.
    pub(crate) variables: Arc<Mutex<BTreeMap<&'static str, &'static str>>>,
    omissions: Arc<Mutex<Omissions>>,
}

/// Which parts of answers are missing.
#[derive(Debug, Default)]
struct Omissions {
    instance_addresses: bool,
    balancer_addresses: bool,
    garbled: BTreeSet<String>,
}

impl Omissions {
    fn apply(&self, request: &Request, body: &mut Value) {
        let things = match body {
            Value::Array(things) => things.as_mut_slice(),
            thing => std::slice::from_mut(thing),
        };
        for thing in things.iter_mut().filter_map(Value::as_object_mut) {
            match request.operation.split('.').next() {
                Some("servers") if self.instance_addresses => drop(thing.remove("interfaces")),
                Some("load_balancers") => {
                    if self.balancer_addresses {
                        thing.remove("cloud_ips");
                    }
                    if thing.get("id").and_then(Value::as_str).is_some_and(|id| self.garbled.contains(id)) {
                        thing.insert("healthcheck".to_owned(), Value::Null);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Brightbox {
    fn omissions(&self, change: impl FnOnce(&mut Omissions)) {
        change(&mut self.omissions.lock().unwrap());
    }

    pub(crate) fn edit_answers(&self) {
        let omitted = Arc::clone(&self.omissions);
        self.cloud.edit_answers(move |request, body| omitted.lock().unwrap().apply(request, body));
    }

    /// What was asked since the journal was cleared, tokens aside.
    pub(crate) fn calls(&self) -> Vec<Entry> {
        self.cloud.journal().into_iter().filter(|entry| !entry.operation.starts_with("token")).collect()
    }

    /// The operations that changed something since the journal was cleared.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.calls().into_iter().filter(|entry| entry.mutation).map(|entry| entry.operation).collect()
    }

    /// The load balancers that are not deleted.
    pub(crate) fn alive(&self) -> Vec<Balancer> {
        self.cloud.balancers().into_iter().filter(|one| one.status != "deleted").collect()
    }

    /// How many there are of each kind that a load balancer is made of: load balancers, Cloud IPs, groups, policies.
    pub(crate) fn counts(&self) -> [usize; 4] {
        let groups = self.cloud.groups().iter().filter(|group| !group.default).count();
        let policies = self.cloud.policies().iter().filter(|policy| !policy.default).count();
        [self.alive().len(), self.cloud.cloud_ips().len(), groups, policies]
    }
}

/// Annotations without their prefix.
pub(crate) fn annotated(annotations: &[(&str, &str)]) -> Value {
    let annotations: Vec<_> = annotations.iter().map(|(key, value)| (*key, json!(value))).collect();
    replaced::annotated(&annotations)
}

impl CloudUnderTest for Brightbox {
    fn new(clock: &Arc<dyn Clock>) -> Self {
        let mut settings =
            SimSettings { latency: Duration::from_millis(20), open: true, ..SimSettings::default() };
        settings.delays.build = Duration::from_secs(1);
        let cloud = Cloud::new(Arc::clone(clock), Random::seeded(7), settings);
        let new = Self {
            cloud,
            door: Door::default(),
            given: Arc::default(),
            client: TokenFile::new(env!("CARGO_TARGET_TMPDIR")),
            variables: Arc::new(Mutex::new([("BRIGHTBOX_ACCOUNT", "acc-9t4wz")].into())),
            omissions: Arc::default(),
        };
        new.edit_answers();
        new
    }

    fn provider(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
        let client = TokenSource::file(self.client.path(), Arc::clone(clock)).unwrap();
        let secret = TokenSource::fixed(Secret::new("s3cr3t").unwrap());
        let variables = self.variables.lock().unwrap();
        let settings =
            Settings::read(Ok(Some(client)), Ok(Some(secret)), |name| variables.get(name).copied()).unwrap();
        let around = Surroundings {
            transport: self.door.before(Transport::new(self.cloud.service())),
            clock: Arc::clone(clock),
            random: Arc::new(Random::seeded(1)),
            observer: Arc::new(Unobserved),
            resolver: Arc::new(SimResolver(self.cloud.clone())),
        };
        Arc::new(BrightboxProvider::new(&settings, around))
    }

    fn id_annotation(&self) -> &'static str {
        "cloudberth.dev/brightbox-load-balancer"
    }

    fn name_annotation(&self) -> Option<&'static str> {
        None
    }

    fn generated_name(&self, service: &ServiceView) -> String {
        balancer_name(service, "test")
    }

    /// A node is called after the id of its server.
    fn add_instance(&self, name: &str) -> String {
        let id = self.cloud.add_server(name, "gb1-a").id;
        self.cloud.edit(|resources| {
            let mut server = resources.servers.remove(&id).unwrap();
            name.clone_into(&mut server.id);
            name.clone_into(&mut server.hostname);
            for group in resources.groups.values_mut() {
                group.servers.iter_mut().filter(|one| **one == id).for_each(|one| name.clone_into(one));
            }
            resources.servers.insert(name.to_owned(), server);
        });
        format!("brightbox://{name}")
    }

    fn build_by_hand(&self, name: &str) -> String {
        self.add_instance(&format!("by-hand-{}", name.replace('.', "-")));
        let body = json!({
            "name": name, "nodes": [{"node": format!("by-hand-{}", name.replace('.', "-"))}],
            "listeners": [{"protocol": "tcp", "in": 22, "out": 22}],
            "healthcheck": {"type": "tcp", "port": 22, "request": "/"},
        });
        self.cloud.seed("load_balancers", &body).unwrap()
    }

    fn balancers(&self) -> Vec<String> {
        self.alive().into_iter().map(|one| one.id).collect()
    }

    fn state_of(&self, balancer: &str) -> Option<String> {
        let all = self.cloud.resources();
        let one = all.balancers.get(balancer).filter(|one| one.status != "deleted")?;
        let groups: Vec<_> = all.groups.values().filter(|group| group.name == one.name).collect();
        let policies: Vec<_> = all.policies.values().filter(|policy| policy.name == one.name).collect();
        let here = Some(Destination::Balancer(one.id.clone()));
        let ours = |ip: &&CloudIp| ip.name == one.name || ip.destination == here;
        let cloud_ips: Vec<_> = all.cloud_ips.values().filter(ours).collect();
        Some(format!("{one:#?}\n{groups:#?}\n{policies:#?}\n{cloud_ips:#?}"))
    }

    fn mutations(&self) -> usize {
        self.calls().iter().filter(|entry| entry.mutation && entry.outcome.succeeded()).count()
    }

    fn lose_next_creation(&self) {
        let operation = "load_balancers.create".to_owned();
        self.cloud.add_fault(Fault { operation, times: Some(1), ..Fault::new(Harm::LostAnswer) });
    }

    fn swap_credential_during_next_delete(&self) {
        self.cloud.plan_faults(self.client.swap_during(DELETION));
    }

    fn send_next_delete_elsewhere(&self) {
        self.cloud.plan_faults(first_sent_elsewhere(DELETION));
    }

    fn omit_instance_addresses(&self, omit: bool) {
        self.omissions(|omissions| omissions.instance_addresses = omit);
    }

    fn omit_balancer_addresses(&self, omit: bool) {
        self.omissions(|omissions| omissions.balancer_addresses = omit);
    }

    fn garble_part_of(&self, balancer: &str, garble: bool) {
        self.omissions(|omissions| {
            if garble {
                omissions.garbled.insert(balancer.to_owned());
            } else {
                omissions.garbled.remove(balancer);
            }
        });
    }
}
