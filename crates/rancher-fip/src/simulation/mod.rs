//! The whole program in virtual time: a management cluster, downstream clusters and Harvester as embedded APIs, and a
//! stand-in for Helm that writes the records of Helm.

mod bare_metal;
mod deletion;
mod leaders;
mod scale;
mod seeds;
mod story;
mod trouble;
mod world;
