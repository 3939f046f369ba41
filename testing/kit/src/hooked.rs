//! A fake cloud whose load balancers can be watched, or given a bug.

use std::{collections::BTreeSet, sync::Arc};

use cloudberth_controllers::clouds::Clouds;
use cloudberth_core::{
    Call, Instances, LoadBalancers, Lookup, NodeView, Provider, Result, Routes, ServiceView,
    decide::service::ownership::Ownership,
    lb::{Desired, Effects, Fleet, Permit, Profile, Refusal, Request, Survey, Turn},
    provider::Boxed,
};
use cloudberth_fake::FakeProvider;

use crate::{ClusterFixture, PROGRAM};

/// What a test does where the load balancers of a cloud are asked something. By default nothing.
pub trait Hooks: Send + Sync + 'static {
    /// A Service is read.
    fn read(&self, _service: &ServiceView) {}

    /// Whether a node may stand behind load balancers of this cloud.
    fn accepts(&self, _node: &NodeView, own: bool) -> bool {
        own
    }

    /// A turn begins.
    fn begins(&self, _want: &Desired) {}

    /// A turn has ended.
    fn ended(&self, _want: &Desired) {}
}

struct Hooked<H> {
    inner: FakeProvider,
    hooks: Arc<H>,
}

impl ClusterFixture {
    /// Puts hooks around the load balancers of the only cloud.
    pub fn hook<H: Hooks>(&mut self, hooks: H) -> Arc<H> {
        let inner = FakeProvider::new(&self.names[0], &self.clouds[0], PROGRAM, Arc::clone(&self.clock));
        let hooks = Arc::new(hooks);
        let provider: Arc<dyn Provider> = Arc::new(Hooked { inner, hooks: Arc::clone(&hooks) });
        self.ctx.clouds = Clouds::new(vec![(provider, BTreeSet::new())], None, &self.clock).unwrap();
        hooks
    }
}

impl<H: Hooks> Provider for Hooked<H> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn scheme(&self) -> &str {
        self.inner.scheme()
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.inner.instances()
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(self)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.inner.routes()
    }
}

impl<H: Hooks> LoadBalancers for Hooked<H> {
    fn profile(&self) -> Profile<'_> {
        self.inner.balancers().profile()
    }

    fn read(&self, service: &ServiceView, cluster: &str) -> Request {
        self.hooks.read(service);
        self.inner.balancers().read(service, cluster)
    }

    fn accepts(&self, node: &NodeView, own: bool) -> bool {
        self.hooks.accepts(node, own)
    }

    fn screen(&self, want: &Desired) -> Vec<Refusal> {
        self.inner.balancers().screen(want)
    }

    fn shows<'a>(&'a self, call: &'a Call, id: &'a str) -> Boxed<'a, Lookup<()>> {
        self.inner.balancers().shows(call, id)
    }

    fn survey(&self, fleet: &Arc<dyn Fleet>) -> Result<Survey> {
        self.inner.balancers().survey(fleet)
    }

    fn owner<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Desired,
    ) -> Boxed<'a, Lookup<Ownership>> {
        self.inner.balancers().owner(call, survey, want)
    }

    fn turn<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Desired,
        permit: Permit,
        effects: &'a dyn Effects,
    ) -> Boxed<'a, Turn> {
        Box::pin(async move {
            self.hooks.begins(want);
            let turn = self.inner.balancers().turn(call, survey, want, permit, effects).await;
            self.hooks.ended(want);
            turn
        })
    }
}
