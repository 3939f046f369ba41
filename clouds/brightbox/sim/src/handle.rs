//! The handle with which a test or a demo changes and inspects the cloud.

use std::{net::IpAddr, sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random, Tick};
use http::Method;
use serde_json::Value;
use sim_kit::{Entry, Fault, Front, FrontService, Harm, Moment, Request, Tally};

use super::{
    access::{Access, Credentials},
    account::Account,
    history::NodesChange,
    resources::{Balancer, CloudIp, FirewallPolicy, Group, Resources, Server, in_order},
    route::Route,
    settings::SimSettings,
    world::World,
};

/// A cloud. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Cloud {
    front: Front<Account>,
}

/// The cloud's API as a `tower` service. Clones are the same cloud.
pub type CloudService = FrontService<Account>;

impl Cloud {
    /// A cloud on this clock, with the servers of its settings, the default group and policy, and nothing else.
    pub fn new(clock: Arc<dyn Clock>, random: Random, settings: SimSettings) -> Self {
        let random = Arc::new(random);
        let at = Moment { tick: clock.now(), wall: clock.wall() };
        let account = Account::new(settings, Arc::clone(&random), at);
        Self { front: Front::new(account, clock, random) }
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
        self.front.with(|account, at| {
            account.world.advance(at);
            let done = act(&mut account.world, at);
            account.world.advance(at);
            done
        })
    }

    fn access<T>(&self, act: impl FnOnce(&mut Access) -> T) -> T {
        self.front.with(|account, _| act(&mut account.access))
    }

    /// Changes the settings from now on.
    pub fn change_settings(&self, change: impl FnOnce(&mut SimSettings)) {
        self.with(|world, _| change(&mut world.settings));
    }

    /// Sets how long requests take from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.change_settings(|settings| settings.latency = latency);
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

    /// Lets everything go well from now on. What is stuck stays so.
    pub fn stop_faults(&self) {
        self.front.stop_faults();
    }

    /// Whatever takes time for the resource with this id now takes for ever: a balancer stays `creating` or `deleting`, a
    /// Cloud IP stays where it is mapped, a server stays as it is.
    pub fn stick(&self, id: &str) {
        self.with(|world, _| world.stuck.insert(id.to_owned()));
    }

    /// It goes on with what was stuck, and what was due meanwhile is done at once.
    pub fn unstick(&self, id: &str) {
        self.with(|world, _| world.stuck.remove(id));
    }

    /// The id of the one account.
    pub fn account(&self) -> String {
        self.access(|access| access.account().to_owned())
    }

    /// The API client that is let in.
    pub fn credentials(&self) -> Credentials {
        self.access(|access| access.own().clone())
    }

    /// Lets this API client in, in place of the one before it, whose tokens stay good.
    pub fn set_credentials(&self, client: &str, secret: &str) {
        let own = Credentials { client: client.to_owned(), secret: secret.to_owned() };
        self.access(|access| access.set_own(own));
    }

    /// Lets an application in, through which users come with their passwords.
    pub fn add_application(&self, id: &str, secret: &str) {
        self.access(|access| access.add_application(id, secret));
    }

    /// Lets a user of the account in, with a password.
    pub fn add_user(&self, name: &str, password: &str) {
        self.access(|access| access.add_user(name, password, false));
    }

    /// Makes a user who would need a second factor, which this cloud cannot take.
    pub fn add_user_with_second_factor(&self, name: &str, password: &str) {
        self.access(|access| access.add_user(name, password, true));
    }

    /// All access tokens have expired. Refresh tokens stay good.
    pub fn expire_tokens(&self) {
        self.access(Access::expire);
    }

    /// All access tokens are unknown from now on. Refresh tokens stay good.
    pub fn revoke_tokens(&self) {
        self.access(Access::revoke);
    }

    /// All refresh tokens are worth nothing from now on.
    pub fn revoke_refresh_tokens(&self) {
        self.access(Access::revoke_refresh);
    }

    /// Makes a server that runs, in the default group, with a private IPv4 address and a public IPv6 one.
    pub fn add_server(&self, name: &str, zone: &str) -> Server {
        self.with(|world, at| world.add_server(name, zone, at))
    }

    /// Stops a server, which takes its time.
    pub fn stop_server(&self, id: &str) {
        // A server that does not exist, or does not run, is ignored.
        let _ = self.with(|world, at| world.power(id, "stop", at));
    }

    /// Starts a server, which takes its time.
    pub fn start_server(&self, id: &str) {
        let _ = self.with(|world, at| world.power(id, "start", at));
    }

    /// Deletes a server, which takes its time and leaves it listed as `deleted` for a while.
    pub fn delete_server(&self, id: &str) {
        let _ = self.with(|world, at| world.delete_server(id, at));
    }

    /// Removes a server from everywhere at once: it is listed no more.
    pub fn purge_server(&self, id: &str) {
        self.with(|world, at| {
            world.forget_server(id, at);
            world.resources.servers.remove(id);
        });
    }

    /// Sets the status of a server or a balancer, whatever it was and was about to become.
    pub fn set_status(&self, id: &str, status: &str) {
        self.edit(|resources| {
            if let Some(server) = resources.servers.get_mut(id) {
                (server.status, server.settles) = (status.to_owned(), None);
            }
            if let Some(balancer) = resources.balancers.get_mut(id) {
                (balancer.status, balancer.settles) = (status.to_owned(), None);
            }
        });
    }

    /// What a name resolves to from now on, beside the names of the Cloud IPs; nothing forgets the name.
    pub fn set_domain(&self, name: &str, addresses: &[IpAddr]) {
        self.edit(|resources| {
            if addresses.is_empty() {
                resources.domains.remove(name);
            } else {
                resources.domains.insert(name.to_owned(), addresses.to_vec());
            }
        });
    }

    /// What a name resolves to: what was set for it, and the addresses of the Cloud IPs that are called so.
    pub fn resolve(&self, name: &str) -> Vec<IpAddr> {
        self.with(|world, _| world.resources.resolve(name))
    }

    /// Changes resources without the rules of the API.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Resources) -> T) -> T {
        self.with(|world, _| change(&mut world.resources))
    }

    /// Carries out a request by the rules of the API, but without a token, latency, faults or an entry in the journal.
    /// Returns the body of the answer, or the status and body of a refusal.
    pub fn back_door(&self, method: &str, path: &str, body: &Value) -> Result<Value, (u16, Value)> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.with(|world, at| {
            let reply = Route::parse(&method, path)
                .and_then(|route| world.handle(&route, &body, "http://localhost", at))
                .map_err(|refusal| (refusal.status, refusal.body))?;
            Ok(reply.body)
        })
    }

    /// Creates a resource through [`Cloud::back_door`] and completes it at once: `seed` of `cloud_ips` posts to
    /// `/1.0/cloud_ips`. Returns its id.
    pub fn seed(&self, collection: &str, body: &Value) -> Result<String, (u16, Value)> {
        let made = self.back_door("POST", &format!("/1.0/{collection}"), body)?;
        self.settle();
        Ok(made.get("id").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Completes everything that takes time, except for what is stuck.
    pub fn settle(&self) {
        self.with(World::settle);
    }

    /// Back to the initial state, with an empty journal and without faults. Credentials, tokens and settings stay.
    pub fn reset(&self) {
        self.front.reset();
    }

    /// All resources, whatever listings show.
    pub fn resources(&self) -> Resources {
        self.with(|world, _| world.resources.clone())
    }

    /// The servers, oldest first.
    pub fn servers(&self) -> Vec<Server> {
        let all = self.resources().servers;
        in_order(all.values(), |server| (server.created_at, &server.id)).into_iter().cloned().collect()
    }

    /// The server groups, the default one too, oldest first.
    pub fn groups(&self) -> Vec<Group> {
        let all = self.resources().groups;
        in_order(all.values(), |group| (group.created_at, &group.id)).into_iter().cloned().collect()
    }

    /// The firewall policies with their rules, the default one too, oldest first.
    pub fn policies(&self) -> Vec<FirewallPolicy> {
        let all = self.resources().policies;
        in_order(all.values(), |policy| (policy.created_at, &policy.id)).into_iter().cloned().collect()
    }

    /// The load balancers, deleted ones too, oldest first.
    pub fn balancers(&self) -> Vec<Balancer> {
        let all = self.resources().balancers;
        in_order(all.values(), |balancer| (balancer.created_at, &balancer.id)).into_iter().cloned().collect()
    }

    /// The Cloud IPs, oldest first.
    pub fn cloud_ips(&self) -> Vec<CloudIp> {
        let all = self.resources().cloud_ips;
        in_order(all.values(), |ip| (ip.created_at, &ip.id)).into_iter().cloned().collect()
    }

    /// The requests so far, in the order in which they took effect; of more than 200,000 the newest.
    pub fn journal(&self) -> Vec<Entry> {
        self.front.journal()
    }

    /// How many requests were sent and have not taken effect yet. At zero, only what takes time still changes anything.
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

    /// How the servers behind balancers changed over time.
    pub fn nodes_changes(&self) -> Vec<NodesChange> {
        self.with(|world, _| world.history.clone())
    }

    /// The changes that removed the last server behind a balancer that had one which ran.
    pub fn emptied_balancers(&self) -> Vec<NodesChange> {
        self.nodes_changes().into_iter().filter(NodesChange::emptied).collect()
    }

    /// The time on the cloud's clock.
    pub fn now(&self) -> Tick {
        self.front.moment().tick
    }
}
