//! The load-balancer loop.

mod balancers;
mod intent;
mod model;

pub use balancers::{Balancers, Outcome};
pub use intent::{INTENT_ANNOTATION, Intent, judge_intent};
pub use model::{
    Backend, Claim, ClaimKind, Creation, Decision, Goal, Impact, Next, Notice, Permit, Plan, PlannedStep,
    Publish, Refusal, Rest, Rival, Severity, Step, Turn, Want,
};

/// A survey of any cloud, shared by all Services of a pass.
pub type Survey = std::sync::Arc<dyn std::any::Any + Send + Sync>;

/// Writes on the Service what the planner wants recorded.
pub trait Scribe: Send + Sync {
    /// Writes `publish` where it differs from what the Service says.
    fn record<'a>(&'a self, publish: &'a Publish) -> crate::provider::Boxed<'a, crate::error::Result<()>>;
}
