//! What the controllers do to the world, live and dry: one flow decides, and the effects carry it out or put it down.

pub(crate) mod nodes;
