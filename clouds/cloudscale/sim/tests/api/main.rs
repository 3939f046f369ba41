//! The simulated cloudscale.ch, rule by rule, as a client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod access;
mod creation;
mod faults;
mod fixture;
mod floating;
mod handle;
mod health;
mod life;
mod monitors;
mod patches;
mod properties;
mod queue;
mod served;
mod servers;
mod tags;
