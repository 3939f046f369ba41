//! The decision alone: what a Service asks for, and what follows from what there is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod cloud_ips;
mod comparing;
mod domains;
mod firewall;
mod fixture;
mod laws;
mod left_behind;
mod names;
mod options;
mod requests;
mod validation;
