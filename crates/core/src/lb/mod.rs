//! The load-balancer loop: pure decisions and single mutations, without re-reading in between.
//!
//! ```text
//!   claims ──► locks
//!   survey ──► observe ──► decide ──► execute ──► fold ──┐
//!                            ▲                           │
//!                            └───────────────────────────┘   until converged, waiting, or not sure
//! ```
//!
//! A provider writes [`Balancers`]; [`Erased`] makes the object-safe
//! [`LoadBalancers`](crate::provider::LoadBalancers) of it. [`drive`] runs the loop, [`rehearse`] runs it dry. The
//! rules on unknown outcomes, waiting, intent and locks are the driver's, so no provider can get them wrong.

mod balancers;
mod book;
mod driver;
mod erased;
mod intent;
mod model;
mod rehearsal;
mod server;

pub use balancers::{Balancers, Outcome};
pub use book::{ClaimBook, Freshness, Stamp, rivals};
pub use driver::{Executor, IntentMark, MAX_ROUNDS, drive};
pub use erased::{Erased, Scribe, StepReport, Survey};
pub use intent::{INTENT_ANNOTATION, Intent, Intents, intended_name, intent_value};
pub use model::{
    Backend, Claim, ClaimKind, Creation, Decision, Goal, Identity, Impact, Name, Next, Notice, Permit, Plan,
    PlannedStep, Publish, Refusal, Rest, Rival, Severity, Step, Turn, Want,
};
pub use rehearsal::rehearse;
pub use server::ServerVersion;
