//! The mutations, one API request each, and what they are answered with.

use cloudberth_http::{Operation, Write};
use serde_json::json;

use crate::wire::{
    BalancerOptions, CloudIp, LoadBalancer, NewPolicy, Policy, Rule, RuleOptions, ServerGroup,
};

/// One mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the names say")]
pub enum Action {
    /// Allocates a Cloud IP.
    AllocateCloudIp { name: String },
    /// Creates an empty server group.
    CreateGroup { name: String },
    /// Adds servers to a group.
    AddServers { group: String, servers: Vec<String> },
    /// Removes servers from a group.
    RemoveServers { group: String, servers: Vec<String> },
    /// Creates a firewall policy for a group, without rules.
    CreatePolicy(NewPolicy),
    /// Lets a policy protect a group.
    AttachPolicy { policy: String, group: String },
    /// Opens ports.
    CreateRule(RuleOptions),
    /// Changes which ports are open.
    UpdateRule { rule: String, options: RuleOptions },
    /// Closes ports.
    DeleteRule { policy: String, rule: String },
    /// Builds a load balancer.
    CreateBalancer(BalancerOptions),
    /// Changes a load balancer as a whole.
    UpdateBalancer { balancer: String, options: BalancerOptions },
    /// Leads a Cloud IP to a load balancer.
    Map { cloud_ip: String, balancer: String },
    /// Ends the mapping of a Cloud IP.
    Unmap { cloud_ip: String },
    /// Gives a Cloud IP back.
    DeleteCloudIp { cloud_ip: String },
    /// Deletes an empty group.
    DeleteGroup { group: String },
    /// Deletes a policy with its rules.
    DeletePolicy { policy: String },
    /// Deletes a load balancer.
    DeleteBalancer { balancer: String },
}

/// What the cloud answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The new Cloud IP.
    CloudIp(Box<CloudIp>),
    /// The new group.
    Group(ServerGroup),
    /// The new policy.
    Policy(Policy),
    /// The new rule.
    Rule(Rule),
    /// The load balancer as it is now.
    Balancer(Box<LoadBalancer>),
    /// It was accepted, and takes effect later. After a mapping, with the load balancer as it was read just then.
    Accepted(Option<Box<LoadBalancer>>),
    /// Done. The answer to a deletion of something that no longer exists is this too.
    Done,
}

impl Action {
    /// How it is sent.
    pub(crate) fn operation(&self) -> Operation<Write> {
        let post = |name, path, id: &str, verb| Operation::post(name, path).segment(id).segment(verb);
        let servers = |ids: &[String]| {
            let ids: Vec<_> = ids.iter().map(|id| json!({ "server": id })).collect();
            json!({ "servers": ids })
        };
        // Repeating a deletion is safe: ids are not used twice.
        let delete = |name, path, id: &str| Operation::delete(name, path).segment(id).repeatable();
        match self {
            Self::AllocateCloudIp { name } => {
                Operation::post("create cloud ip", "cloud_ips").json(&json!({ "name": name }))
            }
            Self::CreateGroup { name } => {
                Operation::post("create server group", "server_groups").json(&json!({ "name": name }))
            }
            Self::AddServers { group, servers: ids } => {
                post("add servers", "server_groups", group, "add_servers").json(&servers(ids))
            }
            Self::RemoveServers { group, servers: ids } => {
                post("remove servers", "server_groups", group, "remove_servers").json(&servers(ids))
            }
            Self::CreatePolicy(new) => {
                Operation::post("create firewall policy", "firewall_policies").json(new)
            }
            Self::AttachPolicy { policy, group } => {
                post("apply firewall policy", "firewall_policies", policy, "apply_to")
                    .json(&json!({ "server_group": group }))
            }
            Self::CreateRule(options) => {
                Operation::post("create firewall rule", "firewall_rules").json(options)
            }
            Self::UpdateRule { rule, options } => Operation::put("update firewall rule", "firewall_rules")
                .segment(rule)
                .json(options)
                .repeatable(),
            Self::CreateBalancer(options) => {
                Operation::post("create load balancer", "load_balancers").json(options)
            }
            Self::UpdateBalancer { balancer, options } => {
                Operation::put("update load balancer", "load_balancers")
                    .segment(balancer)
                    .json(options)
                    .repeatable()
            }
            Self::Map { cloud_ip, balancer } => {
                post("map cloud ip", "cloud_ips", cloud_ip, "map").json(&json!({ "destination": balancer }))
            }
            Self::Unmap { cloud_ip } => post("unmap cloud ip", "cloud_ips", cloud_ip, "unmap"),
            Self::DeleteCloudIp { cloud_ip } => delete("delete cloud ip", "cloud_ips", cloud_ip),
            Self::DeleteGroup { group } => delete("delete server group", "server_groups", group),
            Self::DeletePolicy { policy } => delete("delete firewall policy", "firewall_policies", policy),
            Self::DeleteRule { rule, .. } => delete("delete firewall rule", "firewall_rules", rule),
            Self::DeleteBalancer { balancer } => delete("delete load balancer", "load_balancers", balancer),
        }
    }
}
