//! What goes over the wire, and what follows from every kind of answer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod access;
mod instances;
mod script;
