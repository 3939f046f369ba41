//! The simulated cloudscale.ch, as the checks that hold for every cloud want it.

use std::{
    collections::BTreeSet,
    fs,
    ops::Deref,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cloudberth_cloudscale::{CloudscaleProvider, Settings, Surroundings};
use cloudberth_core::{Clock, Provider, Random, ServiceView};
use cloudberth_http::{TokenSource, Transport, Unobserved, testing::Door};
use cloudscale_sim::{Cloud, Fault, Harm, Request, SimSettings};
use serde_json::{Value, json};
use testing_kit::checks::CloudUnderTest;

/// The credential of the cluster's own project.
pub(crate) const TOKEN: &str = "first";

/// Clones are the same cloud.
#[derive(Clone)]
pub(crate) struct Cloudscale {
    cloud: Cloud,
    /// The way to the cloud.
    pub(crate) door: Door,
    token: Arc<TokenFile>,
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
                Some("load-balancers") if self.balancer_addresses => drop(thing.remove("vip_addresses")),
                Some("pools") => {
                    let of = thing.get("load_balancer").and_then(|of| of.get("uuid")).and_then(Value::as_str);
                    if of.is_some_and(|of| self.garbled.contains(of)) {
                        thing.insert("algorithm".to_owned(), Value::Null);
                    }
                }
                _ => {}
            }
        }
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
        file.set(TOKEN);
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

/// What the simulated cloud itself can do.
impl Deref for Cloudscale {
    type Target = Cloud;

    fn deref(&self) -> &Cloud {
        &self.cloud
    }
}

impl Cloudscale {
    fn seed(&self, collection: &str, body: &Value) -> String {
        self.cloud.seed(collection, body).unwrap()
    }

    pub(crate) fn edit_answers(&self) {
        let omitted = Arc::clone(&self.omissions);
        self.cloud.edit_answers(move |request, body| omitted.lock().unwrap().apply(request, body));
    }

    fn omissions(&self, change: impl FnOnce(&mut Omissions)) {
        change(&mut self.omissions.lock().unwrap());
    }
}

impl CloudUnderTest for Cloudscale {
    fn new(clock: &Arc<dyn Clock>) -> Self {
        let settings = SimSettings {
            latency: Duration::from_millis(20),
            build: Duration::from_secs(1),
            ..SimSettings::default()
        };
        let cloud = Cloud::new(Arc::clone(clock), Random::seeded(7), settings);
        let omissions = Arc::new(Mutex::new(Omissions::default()));
        let new = Self { cloud, door: Door::default(), token: Arc::new(TokenFile::new()), omissions };
        new.edit_answers();
        new
    }

    fn provider(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
        let token = TokenSource::file(&self.token.0, Arc::clone(clock)).unwrap();
        let settings = Settings::read(Ok(Some(token)), |_| None).unwrap();
        let around = Surroundings {
            transport: self.door.before(Transport::new(self.cloud.service())),
            clock: Arc::clone(clock),
            random: Arc::new(Random::seeded(1)),
            observer: Arc::new(Unobserved),
        };
        Arc::new(CloudscaleProvider::new(&settings, around))
    }

    fn id_annotation(&self) -> &'static str {
        "k8s.cloudscale.ch/loadbalancer-uuid"
    }

    fn name_annotation(&self) -> Option<&'static str> {
        Some("k8s.cloudscale.ch/loadbalancer-name")
    }

    fn generated_name(&self, service: &ServiceView) -> String {
        format!("k8s-service-{}", service.uid)
    }

    fn add_instance(&self, name: &str) -> String {
        format!("cloudscale://{}", self.cloud.add_server(name, "rma1").uuid)
    }

    fn build_by_hand(&self, name: &str) -> String {
        let server = self.cloud.add_server(&format!("behind-{name}"), "rma1");
        let private = server.private_address().unwrap();
        let balancer =
            self.seed("load-balancers", &json!({"name": name, "flavor": "lb-standard", "zone": "rma1"}));
        let body = json!({"name": "by hand", "load_balancer": balancer, "algorithm": "source_ip", "protocol": "tcp"});
        let pool = self.seed("load-balancers/pools", &body);
        let member = json!({"name": "mine", "protocol_port": 8080, "address": private.address, "subnet": private.subnet});
        self.seed(&format!("load-balancers/pools/{pool}/members"), &member);
        let listener = json!({"name": "mine", "pool": pool, "protocol": "tcp", "protocol_port": 8443});
        self.seed("load-balancers/listeners", &listener);
        balancer
    }

    fn balancers(&self) -> Vec<String> {
        self.cloud.balancers().into_iter().map(|balancer| balancer.uuid).collect()
    }

    fn state_of(&self, id: &str) -> Option<String> {
        let stock = self.cloud.resources();
        let balancer = stock.balancers.get(id)?;
        let pools: Vec<_> = stock.pools.values().filter(|pool| pool.balancer == id).collect();
        let ours = |pool: &str| pools.iter().any(|own| own.uuid == pool);
        let members: Vec<_> = stock.members.values().filter(|member| ours(&member.pool)).collect();
        let monitors: Vec<_> = stock.monitors.values().filter(|monitor| ours(&monitor.pool)).collect();
        let listeners: Vec<_> = stock.listeners.values().filter(|listener| listener.balancer == id).collect();
        Some(format!("{balancer:#?}\n{pools:#?}\n{members:#?}\n{monitors:#?}\n{listeners:#?}"))
    }

    fn mutations(&self) -> usize {
        self.cloud.journal().iter().filter(|entry| entry.mutation && entry.outcome.succeeded()).count()
    }

    fn lose_next_creation(&self) {
        let operation = "load-balancers.create".to_owned();
        self.cloud.add_fault(Fault { operation, times: Some(1), ..Fault::new(Harm::LostAnswer) });
    }

    fn swap_credential_during_next_delete(&self) {
        let (token, mut sent) = (Arc::clone(&self.token), 0);
        self.cloud.plan_faults(move |request| {
            if request.operation != "load-balancers.delete" {
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
                    token.set(TOKEN);
                    Some(Harm::NotFound)
                }
                _ => None,
            }
        });
    }

    fn send_next_delete_elsewhere(&self) {
        let mut sent = 0;
        self.cloud.plan_faults(move |request| {
            let deletes = request.operation == "load-balancers.delete";
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

#[tokio::test(start_paused = true)]
async fn what_is_omitted_is_missing_from_answers_only() {
    use testing_kit::checks::CloudFixture;

    let fixture: CloudFixture<Cloudscale> = CloudFixture::with_nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    let id = fixture.recorded("web").await.unwrap();
    assert_eq!(fixture.ingress("web").await.len(), 2);
    let before = fixture.cloud.state_of(&id);
    fixture.assert_quiet(300, "at rest").await;
    assert_eq!(fixture.cloud.state_of(&id), before);
    let cloud = &fixture.cloud;
    cloud.omit_balancer_addresses(true);
    cloud.omit_instance_addresses(true);
    cloud.garble_part_of(&id, true);
    let omissions = cloud.omissions.lock().unwrap();
    let edited = |operation: &str, mut body: Value| {
        let request = Request {
            number: 0,
            who: String::new(),
            operation: operation.to_owned(),
            method: "GET".to_owned(),
            path: String::new(),
            mutation: false,
        };
        omissions.apply(&request, &mut body);
        body
    };
    assert_eq!(edited("servers.list", json!([{"name": "a", "interfaces": []}])), json!([{"name": "a"}]));
    assert_eq!(edited("servers.get", json!({"name": "a", "interfaces": []})), json!({"name": "a"}));
    assert_eq!(edited("load-balancers.list", json!([{"vip_addresses": []}])), json!([{}]));
    let pool = |of: &str, algorithm: Value| json!([{"load_balancer": {"uuid": of}, "algorithm": algorithm}]);
    assert_eq!(edited("pools.list", pool(&id, json!("x"))), pool(&id, Value::Null));
    assert_eq!(edited("pools.list", pool("other", json!("x"))), pool("other", json!("x")));
}
