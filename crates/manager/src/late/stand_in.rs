//! What a late cloud answers. Which capabilities it has and what is pure is known; whatever the cloud is asked is not.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Call, Instance, InstanceState, Instances, Listing, LoadBalancers, Lookup, NodeView, Provider, ProviderId,
    Result, Routes, ServiceView, Zones,
    annotation::Table,
    decide::service::ownership::Ownership,
    lb::{
        Desired, Effects, Fleet, Marked, Name, Notice, Permit, Profile, Refusal, Request, Review, Survey,
        Turn,
    },
    net::IpFamily,
    provider::{Boxed, Place, Quota, Start},
    provider_id::Reading,
    route::{RouteChange, RouteData, RouteTable},
};

use super::LateProvider;

#[deny(clippy::missing_trait_methods, reason = "a default would answer in place of the provider")]
impl Provider for LateProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn scheme(&self) -> &str {
        self.inner.scheme()
    }

    fn owns(&self, id: &ProviderId) -> bool {
        self.inner.owns(id)
    }

    fn read_id(&self, text: &str) -> Reading {
        self.inner.read_id(text)
    }

    fn start<'a>(&'a self, call: &'a Call) -> Boxed<'a, Start> {
        self.inner.start(call)
    }

    fn stop<'a>(&'a self, call: &'a Call) -> Boxed<'a, ()> {
        self.inner.stop(call)
    }

    fn quotas<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Vec<Quota>>> {
        if self.is_late() { self.later(Err) } else { self.inner.quotas(call) }
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.inner.instances().map(|inner| if self.is_late() { self } else { inner })
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        self.inner.load_balancers().map(|inner| if self.is_late() { self } else { inner })
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.inner.routes().map(|inner| if self.is_late() { self } else { inner })
    }

    fn zones(&self) -> Option<&dyn Zones> {
        self.inner.zones().map(|inner| if self.is_late() { self } else { inner })
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would answer in place of the provider")]
impl Instances for LateProvider {
    fn list<'a>(&'a self, _: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
        self.later(Err)
    }

    fn get<'a>(&'a self, _: &'a Call, _: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        self.later(Lookup::Unknown)
    }

    fn ask_every(&self) -> Option<Duration> {
        self.inner.instances().and_then(Instances::ask_every)
    }

    fn runs<'a>(&'a self, _: &'a Call, _: &'a ProviderId) -> Boxed<'a, Lookup<InstanceState>> {
        self.later(Lookup::Unknown)
    }

    fn find<'a>(&'a self, _: &'a Call, _: &'a str) -> Boxed<'a, Lookup<Instance>> {
        self.later(Lookup::Unknown)
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would answer in place of the provider")]
impl Routes for LateProvider {
    fn families(&self) -> &[IpFamily] {
        self.inner.routes().map_or(&[], Routes::families)
    }

    fn list<'a>(
        &'a self,
        _: &'a Call,
        _: &'a [Arc<NodeView>],
        _: &'a Arc<dyn Fleet>,
    ) -> Boxed<'a, Result<RouteTable>> {
        self.later(Err)
    }

    fn apply<'a>(
        &'a self,
        _: &'a Call,
        _: Option<&'a RouteData>,
        changes: &'a [RouteChange],
    ) -> Boxed<'a, Vec<Result<Vec<Notice>>>> {
        self.later(|why| changes.iter().map(|_| Err(why.clone())).collect())
    }
}

impl Zones for LateProvider {
    fn list<'a>(&'a self, _: &'a Call) -> Boxed<'a, Result<Listing<Place>>> {
        self.later(Err)
    }
}

impl LateProvider {
    /// Asks for something that is pure; [`load_balancers`](Provider::load_balancers) sees to it that there is somebody to
    /// ask.
    fn pure<'a, T>(&'a self, ask: impl FnOnce(&'a dyn LoadBalancers) -> T, nobody: impl FnOnce() -> T) -> T {
        self.inner.load_balancers().map_or_else(nobody, ask)
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would answer in place of the provider")]
impl LoadBalancers for LateProvider {
    fn profile(&self) -> Profile<'_> {
        const NONE: &Table = &Table::new(&[]);
        self.pure(LoadBalancers::profile, || Profile {
            annotations: NONE,
            marks: &[],
            settle_time: Duration::ZERO,
            needs_endpoints: false,
        })
    }

    fn read(&self, service: &ServiceView, cluster: &str) -> Request {
        let nobody = || {
            let name = Name { text: String::new(), generated: false };
            Request { name, keys: Vec::new(), selector: None }
        };
        self.pure(|inner| inner.read(service, cluster), nobody)
    }

    fn accepts(&self, node: &NodeView, own: bool) -> bool {
        self.pure(|inner| inner.accepts(node, own), || own)
    }

    fn screen(&self, want: &Desired) -> Vec<Refusal> {
        self.pure(|inner| inner.screen(want), Vec::new)
    }

    fn review(&self, want: &Desired) -> Review {
        self.pure(|inner| inner.review(want), Review::default)
    }

    fn shows<'a>(&'a self, _: &'a Call, _: &'a str) -> Boxed<'a, Lookup<()>> {
        self.later(Lookup::Unknown)
    }

    fn marked<'a>(&'a self, _: &'a Call, _: &'a str) -> Boxed<'a, Result<Listing<Marked>>> {
        self.later(Err)
    }

    fn may_own(&self, service: &ServiceView, cluster: &str, marked: &Marked) -> bool {
        self.pure(|inner| inner.may_own(service, cluster, marked), || true)
    }

    fn survey(&self, _: &Arc<dyn Fleet>) -> Result<Survey> {
        Err(self.unknown())
    }

    fn owner<'a>(&'a self, _: &'a Call, _: &'a Survey, _: &'a Desired) -> Boxed<'a, Lookup<Ownership>> {
        self.later(Lookup::Unknown)
    }

    fn turn<'a>(
        &'a self,
        _: &'a Call,
        _: &'a Survey,
        _: &'a Desired,
        _: Permit,
        _: &'a dyn Effects,
    ) -> Boxed<'a, Turn> {
        self.later(Turn::unknown)
    }
}
