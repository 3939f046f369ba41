//! A simulated Brightbox. Its nodes are called by the ids of their servers.

use std::{net::IpAddr, sync::Arc};

use brightbox_sim::{Cloud, Delays, SimSettings};
use cloudberth_brightbox::{BrightboxProvider, Settings, Surroundings};
use cloudberth_core::{Call, Clock, Lookup, Provider, Random, Secret, provider::Boxed};
use cloudberth_http::{Resolver, TokenSource, Unobserved};

use super::{
    Around, BUILD, BalancerView, InstanceView, LATENCY, Later, MemberView, WorldCloud, done, health_of,
    mistakes, no_instance, zone_for,
};

const ZONES: [&str; 2] = ["gb1-a", "gb1-b"];

pub(super) struct Simulated(Cloud);

/// The names of Cloud IPs, as the cloud's own name server has them.
struct OwnNames(Cloud);

impl Resolver for OwnNames {
    fn resolve<'a>(&'a self, _: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Vec<IpAddr>>> {
        let found = self.0.resolve(name);
        let answer = if found.is_empty() { Lookup::Absent } else { Lookup::Present(found) };
        Box::pin(std::future::ready(answer))
    }
}

impl Simulated {
    pub(super) fn new(clock: Arc<dyn Clock>, random: Random) -> Self {
        let delays = Delays { build: BUILD, ..Delays::default() };
        let settings = SimSettings { latency: LATENCY, delays, open: true, ..SimSettings::default() };
        Self(Cloud::new(clock, random, settings))
    }

    fn servers(&self) -> Vec<brightbox_sim::Server> {
        self.0.servers().into_iter().filter(|server| server.deleted_at.is_none()).collect()
    }

    fn with(&self, name: &str, act: impl FnOnce(&Cloud, &str)) -> Later<'static, Result<(), String>> {
        let found = self.servers().into_iter().find(|server| server.id == name);
        done(found.map(|server| act(&self.0, &server.id)).ok_or_else(|| no_instance(name)))
    }
}

fn runs(server: &brightbox_sim::Server) -> bool {
    server.status == "active"
}

impl WorldCloud for Simulated {
    fn name(&self) -> &'static str {
        "brightbox"
    }

    fn provider(&self, around: &Around) -> Result<Arc<dyn Provider>, String> {
        let fixed = |text: &str| Secret::new(text).map(|secret| Some(TokenSource::fixed(secret)));
        let account = self.0.account();
        let variable = |name: &str| (name == "BRIGHTBOX_ACCOUNT").then_some(account.as_str());
        let settings = Settings::read(fixed("cli-sand1"), fixed("sandbox"), variable);
        let settings = settings.map_err(|wrong| mistakes(&wrong))?;
        let around = Surroundings {
            transport: around.wire.to(self.0.service()),
            clock: Arc::clone(&around.clock),
            random: Arc::clone(&around.random),
            observer: Arc::new(Unobserved),
            resolver: Arc::new(OwnNames(self.0.clone())),
        };
        Ok(Arc::new(BrightboxProvider::new(&settings, around)))
    }

    fn instances(&self) -> Vec<InstanceView> {
        let view = |server: brightbox_sim::Server| InstanceView { running: runs(&server), name: server.id };
        self.servers().into_iter().map(view).collect()
    }

    fn balancer(&self, name: &str) -> Option<BalancerView> {
        let all = self.0.balancers();
        let balancer = all.iter().find(|one| one.alive() && one.name.as_deref() == Some(name))?;
        let servers = self.servers();
        let member = |id: &String| {
            let server = servers.iter().find(|server| server.id == *id);
            MemberView { instance: id.clone(), health: health_of(server.is_some_and(runs)), connections: 0 }
        };
        let mut ports: Vec<_> = balancer.listeners.iter().map(|listener| listener.in_port).collect();
        ports.sort_unstable();
        Some(BalancerView { members: balancer.nodes.iter().map(member).collect(), ports, reachable: None })
    }

    fn balancer_count(&self) -> usize {
        self.0.balancers().iter().filter(|balancer| balancer.alive()).count()
    }

    fn add<'a>(&'a self, name: &'a str) -> Later<'a, Result<String, String>> {
        done(Ok(self.0.add_server(name, zone_for(&ZONES, self.servers().len())).id))
    }

    fn set_running<'a>(&'a self, name: &'a str, running: bool) -> Later<'a, Result<(), String>> {
        self.with(name, |cloud, id| if running { cloud.start_server(id) } else { cloud.stop_server(id) })
    }

    fn destroy<'a>(&'a self, name: &'a str) -> Later<'a, Result<(), String>> {
        self.with(name, Cloud::delete_server)
    }
}
