//! The handle with which a test or a demo changes and inspects the cloud.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random, Tick};
use http::Method;
use ipnet::Ipv4Net;
use serde_json::{Value, json};
use sim_kit::{Entry, Fault, Front, FrontService, Harm, Request, Tally};

use crate::{
    accounts::Accounts,
    history::PoolChange,
    paging::Query,
    refusal::Refusal,
    resources::{Action, Balancer, Resources, RouteEntry, Server, Vpc},
    route::Route,
    settings::SimSettings,
    switches::Switches,
    tokens::Access,
    world::{Call, Moment, NewServer, World},
};

/// A cloud. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Cloud {
    front: Front<Accounts>,
}

/// The cloud's API as a `tower` service. Clones are the same cloud.
pub type CloudService = FrontService<Accounts>;

impl Cloud {
    /// A cloud on this clock, with a VPC, the servers of its settings in it, and nothing else.
    pub fn new(clock: Arc<dyn Clock>, random: Random, settings: SimSettings) -> Self {
        let random = Arc::new(random);
        let at = Moment { tick: clock.now(), wall: clock.wall() };
        let accounts = Accounts::new(settings, Arc::clone(&random), at);
        Self { front: Front::new(accounts, clock, random) }
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
        self.front.with(|accounts, at| {
            accounts.world.advance(at.tick);
            act(&mut accounts.world, at)
        })
    }

    /// Changes the settings from now on.
    pub fn change_settings(&self, change: impl FnOnce(&mut SimSettings)) {
        self.with(|world, _| change(&mut world.settings));
    }

    /// Flips switches from now on, for both accounts.
    pub fn switch(&self, change: impl FnOnce(&mut Switches)) {
        self.front.with(|accounts, _| {
            let mut switches = accounts.world.settings.switches.clone();
            change(&mut switches);
            accounts.set_switches(&switches);
        });
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

    /// Lets everything go well from now on. Switches stay.
    pub fn stop_faults(&self) {
        self.front.stop_faults();
    }

    /// Accepts only these tokens from now on. Before the first call, every token is accepted.
    pub fn set_tokens<'a>(&self, tokens: impl IntoIterator<Item = (&'a str, Access)>) {
        let tokens = tokens.into_iter().map(|(token, access)| (token.to_owned(), access));
        self.front.with(|accounts, _| accounts.tokens.set(tokens.collect::<BTreeMap<_, _>>()));
    }

    /// Makes a server that runs, with public addresses of both families and one in the first VPC.
    pub fn add_server(&self, name: &str, region: &str) -> Server {
        self.add(&NewServer::new(name, region))
    }

    /// Makes a server that runs.
    pub fn add(&self, new: &NewServer) -> Server {
        self.with(|world, at| world.add_server(new, at))
    }

    /// Makes a server in the other account, which [`Access::OtherAccount`] gives access to.
    pub fn add_server_elsewhere(&self, name: &str, region: &str) -> Server {
        self.front.with(|accounts, at| accounts.elsewhere.add_server(&NewServer::new(name, region), at))
    }

    /// Switches a server off at once.
    pub fn stop_server(&self, id: i64) {
        self.set_running(id, false);
    }

    /// Switches a server on at once.
    pub fn start_server(&self, id: i64) {
        self.set_running(id, true);
    }

    fn set_running(&self, id: i64, running: bool) {
        self.edit(|resources| {
            if let Some(server) = resources.servers.get_mut(&id) {
                server.running = running;
                if running { "active" } else { "off" }.clone_into(&mut server.status);
            }
        });
    }

    /// Takes a server away without a trace: it is found no more, and in no pool.
    pub fn delete_server(&self, id: i64) {
        self.with(|world, at| world.remove_server(id, at.tick));
    }

    /// Cancels a server, as its owner would; what follows is [`Switches::cancellation`].
    pub fn cancel_server(&self, id: i64) {
        // A server that does not exist is ignored.
        let _ = self.with(|world, at| world.cancel_server(id, None, at));
    }

    /// Makes a load balancer with one HTTP rule and these servers, active and with an address. Returns its id, or the
    /// status and body of a refusal.
    pub fn add_balancer(
        &self,
        name: &str,
        region: Option<&str>,
        servers: &[i64],
    ) -> Result<i64, (u16, Value)> {
        self.seed("load_balancers", &json!({"name": name, "region": region, "server_ids": servers}))
    }

    /// Deletes a balancer without a request.
    pub fn delete_balancer(&self, id: i64) {
        self.with(|world, at| world.remove_balancer(id, at));
    }

    /// Sets the status of a balancer: `new`, `active` or `errored`.
    pub fn set_status(&self, balancer: i64, status: &str) {
        self.edit(|resources| {
            if let Some(balancer) = resources.balancers.get_mut(&balancer) {
                status.clone_into(&mut balancer.status);
            }
        });
    }

    /// Makes a VPC without routes, and returns its id.
    pub fn add_vpc(&self, name: &str, ip_range: Ipv4Net) -> i64 {
        self.with(|world, _| world.add_vpc(name, ip_range))
    }

    /// Changes resources without the rules of the API.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Resources) -> T) -> T {
        self.with(|world, _| change(&mut world.resources))
    }

    /// Carries out a request by the rules of the API, but without a token, latency, faults or an entry in the journal:
    /// `back_door("GET", "/v2/servers", &Value::Null)`. Returns the body of the answer, or the status and body of a
    /// refusal.
    pub fn back_door(&self, method: &str, path: &str, body: &Value) -> Result<Value, (u16, Value)> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let query = Query::parse(query);
        let reply = self.with(|world, at| {
            let route = Route::parse(&method, path).ok_or(Refusal::empty(404))?;
            world.handle(Call { route, query: &query, body: &body, base: "http://localhost", at })
        });
        match reply {
            Ok(reply) => Ok(reply.body.unwrap_or_default()),
            Err(refusal) => Err((refusal.status, refusal.body.unwrap_or_default())),
        }
    }

    /// Creates a resource through [`Cloud::back_door`] and completes it at once: `seed` of `load_balancers` posts to
    /// `/v2/load_balancers`. Returns its id.
    pub fn seed(&self, collection: &str, body: &Value) -> Result<i64, (u16, Value)> {
        let made = self.back_door("POST", &format!("/v2/{collection}"), body)?;
        self.settle();
        let id = made.as_object().and_then(|made| made.values().find_map(|thing| thing.get("id")?.as_i64()));
        Ok(id.unwrap_or_default())
    }

    /// Completes everything that takes time and is not blocked: balancers are built, servers have stopped or started.
    pub fn settle(&self) {
        self.with(|world, at| world.settle(at.tick));
    }

    /// Lets everything go on that waits for people: invoices are paid, and questions answered with yes.
    pub fn unblock(&self) {
        self.with(World::unblock);
    }

    /// Moves the cloud's clock forward, against the one that was handed in.
    pub fn advance(&self, how_far: Duration) {
        self.front.advance(how_far);
    }

    /// Back to the initial state, with an empty journal and without faults. Tokens, settings and switches stay.
    pub fn reset(&self) {
        self.front.reset();
    }

    /// All resources, whatever lists show.
    pub fn resources(&self) -> Resources {
        self.with(|world, _| world.resources.clone())
    }

    /// All resources of the other account, which [`Access::OtherAccount`] gives access to.
    pub fn other_account(&self) -> Resources {
        self.front.with(|accounts, _| accounts.elsewhere.resources.clone())
    }

    /// The servers, in order of their ids.
    pub fn servers(&self) -> Vec<Server> {
        self.with(|world, _| world.resources.servers.values().cloned().collect())
    }

    /// The load balancers, in order of their ids.
    pub fn balancers(&self) -> Vec<Balancer> {
        self.with(|world, _| world.resources.balancers.values().cloned().collect())
    }

    /// One load balancer.
    pub fn balancer(&self, id: i64) -> Option<Balancer> {
        self.with(|world, _| world.resources.balancers.get(&id).cloned())
    }

    /// The actions, oldest first.
    pub fn actions(&self) -> Vec<Action> {
        self.with(|world, _| world.resources.actions.values().cloned().collect())
    }

    /// The VPCs, in order of their ids.
    pub fn vpcs(&self) -> Vec<Vpc> {
        self.with(|world, _| world.resources.vpcs.values().cloned().collect())
    }

    /// The VPC that is there from the beginning, and that servers are put in unless they say otherwise.
    pub fn first_vpc(&self) -> i64 {
        self.with(|world, _| world.vpc)
    }

    /// The routes of a VPC; none where there is no such VPC.
    pub fn routes(&self, vpc: i64) -> Vec<RouteEntry> {
        self.with(|world, _| world.resources.vpcs.get(&vpc).map(|vpc| vpc.route_entries.clone()))
            .unwrap_or_default()
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

    /// How the servers of all balancers, also of those that are gone, changed over time.
    pub fn pool_changes(&self) -> Vec<PoolChange> {
        self.front.with(|accounts, _| accounts.world.history.clone())
    }

    /// The changes by which a request took the last server from a balancer that still exists.
    pub fn emptied_pools(&self) -> Vec<PoolChange> {
        self.pool_changes().into_iter().filter(PoolChange::emptied).collect()
    }

    /// The names of load balancers that were created while there was one of the same name, whatever became of them.
    pub fn doubled(&self) -> Vec<String> {
        self.front.with(|accounts, _| accounts.world.doubled.clone())
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
