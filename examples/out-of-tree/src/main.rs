//! The controller manager with Nimbus as its only cloud.

use std::process::ExitCode;

use cloudberth_manager::process;
use nimbus_cloud_controller_manager::FACTORY;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let called = arguments.next().unwrap_or_default().to_string_lossy().into_owned();
    process::controller_manager(&called, &called, arguments.collect(), &[FACTORY])
}
