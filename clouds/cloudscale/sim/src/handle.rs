//! The handle with which a test or a demo changes and inspects the cloud.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random, Tick};
use http::Method;
use ipnet::IpNet;
use serde_json::Value;
use sim_kit::{Entry, Fault, Front, FrontService, Harm, Request, Tally};

use super::{
    history::PoolChange,
    projects::Projects,
    render::View,
    resources::{Balancer, FloatingIp, Listener, Member, Monitor, Pool, Resources, Server, Target},
    route::Route,
    settings::SimSettings,
    tokens::Access,
    world::{Moment, NewServer, World},
};

/// A cloud. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Cloud {
    front: Front<Projects>,
}

/// The cloud's API as a `tower` service. Clones are the same cloud.
pub type CloudService = FrontService<Projects>;

impl Cloud {
    /// A cloud on this clock, with the servers of its settings and nothing else.
    pub fn new(clock: Arc<dyn Clock>, random: Random, settings: SimSettings) -> Self {
        let random = Arc::new(random);
        let at = Moment { tick: clock.now(), wall: clock.wall() };
        let projects = Projects::new(settings, Arc::clone(&random), at);
        Self { front: Front::new(projects, clock, random) }
    }

    /// A service for clients in the same process. They must run on a tokio runtime.
    pub fn service(&self) -> CloudService {
        self.front.service()
    }

    /// The same, for a client that is called `who` in the journal and in plans of faults.
    pub fn service_as(&self, who: &str) -> CloudService {
        self.front.service_as(who)
    }

    fn with<T>(&self, act: impl FnOnce(&mut World, Moment) -> T) -> T {
        self.front.with(|projects, at| {
            projects.world.advance(at.tick);
            act(&mut projects.world, at)
        })
    }

    /// Changes the settings from now on.
    pub fn change_settings(&self, change: impl FnOnce(&mut SimSettings)) {
        self.with(|world, _| change(&mut world.settings));
    }

    /// Decides for each request what goes wrong with it; replaces what was set before. Where it says nothing, the
    /// faults of [`Cloud::add_fault`] decide.
    pub fn plan_faults(&self, plan: impl FnMut(&Request) -> Option<Harm> + Send + 'static) {
        self.front.plan_faults(plan);
    }

    /// Adds a fault, behind those that are in force.
    pub fn add_fault(&self, fault: Fault) {
        self.front.add_fault(fault);
    }

    /// Changes the bodies of successful answers before they are sent, to remove fields or make them unreadable. Replaces
    /// the editor that was set before. The resources themselves do not change.
    pub fn edit_answers(&self, editor: impl FnMut(&Request, &mut Value) + Send + 'static) {
        self.front.edit_answers(editor);
    }

    /// Lets everything go well from now on.
    pub fn stop_faults(&self) {
        self.front.stop_faults();
    }

    /// Accepts only these tokens from now on. Before the first call, every token is accepted.
    pub fn set_tokens<'a>(&self, tokens: impl IntoIterator<Item = (&'a str, Access)>) {
        let tokens = tokens.into_iter().map(|(token, access)| (token.to_owned(), access));
        self.front.with(|projects, _| projects.tokens.set(tokens.collect::<BTreeMap<_, _>>()));
    }

    /// Makes a server that runs, with public addresses of both families and one in the zone's private network.
    pub fn add_server(&self, name: &str, zone: &str) -> Server {
        self.with(|world, at| world.add_server(&NewServer::new(name, zone), at))
    }

    /// Makes a server in the other project, which [`Access::OtherProject`] gives access to.
    pub fn add_server_elsewhere(&self, name: &str, zone: &str) -> Server {
        self.front.with(|projects, at| projects.elsewhere.add_server(&NewServer::new(name, zone), at))
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
            world.resources.servers.get_mut(server)?.interfaces.push(interface);
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
        // A server that does not exist is ignored.
        let _ = self.with(|world, at| world.power(id, word, at));
    }

    /// Destroys a server.
    pub fn delete_server(&self, id: &str) {
        self.with(|world, _| world.delete_server(id));
    }

    /// Deletes a balancer with everything below it, without a request.
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
            world.resources.floating_ips.insert(network.addr(), ip);
        });
    }

    /// Overrides the health of a member, or ends that.
    pub fn set_health(&self, member: &str, health: Option<&str>) {
        self.with(|world, _| {
            if let Some(member) = world.resources.members.get_mut(member) {
                member.health = health.map(str::to_owned);
            }
        });
    }

    /// Overrides the status of a balancer, or ends that.
    pub fn set_status(&self, balancer: &str, status: Option<&str>) {
        self.with(|world, _| {
            if let Some(balancer) = world.resources.balancers.get_mut(balancer) {
                balancer.shown = status.map(str::to_owned);
            }
        });
    }

    /// Changes resources without the rules of the API.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Resources) -> T) -> T {
        self.with(|world, _| {
            world.forget_used();
            change(&mut world.resources)
        })
    }

    /// Carries out a request by the rules of the API, but without a token, latency, faults or an entry in the journal.
    /// Returns the body of the answer, or the status and body of a refusal.
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

    /// Creates a resource through [`Cloud::back_door`] and completes it at once: `seed` of `load-balancers/pools` posts to
    /// `/v1/load-balancers/pools`. Returns its id, or for a floating IP its address.
    pub fn seed(&self, collection: &str, body: &Value) -> Result<String, (u16, Value)> {
        let made = self.back_door("POST", &format!("/v1/{collection}"), body)?;
        self.settle();
        let text = |field: &str| made.get(field).and_then(Value::as_str).map(str::to_owned);
        let address = || text("network").and_then(|network| Some(network.split_once('/')?.0.to_owned()));
        Ok(text("uuid").or_else(address).unwrap_or_default())
    }

    /// Completes everything that takes time: balancers are built, servers have stopped or started.
    pub fn settle(&self) {
        self.with(|world, at| world.settle(at.tick));
    }

    /// Back to the initial state, with an empty journal and without faults. Tokens and settings stay.
    pub fn reset(&self) {
        self.front.reset();
    }

    /// All resources, whatever listings show.
    pub fn resources(&self) -> Resources {
        self.with(|world, _| world.resources.clone())
    }

    /// All resources of the other project, which [`Access::OtherProject`] gives access to.
    pub fn other_project(&self) -> Resources {
        self.front.with(|projects, _| projects.elsewhere.resources.clone())
    }

    /// The servers, in order of their ids.
    pub fn servers(&self) -> Vec<Server> {
        self.with(|world, _| world.resources.servers.values().cloned().collect())
    }

    /// The load balancers, in order of their ids.
    pub fn balancers(&self) -> Vec<Balancer> {
        self.with(|world, _| world.resources.balancers.values().cloned().collect())
    }

    /// The pools, in order of their ids.
    pub fn pools(&self) -> Vec<Pool> {
        self.with(|world, _| world.resources.pools.values().cloned().collect())
    }

    /// The members, in order of their ids.
    pub fn members(&self) -> Vec<Member> {
        self.with(|world, _| world.resources.members.values().cloned().collect())
    }

    /// The listeners, in order of their ids.
    pub fn listeners(&self) -> Vec<Listener> {
        self.with(|world, _| world.resources.listeners.values().cloned().collect())
    }

    /// The health monitors, in order of their ids.
    pub fn monitors(&self) -> Vec<Monitor> {
        self.with(|world, _| world.resources.monitors.values().cloned().collect())
    }

    /// The floating IPs, in order of their addresses.
    pub fn floating_ips(&self) -> Vec<FloatingIp> {
        self.with(|world, _| world.resources.floating_ips.values().cloned().collect())
    }

    /// The target of a floating IP.
    pub fn target_of(&self, address: IpAddr) -> Option<Target> {
        self.with(|world, _| world.resources.floating_ips.get(&address)?.target.clone())
    }

    /// The status of a balancer, as the API would show it.
    pub fn status_of(&self, balancer: &str) -> Option<String> {
        self.with(|world, at| {
            let view = View::new(&world.resources, "", at.tick);
            let shown = view.balancer(world.resources.balancers.get(balancer)?);
            shown.get("status")?.as_str().map(str::to_owned)
        })
    }

    /// The requests so far, in the order in which they took effect; of more than 200,000 the newest.
    pub fn journal(&self) -> Vec<Entry> {
        self.front.journal()
    }

    /// How many requests were sent and have not taken effect yet. At zero, only builds still change anything.
    pub fn under_way(&self) -> usize {
        self.front.under_way()
    }

    /// How many requests there were for each operation.
    pub fn tally(&self) -> Tally {
        self.front.tally()
    }

    /// Forgets the requests so far; numbers go on.
    pub fn clear_journal(&self) {
        self.front.clear_journal();
    }

    /// How the members of all pools, also of those that are gone, changed over time.
    pub fn pool_changes(&self) -> Vec<PoolChange> {
        self.front.with(|projects, _| projects.world.history.clone())
    }

    /// The changes that removed the last member of a pool which still exists and had a healthy member.
    pub fn emptied_pools(&self) -> Vec<PoolChange> {
        self.pool_changes().into_iter().filter(PoolChange::emptied).collect()
    }

    /// The time on the cloud's clock.
    pub fn now(&self) -> Tick {
        self.front.moment().tick
    }

    /// Sets how long requests take from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.change_settings(|settings| settings.latency = latency);
    }
}
