//! What was gathered, before anybody judges it.

use cloudberth_core::{
    Error, Reason, Result,
    lb::ServerVersion,
    provider::{Quota, Start},
};
use jiff::{SignedDuration, Timestamp};

use crate::selfcheck::Missing;

#[derive(Clone, Debug)]
pub struct Facts {
    pub now: Timestamp,
    pub api: Result<ApiServer>,
    /// When the token ends with which the cluster was asked, if it says so.
    pub token_ends: Option<Timestamp>,
    pub rights: Vec<Missing>,
    /// Why not every right could be asked about.
    pub rights_unknown: Option<Error>,
    pub nodes: Result<Vec<NodeFacts>>,
    /// The Services that want a load balancer, or still have to lose one.
    pub services: Result<Vec<ServiceFacts>>,
    /// The warnings about Services.
    pub events: Result<Vec<EventFacts>>,
    /// The Leases beside the leader's.
    pub leases: Result<Vec<LeaseFacts>>,
    /// The name of the leader's Lease; `None` where no leader is elected.
    pub leader_lease: Option<String>,
    /// Deployments and `DaemonSets`.
    pub workloads: Result<Vec<Workload>>,
    pub clouds: Vec<CloudFacts>,
    /// The programs that the clouds replace.
    pub replaced: Vec<&'static str>,
    /// Every reason of an event, with what to do about it.
    pub reasons: Vec<Reason>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServer {
    pub version: Option<ServerVersion>,
    /// As it calls itself.
    pub name: String,
    /// By how much its clock is ahead of ours.
    pub ahead: Option<SignedDuration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It has no provider id.
    Nobody,
    /// The cloud of this name, with the id in its canonical form.
    Cloud(String, String),
    /// It is meant for this cloud, which cannot read it.
    Malformed(String),
    /// None of the chosen clouds.
    Foreign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    pub name: String,
    pub provider_id: Option<String>,
    pub owner: Owner,
    /// It waits for its cloud.
    pub uninitialised: bool,
    pub created: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFacts {
    pub namespace: String,
    pub name: String,
    pub created: Option<Timestamp>,
    /// It is being deleted since then, and our finalizer holds it.
    pub deleting: Option<Timestamp>,
    pub has_address: bool,
    /// Its class is served by nobody that we know.
    pub foreign_class: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFacts {
    pub namespace: String,
    /// The name of the Service.
    pub name: String,
    pub reason: String,
    pub message: String,
    pub seen: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseFacts {
    pub namespace: String,
    pub name: String,
    pub holder: String,
    pub renewed: Option<Timestamp>,
    pub seconds: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    /// Images, commands and arguments of its containers.
    pub runs: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct CloudFacts {
    pub name: String,
    /// Mistakes in its settings. With any of these it was not asked.
    pub mistakes: Vec<Error>,
    pub start: Option<Start>,
    /// The ids of all instances; an error also where the listing was short.
    pub instances: Option<Result<Vec<String>>>,
    /// By how much its clock is ahead of ours.
    pub ahead: Option<SignedDuration>,
    pub quotas: Result<Vec<Quota>>,
}
