//! A simulated cloudscale.ch.

use std::{collections::BTreeMap, sync::Arc};

use cloudberth_cloudscale::{CloudscaleProvider, Settings, Surroundings};
use cloudberth_core::{Clock, Provider, Random, Secret};
use cloudberth_http::{TokenSource, Unobserved};
use cloudscale_sim::{Cloud, SimSettings};

use super::{
    Around, BUILD, BalancerView, InstanceView, LATENCY, Later, MemberView, WorldCloud, done, health_of,
    mistakes, no_instance, zone_for,
};

const ZONES: [&str; 1] = ["rma1"];

pub(super) struct Simulated(Cloud);

impl Simulated {
    pub(super) fn new(clock: Arc<dyn Clock>, random: Random) -> Self {
        let settings = SimSettings { latency: LATENCY, build: BUILD, ..SimSettings::default() };
        Self(Cloud::new(clock, random, settings))
    }

    fn with(&self, name: &str, act: impl FnOnce(&Cloud, &str)) -> Later<'static, Result<(), String>> {
        let found = self.0.servers().into_iter().find(|server| server.name == name);
        done(found.map(|server| act(&self.0, &server.uuid)).ok_or_else(|| no_instance(name)))
    }
}

impl WorldCloud for Simulated {
    fn name(&self) -> &'static str {
        "cloudscale"
    }

    fn provider(&self, around: &Around) -> Result<Arc<dyn Provider>, String> {
        let token = Secret::new("sandbox").map(|token| Some(TokenSource::fixed(token)));
        let settings = Settings::read(token, |_| None).map_err(|wrong| mistakes(&wrong))?;
        let around = Surroundings {
            transport: around.wire.to(self.0.service()),
            clock: Arc::clone(&around.clock),
            random: Arc::clone(&around.random),
            observer: Arc::new(Unobserved),
        };
        Ok(Arc::new(CloudscaleProvider::new(&settings, around)))
    }

    fn instances(&self) -> Vec<InstanceView> {
        let view =
            |server: cloudscale_sim::Server| InstanceView { running: server.is_running(), name: server.name };
        self.0.servers().into_iter().map(view).collect()
    }

    fn balancer(&self, name: &str) -> Option<BalancerView> {
        let resources = self.0.resources();
        let balancer = resources.balancers.values().find(|balancer| balancer.name == name)?;
        let addresses: BTreeMap<_, _> = resources
            .servers
            .values()
            .flat_map(|server| server.addresses().map(move |address| (address.address, server)))
            .collect();
        let pools = resources.pools.values().filter(|pool| pool.balancer == balancer.uuid);
        let mut members: Vec<_> = pools
            .flat_map(|pool| resources.members_of(&pool.uuid))
            .filter_map(|member| {
                let server = addresses.get(&member.address).copied();
                Some(MemberView {
                    instance: server.map_or_else(|| member.name.clone(), |server| server.name.clone()),
                    health: health_of(server.is_some_and(cloudscale_sim::Server::is_running)),
                    connections: 0,
                })
                .filter(|_| member.enabled)
            })
            .collect();
        // Every port has a pool of its own.
        members.sort_by(|a, b| a.instance.cmp(&b.instance));
        members.dedup_by(|a, b| a.instance == b.instance);
        let listeners = resources.listeners.values().filter(|listener| listener.balancer == balancer.uuid);
        let mut ports: Vec<_> = listeners.map(|listener| listener.protocol_port).collect();
        ports.sort_unstable();
        Some(BalancerView { members, ports, reachable: None })
    }

    fn balancer_count(&self) -> usize {
        self.0.balancers().len()
    }

    fn add<'a>(&'a self, name: &'a str) -> Later<'a, Result<String, String>> {
        self.0.add_server(name, zone_for(&ZONES, self.0.servers().len()));
        done(Ok(name.to_owned()))
    }

    fn set_running<'a>(&'a self, name: &'a str, running: bool) -> Later<'a, Result<(), String>> {
        self.with(name, |cloud, id| if running { cloud.start_server(id) } else { cloud.stop_server(id) })
    }

    fn destroy<'a>(&'a self, name: &'a str) -> Later<'a, Result<(), String>> {
        self.with(name, Cloud::delete_server)
    }
}
