//! The simulated BinaryLane, rule by rule, as a client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod answers;
mod balancers;
mod faults;
mod fixture;
mod lists;
mod pools;
mod schema;
mod served;
mod servers;
mod vpcs;
