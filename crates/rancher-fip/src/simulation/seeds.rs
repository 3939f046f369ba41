//! Chance picks what fails and what people do. In the end everything is as it should be, and on the way no token was
//! replaced while there was one, no address taken from a living cluster, and none leaked from a dead one.

use std::time::Duration;

use cloudberth_core::{Random, Tick};
use embedded_kube::{Fault, Harm, KubeApi};
use serde_json::json;

use super::{
    wire::{PROGRAM, Tamper},
    witness::{MORTAL, Witness},
    world::{GUEST, PROJECT_SECRET, Running, TARGET, World, calls_so_far, pass, request, simulate, writes},
};
use crate::{options::Options, plan::data, settings::Delays};

const CLUSTERS: &str = "/apis/management.cattle.io/v3/clusters";
const FLOATING_IPS: &str = "/apis/rancher.k8s.binbash.org/v1beta2/namespaces/team-x/floatingips";
const SECRETS: &str = "/api/v1/namespaces/c-m-harv01/secrets";
const HOSTS: [&str; 4] = ["local", "guest01", "guest02", "harv01"];
const ACTS: u64 = 12;

/// `CLOUDBERTH_SEEDS=2000` asks for so many, `CLOUDBERTH_SEED=17` for one.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    number("CLOUDBERTH_SEED")
        .map_or_else(|| 0..number("CLOUDBERTH_SEEDS").unwrap_or(16), |seed| seed..seed + 1)
}

/// How long things take in a life. Most lives are short ones: the same program with every delay shorter.
struct Pace {
    delays: Delays,
    /// The longest time between two acts, in seconds.
    between: u64,
    /// After this many seconds without trouble everything is as it should be.
    settled: u64,
    /// In this many seconds everything is looked at again at least once.
    quiet: u64,
}

impl Pace {
    fn of(seed: u64) -> Self {
        if seed % 16 == 15 {
            return Self { delays: Delays::default(), between: 400, settled: 1_500, quiet: 1_300 };
        }
        let seconds = Duration::from_secs;
        let delays = Delays {
            resync: seconds(60),
            config_poll: seconds(15),
            discovery_poll: seconds(30),
            soon: seconds(8),
            unreachable: seconds(16),
            slow: seconds(60),
            backoff_longest: seconds(30),
            helm_stale: seconds(90),
            ..Delays::default()
        };
        Self { delays, between: 60, settled: 270, quiet: 140 }
    }
}

/// Calls of the program to one API that fail for some time.
struct Outage {
    host: &'static str,
    fault: Fault,
    until: Tick,
}

struct Life {
    random: Random,
    pace: Pace,
    world: World,
    witness: Witness,
    outages: Vec<Outage>,
    replicas: Vec<Running>,
    has_pool: bool,
    has_project: bool,
    has_quota: bool,
    made: u64,
}

impl Life {
    async fn begin(seed: u64, tamper: Option<Tamper>) -> Self {
        let mut world = World::reference().await;
        world.tamper = tamper;
        world.namespace("team-x").await;
        world.guest(MORTAL, "guest02").await;
        for (name, cluster) in [("living", GUEST), ("mortal", MORTAL), ("by-hand", "my-cluster")] {
            world.floating_ip("team-x", name, cluster).await;
        }
        let mut life = Self {
            random: Random::seeded(seed),
            pace: Pace::of(seed),
            world,
            witness: Witness::new(),
            outages: Vec::new(),
            replicas: Vec::new(),
            has_pool: true,
            has_project: true,
            has_quota: false,
            made: 0,
        };
        life.start();
        life
    }

    fn pick(&self, of: u64) -> u64 {
        self.random.bits() % of
    }

    fn one<T: Copy>(&self, of: &[T]) -> T {
        of[usize::try_from(self.pick(of.len() as u64)).unwrap()]
    }

    fn api(&self, host: &str) -> KubeApi {
        if host == "local" { self.world.local.clone() } else { self.world.api(host) }
    }

    fn start(&mut self) {
        let options = Options { delays: self.pace.delays, ..Options::default() };
        self.replicas.push(self.world.start_with(options));
    }

    /// Something begins to fail.
    fn fail(&mut self) {
        let host = self.one(&HOSTS);
        let harm = match self.pick(10) {
            0 | 1 => Harm::status(403),
            2 => Harm::status(401),
            3 => Harm::status(500),
            4 => Harm::status(404),
            5 | 6 => Harm::LostAnswer,
            7 => Harm::LostCall,
            8 => Harm::Conflict,
            _ => Harm::Latency { millis: 12_000 },
        };
        let verb = self.one(&["", "", "get", "list", "watch", "create", "update", "patch"]);
        let of =
            ["", "", "secrets", "secrets", "clusters", "floatingips", "namespaces", "configmaps", "leases"];
        let fault = Fault { user_agent: PROGRAM.to_owned(), ..Fault::new(harm).on(verb, self.one(&of)) };
        let until = self.world.clock.now() + Duration::from_secs(1 + self.pick(3 * self.pace.between));
        self.outages.push(Outage { host, fault, until });
    }

    /// Lets those faults be in force that last.
    fn apply_outages(&mut self) {
        let now = self.world.clock.now();
        self.outages.retain(|outage| outage.until > now);
        for host in HOSTS {
            let api = self.api(host);
            api.clear_faults();
            self.outages
                .iter()
                .filter(|outage| outage.host == host)
                .for_each(|outage| api.add_fault(outage.fault.clone()));
        }
    }

    /// One act of chance or of a person. The faults are the program's only.
    async fn act(&mut self) {
        match self.pick(20) {
            0..=4 => self.fail(),
            5 => drop(self.replicas.pop()),
            6 if self.replicas.len() < 2 => self.start(),
            7 => {
                if let Some(replica) = self.replicas.pop() {
                    replica.stop().await;
                }
            }
            8..=10 => self.harm_the_token().await,
            11 => {
                let path = format!("/api/v1/namespaces/{TARGET}");
                let what = self
                    .one(&["secrets/rancher-fip-config-p-abcde", "configmaps/network-interface-mappings"]);
                self.try_delete("guest01", &format!("{path}/{what}")).await;
            }
            12 | 13 => self.kill_or_revive().await,
            14 => {
                let label = json!({"rancher-fip-lbtype": self.one(&[Some("metallb"), Some("purelb"), Some("x"), None])});
                self.world.label(GUEST, label).await;
            }
            15 => {
                let cut = self.one(&HOSTS);
                self.api(cut).restart();
                if self.pick(2) == 0 {
                    self.api(cut).compact();
                }
            }
            16 => {
                let version = self.one(&["0.2.0", "0.3.0", "0.4.0"]);
                self.world.configure(&[("RancherFipLBControllerChartVersion", version)]).await;
            }
            17 => {
                self.try_delete("local", "/api/v1/namespaces/fleet-default/secrets/guest01-kubeconfig").await;
                self.world.kubeconfig("guest01-kubeconfig", "guest01").await;
            }
            18 => {
                let label = json!({"rancher-fip": self.one(&[Some("enabled"), None])});
                self.world.label(GUEST, label).await;
            }
            _ => self.move_the_chain().await,
        }
    }

    async fn try_delete(&self, host: &str, path: &str) {
        // It may not be there.
        let _ = request(&self.api(host), "DELETE", path, None).await;
    }

    async fn harm_the_token(&mut self) {
        let path = format!("{SECRETS}/{PROJECT_SECRET}");
        match self.pick(3) {
            0 => {
                self.try_delete("local", &path).await;
                self.witness.secret_deleted();
            }
            1 => {
                self.try_delete("local", &path).await;
                self.made += 1;
                let token = format!("by-hand-{}", self.made);
                let values =
                    json!({"clientSecret": data::encode(&token), "project": data::encode("p-abcde")});
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": PROJECT_SECRET}, "data": values});
                // The program may have been quicker.
                match request(&self.world.local, "POST", SECRETS, Some(secret)).await {
                    Ok(_) => self.witness.secret_made(&token),
                    Err(_) => self.witness.secret_deleted(),
                }
            }
            _ => {
                let emptied = json!({"data": {"clientSecret": ""}});
                if request(&self.world.local, "PATCH", &path, Some(emptied)).await.is_ok() {
                    self.witness.token_taken_out();
                }
            }
        }
    }

    async fn kill_or_revive(&mut self) {
        if !self.witness.is_dead() {
            self.try_delete("local", &format!("{CLUSTERS}/{MORTAL}")).await;
            self.witness.died();
            return;
        }
        let body = json!({"apiVersion": "management.cattle.io/v3", "kind": "Cluster",
            "metadata": {"name": MORTAL, "labels": {"rancher-fip": "enabled"}}, "spec": {"displayName": "guest02"}});
        self.world.send("POST", CLUSTERS, Some(body)).await;
        // It asks for its address again, for another Service.
        self.made += 1;
        let service = format!("again-{}", self.made);
        let labels = json!({"metadata": {"labels": {
            "rancher.k8s.binbash.org/cluster-name": MORTAL, "rancher.k8s.binbash.org/service-0-name": service}}});
        self.world.send("PATCH", &format!("{FLOATING_IPS}/mortal"), Some(labels)).await;
        self.witness.revived(calls_so_far(&self.world.local));
    }

    /// What leads to the project comes and goes.
    async fn move_the_chain(&mut self) {
        let pools = "/apis/rancher.k8s.binbash.org/v1beta2/floatingippools/harv01--vlan10";
        let quotas = "/apis/rancher.k8s.binbash.org/v1beta2/floatingipprojectquotas/p-abcde";
        match self.pick(3) {
            0 if self.has_pool => self.try_delete("local", pools).await,
            0 => self.world.pool("harv01--vlan10", "harv01", "vlan10", "eth1", false).await,
            1 if self.has_quota => self.try_delete("local", quotas).await,
            1 => self.world.quota("p-abcde").await,
            _ if self.has_project => {
                let path = "/apis/management.cattle.io/v3/namespaces/c-m-harv01/projects/p-abcde";
                self.try_delete("local", path).await;
            }
            _ => self.world.project("c-m-harv01", "p-abcde").await,
        }
        let there = |plural: &str, name: &str| {
            self.world.local.objects(plural).iter().any(|one| one["metadata"]["name"] == name)
        };
        let fip = "rancher.k8s.binbash.org";
        let (pool, quota, project) = (
            there(&format!("floatingippools.{fip}"), "harv01--vlan10"),
            there(&format!("floatingipprojectquotas.{fip}"), "p-abcde"),
            there("projects.management.cattle.io", "p-abcde"),
        );
        (self.has_pool, self.has_quota, self.has_project) = (pool, quota, project);
    }

    /// Replicas that ended by themselves are started again, as a kubelet does.
    fn restart_those_that_ended(&mut self) {
        let before = self.replicas.len();
        self.replicas.retain(|replica| !replica.is_over());
        for _ in self.replicas.len()..before {
            self.start();
        }
    }

    /// All trouble ends, and one new replica brings everything to what it should be.
    async fn end_well(&mut self) -> Result<(), String> {
        self.outages.clear();
        self.apply_outages();
        self.replicas.clear();
        self.world.label(GUEST, json!({"rancher-fip": "enabled"})).await;
        if !self.has_pool {
            self.world.pool("harv01--vlan10", "harv01", "vlan10", "eth1", false).await;
        }
        if !self.has_project {
            self.world.project("c-m-harv01", "p-abcde").await;
        }
        self.start();
        pass(self.pace.settled).await;
        self.witness.look(&self.world)?;
        self.witness.conclude(&self.world)?;
        let marks = HOSTS.map(|host| calls_so_far(&self.api(host)));
        pass(self.pace.quiet).await;
        for (host, mark) in HOSTS.into_iter().zip(marks) {
            let written = writes(&self.api(host), mark);
            if !written.is_empty() {
                return Err(format!("law 4: {host}: {written:?}"));
            }
        }
        Ok(())
    }
}

/// One life; what went wrong in it.
pub(super) async fn live(seed: u64, tamper: Option<Tamper>) -> Result<(), String> {
    let mut life = Life::begin(seed, tamper).await;
    for _ in 0..ACTS {
        life.act().await;
        life.apply_outages();
        pass(life.pick(life.pace.between)).await;
        life.witness.look(&life.world)?;
        life.restart_those_that_ended();
    }
    life.end_well().await
}

#[test]
fn chance_does_no_harm() {
    let seeds = seeds();
    let mut wrong = Vec::new();
    for seed in seeds.clone() {
        simulate(async {
            if let Err(why) = live(seed, None).await {
                wrong.push(format!("seed {seed}: {why}"));
            }
        });
    }
    assert!(wrong.is_empty(), "{} of {} seeds:\n{}", wrong.len(), seeds.end - seeds.start, wrong.join("\n"));
    println!("{} seeds, nothing wrong", seeds.end - seeds.start);
}
