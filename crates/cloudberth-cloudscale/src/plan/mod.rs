//! What to do next about a load balancer. Pure.

mod fold;

pub use fold::{assume, fold};

use cloudberth_core::{
    Error, Result, ServiceView,
    annotation::Value,
    decide::nodeset::Selector,
    lb::{Claim, ClaimKind, Decision, Next, Want},
};

use crate::{
    act::Act,
    annotations::{FLOATING_IPS, NODE_SELECTOR, TABLE},
    find::Trail,
    seen::Seen,
};

/// The planner, with what it has to know about the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Planner {
    /// The API server knows `ipMode`: Kubernetes 1.30 and later.
    pub ip_mode: bool,
}

impl Planner {
    /// What to do next about what was seen.
    #[must_use]
    pub fn decide(&self, _want: &Want, _seen: Option<&Seen>) -> Decision<Act> {
        Decision::new(Next::Converged)
    }
}

/// What a Service lays claim to: the name and the id of its load balancer, and floating IPs in canonical form.
#[must_use]
pub fn claims(service: &ServiceView) -> Vec<Claim> {
    let floating = TABLE.parse(&service.annotations).get(&FLOATING_IPS).set().unwrap_or_default();
    let addresses = floating.iter().map(|ip| Claim::new(ClaimKind::Address, ip.network.to_string()));
    // What has to go is found by the same trail, only never in vain.
    let trail = Trail::of(service, cloudberth_core::lb::Goal::Gone).ok();
    let balancer = trail.into_iter().flat_map(|trail| {
        let id = trail.uuid.map(|uuid| Claim::new(ClaimKind::Id, uuid));
        [Some(Claim::new(ClaimKind::Name, trail.name)), id]
    });
    balancer.flatten().chain(addresses).collect()
}

/// Which nodes a Service wants behind its load balancer.
pub fn selector(service: &ServiceView) -> Result<Option<Selector>> {
    let parsed = TABLE.parse(&service.annotations);
    match parsed.get(&NODE_SELECTOR) {
        Value::Set(selector) => Ok(Some(selector)),
        Value::Unset => Ok(None),
        Value::Wrong => {
            let wrong = parsed.refused.iter().find(|refusal| refusal.field == NODE_SELECTOR.name());
            Err(Error::user_input(wrong.map_or_else(String::new, ToString::to_string)))
        }
    }
}
