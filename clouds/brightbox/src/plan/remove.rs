//! How everything of a Service's name goes.

use std::time::Duration;

use cloudberth_core::lb::{Decision, Desired, Impact, Next, Notice, Step};

use super::{Steps, cloud_ip::is_requested, firewall};
use crate::{
    action::Action,
    observed::Observed,
    reasons::SEVERAL_OF_ONE_NAME,
    spec::{balancer_name, requested_cloud_ip},
    wire::{BalancerStatus, CloudIp, CloudIpStatus, LoadBalancer},
};

/// How soon to look again whether a load balancer is deleted.
const SOON: Duration = Duration::from_secs(2);
/// A lock has to be removed by a person.
const LOCKED: Duration = Duration::from_secs(60);

/// Deletes a load balancer.
pub(super) fn delete_balancer(balancer: &LoadBalancer) -> Step<Action> {
    let label = format!("delete load balancer {} ({})", balancer.name, balancer.id);
    Step::new(Action::DeleteBalancer { balancer: balancer.id.clone() }, Impact::Major, label)
}

/// The wait for a person to unlock what has to go.
pub(super) fn locked(balancer: &LoadBalancer) -> Next<Action> {
    let on = format!("load balancer {} to be unlocked; it cannot be deleted while it is locked", balancer.id);
    Next::Wait { on: on.into(), poll: LOCKED }
}

/// Gives a Cloud IP back.
pub(super) fn delete_cloud_ip(cloud_ip: &CloudIp) -> Step<Action> {
    let label = format!("delete Cloud IP {} ({})", cloud_ip.id, cloud_ip.name);
    Step::new(Action::DeleteCloudIp { cloud_ip: cloud_ip.id.clone() }, Impact::Major, label)
}

/// Whether a Cloud IP is ours to give back: it has the name, and nobody asks for it by id or address.
pub(super) fn is_ours(want: &Desired, name: &str, cloud_ip: &CloudIp, observed: &Observed) -> bool {
    cloud_ip.name == name
        && !observed.claimed.contains(&cloud_ip.id)
        && !is_requested(&requested_cloud_ip(&want.service), cloud_ip)
}

/// Whether it leads to a load balancer of the name, or to one that is deleted and has not let go yet.
fn leads_to_ours(name: &str, cloud_ip: &CloudIp, observed: &Observed) -> bool {
    let target = cloud_ip.load_balancer.as_ref();
    target.is_some_and(|target| target.name == name || observed.balancer(&target.id).is_some())
}

/// A Cloud IP that has to go, and its name.
pub(crate) fn left_over(want: &Desired, observed: &Observed) -> Option<(String, String)> {
    let name = balancer_name(&want.service, &want.cluster);
    let ours = |cloud_ip: &&CloudIp| {
        is_ours(want, &name, cloud_ip, observed)
            && (cloud_ip.status != CloudIpStatus::Mapped || leads_to_ours(&name, cloud_ip, observed))
    };
    observed.cloud_ips.iter().find(ours).map(|cloud_ip| (cloud_ip.id.clone(), cloud_ip.name.clone()))
}

/// Members, group, policy, load balancer, Cloud IPs: what is left of them. Nothing that is wrong with the Service stands in
/// the way.
pub(super) fn remove(want: &Desired, observed: &Observed) -> Decision<Action> {
    let name = balancer_name(&want.service, &want.cluster);
    let mut steps: Steps = Vec::new();
    for group in &observed.groups {
        let members: Vec<_> = group.servers.iter().map(|server| server.id.clone()).collect();
        if !members.is_empty() {
            steps.push(firewall::remove_members(group, members));
        }
        let label = format!("delete server group {} ({})", group.name, group.id);
        steps.push(Step::new(Action::DeleteGroup { group: group.id.clone() }, Impact::None, label));
    }
    for policy in &observed.policies {
        let label = format!("delete firewall policy {} ({})", policy.name, policy.id);
        steps.push(Step::new(Action::DeletePolicy { policy: policy.id.clone() }, Impact::None, label));
    }
    let standing: Vec<_> =
        observed.balancers.iter().filter(|one| one.status != BalancerStatus::Deleting).collect();
    steps.extend(standing.iter().filter(|one| !one.locked).map(|one| delete_balancer(one)));
    let mut notices = Vec::new();
    let mut waits = standing.iter().find(|one| one.locked).map(|one| locked(one));
    for cloud_ip in observed.cloud_ips.iter().filter(|one| is_ours(want, &name, one, observed)) {
        let id = &cloud_ip.id;
        match (&cloud_ip.status, &cloud_ip.load_balancer) {
            (CloudIpStatus::Mapped, Some(target)) if leads_to_ours(&name, cloud_ip, observed) => {
                let on = format!("load balancer {} to let go of Cloud IP {id}", target.id);
                waits.get_or_insert(Next::Wait { on: on.into(), poll: SOON });
            }
            (CloudIpStatus::Mapped, _) => {
                let text = format!("Cloud IP {id} ({name}) stays: somebody has mapped it to something else");
                notices.push(Notice::warning(SEVERAL_OF_ONE_NAME, text));
            }
            _ => steps.push(delete_cloud_ip(cloud_ip)),
        }
    }
    if let Some(leaving) = observed.balancers.iter().find(|one| one.status == BalancerStatus::Deleting) {
        let on = format!("load balancer {} to be deleted", leaving.id);
        waits.get_or_insert(Next::Wait { on: on.into(), poll: SOON });
    }
    let next = if steps.is_empty() { waits.unwrap_or(Next::Converged) } else { Next::Act(steps) };
    Decision { notices, ..Decision::new(next) }
}
