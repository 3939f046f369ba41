//! The Cloudlycke service, as the checks that hold for every cloud want it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use cloudberth_cloudlycke::{CloudlyckeProvider, FileSettings, Settings, Sources, Surroundings};
use cloudberth_core::{Clock, Provider, Random, ServiceView};
use cloudberth_http::{Env, TokenSource, Transport, Unobserved, testing::Door};
use cloudberth_lycke::{
    control::{BalancerStatus, Control},
    inventory::MachineState,
    plane::ListenerFault,
};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use sim_kit::{Fault, Front, Harm, Tally};
use testing_kit::{TokenFile, checks::CloudUnderTest, first_sent_elsewhere};

use crate::service::{LyckeService, at_once, key};

pub(crate) const ID: &str = "cloudlycke.io/load-balancer";

/// Clones are the same service.
#[derive(Clone, Debug)]
pub(crate) struct Lycke {
    pub(crate) front: Front<LyckeService>,
    pub(crate) door: Door,
    pub(crate) token: TokenFile,
    omissions: Arc<Mutex<Omissions>>,
    machines: Arc<AtomicU16>,
}

/// Which parts of answers are missing.
#[derive(Debug, Default)]
struct Omissions {
    instance_addresses: bool,
    balancer_addresses: bool,
    garbled: BTreeSet<String>,
}

impl Omissions {
    fn apply(&self, body: &mut Value) {
        match body.get_mut("items").and_then(Value::as_array_mut) {
            Some(items) => items.iter_mut().for_each(|one| self.edit(one)),
            None => self.edit(body),
        }
    }

    fn edit(&self, one: &mut Value) {
        let Some(object) = one.as_object_mut() else { return };
        if self.instance_addresses {
            object.remove("internal");
        }
        if self.balancer_addresses {
            object.remove("addresses");
            object.remove("address");
        }
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let id = format!("{}/{}/{}", text("cluster"), text("namespace"), text("name"));
        if self.garbled.contains(&id) {
            one["spec"]["health"] = Value::Null;
        }
    }
}

impl Lycke {
    pub(crate) fn control(&self) -> Control {
        self.front.with(|service, _| service.control.clone())
    }

    pub(crate) fn tally(&self) -> Tally {
        self.front.tally()
    }

    pub(crate) fn omit_from_answers(&self) {
        let omitted = Arc::clone(&self.omissions);
        self.front.edit_answers(move |_, body| omitted.lock().unwrap().apply(body));
    }

    fn omissions(&self, change: impl FnOnce(&mut Omissions)) {
        change(&mut self.omissions.lock().unwrap());
    }

    /// A machine of a cluster, with `more` beside what every machine has. Returns its provider id.
    pub(crate) fn add_machine(&self, cluster: &str, name: &str, more: &Value) -> String {
        let number = self.machines.fetch_add(1, Ordering::Relaxed) + 1;
        let address = format!("10.9.{}.{}", number / 250, number % 250 + 1);
        let mut body = json!({
            "id": format!("{cluster}-{name}"), "name": name, "cluster": cluster, "type": "vbox.vm.1g.2cpu",
            "internal": [address], "external": [address],
        });
        sim_kit::merge(&mut body, more.clone());
        let (control, text) = (self.control(), body.to_string());
        let id = body["id"].as_str().unwrap().to_owned();
        at_once(async move { control.add_machine(&text).await });
        assert!(self.control().events().latest() > 0, "the machine is there at once: {body}");
        format!("cloudlycke://{id}")
    }

    pub(crate) fn set_state(&self, provider_id: &str, state: MachineState) {
        let (control, id) = (self.control(), provider_id.trim_start_matches("cloudlycke://").to_owned());
        at_once(async move { control.set_machine_state(&id, state).await });
    }

    pub(crate) fn set_fault(&self, port: u16, fault: Option<ListenerFault>) {
        self.front.with(|service, _| service.plane.set_fault(port, fault));
    }

    /// From now on the service does not give this address to anybody who asks for it.
    pub(crate) fn refuse_address(&self, address: &str) {
        self.front.with(|service, _| service.withdrawn = Some(address.to_owned()));
    }

    pub(crate) fn balancer(&self, id: &str) -> Option<BalancerStatus> {
        self.control().balancer(&key(id))
    }

    pub(crate) fn settings(&self, clock: &Arc<dyn Clock>, env: &[(&str, &str)]) -> Settings {
        let token = TokenSource::file(self.token.path(), Arc::clone(clock)).unwrap();
        let env: Env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let file = FileSettings::default();
        Settings::read(Sources { token: Ok(Some(token)), env: &env, file, cluster: "test" }).unwrap()
    }

    pub(crate) fn provider_with(&self, clock: &Arc<dyn Clock>, env: &[(&str, &str)]) -> CloudlyckeProvider {
        let around = Surroundings {
            transport: self.door.before(Transport::new(self.front.service())),
            clock: Arc::clone(clock),
            random: Arc::new(Random::seeded(1)),
            observer: Arc::new(Unobserved),
        };
        CloudlyckeProvider::new(self.settings(clock, env), around)
    }
}

impl CloudUnderTest for Lycke {
    fn new(clock: &Arc<dyn Clock>) -> Self {
        let service = LyckeService::new(clock, TokenFile::OWN);
        let new = Self {
            front: Front::new(service, Arc::clone(clock), Arc::new(Random::seeded(7))),
            door: Door::default(),
            token: TokenFile::new(env!("CARGO_TARGET_TMPDIR")),
            omissions: Arc::default(),
            machines: Arc::default(),
        };
        new.omit_from_answers();
        new
    }

    fn provider(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
        Arc::new(self.provider_with(clock, &[("CLOUDLYCKE_CLUSTER", "c2")]))
    }

    fn id_annotation(&self) -> &'static str {
        ID
    }

    fn name_annotation(&self) -> Option<&'static str> {
        None
    }

    fn generated_name(&self, service: &ServiceView) -> String {
        let ServiceView { namespace, name, uid, .. } = service;
        if name.is_empty() { format!("elsewhere/{uid}") } else { format!("{namespace}/{name}") }
    }

    fn add_instance(&self, name: &str) -> String {
        self.add_machine("c2", name, &json!({}))
    }

    fn build_by_hand(&self, name: &str) -> String {
        let id = if name.contains('/') { format!("c2/{name}") } else { format!("c2/by-hand/{name}") };
        let spec = json!({
            "uid": format!("uid-of-{name}"), "listeners": [{"protocol": "TCP", "port": 81, "nodePort": 30_081}],
            "backends": [{"machine": "elsewhere", "address": "10.8.0.1"}],
        });
        let (control, key) = (self.control(), key(&id));
        let put = async move { control.put(&key, &spec).await.map(|_| ()) };
        Box::pin(put).now_or_never().expect("nothing here waits").unwrap();
        id
    }

    fn balancers(&self) -> Vec<String> {
        self.control().balancers(None).iter().map(|status| status.key.to_string()).collect()
    }

    fn state_of(&self, id: &str) -> Option<String> {
        self.balancer(id).map(|status| format!("{:#?}", status.balancer))
    }

    fn mutations(&self) -> usize {
        self.front.journal().iter().filter(|entry| entry.mutation && entry.outcome.succeeded()).count()
    }

    fn lose_next_creation(&self) {
        let operation = "loadbalancers.create".to_owned();
        self.front.add_fault(Fault { operation, times: Some(1), ..Fault::new(Harm::LostAnswer) });
    }

    fn swap_credential_during_next_delete(&self) {
        self.front.plan_faults(self.token.swap_during("loadbalancers.delete"));
    }

    fn send_next_delete_elsewhere(&self) {
        self.front.plan_faults(first_sent_elsewhere("loadbalancers.delete"));
    }

    fn omit_instance_addresses(&self, omit: bool) {
        self.omissions(|omissions| omissions.instance_addresses = omit);
    }

    fn omit_balancer_addresses(&self, omit: bool) {
        self.omissions(|omissions| omissions.balancer_addresses = omit);
    }

    fn garble_part_of(&self, balancer: &str, garble: bool) {
        self.omissions(|omissions| {
            omissions.garbled.remove(balancer);
            omissions.garbled.extend(garble.then(|| balancer.to_owned()));
        });
    }
}

/// How long requests take, for tests that set it.
pub(crate) fn set_latency(cloud: &Lycke, latency: Duration) {
    cloud.front.with(|service, _| service.latency = latency);
}
