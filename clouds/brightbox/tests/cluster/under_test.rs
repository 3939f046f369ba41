//! The simulated Brightbox, as the checks that hold for every cloud want it.

use std::{
    collections::BTreeSet,
    fs,
    net::IpAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use brightbox_sim::{Balancer, Cloud, Entry, Fault, Harm, Request, SimSettings};
use cloudberth_brightbox::{BrightboxProvider, Settings, Surroundings, balancer_name};
use cloudberth_core::{Call, Clock, Lookup, Provider, Random, Secret, ServiceView, provider::Boxed};
use cloudberth_http::{Resolver, TokenSource, Transport, Unobserved};
use serde_json::{Value, json};
use testing_kit::checks::{CloudFixture, CloudUnderTest};

pub(crate) const APPLIED: &str = "cloudberth.dev/applied";
pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/brightbox-load-balancer-";

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
    client: Arc<ClientFile>,
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

/// The id of the API client, which can be replaced as a mounted Secret is.
struct ClientFile(PathBuf);

impl ClientFile {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("client-{}-{number}", std::process::id());
        let file = Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        file.set("cli-first");
        file
    }

    fn set(&self, id: &str) {
        fs::write(&self.0, id).unwrap();
    }
}

impl Drop for ClientFile {
    fn drop(&mut self) {
        // What is left of a test is in the build directory, where it harms nobody.
        let _ = fs::remove_file(&self.0);
    }
}

impl Brightbox {
    fn omissions(&self, change: impl FnOnce(&mut Omissions)) {
        change(&mut self.omissions.lock().unwrap());
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
    let annotations: Value =
        annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), json!(value))).collect();
    json!({"metadata": {"annotations": annotations}})
}

impl CloudUnderTest for Brightbox {
    fn new(clock: &Arc<dyn Clock>) -> Self {
        let mut settings =
            SimSettings { latency: Duration::from_millis(20), open: true, ..SimSettings::default() };
        settings.delays.build = Duration::from_secs(1);
        let cloud = Cloud::new(Arc::clone(clock), Random::seeded(7), settings);
        let omissions = Arc::new(Mutex::new(Omissions::default()));
        let omitted = Arc::clone(&omissions);
        cloud.edit_answers(move |request, body| omitted.lock().unwrap().apply(request, body));
        Self { cloud, client: Arc::new(ClientFile::new()), omissions }
    }

    fn provider(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
        let client = TokenSource::file(&self.client.0, Arc::clone(clock)).unwrap();
        let secret = TokenSource::fixed(Secret::new("s3cr3t").unwrap());
        let account = |name: &str| (name == "BRIGHTBOX_ACCOUNT").then_some("acc-9t4wz");
        let settings = Settings::read(Ok(Some(client)), Ok(Some(secret)), account).unwrap();
        let around = Surroundings {
            transport: Transport::new(self.cloud.service()),
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
        let cloud_ips: Vec<_> = all.cloud_ips.values().filter(|ip| ip.name == one.name).collect();
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
        let (client, mut sent) = (Arc::clone(&self.client), 0);
        self.cloud.plan_faults(move |request| {
            if request.operation != "load_balancers.delete" {
                return None;
            }
            sent += 1;
            match sent {
                // The old token is refused, and there is another client by now: that of an account without this one.
                1 => {
                    client.set("cli-other");
                    Some(Harm::status(401))
                }
                2 => {
                    client.set("cli-first");
                    Some(Harm::NotFound)
                }
                _ => None,
            }
        });
    }

    fn send_next_delete_elsewhere(&self) {
        let mut sent = 0;
        self.cloud.plan_faults(move |request| {
            let deletes = request.operation == "load_balancers.delete";
            sent += usize::from(deletes);
            (deletes && sent == 1).then_some(Harm::NotFound)
        });
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
