//! Which nodes are behind a load balancer.
//!
//! | module | question |
//! |---|---|
//! | [`eligible`] | may this node take traffic, and which nodes does a Service get |
//! | [`trigger`] | which change of a node touches which Services |
//! | [`local`] | on which nodes are a Service's pods |
//! | [`synced`] | which Services lack the present set |
//! | [`selector`] | does a node match a label selector |

pub mod eligible;
pub mod local;
pub mod selector;
pub mod synced;
pub mod trigger;

pub use selector::Selector;

#[cfg(test)]
mod fixture;
