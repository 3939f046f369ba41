//! A cluster at cloudscale.ch, with all controllers at work.

use std::{
    collections::BTreeSet,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use cloudberth_core::{ServiceView, call::ReadOnly};
pub(crate) use cloudscale_sim::replaced::{PREFIX, annotated};
use cloudscale_sim::{Balancer, Entry, SimSettings, Tally};
use serde_json::Value;
pub(crate) use sim_kit::merge;
use testing_kit::checks::CloudFixture;
pub(crate) use testing_kit::seeded::{FINALIZER, INTENT};

use crate::under_test::Cloudscale;

/// The fixture of every cloud, with what only cloudscale.ch has.
pub(crate) struct Fixture(CloudFixture<Cloudscale>);

impl Deref for Fixture {
    type Target = CloudFixture<Cloudscale>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Fixture {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Fixture {
    /// The cloud answers after 20 ms and builds a load balancer in a second, as in the promises about time.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut SimSettings)) -> Self {
        Self::looking_again(None, adjust)
    }

    /// With a slow pass that looks for what changed behind the program's back.
    pub(crate) fn looking_again(drift: Option<Duration>, adjust: impl FnOnce(&mut SimSettings)) -> Self {
        let fixture: CloudFixture<Cloudscale> = CloudFixture::looking_again(drift);
        fixture.cloud.change_settings(adjust);
        Self(fixture)
    }

    /// The program starts while another one leads.
    pub(crate) fn restart_behind_another(&mut self) {
        self.restart_behind(Arc::new(ReadOnly));
    }

    /// A server and its node, Ready and initialised. Returns the server's id.
    pub(crate) async fn node(&self, name: &str) -> String {
        let id = self.cloud.add_server(name, "rma1").uuid;
        self.cluster.register(name, Some(&format!("cloudscale://{id}"))).await;
        id
    }

    pub(crate) async fn nodes(&self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for number in 1..=count {
            ids.push(self.node(&format!("node-{number:02}")).await);
        }
        ids
    }

    /// Annotations without their prefix; null removes one.
    pub(crate) async fn annotate(&self, name: &str, annotations: &[(&str, Value)]) {
        self.edit(name, annotated(annotations)).await;
    }

    pub(crate) async fn get(&self, name: &str) -> ServiceView {
        self.cluster.service(name).await.unwrap()
    }

    /// The load balancer that a Service has recorded.
    pub(crate) async fn balancer(&self, name: &str) -> Balancer {
        let service = self.get(name).await;
        let id = service.annotations.get(&format!("{PREFIX}uuid")).unwrap_or_else(|| {
            panic!("{name} has no load balancer: {:?} {:?}", service.annotations, self.cluster.events(name))
        });
        self.cloud.balancers().into_iter().find(|balancer| balancer.uuid == *id).unwrap()
    }

    /// Ports, and the addresses behind each, of the load balancer of a Service.
    pub(crate) async fn shape(&self, name: &str) -> Vec<(u16, Vec<String>)> {
        let id = self.balancer(name).await.uuid;
        let stock = self.cloud.resources();
        let mut shape = Vec::new();
        for listener in stock.listeners.values() {
            let Some(pool) = stock
                .pools
                .get(listener.pool.as_deref().unwrap_or_default())
                .filter(|pool| pool.balancer == id)
            else {
                continue;
            };
            let members = stock.members.values().filter(|member| member.pool == pool.uuid);
            let mut members: Vec<_> = members.map(|member| member.name.clone()).collect();
            members.sort();
            shape.push((listener.protocol_port, members));
        }
        shape.sort();
        shape
    }

    /// The ids of everything below the load balancers, by kind: pools, listeners, monitors, members.
    pub(crate) fn parts(&self) -> [BTreeSet<String>; 4] {
        let stock = self.cloud.resources();
        [
            stock.pools.into_keys().collect(),
            stock.listeners.into_keys().collect(),
            stock.monitors.into_keys().collect(),
            stock.members.into_keys().collect(),
        ]
    }

    /// The operations that changed something since the journal was cleared.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.mutations().into_iter().map(|entry| entry.operation).collect()
    }

    /// What was asked of the cloud since the journal was cleared.
    pub(crate) fn tally(&self) -> Tally {
        self.cloud.tally()
    }

    pub(crate) fn mutations(&self) -> Vec<Entry> {
        self.cloud.journal().into_iter().filter(|entry| entry.mutation).collect()
    }

    /// Time goes by and nothing is written anywhere.
    pub(crate) async fn assert_quiet(&self, seconds: u64, case: &str) {
        self.cloud.clear_journal();
        let kube = self.kube_calls();
        self.pass(seconds).await;
        assert_eq!(self.mutations(), [], "{case}");
        assert_eq!(self.cluster.writes(kube), [], "{case}");
    }
}
