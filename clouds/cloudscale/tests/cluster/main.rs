//! The controllers in a cluster: an embedded Kubernetes API, the simulated cloudscale.ch, virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, reason = "what was counted is to be read")]

mod balancers;
mod budget;
mod changes;
mod checks;
mod crash;
mod examples;
mod fixture;
mod floating;
mod instances;
mod recovery;
mod removal;
mod seeded;
mod seeds;
mod takeover;
mod under_test;
