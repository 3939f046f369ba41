//! The floating-IP cluster manager for Rancher.
//!
//! It runs in the management cluster of Rancher. For each downstream cluster that opted in it installs the load-balancer
//! controller and a load balancer with Helm, and delivers the interface map, the CA and the credentials that the controller
//! needs; when a cluster is gone, its floating IPs are released.
//!
//! ```text
//!   watches ─► views ─► queue of clusters ─► a pass: read, plan (pure), write ─► the next pass
//!                   └─► queue of quotas
//! ```
//!
//! [`plan`] decides and does nothing; [`shell`] does and decides nothing.

pub mod config;
pub mod helm;
pub mod metrics;
pub mod names;
pub mod options;
pub mod plan;
pub mod problem;
pub mod process;
pub mod reasons;
pub mod settings;
pub mod shell;
pub mod view;

#[cfg(test)]
mod simulation;
