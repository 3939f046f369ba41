//! The planner, from outside: what a Service and a look at the cloud lead to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod annotated;
mod attributes;
mod comparing;
mod contests;
mod cutover;
mod finding;
mod fixture;
mod laws;
mod left_behind;
mod ports;
mod requests;
mod showing;
mod untold;
