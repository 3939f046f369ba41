//! The projects of the cloud, as its front sees them.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Random, Tick};
use serde_json::{Value, json};
use sim_kit::{Incoming, Reply, RestCloud};

use super::{
    refusal::Refusal,
    render::View,
    route::{Kind, Route, Verb},
    settings::SimSettings,
    tags::TagFilter,
    tokens::{Access, Tokens},
    world::{self, Moment, World, list},
};

/// Our project, another one, and who may do what in them.
#[derive(Debug)]
pub struct Projects {
    pub(crate) world: World,
    /// Another project, for requests with a token of it.
    pub(crate) elsewhere: World,
    pub(crate) tokens: Tokens,
    random: Arc<Random>,
}

impl Projects {
    pub(crate) fn new(settings: SimSettings, random: Arc<Random>, at: Moment) -> Self {
        let (world, elsewhere) = Self::begin(settings, &random, at);
        Self { world, elsewhere, tokens: Tokens::default(), random }
    }

    fn begin(settings: SimSettings, random: &Arc<Random>, at: Moment) -> (World, World) {
        let other = SimSettings { instances: 0, ..settings.clone() };
        (World::new(settings, Arc::clone(random), at), World::new(other, Arc::clone(random), at))
    }

    fn access(&self, request: &Incoming) -> Result<Access, Refusal> {
        self.tokens.check(request.header("authorization"), self.mutates(request))
    }

    fn project(&mut self, access: Access) -> &mut World {
        if access == Access::OtherProject { &mut self.elsewhere } else { &mut self.world }
    }

    fn carry_out(&mut self, request: &Incoming, at: Moment) -> Result<world::Reply, Refusal> {
        let access = self.access(request)?;
        let route = route(request)?;
        self.project(access).handle(&route, request.query.as_deref(), &request.body, &request.base, at)
    }
}

fn route(request: &Incoming) -> Result<Route, Refusal> {
    Route::parse(&request.method, &request.path)
}

fn refused(refusal: Refusal) -> Reply {
    Reply::new(refusal.status, Some(refusal.body))
}

impl RestCloud for Projects {
    fn operation(&self, request: &Incoming) -> String {
        route(request).map_or_else(|_| "unknown".to_owned(), |route| route.to_string())
    }

    fn latency(&self) -> (Duration, f64) {
        (self.world.settings.latency, self.world.settings.jitter)
    }

    /// Changes of one balancer wait for each other.
    fn queue(&mut self, request: &Incoming, now: Tick, takes: Duration) -> Duration {
        let (Ok(route), Ok(access)) = (route(request), self.access(request)) else { return Duration::ZERO };
        let world = self.project(access);
        match world.balancer_changed_by(&route, &request.body) {
            None => Duration::ZERO,
            Some(balancer) => world.queue(&balancer, now, takes).since(now),
        }
    }

    fn handle(&mut self, request: &Incoming, at: Moment) -> Reply {
        match self.carry_out(request, at) {
            Ok(world::Reply { status, body }) => Reply::new(status, body),
            Err(refusal) => refused(refusal),
        }
    }

    fn refuse(&self, _: &Incoming, status: u16) -> Reply {
        refused(match status {
            404 => Refusal::not_found(),
            _ => Refusal::new(status, "The cloud was told to fail this request."),
        })
    }

    fn items<'a>(&self, request: &Incoming, body: &'a mut Value) -> Option<&'a mut Vec<Value>> {
        let lists = route(request).is_ok_and(|route| route.verb == Verb::List);
        if lists { body.as_array_mut() } else { None }
    }

    fn state(&mut self, base: &str, at: Moment) -> Value {
        self.world.advance(at.tick);
        let view = View::new(&self.world.resources, base, at.tick);
        let all = |kind| list(&view, kind, None, &TagFilter::default());
        json!({
            "servers": all(Kind::Server),
            "load_balancers": all(Kind::Balancer),
            "pools": all(Kind::Pool),
            "members": all(Kind::Member),
            "listeners": all(Kind::Listener),
            "health_monitors": all(Kind::Monitor),
            "floating_ips": all(Kind::FloatingIp),
            "networks": all(Kind::Network),
            "subnets": all(Kind::Subnet),
            "pool_changes": self.world.history,
        })
    }

    /// Tokens and settings stay.
    fn reset(&mut self, at: Moment) {
        let settings = self.world.settings.clone();
        (self.world, self.elsewhere) = Self::begin(settings, &self.random, at);
    }
}
