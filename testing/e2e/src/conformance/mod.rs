//! One table of requests, replayed on two servers, and the differences between their answers.
//!
//! The table ([`table`]) says what is asked and which status a Kubernetes API server gives. [`replay`] asks
//! any [`Target`] and writes down everything that came back. [`differences`] compares two such transcripts
//! field by field, after values that no two servers share (ids, times, versions, allocated addresses) have
//! been replaced by the order in which they first appeared. So "the version did not change" and "these two
//! are the same object" are still compared.

mod compare;
mod exceptions;
mod lens;
mod normalise;
mod row;
mod run;
mod swagger;
pub mod table;
mod target;

pub use compare::{Difference, differences};
pub use exceptions::{EXCEPTIONS, Exception, sift};
pub use row::{Action, Row, Step};
pub use run::{Observed, Transcript, dump, replay};
pub use target::Target;
