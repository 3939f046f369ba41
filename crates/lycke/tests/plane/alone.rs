//! Tests that need a process of their own, because of what belongs to a whole process: its memory, its descriptors, its
//! network, its privileges. Such a test starts itself again.

use std::{path::PathBuf, process::Command};

use crate::fixture::not_shown;

/// Set for the process that is started.
const CHILD: &str = "PLANE_TEST_ALONE";

/// Does the work of the test with this path in a process of its own. `start` makes the command that runs the tests, to which
/// arguments can be added, or says why that is not possible on this computer.
pub(crate) fn alone(
    case: &str,
    name: &str,
    start: impl FnOnce(PathBuf) -> Result<Command, String>,
    work: impl Future<Output = ()>,
) {
    if std::env::var_os(CHILD).is_some_and(|test| test == name) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(work);
    }
    let mut command = match start(std::env::current_exe().unwrap()) {
        Ok(command) => command,
        Err(why) => return not_shown(case, &why),
    };
    let output = command.args(["--exact", name, "--nocapture"]).env(CHILD, name).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case} {said}");
    assert!(said.contains("1 passed"), "{case} {said}");
}
