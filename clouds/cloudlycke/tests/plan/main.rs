//! Decisions about load balancers, as plain values.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod fixture;
mod laws;
mod steps;
