//! How many files this process and its children may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system lets it, for this process and for those that it starts, and says how many that
/// are.
pub(crate) fn raise_open_files() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let now = if raised { maximum } else { current };
    now.unwrap_or(u64::MAX)
}
