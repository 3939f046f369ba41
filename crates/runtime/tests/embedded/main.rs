//! The parts that speak to the API, against the embedded one on virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod downstream;
mod dynamic;
mod fixture;
mod informer;
mod memory;
mod recorder;
mod rest;
mod version;
mod writer;
