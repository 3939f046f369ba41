//! What the controllers do to the world. One flow decides; live effects carry it out, dry ones only note it.

pub(crate) mod nodes;
pub(crate) mod services;
