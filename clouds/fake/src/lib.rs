//! A complete cloud in memory, and the template for a new provider.
//!
//! Simulations need a cloud that is slow, busy, forgetful and dishonest on demand; demos need one without an account;
//! whoever writes a provider needs an example that uses every trait as a real cloud does.
//!
//! ```text
//!   factory    settings, and the one thing that the crate exports to the program
//!   provider   which capabilities there are
//!   instances  ─┐
//!   balancers   ├─► network ──► world
//!   routes     ─┘   latency,     instances, load balancers, floating
//!                   faults, log  addresses, routes; rules and quotas
//! ```
//!
//! # How to write a provider
//! 1. Copy this folder to `clouds/<name>`, without `src/cloud`: that is the simulated cloud. A real one is reached with
//!    [`cloudberth_http::Client`], and its simulated API is a crate of its own, `clouds/<name>/sim`, that does not know
//!    the provider.
//! 2. `balancers/spec.rs`: declare every annotation in one table, and name every field of a Service: it is carried out
//!    or refused (law 8).
//! 3. `balancers/plan.rs`: decide what to do next from what is wanted and what was observed. It is pure, so it is tested
//!    with plain values.
//! 4. `balancers/mod.rs`, `instances.rs`, `routes.rs`: talk to the cloud. Whatever is not a positive answer is
//!    `Unknown` (law 1). [`Trail`](cloudberth_core::lb::Trail) finds a Service's load balancer in a listing, and
//!    [`LazyListing`](cloudberth_http::LazyListing) lets all Services of a pass share a listing that is fetched when needed.
//!    Declare `marks`, the annotations that hold an id; the fake cloud has none, because several fake clouds in one
//!    cluster share their annotations.
//! 5. `provider.rs`: say which capabilities there are. Leave out what the cloud does not have.
//! 6. `factory.rs`: read the settings, and report every mistake in them at once. List the factory in
//!    `crates/cloudberth/src/lib.rs`; flags, presets, rights and reference pages follow from that line.
//! 7. `tests/checks.rs`: hand the simulated cloud to the checks that hold for every cloud.
//! 8. A cloud that replaces a program also has a place in the chart and in `deploy/`, `cases.toml`, `examples/` and
//!    `docs/reference/<name>.md`. The fake cloud replaces none, so it has none of these.
//!
//! The network runs each request in a task of its own: a client that gives up loses the answer, never the write.

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
