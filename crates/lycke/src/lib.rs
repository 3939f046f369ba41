//! Cloudlycke, the local cloud: machines from an inventory file, an HTTP API, and load balancers that carry real traffic.
//!
//! ```text
//!   inventory file, Vagrant ──► control (state, HTTP API, no sockets of its own) ──► Plane ──► sockets
//!                                   ▲                                                │
//!   provider, `cloudberth lycke` ───┘                 health, listeners, counters ◄──┘
//! ```
//!
//! The control part is a state and a `tower` service that answers requests: it runs under paused time in simulations. The
//! sockets are behind the trait [`plane::Plane`]; those of production run on threads of their own.

pub mod addresses;
pub mod api;
#[cfg(feature = "cli")]
pub mod cli;
pub mod control;
pub mod events;
pub mod inventory;
pub mod plane;
mod refusal;
pub mod serve;
pub mod spec;
pub mod state;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod vagrant;

pub use refusal::Refusal;
