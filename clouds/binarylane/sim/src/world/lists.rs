//! Lists: by id, actions newest first.

use serde_json::Value;

use super::{Call, Reply, World};
use crate::{
    paging::Listing,
    refusal::Refusal,
    render,
    resources::Action,
    route::Route,
    settings::{REGIONS, SIZES},
};

impl World {
    pub(super) fn list(&self, call: Call<'_>) -> Result<Reply, Refusal> {
        let Call { route, query, base, at, .. } = call;
        let resources = &self.resources;
        let (path, key, mut items) = match route {
            Route::ListServers => ("servers".to_owned(), "servers", self.servers(query.get("hostname"))),
            Route::ListBalancers => {
                let name = query.get("name").filter(|_| self.settings.counts_and_filters());
                let ghosts = resources.ghosts.iter().map(|(_, balancer)| balancer);
                let mut all: Vec<_> = resources.balancers.values().chain(ghosts).collect();
                all.sort_by_key(|balancer| balancer.id);
                let fits = all.into_iter().filter(|balancer| {
                    balancer.visible <= at.tick
                        && name.is_none_or(|name| balancer.name.eq_ignore_ascii_case(name))
                });
                let items = fits.map(|balancer| (balancer.id, render::balancer(balancer))).collect();
                ("load_balancers".to_owned(), "load_balancers", items)
            }
            Route::ListVpcs => {
                let items = resources.vpcs.values().map(|vpc| (vpc.id, render::vpc(vpc))).collect();
                ("vpcs".to_owned(), "vpcs", items)
            }
            Route::ListMembers(id) => {
                let vpc = resources.vpcs.get(&id).ok_or_else(Refusal::not_found)?;
                // Only servers are ever listed here, whatever other types there are.
                let wanted = query.get("resource_type").is_none_or(|kind| kind == "server");
                let members = resources.members_of(vpc.id).filter(|_| wanted);
                let items = members.map(|server| (server.id, render::member(server))).collect();
                (format!("vpcs/{id}/members"), "members", items)
            }
            Route::ListServerActions(id) => {
                let server = resources.servers.get(&id).ok_or_else(Refusal::not_found)?;
                let of_it =
                    |action: &&Action| action.resource_type == "server" && action.resource_id == server.id;
                (format!("servers/{id}/actions"), "actions", self.actions(of_it))
            }
            Route::ListActions => ("actions".to_owned(), "actions", self.actions(|_| true)),
            Route::ListRegions => {
                let items = REGIONS.iter().map(|(slug, _)| (0, render::region(slug))).collect();
                ("regions".to_owned(), "regions", items)
            }
            Route::ListSizes => {
                let items = SIZES.iter().map(|(slug, ..)| (0, render::size(slug))).collect();
                ("sizes".to_owned(), "sizes", items)
            }
            _ => return Err(Refusal::empty(404)),
        };
        if self.settings.switches.random_order {
            self.shuffle(&mut items);
        }
        let listing = Listing { key, url: format!("{base}/v2/{path}"), query, settings: &self.settings };
        listing.answer(items).map(Reply::ok)
    }

    /// All servers, or at most one with this name.
    fn servers(&self, hostname: Option<&str>) -> Vec<(i64, Value)> {
        let hostname = hostname.filter(|_| !self.settings.switches.ignore_hostname);
        let fits = |name: &str| hostname.is_none_or(|hostname| name.eq_ignore_ascii_case(hostname));
        let most = if hostname.is_some() { 1 } else { usize::MAX };
        let servers = self.resources.servers.values().filter(|server| fits(&server.name)).take(most);
        servers.map(|server| (server.id, render::server(server, &self.settings))).collect()
    }

    fn actions(&self, fits: impl Fn(&&Action) -> bool) -> Vec<(i64, Value)> {
        let actions = self.resources.actions.values().rev().filter(fits);
        actions.map(|action| (action.id, render::action(action, &self.settings))).collect()
    }

    fn shuffle(&self, items: &mut [(i64, Value)]) {
        for last in (1..items.len()).rev() {
            let bound = u64::try_from(last).unwrap_or(u64::MAX).saturating_add(1);
            let other = usize::try_from(self.random.bits() % bound).unwrap_or_default();
            items.swap(last, other);
        }
    }
}
