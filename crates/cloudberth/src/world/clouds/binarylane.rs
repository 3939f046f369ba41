//! A simulated BinaryLane.

use std::sync::Arc;

use binarylane_sim::{Cloud, SimSettings};
use cloudberth_binarylane::{BinaryLaneProvider, FileSettings, Settings, Sources, Surroundings};
use cloudberth_core::{Clock, Provider, Random, Secret};
use cloudberth_http::{Env, GivenFlags, TokenSource, Unobserved, yaml};

use super::{
    Around, BUILD, BalancerView, CLUSTER, InstanceView, LATENCY, Later, MemberView, WorldCloud, done,
    health_of, mistakes, no_instance, zone_for,
};

const REGIONS: [&str; 1] = ["bne"];

pub(super) struct Simulated(Cloud);

impl Simulated {
    pub(super) fn new(clock: Arc<dyn Clock>, random: Random) -> Self {
        let settings = SimSettings { latency: LATENCY, build: BUILD, ..SimSettings::default() };
        Self(Cloud::new(clock, random, settings))
    }

    /// Those that are not cancelled or deleted.
    fn servers(&self) -> Vec<binarylane_sim::Server> {
        self.0.servers().into_iter().filter(|server| server.gone.is_none()).collect()
    }

    fn with(&self, name: &str, act: impl FnOnce(&Cloud, i64)) -> Later<'static, Result<(), String>> {
        let found = self.servers().into_iter().find(|server| server.name == name);
        done(found.map(|server| act(&self.0, server.id)).ok_or_else(|| no_instance(name)))
    }
}

impl WorldCloud for Simulated {
    fn name(&self) -> &'static str {
        "binarylane"
    }

    fn provider(&self, around: &Around) -> Result<Arc<dyn Provider>, String> {
        let token = Secret::new("sandbox").map(|token| Some(TokenSource::fixed(token)));
        let file = yaml::read("", FileSettings::read).map_err(|_| "no settings".to_owned())?;
        let (env, given) = (Env::default(), GivenFlags::default());
        let sources = Sources { token, env: &env, file, given: &given, cluster: CLUSTER };
        let settings = Settings::read(sources).map_err(|wrong| mistakes(&wrong))?;
        let around = Surroundings {
            transport: around.wire.to(self.0.service()),
            clock: Arc::clone(&around.clock),
            random: Arc::clone(&around.random),
            observer: Arc::new(Unobserved),
        };
        Ok(Arc::new(BinaryLaneProvider::new(settings, around)))
    }

    fn instances(&self) -> Vec<InstanceView> {
        let view =
            |server: binarylane_sim::Server| InstanceView { running: server.running, name: server.name };
        self.servers().into_iter().map(view).collect()
    }

    fn balancer(&self, name: &str) -> Option<BalancerView> {
        let balancer = self.0.balancers().into_iter().find(|balancer| balancer.name == name)?;
        let servers = self.servers();
        let member = |id: &i64| {
            let server = servers.iter().find(|server| server.id == *id);
            MemberView {
                instance: server.map_or_else(|| id.to_string(), |server| server.name.clone()),
                health: health_of(server.is_some_and(|server| server.running)),
                connections: 0,
            }
        };
        let port = |rule: &String| if rule == "https" { 443 } else { 80 };
        let mut ports: Vec<_> = balancer.rules.iter().map(port).collect();
        ports.sort_unstable();
        Some(BalancerView {
            members: balancer.server_ids.iter().map(member).collect(),
            ports,
            reachable: None,
        })
    }

    fn balancer_count(&self) -> usize {
        self.0.balancers().len()
    }

    fn add<'a>(&'a self, name: &'a str) -> Later<'a, Result<String, String>> {
        self.0.add_server(name, zone_for(&REGIONS, self.servers().len()));
        done(Ok(name.to_owned()))
    }

    fn set_running<'a>(&'a self, name: &'a str, running: bool) -> Later<'a, Result<(), String>> {
        self.with(name, |cloud, id| if running { cloud.start_server(id) } else { cloud.stop_server(id) })
    }

    fn destroy<'a>(&'a self, name: &'a str) -> Later<'a, Result<(), String>> {
        self.with(name, Cloud::delete_server)
    }
}
