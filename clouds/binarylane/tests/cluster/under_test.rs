//! The simulated BinaryLane, as the checks that hold for every cloud want it.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use binarylane_sim::{Cloud, Fault, Harm, Request, SimSettings};
use cloudberth_binarylane::{BinaryLaneProvider, Surroundings};
use cloudberth_core::{Clock, Provider, Random, ServiceView};
use cloudberth_http::{TokenSource, Transport, Unobserved};
use serde_json::Value;
use testing_kit::checks::CloudUnderTest;

use crate::fixture::{ID, settings};

/// Clones are the same cloud.
#[derive(Clone)]
pub(crate) struct BinaryLane {
    cloud: Cloud,
    token: Arc<TokenFile>,
    omissions: Arc<Mutex<Omissions>>,
}

/// Which parts of answers are missing.
#[derive(Debug, Default)]
struct Omissions {
    instance_addresses: bool,
    balancer_addresses: bool,
    garbled: BTreeSet<i64>,
}

impl Omissions {
    fn apply(&self, _: &Request, body: &mut Value) {
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

/// A credential that can be replaced, as a mounted Secret is.
struct TokenFile(PathBuf);

impl TokenFile {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("token-{}-{number}", std::process::id());
        let file = Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        file.set("first");
        file
    }

    fn set(&self, token: &str) {
        fs::write(&self.0, token).unwrap();
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // What is left of a test is in the build directory, where it harms nobody.
        let _ = fs::remove_file(&self.0);
    }
}

impl BinaryLane {
    fn omissions(&self, change: impl FnOnce(&mut Omissions)) {
        change(&mut self.omissions.lock().unwrap());
    }
}

impl CloudUnderTest for BinaryLane {
    fn new(clock: &Arc<dyn Clock>) -> Self {
        let settings = SimSettings {
            latency: Duration::from_millis(20),
            build: Duration::from_secs(1),
            ..SimSettings::default()
        };
        let cloud = Cloud::new(Arc::clone(clock), Random::seeded(7), settings);
        let omissions = Arc::new(Mutex::new(Omissions::default()));
        let omitted = Arc::clone(&omissions);
        cloud.edit_answers(move |request, body| omitted.lock().unwrap().apply(request, body));
        Self { cloud, token: Arc::new(TokenFile::new()), omissions }
    }

    fn provider(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
        let token = TokenSource::file(&self.token.0, Arc::clone(clock)).unwrap();
        let around = Surroundings {
            transport: Transport::new(self.cloud.service()),
            clock: Arc::clone(clock),
            random: Arc::new(Random::seeded(1)),
            observer: Arc::new(Unobserved),
        };
        Arc::new(BinaryLaneProvider::new(settings(token, "", &[]), around))
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
        let (token, mut sent) = (Arc::clone(&self.token), 0);
        self.cloud.plan_faults(move |request| {
            if request.operation != "load_balancers.delete" {
                return None;
            }
            sent += 1;
            match sent {
                // The old token is refused, and there is another one by now: that of an account without this one.
                1 => {
                    token.set("another account's");
                    Some(Harm::status(401))
                }
                2 => {
                    token.set("first");
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
        let id = balancer.parse().unwrap();
        self.omissions(|omissions| {
            if garble {
                omissions.garbled.insert(id);
            } else {
                omissions.garbled.remove(&id);
            }
        });
    }
}
