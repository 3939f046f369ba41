//! The controller manager: its flags and its configuration.
//!
//! Everything here is a pure function of arguments, environment and files that are handed in. [`CommandLine::read`] is
//! where it begins.
//!
//! [`CommandLine::read`]: command::CommandLine::read

pub mod command;
pub mod configz;
pub mod env;
pub mod flags;
pub mod gates;
pub mod migration;
pub mod options;
pub mod program;
