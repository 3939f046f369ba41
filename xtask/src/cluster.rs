//! `cargo xtask cluster`: a real cluster with cloudberth, nodes and pods, for people.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kube_assets::NEWEST;
use serde_json::Value;

use crate::kube::{asked, provide};
use crate::workspace::Workspace;
use crate::{Result, Verdict};

/// The scenarios have everything that such a cluster needs, so they start it. They take the place of this process: then
/// Ctrl-C reaches them alone, and the prompt is back only when everything has ended.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let version = asked(&mut args).map_err(|why| why.to_string())?;
    let version =
        kube_assets::version(version.as_deref().unwrap_or(NEWEST)).map_err(|why| why.to_string())?;
    provide(version)?;
    let scenarios = scenarios(workspace)?;
    let why = Command::new(&scenarios).args(["--stay", "--kube", version]).exec();
    Err(format!("{}: {why}", scenarios.display()))
}

/// Builds the scenarios; the path of their program.
fn scenarios(workspace: &Workspace) -> Result<PathBuf> {
    let args = ["test", "--package", "cloudberth-e2e", "--test", "scenarios", "--no-run"];
    let mut command = workspace.cargo(&args);
    let built = command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output();
    let built = built.map_err(|why| format!("{command:?}: {why}"))?;
    let said = String::from_utf8_lossy(&built.stdout);
    executable(&said).ok_or_else(|| "the scenarios cannot be built".to_owned())
}

/// The program among the artifacts that cargo reports, one JSON object per line.
fn executable(said: &str) -> Option<PathBuf> {
    let artifacts = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    artifacts
        .filter(|artifact| artifact.pointer("/target/name").is_some_and(|name| name == "scenarios"))
        .find_map(|artifact| artifact.get("executable")?.as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_artifacts() {
        let said = r#"{"reason":"compiler-artifact","target":{"name":"cloudberth_e2e"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"cloudberth"},"executable":"/t/debug/cloudberth"}
{"reason":"compiler-artifact","target":{"name":"scenarios"},"executable":"/t/debug/deps/scenarios-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(said), Some(PathBuf::from("/t/debug/deps/scenarios-1")));
        assert_eq!(executable(r#"{"reason":"build-finished","success":false}"#), None);
    }
}
