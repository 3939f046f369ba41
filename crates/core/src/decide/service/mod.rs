//! What a Service needs, and what is written on it.
//!
//! | module | question |
//! |---|---|
//! | [`assignments`] | which provider serves a Service, and which one may still hold something for it |
//! | [`need`] | does it want a load balancer, does it need cleaning up |
//! | [`change`] | which difference between two versions is work |
//! | [`trigger`] | which events of the watch put it into the queue; what a vanished one leaves behind |
//! | [`lifecycle`] | what to do at the start of a pass, and after the turn of the load-balancer loop |
//! | [`ownership`] | is the load balancer that was found this Service's |
//! | [`account`] | is it the cluster's own account that denies a load balancer |
//! | [`patch`] | the bodies of all writes |
//! | [`events`], [`event_dedup`] | the events about it, each published once |
//! | [`source_ranges`] | from where traffic is let in |
//! | [`census`] | which Services wait for an address, and of which something is refused |

pub mod account;
pub mod assignments;
pub mod census;
pub mod change;
pub mod event_dedup;
pub mod events;
pub mod lifecycle;
pub mod need;
pub mod ownership;
pub mod patch;
pub mod progress;
pub mod source_ranges;
pub mod trigger;

#[cfg(test)]
mod testing;

/// The finalizer that holds a Service until its load balancer is gone; the same as that of the programs we replace.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The annotation that records which provider holds the load balancer of a Service.
///
/// Kubernetes drops `spec.loadBalancerClass` when the type of a Service changes, and a configuration can name another
/// default tomorrow. Without this record the wrong cloud would be asked, answer "not here", and the load balancer
/// would be forgotten. It is written together with the finalizer and goes together with it.
pub const PROVIDER_ANNOTATION: &str = "cloudberth.dev/provider";
