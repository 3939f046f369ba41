//! The simulated Brightbox, rule by rule, as a client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod balancers;
mod certificates;
mod cloud_ips;
mod faults;
mod firewall;
mod fixture;
mod groups;
mod handle;
mod properties;
mod served;
mod servers;
mod tokens;
