//! The API of the service, in memory and in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod balancers;
mod events;
mod fixture;
mod machines;
mod pages;
mod reaping;
