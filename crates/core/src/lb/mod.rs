//! The load-balancer loop: pure decisions and single mutations, without re-reading in between.
//!
//! ```text
//!   keys ──► locks
//!   survey ──► observe ──► decide ──► execute ──► fold ──┐
//!                            ▲                           │
//!                            └───────────────────────────┘   until converged, waiting, or not sure
//! ```
//!
//! A provider writes [`Balancers`]; every one of these is a [`LoadBalancers`], which the framework uses. [`drive`] runs
//! the loop, live or dry as its [`Effects`] say. The rules on unknown outcomes, waiting, intent and locks are the
//! driver's, so no provider can get them wrong.

mod adapter;
mod balancers;
mod driver;
mod fleet;
mod intent;
mod locks;
mod model;
mod server;
mod trail;

pub use adapter::{LoadBalancers, Profile, Request, Review, Survey};
pub use balancers::{Balancers, Marked, Outcome};
pub use driver::{Effects, IntentMark, MAX_ROUNDS, StepReport, drive};
pub use fleet::{Fleet, Located, SharedInstances, locate, locate_among, locate_known};
pub use intent::{INTENT_ANNOTATION, Intent, Intents, intended_name, intent_value};
pub use locks::{Freshness, LockTable, Stamp};
pub use model::{
    Backend, Claims, Creation, Decision, Desired, Goal, Identity, Impact, LockKey, LockKind, Name, Next,
    Notice, Permit, PlannedStep, Publish, Refusal, Rival, Severity, Step, Turn, TurnEnd,
};
pub use server::ServerVersion;
pub use trail::{Candidate, Trail};
