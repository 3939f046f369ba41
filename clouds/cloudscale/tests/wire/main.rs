//! The provider against a scripted API: every request that it sends, and what it makes of every answer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod instances;
mod refusals;
mod script;
