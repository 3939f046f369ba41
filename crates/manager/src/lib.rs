//! The controller manager: its flags, its configuration, and the wiring of everything below it.
//!
//! What the program is asked to do is a pure function of arguments, environment and files that are handed in;
//! [`CommandLine::read`] is where it begins.
//!
//! [`CommandLine::read`]: command::CommandLine::read

pub mod command;
pub mod configz;
pub mod connect;
pub mod doctor;
pub mod exits;
pub mod flags;
pub mod gates;
pub mod heartbeat;
pub mod late;
pub mod lint;
pub mod logging;
pub mod migration;
pub mod options;
pub mod orphans;
pub mod plan;
pub mod process;
pub mod program;
mod reads;
pub mod replica;
pub mod rights;
pub mod selfcheck;
pub mod serve;
pub mod settings;
