//! What to do next about a Service's load balancer and all that is around it. Pure.
//!
//! ```text
//!   Cloud IP, group ──► members, policy ──► rules ──► load balancer ──► mapping ──► other Cloud IPs ──► certificate
//! ```

mod balancer;
mod cloud_ip;
mod domains;
mod firewall;
mod fold;
mod marked;
mod publish;
mod remove;
mod tell;

pub use fold::{assume, fold};
pub(crate) use {
    cloud_ip::{Choice, addresses, choose, is_requested},
    domains::{canonical, to_resolve},
    marked::marked,
    remove::left_over,
};

use std::{borrow::Cow, time::Duration};

use cloudberth_core::{
    ServiceView,
    lb::{Decision, Desired, Goal, Impact, LockKey, LockKind, Next, Publish, Step},
};

use crate::{
    action::Action,
    observed::Observed,
    settings::Switches,
    spec::{CloudIpRequest, Spec, balancer_name, requested_cloud_ip},
    wire::{BalancerStatus, CloudIp, LoadBalancer},
};
use cloud_ip::Target;
use domains::Domains;

type Steps = Vec<Step<Action>>;

/// A mapping shows within a second or so.
const MAPPING: Duration = Duration::from_secs(1);
/// How soon to look again at a load balancer that is being built or deleted.
const BUILDING: Duration = Duration::from_secs(3);
/// How soon to look again for a certificate, or for the name of a new Cloud IP.
const PENDING: Duration = Duration::from_secs(10);
/// How soon to look again at what only a person can change.
const PERSON: Duration = Duration::from_secs(60);

/// What to do next about what was observed.
pub fn decide(want: &Desired, observed: Option<&Observed>, switches: Switches) -> Decision<Action> {
    let nothing = Observed::default();
    match (want.goal, observed) {
        (Goal::Gone, observed) => remove::remove(want, observed.unwrap_or(&nothing)),
        (Goal::Present, None) => {
            let spec = Spec::read(&want.service, &want.cluster, None, switches);
            let next = Next::Act(vec![create_balancer(&spec, &Domains::default(), &nothing)]);
            Decision { next, publish: None, refused: spec.refused, notices: spec.notices }
        }
        (Goal::Present, Some(observed)) => Plan::new(want, observed, switches).decide(),
    }
}

/// One decision about what should be there.
struct Plan<'a> {
    want: &'a Desired,
    observed: &'a Observed,
    live: Option<&'a LoadBalancer>,
    spec: Spec,
    choice: Choice<'a>,
    domains: Domains,
    switches: Switches,
}

fn wait(on: impl Into<Cow<'static, str>>, poll: Duration) -> Next<Action> {
    Next::Wait { on: on.into(), poll }
}

fn act(steps: Steps) -> Option<Next<Action>> {
    (!steps.is_empty()).then_some(Next::Act(steps))
}

fn create_balancer(spec: &Spec, domains: &Domains, observed: &Observed) -> Step<Action> {
    let options = balancer::options(spec, domains, observed);
    Step::creating(Action::CreateBalancer(options), format!("create load balancer {}", spec.name))
}

impl<'a> Plan<'a> {
    fn new(want: &'a Desired, observed: &'a Observed, switches: Switches) -> Self {
        let live = observed.live();
        let mut spec = Spec::read(&want.service, &want.cluster, live, switches);
        let choice = choose(&spec.cloud_ip, &spec.name, observed);
        spec.refused.extend(cloud_ip::refusal(&spec.cloud_ip, want, observed, &choice));
        let domains = match &choice {
            Choice::Found(cloud_ip) => domains::domains(&spec, cloud_ip, observed),
            Choice::New | Choice::None => Domains::default(),
        };
        Self { want, observed, live, spec, choice, domains, switches }
    }

    /// The Cloud IP to use, if it may be used.
    fn cloud_ip(&self) -> Option<&'a CloudIp> {
        match self.choice {
            Choice::Found(cloud_ip) => Some(cloud_ip),
            Choice::New | Choice::None => None,
        }
    }

    fn decide(mut self) -> Decision<Action> {
        let next = self.next();
        self.tell();
        let publish = self.live.and_then(|live| self.publish(live));
        Decision { next, publish, refused: self.spec.refused, notices: self.spec.notices }
    }

    fn publish(&self, live: &LoadBalancer) -> Option<Publish> {
        let mapped = self.cloud_ip().filter(|one| live.cloud_ips.iter().any(|stub| stub.id == one.id));
        let applied = balancer::applied(self.want, &self.spec, live, self.observed);
        publish::publish(self.want, live, mapped, applied, self.switches)
    }

    fn next(&self) -> Next<Action> {
        if !self.spec.refused.is_empty() && self.live.is_none() {
            // The driver does not send what creates against a refusal, and says so.
            return Next::Act(vec![create_balancer(&self.spec, &self.domains, self.observed)]);
        }
        self.replace()
            .or_else(|| act(self.roots()))
            .or_else(|| act(self.group()))
            .or_else(|| act(self.rules()))
            .or_else(|| self.balancer())
            .or_else(|| self.mapping())
            .or_else(|| self.others())
            .unwrap_or_else(|| self.verdict())
    }

    /// One that the cloud gave up on goes first, unless there is another one that serves.
    fn replace(&self) -> Option<Next<Action>> {
        let failed = self.observed.failed().filter(|_| self.live.is_none())?;
        match failed.status {
            BalancerStatus::Failing => {
                Some(wait(format!("load balancer {}, which is failing", failed.id), PENDING))
            }
            _ if failed.locked => Some(remove::locked(failed)),
            _ => Some(Next::Act(vec![remove::delete_balancer(failed)])),
        }
    }

    fn roots(&self) -> Steps {
        let mut steps = Vec::new();
        if self.choice == Choice::New {
            let name = self.spec.name.clone();
            let label = format!("allocate Cloud IP {name}");
            steps.push(Step::creating(Action::AllocateCloudIp { name }, label));
        }
        if self.observed.groups.is_empty() {
            steps.push(firewall::create_group(&self.spec));
        }
        steps
    }

    fn group(&self) -> Steps {
        let Some(group) = self.observed.groups.first() else { return Vec::new() };
        let mut steps = firewall::members(group, self.observed);
        steps.extend(firewall::policy(&self.spec, group, self.observed.policies.first()));
        steps
    }

    fn rules(&self) -> Steps {
        let source = match self.live {
            _ if !self.switches.narrow_firewall => firewall::NETWORK,
            Some(live) => &live.id,
            // Its id is not known before it is built.
            None => return Vec::new(),
        };
        let policy = self.observed.policies.first();
        policy.map_or_else(Vec::new, |policy| firewall::rules(&self.spec, policy, source))
    }

    fn balancer(&self) -> Option<Next<Action>> {
        let wanted = balancer::options(&self.spec, &self.domains, self.observed);
        let Some(live) = self.live else {
            if self.domains.none_of_its_own {
                return Some(self.unresolved());
            }
            return act(vec![create_balancer(&self.spec, &self.domains, self.observed)]);
        };
        let differences = balancer::differences(self.want, &self.spec, &wanted, live, self.observed);
        if differences.is_empty() {
            return None;
        }
        if self.domains.none_of_its_own && self.spec.is_https() {
            return Some(self.unresolved());
        }
        if live.status == BalancerStatus::Creating {
            return Some(wait(format!("load balancer {} to be built", live.id), BUILDING));
        }
        let label =
            format!("update load balancer {} ({}): {}", self.spec.name, live.id, differences.join(", "));
        let act = Action::UpdateBalancer { balancer: live.id.clone(), options: wanted };
        Some(Next::Act(vec![Step::new(act, Impact::Minimal, label)]))
    }

    /// The wait for the names of a new Cloud IP.
    fn unresolved(&self) -> Next<Action> {
        let names: Vec<_> =
            self.domains.missing.iter().map(|(name, why)| format!("{name} ({why})")).collect();
        wait(format!("names to lead to the Cloud IP: {}", names.join(", ")), MAPPING * 2)
    }

    fn mapping(&self) -> Option<Next<Action>> {
        let (live, cloud_ip) = (self.live?, self.cloud_ip()?);
        let id = &cloud_ip.id;
        let shown = live.cloud_ips.iter().any(|stub| stub.id == *id);
        match cloud_ip::target(&self.spec.name, cloud_ip, self.observed) {
            Target::Here if shown => None,
            _ if self.observed.mapping.contains(id) => {
                Some(wait(format!("Cloud IP {id} to be mapped to load balancer {}", live.id), MAPPING))
            }
            Target::Here => Some(wait(format!("load balancer {} to show Cloud IP {id}", live.id), MAPPING)),
            // It is refused, and stays where it is.
            Target::Elsewhere(_) => None,
            _ if self.is_refused() => None,
            Target::Leaving(other) => {
                Some(wait(format!("load balancer {other} to let go of Cloud IP {id}"), BUILDING))
            }
            Target::Failed(_) if self.observed.unmapping.contains(id) => {
                Some(wait(format!("Cloud IP {id} to be unmapped"), MAPPING))
            }
            Target::Failed(other) => {
                let label = format!("unmap Cloud IP {id} from load balancer {other}, which failed");
                Some(Next::Act(vec![Step::new(
                    Action::Unmap { cloud_ip: id.clone() },
                    Impact::Minimal,
                    label,
                )]))
            }
            Target::Nowhere => {
                let label = format!("map Cloud IP {id} to load balancer {}", live.id);
                let act = Action::Map { cloud_ip: id.clone(), balancer: live.id.clone() };
                Some(Next::Act(vec![Step::new(act, Impact::None, label)]))
            }
        }
    }

    /// Whether the Cloud IP is refused.
    fn is_refused(&self) -> bool {
        let field = cloud_ip::field(&self.spec.cloud_ip);
        self.spec.refused.iter().any(|refusal| refusal.field == field)
    }

    /// Other Cloud IPs on the load balancer are unmapped, and those of our name given back.
    fn others(&self) -> Option<Next<Action>> {
        let (live, chosen) = (self.live?, self.cloud_ip()?);
        if !live.cloud_ips.iter().any(|stub| stub.id == chosen.id) {
            return None;
        }
        let mut steps = Vec::new();
        for stub in live.cloud_ips.iter().filter(|stub| stub.id != chosen.id) {
            if !self.observed.unmapping.contains(&stub.id) {
                let label = format!("unmap Cloud IP {} from load balancer {}", stub.id, live.id);
                steps.push(Step::new(Action::Unmap { cloud_ip: stub.id.clone() }, Impact::Minimal, label));
            }
        }
        let leads = |one: &CloudIp| live.cloud_ips.iter().any(|stub| stub.id == one.id);
        let spare = |one: &&CloudIp| {
            one.id != chosen.id
                && !leads(one)
                && remove::is_ours(self.want, &self.spec.name, one, self.observed)
                && cloud_ip::target(&self.spec.name, one, self.observed) == Target::Nowhere
        };
        steps.extend(self.observed.cloud_ips.iter().filter(spare).map(remove::delete_cloud_ip));
        let unmapping = live.cloud_ips.iter().find(|stub| self.observed.unmapping.contains(&stub.id));
        act(steps).or_else(|| Some(wait(format!("Cloud IP {} to be unmapped", unmapping?.id), MAPPING)))
    }

    /// Nothing is left to do: is it complete?
    fn verdict(&self) -> Next<Action> {
        let Some(live) = self.live else { return Next::Converged };
        if self.spec.is_https() {
            let Some(acme) = &live.acme else {
                return wait(format!("load balancer {} to show its certificate", live.id), MAPPING);
            };
            if let Some(domain) = acme.domains.iter().find(|domain| !domain.is_valid()) {
                let poll = if domain.status == "invalid" { PERSON } else { PENDING };
                return wait(format!("the certificate of {}: {}", domain.identifier, domain.status), poll);
            }
            if !self.domains.missing.is_empty() {
                return wait("domains to lead to the Cloud IP", PERSON);
            }
        }
        if live.status == BalancerStatus::Creating {
            return wait(format!("load balancer {} to be built", live.id), BUILDING);
        }
        Next::Converged
    }
}

/// What a Service locks: the name of everything of its own, and the Cloud IP that it asks for.
pub fn lock_keys(service: &ServiceView, cluster: &str) -> Vec<LockKey> {
    let cloud_ip = match requested_cloud_ip(service) {
        CloudIpRequest::Id(id) => Some(LockKey::new(LockKind::Address, id)),
        CloudIpRequest::Address(address) => Some(LockKey::new(LockKind::Address, address.to_string())),
        CloudIpRequest::Own | CloudIpRequest::Unclear => None,
    };
    let name = LockKey::new(LockKind::Name, balancer_name(service, cluster));
    [Some(name), cloud_ip].into_iter().flatten().collect()
}
