//! The simulated cloudscale.ch, rule by rule, as a client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod life;
mod stage;
