//! The mutations, one API request each, and what they are answered with.

use serde_json::{Value, json};

use crate::wire::{
    HealthMonitor, Listener, ListenerChange, LoadBalancer, Member, MonitorChange, NewBalancer, NewListener,
    NewMember, NewMonitor, NewPool, Pool,
};

/// One mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the names say")]
pub enum Action {
    /// Builds a load balancer without parts.
    CreateBalancer(NewBalancer),
    /// Renames a load balancer.
    RenameBalancer {
        balancer: String,
        /// How it is called from now on.
        name: String,
    },
    /// Adds a pool without members.
    CreatePool(NewPool),
    /// Adds a member.
    CreateMember { pool: String, member: NewMember },
    /// Opens a port.
    CreateListener(NewListener),
    /// Watches a pool.
    CreateMonitor(NewMonitor),
    /// Changes one attribute of a listener.
    UpdateListener { listener: String, change: ListenerChange },
    /// Changes one attribute of a health monitor.
    UpdateMonitor { monitor: String, change: MonitorChange },
    /// Assigns a floating IP to a load balancer.
    AssignFloatingIp {
        /// The address without the length of its network.
        address: String,
        /// The network as [`FloatingIp::network`](crate::wire::FloatingIp::network) shows it.
        network: String,
        balancer: String,
    },
    /// Closes a port.
    DeleteListener { listener: String },
    /// Removes a member.
    DeleteMember { pool: String, member: String },
    /// Stops watching a pool.
    DeleteMonitor { monitor: String },
    /// Removes a pool with all that is below it.
    DeletePool { pool: String },
    /// Deletes a load balancer with all that is below it.
    DeleteBalancer { balancer: String },
}

/// What the cloud answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The new load balancer.
    Balancer(Box<LoadBalancer>),
    /// The new pool.
    Pool(Pool),
    /// The new member.
    Member(Member),
    /// The new listener.
    Listener(Box<Listener>),
    /// The new health monitor.
    Monitor(Box<HealthMonitor>),
    /// Done, and there is nothing to learn from the answer.
    Done,
}

/// How a mutation is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Creates.
    Post,
    /// Changes one attribute.
    Patch,
    /// Deletes.
    Delete,
}

/// A mutation as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The name of the operation, for metrics and errors.
    pub operation: &'static str,
    /// How.
    pub method: Method,
    /// The parts of the path below the base, which has the version of the API, not yet escaped.
    pub path: Vec<String>,
    /// The body; none for deletions.
    pub body: Option<Value>,
}

impl Action {
    /// The request that carries it out.
    pub fn request(&self) -> Request {
        let (operation, path): (_, &[&str]) = match self {
            Self::CreateBalancer(_) => ("create load balancer", &[]),
            Self::RenameBalancer { balancer, .. } => ("rename load balancer", &[balancer]),
            Self::CreatePool(_) => ("create pool", &["pools"]),
            Self::CreateMember { pool, .. } => ("create member", &["pools", pool, "members"]),
            Self::CreateListener(_) => ("create listener", &["listeners"]),
            Self::CreateMonitor(_) => ("create health monitor", &["health-monitors"]),
            Self::UpdateListener { listener, .. } => ("update listener", &["listeners", listener]),
            Self::UpdateMonitor { monitor, .. } => ("update health monitor", &["health-monitors", monitor]),
            Self::AssignFloatingIp { address, .. } => ("assign floating IP", &[address]),
            Self::DeleteListener { listener } => ("delete listener", &["listeners", listener]),
            Self::DeleteMember { pool, member } => ("delete member", &["pools", pool, "members", member]),
            Self::DeleteMonitor { monitor } => ("delete health monitor", &["health-monitors", monitor]),
            Self::DeletePool { pool } => ("delete pool", &["pools", pool]),
            Self::DeleteBalancer { balancer } => ("delete load balancer", &[balancer]),
        };
        let root =
            if matches!(self, Self::AssignFloatingIp { .. }) { "floating-ips" } else { "load-balancers" };
        let path = [root].iter().chain(path).map(|part| (*part).to_owned()).collect();
        let (method, body) = self.method_and_body();
        Request { operation, method, path, body }
    }

    fn method_and_body(&self) -> (Method, Option<Value>) {
        match self {
            Self::CreateBalancer(new) => (Method::Post, Some(json!(new))),
            Self::CreatePool(new) => (Method::Post, Some(json!(new))),
            Self::CreateMember { member, .. } => (Method::Post, Some(json!(member))),
            Self::CreateListener(new) => (Method::Post, Some(json!(new))),
            Self::CreateMonitor(new) => (Method::Post, Some(json!(new))),
            Self::RenameBalancer { name, .. } => (Method::Patch, Some(json!({ "name": name }))),
            Self::UpdateListener { change, .. } => (Method::Patch, Some(json!(change))),
            Self::UpdateMonitor { change, .. } => (Method::Patch, Some(json!(change))),
            Self::AssignFloatingIp { balancer, .. } => {
                (Method::Patch, Some(json!({ "load_balancer": balancer })))
            }
            Self::DeleteListener { .. }
            | Self::DeleteMember { .. }
            | Self::DeleteMonitor { .. }
            | Self::DeletePool { .. }
            | Self::DeleteBalancer { .. } => (Method::Delete, None),
        }
    }
}
