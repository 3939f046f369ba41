//! What is written on a node, and when.
//!
//! | module | decides |
//! |---|---|
//! | [`ownership`], [`instance`] | which cloud a node belongs to, and which instance it is |
//! | [`source`] | what counts of an absence when the cloud was asked again |
//! | [`change`] | which changes of a node need a look |
//! | [`initialise`] | what a node that waits for its cloud gets before pods may come |
//! | [`reconcile`] | what a node in service gets when its instance has changed |
//! | [`step`] | which of the two it is, and whether there is anything to write |
//! | [`addresses`], [`node_ip`] | which addresses, in which order |
//! | [`labels`], [`record`] | which labels, and whose they are |
//! | [`taints`] | which taints |
//! | [`patch`], [`events`] | the form of every write |
//!
//! Two rules hold everywhere. What is not known is not written: an answer that failed changes nothing (law 1). And a
//! decision about a node that already has what it should have is to write nothing (law 4).

pub mod addresses;
pub mod change;
pub mod events;
pub mod initialise;
pub mod instance;
pub mod labels;
pub mod node_ip;
pub mod ownership;
pub mod patch;
pub mod reconcile;
pub mod record;
pub mod source;
pub mod step;
pub mod taints;

#[cfg(test)]
mod fixture;
