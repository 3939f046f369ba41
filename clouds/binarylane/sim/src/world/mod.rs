//! An account and the rules of the API. It is synchronous: the time comes in with every request, and randomness is used
//! only for names and for lists in random order.

mod actions;
mod addresses;
mod balancers;
mod lists;
mod power;
mod servers;
mod vpcs;

use std::sync::Arc;

use cloudberth_core::{Random, Tick};
use serde_json::{Value, json};

use crate::{
    history::PoolChange, paging::Query, refusal::Refusal, render, resources::Resources, route::Route,
    settings::SimSettings,
};

pub use servers::NewServer;
pub(crate) use sim_kit::Moment;

/// The answer to a request that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Nothing for 202 and 204.
    pub(crate) body: Option<Value>,
}

impl Reply {
    pub(crate) const fn ok(body: Value) -> Self {
        Self { status: 200, body: Some(body) }
    }

    pub(crate) const fn done() -> Self {
        Self { status: 204, body: None }
    }
}

/// A request whose path and token are in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) route: Route,
    pub(crate) query: &'a Query,
    pub(crate) body: &'a [u8],
    /// Scheme, host and port as the client wrote them; links begin with it.
    pub(crate) base: &'a str,
    pub(crate) at: Moment,
}

/// An account of the cloud.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) resources: Resources,
    pub(crate) history: Vec<PoolChange>,
    /// The names of balancers that were created while there was one of the same name.
    pub(crate) doubled: Vec<String>,
    pub(crate) settings: SimSettings,
    random: Arc<Random>,
    ids: Ids,
    /// The VPC that is there from the beginning.
    pub(crate) vpc: i64,
}

/// The last id of each kind. They start far apart, so that an id of one kind is none of another.
#[derive(Debug)]
struct Ids {
    server: i64,
    balancer: i64,
    vpc: i64,
    action: i64,
}

fn next(last: &mut i64) -> i64 {
    *last += 1;
    *last
}

impl World {
    /// An account with a VPC, and in it the servers of its settings. `number` keeps the ids of accounts apart.
    pub(crate) fn new(settings: SimSettings, random: Arc<Random>, number: i64, at: Moment) -> Self {
        let instances = settings.instances;
        let apart = number * 10_000_000;
        let ids = Ids {
            server: apart + 410_000,
            balancer: apart + 5_000,
            vpc: apart + 4_000,
            action: apart + 2_000_000,
        };
        let mut world = Self {
            resources: Resources::default(),
            history: Vec::new(),
            doubled: Vec::new(),
            settings,
            random,
            ids,
            vpc: 0,
        };
        world.vpc = world.add_vpc("kube-net", addresses::VPC_RANGE);
        let region = world.settings.default_region.clone();
        for number in 1..=instances {
            world.add_server(&NewServer::new(&format!("node-{number}"), &region), at);
        }
        world
    }

    /// Carries a request out.
    pub(crate) fn handle(&mut self, call: Call<'_>) -> Result<Reply, Refusal> {
        let Call { route, body, at, .. } = call;
        self.advance(at.tick);
        match route {
            Route::ListServers
            | Route::ListServerActions(_)
            | Route::ListBalancers
            | Route::ListVpcs
            | Route::ListMembers(_)
            | Route::ListActions
            | Route::ListRegions
            | Route::ListSizes => self.list(call),
            Route::CreateServer => self.create_server(call),
            Route::GetServer(id) => {
                let server = self.resources.servers.get(&id).ok_or_else(Refusal::not_found)?;
                Ok(Reply::ok(json!({"server": render::server(server, &self.settings)})))
            }
            Route::DeleteServer(id) => self.cancel_server(id, call.query.get("reason"), at),
            Route::ActOnServer(id) => self.act_on_server(id, call),
            Route::GetServerAction(server, id) => self.show_action(id, Some(server)),
            Route::CreateBalancer => self.create_balancer(call),
            Route::Availability => Ok(Reply::ok(render::availability())),
            Route::GetBalancer(id) => {
                Ok(Reply::ok(json!({"load_balancer": render::balancer(self.balancer(id, at)?)})))
            }
            Route::UpdateBalancer(id) => self.update_balancer(id, call),
            Route::DeleteBalancer(id) => self.delete_balancer(id, at),
            Route::AddServers(id) => self.change_servers(id, body, true, at),
            Route::RemoveServers(id) => self.change_servers(id, body, false, at),
            Route::AddRules(id) => self.change_rules(id, body, true, at),
            Route::RemoveRules(id) => self.change_rules(id, body, false, at),
            Route::CreateVpc => self.create_vpc(body),
            Route::GetVpc(id) => self.show_vpc(id),
            Route::UpdateVpc(id) => self.replace_vpc(id, body),
            Route::PatchVpc(id) => self.patch_vpc(id, body),
            Route::DeleteVpc(id) => self.delete_vpc(id),
            Route::GetAction(id) => self.show_action(id, None),
            Route::Proceed(id) => self.proceed(id, body, at),
            Route::GetAccount => Ok(Reply::ok(render::account())),
        }
    }

    /// Completes everything that is due by now.
    pub(crate) fn advance(&mut self, now: Tick) {
        self.finish_actions(|action| action.due <= now);
        self.retire_servers(now);
        self.resources.ghosts.retain(|(until, _)| *until > now);
    }

    /// Completes everything that takes time at once, except what is blocked.
    pub(crate) fn settle(&mut self, now: Tick) {
        self.finish_actions(|_| true);
        for balancer in self.resources.balancers.values_mut() {
            balancer.visible = balancer.visible.min(now);
        }
    }
}
