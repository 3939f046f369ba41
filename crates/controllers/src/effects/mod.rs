//! What the controllers do to the world: live it is done, dry it is only noted.

pub(crate) mod services;
