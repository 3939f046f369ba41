//! The flags of the controller manager.
//!
//! One [table](Flags) is the source of all: what is parsed, what `--help` shows, what the reference page says, and the
//! typed values that [`Options`](crate::options::Options) are made from.
//!
//! # Why not a library
//!
//! Manifests, and the fingers of those who write them, follow the conventions of Go's `pflag`: `_` for `-` in names,
//! switches that take a value only behind `=`, truth values spelled `T` or `0`, durations such as `1h30m`, lists that
//! a second use of the flag adds to, groups in `--help`. Command-line libraries for Rust have conventions of their
//! own, stop at the first mistake, or both. What is needed is small, and every mistake is to be told at once.

mod declare;
mod duration;
mod help;
mod lists;
mod markdown;
mod parse;
mod special;
mod table;
mod value;

pub use declare::{AnyFlag, FlagInfo, Group, Note, Setting};
pub use duration::GoDuration;
pub use help::{help, usage};
pub use lists::{Files, Int32s, NamedCertKey, NamedCertKeys, Strings};
pub use markdown::markdown;
pub use parse::parse;
pub use special::{GateList, Level, Quantity, VModule, VersionFlag};
pub use table::Flags;
pub use value::Value;
