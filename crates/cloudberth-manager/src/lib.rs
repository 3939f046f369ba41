//! The controller manager: its flags, its configuration, and the wiring of everything below it.

pub mod connect;
pub mod logging;
pub mod rights;
pub mod selfcheck;
