//! The load-balancer loop: pure decisions and single mutations, without re-reading in between.
//!
//! ```text
//!   keys ──► locks
//!   survey ──► observe ──► decide ──► execute ──► fold ──┐
//!                            ▲                           │
//!                            └───────────────────────────┘   until converged, waiting, or not sure
//! ```
//!
//! A provider writes [`Balancers`]; [`Erased`] makes the object-safe
//! [`LoadBalancers`](crate::provider::LoadBalancers) of it. [`drive`] runs the loop, [`dry_run`] runs it dry. The
//! rules on unknown outcomes, waiting, intent and locks are the driver's, so no provider can get them wrong.

mod balancers;
mod driver;
mod dry_run;
mod erased;
mod intent;
mod locks;
mod model;
mod server;
mod trail;

pub use balancers::{Balancers, Outcome};
pub use driver::{Executor, IntentMark, MAX_ROUNDS, drive};
pub use dry_run::dry_run;
pub use erased::{Erased, ServiceRecorder, StepReport, Survey};
pub use intent::{INTENT_ANNOTATION, Intent, Intents, intended_name, intent_value};
pub use locks::{Freshness, LockTable, Stamp, rivals};
pub use model::{
    Backend, Creation, Decision, Desired, Goal, Identity, Impact, LockKey, LockKind, Name, Next, Notice,
    Permit, Plan, PlannedStep, Publish, Refusal, Rival, Severity, Step, Turn, TurnEnd,
};
pub use server::ServerVersion;
pub use trail::{Candidate, Trail};
