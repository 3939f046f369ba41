//! The controllers in a cluster: an embedded Kubernetes API, the Cloudlycke service with a plane in memory, virtual time.
//!
//! The program that was replaced left nothing behind: it had no load balancers, and what it wrote on nodes is what is
//! written now. So there is nothing to take over beside nodes, which `nodes` shows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, reason = "what was counted is to be read")]

mod all_in_one;
mod balancers;
mod budget;
mod checks;
mod crash;
mod doubt;
mod examples;
mod nodes;
mod recovery;
mod refusals;
mod seeded;
mod seeds;
mod service;
mod starts;
mod under_test;
