//! The simulated BinaryLane, as the checks that hold for every cloud want it.

use std::{
    collections::BTreeSet,
    ops::Deref,
    sync::{Arc, Mutex},
    time::Duration,
};

use binarylane_sim::{Cloud, Fault, Harm, SimSettings};
use cloudberth_binarylane::{BinaryLaneProvider, FileSettings, Settings, Sources, Surroundings};
use cloudberth_controllers::routes::RouteSettings;
use cloudberth_core::{Clock, Provider, Random, ServiceView};
use cloudberth_http::{Env, GivenFlags, TokenSource, Transport, Unobserved, testing::Door, yaml};
use serde_json::{Value, json};
use testing_kit::{TokenFile, checks::CloudUnderTest, first_sent_elsewhere};

use crate::fixture::{CIDR, ID};

/// How the program is told to work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    /// The file of `--cloud-config`.
    pub(crate) file: &'static str,
    /// Routes are looked after.
    pub(crate) routes: bool,
    /// How often is looked for what changed behind the program's back.
    pub(crate) drift: Option<Duration>,
}

/// A cloud, and a program that looks after routes too or does not. Clones are the same cloud.
#[derive(Clone, Debug)]
pub(crate) struct BinaryLane<const ROUTES: bool = false> {
    cloud: Cloud,
    /// The way to the cloud.
    pub(crate) door: Door,
    token: TokenFile,
    omissions: Arc<Mutex<Omissions>>,
    pub(crate) setup: Arc<Mutex<Setup>>,
}

/// Which parts of answers are missing.
#[derive(Debug, Default)]
struct Omissions {
    instance_addresses: bool,
    balancer_addresses: bool,
    garbled: BTreeSet<i64>,
}

impl Omissions {
    fn apply(&self, body: &mut Value) {
        let all = |body: &mut Value, one: &str, many: &str, edit: &dyn Fn(&mut Value)| {
            body.get_mut(one).into_iter().for_each(edit);
            body.get_mut(many).and_then(Value::as_array_mut).into_iter().flatten().for_each(edit);
        };
        all(body, "server", "servers", &|server| {
            if self.instance_addresses {
                server.as_object_mut().unwrap().remove("networks");
            }
        });
        all(body, "load_balancer", "load_balancers", &|balancer| {
            if self.balancer_addresses {
                balancer.as_object_mut().unwrap().remove("ip");
            }
            if balancer["id"].as_i64().is_some_and(|id| self.garbled.contains(&id)) {
                balancer["health_check"] = Value::Null;
            }
        });
    }
}

/// What the simulated cloud itself can do.
impl<const ROUTES: bool> Deref for BinaryLane<ROUTES> {
    type Target = Cloud;

    fn deref(&self) -> &Cloud {
        &self.cloud
    }
}

impl<const ROUTES: bool> BinaryLane<ROUTES> {
    pub(crate) fn omit_from_answers(&self) {
        let omitted = Arc::clone(&self.omissions);
        self.cloud.edit_answers(move |_, body| omitted.lock().unwrap().apply(body));
    }

    fn omissions(&self, change: impl FnOnce(&mut Omissions)) {
        change(&mut self.omissions.lock().unwrap());
    }

    fn settings(&self, clock: &Arc<dyn Clock>) -> Settings {
        let setup = self.setup.lock().unwrap().clone();
        let token = TokenSource::file(self.token.path(), Arc::clone(clock)).unwrap();
        let flags = [("configure-cloud-routes", "true"), ("cluster-cidr", CIDR)];
        let given = flags.into_iter().skip(usize::from(!setup.routes));
        let given: GivenFlags = given.map(|(name, value)| (name, value.to_owned())).collect();
        let file = yaml::read(setup.file, FileSettings::read).unwrap();
        let env = Env::default();
        Settings::read(Sources { token: Ok(Some(token)), env: &env, file, given: &given, cluster: "test" })
            .unwrap()
    }
}

/// The number of the server with this provider id.
pub(crate) fn server(provider_id: &str) -> i64 {
    provider_id.trim_start_matches("binarylane://").parse().unwrap()
}

/// The network of the pods on the node of this instance: another one for each of some hundred.
pub(crate) fn pod_cidr(provider_id: &str) -> String {
    format!("10.244.{}.0/24", server(provider_id) % 240)
}

impl<const ROUTES: bool> CloudUnderTest for BinaryLane<ROUTES> {
    fn new(clock: &Arc<dyn Clock>) -> Self {
        let settings = SimSettings {
            latency: Duration::from_millis(20),
            build: Duration::from_secs(1),
            ..SimSettings::default()
        };
        let new = Self {
            cloud: Cloud::new(Arc::clone(clock), Random::seeded(7), settings),
            door: Door::default(),
            token: TokenFile::new(env!("CARGO_TARGET_TMPDIR")),
            omissions: Arc::default(),
            setup: Arc::new(Mutex::new(Setup { routes: ROUTES, ..Setup::default() })),
        };
        new.omit_from_answers();
        new
    }

    fn provider(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
        let around = Surroundings {
            transport: self.door.before(Transport::new(self.cloud.service())),
            clock: Arc::clone(clock),
            random: Arc::new(Random::seeded(1)),
            observer: Arc::new(Unobserved),
        };
        Arc::new(BinaryLaneProvider::new(self.settings(clock), around))
    }

    fn id_annotation(&self) -> &'static str {
        ID
    }

    fn name_annotation(&self) -> Option<&'static str> {
        None
    }

    fn generated_name(&self, service: &ServiceView) -> String {
        let ServiceView { namespace, name, uid, .. } = service;
        let elsewhere = format!("k8s-elsewhere-{uid}");
        if name.is_empty() { elsewhere } else { format!("k8s-test-{namespace}-{name}") }
    }

    fn add_instance(&self, name: &str) -> String {
        format!("binarylane://{}", self.cloud.add_server(name, "bne").id)
    }

    fn node_spec(&self, provider_id: &str) -> Value {
        let cidr = pod_cidr(provider_id);
        if ROUTES { json!({"podCIDR": cidr, "podCIDRs": [cidr]}) } else { json!({}) }
    }

    /// The flag's default is on; the provider alone decides.
    fn routes(&self) -> Option<RouteSettings> {
        Some(RouteSettings {
            configure_cloud_routes: true,
            cluster_cidr: CIDR.to_owned(),
            period: Duration::from_secs(10),
        })
    }

    fn build_by_hand(&self, name: &str) -> String {
        let server = self.cloud.add_server(&format!("behind-{name}"), "bne");
        self.cloud.add_balancer(name, None, &[server.id]).unwrap().to_string()
    }

    fn balancers(&self) -> Vec<String> {
        self.cloud.balancers().into_iter().map(|balancer| balancer.id.to_string()).collect()
    }

    fn state_of(&self, id: &str) -> Option<String> {
        Some(format!("{:#?}", self.cloud.balancer(id.parse().unwrap())?))
    }

    fn mutations(&self) -> usize {
        self.cloud.journal().iter().filter(|entry| entry.mutation && entry.outcome.succeeded()).count()
    }

    fn lose_next_creation(&self) {
        let operation = "load_balancers.create".to_owned();
        self.cloud.add_fault(Fault { operation, times: Some(1), ..Fault::new(Harm::LostAnswer) });
    }

    fn swap_credential_during_next_delete(&self) {
        self.cloud.plan_faults(self.token.swap_during("load_balancers.delete"));
    }

    fn send_next_delete_elsewhere(&self) {
        self.cloud.plan_faults(first_sent_elsewhere("load_balancers.delete"));
    }

    fn omit_instance_addresses(&self, omit: bool) {
        self.omissions(|omissions| omissions.instance_addresses = omit);
    }

    fn omit_balancer_addresses(&self, omit: bool) {
        self.omissions(|omissions| omissions.balancer_addresses = omit);
    }

    fn garble_part_of(&self, balancer: &str, garble: bool) {
        let id: i64 = balancer.parse().unwrap();
        self.omissions(|omissions| {
            omissions.garbled.retain(|one| *one != id);
            omissions.garbled.extend(garble.then_some(id));
        });
    }
}
