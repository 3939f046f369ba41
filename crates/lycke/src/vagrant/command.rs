//! Vagrant as a command.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::Vagrant;
use crate::{inventory::VagrantSettings, plane::Answer};

/// The program `vagrant`, as `PATH` finds it. No shell is involved.
#[derive(Clone, Copy, Debug, Default)]
pub struct VagrantCommand;

impl Vagrant for VagrantCommand {
    fn status(&self, settings: &VagrantSettings) -> Answer<Result<String, String>> {
        let directory = settings.directory.clone();
        Box::pin(async move {
            let mut command = Command::new("vagrant");
            command.args(["status", "--machine-readable"]).current_dir(&directory);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // It starts programs of its own, which have to end with it.
            command.process_group(0).kill_on_drop(true);
            let child = command.spawn();
            let child = child.map_err(|why| format!("vagrant in {}: {why}", directory.display()))?;
            let group = Group::of(&child);
            let output = child.wait_with_output().await.map_err(|why| why.to_string())?;
            group.ended();
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                return Err(format!("vagrant ended with {}: {last}", output.status));
            }
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        })
    }
}

/// The programs that a command has started. They are ended when it is given up.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
