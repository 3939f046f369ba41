//! The plane with real sockets: real clients and real backends on loopback, in real time.
//!
//! Deadlines only end a hang; nothing here is measured.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod alone;
mod changes;
mod faults;
mod fixture;
mod half_open;
mod health;
mod limits;
mod listeners;
mod load;
mod memory;
mod privilege;
mod rolling;
mod tcp;
mod udp;
