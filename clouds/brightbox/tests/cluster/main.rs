//! The controllers in a cluster: an embedded Kubernetes API, the simulated Brightbox, virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, reason = "what was counted is to be read")]

mod budget;
mod checks;
mod crash;
mod examples;
mod lives;
mod options;
mod recovery;
mod seeded;
mod seeds;
mod takeover;
mod under_test;
