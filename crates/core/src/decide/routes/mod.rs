//! Which routes to the nodes' pods should exist, and what is said about them.
//!
//! ```text
//!   start      does the controller run at all, and for which networks
//!   watch      which change of a node asks for a pass, and when it may begin
//!   plan       listed routes + nodes + networks -> deletions and creations
//!   pass       the answers -> outcome, condition of each node, events, when to come back
//!   condition  what NetworkUnavailable should say, and whether that is a write
//! ```
//!
//! A pass looks at the whole cluster at once. It changes nothing unless the listing is complete: a short one may hide
//! a route that exists, and then deleting is unsafe and creating is noise (laws 1 and 5).

mod condition;
mod pass;
mod plan;
mod start;
mod watch;

pub use condition::{NETWORK_UNAVAILABLE, Network, condition_patch};
pub use pass::{Outcome, Pass, RouteNotice, conclude};
pub use plan::{Plan, Unroutable, plan, responsible};
pub use start::{Start, start};
pub use watch::{FULL_PASS, PASS_GAP, Pace, Trigger, full_pass, trigger};
