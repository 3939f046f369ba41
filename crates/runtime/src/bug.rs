//! Bugs that are caught where they are met, so that one object cannot end the work on all others (law 11).

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Does the work, or tells what its panic said. For work on one object that is done beside a worker, where nobody else
/// would catch it.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(panic.as_ref()))
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
