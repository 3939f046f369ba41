//! Load balancers are decided on without a cloud: Services and observations in, steps and refusals out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod converging;
mod fixture;
mod laws;
mod requests;
mod specs;
