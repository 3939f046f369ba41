//! The whole program in virtual time: a management cluster, downstream clusters and Harvester as embedded APIs, and a
//! stand-in for Helm that writes the records of Helm.

mod bare_metal;
mod careless;
mod deletion;
mod go_program;
mod leaders;
mod scale;
mod secrecy;
mod seeds;
mod story;
mod takeover;
mod trouble;
mod wire;
mod witness;
mod world;
