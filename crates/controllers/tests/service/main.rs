//! The service controller on the stage: an embedded Kubernetes API, fake clouds, virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of the common scene")]

mod account;
mod crash;
mod endpoints;
mod fixture;
mod life;
mod nodes;
mod ownership;
mod scale;
mod several;
mod trouble;
