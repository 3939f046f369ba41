//! The controllers in a cluster: an embedded Kubernetes API, the simulated BinaryLane, virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, reason = "what was counted is to be read")]

mod budget;
mod changes;
mod checks;
mod crash;
mod creation;
mod examples;
mod finding;
mod fixture;
mod lost;
mod nodes;
mod noticed;
mod recovery;
mod removal;
mod routes;
mod seeded;
mod seeds;
mod takeover;
mod under_test;
