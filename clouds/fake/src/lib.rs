//! A complete cloud in memory.
//!
//! It serves three masters: simulations, which need a cloud that can be slow, busy, forgetful and dishonest on demand;
//! demos, which need one without an account; and whoever writes a new provider, because it uses every trait in the way
//! that a real one does.
//!
//! ```text
//!   provider   which capabilities there are
//!   instances  ─┐
//!   balancers   ├─► network ──► world
//!   routes     ─┘   latency,     instances, load balancers, floating
//!                   faults, log  addresses, routes; rules and quotas
//! ```
//!
//! The network owns the task that handles a request: who drops the client loses only the answer, never the write.

mod balancers;
mod cloud;
mod factory;
mod instances;
mod provider;
mod routes;

pub use balancers::{ALGORITHM, BALANCER_ID, BALANCER_NAME, FLOATING_ADDRESS, Fakes, NODE_SELECTOR, TABLE};
pub use cloud::{
    Balancer, CallRecord, Cloud, FakeInstance, Fault, Listener, PowerState, Protocol, Request, RouteRecord,
    SimSettings,
};
pub use factory::FACTORY;
pub use provider::FakeProvider;
