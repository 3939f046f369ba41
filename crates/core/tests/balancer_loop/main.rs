//! The load-balancer loop, proved on one toy of each shape that the traits must fit:
//!
//! - [`six`]: a load balancer made of many resource kinds, each with ids of its own;
//! - [`document`]: one that is a single document;
//! - [`around`]: one with a group, a firewall, a cloud address and DNS around it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub
)]

mod around;
mod document;
mod driver;
mod fixture;
mod shapes;
mod six;
