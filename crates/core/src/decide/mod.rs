//! The pure decisions of the controllers: facts in, verdict out.
//!
//! | module | question |
//! |---|---|
//! | [`node`] | what is written on a node, and when |
//! | [`lifecycle`] | which node is marked as shut down, which may be deleted |
//! | [`service`] | what a Service needs, and what is written on it |
//! | [`nodeset`] | which nodes stand behind a load balancer |
//! | [`routes`] | which routes should exist |
//! | [`queue`] | which key is worked on next, and when a failed one comes back |
//! | [`outage`] | whether a cloud is away |
//! | [`election`] | the next move of a candidate for leadership |
//! | [`selection`] | which controllers run |
//! | [`waiting`] | who waits, and since when |

pub mod election;
pub mod lifecycle;
pub mod node;
pub mod nodeset;
pub mod outage;
pub mod queue;
pub mod routes;
pub mod selection;
pub mod service;
pub mod waiting;
