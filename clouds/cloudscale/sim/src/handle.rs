//! The cloud from outside: what a test or a demo does to it, and what it may look at.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random, Tick};
use http::Method;
use ipnet::IpNet;
use serde_json::Value;
use sim_kit::Harm;

use super::{
    faults::{Fault, Request},
    history::PoolChange,
    journal::{Entry, Tally},
    render::View,
    route::Route,
    service::{Asker, CloudService},
    settings::SimSettings,
    shared::Shared,
    stock::{Balancer, FloatingIp, Listener, Member, Monitor, Pool, Server, Stock, Target},
    tokens::Access,
    world::{Moment, NewServer, World},
};

/// A cloud. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Cloud {
    shared: Arc<Shared>,
}

impl Cloud {
    /// A cloud that goes by `clock`, with the servers that its settings name and nothing else.
    pub fn new(clock: Arc<dyn Clock>, random: Random, settings: SimSettings) -> Self {
        Self { shared: Arc::new(Shared::new(clock, random, settings)) }
    }

    /// The way in for clients in the same process. They must run on a tokio runtime.
    pub fn service(&self) -> CloudService {
        CloudService::new(Asker::new(Arc::clone(&self.shared), None))
    }

    /// The same, for a client that is called `who` in the journal and in plans of faults.
    pub fn service_as(&self, who: &str) -> CloudService {
        CloudService::new(Asker::new(Arc::clone(&self.shared), Some(who.to_owned())))
    }

    fn with<T>(&self, act: impl FnOnce(&mut World, Moment) -> T) -> T {
        let at = self.shared.moment();
        let mut state = self.shared.lock();
        state.world.advance(at.tick);
        act(&mut state.world, at)
    }

    /// Changes the settings from now on.
    pub fn set_manners(&self, change: impl FnOnce(&mut SimSettings)) {
        self.with(|world, _| change(&mut world.settings));
    }

    /// Decides for each request what goes wrong with it; replaces what was set before. Where it says nothing, the
    /// faults of [`Cloud::add_fault`] decide.
    pub fn plan_faults(&self, plan: impl FnMut(&Request) -> Option<Harm> + Send + 'static) {
        self.shared.lock().planner.set(plan);
    }

    /// Adds a fault, behind those that are in force.
    pub fn add_fault(&self, fault: Fault) {
        self.shared.lock().rules.add(fault);
    }

    /// Changes the bodies of good answers before they are sent: fields that go missing, parts that cannot be read.
    /// Replaces what was set before. What there is stays as it is.
    pub fn edit_answers(&self, editor: impl FnMut(&Request, &mut Value) + Send + 'static) {
        self.shared.lock().editor = Some(Box::new(editor));
    }

    /// Lets everything go well from now on.
    pub fn stop_faults(&self) {
        self.shared.lock().stop_faults();
    }

    /// Lets in only the bearers of these tokens from now on. Before the first call, every token will do.
    pub fn set_tokens<'a>(&self, tokens: impl IntoIterator<Item = (&'a str, Access)>) {
        let tokens = tokens.into_iter().map(|(token, access)| (token.to_owned(), access));
        self.shared.lock().tokens.set(tokens.collect::<BTreeMap<_, _>>());
    }

    /// Makes a server that runs, with public addresses of both families and one in the zone's private network.
    pub fn add_server(&self, name: &str, zone: &str) -> Server {
        self.with(|world, at| world.add_server(&NewServer::new(name, zone), at))
    }

    /// Makes a server in the other project, where those go who have a token of it.
    pub fn add_server_elsewhere(&self, name: &str, zone: &str) -> Server {
        let at = self.shared.moment();
        self.shared.lock().elsewhere.add_server(&NewServer::new(name, zone), at)
    }

    /// Makes a server with an address in each of these private subnets, and no other.
    pub fn add_private_server(&self, name: &str, zone: &str, subnets: &[&str]) -> Server {
        self.with(|world, at| {
            let one = |subnet: &&str| world.on_subnets(&[(*subnet).to_owned()], false);
            let interfaces = Some(subnets.iter().filter_map(one).collect());
            world.add_server(&NewServer { interfaces, ..NewServer::new(name, zone) }, at)
        })
    }

    /// Gives a server an address in one more private subnet; `None` where there is no such server or subnet.
    pub fn attach(&self, server: &str, subnet: &str) -> Option<IpAddr> {
        self.with(|world, _| {
            let wanted = world.on_subnets(&[subnet.to_owned()], false)?;
            let interface = world.build_interface(&wanted, &[]);
            let address = interface.addresses.first()?.address;
            world.stock.servers.get_mut(server)?.interfaces.push(interface);
            Some(address)
        })
    }

    /// Makes a private network with one subnet, and returns the subnet's id.
    pub fn add_private_network(&self, name: &str, zone: &str, cidr: IpNet) -> String {
        self.with(|world, at| world.add_private_network(name, zone, cidr, at))
    }

    /// Switches a server off, by way of `changing` if that takes time.
    pub fn stop_server(&self, id: &str) {
        self.power(id, "stop");
    }

    /// Switches a server on.
    pub fn start_server(&self, id: &str) {
        self.power(id, "start");
    }

    fn power(&self, id: &str, word: &str) {
        // Of a server that is not there, nothing is asked.
        let _ = self.with(|world, at| world.power(id, word, at));
    }

    /// Destroys a server.
    pub fn delete_server(&self, id: &str) {
        self.with(|world, _| world.delete_server(id));
    }

    /// Destroys a balancer, with all that is below it, behind everybody's back.
    pub fn delete_balancer(&self, id: &str) {
        self.with(|world, at| world.remove_balancer(id, at));
    }

    /// Makes a floating IP available: an address or, for IPv6, a network. Without a region it is global.
    pub fn add_floating_ip(&self, network: IpNet, region: Option<&str>) {
        self.with(|world, at| {
            let region = region.map(str::to_owned);
            let created_at = at.wall;
            let (target, reverse_ptr, tags) = (None, None, BTreeMap::new());
            let ip = FloatingIp { network, created_at, region, target, reverse_ptr, tags };
            world.stock.floating_ips.insert(network.addr(), ip);
        });
    }

    /// Sets what a member's monitor says, or lets it say again what is so.
    pub fn set_health(&self, member: &str, health: Option<&str>) {
        self.with(|world, _| {
            if let Some(member) = world.stock.members.get_mut(member) {
                member.health = health.map(str::to_owned);
            }
        });
    }

    /// Sets the status that a balancer shows, or lets it show again what is so.
    pub fn set_status(&self, balancer: &str, status: Option<&str>) {
        self.with(|world, _| {
            if let Some(balancer) = world.stock.balancers.get_mut(balancer) {
                balancer.shown = status.map(str::to_owned);
            }
        });
    }

    /// Writes into what there is, past every rule.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Stock) -> T) -> T {
        self.with(|world, _| {
            world.forget_used();
            change(&mut world.stock)
        })
    }

    /// Carries a request out at once and by the rules, but unseen: it needs no token, takes no time, meets no fault
    /// and leaves no trace in the journal. Returns the body of the answer, or the status and body of a refusal.
    pub fn back_door(&self, method: &str, path: &str, body: &Value) -> Result<Value, (u16, Value)> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        self.with(|world, at| {
            let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
            let reply = Route::parse(&method, path)
                .and_then(|route| world.handle(&route, query, &body, "http://localhost", at))
                .map_err(|refusal| (refusal.status, refusal.body))?;
            Ok(reply.body.unwrap_or_default())
        })
    }

    /// Makes something at the back door that is there at once, whatever time it takes to build: `seed` of
    /// `load-balancers/pools` posts to `/v1/load-balancers/pools`. Returns its id, or for a floating IP its address.
    pub fn seed(&self, collection: &str, body: &Value) -> Result<String, (u16, Value)> {
        let made = self.back_door("POST", &format!("/v1/{collection}"), body)?;
        self.settle();
        let text = |field: &str| made.get(field).and_then(Value::as_str).map(str::to_owned);
        let address = || text("network").and_then(|network| Some(network.split_once('/')?.0.to_owned()));
        Ok(text("uuid").or_else(address).unwrap_or_default())
    }

    /// Ends everything that takes time: balancers are built, servers have stopped or started.
    pub fn settle(&self) {
        self.with(|world, at| world.settle(at.tick));
    }

    /// Back to the beginning, with an empty journal and without faults. Tokens and settings stay.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// Everything that there is now, whatever listings show.
    pub fn stock(&self) -> Stock {
        self.with(|world, _| world.stock.clone())
    }

    /// Everything that there is in the other project, where those go who have a token of it.
    pub fn other_project(&self) -> Stock {
        self.shared.lock().elsewhere.stock.clone()
    }

    /// The servers, in order of their ids.
    pub fn servers(&self) -> Vec<Server> {
        self.with(|world, _| world.stock.servers.values().cloned().collect())
    }

    /// The load balancers, in order of their ids.
    pub fn balancers(&self) -> Vec<Balancer> {
        self.with(|world, _| world.stock.balancers.values().cloned().collect())
    }

    /// The pools, in order of their ids.
    pub fn pools(&self) -> Vec<Pool> {
        self.with(|world, _| world.stock.pools.values().cloned().collect())
    }

    /// The members, in order of their ids.
    pub fn members(&self) -> Vec<Member> {
        self.with(|world, _| world.stock.members.values().cloned().collect())
    }

    /// The listeners, in order of their ids.
    pub fn listeners(&self) -> Vec<Listener> {
        self.with(|world, _| world.stock.listeners.values().cloned().collect())
    }

    /// The health monitors, in order of their ids.
    pub fn monitors(&self) -> Vec<Monitor> {
        self.with(|world, _| world.stock.monitors.values().cloned().collect())
    }

    /// The floating IPs, in order of their addresses.
    pub fn floating_ips(&self) -> Vec<FloatingIp> {
        self.with(|world, _| world.stock.floating_ips.values().cloned().collect())
    }

    /// What a floating IP leads to now.
    pub fn target_of(&self, address: IpAddr) -> Option<Target> {
        self.with(|world, _| world.stock.floating_ips.get(&address)?.target.clone())
    }

    /// The status of a balancer, as the API would show it.
    pub fn status_of(&self, balancer: &str) -> Option<String> {
        self.with(|world, at| {
            let view = View::new(&world.stock, "", at.tick);
            let shown = view.balancer(world.stock.balancers.get(balancer)?);
            shown.get("status")?.as_str().map(str::to_owned)
        })
    }

    /// Every request so far (of very many, the newest), in the order in which they took effect.
    pub fn journal(&self) -> Vec<Entry> {
        self.shared.lock().journal.iter().cloned().collect()
    }

    /// Requests that were sent and have not taken effect yet. At zero, nothing changes any more by itself but what is
    /// being built.
    pub fn under_way(&self) -> usize {
        self.shared.lock().under_way
    }

    /// How often each operation was asked for so far.
    pub fn tally(&self) -> Tally {
        Tally::of(self.shared.lock().journal.iter())
    }

    /// Forgets the requests so far; numbers go on.
    pub fn clear_journal(&self) {
        self.shared.lock().journal.clear();
    }

    /// How the members of all pools, also of those that are gone, changed over time.
    pub fn pool_changes(&self) -> Vec<PoolChange> {
        self.shared.lock().world.history.clone()
    }

    /// The changes that took the last member from a pool that stayed, although traffic still had somewhere to go.
    pub fn emptied_pools(&self) -> Vec<PoolChange> {
        self.pool_changes().into_iter().filter(PoolChange::emptied).collect()
    }

    /// The cloud's time.
    pub fn now(&self) -> Tick {
        self.shared.moment().tick
    }

    /// Sets how long requests take from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.set_manners(|settings| settings.latency = latency);
    }
}
